//! A run that was told to have run in another environment. Its row and its
//! share of the project's days move immediately; a job brings its executions
//! along, with what they count for, in batches. An execution says by its lane
//! where it is counted, so whoever changes or removes one that has not moved
//! yet finds its numbers where they are.

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::test_state::TestState;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::deletions::runs as doomed;
use callboard_store::executions::counting::ToCount;
use callboard_store::executions::{self, ExecutionRow, RunPlace};
use callboard_store::jobs::{self, Payload};
use callboard_store::rollups::{self, FolderDays, TestDays};
use callboard_store::runs::{self, RunRow};
use callboard_store::{StoreError, boxed, lanes, test_cases};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::aggregate::aggregation::{self, Priority};
use crate::aggregate::rollup::{observed, rebuild_histories};
use crate::recompare::comparison::compared_anew;
use crate::recompare::following_runs::{Followed, queue_behind};
use crate::transaction::run_lanes::{Lanes, lanes_of_lane, lanes_of_run, open_lanes};
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Entity, LifeRefusal, QueryError, Result};
use callboard_core::Acting;
use callboard_core::retry::repeated;

/// Executions of one transaction.
const BATCH: i64 = 500;

/// The work of moving the executions of a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct MoveExecutions {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// The last execution that was looked at.
    #[serde(default)]
    pub after: i64,
}

impl Payload for MoveExecutions {
    const KIND: &'static str = "move_executions";
}

/// Moves a run to another environment, empty when none is recorded, and notes
/// who did.
///
/// # Errors
/// [`LifeRefusal::NotFinished`] while results may still come; 404.
pub async fn move_run(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
    environment: &str,
) -> Result<()> {
    let project = project.get();
    let found = runs::get(&mut ctx.store.db().read().await?, project, run).await?;
    let found = found.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    if found.environment == environment {
        return Ok(());
    }
    // Not in one transaction with the rest, which nobody should wait for longer than needed.
    aggregation::count_until(ctx, project, run, Priority::Immediate).await?;
    let to = open_lanes(&ctx.store, project, found.branch, environment.to_owned(), found.order_at).await?;
    repeated(|| move_to(ctx, acting, (project, run), &to)).await
}

async fn move_to(
    ctx: &Context,
    acting: Acting<'_>,
    (project, run): (ProjectId, RunId),
    to: &Lanes,
) -> Result<()> {
    let now = acting.now;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    if !locked.run.status.is_final() {
        return Err(LifeRefusal::NotFinished.into());
    }
    if locked.run.environment == to.environment {
        return Ok(());
    }
    // What moves has to be counted where it was.
    let counted = aggregation::count_run(&mut session, &mut locked.run, &locked.lanes).await?;
    locked.counter_deltas.test_cases += counted.test_cases;
    let from = std::mem::replace(&mut locked.run.environment, to.environment.clone());
    locked.run.lane_id = to.own;
    locked.lanes = to.ids.clone();
    locked.has_new_lanes = true;
    locked.describe(runs::details(&mut session, project, run).await?);
    let job = MoveExecutions { project, run, after: 0 };
    let key = format!("run:{run}:move:{}:{}", locked.run.lane_id, now.millis());
    jobs::enqueue(&mut session, &key, Some(project), &job, now).await?;
    locked.write(&mut session, now).await?;
    let detail = json!({ "changed": ["environment"], "environment": { "from": from, "to": to.environment } });
    let target = ("run", run.get());
    let noted = acting.record(&mut session, AuditAction::RunChanged, target, Some(project), detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}

/// What is only in one of two lists of lanes.
fn difference(from: &[i64], to: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let only =
        |these: &[i64], those: &[i64]| these.iter().copied().filter(|id| !those.contains(id)).collect();
    (only(from, to), only(to, from))
}

/// Brings the next executions of a run along. `None` when all have come.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn move_executions(
    ctx: &Context,
    job: MoveExecutions,
    now: Timestamp,
) -> Result<Option<MoveExecutions>> {
    let MoveExecutions { project, run, after } = job;
    let mut session = ctx.store.db().begin().await?;
    let row = match runs::lock(&mut session, project, run).await {
        Err(StoreError::RunGone) => return Ok(None),
        row => row?,
    };
    let rows = executions::outside_lane(&mut session, project, run, row.lane_id, after, BATCH).await?;
    let Some(last) = rows.last().map(|row| row.id.get()) else { return Ok(None) };
    let to = lanes_of_run(&mut session, &row).await?;
    bring_along(&mut session, &row, &to, &rows, now).await?;
    session.commit().await?;
    Ok(Some(MoveExecutions { after: last, ..job }))
}

/// Moves executions of a locked run to its lanes, wherever they are counted. What
/// ran behind it where they were, and where they are now, is compared with what
/// came before it there.
pub(crate) async fn bring_along(
    session: &mut Session,
    run: &RunRow,
    to: &[i64],
    rows: &[ExecutionRow],
    now: Timestamp,
) -> Result<()> {
    let joined = to.contains(&run.lane_id).then_some(run.lane_id);
    for (lane, rows) in by_lane(rows) {
        if lane == run.lane_id {
            continue;
        }
        let from = lanes_of_lane(session, run.project, lane, run.order_at).await?;
        move_rows(session, run, &from, to, &rows).await?;
        let moved: Vec<Followed> = rows.iter().filter_map(Followed::from_row).collect();
        for lane in from.contains(&lane).then_some(lane).into_iter().chain(joined) {
            queue_behind(session, (run.project, lane), (run.order_at, run.id), &moved, now).await?;
        }
    }
    Ok(())
}

/// Executions by the lane that says where they are counted.
#[must_use]
pub fn by_lane(rows: &[ExecutionRow]) -> BTreeMap<i64, Vec<ExecutionRow>> {
    let mut lanes: BTreeMap<i64, Vec<ExecutionRow>> = BTreeMap::new();
    for row in rows {
        lanes.entry(row.lane_id).or_default().push(row.clone());
    }
    lanes
}

async fn move_rows(
    session: &mut Session,
    run: &RunRow,
    from: &[i64],
    to: &[i64],
    rows: &[ExecutionRow],
) -> Result<()> {
    let (left, joined) = difference(from, to);
    // In its own lane they are compared, also where that lane counts them already. What they are
    // compared with elsewhere does not change while the lane of all runs is locked.
    let compared = [run.lane_id, lanes::OF_ALL_RUNS];
    let both: BTreeSet<i64> = left.iter().chain(&joined).copied().chain(compared).collect();
    let both: Vec<i64> = both.into_iter().collect();
    let cases: BTreeSet<TestCaseId> = rows.iter().map(|row| row.test_case).collect();
    let cases: Vec<TestCaseId> = cases.into_iter().collect();
    let ids: Vec<i64> = cases.iter().map(|case| case.get()).collect();
    let mut states = rollups::lock_states(session, run.project, &both, &cases).await?;
    let moved = rows.iter().map(|row| row.id.get()).collect();
    executions::set_lane(session, run.project, run.id, run.lane_id, moved).await?;
    let mut rebuild = BTreeSet::new();
    for row in rows {
        let seen = observed(row, run);
        for lane in &left {
            let key = (*lane, row.test_case);
            if let Some(state) = states.get_mut(&key) {
                state.retract(&seen);
                rebuild.insert(key);
            }
        }
        for lane in &joined {
            let key = (*lane, row.test_case);
            match states.get_mut(&key) {
                None => states.insert(key, TestState::first(&seen)),
                Some(state) => {
                    // Whatever it answers: the history is read again.
                    let _applied = state.apply(None, &seen);
                    rebuild.insert(key);
                }
            }
        }
    }
    let day = run.order_at.day();
    let place = RunPlace { project: run.project, run: run.id, day, lane_id: run.lane_id };
    rebuild_histories(session, place, &mut states, &rebuild).await?;
    let counted: Vec<ToCount> = rows.iter().map(ToCount::from).collect();
    let anew = compared_anew(session, run, &counted, &states).await?;
    executions::counting::set_flags(session, run.project, run.id, &anew).await?;
    rollups::write_states(session, run.project, &states).await?;
    doomed::delete_empty_states(session, run.project, &left, ids.clone()).await?;
    let came_as = rows.iter().map(|row| row.came_as().get()).collect();
    let paths = test_cases::reported_paths(session, run.project, came_as).await?;
    for (lanes, sign) in [(&left, -1), (&joined, 1)] {
        let (mut days, mut folders) = (TestDays::default(), FolderDays::default());
        for row in rows {
            for lane in lanes {
                days.count((*lane, day), row.test_case, row.outcome, row.duration_ms, sign);
            }
            if let Some(path) = paths.get(&row.came_as()) {
                let folder = rollups::folder_of(path);
                folders.count((lanes, day), folder, row.outcome, row.duration_ms, sign);
            }
        }
        rollups::add_test_days(session, run.project, days).await?;
        rollups::add_folder_days(session, run.project, folders).await?;
    }
    Ok(())
}
