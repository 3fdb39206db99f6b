-- Keeps what running clients sent from its acknowledgement until it is worked into its run, in a file of its own; undone by
-- deleting the file. Before the undo nothing may wait (run_intake is empty), or results that were acknowledged are lost.

CREATE TABLE run_intake (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    slot_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    refusals INTEGER NOT NULL DEFAULT 0,
    pack_id INTEGER,
    body BLOB NOT NULL,
    evidence BLOB
);
CREATE INDEX run_intake_of_run ON run_intake (project_id, run_id);

-- Attempts that clients of runs that go on have sent.
CREATE TABLE run_intake_keys (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id, key)
) WITHOUT ROWID;

ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('run_intake', 'run_intake_of_run', '200 50 20'),
    ('run_intake_keys', 'run_intake_keys', '20000 2000 200 1');
ANALYZE sqlite_schema;

-- rollback:
-- DROP TABLE run_intake_keys;
-- DROP TABLE run_intake;
