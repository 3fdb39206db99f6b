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
use callboard_store::runs::{self, RunRow};
use callboard_store::{lanes, rollups, test_cases};

use super::chunk::stored_attempts;
use super::locked::LockedRun;
use super::rollup::{observed, rebuild_histories};
use crate::flakiness::judged_lane;
use crate::flakiness::settings::effective;
use crate::test_cases::LaneQuery;
use crate::{Context, Entity, QueryError, Result};

/// Executions that are judged by one transaction.
const BATCH: i64 = 200;
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
/// history of each of its tests, a part of them at a time: nobody who writes
/// waits for all of them.
///
/// What breaks off in between is made good by the next call. A run is marked
/// before its tests, and each call goes over the tests of a marked run again; it
/// loses its mark after them, unless results came meanwhile.
async fn mark_mass_failure(ctx: &Context, project: ProjectId, id: RunId) -> Result<()> {
    let settings = effective(&mut ctx.store.db().read().await?, project).await?;
    let rate = settings.mass_failure_rate;
    loop {
        let run = runs::get(&mut ctx.store.db().read().await?, project, id).await?;
        let Some(run) = run else { return Ok(()) };
        let is_over = run.status.is_final() && run.totals_from_rows;
        let is_one = is_over && flakiness::is_mass_failure(&run.totals, rate);
        match (is_one, run.is_mass_failure) {
            (false, false) => return Ok(()),
            (true, is_marked) => {
                if is_marked || set_mass_failure(ctx, &run, true).await? {
                    return remember_mass_failure(ctx, project, id, true).await;
                }
            }
            (false, true) => {
                remember_mass_failure(ctx, project, id, false).await?;
                if set_mass_failure(ctx, &run, false).await? {
                    return Ok(());
                }
            }
        }
    }
}

/// Writes whether a run failed as a whole; `false` when it changed since it
/// was read.
async fn set_mass_failure(ctx: &Context, read: &RunRow, is_mass_failure: bool) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let run = runs::lock(&mut session, read.project, read.id).await?;
    if run.version != read.version {
        return Ok(false);
    }
    runs::set_mass_failure(&mut session, run.project, run.id, is_mass_failure).await?;
    session.commit().await?;
    Ok(true)
}

/// Notes in the recent history of the tests of a run whether it failed as a
/// whole. Doing it again changes nothing.
async fn remember_mass_failure(
    ctx: &Context,
    project: ProjectId,
    id: RunId,
    is_mass_failure: bool,
) -> Result<()> {
    let mut after: Option<i64> = None;
    loop {
        let mut session = ctx.store.db().begin().await?;
        let LockedRun { run: before, lanes, .. } = LockedRun::lock(&mut session, project, id).await?;
        let run = RunRow { is_mass_failure, ..before.clone() };
        let (filter, order) = (ExecutionFilter::default(), ExecutionOrder::Id(after));
        let rows = executions::list(&mut session, project, id, &filter, &order, BATCH).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.id.get());
        let cases: BTreeSet<TestCaseId> = rows.iter().map(|row| row.test_case).collect();
        let cases: Vec<TestCaseId> = cases.into_iter().collect();
        let mut states = rollups::lock_states(&mut session, project, &lanes, &cases).await?;
        let (mut rebuild, mut again) = (BTreeSet::new(), Vec::new());
        for row in &rows {
            let (was, is) = (observed(row, &before), observed(row, &run));
            for lane in &lanes {
                let key = (*lane, row.test_case);
                let Some(state) = states.get_mut(&key) else { continue };
                if state.apply(Some(&was), &is) == Applied::NeedsRebuild {
                    rebuild.insert(key);
                    again.push((key, is));
                }
            }
        }
        let place = RunPlace { project, run: id, day: run.order_at.day(), lane_id: run.lane_id };
        rebuild_histories(&mut session, place, &mut states, &rebuild).await?;
        for (key, is) in again {
            if let Some(state) = states.get_mut(&key) {
                // What was read again carries the mark the run has now; beyond it there is nothing to note.
                let _is_recent = state.apply(Some(&is), &is);
            }
        }
        rollups::write_states(&mut session, project, &states).await?;
        session.commit().await?;
    }
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
