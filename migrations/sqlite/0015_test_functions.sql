-- Makes it possible to keep functions of suites that are worth reusing; undone by dropping them.

CREATE TABLE test_functions (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('page-object-method', 'helper', 'fixture')),
    module TEXT NOT NULL,
    -- The whole function, JSON.
    body TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('manual', 'ai-extracted')),
    -- How far its locators can be relied on, 0 to 1.
    confidence REAL NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX test_functions_by_name ON test_functions (project_id, module, name);

-- rollback:
-- DROP TABLE test_functions;
-- DELETE FROM id_counters WHERE kind = 'test_function';
-- DELETE FROM id_directory WHERE kind = 14;
