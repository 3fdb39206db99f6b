-- Has stored executions of the last 30 days judged by the rule of today, once, as far as there are any. Notes of runs that
-- their work tree had uncommitted changes, and what a full run was expected to have where one had far fewer tests; finds the
-- runs of a lane that claimed to be full. Undone by deleting the job, the index and the columns.

INSERT INTO id_counters (kind, next) SELECT 'job', 2 WHERE EXISTS (SELECT 1 FROM test_runs)
    ON CONFLICT (kind) DO UPDATE SET next = next + 1;
INSERT INTO jobs (id, key, kind, payload, state, run_after, attempts, created_at)
    SELECT next - 1, 'reevaluate_outcomes', 'reevaluate_outcomes', '{}', 'queued', 0, 0, 0 FROM id_counters
    WHERE kind = 'job' AND EXISTS (SELECT 1 FROM test_runs);

ALTER TABLE test_runs ADD COLUMN is_dirty INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN expected_tests INTEGER;
CREATE INDEX test_runs_claimed_full ON test_runs (project_id, lane_id, order_at, id)
    WHERE is_full = 1 OR expected_tests IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('test_runs', 'test_runs_claimed_full', '80000 8000 160 1 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM jobs WHERE key = 'reevaluate_outcomes';
-- DELETE FROM sqlite_stat1 WHERE idx = 'test_runs_claimed_full';
-- UPDATE test_runs SET is_full = 1 WHERE expected_tests IS NOT NULL;
-- DROP INDEX test_runs_claimed_full; ALTER TABLE test_runs DROP COLUMN expected_tests; ALTER TABLE test_runs DROP COLUMN is_dirty;
