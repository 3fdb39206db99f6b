-- Finds the last day on which a test failed or flaked without a look at every day on which it passed; undone by dropping
-- the index.

CREATE INDEX test_daily_failing ON test_daily (project_id, lane_id, test_case_id, day) WHERE failed + flaky > 0;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('test_daily', 'test_daily_failing', '200000 20000 1000 20 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE idx = 'test_daily_failing';
-- DROP INDEX test_daily_failing;
