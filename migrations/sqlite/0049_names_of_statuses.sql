-- Stores which project sets a commit status of which name in a repository, so that two projects never overwrite each
-- other, and how often a comment of another account was replaced. Undone by dropping what is added here.

CREATE TABLE scm_status_names (
    repository TEXT NOT NULL,
    context TEXT NOT NULL,
    project_id INTEGER NOT NULL,
    PRIMARY KEY (repository, context)
) WITHOUT ROWID;
CREATE INDEX scm_status_names_of_project ON scm_status_names (project_id);

-- Places are named by one address for each repository, whatever the scheme in the settings.
UPDATE scm_feedback_targets SET target = replace(target, ' http://', ' https://') WHERE target LIKE '% http://%'
    AND NOT EXISTS (SELECT 1 FROM scm_feedback_targets other WHERE other.project_id = scm_feedback_targets.project_id
        AND other.target = replace(scm_feedback_targets.target, ' http://', ' https://'));

ALTER TABLE scm_feedback_targets ADD COLUMN times_replaced INTEGER NOT NULL DEFAULT 0;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('scm_status_names', 'scm_status_names', '200 2 1'),
    ('scm_status_names', 'scm_status_names_of_project', '200 2');
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1 WHERE tbl = 'scm_status_names';
-- ALTER TABLE scm_feedback_targets DROP COLUMN times_replaced; DROP TABLE scm_status_names;
