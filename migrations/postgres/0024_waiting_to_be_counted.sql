-- Finds the runs whose executions wait to be counted in states and days of tests; undone by dropping the index.
-- Before the undo nothing may wait: what is not counted yet would not be found by what came before.

CREATE INDEX test_runs_uncounted ON test_runs (project_id, id) WHERE uncounted_since IS NOT NULL;

-- rollback:
-- DROP INDEX test_runs_uncounted;
