-- Keeps answers of code hosts, so that pages and agents do not ask them again and again. Undone by dropping the table.

-- An answer is returned as it is until `fresh_until`, confirmed by its `etag` after that, and deleted at `expires_at`.
CREATE TABLE scm_cache (
    project_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    etag TEXT,
    fresh_until INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, key)
) WITHOUT ROWID;
CREATE INDEX scm_cache_by_expiry ON scm_cache (expires_at);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('scm_cache', 'scm_cache', '20000 200 1'),
    ('scm_cache', 'scm_cache_by_expiry', '20000 2');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl = 'scm_cache';
-- DROP TABLE scm_cache;
