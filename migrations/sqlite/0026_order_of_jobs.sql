-- Lets the next job be found by when it is due; undone by forgetting what the planner was told.
--
-- Without this it took the jobs that wait, found by their state, and sorted all of them for each job that was claimed.

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('jobs', 'jobs_key', '100000 1'),
    ('jobs', 'jobs_due', '20 1 1'),
    ('jobs', 'jobs_by_state', '100000 50000 1');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl = 'jobs';
