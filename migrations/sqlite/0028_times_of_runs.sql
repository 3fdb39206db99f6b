-- Lets PostgreSQL find when a run started by its id without reading others; SQLite finds the row itself, so here nothing changes.

SELECT 1;

-- rollback:
-- nothing
