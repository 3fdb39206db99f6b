//! The red streak that an execution is part of: where it lies between commits,
//! and how the test did on them.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::{Window, assess};
use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::suspects::{Observation, reds_needed};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::{ExecutionRow, HistoryFilter, Walk};
use callboard_store::{lanes, rollups, runs};

use super::subject::Subject;
use crate::{Context, Result};

/// Executions that are looked at, the newest ones.
const EXECUTIONS: i64 = 200;
/// What decides whether the test passes on a commit.
const DECIDED: [Outcome; 4] = [Outcome::Passed, Outcome::Failed, Outcome::TimedOut, Outcome::Flaky];
const FAILED: [Outcome; 2] = [Outcome::Failed, Outcome::TimedOut];

/// A test that is red since some commit.
#[derive(Debug, Clone)]
pub(crate) struct Streak {
    pub(crate) test_case: TestCaseId,
    pub(crate) browser: i64,
    pub(crate) file_path: String,
    pub(crate) suite_path: Vec<String>,
    pub(crate) title: String,
    /// Its browser project; empty for the only one.
    pub(crate) browser_project: String,
    /// The run in which it passed last, and its commit.
    pub(crate) green: (RunId, String),
    /// The first run of the streak, and its commit where it is known.
    pub(crate) first_red: (RunId, Option<String>),
    /// Commit at which the range ends: that of the failure with which chance is
    /// out of the question.
    pub(crate) head: String,
    /// When the two ends ran.
    pub(crate) between: (Timestamp, Timestamp),
    /// Runs of the streak up to the execution.
    pub(crate) reds: usize,
    /// How probably a run of it fails by chance.
    pub(crate) flake_rate: f64,
    /// How it did since the pass, on whatever branch.
    pub(crate) observations: Vec<Observation>,
}

/// Why there is no streak to look into. The text is one sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoStreak {
    /// The execution did not fail.
    #[error("The test did not fail in this run.")]
    NotFailed,
    /// The test never passed before.
    #[error("The test never passed before this failure, so there is no commit to begin with.")]
    NoGreenRun,
    /// One end of the streak has no commit.
    #[error("The last pass or the failure ran with uncommitted changes, or did not name its commit.")]
    UnknownCommit,
    /// Nothing changed in the repository.
    #[error(
        "The test passed and failed on the same commit: no commit between them can be the cause. It is flaky, or something outside the repository changed."
    )]
    SameCommit,
}

/// The streak of failures that an execution is part of.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub(crate) async fn streak(
    ctx: &Context,
    project: Authorized<ProjectId>,
    execution: ExecutionId,
    now: Timestamp,
) -> Result<std::result::Result<Streak, NoStreak>> {
    let subject = Box::pin(Subject::read(ctx, project, execution)).await?;
    if !FAILED.contains(&subject.row.outcome) {
        return Ok(Err(NoStreak::NotFailed));
    }
    let Some(green) = subject.last_passed(ctx).await? else { return Ok(Err(NoStreak::NoGreenRun)) };
    let mut session = ctx.store.db().read().await?;
    let reds = reds(&mut session, &subject, green.run.order_at).await?;
    let flake_rate = flake_rate(&mut session, &subject).await?;
    let chance = of_run(flake_rate, subject.row.retries);
    let commits = commits(&mut session, project.get(), reds.iter().map(|(_, row)| row.run)).await?;
    let commit_of = |run: RunId| commits.get(&run).cloned().flatten();
    let needed = reds_needed(chance).saturating_sub(1).min(reds.len().saturating_sub(1));
    // A failure without a commit cannot end the range; a later one can.
    let end = reds[needed..].iter().find_map(|(at, row)| Some((*at, commit_of(row.run)?)));
    let base = green.run.commit_sha.as_deref().filter(|_| !green.run.is_dirty);
    let (Some(base), Some((head_at, head))) = (base.map(str::to_ascii_lowercase), end) else {
        return Ok(Err(NoStreak::UnknownCommit));
    };
    if base == head {
        return Ok(Err(NoStreak::SameCommit));
    }
    let first = reds.first().map_or(subject.row.run, |(_, row)| row.run);
    let browsers = lanes::browsers(&mut session, project.get()).await?;
    let browser = browsers.into_iter().find(|browser| browser.id == subject.row.browser_id);
    let observations = observations(&mut session, &subject, (green.run.order_at, now), flake_rate).await?;
    Ok(Ok(Streak {
        test_case: subject.row.test_case,
        browser: subject.row.browser_id,
        file_path: subject.case.file_path.clone(),
        suite_path: subject.case.suite_path.clone(),
        title: subject.case.title.clone(),
        browser_project: browser.map(|browser| browser.name).unwrap_or_default(),
        first_red: (first, commit_of(first)),
        between: (green.run.order_at, head_at),
        green: (green.run.id, base),
        head,
        reds: reds.len(),
        flake_rate: chance,
        observations,
    }))
}

/// How probably a run fails by chance that tries so often.
fn of_run(flake_rate: f64, retries: i64) -> f64 {
    flake_rate.powi(i32::try_from(retries.clamp(0, 20)).unwrap_or(0) + 1)
}

/// The share of attempts that fail by chance.
async fn flake_rate(session: &mut Session, subject: &Subject) -> Result<f64> {
    let row = &subject.row;
    let state = rollups::state(session, row.project, row.lane_id, row.test_case).await?;
    let found = state.and_then(|state| assess(state.recent(), Window::standard(true)));
    Ok(found.map_or(0.0, |found| found.posterior.rate))
}

/// The failures of the test in the lane of the execution, from the first one after
/// its last pass to the execution itself; one for each run.
async fn reds(
    session: &mut Session,
    subject: &Subject,
    green_at: Timestamp,
) -> Result<Vec<(Timestamp, ExecutionRow)>> {
    let wanted = HistoryFilter {
        lanes: Some(vec![subject.row.lane_id]),
        browser: Some(subject.row.browser_id),
        outcomes: Some(FAILED.map(Outcome::code).to_vec()),
        without_mass_failures: true,
        from: Some(green_at),
        to: Some(subject.run.order_at),
        ..HistoryFilter::default()
    };
    let mut found = walk(session, subject, &wanted, (green_at, subject.run.order_at)).await?;
    found.retain(|(at, _)| *at > green_at && *at <= subject.run.order_at);
    found.reverse();
    found.dedup_by_key(|(_, row)| row.run);
    if found.is_empty() {
        // A run in which nearly everything failed is still the one that is asked about.
        found.push((subject.run.order_at, subject.row.clone()));
    }
    Ok(found)
}

/// How the test did between two moments on the commits that were tested, in its
/// browser project.
async fn observations(
    session: &mut Session,
    subject: &Subject,
    between: (Timestamp, Timestamp),
    flake_rate: f64,
) -> Result<Vec<Observation>> {
    let wanted = HistoryFilter {
        browser: Some(subject.row.browser_id),
        outcomes: Some(DECIDED.map(Outcome::code).to_vec()),
        without_mass_failures: true,
        from: Some(between.0),
        to: Some(between.1),
        ..HistoryFilter::default()
    };
    let rows = walk(session, subject, &wanted, between).await?;
    let commits = commits(session, subject.row.project, rows.iter().map(|(_, row)| row.run)).await?;
    let observed = rows.into_iter().filter_map(|(_, row)| {
        let has_failed = FAILED.contains(&row.outcome);
        let sha = commits.get(&row.run)?.clone()?;
        Some(Observation { sha, has_failed, flake_rate: of_run(flake_rate, row.retries) })
    });
    Ok(observed.collect())
}

async fn walk(
    session: &mut Session,
    subject: &Subject,
    wanted: &HistoryFilter,
    (from, to): (Timestamp, Timestamp),
) -> Result<Vec<(Timestamp, ExecutionRow)>> {
    let walk = Walk {
        project: subject.row.project,
        test_case: subject.row.test_case,
        wanted,
        newest: to.day(),
        first_seen: from.day(),
        limit: EXECUTIONS,
    };
    Ok(walk.executions(session).await?.rows)
}

/// The commits of some runs. Uncommitted changes belong to none.
async fn commits(
    session: &mut Session,
    project: ProjectId,
    ids: impl Iterator<Item = RunId>,
) -> Result<HashMap<RunId, Option<String>>> {
    let mut ids: Vec<i64> = ids.map(RunId::get).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = runs::get_many(session, project, ids).await?;
    let commit =
        |run: &runs::RunRow| run.commit_sha.as_deref().filter(|_| !run.is_dirty).map(str::to_ascii_lowercase);
    Ok(found.iter().map(|run| (run.id, commit(run))).collect())
}
