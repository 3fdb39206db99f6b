-- Makes it possible to store runs with their tests, evidence, files and rollups; undone by dropping all of it.

CREATE SEQUENCE ids_project;
CREATE SEQUENCE ids_run;
CREATE SEQUENCE ids_test_case;
CREATE SEQUENCE ids_slot;
CREATE SEQUENCE ids_pack;
CREATE SEQUENCE ids_blob;
CREATE SEQUENCE ids_file;
CREATE SEQUENCE ids_report;

CREATE TABLE id_directory (
    kind SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE TABLE instance_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE projects (
    id BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT,
    default_branch TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX projects_name ON projects (name);
CREATE INDEX projects_by_update ON projects (updated_at, id);

CREATE TABLE project_stats (
    project_id BIGINT PRIMARY KEY,
    runs BIGINT NOT NULL,
    test_cases BIGINT NOT NULL,
    executions BIGINT NOT NULL,
    latest_run_id BIGINT,
    latest_full_run_id BIGINT,
    last_run_at BIGINT
) WITH (fillfactor = 70);

CREATE TABLE lanes (
    project_id BIGINT NOT NULL,
    id INTEGER NOT NULL,
    kind SMALLINT NOT NULL,
    branch TEXT NOT NULL,
    environment TEXT NOT NULL,
    first_run_at BIGINT NOT NULL,
    last_run_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX lanes_key ON lanes (project_id, kind, branch, environment);
CREATE INDEX lanes_by_last_run ON lanes (project_id, last_run_at);

CREATE TABLE browser_projects (
    project_id BIGINT NOT NULL,
    id SMALLINT NOT NULL,
    name TEXT NOT NULL,
    browser_name TEXT,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX browser_projects_name ON browser_projects (project_id, name);

CREATE TABLE test_cases (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    identity_hash BYTEA NOT NULL,
    file_path TEXT NOT NULL,
    suite_path TEXT NOT NULL,
    title TEXT NOT NULL,
    search_text TEXT NOT NULL,
    tags TEXT NOT NULL,
    owner TEXT,
    priority TEXT,
    feature TEXT,
    link TEXT,
    meta_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX test_cases_identity ON test_cases (project_id, identity_hash);
CREATE INDEX test_cases_by_file ON test_cases (project_id, file_path, id);
CREATE INDEX test_cases_by_owner ON test_cases (project_id, owner, id) WHERE owner IS NOT NULL;

CREATE TABLE test_case_tags (
    project_id BIGINT NOT NULL,
    tag TEXT NOT NULL,
    test_case_id BIGINT NOT NULL,
    PRIMARY KEY (project_id, tag, test_case_id)
);
CREATE INDEX test_case_tags_of_case ON test_case_tags (project_id, test_case_id);

CREATE TABLE test_runs (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    lane_id INTEGER NOT NULL,
    branch TEXT NOT NULL,
    environment TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('initializing', 'running', 'finalizing', 'passed', 'failed', 'timedout', 'interrupted', 'cancelled')),
    pending_status TEXT,
    start_time BIGINT NOT NULL,
    order_at BIGINT NOT NULL,
    finished_at BIGINT,
    duration BIGINT,
    next_ordinal INTEGER NOT NULL,
    version INTEGER NOT NULL,
    totals_source SMALLINT NOT NULL,
    total BIGINT NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    timedout BIGINT NOT NULL,
    interrupted BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    didnotrun BIGINT NOT NULL,
    flaky BIGINT NOT NULL,
    is_full SMALLINT NOT NULL,
    tests_ms BIGINT NOT NULL,
    wasted_ms BIGINT NOT NULL,
    avg_ms BIGINT,
    p90_ms BIGINT,
    label TEXT,
    commit_sha TEXT,
    commit_message TEXT,
    author TEXT,
    pull_request TEXT,
    ci_provider TEXT,
    build_url TEXT,
    browsers TEXT NOT NULL,
    planned_tests INTEGER,
    playwright_version TEXT,
    reporter_version TEXT,
    instance_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
) WITH (fillfactor = 80);
CREATE INDEX test_runs_by_time ON test_runs (project_id, order_at, id);
CREATE INDEX test_runs_all_by_time ON test_runs (order_at, id);
CREATE INDEX test_runs_by_branch ON test_runs (project_id, branch, order_at, id);
CREATE INDEX test_runs_by_environment ON test_runs (project_id, environment, order_at, id);
CREATE INDEX test_runs_full ON test_runs (project_id, order_at, id) WHERE is_full = 1;
CREATE INDEX test_runs_by_status ON test_runs (project_id, status, order_at, id);
CREATE INDEX test_runs_by_commit ON test_runs (project_id, commit_sha, order_at) WHERE commit_sha IS NOT NULL;
CREATE INDEX test_runs_open ON test_runs (project_id, id) WHERE status IN ('initializing', 'running', 'finalizing');

CREATE TABLE run_details (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    metadata TEXT NOT NULL,
    filter_details TEXT,
    setup_steps TEXT,
    claimed_totals TEXT,
    PRIMARY KEY (project_id, run_id)
);

CREATE TABLE run_slots (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    shard_index INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('live', 'finished')),
    start_key BYTEA,
    claimed_status TEXT,
    duration BIGINT,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX run_slots_of_run ON run_slots (project_id, run_id, shard_index);
CREATE UNIQUE INDEX run_slots_start_key ON run_slots (project_id, start_key) WHERE start_key IS NOT NULL;

CREATE TABLE executions (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    test_case_id BIGINT NOT NULL,
    day INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    browser_id SMALLINT NOT NULL,
    outcome SMALLINT NOT NULL,
    rank SMALLINT NOT NULL,
    flags INTEGER NOT NULL,
    retries SMALLINT NOT NULL,
    duration BIGINT NOT NULL,
    total_duration BIGINT NOT NULL,
    timeout_ms BIGINT,
    started_at BIGINT,
    worker_index INTEGER,
    parallel_index INTEGER,
    shard_index INTEGER,
    line INTEGER,
    col INTEGER,
    error_summary TEXT,
    slowest_step TEXT,
    slowest_ms BIGINT,
    wasted_ms BIGINT NOT NULL,
    lcp INTEGER,
    inp INTEGER,
    ttfb INTEGER,
    cls_milli INTEGER,
    n_steps INTEGER NOT NULL,
    n_console INTEGER NOT NULL,
    n_network INTEGER NOT NULL,
    n_traces INTEGER NOT NULL,
    n_files INTEGER NOT NULL,
    reason TEXT,
    blocked_by TEXT,
    raw_status TEXT,
    attempts TEXT,
    pack_id BIGINT,
    pack_offset BIGINT,
    pack_length INTEGER,
    PRIMARY KEY (project_id, run_id, id)
);
CREATE UNIQUE INDEX executions_history ON executions (project_id, day, test_case_id, run_id, browser_id);
CREATE INDEX executions_rank ON executions (project_id, rank, id) WHERE rank < 6;

CREATE TABLE test_state (
    project_id BIGINT NOT NULL,
    lane_id INTEGER NOT NULL,
    test_case_id BIGINT NOT NULL,
    last_order_at BIGINT NOT NULL,
    last_execution_id BIGINT NOT NULL,
    last_outcome SMALLINT NOT NULL,
    by_browser BYTEA NOT NULL,
    last_passed_at BIGINT,
    last_passed_execution_id BIGINT,
    last_failed_at BIGINT,
    first_seen_at BIGINT NOT NULL,
    total BIGINT NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    timedout BIGINT NOT NULL,
    interrupted BIGINT NOT NULL,
    flaky BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    didnotrun BIGINT NOT NULL,
    failing_streak INTEGER NOT NULL,
    passing_streak INTEGER NOT NULL,
    wasted_ms BIGINT NOT NULL,
    category SMALLINT NOT NULL,
    last_day INTEGER NOT NULL,
    speed_class SMALLINT NOT NULL,
    recent BYTEA NOT NULL,
    recent_ms BYTEA NOT NULL,
    PRIMARY KEY (project_id, lane_id, test_case_id)
) WITH (fillfactor = 70);
CREATE INDEX test_state_by_day ON test_state (project_id, lane_id, last_day, test_case_id);
CREATE INDEX test_state_by_category ON test_state (project_id, lane_id, category, test_case_id);
CREATE INDEX test_state_by_speed ON test_state (project_id, lane_id, speed_class, test_case_id);

CREATE TABLE test_daily (
    project_id BIGINT NOT NULL,
    lane_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    test_case_id BIGINT NOT NULL,
    runs INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    dur_sum BIGINT NOT NULL,
    dur_n INTEGER NOT NULL,
    PRIMARY KEY (project_id, lane_id, day, test_case_id)
) WITH (fillfactor = 75);

CREATE TABLE project_daily (
    project_id BIGINT NOT NULL,
    lane_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_full SMALLINT NOT NULL,
    runs BIGINT NOT NULL,
    runs_passed INTEGER NOT NULL,
    total BIGINT NOT NULL,
    passed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    flaky BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    didnotrun BIGINT NOT NULL,
    interrupted BIGINT NOT NULL,
    PRIMARY KEY (project_id, lane_id, day, is_full)
) WITH (fillfactor = 70);

CREATE TABLE packs (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    size BIGINT NOT NULL,
    slices INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX packs_of_run ON packs (project_id, run_id);

CREATE TABLE blobs (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    size BIGINT NOT NULL,
    key TEXT NOT NULL,
    content_type TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'live')),
    refs INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256);
CREATE INDEX blobs_pending ON blobs (created_at) WHERE state = 'pending';

CREATE TABLE files (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    execution_id BIGINT NOT NULL,
    repetition INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('trace', 'screenshot', 'video', 'attachment')),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    content_type TEXT NOT NULL,
    original_name TEXT,
    size BIGINT NOT NULL,
    blob_id BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX files_of_execution ON files (project_id, execution_id, kind, id);
CREATE INDEX files_of_run ON files (project_id, run_id, id);
CREATE UNIQUE INDEX files_path ON files (project_id, path);
CREATE UNIQUE INDEX files_content ON files (project_id, execution_id, repetition, retry, kind, name, blob_id);

CREATE TABLE reports (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    type TEXT NOT NULL,
    label TEXT NOT NULL,
    prefix TEXT NOT NULL,
    entry TEXT NOT NULL,
    size BIGINT NOT NULL,
    entries INTEGER NOT NULL,
    archive_sha256 BYTEA NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'ready')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX reports_of_run ON reports (project_id, run_id, id);
CREATE UNIQUE INDEX reports_content ON reports (project_id, run_id, type, archive_sha256);

CREATE TABLE upload_tickets (
    ticket_hash BYTEA PRIMARY KEY,
    project_id BIGINT NOT NULL,
    staging_key TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX upload_tickets_by_expiry ON upload_tickets (expires_at);

-- rollback:
-- DROP TABLE upload_tickets; DROP TABLE reports; DROP TABLE files; DROP TABLE blobs; DROP TABLE packs;
-- DROP TABLE project_daily; DROP TABLE test_daily; DROP TABLE test_state; DROP TABLE executions;
-- DROP TABLE run_slots; DROP TABLE run_details; DROP TABLE test_runs; DROP TABLE test_case_tags;
-- DROP TABLE test_cases; DROP TABLE browser_projects; DROP TABLE lanes; DROP TABLE project_stats;
-- DROP TABLE projects; DROP TABLE instance_state; DROP TABLE id_directory; 
-- DROP SEQUENCE ids_project, ids_run, ids_test_case, ids_slot, ids_pack, ids_blob, ids_file, ids_report;
