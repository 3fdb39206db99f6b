-- Keeps more of how long the tests of a run took than the mean and the 90th percentile; undone by dropping the columns.
-- Runs that ended before have none.

ALTER TABLE test_runs ADD COLUMN p50_ms INTEGER;
ALTER TABLE test_runs ADD COLUMN p95_ms INTEGER;

-- rollback:
-- ALTER TABLE test_runs DROP COLUMN p95_ms;
-- ALTER TABLE test_runs DROP COLUMN p50_ms;
