-- Makes it possible to set how long things are kept, and to let them go when their time is over; undone by dropping it.
-- The undo loses settings and the receipts of what went by its age; nothing that went comes back.

-- What is set for the installation, group by group. JSON, secrets sealed.
CREATE TABLE settings (
    grp TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by INTEGER
) WITHOUT ROWID;

-- The same for one project.
CREATE TABLE project_settings (
    project_id INTEGER NOT NULL,
    grp TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by INTEGER,
    PRIMARY KEY (project_id, grp)
) WITHOUT ROWID;

-- When the time of something is over; null: never.
ALTER TABLE test_runs ADD COLUMN expires_at INTEGER;
CREATE INDEX test_runs_by_expiry ON test_runs (expires_at, id) WHERE expires_at IS NOT NULL AND pinned_at IS NULL;
ALTER TABLE files ADD COLUMN expires_at INTEGER;
CREATE INDEX files_by_expiry ON files (expires_at, id) WHERE expires_at IS NOT NULL;
ALTER TABLE reports ADD COLUMN expires_at INTEGER;
CREATE INDEX reports_by_expiry ON reports (expires_at, id) WHERE expires_at IS NOT NULL;
-- When some of what a pack holds is due.
ALTER TABLE packs ADD COLUMN trim_at INTEGER;
CREATE INDEX packs_by_trim ON packs (trim_at, run_id) WHERE trim_at IS NOT NULL;

-- Runs that began before this no longer count in the lane: its numbers were let go.
ALTER TABLE lanes ADD COLUMN cleared_before INTEGER;
-- Whether runs count in it since.
ALTER TABLE lanes ADD COLUMN has_numbers INTEGER NOT NULL DEFAULT 1;
CREATE INDEX lanes_with_numbers ON lanes (project_id, last_run_at) WHERE has_numbers = 1;

-- Objects that go with a deletion; the others are swept.
ALTER TABLE unclaimed_objects ADD COLUMN receipt_id INTEGER;
CREATE INDEX unclaimed_objects_of_receipt ON unclaimed_objects (receipt_id) WHERE receipt_id IS NOT NULL;

-- Files can be deleted without their run: SQLite changes a check by copying the table.
CREATE TABLE deletion_receipts_new (
    id INTEGER PRIMARY KEY,
    project_id INTEGER,
    target_kind TEXT NOT NULL CHECK (target_kind IN ('run', 'runs', 'project', 'files')),
    target_id INTEGER NOT NULL,
    label TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('user', 'retention', 'purge')),
    requested_by INTEGER,
    state TEXT NOT NULL CHECK (state IN ('pending', 'freeing', 'complete', 'failed')),
    rows TEXT NOT NULL,
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    freed_objects INTEGER NOT NULL,
    freed_bytes INTEGER NOT NULL,
    shared_objects INTEGER NOT NULL,
    shared_bytes INTEGER NOT NULL,
    remaining INTEGER NOT NULL,
    error TEXT,
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    verified_at INTEGER
);
INSERT INTO deletion_receipts_new SELECT id, project_id, target_kind, target_id, label, reason, requested_by, state, rows,
    objects, bytes, freed_objects, freed_bytes, shared_objects, shared_bytes, remaining, error, created_at, completed_at,
    verified_at FROM deletion_receipts;
DROP TABLE deletion_receipts;
ALTER TABLE deletion_receipts_new RENAME TO deletion_receipts;
CREATE INDEX deletion_receipts_by_time ON deletion_receipts (created_at, id);
CREATE INDEX deletion_receipts_open ON deletion_receipts (state, id) WHERE state <> 'complete';

-- rollback:
-- DELETE FROM deletion_receipts WHERE target_kind = 'files';
-- DROP INDEX unclaimed_objects_of_receipt; ALTER TABLE unclaimed_objects DROP COLUMN receipt_id;
-- DROP INDEX lanes_with_numbers; ALTER TABLE lanes DROP COLUMN has_numbers; ALTER TABLE lanes DROP COLUMN cleared_before;
-- DROP INDEX packs_by_trim; ALTER TABLE packs DROP COLUMN trim_at;
-- DROP INDEX reports_by_expiry; ALTER TABLE reports DROP COLUMN expires_at;
-- DROP INDEX files_by_expiry; ALTER TABLE files DROP COLUMN expires_at;
-- DROP INDEX test_runs_by_expiry; ALTER TABLE test_runs DROP COLUMN expires_at;
-- DROP TABLE project_settings; DROP TABLE settings;
