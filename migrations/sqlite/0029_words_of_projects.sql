-- The words of each project in their order, so that longer words are looked for among those of the projects somebody sees.

CREATE INDEX search_terms_of_project ON search_terms (project_id, kind, term, entity_id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('search_terms', 'search_terms_of_project', '1000000 100000 30000 8 1');

-- rollback:
-- DROP INDEX search_terms_of_project;
-- DELETE FROM sqlite_stat1 WHERE idx = 'search_terms_of_project';
