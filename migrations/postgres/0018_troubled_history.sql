-- Makes the failures of one test readable without its passes; undone by dropping the index.

CREATE INDEX executions_trouble_of_test ON executions (project_id, test_case_id, day) WHERE rank < 6;

-- rollback:
-- DROP INDEX executions_trouble_of_test;
