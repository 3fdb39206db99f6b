-- Makes it possible to see which endpoints of an application are slow or fail, how browsers differ, and clusters that may be one; undone by dropping it.
-- The undo loses what was counted of endpoints and browsers, and which suggestions were refused.

-- Requests of a run by endpoint. `*` `*` holds those that are not told apart.
CREATE TABLE run_endpoints (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    method TEXT NOT NULL,
    route TEXT NOT NULL,
    n INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    codes TEXT NOT NULL,
    sum_ms INTEGER NOT NULL,
    min_ms INTEGER NOT NULL,
    max_ms INTEGER NOT NULL,
    sketch BLOB NOT NULL,
    samples TEXT NOT NULL,
    logs TEXT NOT NULL,
    -- Whether the day of the run tells it apart, too.
    is_apart INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id, method, route)
) WITHOUT ROWID;

CREATE TABLE endpoint_daily (
    project_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    method TEXT NOT NULL,
    route TEXT NOT NULL,
    n INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    sum_ms INTEGER NOT NULL,
    max_ms INTEGER NOT NULL,
    sketch BLOB NOT NULL,
    slowest TEXT NOT NULL,
    PRIMARY KEY (project_id, day, method, route)
) WITHOUT ROWID;

CREATE TABLE browser_daily (
    project_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    browser_id INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (project_id, day, browser_id)
) WITHOUT ROWID;

-- Clusters that were first seen in the runs of a day.
ALTER TABLE project_daily ADD COLUMN new_clusters INTEGER NOT NULL DEFAULT 0;

-- Routes that older rules made are found and made anew.
CREATE INDEX cluster_routes_by_version ON cluster_routes (fp_version);

CREATE TABLE cluster_suggestions (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    -- The older one.
    a_id INTEGER NOT NULL,
    b_id INTEGER NOT NULL,
    score REAL,
    method TEXT NOT NULL CHECK (method IN ('fingerprint', 'wording')),
    reason TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX cluster_suggestions_pair ON cluster_suggestions (project_id, a_id, b_id);
CREATE INDEX cluster_suggestions_by_status ON cluster_suggestions (project_id, status, id);

-- rollback:
-- DROP TABLE cluster_suggestions; DROP INDEX cluster_routes_by_version;
-- ALTER TABLE project_daily DROP COLUMN new_clusters;
-- DROP TABLE browser_daily; DROP TABLE endpoint_daily; DROP TABLE run_endpoints;
-- DELETE FROM id_counters WHERE kind = 'cluster_suggestion';
-- DELETE FROM id_directory WHERE kind = 7;
