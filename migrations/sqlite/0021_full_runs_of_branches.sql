-- Finds the newest full runs of a branch without a look at its partial ones, of which there may be any number; undone by
-- dropping the index.

CREATE INDEX test_runs_full_of_branch ON test_runs (project_id, branch, order_at, id) WHERE is_full = 1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('test_runs', 'test_runs_full_of_branch', '80000 8000 160 1 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE idx = 'test_runs_full_of_branch';
-- DROP INDEX test_runs_full_of_branch;
