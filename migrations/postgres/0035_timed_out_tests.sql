-- Finds the tests of a lane that ever timed out without a look at all of its tests; undone by dropping the index.

CREATE INDEX test_state_timed_out ON test_state (project_id, lane_id, test_case_id) WHERE timedout > 0;

-- rollback:
-- DROP INDEX test_state_timed_out;
