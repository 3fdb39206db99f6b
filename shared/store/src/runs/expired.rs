//! How runs ended whose details retention deleted. States, streaks and badges
//! are by the newest full runs of a branch, and stay what they are when these
//! runs are no longer kept. Of each branch and environment a bounded number of
//! rows is stored.

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, RunId};

use super::newest::{BriefRow, Newest, brief_columns, read};
use crate::Result;
use crate::db::{Row, Session, Statement, args, statements};

/// Full runs that are stored of each branch and environment; as many as a
/// streak looks at.
pub const MAX_FULL_RUNS: i64 = 20;

statements! {
    /// Stores how some runs of a project that is not deleted ended. PK
    KEEP = concat!("INSERT INTO expired_runs (", brief_columns!(), ") SELECT ", brief_columns!(), " FROM test_runs \
        WHERE project_id = $1 AND id in_ints($2) AND status NOT IN ('initializing', 'running', 'finalizing') \
        AND EXISTS (SELECT 1 FROM project_stats s WHERE s.project_id = $1)");
    /// Removes all but the newest rows of the branches of some runs. ix: expired_runs_by_branch
    TRIM = "DELETE FROM expired_runs WHERE project_id = $1 AND id IN (SELECT id FROM (SELECT x.id, x.is_full, \
        ROW_NUMBER() OVER (PARTITION BY x.branch, x.environment, x.is_full ORDER BY x.order_at DESC, x.id DESC) AS place \
        FROM expired_runs x WHERE x.project_id = $1 AND x.branch IN (SELECT r.branch FROM test_runs r \
            WHERE r.project_id = $1 AND r.id in_ints($2))) placed WHERE place > CASE WHEN is_full = 1 THEN $3 ELSE 1 END)";
    /// Stores on which branches some runs showed their clusters. PK
    KEEP_BRANCHES = "INSERT INTO expired_cluster_branches (project_id, cluster_id, branch, last_run_id) \
        SELECT k.project_id, k.cluster_id, r.branch, MAX(r.id) FROM test_runs r \
        JOIN cluster_runs k ON k.project_id = r.project_id AND k.run_id = r.id \
        WHERE r.project_id = $1 AND r.id in_ints($2) AND r.branch <> '' AND EXISTS (SELECT 1 FROM project_stats s WHERE s.project_id = $1) \
        GROUP BY k.project_id, k.cluster_id, r.branch ON CONFLICT (project_id, cluster_id, branch) DO UPDATE SET \
        last_run_id = CASE WHEN excluded.last_run_id > expired_cluster_branches.last_run_id THEN excluded.last_run_id \
            ELSE expired_cluster_branches.last_run_id END";
    /// Forgets how a run ended that is back. PK
    FORGET = "DELETE FROM expired_runs WHERE project_id = $1 AND id = $2";
    /// Forgets the runs of a branch whose numbers are deleted. ix: expired_runs_by_branch
    FORGET_BRANCH = "DELETE FROM expired_runs WHERE project_id = $1 AND branch = (SELECT l.branch FROM lanes l \
        WHERE l.project_id = $1 AND l.id = $2 AND l.kind = 1)";
    /// The newest one of each of some projects. ix: expired_runs_by_time
    LATEST_OF = concat!("SELECT ", brief_columns!(), " FROM expired_runs WHERE project_id in_ints($1) AND id = (SELECT x.id \
        FROM expired_runs x WHERE x.project_id = expired_runs.project_id ORDER BY x.order_at DESC, x.id DESC LIMIT 1)");
}

/// The newest full ones of some projects, newest first, at most `$2` of each
/// and a few more that began in the same millisecond as the last one.
macro_rules! newest_full {
    ($(#[$doc:meta])* $name:ident: $inner:literal, $outer:literal) => {
        $(#[$doc])*
        static $name: Statement = Statement::of_each(
            concat!("runs::expired::", stringify!($name)),
            concat!(
                "WITH newest AS (SELECT p.id AS of_project, p.default_branch AS of_branch, COALESCE((SELECT x.order_at FROM expired_runs x \
                 WHERE x.project_id = p.id AND x.is_full = 1", $inner, " ORDER BY x.order_at DESC, x.id DESC LIMIT 1 OFFSET $2 - 1), 0) AS since \
                 FROM projects p WHERE p.id in_ints($1) LIMIT 10000) SELECT ", brief_columns!(), " FROM expired_runs \
                 JOIN newest ON project_id = of_project AND order_at >= since", $outer,
                " WHERE is_full = 1 ORDER BY project_id, order_at DESC, id DESC"
            ),
            concat!(
                "SELECT ", brief_columns!(), " FROM (SELECT r.* FROM projects p CROSS JOIN LATERAL (SELECT * FROM expired_runs x \
                 WHERE x.project_id = p.id AND x.is_full = 1", $inner, " ORDER BY x.order_at DESC, x.id DESC LIMIT $2) r \
                 WHERE p.id in_ints($1)) newest ORDER BY project_id, order_at DESC, id DESC"
            ),
        );
    };
}

newest_full! {
    /// Of any branch. ix: expired_runs_by_time
    FULL: "", ""
}
newest_full! {
    /// Of any branch in an environment. ix: expired_runs_by_time
    FULL_IN_ENVIRONMENT: " AND x.environment = $3", " AND environment = $3"
}
newest_full! {
    /// Of the default branch of each. ix: expired_runs_by_branch
    FULL_OF_DEFAULT: " AND x.branch = p.default_branch", " AND branch = of_branch"
}
newest_full! {
    /// The same in an environment. ix: expired_runs_by_branch
    FULL_OF_DEFAULT_IN_ENVIRONMENT:
    " AND x.branch = p.default_branch AND x.environment = $3", " AND branch = of_branch AND environment = $3"
}
newest_full! {
    /// Of a branch. ix: expired_runs_by_branch
    FULL_OF_BRANCH: " AND x.branch = $3", " AND branch = $3"
}
newest_full! {
    /// The same in an environment. ix: expired_runs_by_branch
    FULL_OF_BRANCH_IN_ENVIRONMENT:
    " AND x.branch = $3 AND x.environment = $4", " AND branch = $3 AND environment = $4"
}

/// The statements that differ between the engines.
pub(crate) static OF_EACH_ENGINE: &[&Statement] = &[
    &FULL,
    &FULL_IN_ENVIRONMENT,
    &FULL_OF_DEFAULT,
    &FULL_OF_DEFAULT_IN_ENVIRONMENT,
    &FULL_OF_BRANCH,
    &FULL_OF_BRANCH_IN_ENVIRONMENT,
];

fn expired(row: &Row) -> Result<BriefRow> {
    Ok(BriefRow { is_kept: false, ..read(row)? })
}

/// Stores how runs ended that are about to be deleted while what they counted
/// for stays.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn keep(session: &mut Session, project: ProjectId, runs: Vec<i64>) -> Result<()> {
    session.execute(&KEEP, args![project, runs.clone()]).await?;
    session.execute(&TRIM, args![project, runs.clone(), MAX_FULL_RUNS]).await?;
    session.execute(&KEEP_BRANCHES, args![project, runs]).await?;
    Ok(())
}

/// Forgets how a run ended that is back.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn forget(session: &mut Session, project: ProjectId, run: RunId) -> Result<()> {
    session.execute(&FORGET, args![project, run]).await?;
    Ok(())
}

/// Forgets the runs of the branch of a lane whose numbers are deleted; nothing
/// happens when it is the lane of an environment.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub(crate) async fn forget_branch(session: &mut Session, project: ProjectId, lane: i64) -> Result<()> {
    session.execute(&FORGET_BRANCH, args![project, lane]).await?;
    Ok(())
}

/// The newest run of each of some projects that retention deleted, in no
/// particular order.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn latest_of(session: &mut Session, projects: Vec<i64>) -> Result<Vec<BriefRow>> {
    if projects.is_empty() {
        return Ok(Vec::new());
    }
    session.all(&LATEST_OF, args![projects]).await?.iter().map(expired).collect()
}

/// Adds to the newest full runs of some projects, newest first, those that
/// retention deleted, as long as there are fewer than `limit` of a project or
/// older ones among them. `projects` are those of which full runs were deleted.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn complete(
    session: &mut Session,
    found: &mut HashMap<ProjectId, Vec<BriefRow>>,
    projects: Vec<i64>,
    which: Newest<'_>,
    environment: Option<&str>,
    limit: usize,
) -> Result<()> {
    if projects.is_empty() {
        return Ok(());
    }
    let most = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let rows = match (which, environment) {
        (Newest::Full, None) => session.all(&FULL, args![projects, most]).await?,
        (Newest::Full, Some(name)) => session.all(&FULL_IN_ENVIRONMENT, args![projects, most, name]).await?,
        (Newest::FullOfDefaultBranch, None) => session.all(&FULL_OF_DEFAULT, args![projects, most]).await?,
        (Newest::FullOfDefaultBranch, Some(name)) => {
            session.all(&FULL_OF_DEFAULT_IN_ENVIRONMENT, args![projects, most, name]).await?
        }
        (Newest::FullOfBranch(branch), None) => {
            session.all(&FULL_OF_BRANCH, args![projects, most, branch]).await?
        }
        (Newest::FullOfBranch(branch), Some(name)) => {
            session.all(&FULL_OF_BRANCH_IN_ENVIRONMENT, args![projects, most, branch, name]).await?
        }
        // Lists hold runs that are kept.
        (Newest::All | Newest::OfBranch(_), _) => Vec::new(),
    };
    let mut of_each: HashMap<ProjectId, Vec<BriefRow>> = HashMap::new();
    for row in &rows {
        let run = expired(row)?;
        of_each.entry(run.project).or_default().push(run);
    }
    for (project, runs) in of_each {
        let all = found.entry(project).or_default();
        all.extend(runs);
        all.sort_unstable_by_key(|run| std::cmp::Reverse((run.order_at, run.id)));
        all.truncate(limit);
    }
    Ok(())
}
