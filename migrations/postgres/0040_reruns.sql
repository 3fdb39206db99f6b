-- Lets a re-run join the run that it repeats: the project setting (existing projects keep re-runs apart, new ones join them), and
-- the CI job and attempt of each client of a run. A superseded run names the run that took its place. Undone by dropping the
-- columns and the index; joined re-runs stay joined.

ALTER TABLE projects ADD COLUMN joins_reruns SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE deleted_projects ADD COLUMN joins_reruns SMALLINT NOT NULL DEFAULT 0;

ALTER TABLE run_slots ADD COLUMN job_key BYTEA;
ALTER TABLE run_slots ADD COLUMN job_attempt BIGINT;
CREATE INDEX run_slots_job ON run_slots (project_id, job_key, run_id) WHERE job_key IS NOT NULL;

ALTER TABLE test_runs ADD COLUMN superseded_by BIGINT;
ALTER TABLE deleted_runs ADD COLUMN superseded_by BIGINT;

-- rollback:
-- ALTER TABLE deleted_runs DROP COLUMN superseded_by; ALTER TABLE test_runs DROP COLUMN superseded_by;
-- DROP INDEX run_slots_job; ALTER TABLE run_slots DROP COLUMN job_attempt; ALTER TABLE run_slots DROP COLUMN job_key;
-- ALTER TABLE deleted_projects DROP COLUMN joins_reruns; ALTER TABLE projects DROP COLUMN joins_reruns;
