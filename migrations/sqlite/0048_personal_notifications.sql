-- Stores channels and subscriptions of people, the notifications a person has in the header of the pages, and how near
-- a project and the instance are to their storage quota. Undone by dropping what is added here; personal channels are
-- lost then.

CREATE TABLE channels_new (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('webhook', 'slack', 'teams', 'discord', 'email', 'browser', 'personal_email')),
    -- Sealed; empty where there is no address to keep.
    config TEXT NOT NULL,
    target TEXT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    paused_at INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    hourly_limit INTEGER NOT NULL DEFAULT 30,
    -- Whose it is; null belongs to the instance.
    user_id INTEGER,
    -- The account that is notified when it pauses.
    created_by INTEGER
);
INSERT INTO channels_new (id, name, kind, config, target, failures, paused_at, last_error, created_at, updated_at, hourly_limit)
    SELECT id, name, kind, config, target, failures, paused_at, last_error, created_at, updated_at, hourly_limit FROM channels;
DROP TABLE channels;
ALTER TABLE channels_new RENAME TO channels;
CREATE INDEX channels_of_user ON channels (user_id, id);
CREATE UNIQUE INDEX channels_own ON channels (user_id, kind) WHERE kind IN ('browser', 'personal_email');

ALTER TABLE subscriptions ADD COLUMN user_id INTEGER;
ALTER TABLE subscriptions ADD COLUMN test_case_id INTEGER;
ALTER TABLE subscriptions ADD COLUMN cluster_id INTEGER;
CREATE INDEX subscriptions_of_user ON subscriptions (user_id, id);

CREATE TABLE deliveries_new (
    id INTEGER PRIMARY KEY,
    channel_id INTEGER NOT NULL,
    project_id INTEGER,
    event TEXT NOT NULL,
    dedupe_key TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'parked', 'skipped')),
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    response_status INTEGER,
    error TEXT,
    created_at INTEGER NOT NULL,
    sent_at INTEGER,
    -- Whose notification it is; null where it went to a channel outside of the pages.
    inbox_user_id INTEGER,
    read_at INTEGER
);
INSERT INTO deliveries_new (id, channel_id, project_id, event, dedupe_key, payload, state, attempts, next_at, response_status, error, created_at, sent_at)
    SELECT id, channel_id, project_id, event, dedupe_key, payload, state, attempts, next_at, response_status, error, created_at, sent_at FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE deliveries_new RENAME TO deliveries;
CREATE UNIQUE INDEX deliveries_key ON deliveries (dedupe_key);
CREATE INDEX deliveries_of_channel ON deliveries (channel_id, id);
CREATE INDEX deliveries_by_time ON deliveries (created_at, id);
CREATE INDEX deliveries_of_project ON deliveries (project_id, id);
CREATE INDEX deliveries_inbox ON deliveries (inbox_user_id, id) WHERE inbox_user_id IS NOT NULL;
CREATE INDEX deliveries_unread ON deliveries (inbox_user_id, id) WHERE inbox_user_id IS NOT NULL AND read_at IS NULL;

-- The highest share of its quota, in percent, about which a project was reported; project 0 is the instance.
CREATE TABLE quota_states (
    project_id INTEGER NOT NULL PRIMARY KEY,
    level INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
);

-- What was sent to a channel about something that may be corrected: the outcome of a run, or of a test in it.
CREATE TABLE told_states (
    project_id INTEGER NOT NULL,
    subject TEXT NOT NULL,
    channel_id INTEGER NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (project_id, subject, channel_id)
) WITHOUT ROWID;
CREATE INDEX told_states_by_time ON told_states (at);

DELETE FROM sqlite_stat1 WHERE tbl IN ('channels', 'subscriptions', 'deliveries');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('channels', 'channels_of_user', '400 4 1'),
    ('channels', 'channels_own', '200 2 1'),
    ('subscriptions', 'subscriptions_of_channel', '400 4 1'),
    ('subscriptions', 'subscriptions_of_project', '400 4 1'),
    ('subscriptions', 'subscriptions_of_user', '400 8 1'),
    ('deliveries', 'deliveries_key', '20000 1'),
    ('deliveries', 'deliveries_of_channel', '20000 400 1'),
    ('deliveries', 'deliveries_by_time', '20000 2 1'),
    ('deliveries', 'deliveries_of_project', '20000 200 1'),
    ('deliveries', 'deliveries_inbox', '10000 200 1'),
    ('deliveries', 'deliveries_unread', '2000 40 1'),
    ('told_states', 'told_states', '20000 200 2 1'),
    ('told_states', 'told_states_by_time', '20000 2');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl IN ('channels', 'told_states'); DROP TABLE told_states; DROP TABLE quota_states;
-- DELETE FROM deliveries WHERE inbox_user_id IS NOT NULL OR state = 'skipped'; DROP INDEX deliveries_unread; DROP INDEX deliveries_inbox;
-- ALTER TABLE deliveries DROP COLUMN read_at; ALTER TABLE deliveries DROP COLUMN inbox_user_id;
-- DELETE FROM subscriptions WHERE user_id IS NOT NULL; DROP INDEX subscriptions_of_user;
-- ALTER TABLE subscriptions DROP COLUMN cluster_id; ALTER TABLE subscriptions DROP COLUMN test_case_id;
-- ALTER TABLE subscriptions DROP COLUMN user_id;
-- DELETE FROM channels WHERE user_id IS NOT NULL; DROP INDEX channels_own; DROP INDEX channels_of_user;
-- ALTER TABLE channels DROP COLUMN created_by; ALTER TABLE channels DROP COLUMN user_id;
