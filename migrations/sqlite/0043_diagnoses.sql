-- Makes diagnoses of failure clusters by a configured model possible. Undone by dropping the tables.

-- A version of a cluster's diagnosis. `stage` says what its job is at while it runs.
CREATE TABLE diagnoses (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    cluster_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    stage TEXT NOT NULL,
    is_forced INTEGER NOT NULL DEFAULT 0,
    -- What the person who requested it added.
    note TEXT,
    requested_by INTEGER,
    -- Workers that began it.
    starts INTEGER NOT NULL DEFAULT 0,
    context_hash BLOB,
    provider TEXT,
    model TEXT,
    prompt_version INTEGER,
    category TEXT,
    confidence_score INTEGER,
    severity TEXT,
    summary TEXT,
    -- The rest of the answer, as JSON.
    details TEXT,
    error_code TEXT,
    error TEXT,
    calls INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    duration_ms INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX diagnoses_by_version ON diagnoses (project_id, cluster_id, version);
-- One at a time for a cluster.
CREATE UNIQUE INDEX diagnoses_running ON diagnoses (project_id, cluster_id) WHERE status = 'running';

-- One vote of a person for a version; user 0 stands for everybody where there are no accounts.
CREATE TABLE diagnosis_votes (
    project_id INTEGER NOT NULL,
    diagnosis_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    vote INTEGER NOT NULL CHECK (vote IN (-1, 1)),
    note TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (project_id, diagnosis_id, user_id)
) WITHOUT ROWID;

-- Requests to models by day; project 0 stands for tests of the settings.
CREATE TABLE model_usage (
    project_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, day, provider, model, purpose)
) WITHOUT ROWID;
CREATE INDEX model_usage_by_day ON model_usage (day, project_id);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('diagnoses', 'diagnoses_by_version', '20000 200 2 1'),
    ('diagnoses', 'diagnoses_running', '10 1 1'),
    ('diagnosis_votes', 'diagnosis_votes', '10000 100 2 1'),
    ('model_usage', 'model_usage', '20000 400 2 1 1 1'),
    ('model_usage', 'model_usage_by_day', '20000 50 2');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl IN ('diagnoses', 'diagnosis_votes', 'model_usage');
-- DROP TABLE model_usage; DROP TABLE diagnosis_votes; DROP TABLE diagnoses;
-- DELETE FROM id_counters WHERE kind = 'diagnosis'; DELETE FROM id_directory WHERE kind = 6;
-- DELETE FROM settings WHERE grp = 'ai';
