-- Makes it possible to store runs with their tests, evidence, files and rollups; undone by dropping all of it.

CREATE TABLE id_counters (
    kind TEXT PRIMARY KEY,
    next INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE id_directory (
    kind INTEGER NOT NULL,
    id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;

CREATE TABLE instance_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT,
    default_branch TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX projects_name ON projects (name);
CREATE INDEX projects_by_update ON projects (updated_at, id);

CREATE TABLE project_stats (
    project_id INTEGER PRIMARY KEY,
    runs INTEGER NOT NULL,
    test_cases INTEGER NOT NULL,
    executions INTEGER NOT NULL,
    latest_run_id INTEGER,
    latest_full_run_id INTEGER,
    last_run_at INTEGER
);

CREATE TABLE lanes (
    project_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    branch TEXT NOT NULL,
    environment TEXT NOT NULL,
    first_run_at INTEGER NOT NULL,
    last_run_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX lanes_key ON lanes (project_id, kind, branch, environment);
CREATE INDEX lanes_by_last_run ON lanes (project_id, last_run_at);

CREATE TABLE browser_projects (
    project_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    browser_name TEXT,
    PRIMARY KEY (project_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX browser_projects_name ON browser_projects (project_id, name);

CREATE TABLE test_cases (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    identity_hash BLOB NOT NULL,
    file_path TEXT NOT NULL,
    suite_path TEXT NOT NULL,
    title TEXT NOT NULL,
    search_text TEXT NOT NULL,
    tags TEXT NOT NULL,
    owner TEXT,
    priority TEXT,
    feature TEXT,
    link TEXT,
    meta_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX test_cases_identity ON test_cases (project_id, identity_hash);
CREATE INDEX test_cases_by_file ON test_cases (project_id, file_path, id);
CREATE INDEX test_cases_by_owner ON test_cases (project_id, owner, id) WHERE owner IS NOT NULL;

CREATE TABLE test_case_tags (
    project_id INTEGER NOT NULL,
    tag TEXT NOT NULL,
    test_case_id INTEGER NOT NULL,
    PRIMARY KEY (project_id, tag, test_case_id)
) WITHOUT ROWID;
CREATE INDEX test_case_tags_of_case ON test_case_tags (project_id, test_case_id);

CREATE TABLE test_runs (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    branch TEXT NOT NULL,
    environment TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('initializing', 'running', 'finalizing', 'passed', 'failed', 'timedout', 'interrupted', 'cancelled')),
    pending_status TEXT,
    start_time INTEGER NOT NULL,
    order_at INTEGER NOT NULL,
    finished_at INTEGER,
    duration INTEGER,
    next_ordinal INTEGER NOT NULL,
    version INTEGER NOT NULL,
    totals_source INTEGER NOT NULL,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    timedout INTEGER NOT NULL,
    interrupted INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    didnotrun INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    is_full INTEGER NOT NULL,
    tests_ms INTEGER NOT NULL,
    wasted_ms INTEGER NOT NULL,
    avg_ms INTEGER,
    p90_ms INTEGER,
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
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX test_runs_by_time ON test_runs (project_id, order_at, id);
CREATE INDEX test_runs_all_by_time ON test_runs (order_at, id);
CREATE INDEX test_runs_by_branch ON test_runs (project_id, branch, order_at, id);
CREATE INDEX test_runs_by_environment ON test_runs (project_id, environment, order_at, id);
CREATE INDEX test_runs_full ON test_runs (project_id, order_at, id) WHERE is_full = 1;
CREATE INDEX test_runs_by_status ON test_runs (project_id, status, order_at, id);
CREATE INDEX test_runs_by_commit ON test_runs (project_id, commit_sha, order_at) WHERE commit_sha IS NOT NULL;
CREATE INDEX test_runs_open ON test_runs (project_id, id) WHERE status IN ('initializing', 'running', 'finalizing');

CREATE TABLE run_details (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    filter_details TEXT,
    setup_steps TEXT,
    claimed_totals TEXT,
    PRIMARY KEY (project_id, run_id)
) WITHOUT ROWID;

CREATE TABLE run_slots (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    shard_index INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('live', 'finished')),
    start_key BLOB,
    claimed_status TEXT,
    duration INTEGER
);
CREATE INDEX run_slots_of_run ON run_slots (project_id, run_id, shard_index);
CREATE UNIQUE INDEX run_slots_start_key ON run_slots (project_id, start_key) WHERE start_key IS NOT NULL;

CREATE TABLE executions (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    test_case_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    browser_id INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    total_duration INTEGER NOT NULL,
    timeout_ms INTEGER,
    started_at INTEGER,
    worker_index INTEGER,
    parallel_index INTEGER,
    shard_index INTEGER,
    line INTEGER,
    col INTEGER,
    error_summary TEXT,
    slowest_step TEXT,
    slowest_ms INTEGER,
    wasted_ms INTEGER NOT NULL,
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
    pack_id INTEGER,
    pack_offset INTEGER,
    pack_length INTEGER
);
CREATE UNIQUE INDEX executions_history ON executions (project_id, day, test_case_id, run_id, browser_id);
CREATE INDEX executions_rank ON executions (project_id, rank, id) WHERE rank < 6;

CREATE TABLE test_state (
    project_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    test_case_id INTEGER NOT NULL,
    last_order_at INTEGER NOT NULL,
    last_execution_id INTEGER NOT NULL,
    last_outcome INTEGER NOT NULL,
    by_browser BLOB NOT NULL,
    last_passed_at INTEGER,
    last_passed_execution_id INTEGER,
    last_failed_at INTEGER,
    first_seen_at INTEGER NOT NULL,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    timedout INTEGER NOT NULL,
    interrupted INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    didnotrun INTEGER NOT NULL,
    failing_streak INTEGER NOT NULL,
    passing_streak INTEGER NOT NULL,
    wasted_ms INTEGER NOT NULL,
    category INTEGER NOT NULL,
    last_day INTEGER NOT NULL,
    speed_class INTEGER NOT NULL,
    recent BLOB NOT NULL,
    recent_ms BLOB NOT NULL,
    PRIMARY KEY (project_id, lane_id, test_case_id)
) WITHOUT ROWID;
CREATE INDEX test_state_by_day ON test_state (project_id, lane_id, last_day, test_case_id);
CREATE INDEX test_state_by_category ON test_state (project_id, lane_id, category, test_case_id);
CREATE INDEX test_state_by_speed ON test_state (project_id, lane_id, speed_class, test_case_id);

CREATE TABLE test_daily (
    project_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    test_case_id INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    dur_sum INTEGER NOT NULL,
    dur_n INTEGER NOT NULL,
    PRIMARY KEY (project_id, lane_id, day, test_case_id)
) WITHOUT ROWID;

CREATE TABLE project_daily (
    project_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_full INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    runs_passed INTEGER NOT NULL,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    didnotrun INTEGER NOT NULL,
    interrupted INTEGER NOT NULL,
    PRIMARY KEY (project_id, lane_id, day, is_full)
) WITHOUT ROWID;

CREATE TABLE packs (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    size INTEGER NOT NULL,
    slices INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX packs_of_run ON packs (project_id, run_id);

CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    size INTEGER NOT NULL,
    key TEXT NOT NULL,
    content_type TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'live')),
    refs INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256);
CREATE INDEX blobs_pending ON blobs (created_at) WHERE state = 'pending';

CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    execution_id INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    retry INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('trace', 'screenshot', 'video', 'attachment')),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    content_type TEXT NOT NULL,
    original_name TEXT,
    size INTEGER NOT NULL,
    blob_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX files_of_execution ON files (project_id, execution_id, kind, id);
CREATE INDEX files_of_run ON files (project_id, run_id, id);
CREATE UNIQUE INDEX files_path ON files (project_id, path);
CREATE UNIQUE INDEX files_content ON files (project_id, execution_id, repetition, retry, kind, name, blob_id);

CREATE TABLE reports (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    type TEXT NOT NULL,
    label TEXT NOT NULL,
    prefix TEXT NOT NULL,
    entry TEXT NOT NULL,
    size INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    archive_sha256 BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'ready')),
    created_at INTEGER NOT NULL
);
CREATE INDEX reports_of_run ON reports (project_id, run_id, id);
CREATE UNIQUE INDEX reports_content ON reports (project_id, run_id, type, archive_sha256);

CREATE TABLE upload_tickets (
    ticket_hash BLOB PRIMARY KEY,
    project_id INTEGER NOT NULL,
    staging_key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX upload_tickets_by_expiry ON upload_tickets (expires_at);

-- rollback:
-- DROP TABLE upload_tickets; DROP TABLE reports; DROP TABLE files; DROP TABLE blobs; DROP TABLE packs;
-- DROP TABLE project_daily; DROP TABLE test_daily; DROP TABLE test_state; DROP TABLE executions;
-- DROP TABLE run_slots; DROP TABLE run_details; DROP TABLE test_runs; DROP TABLE test_case_tags;
-- DROP TABLE test_cases; DROP TABLE browser_projects; DROP TABLE lanes; DROP TABLE project_stats;
-- DROP TABLE projects; DROP TABLE instance_state; DROP TABLE id_directory; DROP TABLE id_counters;
