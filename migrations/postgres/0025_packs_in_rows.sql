-- Keeps small packs of evidence beside their rows until their run is over, and lets packs of a run share an object;
-- undone by dropping the table and the column. Before the undo no pack may lie in rows (key = ''), or its evidence is
-- lost, nor may packs share an object.

ALTER TABLE packs ADD COLUMN base BIGINT NOT NULL DEFAULT 0;

-- In parts of one size, which fit into a message each.
CREATE TABLE pack_bytes (
    project_id BIGINT NOT NULL,
    pack_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (project_id, pack_id, part)
);
-- They are compressed already.
ALTER TABLE pack_bytes ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- rollback:
-- DROP TABLE pack_bytes;
-- ALTER TABLE packs DROP COLUMN base;
