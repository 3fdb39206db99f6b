-- Finds the last day on which a test failed or flaked without a look at every day on which it passed; undone by dropping
-- the index.

CREATE INDEX test_daily_failing ON test_daily (project_id, lane_id, test_case_id, day) WHERE failed + flaky > 0;

-- rollback:
-- DROP INDEX test_daily_failing;
