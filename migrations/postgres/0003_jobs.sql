-- Makes it possible to do work later and to give back objects that nobody refers to; undone by dropping the queue and the states of collection.

CREATE SEQUENCE ids_job;

CREATE TABLE jobs (
    id BIGINT PRIMARY KEY,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    project_id BIGINT,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'done', 'parked')),
    run_after BIGINT NOT NULL,
    attempts INTEGER NOT NULL,
    lease_until BIGINT,
    lease_id BYTEA,
    error TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
);
CREATE UNIQUE INDEX jobs_key ON jobs (key);
CREATE INDEX jobs_due ON jobs (run_after, id) WHERE state IN ('queued', 'leased');
CREATE INDEX jobs_by_state ON jobs (state, finished_at);

ALTER TABLE blobs ADD COLUMN condemned_at BIGINT;
ALTER TABLE blobs ADD COLUMN lease_until BIGINT;
ALTER TABLE blobs DROP CONSTRAINT blobs_state_check;
ALTER TABLE blobs ADD CONSTRAINT blobs_state_check CHECK (state IN ('pending', 'live', 'condemned', 'deleting'));
UPDATE blobs SET condemned_at = created_at + 86400000 WHERE state = 'pending';
DROP INDEX blobs_content;
DROP INDEX blobs_pending;
CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256) WHERE state <> 'deleting';
CREATE INDEX blobs_collection ON blobs (state, condemned_at) WHERE state <> 'live';

-- Objects are named here before they are written, until a row refers to them; a key that ends in a slash is all below it.
CREATE TABLE unclaimed_objects (
    key TEXT PRIMARY KEY,
    project_id BIGINT NOT NULL,
    delete_at BIGINT NOT NULL
);
CREATE INDEX unclaimed_objects_by_time ON unclaimed_objects (delete_at);

CREATE INDEX reports_pending ON reports (created_at) WHERE state = 'pending';

-- rollback:
-- DROP INDEX reports_pending; DROP TABLE unclaimed_objects; DROP INDEX blobs_collection; DROP INDEX blobs_content;
-- DELETE FROM blobs WHERE state = 'deleting'; UPDATE blobs SET state = 'live' WHERE state = 'condemned';
-- CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256);
-- CREATE INDEX blobs_pending ON blobs (created_at) WHERE state = 'pending';
-- ALTER TABLE blobs DROP COLUMN condemned_at; ALTER TABLE blobs DROP COLUMN lease_until;
-- ALTER TABLE blobs DROP CONSTRAINT blobs_state_check; ALTER TABLE blobs ADD CONSTRAINT blobs_state_check CHECK (state IN ('pending', 'live'));
-- DROP TABLE jobs; DROP SEQUENCE ids_job;
