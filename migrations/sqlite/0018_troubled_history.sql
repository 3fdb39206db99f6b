-- Makes the failures of one test readable without its passes; undone by dropping the index.

CREATE INDEX executions_trouble_of_test ON executions (project_id, test_case_id, day) WHERE rank < 6;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('executions', 'executions_trouble_of_test', '500000 50000 50 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE idx = 'executions_trouble_of_test';
-- DROP INDEX executions_trouble_of_test;
