-- Stores channels and subscriptions of people, the notifications a person has in the header of the pages, and how near
-- a project and the instance are to their storage quota. Undone by dropping what is added here; personal channels are
-- lost then.

ALTER TABLE channels DROP CONSTRAINT channels_kind_check;
ALTER TABLE channels ADD CONSTRAINT channels_kind_check
    CHECK (kind IN ('webhook', 'slack', 'teams', 'discord', 'email', 'browser', 'personal_email'));
-- Whose it is; null belongs to the instance.
ALTER TABLE channels ADD COLUMN user_id BIGINT;
-- The account that is notified when it pauses.
ALTER TABLE channels ADD COLUMN created_by BIGINT;
CREATE INDEX channels_of_user ON channels (user_id, id);
CREATE UNIQUE INDEX channels_own ON channels (user_id, kind) WHERE kind IN ('browser', 'personal_email');

ALTER TABLE subscriptions ADD COLUMN user_id BIGINT;
ALTER TABLE subscriptions ADD COLUMN test_case_id BIGINT;
ALTER TABLE subscriptions ADD COLUMN cluster_id BIGINT;
CREATE INDEX subscriptions_of_user ON subscriptions (user_id, id);

ALTER TABLE deliveries DROP CONSTRAINT deliveries_state_check;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_state_check
    CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'parked', 'skipped'));
-- Whose notification it is; null where it went to a channel outside of the pages.
ALTER TABLE deliveries ADD COLUMN inbox_user_id BIGINT;
ALTER TABLE deliveries ADD COLUMN read_at BIGINT;
CREATE INDEX deliveries_inbox ON deliveries (inbox_user_id, id) WHERE inbox_user_id IS NOT NULL;
CREATE INDEX deliveries_unread ON deliveries (inbox_user_id, id) WHERE inbox_user_id IS NOT NULL AND read_at IS NULL;

-- The highest share of its quota, in percent, about which a project was reported; project 0 is the instance.
CREATE TABLE quota_states (
    project_id BIGINT NOT NULL PRIMARY KEY,
    level BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);

-- What was sent to a channel about something that may be corrected: the outcome of a run, or of a test in it.
CREATE TABLE told_states (
    project_id BIGINT NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    channel_id BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (project_id, subject, channel_id)
);
CREATE INDEX told_states_by_time ON told_states (at);

-- rollback:
-- DROP TABLE told_states; DROP TABLE quota_states;
-- DELETE FROM deliveries WHERE inbox_user_id IS NOT NULL OR state = 'skipped'; DROP INDEX deliveries_unread; DROP INDEX deliveries_inbox;
-- ALTER TABLE deliveries DROP COLUMN read_at; ALTER TABLE deliveries DROP COLUMN inbox_user_id;
-- ALTER TABLE deliveries DROP CONSTRAINT deliveries_state_check; ALTER TABLE deliveries ADD CONSTRAINT deliveries_state_check
--     CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'parked'));
-- DELETE FROM subscriptions WHERE user_id IS NOT NULL; DROP INDEX subscriptions_of_user;
-- ALTER TABLE subscriptions DROP COLUMN cluster_id; ALTER TABLE subscriptions DROP COLUMN test_case_id;
-- ALTER TABLE subscriptions DROP COLUMN user_id;
-- DELETE FROM channels WHERE user_id IS NOT NULL; DROP INDEX channels_own; DROP INDEX channels_of_user;
-- ALTER TABLE channels DROP CONSTRAINT channels_kind_check; ALTER TABLE channels ADD CONSTRAINT channels_kind_check
--     CHECK (kind IN ('webhook', 'slack', 'teams', 'discord', 'email'));
-- ALTER TABLE channels DROP COLUMN created_by; ALTER TABLE channels DROP COLUMN user_id;
