-- Makes it possible to keep functions of suites that are worth reusing; undone by dropping them.

CREATE SEQUENCE ids_test_function;

CREATE TABLE test_functions (
    id BIGINT NOT NULL,
    project_id BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('page-object-method', 'helper', 'fixture')),
    module TEXT COLLATE "C" NOT NULL,
    -- The whole function, JSON.
    body TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('manual', 'ai-extracted')),
    -- How far its locators can be relied on, 0 to 1.
    confidence DOUBLE PRECISION NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX test_functions_by_name ON test_functions (project_id, module, name);

-- rollback:
-- DROP TABLE test_functions;
-- DROP SEQUENCE ids_test_function;
-- DELETE FROM id_directory WHERE kind = 14;
