//! The newest runs of several projects together, each with its own limit: one
//! statement however many projects a page shows.

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::run_reason::RunEnd;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;

use super::row::totals;
use crate::db::{Row, Session, Statement, args};
use crate::{Result, StoreError};

/// A run as strips and small tables show it. Home reads a thousand of them, for
/// which the width of a row counts.
#[derive(Debug, Clone)]
pub struct BriefRow {
    /// Id.
    pub id: RunId,
    /// Project.
    pub project: ProjectId,
    /// Status.
    pub status: RunStatus,
    /// Start by the client's clock.
    pub start_time: Timestamp,
    /// Its place among the runs of its project.
    pub order_at: Timestamp,
    /// Wall clock, ms.
    pub duration_ms: Option<i64>,
    /// Totals.
    pub totals: Totals,
    /// Branch; empty when none was told.
    pub branch: String,
    /// Environment; empty when none was told.
    pub environment: String,
    /// Commit.
    pub commit_sha: Option<String>,
    /// Display label.
    pub label: Option<String>,
    /// Whether it counts as a run of the whole suite.
    pub is_full: bool,
    /// Whether other runs may be measured against it.
    pub is_green: bool,
    /// Why it ended, when not by its results.
    pub end_reason: Option<EndReason>,
    /// Number of its errors that belong to no test.
    pub error_count: i64,
    /// Headline of the first of them.
    pub first_error: Option<String>,
    /// Whether its details are kept; retention deleted them otherwise.
    pub is_kept: bool,
}

impl BriefRow {
    /// How it ended.
    #[must_use]
    pub fn end(&self) -> RunEnd<'_> {
        RunEnd {
            status: self.status,
            end_reason: self.end_reason,
            totals: &self.totals,
            errors: self.error_count,
            first_error: self.first_error.as_deref(),
        }
    }
}

macro_rules! brief_columns {
    () => {
        "id, project_id, status, start_time, order_at, duration, total, passed, failed, timedout, interrupted, skipped, \
         didnotrun, flaky, branch, environment, commit_sha, label, is_full, is_green, end_reason, error_count, first_error"
    };
}
pub(super) use brief_columns;

macro_rules! select_brief {
    ($tail:literal) => {
        concat!("SELECT ", brief_columns!(), " FROM test_runs ", $tail)
    };
}

pub(super) fn read(row: &Row) -> Result<BriefRow> {
    let mut r = row.reader();
    Ok(BriefRow {
        id: RunId(r.int()?),
        project: ProjectId(r.int()?),
        status: RunStatus::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown run status"))?,
        start_time: r.time()?,
        order_at: r.time()?,
        duration_ms: r.opt_int()?,
        totals: totals(&mut r)?,
        branch: r.text()?,
        environment: r.text()?,
        commit_sha: r.opt_text()?,
        label: r.opt_text()?,
        is_full: r.flag()?,
        is_green: r.flag()?,
        end_reason: r.opt_text()?.as_deref().and_then(EndReason::parse),
        error_count: r.int()?,
        first_error: r.opt_text()?,
        is_kept: true,
    })
}

/// On PostgreSQL the newest runs of each project are asked for side by side.
/// SQLite has no such join: there it is asked since when each project's newest
/// runs started, and all of them from then on are taken.
macro_rules! newest {
    ($(#[$doc:meta])* $name:ident: $inner:literal, $outer:literal) => {
        $(#[$doc])*
        static $name: Statement = Statement::of_each(
            concat!("runs::newest::", stringify!($name)),
            concat!(
                "WITH newest AS (SELECT p.id AS of_project, p.default_branch AS of_branch, COALESCE((SELECT x.order_at FROM test_runs x \
                 WHERE x.project_id = p.id", $inner, " ORDER BY x.order_at DESC, x.id DESC LIMIT 1 OFFSET $2 - 1), 0) AS since \
                 FROM projects p WHERE p.id in_ints($1) LIMIT 10000) ",
                select_brief!($outer)
            ),
            // The name of the table stands for its part from then on.
            concat!(
                "WITH test_runs AS (SELECT r.* FROM projects p CROSS JOIN LATERAL (SELECT * FROM test_runs x \
                 WHERE x.project_id = p.id", $inner, " ORDER BY x.order_at DESC, x.id DESC LIMIT $2) r WHERE p.id in_ints($1)) ",
                select_brief!("ORDER BY project_id, order_at DESC, id DESC")
            ),
        );
    };
}

newest! {
    /// The newest runs of some projects. ix: test_runs_by_time
    NEWEST_OF: "", "JOIN newest ON project_id = of_project AND order_at >= since ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The newest runs of some projects in an environment. ix: test_runs_by_environment
    NEWEST_OF_ENVIRONMENT: " AND x.environment = $3",
    "JOIN newest ON project_id = of_project AND order_at >= since AND environment = $3 \
     ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The newest runs of a branch of some projects. ix: test_runs_by_branch
    NEWEST_OF_BRANCH: " AND x.branch = $3",
    "JOIN newest ON project_id = of_project AND branch = $3 AND order_at >= since \
     ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The same in an environment. ix: test_runs_by_branch
    NEWEST_OF_BRANCH_IN_ENVIRONMENT: " AND x.branch = $3 AND x.environment = $4",
    "JOIN newest ON project_id = of_project AND branch = $3 AND order_at >= since AND environment = $4 \
     ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The newest full runs of some projects that are final. ix: test_runs_full
    NEWEST_FULL_OF: " AND x.is_full = 1 AND x.status NOT IN ('initializing', 'running', 'finalizing')",
    "JOIN newest ON project_id = of_project AND order_at >= since \
     WHERE is_full = 1 AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The same in an environment. ix: test_runs_by_environment
    NEWEST_FULL_OF_ENVIRONMENT:
    " AND x.environment = $3 AND x.is_full = 1 AND x.status NOT IN ('initializing', 'running', 'finalizing')",
    "JOIN newest ON project_id = of_project AND order_at >= since AND environment = $3 \
     WHERE is_full = 1 AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The newest full runs of the default branches of some projects that are final. ix: test_runs_full_of_branch
    NEWEST_FULL_OF_DEFAULT:
    " AND x.branch = p.default_branch AND x.is_full = 1 AND x.status NOT IN ('initializing', 'running', 'finalizing')",
    "JOIN newest ON project_id = of_project AND branch = of_branch AND order_at >= since \
     WHERE is_full = 1 AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The same in an environment. ix: test_runs_full_of_branch
    NEWEST_FULL_OF_DEFAULT_IN_ENVIRONMENT:
    " AND x.branch = p.default_branch AND x.environment = $3 AND x.is_full = 1 \
     AND x.status NOT IN ('initializing', 'running', 'finalizing')",
    "JOIN newest ON project_id = of_project AND branch = of_branch AND order_at >= since AND environment = $3 \
     WHERE is_full = 1 AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY project_id, order_at DESC, id DESC"
}

newest! {
    /// The newest full runs of a branch of some projects that are final. ix: test_runs_full_of_branch
    NEWEST_FULL_OF_BRANCH:
    " AND x.branch = $3 AND x.is_full = 1 AND x.status NOT IN ('initializing', 'running', 'finalizing')",
    "JOIN newest ON project_id = of_project AND branch = $3 AND order_at >= since \
     WHERE is_full = 1 AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY project_id, order_at DESC, id DESC"
}
newest! {
    /// The same in an environment. ix: test_runs_full_of_branch
    NEWEST_FULL_OF_BRANCH_IN_ENVIRONMENT:
    " AND x.branch = $3 AND x.environment = $4 AND x.is_full = 1 \
     AND x.status NOT IN ('initializing', 'running', 'finalizing')",
    "JOIN newest ON project_id = of_project AND branch = $3 AND order_at >= since AND environment = $4 \
     WHERE is_full = 1 AND status NOT IN ('initializing', 'running', 'finalizing') ORDER BY project_id, order_at DESC, id DESC"
}

/// The latest run of each of several projects.
static LATEST_OF: Statement = Statement::new(
    "runs::newest::LATEST_OF",
    select_brief!(
        "JOIN (SELECT s.project_id AS of_project, s.latest_run_id FROM project_stats s \
         WHERE s.project_id in_ints($1)) latest ON project_id = of_project AND id = latest_run_id"
    ),
);

/// Every statement of this module.
pub(crate) static STATEMENTS: &[&Statement] = &[
    &LATEST_OF,
    &NEWEST_OF,
    &NEWEST_OF_ENVIRONMENT,
    &NEWEST_OF_BRANCH,
    &NEWEST_OF_BRANCH_IN_ENVIRONMENT,
    &NEWEST_FULL_OF,
    &NEWEST_FULL_OF_ENVIRONMENT,
    &NEWEST_FULL_OF_DEFAULT,
    &NEWEST_FULL_OF_DEFAULT_IN_ENVIRONMENT,
    &NEWEST_FULL_OF_BRANCH,
    &NEWEST_FULL_OF_BRANCH_IN_ENVIRONMENT,
];

/// The latest run of each of several projects, in no particular order.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn latest_of(session: &mut Session, projects: Vec<i64>) -> Result<Vec<BriefRow>> {
    session.all(&LATEST_OF, args![projects]).await?.iter().map(read).collect()
}

/// Which runs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newest<'a> {
    /// All of them.
    All,
    /// Those of a branch; an empty word is "none recorded".
    OfBranch(&'a str),
    /// Full ones that are final.
    Full,
    /// Those of them that are of their project's default branch.
    FullOfDefaultBranch,
    /// Those of them that are of a branch; an empty word is "none recorded".
    FullOfBranch(&'a str),
}

/// The newest `limit` runs of each project, newest first; projects without
/// one are left out. An empty environment means runs without one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn newest_of(
    session: &mut Session,
    projects: Vec<i64>,
    which: Newest<'_>,
    environment: Option<&str>,
    limit: usize,
) -> Result<HashMap<ProjectId, Vec<BriefRow>>> {
    if projects.is_empty() {
        return Ok(HashMap::new());
    }
    let most = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let rows = match (which, environment) {
        (Newest::All, None) => session.all(&NEWEST_OF, args![projects, most]).await?,
        (Newest::All, Some(name)) => session.all(&NEWEST_OF_ENVIRONMENT, args![projects, most, name]).await?,
        (Newest::OfBranch(branch), None) => {
            session.all(&NEWEST_OF_BRANCH, args![projects, most, branch]).await?
        }
        (Newest::OfBranch(branch), Some(name)) => {
            session.all(&NEWEST_OF_BRANCH_IN_ENVIRONMENT, args![projects, most, branch, name]).await?
        }
        (Newest::Full, None) => session.all(&NEWEST_FULL_OF, args![projects, most]).await?,
        (Newest::Full, Some(name)) => {
            session.all(&NEWEST_FULL_OF_ENVIRONMENT, args![projects, most, name]).await?
        }
        (Newest::FullOfDefaultBranch, None) => {
            session.all(&NEWEST_FULL_OF_DEFAULT, args![projects, most]).await?
        }
        (Newest::FullOfDefaultBranch, Some(name)) => {
            session.all(&NEWEST_FULL_OF_DEFAULT_IN_ENVIRONMENT, args![projects, most, name]).await?
        }
        (Newest::FullOfBranch(branch), None) => {
            session.all(&NEWEST_FULL_OF_BRANCH, args![projects, most, branch]).await?
        }
        (Newest::FullOfBranch(branch), Some(name)) => {
            session.all(&NEWEST_FULL_OF_BRANCH_IN_ENVIRONMENT, args![projects, most, branch, name]).await?
        }
    };
    let mut newest: HashMap<ProjectId, Vec<BriefRow>> = HashMap::new();
    for row in &rows {
        let run = read(row)?;
        let of_project = newest.entry(run.project).or_default();
        // Runs that started in the same millisecond as the last one come along.
        if of_project.len() < limit {
            of_project.push(run);
        }
    }
    Ok(newest)
}
