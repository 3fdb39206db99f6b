-- Stores notification channels, subscriptions to them, and every message sent through them. Undone by dropping the tables.

-- `config` is sealed: it holds the address of the channel and the secret that signs requests to it.
CREATE TABLE channels (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('webhook', 'slack', 'teams', 'discord', 'email')),
    config TEXT NOT NULL,
    target TEXT NOT NULL,
    -- Deliveries that failed one after another.
    failures INTEGER NOT NULL DEFAULT 0,
    paused_at INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

-- `project_id` is null for all projects. Lists are JSON arrays; an empty one means any.
CREATE TABLE subscriptions (
    id INTEGER PRIMARY KEY,
    channel_id INTEGER NOT NULL,
    project_id INTEGER,
    events TEXT NOT NULL,
    branches TEXT NOT NULL,
    environments TEXT NOT NULL,
    default_branch_only INTEGER NOT NULL DEFAULT 0,
    muted_until INTEGER,
    is_active INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX subscriptions_of_channel ON subscriptions (channel_id, id);
CREATE INDEX subscriptions_of_project ON subscriptions (project_id, id);

-- `dedupe_key` names the event and the channel, so that two subscriptions send one message.
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    channel_id INTEGER NOT NULL,
    project_id INTEGER,
    event TEXT NOT NULL,
    dedupe_key TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'parked')),
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    response_status INTEGER,
    error TEXT,
    created_at INTEGER NOT NULL,
    sent_at INTEGER
);
CREATE UNIQUE INDEX deliveries_key ON deliveries (dedupe_key);
CREATE INDEX deliveries_of_channel ON deliveries (channel_id, id);
CREATE INDEX deliveries_by_time ON deliveries (created_at, id);
CREATE INDEX deliveries_of_project ON deliveries (project_id, id);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('subscriptions', 'subscriptions_of_channel', '200 4 1'),
    ('subscriptions', 'subscriptions_of_project', '200 4 1'),
    ('deliveries', 'deliveries_key', '20000 1'),
    ('deliveries', 'deliveries_of_channel', '20000 400 1'),
    ('deliveries', 'deliveries_by_time', '20000 2 1'),
    ('deliveries', 'deliveries_of_project', '20000 200 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl IN ('subscriptions', 'deliveries');
-- DROP TABLE deliveries; DROP TABLE subscriptions; DROP TABLE channels;
-- DELETE FROM id_counters WHERE kind IN ('channel', 'subscription', 'delivery');
