-- Makes known how wide and high a picture is, pixels; undone by dropping the columns. Pictures that were stored before, and
-- files that are none, have none.

ALTER TABLE files ADD COLUMN width INTEGER;
ALTER TABLE files ADD COLUMN height INTEGER;

-- rollback:
-- ALTER TABLE files DROP COLUMN height;
-- ALTER TABLE files DROP COLUMN width;
