-- Keeps who owns a test by CODEOWNERS beside the owner that its annotation names. Undone by dropping the column and indexing the annotation alone.

-- Filled by a job from the file of the repository; an annotation in `owner` wins over it.
ALTER TABLE test_cases ADD COLUMN code_owner TEXT;

-- Lists are filtered by whichever of the two counts.
DROP INDEX test_cases_by_owner;
CREATE INDEX test_cases_by_owner ON test_cases (project_id, COALESCE(owner, code_owner), id)
    WHERE COALESCE(owner, code_owner) IS NOT NULL;

DELETE FROM sqlite_stat1 WHERE idx = 'test_cases_by_owner';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('test_cases', 'test_cases_by_owner', '10000 1000 50 1');
ANALYZE sqlite_schema;

-- rollback:
-- DROP INDEX test_cases_by_owner; ALTER TABLE test_cases DROP COLUMN code_owner;
-- CREATE INDEX test_cases_by_owner ON test_cases (project_id, owner, id) WHERE owner IS NOT NULL;
