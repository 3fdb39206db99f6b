-- Makes PostgreSQL order texts by their bytes, whatever the language of its database, as SQLite and the code do; undone by
-- giving the columns the order of the database. Columns of later tables are declared with it.
--
-- No table is written anew, but the indexes of texts are, and checks of texts read their table once.

DO $$
DECLARE
    t record;
BEGIN
    FOR t IN
        SELECT c.oid::regclass AS name, c.reltuples > 0 AS was_analysed,
            string_agg(format('ALTER COLUMN %I TYPE TEXT COLLATE "C"', a.attname), ', ' ORDER BY a.attnum) AS changes
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations'
            AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'text'::regtype AND a.attcollation <> '"C"'::regcollation
        GROUP BY c.oid ORDER BY c.oid::regclass::text
    LOOP
        EXECUTE format('ALTER TABLE %s %s', t.name, t.changes);
        -- The server forgets what it knew of columns that change.
        IF t.was_analysed THEN EXECUTE format('ANALYZE %s', t.name); END IF;
    END LOOP;
END $$;

-- rollback:
-- DO $$
-- DECLARE
--     t record;
-- BEGIN
--     FOR t IN
--         SELECT c.oid::regclass AS name,
--             string_agg(format('ALTER COLUMN %I TYPE TEXT COLLATE "default"', a.attname), ', ' ORDER BY a.attnum) AS changes
--         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
--         WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
--             AND c.relname <> 'schema_migrations'
--             -- These had it before.
--             AND (c.relname, a.attname) NOT IN (('search_terms', 'term'), ('test_functions', 'name'), ('test_functions', 'module'))
--             AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'text'::regtype AND a.attcollation = '"C"'::regcollation
--         GROUP BY c.oid ORDER BY c.oid::regclass::text
--     LOOP
--         EXECUTE format('ALTER TABLE %s %s', t.name, t.changes);
--     END LOOP;
-- END $$;
