-- Makes the planner of SQLite read by the keys a statement names; PostgreSQL gathers its own statistics, so here nothing changes.

SELECT 1;

-- rollback:
-- nothing
