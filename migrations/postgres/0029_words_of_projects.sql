-- The words of each project in their order, so that longer words are looked for among those of the projects somebody sees.

CREATE INDEX search_terms_of_project ON search_terms (project_id, kind, term, entity_id);

-- rollback:
-- DROP INDEX search_terms_of_project;
