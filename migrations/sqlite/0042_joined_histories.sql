-- Makes it possible that a test keeps its history under another path. Undone by dropping what is added here; tests that
-- were joined are two again then, each with the results that it has at that time.

-- The test for which results count that come under the identity of this one.
ALTER TABLE test_cases ADD COLUMN joined_to INTEGER;
-- The path of its identity, where the test is shown under another. Days of folders count results under the path they came with.
ALTER TABLE test_cases ADD COLUMN reported_path TEXT;
-- Whether a run whose paths begin at the root of a work tree has reported this path: it is not a shorter form of another.
ALTER TABLE test_cases ADD COLUMN is_rooted INTEGER NOT NULL DEFAULT 0;

-- The joined test under whose identity a result came; none for the test's own.
ALTER TABLE executions ADD COLUMN reported_as INTEGER;
ALTER TABLE deleted_executions ADD COLUMN reported_as INTEGER;

-- How paths of a project were written before, as its runs say.
CREATE TABLE path_prefixes (
    project_id INTEGER NOT NULL,
    present TEXT NOT NULL,
    earlier TEXT NOT NULL,
    PRIMARY KEY (project_id, present, earlier)
) WITHOUT ROWID;

-- Earlier paths that several files of the sources had.
CREATE TABLE shared_paths (
    project_id INTEGER NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (project_id, path)
) WITHOUT ROWID;

-- Two tests whose histories are one, or may be.
CREATE TABLE history_joins (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    -- The test that keeps its id, and the one that leads to it.
    test_case_id INTEGER NOT NULL,
    joined_id INTEGER NOT NULL,
    -- Paths under which results of each come.
    kept_path TEXT NOT NULL,
    joined_path TEXT NOT NULL,
    -- The path under which both are shown.
    path TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('proposed', 'joining', 'joined', 'undoing', 'undone', 'dismissed')),
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by INTEGER,
    -- Whether people decided last, whom installations without accounts do not name.
    is_by_people INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX history_joins_pair ON history_joins (project_id, test_case_id, joined_id);
CREATE INDEX history_joins_of_joined ON history_joins (project_id, joined_id);
CREATE INDEX history_joins_by_state ON history_joins (project_id, state, id);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('history_joins', 'history_joins_pair', '2000 200 1 1'),
    ('history_joins', 'history_joins_of_joined', '2000 200 1'),
    ('history_joins', 'history_joins_by_state', '2000 200 50 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl = 'history_joins';
-- DROP TABLE shared_paths; DROP TABLE path_prefixes; DROP TABLE history_joins;
-- ALTER TABLE deleted_executions DROP COLUMN reported_as; ALTER TABLE executions DROP COLUMN reported_as;
-- ALTER TABLE test_cases DROP COLUMN is_rooted; ALTER TABLE test_cases DROP COLUMN reported_path;
-- ALTER TABLE test_cases DROP COLUMN joined_to;
-- DELETE FROM id_counters WHERE kind = 'history_join';
