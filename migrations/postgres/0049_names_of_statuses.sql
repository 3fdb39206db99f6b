-- Stores which project sets a commit status of which name in a repository, so that two projects never overwrite each
-- other, and how often a comment of another account was replaced. Undone by dropping what is added here.

CREATE TABLE scm_status_names (
    repository TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    project_id BIGINT NOT NULL,
    PRIMARY KEY (repository, context)
);
CREATE INDEX scm_status_names_of_project ON scm_status_names (project_id);

-- Places are named by one address for each repository, whatever the scheme in the settings.
UPDATE scm_feedback_targets SET target = replace(target, ' http://', ' https://') WHERE target LIKE '% http://%'
    AND NOT EXISTS (SELECT 1 FROM scm_feedback_targets other WHERE other.project_id = scm_feedback_targets.project_id
        AND other.target = replace(scm_feedback_targets.target, ' http://', ' https://'));

ALTER TABLE scm_feedback_targets ADD COLUMN times_replaced BIGINT NOT NULL DEFAULT 0;

-- rollback:
-- ALTER TABLE scm_feedback_targets DROP COLUMN times_replaced; DROP TABLE scm_status_names;
