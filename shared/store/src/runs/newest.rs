//! The newest runs of several projects at once, each with its own limit: one
//! statement however many projects a page shows.

use std::collections::HashMap;

use callboard_domain::ids::ProjectId;

use super::{RunRow, read};
use crate::Result;
use crate::db::{Session, Statement, args};

/// On PostgreSQL the newest runs of each project are asked for side by side.
/// SQLite has no such join: there it is asked since when each project's newest
/// runs started, and all of them from then on are taken.
macro_rules! newest {
    ($(#[$doc:meta])* $name:ident: $inner:literal, $outer:literal) => {
        $(#[$doc])*
        static $name: Statement = Statement::of_each(
            concat!("runs::newest::", stringify!($name)),
            concat!(
                "WITH newest AS (SELECT p.id AS of_project, COALESCE((SELECT x.order_at FROM test_runs x \
                 WHERE x.project_id = p.id", $inner, " ORDER BY x.order_at DESC, x.id DESC LIMIT 1 OFFSET $2 - 1), 0) AS since \
                 FROM projects p WHERE p.id in_ints($1) LIMIT 10000) ",
                select_run!($outer)
            ),
            // The name of the table stands for its part from then on.
            concat!(
                "WITH test_runs AS (SELECT r.* FROM projects p CROSS JOIN LATERAL (SELECT * FROM test_runs x \
                 WHERE x.project_id = p.id", $inner, " ORDER BY x.order_at DESC, x.id DESC LIMIT $2) r WHERE p.id in_ints($1)) ",
                select_run!("ORDER BY project_id, order_at DESC, id DESC")
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

/// Every statement of this module.
pub(crate) static STATEMENTS: &[&Statement] =
    &[&NEWEST_OF, &NEWEST_OF_ENVIRONMENT, &NEWEST_FULL_OF, &NEWEST_FULL_OF_ENVIRONMENT];

/// Which runs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newest {
    /// All of them.
    All,
    /// Full ones that are final.
    Full,
}

/// The newest `limit` runs of each project, newest first; projects without
/// one are left out. An empty environment means runs without one.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database) when the database
/// refuses.
pub async fn newest_of(
    session: &mut Session,
    projects: Vec<i64>,
    which: Newest,
    environment: Option<&str>,
    limit: usize,
) -> Result<HashMap<ProjectId, Vec<RunRow>>> {
    if projects.is_empty() {
        return Ok(HashMap::new());
    }
    let most = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let rows = match (which, environment) {
        (Newest::All, None) => session.all(&NEWEST_OF, args![projects, most]).await?,
        (Newest::All, Some(name)) => session.all(&NEWEST_OF_ENVIRONMENT, args![projects, most, name]).await?,
        (Newest::Full, None) => session.all(&NEWEST_FULL_OF, args![projects, most]).await?,
        (Newest::Full, Some(name)) => {
            session.all(&NEWEST_FULL_OF_ENVIRONMENT, args![projects, most, name]).await?
        }
    };
    let mut newest: HashMap<ProjectId, Vec<RunRow>> = HashMap::new();
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
