-- Finds the runs whose executions wait to be counted in states and days of tests; undone by dropping the index.
-- Before the undo nothing may wait: what is not counted yet would not be found by what came before.

CREATE INDEX test_runs_uncounted ON test_runs (project_id, id) WHERE uncounted_since IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('test_runs', 'test_runs_uncounted', '50 5 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE idx = 'test_runs_uncounted';
-- DROP INDEX test_runs_uncounted;
