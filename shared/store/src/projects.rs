//! Projects and their counters. A project appears with its first submission;
//! its name is unique and matched exactly.

pub mod edit;

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::search::words;
use callboard_domain::time::Timestamp;

use crate::db::{Args, Backend, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::search::{self, SearchKind};
use crate::{Result, StoreError};

/// Which projects a list may show: the caller's scope, applied before any
/// limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visible {
    /// All of them.
    All,
    /// Only these.
    Only(Vec<ProjectId>),
}

impl Visible {
    /// The ids to bind, when the list is limited.
    #[must_use]
    pub fn ids(&self) -> Option<Vec<i64>> {
        match self {
            Self::All => None,
            Self::Only(ids) => Some(ids.iter().map(|id| id.get()).collect()),
        }
    }
}

/// A project with its stored counters.
#[derive(Debug, Clone)]
pub struct ProjectRow {
    /// Id.
    pub id: ProjectId,
    /// Unique name.
    pub name: String,
    /// Name to show instead of the unique one.
    pub label: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Default branch, when known.
    pub default_branch: Option<String>,
    /// Patterns of branches that are followed like the default one.
    pub tracked_branches: Vec<String>,
    /// Address of the repository.
    pub repository_url: Option<String>,
    /// What kind of code host the repository is at.
    pub repository_provider: Option<String>,
    /// Whether a token for the code host is stored.
    pub has_scm_token: bool,
    /// Whether its badge can be shown outside.
    pub has_badge_token: bool,
    /// What a diagnosis should know about the project.
    pub diagnosis_instructions: Option<String>,
    /// Whether a re-run joins the run that it repeats.
    pub joins_reruns: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// Last edit or start of the newest run.
    pub updated_at: Timestamp,
    /// Number of runs, also of those whose details retention deleted.
    pub runs: i64,
    /// Number of runs whose details retention deleted.
    pub expired_runs: i64,
    /// Start of the newest full run whose details retention deleted.
    pub last_expired_at: Option<Timestamp>,
    /// Number of test cases.
    pub test_cases: i64,
    /// Run with the latest start.
    pub latest_run: Option<RunId>,
    /// Full run with the latest start.
    pub latest_full_run: Option<RunId>,
    /// Start of the latest run.
    pub last_run_at: Option<Timestamp>,
    /// Clusters of failures that wait for a repair.
    pub open_clusters: i64,
}

macro_rules! select_project {
    ($tail:literal) => {
        concat!(
            "SELECT p.id, p.name, p.description, p.default_branch, p.created_at, p.updated_at, \
             COALESCE(s.runs, 0), COALESCE(s.test_cases, 0), s.latest_run_id, s.latest_full_run_id, s.last_run_at, \
             p.label, p.tracked_branches, p.repository_url, p.repository_provider, p.scm_token IS NOT NULL, p.diagnosis_instructions, \
             COALESCE(s.open_clusters, 0), p.badge_token_hash IS NOT NULL, COALESCE(s.expired_runs, 0), s.last_expired_at, p.joins_reruns \
             FROM projects p LEFT JOIN project_stats s ON s.project_id = p.id ",
            $tail
        )
    };
}

statements! {
    /// One project by id.
    BY_ID = select_project!("WHERE p.id = $1");
    /// One project by its exact name. ix: projects_name
    BY_NAME = select_project!("WHERE p.name = $1");
    /// Several projects by id.
    BY_IDS = select_project!("WHERE p.id in_ints($1)");
    /// Whether re-runs join the run that they repeat. PK
    JOINS_RERUNS = "SELECT joins_reruns FROM projects WHERE id = $1";
    /// Creates a project unless its name exists. Its re-runs join the run that they repeat. ix: projects_name
    INSERT = "INSERT INTO projects (id, name, description, created_at, updated_at, joins_reruns) \
              VALUES ($1, $2, $3, $4, $4, 1) ON CONFLICT (name) DO NOTHING";
    /// The counters of a new project.
    INSERT_STATS = "INSERT INTO project_stats (project_id, runs, test_cases, executions) VALUES ($1, 0, 0, 0)";
    /// Counts what one ingest added and remembers the latest run.
    COUNT = "UPDATE project_stats SET runs = runs + $2, test_cases = test_cases + $3, executions = executions + $4, \
             latest_run_id = CASE WHEN CAST($5 AS BIGINT) IS NOT NULL AND (last_run_at IS NULL OR last_run_at <= $6 OR latest_run_id IS NULL \
                OR $6 >= (SELECT r.order_at FROM test_runs r WHERE r.project_id = $1 AND r.id = project_stats.latest_run_id)) \
                THEN $5 ELSE latest_run_id END, \
             last_run_at = CASE WHEN CAST($5 AS BIGINT) IS NOT NULL AND (last_run_at IS NULL OR last_run_at <= $6) THEN $6 ELSE last_run_at END, \
             open_clusters = open_clusters + $7 WHERE project_id = $1";
    /// Remembers the latest full run.
    SET_LATEST_FULL = "UPDATE project_stats SET latest_full_run_id = $2 WHERE project_id = $1 AND \
             (latest_full_run_id IS NULL OR $3 >= (SELECT r.order_at FROM test_runs r \
              WHERE r.project_id = $1 AND r.id = project_stats.latest_full_run_id))";
    /// Finds the latest full run anew, when it was a run that no longer counts as one. ix: test_runs_full
    REPLACE_LATEST_FULL = "UPDATE project_stats SET latest_full_run_id = (SELECT r.id FROM test_runs r WHERE r.project_id = $1 \
             AND r.is_full = 1 AND r.id <> $2 AND r.status NOT IN ('initializing', 'running', 'finalizing') \
             ORDER BY r.order_at DESC, r.id DESC LIMIT 1) WHERE project_id = $1 AND latest_full_run_id = $2";
    /// Moves the project up in lists that sort by last activity.
    TOUCH = "UPDATE projects SET updated_at = $2 WHERE id = $1 AND updated_at < $2";
    /// Takes a branch as default branch when none is known.
    ADOPT_DEFAULT_BRANCH = "UPDATE projects SET default_branch = $2 WHERE id = $1 AND default_branch IS NULL";
    /// Full runs of some projects. Lane 0 holds all runs of a project.
    FULL_RUNS = "SELECT project_id, CAST(SUM(runs) AS BIGINT) FROM project_daily \
                 WHERE project_id in_ints($1) AND lane_id = 0 AND is_full = 1 GROUP BY project_id";
    /// The same in an environment. ix: lanes_key
    FULL_RUNS_IN = "SELECT d.project_id, CAST(SUM(d.runs) AS BIGINT) FROM lanes l \
                 JOIN project_daily d ON d.project_id = l.project_id AND d.lane_id = l.id AND d.is_full = 1 \
                 WHERE l.project_id in_ints($1) AND l.kind = 2 AND l.branch = '' AND l.environment = $2 GROUP BY d.project_id";
    /// When the newest full run began that retention deleted, of some projects. PK
    LAST_EXPIRED = "SELECT project_id, last_expired_at FROM project_stats WHERE project_id in_ints($1) AND last_expired_at IS NOT NULL";
    /// Runs of a project, and those of them that are kept. PK
    RUN_COUNTS = "SELECT runs, runs - expired_runs FROM project_stats WHERE project_id = $1";
    /// Sums over all projects.
    TOTALS = "SELECT COUNT(*), CAST(COALESCE(SUM(runs), 0) AS BIGINT), CAST(COALESCE(SUM(test_cases), 0) AS BIGINT), \
              CAST(COALESCE(SUM(executions), 0) AS BIGINT), CAST(COALESCE(SUM(runs - expired_runs), 0) AS BIGINT) FROM project_stats";
}

fn read(row: &Row) -> Result<ProjectRow> {
    let mut r = row.reader();
    Ok(ProjectRow {
        id: ProjectId(r.int()?),
        name: r.text()?,
        description: r.opt_text()?,
        default_branch: r.opt_text()?,
        created_at: r.time()?,
        updated_at: r.time()?,
        runs: r.int()?,
        test_cases: r.int()?,
        latest_run: r.opt_int()?.map(RunId),
        latest_full_run: r.opt_int()?.map(RunId),
        last_run_at: r.opt_time()?,
        label: r.opt_text()?,
        tracked_branches: branches(&r.text()?)?,
        repository_url: r.opt_text()?,
        repository_provider: r.opt_text()?,
        has_scm_token: r.flag()?,
        diagnosis_instructions: r.opt_text()?,
        open_clusters: r.int()?,
        has_badge_token: r.flag()?,
        expired_runs: r.int()?,
        last_expired_at: r.opt_time()?,
        joins_reruns: r.flag()?,
    })
}

fn branches(json: &str) -> Result<Vec<String>> {
    serde_json::from_str(json).map_err(|_| StoreError::Damaged("the tracked branches of a project"))
}

/// One project.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, id: ProjectId) -> Result<Option<ProjectRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// Several projects, in no particular order; missing ones are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(session: &mut Session, ids: Vec<i64>) -> Result<Vec<ProjectRow>> {
    session.all(&BY_IDS, args![ids]).await?.iter().map(read).collect()
}

/// The project of exactly this name.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn find(session: &mut Session, name: &str) -> Result<Option<ProjectRow>> {
    session.first(&BY_NAME, args![name]).await?.as_ref().map(read).transpose()
}

/// A project that a submission names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The project.
    pub id: ProjectId,
    /// Whether this call made it.
    pub is_new: bool,
}

/// The project of this name, created when it does not exist. However many
/// callers come at the same time, one project is made.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_or_create(
    session: &mut Session,
    name: &str,
    description: Option<&str>,
    now: Timestamp,
) -> Result<Named> {
    if let Some(found) = find(session, name).await? {
        return Ok(Named { id: found.id, is_new: false });
    }
    if let Some(id) = create(session, name, description, now).await? {
        return Ok(Named { id, is_new: true });
    }
    let winner = find(session, name).await?;
    let winner = winner.ok_or(StoreError::Damaged("a project name is taken by no project"))?;
    Ok(Named { id: winner.id, is_new: false })
}

/// Whether re-runs of a project join the run that they repeat.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn joins_reruns(session: &mut Session, project: ProjectId) -> Result<bool> {
    let row = session.first(&JOINS_RERUNS, args![project]).await?;
    row.map_or(Ok(false), |row| row.reader().flag())
}

/// Creates a project; `None` when another one has the name.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn create(
    session: &mut Session,
    name: &str,
    description: Option<&str>,
    now: Timestamp,
) -> Result<Option<ProjectId>> {
    let id = ids::allocate_one(session, Kind::Project).await?;
    if session.execute(&INSERT, args![id, name, description, now]).await? == 0 {
        return Ok(None);
    }
    session.write(&INSERT_STATS, args![id]).await?;
    search::add(
        session,
        ProjectId(id),
        SearchKind::Project,
        words([name]).into_iter().map(|word| (word, id)),
    )
    .await?;
    Ok(Some(ProjectId(id)))
}

/// How a list of projects is sorted, with the key of the last row of the page
/// before.
#[derive(Debug, Clone)]
pub enum ProjectOrder {
    /// Most recently active first.
    Updated(Option<(i64, i64)>),
    /// By name.
    Name(Option<(String, i64)>),
    /// Most bytes kept first. Adds up what every visible project keeps.
    Kept(Option<(i64, i64)>),
}

/// A page of projects, of those with a tag when one is given.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    visible: &Visible,
    tag: Option<i64>,
    order: &ProjectOrder,
    limit: i64,
) -> Result<Vec<ProjectRow>> {
    session.list(page(session.backend(), visible, tag, order, limit)).await?.iter().map(read).collect()
}

/// Bytes that a project keeps. ix: storage_totals PK
macro_rules! kept_bytes {
    () => {
        "(SELECT CAST(COALESCE(SUM(t.bytes), 0) AS BIGINT) FROM storage_totals t WHERE t.project_id = p.id)"
    };
}

fn page(backend: Backend, visible: &Visible, tag: Option<i64>, order: &ProjectOrder, limit: i64) -> Filter {
    let filter = Filter::new(backend, select_project!("WHERE 1 = 1"), Args::new())
        .and_if("p.id in_ints(?)", visible.ids())
        // ix: project_tags_of_tag
        .and_if("p.id IN (SELECT t.project_id FROM project_tags t WHERE t.tag_id = ?)", tag);
    match order {
        ProjectOrder::Updated(after) => {
            let filter = match after {
                Some((at, id)) => filter.and("(p.updated_at, p.id) < (?, ?)", args![*at, *id]),
                None => filter,
            };
            filter.end("ORDER BY p.updated_at DESC, p.id DESC LIMIT ?", args![limit])
        }
        ProjectOrder::Name(after) => {
            let filter = match after {
                Some((name, id)) => filter.and("(p.name, p.id) > (?, ?)", args![name, *id]),
                None => filter,
            };
            filter.end("ORDER BY p.name, p.id LIMIT ?", args![limit])
        }
        ProjectOrder::Kept(after) => {
            let filter = match after {
                Some((bytes, id)) => {
                    filter.and(concat!("(", kept_bytes!(), ", p.id) < (?, ?)"), args![*bytes, *id])
                }
                None => filter,
            };
            filter.end(concat!("ORDER BY ", kept_bytes!(), " DESC, p.id DESC LIMIT ?"), args![limit])
        }
    }
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let orders = [
        ProjectOrder::Updated(None),
        ProjectOrder::Updated(Some((0, 0))),
        ProjectOrder::Name(None),
        ProjectOrder::Name(Some((String::new(), 0))),
        ProjectOrder::Kept(None),
        ProjectOrder::Kept(Some((0, 0))),
    ];
    let visible = [Visible::All, Visible::Only(Vec::new())];
    let shape = |visible, order| [None, Some(1)].map(|tag| page(backend, visible, tag, order, 1));
    visible.iter().flat_map(|visible| orders.iter().flat_map(move |order| shape(visible, order))).collect()
}

/// The number of full runs of some projects, of all or in an environment;
/// projects without one are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn full_runs(
    session: &mut Session,
    projects: Vec<i64>,
    environment: Option<&str>,
) -> Result<HashMap<ProjectId, i64>> {
    let rows = match environment {
        Some(environment) => session.all(&FULL_RUNS_IN, args![projects, environment]).await?,
        None => session.all(&FULL_RUNS, args![projects]).await?,
    };
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), r.int()?))
        })
        .collect()
}

/// A `LIKE` pattern for "contains", with the wildcards of the text itself
/// taken literally; compared with a lower-cased column.
#[must_use]
pub fn like_contains(text: &str) -> String {
    format!("%{}%", escape_like(&text.to_lowercase()))
}

/// Escapes the wildcards of `LIKE`.
#[must_use]
pub fn escape_like(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// What one ingest adds to a project's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Growth {
    /// New runs.
    pub runs: i64,
    /// New test cases.
    pub test_cases: i64,
    /// New executions.
    pub executions: i64,
    /// Clusters of failures that became open, less those that ceased to be.
    pub open_clusters: i64,
    /// The new run and its start, when there is one.
    pub new_run: Option<(RunId, Timestamp)>,
}

/// Counts what an ingest added.
///
/// # Errors
/// [`StoreError::ProjectGone`] when the project was deleted meanwhile;
/// [`StoreError::Database`].
pub async fn count(session: &mut Session, project: ProjectId, growth: Growth) -> Result<()> {
    let run = growth.new_run.map(|(run, _)| run.get());
    let at = growth.new_run.map(|(_, at)| at.millis());
    let args =
        args![project, growth.runs, growth.test_cases, growth.executions, run, at, growth.open_clusters];
    let Some((_, at)) = growth.new_run else {
        // A run that is locked has a project, or goes with it.
        let is_there = session.write_locked(&COUNT, args).await?;
        return if is_there { Ok(()) } else { Err(StoreError::ProjectGone) };
    };
    if session.execute(&COUNT, args).await? == 0 {
        return Err(StoreError::ProjectGone);
    }
    session.write(&TOUCH, args![project, at]).await
}

/// Forgets that a run is the latest full one of its project: it counts as
/// partial from now on.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn replace_latest_full(session: &mut Session, project: ProjectId, run: RunId) -> Result<()> {
    session.execute(&REPLACE_LATEST_FULL, args![project, run]).await?;
    Ok(())
}

/// Remembers a full run as the latest one unless a later one is known.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set_latest_full(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    order_at: Timestamp,
) -> Result<()> {
    session.write(&SET_LATEST_FULL, args![project, run, order_at]).await?;
    Ok(())
}

/// Takes a branch as the project's default branch when it has none yet; whether it
/// had none.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn adopt_default_branch(session: &mut Session, project: ProjectId, branch: &str) -> Result<bool> {
    Ok(session.execute(&ADOPT_DEFAULT_BRANCH, args![project, branch]).await? == 1)
}

/// When the newest full run began whose details retention deleted, of each of
/// some projects that has one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn last_expired(
    session: &mut Session,
    projects: Vec<i64>,
) -> Result<HashMap<ProjectId, Timestamp>> {
    let rows = session.all(&LAST_EXPIRED, args![projects]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), r.time()?))
        })
        .collect()
}

/// Counts over the whole installation.
#[derive(Debug, Clone, Copy)]
pub struct InstanceTotals {
    /// Projects.
    pub projects: i64,
    /// Runs.
    pub runs: i64,
    /// Test cases.
    pub test_cases: i64,
    /// Executions, also of runs whose details retention deleted.
    pub executions: i64,
    /// Runs whose details are kept.
    pub kept_runs: i64,
}

/// Sums of the stored counters.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn instance_totals(session: &mut Session) -> Result<InstanceTotals> {
    let row = session.one(&TOTALS, args![]).await?;
    let mut r = row.reader();
    Ok(InstanceTotals {
        projects: r.int()?,
        runs: r.int()?,
        test_cases: r.int()?,
        executions: r.int()?,
        kept_runs: r.int()?,
    })
}

/// Runs of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// All of them, also those whose details retention deleted.
    pub total: i64,
    /// Those whose details are kept.
    pub kept: i64,
}

/// How many runs a project has, from its counters.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn run_counts(session: &mut Session, project: ProjectId) -> Result<RunCounts> {
    let Some(row) = session.first(&RUN_COUNTS, args![project]).await? else {
        return Ok(RunCounts::default());
    };
    let mut r = row.reader();
    Ok(RunCounts { total: r.int()?, kept: r.int()? })
}
