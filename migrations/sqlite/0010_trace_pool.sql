-- Parts of traces that several of them share lie in objects of their own; undone only after those traces are whole again.

ALTER TABLE blobs ADD COLUMN kind TEXT NOT NULL DEFAULT 'blob' CHECK (kind IN ('blob', 'pool'));
-- Bytes of its own object when parts of it lie in others; null while it is whole.
ALTER TABLE blobs ADD COLUMN own_size INTEGER;
DROP INDEX blobs_content;
CREATE UNIQUE INDEX blobs_content ON blobs (project_id, kind, sha256) WHERE state <> 'deleting';

CREATE TABLE trace_members (
    project_id INTEGER NOT NULL,
    trace_blob_id INTEGER NOT NULL,
    -- Where the part begins in the trace.
    at INTEGER NOT NULL,
    length INTEGER NOT NULL,
    pool_blob_id INTEGER NOT NULL,
    PRIMARY KEY (project_id, trace_blob_id, at)
) WITHOUT ROWID;
CREATE INDEX trace_members_of_pool ON trace_members (project_id, pool_blob_id);

-- rollback:
-- DROP INDEX trace_members_of_pool; DROP TABLE trace_members; DROP INDEX blobs_content;
-- DELETE FROM blobs WHERE kind = 'pool' OR own_size IS NOT NULL; -- loses traces that are not whole
-- ALTER TABLE blobs DROP COLUMN own_size; ALTER TABLE blobs DROP COLUMN kind;
-- CREATE UNIQUE INDEX blobs_content ON blobs (project_id, sha256) WHERE state <> 'deleting';
