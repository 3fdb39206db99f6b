-- Makes it possible to feed a run while it goes on: slots with a life of their own, tokens, shard groups, feeds;
-- undone by dropping them. The undo loses unfinished set-ups, tokens and feeds.

ALTER TABLE test_runs ADD COLUMN end_reason TEXT;
ALTER TABLE test_runs ADD COLUMN last_activity_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN feed_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN label_edited SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN shard_total INTEGER;
ALTER TABLE test_runs ADD COLUMN shards_finished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN rerun_of BIGINT;
CREATE INDEX test_runs_by_instance ON test_runs (project_id, instance_id, order_at) WHERE instance_id IS NOT NULL;

ALTER TABLE run_slots DROP CONSTRAINT run_slots_state_check;
ALTER TABLE run_slots ADD CONSTRAINT run_slots_state_check CHECK (state IN ('setup', 'live', 'finished', 'lost'));
ALTER TABLE run_slots ADD COLUMN ordinal INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_slots ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_slots ADD COLUMN recovery_key BYTEA;
ALTER TABLE run_slots ADD COLUMN start_time BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_slots ADD COLUMN waiting SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE run_slots ADD COLUMN opened_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_slots ADD COLUMN begun_at BIGINT;
ALTER TABLE run_slots ADD COLUMN last_activity_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_slots ADD COLUMN metadata_ci TEXT;
UPDATE run_slots s SET start_time = r.start_time, opened_at = r.created_at, begun_at = r.created_at,
    last_activity_at = r.updated_at
    FROM test_runs r WHERE r.project_id = s.project_id AND r.id = s.run_id;
DROP INDEX run_slots_of_run;
CREATE INDEX run_slots_of_run ON run_slots (project_id, run_id, shard_index, ordinal);
CREATE INDEX run_slots_recovery_key ON run_slots (project_id, recovery_key) WHERE recovery_key IS NOT NULL;

CREATE TABLE run_groups (
    project_id BIGINT NOT NULL,
    instance_id TEXT NOT NULL,
    shard_total INTEGER NOT NULL,
    newest_run_id BIGINT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, instance_id, shard_total)
);

CREATE TABLE run_tokens (
    project_id BIGINT NOT NULL,
    token_hash BYTEA NOT NULL,
    run_id BIGINT NOT NULL,
    slot_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('setup', 'stream')),
    minted_by_user BIGINT,
    minted_by_key BIGINT,
    minted_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (project_id, token_hash)
);
CREATE INDEX run_tokens_of_run ON run_tokens (project_id, run_id);
CREATE INDEX run_tokens_by_expiry ON run_tokens (expires_at);

CREATE TABLE run_feed (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, run_id, seq)
);
CREATE INDEX run_feed_by_expiry ON run_feed (expires_at);

CREATE TABLE global_feed (
    seq BIGINT PRIMARY KEY,
    type TEXT NOT NULL,
    run_id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    status TEXT,
    at BIGINT NOT NULL
);
CREATE INDEX global_feed_by_time ON global_feed (at);

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('global_feed', 0);

-- rollback:
-- DROP TABLE counters; DROP TABLE global_feed; DROP TABLE run_feed; DROP TABLE run_tokens; DROP TABLE run_groups;
-- DELETE FROM run_slots WHERE state NOT IN ('live', 'finished');
-- ALTER TABLE run_slots DROP CONSTRAINT run_slots_state_check;
-- ALTER TABLE run_slots ADD CONSTRAINT run_slots_state_check CHECK (state IN ('live', 'finished'));
-- DROP INDEX run_slots_recovery_key; DROP INDEX run_slots_of_run;
-- ALTER TABLE run_slots DROP COLUMN metadata_ci, DROP COLUMN last_activity_at, DROP COLUMN begun_at,
--     DROP COLUMN opened_at, DROP COLUMN waiting, DROP COLUMN start_time, DROP COLUMN recovery_key,
--     DROP COLUMN generation, DROP COLUMN ordinal;
-- CREATE INDEX run_slots_of_run ON run_slots (project_id, run_id, shard_index);
-- DROP INDEX test_runs_by_instance;
-- ALTER TABLE test_runs DROP COLUMN rerun_of, DROP COLUMN shards_finished, DROP COLUMN shard_total,
--     DROP COLUMN label_edited, DROP COLUMN feed_seq, DROP COLUMN last_activity_at, DROP COLUMN end_reason;
