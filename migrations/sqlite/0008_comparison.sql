-- Makes it possible to compare runs with what was green before, to gate on that, to pin runs, and to search by words;
-- undone by dropping it. The undo loses pins, policies and the results of gates.

ALTER TABLE test_runs ADD COLUMN is_green INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN new_regressions INTEGER;
ALTER TABLE test_runs ADD COLUMN new_flaky INTEGER;
ALTER TABLE test_runs ADD COLUMN fixed INTEGER;
ALTER TABLE test_runs ADD COLUMN quarantined_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN pinned_at INTEGER;
ALTER TABLE test_runs ADD COLUMN pinned_by INTEGER;
ALTER TABLE test_runs ADD COLUMN pin_reason TEXT;
UPDATE test_runs SET is_green = 1 WHERE is_full = 1 AND status = 'passed';
CREATE INDEX test_runs_green ON test_runs (project_id, lane_id, order_at, id) WHERE is_green = 1;

CREATE TABLE gate_policies (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    policy TEXT NOT NULL,
    is_default INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX gate_policies_name ON gate_policies (project_id, name);

CREATE TABLE gate_results (
    project_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    policy_name TEXT,
    passed INTEGER NOT NULL,
    violations INTEGER NOT NULL,
    body TEXT NOT NULL,
    at INTEGER NOT NULL,
    by_user INTEGER,
    PRIMARY KEY (project_id, run_id, id)
) WITHOUT ROWID;

CREATE TABLE search_terms (
    kind INTEGER NOT NULL,
    term TEXT NOT NULL,
    project_id INTEGER NOT NULL,
    entity_id INTEGER NOT NULL,
    PRIMARY KEY (kind, term, project_id, entity_id)
) WITHOUT ROWID;
CREATE INDEX search_terms_of_entity ON search_terms (project_id, kind, entity_id, term);

-- rollback:
-- DROP TABLE search_terms; DROP TABLE gate_results; DROP TABLE gate_policies; DROP INDEX test_runs_green;
-- ALTER TABLE test_runs DROP COLUMN pin_reason; ALTER TABLE test_runs DROP COLUMN pinned_by;
-- ALTER TABLE test_runs DROP COLUMN pinned_at; ALTER TABLE test_runs DROP COLUMN quarantined_failed;
-- ALTER TABLE test_runs DROP COLUMN fixed; ALTER TABLE test_runs DROP COLUMN new_flaky;
-- ALTER TABLE test_runs DROP COLUMN new_regressions; ALTER TABLE test_runs DROP COLUMN is_green;
-- DELETE FROM id_counters WHERE kind IN ('gate_policy', 'gate_result'); DELETE FROM id_directory WHERE kind = 18;
