-- Makes diagnoses of failure clusters by a configured model possible. Undone by dropping the tables.

CREATE SEQUENCE ids_diagnosis;

-- A version of a cluster's diagnosis. `stage` says what its job is at while it runs.
CREATE TABLE diagnoses (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    cluster_id BIGINT NOT NULL,
    version BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    stage TEXT COLLATE "C" NOT NULL,
    is_forced SMALLINT NOT NULL DEFAULT 0,
    -- What the person who requested it added.
    note TEXT COLLATE "C",
    requested_by BIGINT,
    -- Workers that began it.
    starts BIGINT NOT NULL DEFAULT 0,
    context_hash BYTEA,
    provider TEXT COLLATE "C",
    model TEXT COLLATE "C",
    prompt_version BIGINT,
    category TEXT COLLATE "C",
    confidence_score BIGINT,
    severity TEXT COLLATE "C",
    summary TEXT COLLATE "C",
    -- The rest of the answer, as JSON.
    details TEXT COLLATE "C",
    error_code TEXT COLLATE "C",
    error TEXT COLLATE "C",
    calls BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    duration_ms BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX diagnoses_by_version ON diagnoses (project_id, cluster_id, version);
-- One at a time for a cluster.
CREATE UNIQUE INDEX diagnoses_running ON diagnoses (project_id, cluster_id) WHERE status = 'running';

-- One vote of a person for a version; user 0 stands for everybody where there are no accounts.
CREATE TABLE diagnosis_votes (
    project_id BIGINT NOT NULL,
    diagnosis_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    vote SMALLINT NOT NULL CHECK (vote IN (-1, 1)),
    note TEXT COLLATE "C",
    at BIGINT NOT NULL,
    PRIMARY KEY (project_id, diagnosis_id, user_id)
);

-- Requests to models by day; project 0 stands for tests of the settings.
CREATE TABLE model_usage (
    project_id BIGINT NOT NULL,
    day BIGINT NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    purpose TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    failed BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    ms BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, day, provider, model, purpose)
);
CREATE INDEX model_usage_by_day ON model_usage (day, project_id);

-- rollback:
-- DROP TABLE model_usage; DROP TABLE diagnosis_votes; DROP TABLE diagnoses; DROP SEQUENCE ids_diagnosis;
-- DELETE FROM id_directory WHERE kind = 6; DELETE FROM settings WHERE grp = 'ai';
