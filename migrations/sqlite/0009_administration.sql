-- Makes it possible to administrate projects, to annotate what is stored, and to delete it; undone by dropping it.
-- The undo loses labels, tokens, annotations and receipts.

ALTER TABLE projects ADD COLUMN label TEXT;
ALTER TABLE projects ADD COLUMN tracked_branches TEXT NOT NULL DEFAULT '[]';
ALTER TABLE projects ADD COLUMN repository_url TEXT;
ALTER TABLE projects ADD COLUMN repository_provider TEXT;
-- Sealed; never plain text.
ALTER TABLE projects ADD COLUMN scm_token TEXT;
ALTER TABLE projects ADD COLUMN diagnosis_instructions TEXT;

CREATE TABLE tags (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    -- Case-folded: one tag per word, whatever its case.
    text_key TEXT NOT NULL,
    color TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX tags_text ON tags (text_key);

CREATE TABLE project_tags (
    project_id INTEGER NOT NULL,
    tag_id INTEGER NOT NULL,
    PRIMARY KEY (project_id, tag_id)
) WITHOUT ROWID;
CREATE INDEX project_tags_of_tag ON project_tags (tag_id, project_id);

CREATE TABLE entity_links (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    entity_kind INTEGER NOT NULL,
    entity_id INTEGER NOT NULL,
    url TEXT NOT NULL,
    provider TEXT NOT NULL,
    key TEXT,
    title TEXT,
    created_by INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX entity_links_of_entity ON entity_links (project_id, entity_kind, entity_id, id);

CREATE TABLE markers (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    occurred_at INTEGER NOT NULL,
    label TEXT NOT NULL,
    description TEXT,
    category TEXT NOT NULL,
    environment TEXT,
    source TEXT NOT NULL CHECK (source IN ('manual', 'auto')),
    run_id INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX markers_by_time ON markers (project_id, occurred_at, id);
CREATE INDEX markers_of_run ON markers (project_id, run_id) WHERE run_id IS NOT NULL;

CREATE TABLE deletion_receipts (
    id INTEGER PRIMARY KEY,
    project_id INTEGER,
    target_kind TEXT NOT NULL CHECK (target_kind IN ('run', 'runs', 'project')),
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
CREATE INDEX deletion_receipts_by_time ON deletion_receipts (created_at, id);
CREATE INDEX deletion_receipts_open ON deletion_receipts (state, id) WHERE state <> 'complete';

-- A run that was deleted leaves its row here until nothing of it is left: what its rows counted for is taken back from this.
CREATE TABLE doomed_runs (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    receipt_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    lanes TEXT NOT NULL,
    order_at INTEGER NOT NULL,
    is_mass_failure INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id)
) WITHOUT ROWID;
CREATE INDEX doomed_runs_of_receipt ON doomed_runs (receipt_id, run_id);

ALTER TABLE blobs ADD COLUMN receipt_id INTEGER;
CREATE INDEX blobs_of_receipt ON blobs (receipt_id) WHERE receipt_id IS NOT NULL;

-- What each run keeps in the object store, by kind and by how its tests ended; summed up by project.
CREATE TABLE run_storage (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    outcome_class TEXT NOT NULL,
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (project_id, run_id, kind, outcome_class)
) WITHOUT ROWID;

CREATE TABLE storage_totals (
    project_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    outcome_class TEXT NOT NULL,
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (project_id, kind, outcome_class)
) WITHOUT ROWID;

CREATE TABLE storage_daily (
    project_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    added INTEGER NOT NULL,
    freed INTEGER NOT NULL,
    PRIMARY KEY (project_id, day)
) WITHOUT ROWID;

-- rollback:
-- DROP TABLE storage_daily; DROP TABLE storage_totals; DROP TABLE run_storage;
-- DROP INDEX blobs_of_receipt; ALTER TABLE blobs DROP COLUMN receipt_id;
-- DROP TABLE doomed_runs; DROP TABLE deletion_receipts; DROP TABLE markers;
-- DROP TABLE entity_links; DROP TABLE project_tags; DROP TABLE tags;
-- ALTER TABLE projects DROP COLUMN diagnosis_instructions; ALTER TABLE projects DROP COLUMN scm_token;
-- ALTER TABLE projects DROP COLUMN repository_provider; ALTER TABLE projects DROP COLUMN repository_url;
-- ALTER TABLE projects DROP COLUMN tracked_branches; ALTER TABLE projects DROP COLUMN label;
-- DELETE FROM id_counters WHERE kind IN ('tag', 'link', 'marker', 'deletion');
-- DELETE FROM id_directory WHERE kind IN (12, 13);
