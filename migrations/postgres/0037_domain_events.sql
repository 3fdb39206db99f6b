-- Stores domain events with the change that makes them true, how far each subscriber has handled those of a project,
-- and whether each branch and environment is red. Undone by dropping the tables.

-- `seq` is the place among the events of the project; it is given when they are delivered, after they are committed.
CREATE TABLE domain_events (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id BIGINT NOT NULL,
    seq BIGINT,
    data TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX domain_events_new ON domain_events (project_id, id) WHERE seq IS NULL;
CREATE UNIQUE INDEX domain_events_in_order ON domain_events (project_id, seq) WHERE seq IS NOT NULL;
CREATE INDEX domain_events_by_time ON domain_events (at);

-- Highest `seq` given in a project.
CREATE TABLE event_streams (
    project_id BIGINT NOT NULL PRIMARY KEY,
    last_seq BIGINT NOT NULL
);

-- Up to which `seq` a subscriber has handled the events of a project.
CREATE TABLE event_cursors (
    project_id BIGINT NOT NULL,
    subscriber TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (project_id, subscriber)
);

-- Whether the newest full run of a branch and environment failed, and the run since which that is so.
CREATE TABLE branch_states (
    project_id BIGINT NOT NULL,
    lane_id BIGINT NOT NULL,
    is_red SMALLINT NOT NULL,
    run_id BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, lane_id)
);

-- rollback:
-- DROP TABLE branch_states; DROP TABLE event_cursors; DROP TABLE event_streams; DROP TABLE domain_events;
