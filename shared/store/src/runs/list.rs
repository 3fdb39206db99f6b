//! Runs of one project or of all, by start and id.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;

use super::row::{RunRow, TestDurations, read, select_run};
use crate::db::{Backend, Filter, Session, args};
use crate::{Result, StoreError};

/// The conditions of a list of runs that an index leads with.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only this branch (empty: runs without one).
    pub branch: Option<String>,
    /// Only this environment (empty: runs without one).
    pub environment: Option<String>,
    /// Only this status.
    pub status: Option<RunStatus>,
    /// Only commits beginning with this lower-case hex text.
    pub commit_prefix: Option<String>,
    /// Started at this moment or later.
    pub from: Option<Timestamp>,
    /// Started before this moment.
    pub before: Option<Timestamp>,
    /// Only full, or only partial runs.
    pub is_full: Option<bool>,
    /// Only runs that are final.
    pub finished: bool,
    /// Oldest first instead of newest first.
    pub ascending: bool,
    /// Key of the last row of the page before: start and id.
    pub after: Option<(i64, i64)>,
}

/// A page of runs of one project, or of all projects, by start and id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: Option<ProjectId>,
    wanted: &RunFilter,
    limit: i64,
) -> Result<Vec<RunRow>> {
    session.list(filter(session.backend(), project, wanted, limit)).await?.iter().map(read).collect()
}

/// A run as a point of a chart of durations.
#[derive(Debug, Clone)]
pub struct DurationRow {
    /// Id.
    pub id: RunId,
    /// Sort key of all lists.
    pub order_at: Timestamp,
    /// Start by the client's clock.
    pub start_time: Timestamp,
    /// Wall clock, ms.
    pub duration_ms: Option<i64>,
    /// Status.
    pub status: RunStatus,
    /// Tests.
    pub total_tests: i64,
    /// Commit.
    pub commit_sha: Option<String>,
    /// Branch; empty when none was told.
    pub branch: String,
    /// Whether the whole suite was asked for.
    pub is_full: bool,
    /// How long its tests took.
    pub test_durations: TestDurations,
}

/// [`list`] of one project, with the few columns of a chart of durations.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn durations(
    session: &mut Session,
    project: ProjectId,
    wanted: &RunFilter,
    limit: i64,
) -> Result<Vec<DurationRow>> {
    let rows = session.list(durations_filter(session.backend(), project, wanted, limit)).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(DurationRow {
                id: RunId(r.int()?),
                order_at: r.time()?,
                start_time: r.time()?,
                duration_ms: r.opt_int()?,
                status: RunStatus::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown run status"))?,
                total_tests: r.int()?,
                commit_sha: r.opt_text()?,
                branch: r.text()?,
                is_full: r.flag()?,
                test_durations: TestDurations {
                    mean: r.opt_int()?,
                    p50: r.opt_int()?,
                    p90: r.opt_int()?,
                    p95: r.opt_int()?,
                },
            })
        })
        .collect()
}

fn durations_filter(backend: Backend, project: ProjectId, wanted: &RunFilter, limit: i64) -> Filter {
    let base = "SELECT id, order_at, start_time, duration, status, total, commit_sha, branch, is_full, avg_ms, p50_ms, \
                p90_ms, p95_ms FROM test_runs WHERE project_id = $1";
    conditions(Filter::new(backend, base, args![project]), wanted, limit)
}

fn filter(backend: Backend, project: Option<ProjectId>, wanted: &RunFilter, limit: i64) -> Filter {
    let filter = match project {
        Some(project) => Filter::new(backend, select_run!("WHERE project_id = $1"), args![project]),
        // Not those of hidden projects.
        None => Filter::new(
            backend,
            select_run!("WHERE EXISTS (SELECT 1 FROM projects p WHERE p.id = test_runs.project_id)"),
            args![],
        ),
    };
    conditions(filter, wanted, limit)
}

fn conditions(filter: Filter, wanted: &RunFilter, limit: i64) -> Filter {
    let filter = filter
        .and_if("branch = ?", wanted.branch.clone())
        .and_if("environment = ?", wanted.environment.clone())
        .and_if("status = ?", wanted.status.map(RunStatus::as_str))
        .and_if("commit_sha >= ?", wanted.commit_prefix.clone())
        .and_if("commit_sha < ?", wanted.commit_prefix.as_ref().map(|prefix| format!("{prefix}g")))
        .and_if("order_at >= ?", wanted.from.map(Timestamp::millis))
        .and_if("order_at < ?", wanted.before.map(Timestamp::millis));
    let filter = full_or_partial(filter, wanted.is_full);
    let filter = if wanted.finished {
        filter.and("status NOT IN ('initializing', 'running', 'finalizing')", args![])
    } else {
        filter
    };
    let filter = match (wanted.after, wanted.ascending) {
        (Some((at, id)), false) => filter.and("(order_at, id) < (?, ?)", args![at, id]),
        (Some((at, id)), true) => filter.and("(order_at, id) > (?, ?)", args![at, id]),
        (None, _) => filter,
    };
    if wanted.ascending {
        filter.end("ORDER BY order_at, id LIMIT ?", args![limit])
    } else {
        filter.end("ORDER BY order_at DESC, id DESC LIMIT ?", args![limit])
    }
}

/// The runs of one project that are counted.
#[derive(Debug, Clone, Default)]
pub struct RunsCounted {
    /// Only these branches (empty word: runs without one).
    pub branches: Option<Vec<String>>,
    /// Only these environments (empty word: runs without one).
    pub environments: Option<Vec<String>>,
    /// Only these statuses.
    pub statuses: Option<Vec<String>>,
    /// Started at this moment or later.
    pub from: Option<Timestamp>,
    /// Started before this moment.
    pub before: Option<Timestamp>,
    /// Only full, or only partial runs.
    pub is_full: Option<bool>,
}

/// How many runs of a project there are, up to `most`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count(
    session: &mut Session,
    project: ProjectId,
    wanted: &RunsCounted,
    most: i64,
) -> Result<i64> {
    session.count(counting(session.backend(), project, wanted, most)).await
}

fn counting(backend: Backend, project: ProjectId, wanted: &RunsCounted, most: i64) -> Filter {
    let base = "SELECT COUNT(*) FROM (SELECT 1 FROM test_runs WHERE project_id = $1";
    let filter = Filter::new(backend, base, args![project])
        .and_if("branch in_texts(?)", wanted.branches.clone())
        .and_if("environment in_texts(?)", wanted.environments.clone())
        .and_if("status in_texts(?)", wanted.statuses.clone())
        .and_if("order_at >= ?", wanted.from.map(Timestamp::millis))
        .and_if("order_at < ?", wanted.before.map(Timestamp::millis));
    full_or_partial(filter, wanted.is_full).end("LIMIT ?) counted", args![most])
}

fn full_or_partial(filter: Filter, is_full: Option<bool>) -> Filter {
    // Written out, so that the partial index of full runs may serve it. ix: test_runs_full
    match is_full {
        Some(true) => filter.and("is_full = 1", args![]),
        Some(false) => filter.and("is_full = 0", args![]),
        None => filter,
    }
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = RunFilter {
        branch: Some(String::new()),
        environment: Some(String::new()),
        status: Some(RunStatus::Passed),
        commit_prefix: Some(String::new()),
        from: Some(Timestamp(0)),
        before: Some(Timestamp(0)),
        is_full: Some(true),
        finished: true,
        ascending: false,
        after: Some((0, 0)),
    };
    let ascending = RunFilter { ascending: true, is_full: Some(false), ..all.clone() };
    let project = Some(ProjectId(1));
    let words = Some(vec![String::new()]);
    let counted = RunsCounted {
        branches: words.clone(),
        environments: words.clone(),
        statuses: words,
        from: Some(Timestamp(0)),
        before: Some(Timestamp(0)),
        is_full: Some(true),
    };
    let lists =
        [(None, RunFilter::default()), (project, RunFilter::default()), (project, all), (None, ascending)]
            .map(|(project, wanted)| filter(backend, project, &wanted, 1));
    let counts = [RunsCounted::default(), counted].map(|wanted| counting(backend, ProjectId(1), &wanted, 1));
    let durations = durations_filter(backend, ProjectId(1), &RunFilter::default(), 1);
    lists.into_iter().chain(counts).chain([durations]).collect()
}
