-- Keeps what runs said that retention deleted: how the newest of each branch and environment ended, on which branches
-- clusters were seen, and how many executions there were. Marks stored runs of a dirty work tree, which are no baseline.
-- Undone by dropping what is added here.

-- The newest full runs of each branch and environment that retention deleted, and the newest partial one, as lists show runs.
CREATE TABLE expired_runs (
    id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    branch TEXT NOT NULL,
    environment TEXT NOT NULL,
    status TEXT NOT NULL,
    start_time INTEGER NOT NULL,
    order_at INTEGER NOT NULL,
    duration INTEGER,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    timedout INTEGER NOT NULL,
    interrupted INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    didnotrun INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    is_full INTEGER NOT NULL,
    is_green INTEGER NOT NULL,
    commit_sha TEXT,
    label TEXT,
    end_reason TEXT,
    error_count INTEGER NOT NULL,
    first_error TEXT,
    PRIMARY KEY (project_id, id)
) WITHOUT ROWID;
CREATE INDEX expired_runs_by_time ON expired_runs (project_id, order_at, id);
CREATE INDEX expired_runs_by_branch ON expired_runs (project_id, branch, order_at, id);

-- Branches on which a cluster was seen in runs that retention deleted.
CREATE TABLE expired_cluster_branches (
    project_id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    branch TEXT NOT NULL,
    last_run_id INTEGER NOT NULL,
    PRIMARY KEY (project_id, cluster_id, branch)
) WITHOUT ROWID;

-- Start of the newest full run that retention deleted: nothing older than the runs that are there has to be looked for before it.
ALTER TABLE project_stats ADD COLUMN last_expired_at INTEGER;
ALTER TABLE deleted_project_stats ADD COLUMN last_expired_at INTEGER;

-- The counter of executions counts those of runs that retention deleted, as that of runs does. The days still know them.
UPDATE project_stats SET executions = MAX(executions, (SELECT CAST(COALESCE(SUM(d.total), 0) AS INTEGER) FROM project_daily d
    WHERE d.project_id = project_stats.project_id AND d.lane_id = 0)) WHERE expired_runs > 0;

UPDATE test_runs SET is_dirty = 1 WHERE is_dirty = 0 AND EXISTS (SELECT 1 FROM run_details d WHERE d.project_id = test_runs.project_id
    AND d.run_id = test_runs.id AND d.metadata LIKE '%"dirty":true%' AND json_valid(d.metadata)
    AND json_extract(d.metadata, '$.scm.dirty') = 1);
UPDATE deleted_runs SET is_dirty = 1 WHERE is_dirty = 0 AND EXISTS (SELECT 1 FROM run_details d WHERE d.project_id = deleted_runs.project_id
    AND d.run_id = deleted_runs.id AND d.metadata LIKE '%"dirty":true%' AND json_valid(d.metadata)
    AND json_extract(d.metadata, '$.scm.dirty') = 1);
UPDATE test_runs SET is_green = 0 WHERE is_dirty = 1 AND is_green = 1;
UPDATE deleted_runs SET is_green = 0 WHERE is_dirty = 1 AND is_green = 1;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('expired_runs', 'expired_runs', '20000 200 1'),
    ('expired_runs', 'expired_runs_by_time', '20000 200 1 1'),
    ('expired_runs', 'expired_runs_by_branch', '20000 200 40 1 1'),
    ('expired_cluster_branches', 'expired_cluster_branches', '20000 200 2 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl IN ('expired_runs', 'expired_cluster_branches');
-- ALTER TABLE deleted_project_stats DROP COLUMN last_expired_at; ALTER TABLE project_stats DROP COLUMN last_expired_at;
-- DROP TABLE expired_cluster_branches; DROP TABLE expired_runs;
