-- Stores domain events with the change that makes them true, how far each subscriber has handled those of a project,
-- and whether each branch and environment is red. Undone by dropping the tables.

-- `seq` is the place among the events of the project; it is given when they are delivered, after they are committed.
CREATE TABLE domain_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL,
    seq INTEGER,
    data TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX domain_events_new ON domain_events (project_id, id) WHERE seq IS NULL;
CREATE UNIQUE INDEX domain_events_in_order ON domain_events (project_id, seq) WHERE seq IS NOT NULL;
CREATE INDEX domain_events_by_time ON domain_events (at);

-- Highest `seq` given in a project.
CREATE TABLE event_streams (
    project_id INTEGER NOT NULL PRIMARY KEY,
    last_seq INTEGER NOT NULL
) WITHOUT ROWID;

-- Up to which `seq` a subscriber has handled the events of a project.
CREATE TABLE event_cursors (
    project_id INTEGER NOT NULL,
    subscriber TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (project_id, subscriber)
) WITHOUT ROWID;

-- Whether the newest full run of a branch and environment failed, and the run since which that is so.
CREATE TABLE branch_states (
    project_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    is_red INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, lane_id)
) WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('domain_events', 'domain_events_new', '100 10 1'),
    ('domain_events', 'domain_events_in_order', '20000 200 1'),
    ('domain_events', 'domain_events_by_time', '20000 2'),
    ('event_cursors', 'event_cursors', '400 2 1'),
    ('branch_states', 'branch_states', '4000 20 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl IN ('domain_events', 'event_cursors', 'branch_states');
-- DROP TABLE branch_states; DROP TABLE event_cursors; DROP TABLE event_streams; DROP TABLE domain_events;
