//! The work on joins that were decided: the test is shown under the path of both,
//! and results that are stored are moved, run by run, the newest first. Done
//! again it changes nothing.

use std::collections::{BTreeSet, HashMap};

use callboard_core::retry::repeated;
use callboard_domain::ids::{HistoryJoinId, ProjectId, RunId, TestCaseId};
use callboard_domain::test_state::TestState;
use callboard_domain::time::Timestamp;
use callboard_store::executions::{self, ExecutionRow};
use callboard_store::history_joins::{self, Decider, HistoryJoin, JoinState};
use callboard_store::lanes::OF_ALL_RUNS;
use callboard_store::runs::{self, compared};
use callboard_store::test_cases::carrying;
use callboard_store::{StoreError, boxed, rollups, test_cases};

use crate::aggregate::aggregation;
use crate::identity::checking::asks_people;
use crate::identity::decisions::{test, undo_now};
use crate::identity::rekeying::{Rekeyed, rekey};
use crate::transaction::follow_up::JoinHistories;
use crate::transaction::run_lanes::{lanes_of_run, place_of};
use crate::{Context, Result};

/// Joins that are worked on together.
const JOINS: i64 = 500;
/// Runs of one step.
const RUNS: i64 = 20;

/// Does the next of the work. `None` when nothing is left.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn join_histories(
    ctx: &Context,
    mut job: JoinHistories,
    now: Timestamp,
) -> Result<Option<JoinHistories>> {
    let project = job.project;
    if job.joins.is_empty() {
        let mut session = ctx.store.db().read().await?;
        let joins = history_joins::unfinished(&mut session, project, HistoryJoinId(0), JOINS).await?;
        drop(session);
        if joins.is_empty() {
            return Ok(None);
        }
        for join in &joins {
            repeated(|| show_path(ctx, join)).await?;
        }
        job.joins = joins.iter().map(|join| (join.id, join.state == JoinState::Undoing)).collect();
    }
    let joins = open_joins(ctx, &job).await?;
    if let Some((first, last)) = times_of_results(ctx, project, &joins).await? {
        let last = job.after.map_or((last, RunId(i64::MAX)), |(at, id)| (Timestamp(at), id));
        let mut runs = compared::before(&mut ctx.store.db().read().await?, project, last, RUNS).await?;
        runs.retain(|run| run.order_at >= first);
        if let Some(last) = runs.last() {
            for run in &runs {
                repeated(|| move_results(ctx, project, run.id, &joins, now)).await?;
            }
            job.after = Some((last.order_at.millis(), last.id));
            return Ok(Some(job));
        }
    }
    for join in &joins {
        repeated(|| finish(ctx, join)).await?;
    }
    Ok(Some(JoinHistories { project, joins: Vec::new(), after: None }))
}

/// Those of the job on which there is work still.
async fn open_joins(ctx: &Context, job: &JoinHistories) -> Result<Vec<HistoryJoin>> {
    let ids = job.joins.iter().map(|(id, _)| *id);
    let (Some(first), Some(last)) = (ids.clone().min(), ids.max()) else { return Ok(Vec::new()) };
    let mut session = ctx.store.db().read().await?;
    let (after, limit) = (HistoryJoinId(first.get() - 1), last.get() - first.get() + 1);
    let mut joins = history_joins::unfinished(&mut session, job.project, after, limit).await?;
    // What was decided otherwise meanwhile begins again with the newest run.
    joins.retain(|join| job.joins.contains(&(join.id, join.state == JoinState::Undoing)));
    Ok(joins)
}

/// When the first and the last run began whose results may have to be moved.
async fn times_of_results(
    ctx: &Context,
    project: ProjectId,
    joins: &[HistoryJoin],
) -> Result<Option<(Timestamp, Timestamp)>> {
    let held_by = |join: &HistoryJoin| if join.state == JoinState::Undoing { join.kept } else { join.joined };
    let tests = joins.iter().map(|join| held_by(join).get()).collect();
    let mut session = aggregation::read_session_with_fresh_aggregates(ctx, project).await?;
    let states = rollups::states_in(&mut session, project, OF_ALL_RUNS, tests).await?;
    let states = || states.values().filter(|state| state.counts().total_tests > 0);
    let first = states().map(TestState::first_seen_at).min();
    Ok(first.zip(states().map(TestState::last_order_at).max()))
}

/// Shows the kept test under the path of both, or under its own again.
async fn show_path(ctx: &Context, join: &HistoryJoin) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    test_cases::lock(&mut session, join.project, vec![join.kept.get()]).await?;
    let others = history_joins::of_kept(&mut session, join.project, vec![join.kept.get()]).await?;
    let path = others.first().map_or(join.kept_path.as_str(), |join| join.path.as_str());
    let kept = test(&mut session, join.project, join.kept).await?;
    if kept.file_path == path {
        return Ok(());
    }
    carrying::set_path(&mut session, &kept, path).await?;
    Ok(session.commit().await?)
}

/// Moves what a run has of some joins.
async fn move_results(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    joins: &[HistoryJoin],
    now: Timestamp,
) -> Result<()> {
    let tests: BTreeSet<i64> = joins.iter().flat_map(|join| [join.kept.get(), join.joined.get()]).collect();
    let tests: Vec<i64> = tests.into_iter().collect();
    let mut session = ctx.store.db().begin().await?;
    let mut run = match runs::lock(&mut session, project, run).await {
        Err(StoreError::RunGone) => return Ok(()),
        run => run?,
    };
    let rows = executions::of_tests(&mut session, place_of(&run), tests).await?;
    if Plan::new(joins, &rows).is_empty() {
        return Ok(());
    }
    // What moves has to be counted where it was.
    let lanes = lanes_of_run(&mut session, &run).await?;
    let counted = aggregation::count_run(&mut session, &mut run, &lanes).await?;
    aggregation::grow(&mut session, project, counted).await?;
    let tests = rows.iter().map(|row| row.test_case.get()).collect();
    let rows = executions::of_tests(&mut session, place_of(&run), tests).await?;
    let Plan { moved, contested } = Plan::new(joins, &rows);
    if !moved.is_empty() {
        rekey(&mut session, &run, &moved, now).await?;
    }
    for join in contested {
        let locked = history_joins::lock(&mut session, project, join).await?;
        if let Some(join) = locked.filter(|join| join.state == JoinState::Joining) {
            let reason = format!("run {} has results of both", run.id);
            undo_now(&mut session, &join, &reason, (now, Decider::Service)).await?;
        }
    }
    Ok(session.commit().await?)
}

/// What becomes of the results of a run.
struct Plan {
    moved: Vec<Rekeyed>,
    /// Joins of two tests that both ran: they are not the same.
    contested: Vec<HistoryJoinId>,
}

impl Plan {
    fn new(joins: &[HistoryJoin], rows: &[ExecutionRow]) -> Self {
        let taken: HashMap<(TestCaseId, i64), &ExecutionRow> =
            rows.iter().map(|row| ((row.test_case, row.browser_id), row)).collect();
        let by_joined: HashMap<TestCaseId, &HistoryJoin> =
            joins.iter().map(|join| (join.joined, join)).collect();
        let mut plan = Self { moved: Vec::new(), contested: Vec::new() };
        for row in rows {
            let joining = by_joined.get(&row.test_case).filter(|join| join.state == JoinState::Joining);
            let undoing = row.reported_as.and_then(|reported| by_joined.get(&reported));
            let undoing =
                undoing.filter(|join| join.state == JoinState::Undoing && join.kept == row.test_case);
            let (join, test_case, reported_as) = match (joining, undoing) {
                (Some(join), _) => (join, join.kept, Some(join.joined)),
                (None, Some(join)) => (join, join.joined, None),
                (None, None) => continue,
            };
            if let Some(other) = taken.get(&(test_case, row.browser_id)) {
                // The same test may have results on both sides of the moment at which it was joined.
                if other.came_as() != row.came_as() {
                    plan.contested.push(join.id);
                }
            } else {
                let after = ExecutionRow { test_case, reported_as, ..row.clone() };
                plan.moved.push(Rekeyed { before: row.clone(), after });
            }
        }
        // Of tests that are not the same nothing moves.
        plan.contested.sort_unstable();
        plan.contested.dedup();
        let is_contested = |row: &Rekeyed| {
            let joined = row.after.reported_as.unwrap_or(row.after.test_case);
            by_joined.get(&joined).is_some_and(|join| plan.contested.binary_search(&join.id).is_ok())
        };
        let keep: Vec<bool> = plan.moved.iter().map(|row| !is_contested(row)).collect();
        let mut keep = keep.into_iter();
        plan.moved.retain(|_| keep.next().unwrap_or(true));
        plan
    }

    fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.contested.is_empty()
    }
}

/// Everything of a join is where it belongs.
async fn finish(ctx: &Context, join: &HistoryJoin) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let locked = history_joins::lock(&mut session, join.project, join.id).await?;
    // Somebody may have decided otherwise meanwhile.
    let Some(locked) = locked.filter(|locked| locked.state == join.state) else { return Ok(()) };
    let state = match locked.state {
        JoinState::Undoing if asks_people(&locked) => JoinState::Proposed,
        JoinState::Undoing => JoinState::Undone,
        _ => JoinState::Joined,
    };
    history_joins::set_state(&mut session, &locked, state, &locked.reason, None).await?;
    Ok(session.commit().await?)
}
