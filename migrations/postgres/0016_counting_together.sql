-- Makes it possible to count the results of running clients many at a time; undone by forgetting how far that is.
-- Before the undo every run must be over: what is not counted yet would never be.

-- The ordinal up to which the executions of a run are counted in states and days of tests.
ALTER TABLE test_runs ADD COLUMN counted_to BIGINT NOT NULL DEFAULT 0;
-- Since when an execution waits to be counted.
ALTER TABLE test_runs ADD COLUMN uncounted_since BIGINT;
UPDATE test_runs SET counted_to = next_ordinal - 1;

-- rollback:
-- ALTER TABLE test_runs DROP COLUMN uncounted_since; ALTER TABLE test_runs DROP COLUMN counted_to;
