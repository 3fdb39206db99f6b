-- Makes it possible to compare runs with what was green before, to gate on that, to pin runs, and to search by words;
-- undone by dropping it. The undo loses pins, policies and the results of gates.

CREATE SEQUENCE ids_gate_policy;
CREATE SEQUENCE ids_gate_result;

ALTER TABLE test_runs ADD COLUMN is_green SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN new_regressions INTEGER;
ALTER TABLE test_runs ADD COLUMN new_flaky INTEGER;
ALTER TABLE test_runs ADD COLUMN fixed INTEGER;
ALTER TABLE test_runs ADD COLUMN quarantined_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE test_runs ADD COLUMN pinned_at BIGINT;
ALTER TABLE test_runs ADD COLUMN pinned_by BIGINT;
ALTER TABLE test_runs ADD COLUMN pin_reason TEXT;
UPDATE test_runs SET is_green = 1 WHERE is_full = 1 AND status = 'passed';
CREATE INDEX test_runs_green ON test_runs (project_id, lane_id, order_at, id) WHERE is_green = 1;

CREATE TABLE gate_policies (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    policy TEXT NOT NULL,
    is_default SMALLINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX gate_policies_name ON gate_policies (project_id, name);

CREATE TABLE gate_results (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    id BIGINT NOT NULL,
    policy_name TEXT,
    passed SMALLINT NOT NULL,
    violations INTEGER NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    by_user BIGINT,
    PRIMARY KEY (project_id, run_id, id)
);

-- Words are compared byte by byte, so that the words with a prefix are one range of the key.
CREATE TABLE search_terms (
    kind SMALLINT NOT NULL,
    term TEXT COLLATE "C" NOT NULL,
    project_id BIGINT NOT NULL,
    entity_id BIGINT NOT NULL,
    PRIMARY KEY (kind, term, project_id, entity_id)
);
CREATE INDEX search_terms_of_entity ON search_terms (project_id, kind, entity_id, term);

-- rollback:
-- DROP TABLE search_terms; DROP TABLE gate_results; DROP TABLE gate_policies; DROP INDEX test_runs_green;
-- ALTER TABLE test_runs DROP COLUMN pin_reason, DROP COLUMN pinned_by, DROP COLUMN pinned_at,
--     DROP COLUMN quarantined_failed, DROP COLUMN fixed, DROP COLUMN new_flaky, DROP COLUMN new_regressions,
--     DROP COLUMN is_green;
-- DROP SEQUENCE ids_gate_result; DROP SEQUENCE ids_gate_policy; DELETE FROM id_directory WHERE kind = 18;
