-- Makes it possible to group failures by their cause and to triage them; undone by dropping it.
-- The undo loses clusters with what people noted on them.

-- What the failure is told from, and the cluster that leads to; null when nothing failed.
ALTER TABLE executions ADD COLUMN fingerprint BYTEA;
ALTER TABLE executions ADD COLUMN cluster_id BIGINT;
CREATE INDEX executions_cluster ON executions (project_id, cluster_id, day, id) WHERE cluster_id IS NOT NULL;

-- Clusters that were first seen in the run; null until it is final.
ALTER TABLE test_runs ADD COLUMN new_clusters INTEGER;
ALTER TABLE project_stats ADD COLUMN open_clusters INTEGER NOT NULL DEFAULT 0;

CREATE SEQUENCE ids_cluster;
CREATE SEQUENCE ids_template;

CREATE TABLE failure_clusters (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    fingerprint BYTEA NOT NULL,
    fp_version INTEGER NOT NULL,
    signature TEXT NOT NULL,
    title TEXT,
    error_type TEXT NOT NULL,
    selector TEXT,
    -- Names and values of what its failures have in common.
    fields TEXT NOT NULL,
    sample_error TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'resolved', 'ignored', 'merged')),
    -- When the status was set.
    status_at BIGINT NOT NULL,
    -- Whether a person has touched it.
    is_touched SMALLINT NOT NULL DEFAULT 0,
    note TEXT,
    base_commit TEXT,
    assignee_id BIGINT,
    snoozed_until BIGINT,
    -- Both by the order key of the run, then by id; a cluster without occurrences keeps what it had.
    first_run_id BIGINT NOT NULL,
    first_execution_id BIGINT NOT NULL,
    first_seen_at BIGINT NOT NULL,
    last_run_id BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    last_status TEXT NOT NULL,
    -- 0: known, but nothing counts for it. Lists leave it out.
    occurrences BIGINT NOT NULL DEFAULT 0,
    affected_tests INTEGER NOT NULL DEFAULT 0,
    fix_run_id BIGINT,
    fix_at BIGINT,
    fix_commit TEXT,
    ttr_ms BIGINT,
    fix_verification TEXT CHECK (fix_verification IN ('stopped-failing', 'diagnosis-verified', 'regressed')),
    -- Whether clean runs since the last occurrence are more than luck.
    is_quiet SMALLINT NOT NULL DEFAULT 0,
    -- How often it was quiet and failed again.
    false_quiets INTEGER NOT NULL DEFAULT 0,
    merged_into BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
) WITH (fillfactor = 80);
CREATE INDEX failure_clusters_by_last ON failure_clusters (project_id, status, last_seen_at, id);
CREATE INDEX failure_clusters_by_count ON failure_clusters (project_id, status, occurrences, id);
CREATE INDEX failure_clusters_open ON failure_clusters (status, occurrences, id);
CREATE INDEX failure_clusters_assigned ON failure_clusters (project_id, assignee_id, last_seen_at) WHERE assignee_id IS NOT NULL;

-- Test case 0 stands for all that have no route of their own.
CREATE TABLE cluster_routes (
    project_id BIGINT NOT NULL,
    fingerprint BYTEA NOT NULL,
    test_case_id BIGINT NOT NULL,
    cluster_id BIGINT NOT NULL,
    fp_version INTEGER NOT NULL,
    sample_execution_id BIGINT,
    PRIMARY KEY (project_id, fingerprint, test_case_id)
);
CREATE INDEX cluster_routes_to ON cluster_routes (project_id, cluster_id);

CREATE TABLE fingerprint_templates (
    project_id BIGINT NOT NULL,
    bucket BYTEA NOT NULL,
    id BIGINT NOT NULL,
    tokens TEXT NOT NULL,
    tokens_hash BYTEA NOT NULL,
    cluster_id BIGINT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (project_id, bucket, id)
);
CREATE UNIQUE INDEX fingerprint_templates_tokens ON fingerprint_templates (project_id, bucket, tokens_hash);
CREATE INDEX fingerprint_templates_to ON fingerprint_templates (project_id, cluster_id);

CREATE TABLE cluster_runs (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    cluster_id BIGINT NOT NULL,
    n INTEGER NOT NULL,
    flaky_n INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id, cluster_id)
);
CREATE INDEX cluster_runs_of_cluster ON cluster_runs (project_id, cluster_id, run_id);

CREATE TABLE cluster_tests (
    project_id BIGINT NOT NULL,
    cluster_id BIGINT NOT NULL,
    test_case_id BIGINT NOT NULL,
    n INTEGER NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    last_execution_id BIGINT NOT NULL,
    PRIMARY KEY (project_id, cluster_id, test_case_id)
);
CREATE INDEX cluster_tests_of_test ON cluster_tests (project_id, test_case_id, last_at);

CREATE TABLE cluster_daily (
    project_id BIGINT NOT NULL,
    cluster_id BIGINT NOT NULL,
    day INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (project_id, cluster_id, day)
);

-- rollback:
-- DROP TABLE cluster_daily; DROP TABLE cluster_tests; DROP TABLE cluster_runs; DROP TABLE fingerprint_templates;
-- DROP TABLE cluster_routes; DROP TABLE failure_clusters;
-- ALTER TABLE project_stats DROP COLUMN open_clusters; ALTER TABLE test_runs DROP COLUMN new_clusters;
-- DROP INDEX executions_cluster;
-- ALTER TABLE executions DROP COLUMN cluster_id; ALTER TABLE executions DROP COLUMN fingerprint;
-- DROP SEQUENCE ids_template; DROP SEQUENCE ids_cluster;
-- DELETE FROM id_directory WHERE kind = 5;
