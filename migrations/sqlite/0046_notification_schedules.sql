-- Stores when messages are sent: digests, quiet hours, how many a channel takes in an hour, and what waits for its time.
-- Undone by dropping what is added here; messages that wait are lost then.

-- Minutes since midnight and days since Monday, in a time zone; null sends each message at once.
ALTER TABLE subscriptions ADD COLUMN digest_minute INTEGER;
ALTER TABLE subscriptions ADD COLUMN digest_weekday INTEGER;
ALTER TABLE subscriptions ADD COLUMN time_zone TEXT NOT NULL DEFAULT 'UTC';
-- Hours without messages, in minutes since midnight.
ALTER TABLE subscriptions ADD COLUMN quiet_from INTEGER;
ALTER TABLE subscriptions ADD COLUMN quiet_to INTEGER;

-- Messages of one hour; what comes beyond waits until the hour is over and becomes one.
ALTER TABLE channels ADD COLUMN hourly_limit INTEGER NOT NULL DEFAULT 30;

-- Messages that wait for a digest, the end of quiet hours or the next hour.
CREATE TABLE held_notifications (
    dedupe_key TEXT NOT NULL PRIMARY KEY,
    channel_id INTEGER NOT NULL,
    subscription_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    event TEXT NOT NULL,
    payload TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX held_notifications_of_channel ON held_notifications (channel_id, due_at);
CREATE INDEX held_notifications_by_time ON held_notifications (due_at, channel_id);
CREATE INDEX held_notifications_of_subscription ON held_notifications (subscription_id);
CREATE INDEX held_notifications_of_project ON held_notifications (project_id, dedupe_key);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('held_notifications', 'sqlite_autoindex_held_notifications_1', '2000 1'),
    ('held_notifications', 'held_notifications_of_channel', '2000 100 20'),
    ('held_notifications', 'held_notifications_by_time', '2000 100 20'),
    ('held_notifications', 'held_notifications_of_subscription', '2000 50'),
    ('held_notifications', 'held_notifications_of_project', '2000 50 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl = 'held_notifications';
-- DROP TABLE held_notifications; ALTER TABLE channels DROP COLUMN hourly_limit;
-- ALTER TABLE subscriptions DROP COLUMN quiet_to; ALTER TABLE subscriptions DROP COLUMN quiet_from;
-- ALTER TABLE subscriptions DROP COLUMN time_zone; ALTER TABLE subscriptions DROP COLUMN digest_weekday;
-- ALTER TABLE subscriptions DROP COLUMN digest_minute;
