-- Keeps the errors of a run that belong to no test: all of them with the client that sent them (JSON), their number and the
-- headline of the first one with the run, for lists. Undone by dropping the columns. Runs of before have theirs in their
-- metadata.

ALTER TABLE run_slots ADD COLUMN errors TEXT;
ALTER TABLE test_runs ADD COLUMN error_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN first_error TEXT;

-- rollback:
-- ALTER TABLE test_runs DROP COLUMN first_error;
-- ALTER TABLE test_runs DROP COLUMN error_count;
-- ALTER TABLE run_slots DROP COLUMN errors;
