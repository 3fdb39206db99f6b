-- Keeps what runs said that retention deleted: how the newest of each branch and environment ended, on which branches
-- clusters were seen, and how many executions there were. Marks stored runs of a dirty work tree, which are no baseline.
-- Undone by dropping what is added here.

-- The newest full runs of each branch and environment that retention deleted, and the newest partial one, as lists show runs.
CREATE TABLE expired_runs (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    branch TEXT COLLATE "C" NOT NULL,
    environment TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    start_time BIGINT NOT NULL,
    order_at BIGINT NOT NULL,
    duration BIGINT,
    total BIGINT NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    timedout BIGINT NOT NULL,
    interrupted BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    didnotrun BIGINT NOT NULL,
    flaky BIGINT NOT NULL,
    is_full SMALLINT NOT NULL,
    is_green SMALLINT NOT NULL,
    commit_sha TEXT COLLATE "C",
    label TEXT COLLATE "C",
    end_reason TEXT COLLATE "C",
    error_count BIGINT NOT NULL,
    first_error TEXT COLLATE "C",
    PRIMARY KEY (project_id, id)
);
CREATE INDEX expired_runs_by_time ON expired_runs (project_id, order_at, id);
CREATE INDEX expired_runs_by_branch ON expired_runs (project_id, branch, order_at, id);

-- Branches on which a cluster was seen in runs that retention deleted.
CREATE TABLE expired_cluster_branches (
    project_id BIGINT NOT NULL,
    cluster_id BIGINT NOT NULL,
    branch TEXT COLLATE "C" NOT NULL,
    last_run_id BIGINT NOT NULL,
    PRIMARY KEY (project_id, cluster_id, branch)
);

-- Start of the newest full run that retention deleted: nothing older than the runs that are there has to be looked for before it.
ALTER TABLE project_stats ADD COLUMN last_expired_at BIGINT;
ALTER TABLE deleted_project_stats ADD COLUMN last_expired_at BIGINT;

-- The counter of executions counts those of runs that retention deleted, as that of runs does. The days still know them.
UPDATE project_stats SET executions = GREATEST(executions, (SELECT CAST(COALESCE(SUM(d.total), 0) AS BIGINT) FROM project_daily d
    WHERE d.project_id = project_stats.project_id AND d.lane_id = 0)) WHERE expired_runs > 0;

-- PostgreSQL reads no JSON with an escaped NUL.
UPDATE test_runs SET is_dirty = 1 WHERE is_dirty = 0 AND EXISTS (SELECT 1 FROM run_details d WHERE d.project_id = test_runs.project_id
    AND d.run_id = test_runs.id AND CASE WHEN d.metadata LIKE '%"dirty":true%' AND d.metadata NOT LIKE '%u0000%'
        THEN d.metadata::json -> 'scm' ->> 'dirty' = 'true' ELSE FALSE END);
UPDATE deleted_runs SET is_dirty = 1 WHERE is_dirty = 0 AND EXISTS (SELECT 1 FROM run_details d WHERE d.project_id = deleted_runs.project_id
    AND d.run_id = deleted_runs.id AND CASE WHEN d.metadata LIKE '%"dirty":true%' AND d.metadata NOT LIKE '%u0000%'
        THEN d.metadata::json -> 'scm' ->> 'dirty' = 'true' ELSE FALSE END);
UPDATE test_runs SET is_green = 0 WHERE is_dirty = 1 AND is_green = 1;
UPDATE deleted_runs SET is_green = 0 WHERE is_dirty = 1 AND is_green = 1;

-- rollback:
-- ALTER TABLE deleted_project_stats DROP COLUMN last_expired_at; ALTER TABLE project_stats DROP COLUMN last_expired_at;
-- DROP TABLE expired_cluster_branches; DROP TABLE expired_runs;
