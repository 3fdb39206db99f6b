//! The way back: a run is hidden, and what its rows counted for is taken out
//! of everything that summarises them. Each table that a submission counts
//! into has one step here.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{DeletionId, ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_store::clusters;
use callboard_store::clusters::counts::{self, CountedRun, Occurrence};
use callboard_store::db::Session;
use callboard_store::deletions::runs::{self as doomed, DoomedRun, Group, RowsOfRun};
use callboard_store::executions::{ExecutionRow, RunPlace};
use callboard_store::projects::Growth;
use callboard_store::rollups::{self, BrowserDays, EndpointPlace, FolderDays, RunContribution, TestDays};
use callboard_store::runs::{self, RunRow, expired};
use callboard_store::search::{self, SearchKind};
use callboard_store::{StoreError, quarantine, test_cases};

use crate::Result;
use crate::aggregate::aggregation;
use crate::aggregate::environment_change::by_lane;
use crate::aggregate::rollup::{rebuild_histories, seen};
use crate::apply::clusters::recount_new;
use crate::transaction::run_lanes::{lanes_of_lane, lanes_of_run};
use crate::transaction::run_transaction::contribution;

/// Hides runs of a project for a deletion: from now on nobody finds them and
/// nothing can be sent to them. With `takes_back` their own share of the
/// project's days goes immediately, that of their rows with them ([`uncount`]);
/// otherwise how they ended is stored.
/// `rows` says whether their rows are kept for a restore.
/// Runs that are gone already are left out; answers how many were hidden.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn hide_runs(
    session: &mut Session,
    project: ProjectId,
    ids: &BTreeSet<RunId>,
    receipt: DeletionId,
    takes_back: bool,
    rows: RowsOfRun,
) -> Result<i64> {
    let known = runs::get_many(session, project, ids.iter().map(|id| id.get()).collect()).await?;
    let group_of = |run: &RunRow| {
        let group = run.instance_id.clone().zip(run.shard_total);
        group.map(|(instance_id, shard_total)| Group { instance_id, shard_total })
    };
    let groups: BTreeSet<(Group, RunId)> =
        known.iter().filter_map(|run| group_of(run).map(|group| (group, run.id))).collect();
    // Groups before runs, runs before counters, each in order: as submissions lock them.
    for (group, run) in &groups {
        doomed::leave_group(session, project, group, *run).await?;
    }
    let mut locked = Vec::with_capacity(known.len());
    for id in ids {
        match runs::lock(session, project, *id).await {
            Err(StoreError::RunGone) => {}
            run => locked.push(run?),
        }
    }
    let (mut gone, mut growth) = (Vec::with_capacity(locked.len()), Growth::default());
    for run in &mut locked {
        let lanes = lanes_of_run(session, run).await?;
        // What is taken back later has to be counted before.
        let counted = aggregation::count_run(session, run, &lanes).await?;
        growth.executions += counted.executions;
        growth.test_cases += counted.test_cases;
        gone.push(DoomedRun {
            project,
            run: run.id,
            lane_id: run.lane_id,
            lanes,
            order_at: run.order_at,
            is_mass_failure: run.is_mass_failure,
            rows,
        });
    }
    if !takes_back && !gone.is_empty() {
        expired::keep(session, project, gone.iter().map(|run| run.run.get()).collect()).await?;
    }
    for run in &gone {
        doomed::doom(session, receipt, run).await?;
    }
    if takes_back {
        for (run, gone) in locked.iter().zip(&gone) {
            let (before, nothing) = (contribution(run), RunContribution::default());
            let day = run.order_at.day();
            if before != nothing {
                rollups::add_project_day(session, project, &gone.lanes, day, run.is_full, &before, &nothing)
                    .await?;
            }
        }
    }
    for kind in [SearchKind::Run, SearchKind::Commit] {
        search::forget(session, project, kind, gone.iter().map(|run| run.run.get()).collect()).await?;
    }
    aggregation::grow(session, project, growth).await?;
    let count = i64::try_from(gone.len()).unwrap_or(i64::MAX);
    if count > 0 {
        doomed::uncount_runs(session, project, count, takes_back).await?;
    }
    Ok(count)
}

/// Takes executions that were deleted in this transaction out of clusters,
/// states and days, in the order in which submissions lock them.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn uncount(
    session: &mut Session,
    run: &DoomedRun,
    rows: &[ExecutionRow],
    now: Timestamp,
) -> Result<()> {
    let cases: BTreeSet<TestCaseId> = rows.iter().map(|row| row.test_case).collect();
    let cases: Vec<TestCaseId> = cases.into_iter().collect();
    let opened = uncount_clusters(session, run, rows, now).await?;
    for (lane_id, rows) in by_lane(rows) {
        // Some may still be counted where the run was before it was moved.
        let lanes = if lane_id == run.lane_id {
            run.lanes.clone()
        } else {
            lanes_of_lane(session, run.project, lane_id, run.order_at).await?
        };
        let run = &DoomedRun { lane_id, lanes, ..run.clone() };
        uncount_states(session, run, &rows, &cases).await?;
        uncount_days(session, run, &rows).await?;
    }
    // The run's requests go together: what is left of it shows none. Of kept rows they go last.
    if run.rows == RowsOfRun::Freed {
        rollups::take_back_endpoints(session, place_of(run)).await?;
    }
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let growth = Growth { executions: -count, open_clusters: opened, ..Growth::default() };
    aggregation::grow(session, run.project, growth).await
}

/// Takes the requests of a run out of its day; the run keeps its own rows.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn uncount_endpoints(session: &mut Session, run: &DoomedRun) -> Result<()> {
    Ok(rollups::subtract_endpoints(session, place_of(run)).await?)
}

fn place_of(run: &DoomedRun) -> EndpointPlace {
    EndpointPlace { project: run.project, run: run.run, day: run.order_at.day() }
}

/// `failure_clusters`, `cluster_tests`, `cluster_runs`, `cluster_daily`.
async fn uncount_clusters(
    session: &mut Session,
    run: &DoomedRun,
    rows: &[ExecutionRow],
    now: Timestamp,
) -> Result<i64> {
    let less = rows.iter().filter_map(|row| {
        row.cluster.map(|cluster| Occurrence {
            cluster,
            test_case: row.test_case,
            execution: row.id,
            outcome: row.outcome,
            sign: -1,
        })
    });
    let less: Vec<Occurrence> = less.collect();
    if less.is_empty() {
        return Ok(0);
    }
    let ids: BTreeSet<i64> = less.iter().map(|one| one.cluster.get()).collect();
    let locked = clusters::lock(session, run.project, ids.into_iter().collect()).await?;
    // What began when, and where, only matters for occurrences that are added.
    let counted = CountedRun {
        project: run.project,
        run: run.run,
        order_at: run.order_at,
        start: run.order_at,
        is_default_branch: false,
    };
    let counted = counts::apply(session, counted, locked, &less, now).await?;
    recount_new(session, run.project, counted.first_shown_by, run.run, now).await?;
    Ok(counted.open)
}

/// `test_state`.
async fn uncount_states(
    session: &mut Session,
    run: &DoomedRun,
    rows: &[ExecutionRow],
    cases: &[TestCaseId],
) -> Result<()> {
    let mut states = rollups::lock_states(session, run.project, &run.lanes, cases).await?;
    let mut rebuild = BTreeSet::new();
    for row in rows {
        let gone = seen(&row.into(), run.order_at, run.is_mass_failure);
        for lane in &run.lanes {
            let key = (*lane, row.test_case);
            if let Some(state) = states.get_mut(&key) {
                state.retract(&gone);
                rebuild.insert(key);
            }
        }
    }
    let place =
        RunPlace { project: run.project, run: run.run, day: run.order_at.day(), lane_id: run.lane_id };
    rebuild_histories(session, place, &mut states, &rebuild).await?;
    rollups::write_states(session, run.project, &states).await?;
    let mut executions: BTreeMap<TestCaseId, i64> = BTreeMap::new();
    for row in rows {
        *executions.entry(row.test_case).or_default() += 1;
    }
    let mut by_number: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (case, number) in executions {
        by_number.entry(number).or_default().push(case.get());
    }
    for (number, cases) in by_number {
        quarantine::take_back(session, run.project, cases, run.order_at, number).await?;
    }
    let cases = cases.iter().map(|case| case.get()).collect();
    Ok(doomed::delete_empty_states(session, run.project, &run.lanes, cases).await?)
}

/// `test_daily`, `spec_daily` and `browser_daily`.
async fn uncount_days(session: &mut Session, run: &DoomedRun, rows: &[ExecutionRow]) -> Result<()> {
    let came_as = rows.iter().map(|row| row.came_as().get()).collect();
    let paths = test_cases::reported_paths(session, run.project, came_as).await?;
    let (mut days, mut folders) = (TestDays::default(), FolderDays::default());
    let mut browsers = BrowserDays::default();
    let day = run.order_at.day();
    for row in rows {
        browsers.count(day, row.browser_id, row.outcome, -1);
        for lane in &run.lanes {
            days.count((*lane, day), row.test_case, row.outcome, row.duration_ms, -1);
        }
        if let Some(path) = paths.get(&row.came_as()) {
            let folder = rollups::folder_of(path);
            folders.count((&run.lanes, day), folder, row.outcome, row.duration_ms, -1);
        }
    }
    rollups::add_test_days(session, run.project, days).await?;
    rollups::add_folder_days(session, run.project, folders).await?;
    rollups::add_browser_days(session, run.project, browsers).await?;
    Ok(())
}
