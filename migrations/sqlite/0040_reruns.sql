-- Lets a re-run join the run that it repeats: the project setting (existing projects keep re-runs apart, new ones join them), and
-- the CI job and attempt of each client of a run. A superseded run names the run that took its place. Undone by dropping the
-- columns and the index; joined re-runs stay joined.

ALTER TABLE projects ADD COLUMN joins_reruns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deleted_projects ADD COLUMN joins_reruns INTEGER NOT NULL DEFAULT 0;

ALTER TABLE run_slots ADD COLUMN job_key BLOB;
ALTER TABLE run_slots ADD COLUMN job_attempt INTEGER;
CREATE INDEX run_slots_job ON run_slots (project_id, job_key, run_id) WHERE job_key IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('run_slots', 'run_slots_job', '100000 10000 2 1');
ANALYZE sqlite_schema;

ALTER TABLE test_runs ADD COLUMN superseded_by INTEGER;
ALTER TABLE deleted_runs ADD COLUMN superseded_by INTEGER;

-- rollback:
-- ALTER TABLE deleted_runs DROP COLUMN superseded_by; ALTER TABLE test_runs DROP COLUMN superseded_by;
-- DELETE FROM sqlite_stat1 WHERE idx = 'run_slots_job';
-- DROP INDEX run_slots_job; ALTER TABLE run_slots DROP COLUMN job_attempt; ALTER TABLE run_slots DROP COLUMN job_key;
-- ALTER TABLE deleted_projects DROP COLUMN joins_reruns; ALTER TABLE projects DROP COLUMN joins_reruns;
