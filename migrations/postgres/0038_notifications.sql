-- Stores notification channels, subscriptions to them, and every message sent through them. Undone by dropping the tables.

CREATE SEQUENCE ids_channel;
CREATE SEQUENCE ids_subscription;
CREATE SEQUENCE ids_delivery;

-- `config` is sealed: it holds the address of the channel and the secret that signs requests to it.
CREATE TABLE channels (
    id BIGINT PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('webhook', 'slack', 'teams', 'discord', 'email')),
    config TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    -- Deliveries that failed one after another.
    failures BIGINT NOT NULL DEFAULT 0,
    paused_at BIGINT,
    last_error TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- `project_id` is null for all projects. Lists are JSON arrays; an empty one means any.
CREATE TABLE subscriptions (
    id BIGINT PRIMARY KEY,
    channel_id BIGINT NOT NULL,
    project_id BIGINT,
    events TEXT COLLATE "C" NOT NULL,
    branches TEXT COLLATE "C" NOT NULL,
    environments TEXT COLLATE "C" NOT NULL,
    default_branch_only SMALLINT NOT NULL DEFAULT 0,
    muted_until BIGINT,
    is_active SMALLINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX subscriptions_of_channel ON subscriptions (channel_id, id);
CREATE INDEX subscriptions_of_project ON subscriptions (project_id, id);

-- `dedupe_key` names the event and the channel, so that two subscriptions send one message.
CREATE TABLE deliveries (
    id BIGINT PRIMARY KEY,
    channel_id BIGINT NOT NULL,
    project_id BIGINT,
    event TEXT COLLATE "C" NOT NULL,
    dedupe_key TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'parked')),
    attempts BIGINT NOT NULL DEFAULT 0,
    next_at BIGINT,
    response_status BIGINT,
    error TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    sent_at BIGINT
);
CREATE UNIQUE INDEX deliveries_key ON deliveries (dedupe_key);
CREATE INDEX deliveries_of_channel ON deliveries (channel_id, id);
CREATE INDEX deliveries_by_time ON deliveries (created_at, id);
CREATE INDEX deliveries_of_project ON deliveries (project_id, id);

-- rollback:
-- DROP TABLE deliveries; DROP TABLE subscriptions; DROP TABLE channels;
-- DROP SEQUENCE ids_delivery; DROP SEQUENCE ids_subscription; DROP SEQUENCE ids_channel;
