-- What running clients sent is kept in a file beside this one, to which what still waited was copied before; a slot says up
-- to which of its calls are worked in. Undone by making the tables again as 0027 and 0030 made them and dropping the column.
-- Before the undo nothing may wait (run_intake of the file beside is empty), or results that were acknowledged are lost.

ALTER TABLE run_slots ADD COLUMN worked_in INTEGER NOT NULL DEFAULT 0;

DELETE FROM sqlite_stat1 WHERE tbl IN ('run_intake', 'run_intake_keys');
DROP TABLE run_intake_keys;
DROP TABLE run_intake;
ANALYZE sqlite_schema;

-- rollback:
-- CREATE TABLE run_intake (
--     id INTEGER PRIMARY KEY,
--     project_id INTEGER NOT NULL,
--     run_id INTEGER NOT NULL,
--     slot_id INTEGER NOT NULL,
--     at INTEGER NOT NULL,
--     refusals INTEGER NOT NULL DEFAULT 0,
--     pack_id INTEGER,
--     body BLOB NOT NULL,
--     evidence BLOB
-- );
-- CREATE INDEX run_intake_of_run ON run_intake (project_id, run_id);
-- CREATE TABLE run_intake_keys (
--     project_id INTEGER NOT NULL,
--     run_id INTEGER NOT NULL,
--     key INTEGER NOT NULL,
--     PRIMARY KEY (project_id, run_id, key)
-- ) WITHOUT ROWID;
-- ALTER TABLE run_slots DROP COLUMN worked_in;
