-- Lets SQLite find the next job by when it is due; PostgreSQL gathers its own statistics, so here nothing changes.

SELECT 1;

-- rollback:
-- nothing
