-- Stores what became of comments on pull requests and of commit statuses: how far those of each run are, which comment
-- belongs to which request, and a log of every call. Undone by dropping the tables; requests get new comments after that.

-- What a run says at its code host. `wanted` counts how often that changed; `sending` is committed before the call.
CREATE TABLE scm_feedback (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    wanted BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT,
    request BIGINT,
    url TEXT COLLATE "C",
    error TEXT COLLATE "C",
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, run_id, kind)
);

-- A request that has a comment, or a commit that has a status, and the run that it shows. One job at a time holds the
-- lease.
CREATE TABLE scm_feedback_targets (
    project_id BIGINT NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    marker TEXT COLLATE "C" NOT NULL,
    external_id TEXT COLLATE "C",
    url TEXT COLLATE "C",
    shown_run BIGINT,
    shown_order BIGINT,
    times_remade BIGINT NOT NULL DEFAULT 0,
    lease BIGINT NOT NULL DEFAULT 0,
    lease_until BIGINT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, target)
);
CREATE INDEX scm_feedback_targets_by_time ON scm_feedback_targets (updated_at) WHERE external_id IS NULL;

-- Every call with its answer.
CREATE TABLE scm_feedback_log (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    request BIGINT,
    commit_sha TEXT COLLATE "C",
    response_status BIGINT,
    error TEXT COLLATE "C",
    next_at BIGINT,
    at BIGINT NOT NULL
);
CREATE INDEX scm_feedback_log_of_project ON scm_feedback_log (project_id, id);
CREATE INDEX scm_feedback_log_by_time ON scm_feedback_log (at);

-- rollback:
-- DROP TABLE scm_feedback_log; DROP TABLE scm_feedback_targets; DROP TABLE scm_feedback;
