-- Makes it possible to list flaky and slow tests, what they cost, and tests in quarantine; undone by dropping it.
-- The undo loses who is in quarantine, causes of flakiness and the days of folders.

-- One hundred times the probability that the test is flaky, 0 when nothing failed in the newest runs.
ALTER TABLE test_state ADD COLUMN flaky_score INTEGER NOT NULL DEFAULT 0;
CREATE INDEX test_state_by_flakiness ON test_state (project_id, lane_id, flaky_score DESC, test_case_id) WHERE flaky_score > 0;

ALTER TABLE test_cases ADD COLUMN root_cause TEXT;

-- Most of it failed, so it says nothing about its tests.
ALTER TABLE test_runs ADD COLUMN is_mass_failure INTEGER NOT NULL DEFAULT 0;
-- Time spent on attempts that did not decide.
ALTER TABLE test_runs ADD COLUMN lost_ms INTEGER NOT NULL DEFAULT 0;

ALTER TABLE project_daily ADD COLUMN timedout INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project_daily ADD COLUMN run_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project_daily ADD COLUMN tests_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project_daily ADD COLUMN wasted_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project_daily ADD COLUMN lost_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project_daily ADD COLUMN new_regressions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project_daily ADD COLUMN new_flaky INTEGER NOT NULL DEFAULT 0;

-- The first two segments of the paths of tests, day by day.
CREATE TABLE spec_daily (
    project_id INTEGER NOT NULL,
    lane_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    executions INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    dur_sum INTEGER NOT NULL,
    dur_n INTEGER NOT NULL,
    PRIMARY KEY (project_id, lane_id, day, prefix)
) WITHOUT ROWID;

CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    test_case_id INTEGER NOT NULL,
    reason TEXT,
    source TEXT NOT NULL CHECK (source IN ('manual', 'proposed')),
    -- Executions of the test that were counted before.
    total_before INTEGER NOT NULL,
    created_by INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    released_at INTEGER,
    released_by INTEGER,
    released_reason TEXT
);
CREATE UNIQUE INDEX quarantine_active ON quarantine (project_id, test_case_id) WHERE released_at IS NULL;
CREATE INDEX quarantine_by_id ON quarantine (project_id, id);

-- rollback:
-- DROP TABLE quarantine; DROP TABLE spec_daily;
-- ALTER TABLE project_daily DROP COLUMN new_flaky; ALTER TABLE project_daily DROP COLUMN new_regressions;
-- ALTER TABLE project_daily DROP COLUMN lost_ms; ALTER TABLE project_daily DROP COLUMN wasted_ms;
-- ALTER TABLE project_daily DROP COLUMN tests_ms; ALTER TABLE project_daily DROP COLUMN run_ms;
-- ALTER TABLE project_daily DROP COLUMN timedout;
-- ALTER TABLE test_runs DROP COLUMN lost_ms; ALTER TABLE test_runs DROP COLUMN is_mass_failure;
-- ALTER TABLE test_cases DROP COLUMN root_cause;
-- DROP INDEX test_state_by_flakiness; ALTER TABLE test_state DROP COLUMN flaky_score;
