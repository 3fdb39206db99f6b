-- When a run started, by its id. Without this index, and as soon as it is vacuumed, the planner takes the one by time for
-- such a lookup: it holds the moment as well, and all runs of the project are read in it for each that is asked for.
CREATE UNIQUE INDEX test_runs_times ON test_runs (project_id, id) INCLUDE (order_at);

-- rollback:
-- DROP INDEX test_runs_times;
