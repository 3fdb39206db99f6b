-- Finds the newest full runs of a branch without a look at its partial ones, of which there may be any number; undone by
-- dropping the index.

CREATE INDEX test_runs_full_of_branch ON test_runs (project_id, branch, order_at, id) WHERE is_full = 1;

-- rollback:
-- DROP INDEX test_runs_full_of_branch;
