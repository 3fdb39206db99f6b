-- Keeps small packs of evidence beside their rows until their run is over, and lets packs of a run share an object;
-- undone by dropping the table and the column. Before the undo no pack may lie in rows (key = ''), or its evidence is
-- lost, nor may packs share an object.

ALTER TABLE packs ADD COLUMN base INTEGER NOT NULL DEFAULT 0;

-- In parts of one size, which fit into a page each.
CREATE TABLE pack_bytes (
    project_id INTEGER NOT NULL,
    pack_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (project_id, pack_id, part)
);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('pack_bytes', 'sqlite_autoindex_pack_bytes_1', '10000 2000 3 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl = 'pack_bytes';
-- DROP TABLE pack_bytes;
-- ALTER TABLE packs DROP COLUMN base;
