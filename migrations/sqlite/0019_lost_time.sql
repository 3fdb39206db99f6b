-- Makes known what the retries of an execution cost, which for one that failed is all but its first attempt; undone by
-- dropping the column. Rows that were written before keep none and cost what did not decide.

ALTER TABLE executions ADD COLUMN lost_ms INTEGER;

-- rollback:
-- ALTER TABLE executions DROP COLUMN lost_ms;
