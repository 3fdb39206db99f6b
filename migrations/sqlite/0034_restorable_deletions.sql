-- Makes a deletion by a person restorable for a grace period; undone by dropping what is added here, when no receipt is pending.

ALTER TABLE deletion_receipts ADD COLUMN restorable_until INTEGER;
ALTER TABLE deletion_receipts ADD COLUMN restore_requested_at INTEGER;
ALTER TABLE deletion_receipts ADD COLUMN restored_at INTEGER;

-- Runs whose details retention deleted: the counter of runs and the days of a project still count them.
ALTER TABLE project_stats ADD COLUMN expired_runs INTEGER NOT NULL DEFAULT 0;
UPDATE project_stats SET expired_runs = MAX(0, (SELECT COALESCE(SUM(d.runs), 0) FROM project_daily d
    WHERE d.project_id = project_stats.project_id AND d.lane_id = 0) - runs);
UPDATE project_stats SET runs = runs + expired_runs;

-- 0: rows are freed at once; 1: rows are kept and still in the aggregates; 2: rows are kept and taken out of them.
ALTER TABLE doomed_runs ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;

-- Rows of deletions that can be restored, with the columns of the tables they come from, in the same order.
CREATE TABLE deleted_runs AS SELECT * FROM test_runs WHERE 0;
CREATE UNIQUE INDEX deleted_runs_key ON deleted_runs (project_id, id);
CREATE TABLE deleted_executions AS SELECT * FROM executions WHERE 0;
CREATE UNIQUE INDEX deleted_executions_key ON deleted_executions (project_id, run_id, id);
CREATE TABLE deleted_projects AS SELECT * FROM projects WHERE 0;
CREATE UNIQUE INDEX deleted_projects_key ON deleted_projects (id);
CREATE TABLE deleted_project_stats AS SELECT * FROM project_stats WHERE 0;
CREATE UNIQUE INDEX deleted_project_stats_key ON deleted_project_stats (project_id);
CREATE TABLE deleted_project_assignments AS SELECT * FROM project_assignments WHERE 0;
CREATE INDEX deleted_project_assignments_key ON deleted_project_assignments (project_id);
CREATE TABLE deleted_project_tags AS SELECT * FROM project_tags WHERE 0;
CREATE INDEX deleted_project_tags_key ON deleted_project_tags (project_id);

-- rollback:
-- DROP TABLE deleted_project_tags; DROP TABLE deleted_project_assignments; DROP TABLE deleted_project_stats;
-- DROP TABLE deleted_projects; DROP TABLE deleted_executions; DROP TABLE deleted_runs;
-- UPDATE project_stats SET runs = runs - expired_runs; ALTER TABLE project_stats DROP COLUMN expired_runs;
-- ALTER TABLE doomed_runs DROP COLUMN kept; ALTER TABLE deletion_receipts DROP COLUMN restored_at;
-- ALTER TABLE deletion_receipts DROP COLUMN restore_requested_at; ALTER TABLE deletion_receipts DROP COLUMN restorable_until;
