-- Has stored executions of the last 30 days judged by the rule of today, once, as far as there are any; undone by deleting
-- the job.

INSERT INTO jobs (id, key, kind, payload, state, run_after, attempts, created_at)
    SELECT nextval('ids_job'), 'reevaluate_outcomes', 'reevaluate_outcomes', '{}', 'queued', 0, 0, 0
    WHERE EXISTS (SELECT 1 FROM test_runs);

-- rollback:
-- DELETE FROM jobs WHERE key = 'reevaluate_outcomes';
