-- Keeps answers of code hosts, so that pages and agents do not ask them again and again. Undone by dropping the table.

-- An answer is returned as it is until `fresh_until`, confirmed by its `etag` after that, and deleted at `expires_at`.
CREATE TABLE scm_cache (
    project_id BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    etag TEXT COLLATE "C",
    fresh_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, key)
);
CREATE INDEX scm_cache_by_expiry ON scm_cache (expires_at);

-- rollback:
-- DROP TABLE scm_cache;
