-- Makes it possible to feed a run while it goes on: slots with a life of their own, tokens, shard groups, feeds;
-- undone by dropping them. The undo loses unfinished set-ups, tokens and feeds.

ALTER TABLE test_runs ADD COLUMN end_reason TEXT;
ALTER TABLE test_runs ADD COLUMN last_activity_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN feed_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN label_edited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN shard_total INTEGER;
ALTER TABLE test_runs ADD COLUMN shards_finished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN rerun_of INTEGER;
CREATE INDEX test_runs_by_instance ON test_runs (project_id, instance_id, order_at) WHERE instance_id IS NOT NULL;

-- A table's CHECK cannot be changed here: the slots move into a new table.
CREATE TABLE run_slots_new (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    shard_index INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('setup', 'live', 'finished', 'lost')),
    start_key BLOB,
    recovery_key BLOB,
    claimed_status TEXT,
    start_time INTEGER NOT NULL,
    duration INTEGER,
    waiting INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    begun_at INTEGER,
    last_activity_at INTEGER NOT NULL,
    metadata_ci TEXT
);
INSERT INTO run_slots_new (id, project_id, run_id, shard_index, ordinal, generation, state, start_key, recovery_key,
    claimed_status, start_time, duration, waiting, opened_at, begun_at, last_activity_at, metadata_ci)
    SELECT s.id, s.project_id, s.run_id, s.shard_index, 0, 0, s.state, s.start_key, NULL,
        s.claimed_status, r.start_time, s.duration, 0, r.created_at, r.created_at, r.updated_at, NULL
    FROM run_slots s JOIN test_runs r ON r.project_id = s.project_id AND r.id = s.run_id;
DROP TABLE run_slots;
ALTER TABLE run_slots_new RENAME TO run_slots;
CREATE INDEX run_slots_of_run ON run_slots (project_id, run_id, shard_index, ordinal);
CREATE UNIQUE INDEX run_slots_start_key ON run_slots (project_id, start_key) WHERE start_key IS NOT NULL;
CREATE INDEX run_slots_recovery_key ON run_slots (project_id, recovery_key) WHERE recovery_key IS NOT NULL;

CREATE TABLE run_groups (
    project_id INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    shard_total INTEGER NOT NULL,
    newest_run_id INTEGER,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, instance_id, shard_total)
) WITHOUT ROWID;

CREATE TABLE run_tokens (
    project_id INTEGER NOT NULL,
    token_hash BLOB NOT NULL,
    run_id INTEGER NOT NULL,
    slot_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('setup', 'stream')),
    minted_by_user INTEGER,
    minted_by_key INTEGER,
    minted_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER,
    revoked_at INTEGER,
    PRIMARY KEY (project_id, token_hash)
) WITHOUT ROWID;
CREATE INDEX run_tokens_of_run ON run_tokens (project_id, run_id);
CREATE INDEX run_tokens_by_expiry ON run_tokens (expires_at);

CREATE TABLE run_feed (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id, seq)
) WITHOUT ROWID;
CREATE INDEX run_feed_by_expiry ON run_feed (expires_at);

CREATE TABLE global_feed (
    seq INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    run_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    status TEXT,
    at INTEGER NOT NULL
);
CREATE INDEX global_feed_by_time ON global_feed (at);

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('global_feed', 0);

-- rollback:
-- DROP TABLE counters; DROP TABLE global_feed; DROP TABLE run_feed; DROP TABLE run_tokens; DROP TABLE run_groups;
-- CREATE TABLE run_slots_old (id INTEGER PRIMARY KEY, project_id INTEGER NOT NULL, run_id INTEGER NOT NULL,
--     shard_index INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('live', 'finished')), start_key BLOB,
--     claimed_status TEXT, duration INTEGER);
-- INSERT INTO run_slots_old SELECT id, project_id, run_id, shard_index, state, start_key, claimed_status, duration
--     FROM run_slots WHERE state IN ('live', 'finished');
-- DROP TABLE run_slots; ALTER TABLE run_slots_old RENAME TO run_slots;
-- CREATE INDEX run_slots_of_run ON run_slots (project_id, run_id, shard_index);
-- CREATE UNIQUE INDEX run_slots_start_key ON run_slots (project_id, start_key) WHERE start_key IS NOT NULL;
-- DROP INDEX test_runs_by_instance;
-- ALTER TABLE test_runs DROP COLUMN rerun_of; ALTER TABLE test_runs DROP COLUMN shards_finished;
-- ALTER TABLE test_runs DROP COLUMN shard_total; ALTER TABLE test_runs DROP COLUMN label_edited;
-- ALTER TABLE test_runs DROP COLUMN feed_seq; ALTER TABLE test_runs DROP COLUMN last_activity_at;
-- ALTER TABLE test_runs DROP COLUMN end_reason;
