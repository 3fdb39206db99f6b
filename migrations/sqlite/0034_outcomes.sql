-- Has stored executions of the last 30 days judged by the rule of today, once, as far as there are any; undone by deleting
-- the job.

INSERT INTO id_counters (kind, next) SELECT 'job', 2 WHERE EXISTS (SELECT 1 FROM test_runs)
    ON CONFLICT (kind) DO UPDATE SET next = next + 1;
INSERT INTO jobs (id, key, kind, payload, state, run_after, attempts, created_at)
    SELECT next - 1, 'reevaluate_outcomes', 'reevaluate_outcomes', '{}', 'queued', 0, 0, 0 FROM id_counters
    WHERE kind = 'job' AND EXISTS (SELECT 1 FROM test_runs);

-- rollback:
-- DELETE FROM jobs WHERE key = 'reevaluate_outcomes';
