-- Makes diagnoses of single executions possible, keeps what a diagnosis is to rest on, and shows what the model has
-- written so far. Undone by dropping what is added here; diagnoses of executions are lost then.

-- 0 stands for a diagnosis of the cluster; a diagnosis of an execution has the cluster 0.
ALTER TABLE diagnoses ADD COLUMN execution_id INTEGER NOT NULL DEFAULT 0;
-- The execution whose evidence is to be sent; null stands for the newest failure of the cluster.
ALTER TABLE diagnoses ADD COLUMN sample_execution_id INTEGER;
ALTER TABLE diagnoses ADD COLUMN base_commit TEXT;
-- Commits to say something about, separated by spaces.
ALTER TABLE diagnoses ADD COLUMN commits TEXT;
-- What can be read of an answer that is still being written, and how many bytes of it have arrived.
ALTER TABLE diagnoses ADD COLUMN draft TEXT;
ALTER TABLE diagnoses ADD COLUMN received INTEGER NOT NULL DEFAULT 0;
DROP INDEX diagnoses_by_version;
DROP INDEX diagnoses_running;
CREATE UNIQUE INDEX diagnoses_by_version ON diagnoses (project_id, cluster_id, execution_id, version);
-- One at a time for a cluster or an execution.
CREATE UNIQUE INDEX diagnoses_running ON diagnoses (project_id, cluster_id, execution_id) WHERE status = 'running';

DELETE FROM sqlite_stat1 WHERE tbl = 'diagnoses';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('diagnoses', 'diagnoses_by_version', '20000 200 3 2 1'),
    ('diagnoses', 'diagnoses_running', '10 1 1 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM id_directory WHERE kind = 6 AND id IN (SELECT id FROM diagnoses WHERE execution_id > 0);
-- DELETE FROM diagnosis_votes WHERE diagnosis_id IN (SELECT id FROM diagnoses WHERE execution_id > 0);
-- DELETE FROM diagnoses WHERE execution_id > 0; DROP INDEX diagnoses_by_version; DROP INDEX diagnoses_running;
-- ALTER TABLE diagnoses DROP COLUMN received; ALTER TABLE diagnoses DROP COLUMN draft; ALTER TABLE diagnoses DROP COLUMN commits;
-- ALTER TABLE diagnoses DROP COLUMN base_commit; ALTER TABLE diagnoses DROP COLUMN sample_execution_id;
-- ALTER TABLE diagnoses DROP COLUMN execution_id;
-- CREATE UNIQUE INDEX diagnoses_by_version ON diagnoses (project_id, cluster_id, version);
-- CREATE UNIQUE INDEX diagnoses_running ON diagnoses (project_id, cluster_id) WHERE status = 'running';
