//! What a finished run says about its tests: whether it says anything at all,
//! and why those are flaky that are.
//!
//! Everything is a function of rows, so a late shard or a repeated job gives
//! the same as if all had come at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::{self, FailingAttempt, Place, RootCause, categorise};
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{Applied, TestState};
use callboard_store::db::Session;
use callboard_store::executions::{
    self, ExecutionFilter, ExecutionOrder, ExecutionRow, HistoryFilter, RunPlace,
};
use callboard_store::{lanes, rollups, runs, test_cases};

use super::chunk::stored_attempts;
use super::locked::LockedRun;
use super::rollup::{observed, rebuild_histories};
use crate::flakiness::judged_lane;
use crate::test_cases::LaneQuery;
use crate::{Context, Entity, QueryError, Result};

/// Executions that are judged together.
const BATCH: i64 = 2_000;
/// Failed and flaky tests of a run whose causes are looked for.
const MOST_TESTS: i64 = 200;
/// Newest decided executions of a test that are read for its cause.
const EVIDENCE: i64 = 50;

/// Judges a final run.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn judge_run(ctx: &Context, project: ProjectId, run: RunId) -> Result<()> {
    mark_mass_failure(ctx, project, run).await?;
    find_causes(ctx, project, run).await
}

/// Notes whether the run failed as a whole, on its row and in the recent
/// history of each of its tests. One transaction, so that it is done as a
/// whole or not at all; it is rarely needed.
async fn mark_mass_failure(ctx: &Context, project: ProjectId, id: RunId) -> Result<()> {
    let known = runs::get(&mut ctx.store.db().read().await?, project, id).await?;
    let is_one = |run: &runs::RunRow| {
        run.status.is_final() && run.totals_from_rows && flakiness::is_mass_failure(&run.totals)
    };
    if known.is_none_or(|run| is_one(&run) == run.is_mass_failure) {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    let LockedRun { mut run, lanes, .. } = LockedRun::lock(&mut session, project, id).await?;
    let is_mass_failure = is_one(&run);
    if is_mass_failure == run.is_mass_failure {
        return Ok(());
    }
    runs::set_mass_failure(&mut session, project, id, is_mass_failure).await?;
    let before = run.clone();
    run.is_mass_failure = is_mass_failure;
    let place = RunPlace { project, run: id, day: run.order_at.day(), lane_id: run.lane_id };
    let mut after: Option<i64> = None;
    loop {
        let order = ExecutionOrder::Id(after);
        let filter = ExecutionFilter::default();
        let rows = executions::list(&mut session, project, id, &filter, &order, BATCH).await?;
        let Some(last) = rows.last() else { break };
        after = Some(last.id.get());
        let cases: BTreeSet<TestCaseId> = rows.iter().map(|row| row.test_case).collect();
        let cases: Vec<TestCaseId> = cases.into_iter().collect();
        let mut states = rollups::lock_states(&mut session, project, &lanes, &cases).await?;
        let mut rebuild = BTreeSet::new();
        for row in &rows {
            for lane in &lanes {
                let Some(state) = states.get_mut(&(*lane, row.test_case)) else { continue };
                if state.apply(Some(&observed(row, &before)), &observed(row, &run)) == Applied::NeedsRebuild {
                    rebuild.insert((*lane, row.test_case));
                }
            }
        }
        rebuild_histories(&mut session, place, &mut states, &rebuild).await?;
        rollups::write_states(&mut session, project, &states).await?;
    }
    session.commit().await?;
    Ok(())
}

/// Finds out why those tests are flaky that failed or flaked in the run.
async fn find_causes(ctx: &Context, project: ProjectId, id: RunId) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    let Some(run) = runs::get(&mut session, project, id).await? else { return Ok(()) };
    if run.is_mass_failure || !run.status.is_final() {
        return Ok(());
    }
    let filter = ExecutionFilter {
        outcomes: Some([Outcome::Failed, Outcome::TimedOut, Outcome::Flaky].map(Outcome::code).to_vec()),
        ..ExecutionFilter::default()
    };
    let order = ExecutionOrder::Trouble(None);
    let rows = executions::list(&mut session, project, id, &filter, &order, MOST_TESTS).await?;
    let cases: BTreeSet<i64> = rows.iter().map(|row| row.test_case.get()).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let Some(lane) = judged_lane(&mut session, project, &LaneQuery::default()).await? else {
        return Ok(());
    };
    let states =
        rollups::scores::states_of(&mut session, project, lane.id, cases.into_iter().collect()).await?;
    let mut found = BTreeMap::new();
    for (case, state) in states {
        if flakiness::class_of(&state, lane.believes_failures).is_listed() {
            found.insert(case, cause_of(&mut session, project, case, &state).await?);
        }
    }
    drop(session);
    let mut session = ctx.store.db().begin().await?;
    for (case, cause) in found {
        test_cases::set_root_cause(&mut session, project, case, cause.as_str()).await?;
    }
    session.commit().await?;
    Ok(())
}

/// Finds out why a test is flaky, and notes it.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn classify(ctx: &Context, project: Authorized<ProjectId>, case: TestCaseId) -> Result<RootCause> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let lane = lanes::find_lane(&mut session, project, &LaneQuery::default().key()).await?;
    let state = match lane {
        Some(lane) => rollups::state(&mut session, project, lane, case).await?,
        None => None,
    };
    let state = state.ok_or_else(|| QueryError::not_found(Entity::TestCase, case))?;
    let cause = cause_of(&mut session, project, case, &state).await?;
    test_cases::set_root_cause(&mut session, project, case, cause.as_str()).await?;
    session.commit().await?;
    Ok(cause)
}

async fn cause_of(
    session: &mut Session,
    project: ProjectId,
    case: TestCaseId,
    state: &TestState,
) -> Result<RootCause> {
    let decided = [Outcome::Failed, Outcome::TimedOut, Outcome::Flaky, Outcome::Passed];
    let filter =
        HistoryFilter { outcomes: Some(decided.map(Outcome::code).to_vec()), ..HistoryFilter::default() };
    let (newest, first) = (state.last_day(), state.first_seen_at().day());
    let rows = executions::history(session, project, case, &filter, newest, first, EVIDENCE).await?.rows;
    let rows: Vec<ExecutionRow> = rows.into_iter().map(|(_, row)| row).collect();
    let mut attempts = Vec::new();
    for row in &rows {
        attempts.extend(failing_attempts(row)?);
    }
    let browsers = lanes::browsers(session, project).await?;
    let lane_ids: BTreeSet<i64> = rows.iter().map(|row| row.lane_id).collect();
    let environments: HashMap<i64, String> =
        lanes::environments_of(session, project, lane_ids.into_iter().collect()).await?.into_iter().collect();
    let mut places = places(&rows, "browser project", |row| {
        browsers.iter().find(|browser| browser.id == row.browser_id).map(|browser| browser.name.clone())
    });
    places.extend(self::places(&rows, "environment", |row| environments.get(&row.lane_id).cloned()));
    places.extend(self::places(&rows, "shard", |row| row.facts.shard_index.map(|shard| shard.to_string())));
    Ok(categorise(&attempts, &places).cause)
}

/// The attempts of an execution that failed.
fn failing_attempts(row: &ExecutionRow) -> Result<Vec<FailingAttempt>> {
    let attempts = stored_attempts(row)?;
    let failing = attempts.attempts().into_iter().filter(|attempt| attempt.status.is_failing());
    Ok(failing
        .map(|attempt| FailingAttempt {
            error: attempt.facts.error_summary.clone(),
            timed_out: attempt.status == callboard_domain::status::TestStatus::TimedOut,
            duration_ms: attempt.duration_ms,
            timeout_ms: attempt.facts.timeout_ms.or(row.facts.timeout_ms),
            passed_on_retry: row.outcome == Outcome::Flaky,
        })
        .collect())
}

/// Counts executions by where they ran; those that do not say are left out.
fn places(
    rows: &[ExecutionRow],
    kind: &'static str,
    name: impl Fn(&ExecutionRow) -> Option<String>,
) -> Vec<Place> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for row in rows {
        if let Some(name) = name(row) {
            let (ran, failed) = counts.entry(name).or_default();
            *ran += 1;
            *failed += usize::from(row.outcome != Outcome::Passed);
        }
    }
    let (ran_anywhere, failed_anywhere) =
        counts.values().fold((0, 0), |(ran, failed), one| (ran + one.0, failed + one.1));
    counts
        .into_iter()
        .map(|(name, (ran, failed))| Place { kind, name, ran, failed, ran_anywhere, failed_anywhere })
        .collect()
}
