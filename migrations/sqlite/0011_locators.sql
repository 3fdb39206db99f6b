-- Makes it possible to heal a lost locator by what it found before; undone by dropping what is known.

-- One row per call site of a test: the locator there, and the element it found.
CREATE TABLE locator_snapshots (
    project_id INTEGER NOT NULL,
    test_case_id INTEGER NOT NULL,
    location TEXT NOT NULL,
    used_method TEXT NOT NULL,
    used_raw TEXT NOT NULL,
    used_args TEXT NOT NULL,
    -- SHA-256 of method and arguments.
    args_fp BLOB NOT NULL,
    -- '{}' when nobody saw the element.
    element TEXT NOT NULL,
    alternatives TEXT NOT NULL,
    -- What a person chose instead of a locator that was lost here.
    picked TEXT,
    -- The run in which this locator was first seen here, and the last one that wrote the row.
    since_run_id INTEGER NOT NULL,
    last_run_id INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    -- SHA-256 of locator, element and alternatives, so that what did not change is not written.
    content_hash BLOB NOT NULL,
    PRIMARY KEY (project_id, test_case_id, location)
) WITHOUT ROWID;
CREATE INDEX locator_snapshots_args ON locator_snapshots (project_id, args_fp, test_case_id, location);

-- rollback:
-- DROP TABLE locator_snapshots;
