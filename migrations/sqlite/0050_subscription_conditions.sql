-- Stores further conditions of subscriptions, such as status of the run, owners and tags of its tests, and when a channel
-- was reached at its present address. Undone by dropping the columns.

-- JSON arrays; an empty one means any.
ALTER TABLE subscriptions ADD COLUMN statuses TEXT NOT NULL DEFAULT '[]';
ALTER TABLE subscriptions ADD COLUMN owners TEXT NOT NULL DEFAULT '[]';
ALTER TABLE subscriptions ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE subscriptions ADD COLUMN includes_backfilled INTEGER NOT NULL DEFAULT 0;
-- Only runs with new failures.
ALTER TABLE subscriptions ADD COLUMN only_new INTEGER NOT NULL DEFAULT 0;
-- Least flaky score of a test, 0 to 100, and least share by which one became slower, in thousandths; null for any.
ALTER TABLE subscriptions ADD COLUMN least_flaky_score INTEGER;
ALTER TABLE subscriptions ADD COLUMN least_slower_permille INTEGER;

-- When something arrived at the present address for the first time.
ALTER TABLE channels ADD COLUMN verified_at INTEGER;

-- rollback:
-- ALTER TABLE channels DROP COLUMN verified_at; ALTER TABLE subscriptions DROP COLUMN least_slower_permille;
-- ALTER TABLE subscriptions DROP COLUMN least_flaky_score; ALTER TABLE subscriptions DROP COLUMN only_new;
-- ALTER TABLE subscriptions DROP COLUMN includes_backfilled; ALTER TABLE subscriptions DROP COLUMN tags;
-- ALTER TABLE subscriptions DROP COLUMN owners; ALTER TABLE subscriptions DROP COLUMN statuses;
