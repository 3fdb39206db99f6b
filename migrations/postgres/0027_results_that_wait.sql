-- Keeps what running clients sent from its acknowledgement until it is worked into its run; undone by dropping the
-- tables. Before the undo nothing may wait (run_intake is empty), or results that were acknowledged are lost.

CREATE TABLE run_intake (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    slot_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    refusals SMALLINT NOT NULL DEFAULT 0,
    pack_id BIGINT,
    body BYTEA NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- It is compressed already.
ALTER TABLE run_intake ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX run_intake_of_run ON run_intake (project_id, run_id);

-- Attempts that clients of runs that go on have sent.
CREATE TABLE run_intake_keys (
    project_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    key BIGINT NOT NULL,
    PRIMARY KEY (project_id, run_id, key)
);

-- rollback:
-- DROP TABLE run_intake_keys;
-- DROP TABLE run_intake;
