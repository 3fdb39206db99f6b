-- Stores what became of comments on pull requests and of commit statuses: how far those of each run are, which comment
-- belongs to which request, and a log of every call. Undone by dropping the tables; requests get new comments after that.

-- What a run says at its code host. `wanted` counts how often that changed; `sending` is committed before the call.
CREATE TABLE scm_feedback (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    wanted INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_at INTEGER,
    request INTEGER,
    url TEXT,
    error TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id, kind)
) WITHOUT ROWID;

-- A request that has a comment, or a commit that has a status, and the run that it shows. One job at a time holds the
-- lease.
CREATE TABLE scm_feedback_targets (
    project_id INTEGER NOT NULL,
    target TEXT NOT NULL,
    marker TEXT NOT NULL,
    external_id TEXT,
    url TEXT,
    shown_run INTEGER,
    shown_order INTEGER,
    times_remade INTEGER NOT NULL DEFAULT 0,
    lease INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, target)
) WITHOUT ROWID;
CREATE INDEX scm_feedback_targets_by_time ON scm_feedback_targets (updated_at) WHERE external_id IS NULL;

-- Every call with its answer.
CREATE TABLE scm_feedback_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    action TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    request INTEGER,
    commit_sha TEXT,
    response_status INTEGER,
    error TEXT,
    next_at INTEGER,
    at INTEGER NOT NULL
);
CREATE INDEX scm_feedback_log_of_project ON scm_feedback_log (project_id, id);
CREATE INDEX scm_feedback_log_by_time ON scm_feedback_log (at);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('scm_feedback', 'scm_feedback', '40000 400 2 1'),
    ('scm_feedback_targets', 'scm_feedback_targets', '40000 400 1'),
    ('scm_feedback_targets', 'scm_feedback_targets_by_time', '30000 2'),
    ('scm_feedback_log', 'scm_feedback_log_of_project', '80000 800 1'),
    ('scm_feedback_log', 'scm_feedback_log_by_time', '80000 2');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl IN ('scm_feedback', 'scm_feedback_targets', 'scm_feedback_log');
-- DROP TABLE scm_feedback_log; DROP TABLE scm_feedback_targets; DROP TABLE scm_feedback;
