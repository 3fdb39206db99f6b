-- Makes the planner read by the keys a statement names; undone by forgetting what it was told.
--
-- SQLite that knows nothing of a table takes the rows of a project for ten, and walks
-- all of them rather than the key range of one run. These are the proportions of an
-- instance that is in use: many rows in a project, few of each run, test or day. They
-- are not measured again, so plans do not change under a running service. PostgreSQL
-- gathers its own.

ANALYZE sqlite_schema;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('executions', 'executions_history', '10000000 1000000 10000 10 1 1'),
    ('executions', 'executions_rank', '500000 50000 10000 1'),
    ('executions', 'executions_cluster', '300000 30000 100 5 1'),
    ('test_runs', 'test_runs_by_time', '100000 10000 1 1'),
    ('test_runs', 'test_runs_all_by_time', '100000 1 1'),
    ('test_runs', 'test_runs_by_branch', '100000 10000 200 1 1'),
    ('test_runs', 'test_runs_by_environment', '100000 10000 3000 1 1'),
    ('test_runs', 'test_runs_by_status', '100000 10000 2000 1 1'),
    ('test_runs', 'test_runs_by_commit', '80000 8000 2 1'),
    ('test_runs', 'test_runs_by_instance', '60000 6000 2 1'),
    ('test_runs', 'test_runs_green', '30000 3000 100 1 1'),
    ('test_runs', 'test_runs_full', '80000 8000 1 1'),
    ('test_runs', 'test_runs_open', '50 5 1'),
    ('test_cases', 'test_cases_identity', '50000 5000 1'),
    ('test_cases', 'test_cases_by_file', '50000 5000 5 1'),
    ('test_cases', 'test_cases_by_owner', '10000 1000 50 1'),
    ('test_case_tags', 'test_case_tags', '100000 10000 100 1'),
    ('test_case_tags', 'test_case_tags_of_case', '100000 10000 2'),
    ('test_state', 'test_state', '500000 50000 2000 1'),
    ('test_state', 'test_state_by_day', '500000 50000 2000 50 1'),
    ('test_state', 'test_state_by_category', '500000 50000 2000 300 1'),
    ('test_state', 'test_state_by_speed', '500000 50000 2000 100 1'),
    ('test_state', 'test_state_by_flakiness', '20000 2000 100 2 1'),
    ('test_daily', 'test_daily', '5000000 500000 20000 500 1'),
    ('failure_clusters', 'failure_clusters_by_last', '10000 1000 300 1 1'),
    ('failure_clusters', 'failure_clusters_by_count', '10000 1000 300 5 1'),
    ('failure_clusters', 'failure_clusters_open', '10000 3000 5 1'),
    ('failure_clusters', 'failure_clusters_assigned', '500 50 5 1'),
    ('cluster_routes', 'cluster_routes', '12000 1200 1 1'),
    ('cluster_routes', 'cluster_routes_to', '12000 1200 2'),
    ('cluster_tests', 'cluster_tests', '40000 4000 4 1'),
    ('cluster_tests', 'cluster_tests_of_test', '40000 4000 3 1'),
    ('cluster_runs', 'cluster_runs', '200000 20000 4 1'),
    ('cluster_runs', 'cluster_runs_of_cluster', '200000 20000 50 1'),
    ('cluster_daily', 'cluster_daily', '100000 10000 20 1'),
    ('files', 'files_of_run', '1000000 100000 10 1'),
    ('files', 'files_of_execution', '1000000 100000 3 2 1'),
    ('files', 'files_path', '1000000 100000 1'),
    ('files', 'files_content', '1000000 100000 10 3 2 1 1 1 1'),
    ('reports', 'reports_of_run', '100000 10000 1 1'),
    ('reports', 'reports_content', '100000 10000 1 1 1'),
    ('reports', 'reports_pending', '10 1'),
    ('packs', 'packs_of_run', '500000 50000 5'),
    ('run_slots', 'run_slots_of_run', '150000 15000 2 1 1'),
    ('run_slots', 'run_slots_start_key', '100000 10000 1'),
    ('run_slots', 'run_slots_recovery_key', '100000 10000 1'),
    ('run_tokens', 'run_tokens', '20000 2000 1'),
    ('run_tokens', 'run_tokens_of_run', '20000 2000 2'),
    ('run_tokens', 'run_tokens_by_expiry', '20000 1'),
    ('run_feed', 'run_feed', '200000 20000 200 1'),
    ('run_feed', 'run_feed_by_expiry', '200000 1'),
    ('blobs', 'blobs_content', '1000000 100000 30000 1'),
    ('blobs', 'blobs_collection', '1000 500 1'),
    ('blobs', 'blobs_of_receipt', '100 10'),
    ('trace_members', 'trace_members', '5000000 500000 100 1'),
    ('trace_members', 'trace_members_of_pool', '5000000 500000 5'),
    ('locator_snapshots', 'locator_snapshots', '500000 50000 10 1'),
    ('locator_snapshots', 'locator_snapshots_args', '500000 50000 10 2 1'),
    ('search_terms', 'search_terms', '1000000 5 5 3 1'),
    ('search_terms', 'search_terms_of_entity', '1000000 100000 30000 8 1'),
    ('lanes', 'lanes', '2000 200 1'),
    ('lanes', 'lanes_key', '2000 200 50 2 1'),
    ('lanes', 'lanes_by_last_run', '2000 200 1'),
    ('lanes', 'lanes_with_numbers', '1500 150 1'),
    ('test_runs', 'test_runs_by_expiry', '90000 1 1'),
    ('files', 'files_by_expiry', '900000 100 1'),
    ('reports', 'reports_by_expiry', '90000 1 1'),
    ('packs', 'packs_by_trim', '400000 10 5'),
    ('cluster_routes', 'cluster_routes_by_version', '12000 6000');
-- This connection reads them now, others when they open or see that the schema changed.
ANALYZE sqlite_schema;

-- rollback:
-- DELETE FROM sqlite_stat1;
-- ANALYZE sqlite_schema;
