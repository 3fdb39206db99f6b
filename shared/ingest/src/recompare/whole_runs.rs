//! Comparing runs again that were compared before: when what came before them has
//! changed, or when another branch is the default branch of their project.

use std::collections::HashSet;

use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::test_state::ExecutionFlags;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::counting::{self, ToCount};
use callboard_store::jobs::{self, Payload};
use callboard_store::rollups;
use callboard_store::runs::{RunRow, compared};
use callboard_store::{Store, StoreError, boxed};
use serde::{Deserialize, Serialize};

use crate::recompare::comparison::{Series, compared_anew};
use crate::transaction::baseline;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, QueryError, Result};

/// Executions that are compared at a time.
const STEP: i64 = 500;
/// How often a part of a run is compared again when what it is compared with goes
/// on changing: whoever changes it then has it compared again as well.
const MOST_ATTEMPTS: usize = 8;
/// Runs that are compared in one step.
const PAGE: i64 = 20;
/// Runs that are compared again with another default branch, the newest: what was
/// before the others is mostly forgotten, and hardly anybody looks at them.
const MOST_RUNS: usize = 2_000;

/// A project has another default branch: its newest runs are compared again.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CompareProject {
    project: ProjectId,
    /// Runs that were compared.
    done: usize,
    /// Order key and run of the last of them.
    before: Option<(i64, RunId)>,
}

impl Payload for CompareProject {
    const KIND: &'static str = "compare_project";
}

/// Queues [`CompareProject`] in the transaction that changes the default branch.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn queue_project(session: &mut Session, project: ProjectId, now: Timestamp) -> Result<()> {
    let key = format!("project:{project}:compare:{now}", now = now.millis());
    let job = CompareProject { project, done: 0, before: None };
    Ok(jobs::enqueue(session, &key, Some(project), &job, now).await.map(drop)?)
}

/// Compares the next runs of a project again, newest first. `None` when enough are.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn compare_project(ctx: &Context, job: CompareProject) -> Result<Option<CompareProject>> {
    let before = job.before.map_or((Timestamp(i64::MAX), RunId(i64::MAX)), |(at, run)| (Timestamp(at), run));
    let mut session = ctx.store.db().read().await?;
    let runs = compared::before(&mut session, job.project, before, PAGE).await?;
    drop(session);
    for run in &runs {
        compare_whole(&ctx.store, run).await?;
    }
    let done = job.done + runs.len();
    let last = runs.last().filter(|_| done < MOST_RUNS);
    Ok(last.map(|run| CompareProject { done, before: Some((run.order_at.millis(), run.id)), ..job }))
}

/// Compares those executions of a run again whose tests are asked for, and
/// leaves those tests to be asked for that it did not decide.
pub(crate) async fn compare_tests(store: &Store, run: &RunRow, asked: &mut HashSet<Series>) -> Result<()> {
    for part in parts(run) {
        if asked.is_empty() {
            break;
        }
        let rows = compare_part(store, run, part, Some(asked)).await?;
        for row in rows.iter().filter(|row| row.outcome.is_decided()) {
            asked.remove(&row.series());
        }
    }
    Ok(())
}

/// Compares all executions of a run again, and notes what comes of it.
async fn compare_whole(store: &Store, run: &RunRow) -> Result<()> {
    for part in parts(run) {
        compare_part(store, run, part, None).await?;
    }
    if !run.status.is_final() || baseline::is_noted(&mut store.db().read().await?, run).await? {
        return Ok(());
    }
    let mut session = store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, run.project, run.id).await {
        Err(QueryError::Store(StoreError::RunGone)) => return Ok(()),
        locked => locked?,
    };
    if locked.run.status.is_final() {
        locked.compare(&mut session).await?;
        session.commit().await?;
    }
    Ok(())
}

/// The counted executions of a run, some at a time: the first and the last of each
/// part.
fn parts(run: &RunRow) -> impl Iterator<Item = (i64, i64)> + use<> {
    let end = run.counted_to;
    (0..)
        .map(|part| 1 + part * STEP)
        .take_while(move |first| *first <= end)
        .map(move |first| (first, end.min(first + STEP - 1)))
}

/// Compares the executions of a part of a run whose tests are asked for, all when
/// none are named, and answers them.
async fn compare_part(
    store: &Store,
    run: &RunRow,
    part: (i64, i64),
    asked: Option<&HashSet<Series>>,
) -> Result<Vec<ToCount>> {
    let (mut rows, mut differs) = look(store, run, part, asked).await?;
    let mut attempt = 1;
    // What changes while it is written is not seen by those who change it.
    while differs && attempt <= MOST_ATTEMPTS && write_anew(store, run, part, asked).await? {
        (rows, differs) = look(store, run, part, asked).await?;
        attempt += 1;
    }
    Ok(rows)
}

/// The executions of a part of a run whose tests are asked for, and whether any
/// compares otherwise than is written.
async fn look(
    store: &Store,
    run: &RunRow,
    part: (i64, i64),
    asked: Option<&HashSet<Series>>,
) -> Result<(Vec<ToCount>, bool)> {
    let mut session = store.db().read().await?;
    let rows = rows_of(&mut session, run, part, asked).await?;
    let differs = !anew(&mut session, run, &rows).await?.is_empty();
    Ok((rows, differs))
}

/// Writes how a part of a run compares now, and counts that for the run; of one
/// that goes on its end does. `false` when the run is gone.
async fn write_anew(
    store: &Store,
    run: &RunRow,
    part: (i64, i64),
    asked: Option<&HashSet<Series>>,
) -> Result<bool> {
    let mut session = store.db().begin().await?;
    let mut locked = match LockedRun::lock(&mut session, run.project, run.id).await {
        Err(QueryError::Store(StoreError::RunGone)) => return Ok(false),
        locked => locked?,
    };
    // They may have changed since they were read.
    let rows = rows_of(&mut session, &locked.run, part, asked).await?;
    let anew = anew(&mut session, &locked.run, &rows).await?;
    counting::set_flags(&mut session, run.project, run.id, &anew).await?;
    if locked.run.status.is_final() {
        locked.compare(&mut session).await?;
    }
    session.commit().await?;
    Ok(true)
}

async fn rows_of(
    session: &mut Session,
    run: &RunRow,
    part: (i64, i64),
    asked: Option<&HashSet<Series>>,
) -> Result<Vec<ToCount>> {
    let mut rows = counting::to_count(session, run.project, run.id, part).await?;
    if let Some(asked) = asked {
        rows.retain(|row| asked.contains(&row.series()));
    }
    Ok(rows)
}

/// How executions of a run compare now, where that is other than what is written.
async fn anew(
    session: &mut Session,
    run: &RunRow,
    rows: &[ToCount],
) -> Result<Vec<(ExecutionId, ExecutionFlags)>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let asked = rows.iter().map(|row| (run.lane_id, row.test_case)).collect();
    let states = rollups::states_of(session, run.project, &asked).await?;
    compared_anew(session, run, rows, &states).await
}
