-- Keeps why a test was skipped, and how often tests were repeated, as Playwright counts them. Undone by dropping the columns.

ALTER TABLE executions ADD COLUMN skip_reason TEXT COLLATE "C";
ALTER TABLE deleted_executions ADD COLUMN skip_reason TEXT COLLATE "C";
ALTER TABLE executions ADD COLUMN extra_repetitions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE deleted_executions ADD COLUMN extra_repetitions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN extra_repetitions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE deleted_runs ADD COLUMN extra_repetitions BIGINT NOT NULL DEFAULT 0;

-- rollback:
-- ALTER TABLE deleted_runs DROP COLUMN extra_repetitions; ALTER TABLE test_runs DROP COLUMN extra_repetitions;
-- ALTER TABLE deleted_executions DROP COLUMN extra_repetitions; ALTER TABLE executions DROP COLUMN extra_repetitions;
-- ALTER TABLE deleted_executions DROP COLUMN skip_reason; ALTER TABLE executions DROP COLUMN skip_reason;
