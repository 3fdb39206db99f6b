//! What a failure shows that can be looked for in commits, and what its test
//! did on them.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::status::Outcome;
use callboard_domain::suspects::{Clues, Observation};
use callboard_domain::time::Timestamp;
use callboard_store::executions::{HistoryFilter, Walk};
use callboard_store::{rollups, runs};

use super::environment::compare;
use super::subject::Subject;
use crate::{Context, Result};

/// Executions of the test that are looked at, the newest ones.
const EXECUTIONS: i64 = 60;
/// What decides whether the test passes on a commit.
const DECIDED: [Outcome; 4] = [Outcome::Passed, Outcome::Failed, Outcome::TimedOut, Outcome::Flaky];

/// What an execution shows of its failure, and how its test did between two
/// moments on the commits that were tested.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub(crate) async fn clues(
    ctx: &Context,
    project: Authorized<ProjectId>,
    execution: ExecutionId,
    (from, to): (Timestamp, Timestamp),
) -> Result<(Clues, Vec<Observation>)> {
    let subject = Box::pin(Subject::read(ctx, project, execution)).await?;
    let environment: Vec<String> = match subject.last_passed(ctx).await? {
        Some(last) => {
            let found = Box::pin(compare(ctx, &subject, last)).await?;
            found.into_iter().filter(|found| !found.informational).map(|found| found.key).collect()
        }
        None => Vec::new(),
    };
    let clues = Clues::of_failure(&subject.case.file_path, &subject.evidence, &environment);
    Ok((clues, observations(ctx, &subject, from, to).await?))
}

/// Whether the test of an execution passed on the commits tested between two
/// moments, in its browser project.
async fn observations(
    ctx: &Context,
    subject: &Subject,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Observation>> {
    let project = subject.row.project;
    let mut session = ctx.store.db().read().await?;
    let state = rollups::state(&mut session, project, subject.row.lane_id, subject.row.test_case).await?;
    let flake_rate = state.map_or(0.0, |state| {
        let counts = state.counts();
        let decided = (counts.passed_tests + counts.failed_tests).max(1);
        // Counts of one test are far below what a double holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "counts of one test")]
        let rate = counts.flaky_tests as f64 / decided as f64;
        rate
    });
    let wanted = HistoryFilter {
        browser: Some(subject.row.browser_id),
        outcomes: Some(DECIDED.map(Outcome::code).to_vec()),
        without_mass_failures: true,
        from: Some(from),
        to: Some(to),
        ..HistoryFilter::default()
    };
    let walk = Walk {
        project,
        test_case: subject.row.test_case,
        wanted: &wanted,
        newest: to.day(),
        first_seen: from.day(),
        limit: EXECUTIONS,
    };
    let rows = walk.executions(&mut session).await?.rows;
    let mut ids: Vec<i64> = rows.iter().map(|(_, row)| row.run.get()).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = runs::get_many(&mut session, project, ids).await?;
    // Uncommitted changes belong to no commit.
    let commits: HashMap<_, _> =
        found.into_iter().filter(|run| !run.is_dirty).map(|run| (run.id, run.commit_sha)).collect();
    let observed = rows.into_iter().filter_map(|(_, row)| {
        let has_failed = matches!(row.outcome, Outcome::Failed | Outcome::TimedOut);
        let sha = commits.get(&row.run)?.as_ref()?.to_ascii_lowercase();
        Some(Observation { sha, has_failed, flake_rate })
    });
    Ok(observed.collect())
}
