//! Counting what was written: executions of several runs of a project come into
//! the states and days of their tests together.
//!
//! Who writes results does not count them. A run says how far its executions
//! are counted; the work that follows its end counts what waits of the whole
//! project, and whoever asks for numbers of tests counts first what waits of
//! runs that are over ([`counted`]), so nobody sees a number that lags behind a
//! run they can see the end of. A run that goes on is counted every so often.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use callboard_domain::ids::{ExecutionId, ProjectId, TestCaseId};
use callboard_domain::test_state::{ExecutionFlags, flags_for};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::counting::{self as executions, ToCount};
use callboard_store::projects::{self, Growth};
use callboard_store::rollups::{self, States};
use callboard_store::runs::RunRow;
use callboard_store::runs::counting as runs;
use callboard_store::test_cases;

pub use callboard_store::runs::counting::Waiting;

use super::locked::{counted_in_project, lanes_of_run};
use super::rollup::{Counted, Tally, seen};
use super::writer::CONFLICT_ATTEMPTS;
use crate::{Context, QueryError, Result};

/// Executions one transaction counts, and the states of tests it reads and
/// writes for them, about: others who write wait for it.
const MOST: usize = 2_000;
/// Runs one transaction counts.
const MOST_RUNS: i64 = 200;
/// Executions of one run that a transaction counts: what many runs have of the
/// same tests is counted together, so the more of them wait the fewer of each.
const OF_A_RUN: RangeInclusive<usize> = 100..=500;
/// Executions of a project that may wait while more come. Beyond that, who
/// brings more counts as many.
const MOST_WAITING: i64 = 200_000;
/// How long somebody who asks for numbers of tests waits for them to be counted.
/// Of what even that does not suffice for, they see what is counted.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many executions of a run that goes on wait to be counted.
const TOGETHER: i64 = 1_000;
/// How long an execution of a run that goes on waits to be counted, ms, as long
/// as its client gives signs of life.
pub(super) const COUNT_WITHIN_MS: i64 = 2_000;

/// Whether executions of a run that goes on have waited for long enough.
pub(super) fn is_due(run: &RunRow, now: Timestamp) -> bool {
    run.waiting() >= TOGETHER || has_waited(run, now)
}

/// Whether an execution of a run has waited to be counted for too long.
pub(super) fn has_waited(run: &RunRow, now: Timestamp) -> bool {
    run.uncounted_since.is_some_and(|since| since.millis() + COUNT_WITHIN_MS <= now.millis())
}

/// A session that reads numbers of tests of a project: all runs that are over
/// are in them.
pub(crate) async fn counted(ctx: &Context, project: ProjectId) -> Result<Session> {
    let mut session = ctx.store.db().read().await?;
    if !runs::is_waiting(&mut session, project).await? {
        return Ok(session);
    }
    drop(session);
    count_for(ctx, project, Instant::now() + PATIENCE).await?;
    Ok(ctx.store.db().read().await?)
}

/// [`counted`] for several projects; `None` for all there are.
pub(crate) async fn counted_in(ctx: &Context, projects: Option<&[ProjectId]>) -> Result<Session> {
    let mut session = ctx.store.db().read().await?;
    let waiting = runs::waiting_projects(&mut session).await?;
    let waiting: Vec<ProjectId> =
        waiting.into_iter().filter(|id| projects.is_none_or(|projects| projects.contains(id))).collect();
    if waiting.is_empty() {
        return Ok(session);
    }
    drop(session);
    let until = Instant::now() + PATIENCE;
    for project in waiting {
        count_for(ctx, project, until).await?;
    }
    Ok(ctx.store.db().read().await?)
}

async fn count_for(ctx: &Context, project: ProjectId, until: Instant) -> Result<()> {
    while Instant::now() < until && count_some(ctx, project, Waiting::Over).await?.is_more {}
    Ok(())
}

/// Counts what waits in a project.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn count_waiting(ctx: &Context, project: ProjectId, which: Waiting) -> Result<()> {
    while count_some(ctx, project, which).await?.is_more {}
    Ok(())
}

/// Counts about as many executions of a project as somebody brought, when too
/// many wait. What they brought is stored whatever becomes of this.
pub(super) async fn keep_up(ctx: &Context, project: ProjectId, brought: usize) {
    if let Err(error) = count_back(ctx, project, brought).await {
        tracing::warn!(%error, %project, "executions that wait to be counted could not be");
    }
}

async fn count_back(ctx: &Context, project: ProjectId, brought: usize) -> Result<()> {
    let waiting = runs::waiting_executions(&mut ctx.store.db().read().await?, project).await?;
    if waiting <= MOST_WAITING {
        return Ok(());
    }
    let mut left = brought;
    loop {
        let Passed { counted, is_more } = count_some(ctx, project, Waiting::Over).await?;
        left = left.saturating_sub(counted);
        if left == 0 || !is_more {
            return Ok(());
        }
    }
}

/// Counts what waits since a moment, of all projects.
pub(super) async fn count_since(ctx: &Context, since: Timestamp) -> Result<()> {
    let projects = runs::waiting_since(&mut ctx.store.db().read().await?, since).await?;
    for project in projects {
        count_waiting(ctx, project, Waiting::All).await?;
    }
    Ok(())
}

/// What one transaction did.
struct Passed {
    counted: usize,
    /// Whether more may wait.
    is_more: bool,
}

/// One transaction, repeated when the database ends it in favour of another.
async fn count_some(ctx: &Context, project: ProjectId, which: Waiting) -> Result<Passed> {
    let mut attempt = 1;
    loop {
        match count_once(ctx, project, which).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            passed => return passed,
        }
    }
}

async fn count_once(ctx: &Context, project: ProjectId, which: Waiting) -> Result<Passed> {
    let mut session = ctx.store.db().begin().await?;
    let mut waiting = runs::lock_waiting(&mut session, project, which, MOST_RUNS).await?;
    if waiting.is_empty() {
        return Ok(Passed { counted: 0, is_more: false });
    }
    let mut is_more = i64::try_from(waiting.len()).unwrap_or(i64::MAX) == MOST_RUNS;
    // One that is late makes histories be read again.
    waiting.sort_unstable_by_key(|run| (run.order_at, run.id));
    let of_each = (MOST / waiting.len()).clamp(*OF_A_RUN.start(), *OF_A_RUN.end());
    let of_each = i64::try_from(of_each).unwrap_or(i64::MAX);
    let before: i64 = waiting.iter().map(counted_in_project).sum();
    let (mut batch, mut after) = (Batch::default(), 0);
    for run in waiting {
        if batch.counted >= MOST || batch.states() >= MOST {
            is_more = true;
            after += counted_in_project(&run);
            continue;
        }
        let last = (run.next_ordinal - 1).min(run.counted_to + of_each);
        is_more |= last < run.next_ordinal - 1;
        let lanes = lanes_of_run(&mut session, &run).await?;
        batch.add(&mut session, run, lanes, last).await?;
    }
    let counted = batch.counted;
    let runs = batch.count(&mut session, project).await?;
    after += runs.iter().map(counted_in_project).sum::<i64>();
    if after != before {
        let growth = Growth { executions: after - before, ..Growth::default() };
        projects::count(&mut session, project, growth).await?;
    }
    session.commit().await?;
    Ok(Passed { counted, is_more })
}

/// Counts what waits of one locked run, which the caller writes.
pub(super) async fn count_run(session: &mut Session, run: &mut RunRow, lanes: &[i64]) -> Result<()> {
    if run.uncounted_since.is_none() && run.waiting() == 0 {
        return Ok(());
    }
    let last = run.next_ordinal - 1;
    let mut batch = Batch::default();
    batch.add(session, run.clone(), lanes.to_vec(), last).await?;
    for RunRow { counted_to, uncounted_since, .. } in batch.count(session, run.project).await? {
        (run.counted_to, run.uncounted_since) = (counted_to, uncounted_since);
    }
    Ok(())
}

/// Executions of locked runs that are counted together.
#[derive(Default)]
struct Batch {
    runs: Vec<Part>,
    /// Tests by the lanes in which they are counted.
    tests: BTreeMap<i64, BTreeSet<TestCaseId>>,
    /// Number of executions.
    counted: usize,
}

/// Executions of one run up to an ordinal.
struct Part {
    run: RunRow,
    lanes: Vec<i64>,
    last: i64,
    executions: Vec<ToCount>,
}

impl Batch {
    /// States of tests that are read and written.
    fn states(&self) -> usize {
        self.tests.values().map(BTreeSet::len).sum()
    }

    /// Adds what waits of a run up to an ordinal.
    async fn add(&mut self, session: &mut Session, run: RunRow, lanes: Vec<i64>, last: i64) -> Result<()> {
        let executions =
            executions::to_count(session, run.project, run.id, (run.counted_to + 1, last)).await?;
        for lane in &lanes {
            self.tests.entry(*lane).or_default().extend(executions.iter().map(|row| row.test_case));
        }
        self.counted += executions.len();
        self.runs.push(Part { run, lanes, last, executions });
        Ok(())
    }

    /// Counts everything, run by run, and answers the runs as they are then.
    async fn count(self, session: &mut Session, project: ProjectId) -> Result<Vec<RunRow>> {
        let all: BTreeSet<i64> =
            self.runs.iter().flat_map(|part| &part.executions).map(|row| row.test_case.get()).collect();
        let paths = test_cases::file_paths(session, project, all.into_iter().collect()).await?;
        let mut states = States::default();
        for (lane, cases) in self.tests {
            let cases: Vec<TestCaseId> = cases.into_iter().collect();
            states.join(rollups::lock_states(session, project, &[lane], &cases).await?);
        }
        let mut tally = Tally::over(states);
        let mut counted = Vec::with_capacity(self.runs.len());
        for Part { mut run, lanes, last, executions: rows } in self.runs {
            run.counted_to = last;
            if run.waiting() == 0 {
                run.uncounted_since = None;
            }
            runs::set_counted(session, &run).await?;
            let compared_anew = compare(&tally, &run, &rows);
            executions::set_flags(session, project, run.id, &compared_anew).await?;
            let rows = rows.iter().map(|row| {
                let file_path = paths.get(&row.test_case).map_or("", String::as_str);
                Counted { test_case: row.test_case, file_path, before: None, after: seen(row, &run) }
            });
            let rows: Vec<Counted<'_>> = rows.collect();
            tally.count(session, &run, &lanes, &rows).await?;
            counted.push(run);
        }
        tally.write(session, project).await?;
        Ok(counted)
    }
}

/// What is remarkable about some executions of a run now: runs before it may
/// have been counted since they came.
fn compare(tally: &Tally, run: &RunRow, rows: &[ToCount]) -> Vec<(ExecutionId, ExecutionFlags)> {
    let compared = rows.iter().filter_map(|row| {
        let previous = tally.decided_before(run, row.test_case, row.browser_id)?;
        let flags = row.flags.compared(flags_for(Some(previous), row.outcome));
        (flags != row.flags).then_some((row.id, flags))
    });
    compared.collect()
}
