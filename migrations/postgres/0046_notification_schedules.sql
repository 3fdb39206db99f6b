-- Stores when messages are sent: digests, quiet hours, how many a channel takes in an hour, and what waits for its time.
-- Undone by dropping what is added here; messages that wait are lost then.

-- Minutes since midnight and days since Monday, in a time zone; null sends each message at once.
ALTER TABLE subscriptions ADD COLUMN digest_minute BIGINT;
ALTER TABLE subscriptions ADD COLUMN digest_weekday BIGINT;
ALTER TABLE subscriptions ADD COLUMN time_zone TEXT COLLATE "C" NOT NULL DEFAULT 'UTC';
-- Hours without messages, in minutes since midnight.
ALTER TABLE subscriptions ADD COLUMN quiet_from BIGINT;
ALTER TABLE subscriptions ADD COLUMN quiet_to BIGINT;

-- Messages of one hour; what comes beyond waits until the hour is over and becomes one.
ALTER TABLE channels ADD COLUMN hourly_limit BIGINT NOT NULL DEFAULT 30;

-- Messages that wait for a digest, the end of quiet hours or the next hour.
CREATE TABLE held_notifications (
    dedupe_key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    channel_id BIGINT NOT NULL,
    subscription_id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX held_notifications_of_channel ON held_notifications (channel_id, due_at);
CREATE INDEX held_notifications_by_time ON held_notifications (due_at, channel_id);
CREATE INDEX held_notifications_of_subscription ON held_notifications (subscription_id);
CREATE INDEX held_notifications_of_project ON held_notifications (project_id, dedupe_key);

-- rollback:
-- DROP TABLE held_notifications; ALTER TABLE channels DROP COLUMN hourly_limit;
-- ALTER TABLE subscriptions DROP COLUMN quiet_to; ALTER TABLE subscriptions DROP COLUMN quiet_from;
-- ALTER TABLE subscriptions DROP COLUMN time_zone; ALTER TABLE subscriptions DROP COLUMN digest_weekday;
-- ALTER TABLE subscriptions DROP COLUMN digest_minute;
