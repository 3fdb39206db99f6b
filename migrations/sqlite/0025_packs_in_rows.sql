-- Keeps small packs of evidence beside their rows until their run is over, and lets packs of a run share an object;
-- undone by dropping the table and the column. Before the undo no pack may lie in rows (key = ''), or its evidence is
-- lost, nor may packs share an object.

ALTER TABLE packs ADD COLUMN base INTEGER NOT NULL DEFAULT 0;

CREATE TABLE pack_bytes (
    pack_id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    bytes BLOB NOT NULL
);

-- rollback:
-- DROP TABLE pack_bytes;
-- ALTER TABLE packs DROP COLUMN base;
