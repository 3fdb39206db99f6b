-- Makes PostgreSQL order texts by their bytes, whatever the language of its database; SQLite does so anyway, so here nothing
-- changes.

SELECT 1;

-- rollback:
-- nothing
