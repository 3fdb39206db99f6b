-- Makes it possible to see which endpoints of an application are slow or fail, how browsers differ, and clusters that may be one; undone by dropping it.
-- The undo loses what was counted of endpoints and browsers, and which suggestions were refused.

-- Requests of a run by endpoint. `*` `*` holds those that are not told apart.
CREATE TABLE run_endpoints (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    method TEXT NOT NULL,
    route TEXT NOT NULL,
    n BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    codes TEXT NOT NULL,
    sum_ms BIGINT NOT NULL,
    min_ms BIGINT NOT NULL,
    max_ms BIGINT NOT NULL,
    sketch BYTEA NOT NULL,
    samples TEXT NOT NULL,
    logs TEXT NOT NULL,
    -- Whether the day of the run tells it apart, too.
    is_apart SMALLINT NOT NULL,
    PRIMARY KEY (project_id, run_id, method, route)
);

CREATE TABLE endpoint_daily (
    project_id BIGINT NOT NULL,
    day INTEGER NOT NULL,
    method TEXT NOT NULL,
    route TEXT NOT NULL,
    n BIGINT NOT NULL,
    errors BIGINT NOT NULL,
    sum_ms BIGINT NOT NULL,
    max_ms BIGINT NOT NULL,
    sketch BYTEA NOT NULL,
    slowest TEXT NOT NULL,
    PRIMARY KEY (project_id, day, method, route)
) WITH (fillfactor = 80);

CREATE TABLE browser_daily (
    project_id BIGINT NOT NULL,
    day INTEGER NOT NULL,
    browser_id INTEGER NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (project_id, day, browser_id)
) WITH (fillfactor = 80);

-- Clusters that were first seen in the runs of a day.
ALTER TABLE project_daily ADD COLUMN new_clusters INTEGER NOT NULL DEFAULT 0;

-- Routes that older rules made are found and made anew.
CREATE INDEX cluster_routes_by_version ON cluster_routes (fp_version);

CREATE SEQUENCE ids_cluster_suggestion;
CREATE TABLE cluster_suggestions (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    -- The older one.
    a_id BIGINT NOT NULL,
    b_id BIGINT NOT NULL,
    score DOUBLE PRECISION,
    method TEXT NOT NULL CHECK (method IN ('fingerprint', 'wording')),
    reason TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX cluster_suggestions_pair ON cluster_suggestions (project_id, a_id, b_id);
CREATE INDEX cluster_suggestions_by_status ON cluster_suggestions (project_id, status, id);

-- rollback:
-- DROP TABLE cluster_suggestions; DROP INDEX cluster_routes_by_version;
-- ALTER TABLE project_daily DROP COLUMN new_clusters;
-- DROP TABLE browser_daily; DROP TABLE endpoint_daily; DROP TABLE run_endpoints;
-- DROP SEQUENCE ids_cluster_suggestion;
-- DELETE FROM id_directory WHERE kind = 7;
