-- Makes it possible that a test keeps its history under another path. Undone by dropping what is added here; tests that
-- were joined are two again then, each with the results that it has at that time.

-- The test for which results count that come under the identity of this one.
ALTER TABLE test_cases ADD COLUMN joined_to BIGINT;
-- The path of its identity, where the test is shown under another. Days of folders count results under the path they came with.
ALTER TABLE test_cases ADD COLUMN reported_path TEXT COLLATE "C";
-- Whether a run whose paths begin at the root of a work tree has reported this path: it is not a shorter form of another.
ALTER TABLE test_cases ADD COLUMN is_rooted SMALLINT NOT NULL DEFAULT 0;

-- The joined test under whose identity a result came; none for the test's own.
ALTER TABLE executions ADD COLUMN reported_as BIGINT;
ALTER TABLE deleted_executions ADD COLUMN reported_as BIGINT;

-- How paths of a project were written before, as its runs say.
CREATE TABLE path_prefixes (
    project_id BIGINT NOT NULL,
    present TEXT COLLATE "C" NOT NULL,
    earlier TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (project_id, present, earlier)
);

-- Earlier paths that several files of the sources had.
CREATE TABLE shared_paths (
    project_id BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (project_id, path)
);

CREATE SEQUENCE ids_history_join;

-- Two tests whose histories are one, or may be.
CREATE TABLE history_joins (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    -- The test that keeps its id, and the one that leads to it.
    test_case_id BIGINT NOT NULL,
    joined_id BIGINT NOT NULL,
    -- Paths under which results of each come.
    kept_path TEXT COLLATE "C" NOT NULL,
    joined_path TEXT COLLATE "C" NOT NULL,
    -- The path under which both are shown.
    path TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('proposed', 'joining', 'joined', 'undoing', 'undone', 'dismissed')),
    reason TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    decided_at BIGINT,
    decided_by BIGINT,
    -- Whether people decided last, whom installations without accounts do not name.
    is_by_people SMALLINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX history_joins_pair ON history_joins (project_id, test_case_id, joined_id);
CREATE INDEX history_joins_of_joined ON history_joins (project_id, joined_id);
CREATE INDEX history_joins_by_state ON history_joins (project_id, state, id);

-- rollback:
-- DROP TABLE shared_paths; DROP TABLE path_prefixes; DROP TABLE history_joins; DROP SEQUENCE ids_history_join;
-- ALTER TABLE deleted_executions DROP COLUMN reported_as; ALTER TABLE executions DROP COLUMN reported_as;
-- ALTER TABLE test_cases DROP COLUMN is_rooted; ALTER TABLE test_cases DROP COLUMN reported_path;
-- ALTER TABLE test_cases DROP COLUMN joined_to;
