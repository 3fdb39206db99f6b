-- Makes it possible to administrate projects, to annotate what is stored, and to delete it; undone by dropping it.
-- The undo loses labels, tokens, annotations and receipts.

CREATE SEQUENCE ids_tag;
CREATE SEQUENCE ids_link;
CREATE SEQUENCE ids_marker;
CREATE SEQUENCE ids_deletion;

ALTER TABLE projects ADD COLUMN label TEXT;
ALTER TABLE projects ADD COLUMN tracked_branches TEXT NOT NULL DEFAULT '[]';
ALTER TABLE projects ADD COLUMN repository_url TEXT;
ALTER TABLE projects ADD COLUMN repository_provider TEXT;
-- Sealed; never plain text.
ALTER TABLE projects ADD COLUMN scm_token TEXT;
ALTER TABLE projects ADD COLUMN diagnosis_instructions TEXT;

CREATE TABLE tags (
    id BIGINT PRIMARY KEY,
    text TEXT NOT NULL,
    -- Case-folded: one tag per word, whatever its case.
    text_key TEXT NOT NULL,
    color TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX tags_text ON tags (text_key);

CREATE TABLE project_tags (
    project_id BIGINT NOT NULL,
    tag_id BIGINT NOT NULL,
    PRIMARY KEY (project_id, tag_id)
);
CREATE INDEX project_tags_of_tag ON project_tags (tag_id, project_id);

CREATE TABLE entity_links (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    entity_kind SMALLINT NOT NULL,
    entity_id BIGINT NOT NULL,
    url TEXT NOT NULL,
    provider TEXT NOT NULL,
    key TEXT,
    title TEXT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX entity_links_of_entity ON entity_links (project_id, entity_kind, entity_id, id);

CREATE TABLE markers (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL,
    label TEXT NOT NULL,
    description TEXT,
    category TEXT NOT NULL,
    environment TEXT,
    source TEXT NOT NULL CHECK (source IN ('manual', 'auto')),
    run_id BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX markers_by_time ON markers (project_id, occurred_at, id);
CREATE INDEX markers_of_run ON markers (project_id, run_id) WHERE run_id IS NOT NULL;

CREATE TABLE deletion_receipts (
    id BIGINT PRIMARY KEY,
    project_id BIGINT,
    target_kind TEXT NOT NULL CHECK (target_kind IN ('run', 'runs', 'project')),
    target_id BIGINT NOT NULL,
    label TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('user', 'retention', 'purge')),
    requested_by BIGINT,
    state TEXT NOT NULL CHECK (state IN ('pending', 'freeing', 'complete', 'failed')),
    rows TEXT NOT NULL,
    objects BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    freed_objects BIGINT NOT NULL,
    freed_bytes BIGINT NOT NULL,
    shared_objects BIGINT NOT NULL,
    shared_bytes BIGINT NOT NULL,
    remaining BIGINT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    completed_at BIGINT,
    verified_at BIGINT
);
CREATE INDEX deletion_receipts_by_time ON deletion_receipts (created_at, id);
CREATE INDEX deletion_receipts_open ON deletion_receipts (state, id) WHERE state <> 'complete';

-- A run that was deleted leaves its row here until nothing of it is left: what its rows counted for is taken back from this.
CREATE TABLE doomed_runs (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    receipt_id BIGINT NOT NULL,
    lane_id INTEGER NOT NULL,
    lanes TEXT NOT NULL,
    order_at BIGINT NOT NULL,
    is_mass_failure SMALLINT NOT NULL,
    PRIMARY KEY (project_id, run_id)
);
CREATE INDEX doomed_runs_of_receipt ON doomed_runs (receipt_id, run_id);

ALTER TABLE blobs ADD COLUMN receipt_id BIGINT;
CREATE INDEX blobs_of_receipt ON blobs (receipt_id) WHERE receipt_id IS NOT NULL;

-- What each run keeps in the object store, by kind and by how its tests ended; summed up by project.
CREATE TABLE run_storage (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    outcome_class TEXT NOT NULL,
    objects BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (project_id, run_id, kind, outcome_class)
);

CREATE TABLE storage_totals (
    project_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    outcome_class TEXT NOT NULL,
    objects BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (project_id, kind, outcome_class)
) WITH (fillfactor = 70);

CREATE TABLE storage_daily (
    project_id BIGINT NOT NULL,
    day INTEGER NOT NULL,
    added BIGINT NOT NULL,
    freed BIGINT NOT NULL,
    PRIMARY KEY (project_id, day)
) WITH (fillfactor = 70);

-- rollback:
-- DROP TABLE storage_daily; DROP TABLE storage_totals; DROP TABLE run_storage;
-- DROP INDEX blobs_of_receipt; ALTER TABLE blobs DROP COLUMN receipt_id;
-- DROP TABLE doomed_runs; DROP TABLE deletion_receipts; DROP TABLE markers;
-- DROP TABLE entity_links; DROP TABLE project_tags; DROP TABLE tags;
-- ALTER TABLE projects DROP COLUMN diagnosis_instructions; ALTER TABLE projects DROP COLUMN scm_token;
-- ALTER TABLE projects DROP COLUMN repository_provider; ALTER TABLE projects DROP COLUMN repository_url;
-- ALTER TABLE projects DROP COLUMN tracked_branches; ALTER TABLE projects DROP COLUMN label;
-- DROP SEQUENCE ids_tag, ids_link, ids_marker, ids_deletion;
-- DELETE FROM id_directory WHERE kind IN (12, 13);
