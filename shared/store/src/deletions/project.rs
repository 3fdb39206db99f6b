//! A project on its way out, after its runs: its tables, one bounded step
//! after the other, by key range. Listed here is every table with rows of a
//! project; a new one is a new row of `TABLES`.

use callboard_domain::ids::{DeletionId, ProjectId, RunId};

use super::ObjectCount;
use crate::Result;
use crate::db::{Session, Statement, args, statements};

macro_rules! table {
    ($name:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $name,
            " WHERE project_id = $1 AND (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $name,
            " WHERE project_id = $1 LIMIT $2)"
        )
    };
}

statements! {
    /// The project itself, which frees its name.
    DELETE_PROJECT = "DELETE FROM projects WHERE id = $1";
    /// Its counters: no ingest counts into them any more.
    DELETE_STATS = "DELETE FROM project_stats WHERE project_id = $1";
    /// Who reached it. ix: project_assignments_of_project
    DELETE_ASSIGNMENTS = "DELETE FROM project_assignments WHERE project_id = $1";
    /// What fed its runs. PK
    DELETE_TOKENS = "DELETE FROM run_tokens WHERE project_id = $1";
    /// Its tags. PK
    DELETE_TAGS = "DELETE FROM project_tags WHERE project_id = $1";
    /// Runs of a project, a batch. ix: test_runs_by_time
    RUNS = "SELECT id FROM test_runs WHERE project_id = $1 ORDER BY order_at, id LIMIT $2";
    /// How many runs of a project are kept, from its counters.
    COUNT_RUNS = "SELECT runs - expired_runs FROM project_stats WHERE project_id = $1";
    /// Its places in the directory.
    UNLIST = "DELETE FROM id_directory WHERE project_id = $1";
    /// Content that nothing refers to goes with the project.
    ADOPT_CONTENT = "UPDATE blobs SET receipt_id = $2, state = 'condemned' \
        WHERE project_id = $1 AND refs = 0 AND state IN ('pending', 'condemned') AND receipt_id IS NULL \
        RETURNING COALESCE(own_size, size)";
    TEST_STATE = table!("test_state", "lane_id, test_case_id");
    TEST_DAILY = table!("test_daily", "lane_id, day, test_case_id");
    PROJECT_DAILY = table!("project_daily", "lane_id, day, is_full");
    SPEC_DAILY = table!("spec_daily", "lane_id, day, prefix");
    ENDPOINT_DAILY = table!("endpoint_daily", "day, method, route");
    BROWSER_DAILY = table!("browser_daily", "day, browser_id");
    SUGGESTIONS = table!("cluster_suggestions", "id");
    LANES = table!("lanes", "id");
    BROWSER_PROJECTS = table!("browser_projects", "id");
    TEST_CASE_TAGS = table!("test_case_tags", "tag, test_case_id");
    TEST_CASES = table!("test_cases", "id");
    QUARANTINE = table!("quarantine", "id");
    RUN_GROUPS = table!("run_groups", "instance_id, shard_total");
    GATE_POLICIES = table!("gate_policies", "id");
    SEARCH_TERMS = table!("search_terms", "term, kind, entity_id");
    CLUSTERS = table!("failure_clusters", "id");
    CLUSTER_ROUTES = table!("cluster_routes", "fingerprint, test_case_id");
    TEMPLATES = table!("fingerprint_templates", "id");
    CLUSTER_TESTS = table!("cluster_tests", "cluster_id, test_case_id");
    CLUSTER_DAILY = table!("cluster_daily", "cluster_id, day");
    LOCATORS = table!("locator_snapshots", "test_case_id, location");
    RUN_STORAGE = table!("run_storage", "run_id, kind, outcome_class");
    STORAGE_TOTALS = table!("storage_totals", "kind, outcome_class");
    STORAGE_DAILY = table!("storage_daily", "day");
    LINKS = table!("entity_links", "id");
    MARKERS = table!("markers", "id");
    SETTINGS = table!("project_settings", "grp");
    TEST_FUNCTIONS = table!("test_functions", "id");
    EXPORTS = table!("exports", "id");
    DELETED_EXECUTIONS = table!("deleted_executions", "run_id, id");
    DELETED_RUNS = table!("deleted_runs", "id");
    RUN_SLOTS = table!("run_slots", "id");
    HISTORY_JOINS = table!("history_joins", "id");
    PATH_PREFIXES = table!("path_prefixes", "present, earlier");
    SHARED_PATHS = table!("shared_paths", "path");
    EXPIRED_RUNS = table!("expired_runs", "id");
    EXPIRED_BRANCHES = table!("expired_cluster_branches", "cluster_id, branch");
    DOMAIN_EVENTS = table!("domain_events", "id");
    EVENT_STREAMS = table!("event_streams", "project_id");
    EVENT_CURSORS = table!("event_cursors", "subscriber");
    BRANCH_STATES = table!("branch_states", "lane_id");
    SUBSCRIPTIONS = table!("subscriptions", "id");
    DELIVERIES = table!("deliveries", "id");
    HELD_NOTIFICATIONS = table!("held_notifications", "dedupe_key");
    TOLD_STATES = table!("told_states", "subject, channel_id");
    QUOTA_STATES = table!("quota_states", "project_id");
    SCM_CACHE = table!("scm_cache", "key");
    DIAGNOSES = table!("diagnoses", "id");
    DIAGNOSIS_VOTES = table!("diagnosis_votes", "diagnosis_id, user_id");
    MODEL_USAGE = table!("model_usage", "day, provider, model, purpose");
    FEEDBACK = table!("scm_feedback", "run_id, kind");
    FEEDBACK_TARGETS = table!("scm_feedback_targets", "target");
    FEEDBACK_LOG = table!("scm_feedback_log", "id");
    STATUS_NAMES = table!("scm_status_names", "repository, context");
}

/// The tables of a project besides its runs, in the order they are emptied.
static TABLES: &[&Statement] = &[
    &TEST_STATE,
    &TEST_DAILY,
    &PROJECT_DAILY,
    &SPEC_DAILY,
    &ENDPOINT_DAILY,
    &BROWSER_DAILY,
    &QUARANTINE,
    &GATE_POLICIES,
    &SEARCH_TERMS,
    &CLUSTER_TESTS,
    &CLUSTER_DAILY,
    &CLUSTER_ROUTES,
    &TEMPLATES,
    &CLUSTERS,
    &SUGGESTIONS,
    &LOCATORS,
    &RUN_STORAGE,
    &STORAGE_TOTALS,
    &STORAGE_DAILY,
    &LINKS,
    &MARKERS,
    &SETTINGS,
    &TEST_FUNCTIONS,
    &EXPORTS,
    &TEST_CASE_TAGS,
    &TEST_CASES,
    &HISTORY_JOINS,
    &PATH_PREFIXES,
    &SHARED_PATHS,
    &RUN_GROUPS,
    &BROWSER_PROJECTS,
    &LANES,
    &DELETED_EXECUTIONS,
    &DELETED_RUNS,
    &RUN_SLOTS,
    &EXPIRED_RUNS,
    &EXPIRED_BRANCHES,
    &DOMAIN_EVENTS,
    &EVENT_CURSORS,
    &EVENT_STREAMS,
    &BRANCH_STATES,
    &SUBSCRIPTIONS,
    &DELIVERIES,
    &HELD_NOTIFICATIONS,
    &TOLD_STATES,
    &QUOTA_STATES,
    &SCM_CACHE,
    &DIAGNOSES,
    &DIAGNOSIS_VOTES,
    &MODEL_USAGE,
    &FEEDBACK,
    &FEEDBACK_TARGETS,
    &FEEDBACK_LOG,
    &STATUS_NAMES,
];

/// Hides a project: nobody finds it, nothing is sent to it, and its name is
/// free again.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn hide(session: &mut Session, project: ProjectId) -> Result<()> {
    for statement in [&DELETE_STATS, &DELETE_ASSIGNMENTS, &DELETE_TOKENS, &DELETE_TAGS, &DELETE_PROJECT] {
        session.execute(statement, args![project]).await?;
    }
    Ok(())
}

/// How many runs of a project are kept.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count_runs(session: &mut Session, project: ProjectId) -> Result<i64> {
    let row = session.first(&COUNT_RUNS, args![project]).await?;
    row.map_or(Ok(0), |row| row.reader().int())
}

/// At most `limit` runs of a project, oldest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn runs(session: &mut Session, project: ProjectId, limit: i64) -> Result<Vec<RunId>> {
    let rows = session.all(&RUNS, args![project, limit]).await?;
    rows.iter().map(|row| row.reader().int().map(RunId)).collect()
}

/// Deletes a batch of at most `limit` rows of the first table that has some;
/// `None` when all are empty.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete_rows(session: &mut Session, project: ProjectId, limit: i64) -> Result<Option<i64>> {
    for table in TABLES {
        let deleted = session.execute(table, args![project, limit]).await?;
        if deleted > 0 {
            return Ok(Some(i64::try_from(deleted).unwrap_or(i64::MAX)));
        }
    }
    session.execute(&UNLIST, args![project]).await?;
    Ok(None)
}

/// Gives all content of a project that nothing refers to, to the deletion;
/// answers how many objects that are.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn adopt_content(
    session: &mut Session,
    project: ProjectId,
    receipt: DeletionId,
) -> Result<ObjectCount> {
    let mut adopted = ObjectCount::default();
    for row in session.all(&ADOPT_CONTENT, args![project, receipt]).await? {
        adopted.add(1, row.reader().int()?);
    }
    Ok(adopted)
}
