-- Finds the tests of a lane that ever timed out without a look at all of its tests; undone by dropping the index.

CREATE INDEX test_state_timed_out ON test_state (project_id, lane_id, test_case_id) WHERE timedout > 0;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('test_state', 'test_state_timed_out', '10000 1000 50 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE idx = 'test_state_timed_out';
-- DROP INDEX test_state_timed_out;
