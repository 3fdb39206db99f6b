-- Makes it possible to do work later and to give back objects that nobody refers to; undone by dropping the queue and the states of collection.

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    project_id INTEGER,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'done', 'parked')),
    run_after INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lease_until INTEGER,
    lease_id BLOB,
    error TEXT,
    created_at INTEGER NOT NULL,
    finished_at INTEGER
);
CREATE UNIQUE INDEX jobs_key ON jobs (key);
CREATE INDEX jobs_due ON jobs (run_after, id) WHERE state IN ('queued', 'leased');
CREATE INDEX jobs_by_state ON jobs (state, finished_at);

-- The states of collection: SQLite changes a check by copying the table.
CREATE TABLE blobs_collected (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    size INTEGER NOT NULL,
    key TEXT NOT NULL,
    content_type TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'live', 'condemned', 'deleting')),
    refs INTEGER NOT NULL,
    condemned_at INTEGER,
    lease_until INTEGER,
    created_at INTEGER NOT NULL
);
INSERT INTO blobs_collected (id, project_id, sha256, size, key, content_type, state, refs, condemned_at, created_at)
    SELECT id, project_id, sha256, size, key, content_type, state, refs,
        CASE state WHEN 'pending' THEN created_at + 86400000 END, created_at FROM blobs;
DROP TABLE blobs;
ALTER TABLE blobs_collected RENAME TO blobs;
CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256) WHERE state <> 'deleting';
CREATE INDEX blobs_collection ON blobs (state, condemned_at) WHERE state <> 'live';

-- Objects are named here before they are written, until a row refers to them; a key that ends in a slash is all below it.
CREATE TABLE unclaimed_objects (
    key TEXT PRIMARY KEY,
    project_id INTEGER NOT NULL,
    delete_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX unclaimed_objects_by_time ON unclaimed_objects (delete_at);

CREATE INDEX reports_pending ON reports (created_at) WHERE state = 'pending';

-- rollback:
-- DROP INDEX reports_pending; DROP TABLE unclaimed_objects; DROP INDEX blobs_collection; DROP INDEX blobs_content;
-- DELETE FROM blobs WHERE state = 'deleting'; UPDATE blobs SET state = 'live' WHERE state = 'condemned';
-- CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256);
-- CREATE INDEX blobs_pending ON blobs (created_at) WHERE state = 'pending';
-- ALTER TABLE blobs DROP COLUMN condemned_at; ALTER TABLE blobs DROP COLUMN lease_until;
-- DROP TABLE jobs; DELETE FROM id_counters WHERE kind = 'job';
