-- Makes it possible to make exports later, to look at the addresses of links, and to show badges outside; undone by dropping it.
-- The undo loses tokens of badges and what addresses told.

-- Exports that are made by a job. The object goes by itself when the time of the export is over.
CREATE TABLE exports (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('run', 'project', 'cluster', 'execution')),
    target_id INTEGER NOT NULL,
    format TEXT NOT NULL CHECK (format IN ('junit', 'ctrf', 'csv', 'ndjson')),
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'ready', 'failed')),
    -- Where its bytes lie, once they are there.
    path TEXT,
    size INTEGER,
    error TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX exports_by_expiry ON exports (expires_at, id);

-- Opens the badge of the project, and nothing else.
ALTER TABLE projects ADD COLUMN badge_token_hash BLOB;
CREATE UNIQUE INDEX projects_badge ON projects (badge_token_hash) WHERE badge_token_hash IS NOT NULL;

-- What the address of a link told when it was looked at.
ALTER TABLE entity_links ADD COLUMN told_title TEXT;
ALTER TABLE entity_links ADD COLUMN unfurled_at INTEGER;

-- rollback:
-- ALTER TABLE entity_links DROP COLUMN unfurled_at; ALTER TABLE entity_links DROP COLUMN told_title;
-- DROP INDEX projects_badge; ALTER TABLE projects DROP COLUMN badge_token_hash;
-- DROP TABLE exports;
-- DELETE FROM id_counters WHERE kind = 'export';
-- DELETE FROM id_directory WHERE kind = 19;
