//! Counting what was written: executions of several runs of a project come into
//! the states and days of their tests together.
//!
//! Who writes results does not count them. A run says how far its executions
//! are counted; the work that follows its end counts it, together with what else
//! waits of the project, and whoever asks for numbers of tests counts first what waits of
//! runs that are over ([`read_session_with_fresh_aggregates`]), so nobody sees a number that lags behind a
//! run they can see the end of. A run that goes on is counted every so often.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::deletions::kept;
use callboard_store::executions::counting::{self as executions, Part, ToCount};
use callboard_store::lanes::{self, CountingLane, OF_ALL_RUNS};
use callboard_store::projects::Growth;
use callboard_store::rollups::{self, States};
use callboard_store::runs::RunRow;
use callboard_store::runs::counting::{self as runs, Waiting};
use callboard_store::test_cases;
use tokio::time::Instant;

use crate::aggregate::rollup::{AggregateDelta, Counted, seen};
use crate::stage::write_queue;
use crate::transaction::run_lanes::counting_lanes;
use crate::transaction::run_transaction::counted_in_project;
use crate::{Context, Result};
use callboard_core::retry::repeated;

/// Executions one transaction counts, and the states of tests it reads and
/// writes for them, about: others who write wait for it.
const MAX_EXECUTIONS: usize = 2_000;
/// Runs one transaction counts.
const MAX_RUNS: i64 = 200;
/// Executions of one run that a transaction counts: what many runs have of the
/// same tests is counted together, so the more of them wait the fewer of each.
const EXECUTIONS_PER_RUN: RangeInclusive<usize> = 100..=500;
/// Executions of a project that may wait while more come. Beyond that, who
/// brings more counts as many.
const MAX_WAITING: i64 = 200_000;
/// How long somebody who asks for numbers of tests waits for them to be counted:
/// longer than counting [`MAX_WAITING`] takes, shorter than what gateways wait
/// for an answer.
const FRESH_TIMEOUT: Duration = Duration::from_secs(25);
/// How often they look again: what ends while others are counted may be told of.
const MAX_PASSES: usize = 2;
/// How long the sweep counts one project.
const PROJECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many executions of a run that goes on wait to be counted.
const MIN_WAITING: i64 = 1_000;
/// How long an execution of a run that goes on waits to be counted, ms, as long
/// as its client gives signs of life.
pub(crate) const COUNT_WITHIN_MS: i64 = 2_000;

/// Whether executions of a run that goes on have waited for long enough.
pub(crate) fn should_aggregate(run: &RunRow, now: Timestamp) -> bool {
    run.waiting() >= MIN_WAITING || has_waited(run, now)
}

/// Whether an execution of a run has waited to be counted for too long.
pub(crate) fn has_waited(run: &RunRow, now: Timestamp) -> bool {
    run.uncounted_since.is_some_and(|since| since.millis() + COUNT_WITHIN_MS <= now.millis())
}

/// A session that reads numbers of tests of a project: all runs that are over
/// are in them. What cannot be counted in time is logged and left out.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn read_session_with_fresh_aggregates(ctx: &Context, project: ProjectId) -> Result<Session> {
    let until = Instant::now() + FRESH_TIMEOUT;
    let mut session = ctx.store.db().read().await?;
    for _ in 0..MAX_PASSES {
        if !runs::is_waiting(&mut session, project).await? {
            break;
        }
        drop(session);
        count_for(ctx, project, Waiting::Over, until).await;
        session = ctx.store.db().read().await?;
    }
    Ok(session)
}

/// [`read_session_with_fresh_aggregates`] for several projects; `None` for all there are.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn read_session_with_fresh_aggregates_in(
    ctx: &Context,
    projects: Option<&[ProjectId]>,
) -> Result<Session> {
    let until = Instant::now() + FRESH_TIMEOUT;
    let mut session = ctx.store.db().read().await?;
    for _ in 0..MAX_PASSES {
        let mut waiting = runs::waiting_projects(&mut session).await?;
        waiting.retain(|id| projects.is_none_or(|projects| projects.contains(id)));
        if waiting.is_empty() {
            break;
        }
        drop(session);
        for project in waiting {
            count_for(ctx, project, Waiting::Over, until).await;
        }
        session = ctx.store.db().read().await?;
    }
    Ok(session)
}

/// Counts what waits in a project, until a moment at most.
async fn count_for(ctx: &Context, project: ProjectId, which: Waiting, until: Instant) {
    match tokio::time::timeout_at(until, count_waiting(ctx, project, which)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, %project, "what waits to be counted could not be"),
        Err(_) => tracing::warn!(%project, "what waits to be counted took too long"),
    }
}

/// Counts what waits in a project.
async fn count_waiting(ctx: &Context, project: ProjectId, which: Waiting) -> Result<()> {
    while count_some(ctx, project, which).await?.is_more {}
    Ok(())
}

/// When something is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Somebody waits for it.
    Immediate,
    /// While no results arrive, as far as that can be waited for.
    WhenIdle,
}

/// Counts until nothing waits of a run that is over.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn count_until(ctx: &Context, project: ProjectId, run: RunId, pace: Priority) -> Result<()> {
    loop {
        let row = callboard_store::runs::get(&mut ctx.store.db().read().await?, project, run).await?;
        if row.is_none_or(|row| row.uncounted_since.is_none()) {
            return Ok(());
        }
        if pace == Priority::WhenIdle {
            ctx.write_coalescer.wait_until_idle(write_queue::IDLE_TIMEOUT).await;
        }
        // Others may have counted what they held locked meanwhile, so whether more waits is asked anew.
        if count_some(ctx, project, Waiting::Over).await?.counted == 0 {
            return Ok(());
        }
    }
}

/// Counts some of what waits in a project, also of runs that go on. What was
/// brought before is stored whatever becomes of this.
pub(crate) async fn count_next(ctx: &Context, project: ProjectId) {
    if let Err(error) = count_some(ctx, project, Waiting::All).await {
        tracing::warn!(%error, %project, "what waits to be counted could not be");
    }
}

/// Counts about as many executions of a project as were brought, when too many
/// wait: whoever brings the last of as many as one transaction counts does it for
/// the others. What they brought is stored whatever becomes of this.
pub(crate) async fn keep_up(ctx: &Context, project: ProjectId, brought: usize) {
    let Some(brought) = ctx.write_coalescer.add_received(project, brought, MAX_EXECUTIONS) else { return };
    if let Err(error) = count_back(ctx, project, brought).await {
        tracing::warn!(%error, %project, "what waits to be counted could not be");
    }
}

async fn count_back(ctx: &Context, project: ProjectId, brought: usize) -> Result<()> {
    let waiting = runs::waiting_executions(&mut ctx.store.db().read().await?, project).await?;
    if waiting <= MAX_WAITING {
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

/// Counts what waits since a moment, of all projects. One that takes too long
/// or cannot be counted does not keep the others waiting.
pub(crate) async fn count_since(ctx: &Context, since: Timestamp) -> Result<()> {
    let projects = runs::waiting_since(&mut ctx.store.db().read().await?, since).await?;
    for project in projects {
        count_for(ctx, project, Waiting::All, Instant::now() + PROJECT_TIMEOUT).await;
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
    repeated(|| count_once(ctx, project, which)).await
}

async fn count_once(ctx: &Context, project: ProjectId, which: Waiting) -> Result<Passed> {
    let _turn = ctx.write_coalescer.aggregation_lock().await;
    let mut session = ctx.store.db().begin().await?;
    let mut waiting = runs::lock_waiting(&mut session, project, which, MAX_RUNS).await?;
    if waiting.is_empty() {
        return Ok(Passed { counted: 0, is_more: false });
    }
    let mut is_more = i64::try_from(waiting.len()).unwrap_or(i64::MAX) == MAX_RUNS;
    // One that is late makes histories be read again.
    waiting.sort_unstable_by_key(|run| (run.order_at, run.id));
    let of_each =
        (MAX_EXECUTIONS / waiting.len()).clamp(*EXECUTIONS_PER_RUN.start(), *EXECUTIONS_PER_RUN.end());
    let of_each = i64::try_from(of_each).unwrap_or(i64::MAX);
    let before: i64 = waiting.iter().map(counted_in_project).sum();
    let (mut batch, mut after) = (Batch::default(), 0);
    // What waits on: a later result of these tests is compared with it, and so has to wait as well.
    let mut left: HashSet<(TestCaseId, i64)> = HashSet::new();
    let mut places: HashMap<(String, String), Vec<CountingLane>> = HashMap::new();
    let mut waiting = waiting.into_iter().peekable();
    while let Some(run) = waiting.next() {
        if batch.is_full() {
            is_more = true;
            after += counted_in_project(&run);
            continue;
        }
        let end = run.next_ordinal - 1;
        let known = match places.entry((run.branch.clone(), run.environment.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let lanes = lanes::of_place(&mut session, project, &run.branch, &run.environment).await?;
                place.insert(lanes)
            }
        };
        let lanes = counting_lanes(&run, known)?;
        let last = end.min(run.counted_to + of_each);
        let is_followed = waiting.peek().is_some();
        let last = batch.add(&mut session, run, lanes, last, (&mut left, is_followed)).await?;
        is_more |= last < end;
    }
    let counted = batch.counted;
    let (runs, test_cases) = batch.count(&mut session, project).await?;
    after += runs.iter().map(counted_in_project).sum::<i64>();
    let growth = Growth { executions: after - before, test_cases, ..Growth::default() };
    grow(&mut session, project, growth).await?;
    session.commit().await?;
    Ok(Passed { counted, is_more })
}

/// Counts what waits of one locked run. Answers what the project's own numbers grow
/// by, for [`grow`]: those are locked after everything else.
pub(crate) async fn count_run(session: &mut Session, run: &mut RunRow, lanes: &[i64]) -> Result<Growth> {
    if run.uncounted_since.is_none() && run.waiting() == 0 {
        return Ok(Growth::default());
    }
    let (before, last) = (counted_in_project(run), run.next_ordinal - 1);
    let mut batch = Batch::default();
    batch.add(session, run.clone(), lanes.to_vec(), last, (&mut HashSet::new(), false)).await?;
    let (runs, test_cases) = batch.count(session, run.project).await?;
    for RunRow { counted_to, uncounted_since, .. } in runs {
        (run.counted_to, run.uncounted_since) = (counted_to, uncounted_since);
    }
    Ok(Growth { executions: counted_in_project(run) - before, test_cases, ..Growth::default() })
}

/// Adds to the numbers of a project, which may be hidden.
pub(crate) async fn grow(session: &mut Session, project: ProjectId, growth: Growth) -> Result<()> {
    if growth == Growth::default() {
        return Ok(());
    }
    Ok(kept::count(session, project, &growth).await?)
}

/// Executions of locked runs that are counted together.
#[derive(Default)]
struct Batch {
    runs: Vec<RunPart>,
    /// Tests by the lanes in which they are counted.
    tests: BTreeMap<i64, BTreeSet<TestCaseId>>,
    /// Number of executions.
    counted: usize,
}

/// Executions of one run up to an ordinal.
struct RunPart {
    run: RunRow,
    lanes: Vec<i64>,
    last: i64,
    executions: Vec<ToCount>,
}

impl Batch {
    /// Whether it is time to count: by executions, or by the states of tests that
    /// are read and written for them.
    fn is_full(&self) -> bool {
        let states: usize = self.tests.values().map(BTreeSet::len).sum();
        self.counted >= MAX_EXECUTIONS || states >= MAX_EXECUTIONS
    }

    /// Adds what waits of a run up to an ordinal, or up to the first of those tests that
    /// are left of runs before it; answers up to which. What is left of this one is
    /// added to them, if it is followed by others.
    async fn add(
        &mut self,
        session: &mut Session,
        run: RunRow,
        lanes: Vec<i64>,
        mut last: i64,
        (left, is_followed): (&mut HashSet<(TestCaseId, i64)>, bool),
    ) -> Result<i64> {
        let (project, id, wanted) = (run.project, run.id, (run.counted_to + 1, last));
        let Part { mut executions, behind } = if is_followed && last < run.next_ordinal - 1 {
            executions::part(session, project, id, wanted).await?
        } else {
            let executions = executions::to_count(session, project, id, wanted).await?;
            Part { executions, behind: Vec::new() }
        };
        if let Some(at) = executions.iter().position(|row| left.contains(&row.series())) {
            let held_back: Vec<ToCount> = executions.drain(at..).collect();
            last = held_back.first().map_or(last, |row| row.id.ordinal() - 1);
            left.extend(held_back.iter().map(ToCount::series));
        }
        left.extend(behind);
        for lane in &lanes {
            self.tests.entry(*lane).or_default().extend(executions.iter().map(|row| row.test_case));
        }
        self.counted += executions.len();
        self.runs.push(RunPart { run, lanes, last, executions });
        Ok(last)
    }

    /// Counts everything, run by run. Answers the runs as they are then, and how
    /// many tests count again.
    async fn count(self, session: &mut Session, project: ProjectId) -> Result<(Vec<RunRow>, i64)> {
        let all: BTreeSet<i64> =
            self.runs.iter().flat_map(|part| &part.executions).map(|row| row.came_as().get()).collect();
        let paths = test_cases::reported_paths(session, project, all.into_iter().collect()).await?;
        let mut states = States::default();
        for (lane, cases) in self.tests {
            let cases: Vec<TestCaseId> = cases.into_iter().collect();
            states.join(rollups::lock_states(session, project, &[lane], &cases).await?);
        }
        let back = take_back(session, project, &states, &self.runs).await?;
        let mut tally = AggregateDelta::over(states);
        let mut counted = Vec::with_capacity(self.runs.len());
        for RunPart { mut run, lanes, last, executions: rows } in self.runs {
            run.counted_to = last;
            if run.waiting() == 0 {
                run.uncounted_since = None;
            }
            runs::set_counted(session, &run).await?;
            let anew = tally.compared_anew(session, &run, &rows).await?;
            executions::set_flags(session, project, run.id, &anew).await?;
            let rows = rows.iter().map(|row| {
                let file_path = paths.get(&row.came_as()).map_or("", String::as_str);
                let after = seen(row, run.order_at, run.is_mass_failure);
                Counted { test_case: row.test_case, file_path, before: None, after }
            });
            let rows: Vec<Counted<'_>> = rows.collect();
            tally.count(session, &run, &lanes, &rows, run.updated_at).await?;
            counted.push(run);
        }
        tally.write(session, project).await?;
        Ok((counted, back))
    }
}

/// Lets tests count again whose last counted run was deleted after these results
/// had come, and before they were counted; answers how many they are.
async fn take_back(
    session: &mut Session,
    project: ProjectId,
    states: &States,
    runs: &[RunPart],
) -> Result<i64> {
    let has_none = |test: TestCaseId| {
        states.get(&(OF_ALL_RUNS, test)).is_none_or(|state| state.counts().total_tests == 0)
    };
    // The newest run that has a test says what it is like. They come in their order.
    let mut newest: BTreeMap<i64, Timestamp> = BTreeMap::new();
    for part in runs {
        let tests = part.executions.iter().map(|row| row.test_case).filter(|test| has_none(*test));
        newest.extend(tests.map(|test| (test.get(), part.run.order_at)));
    }
    let mut by_start: BTreeMap<Timestamp, Vec<i64>> = BTreeMap::new();
    for (test, start) in newest {
        by_start.entry(start).or_default().push(test);
    }
    let mut back = 0;
    for (start, tests) in by_start {
        back += test_cases::take_back(session, project, tests, start).await?;
    }
    Ok(i64::try_from(back).unwrap_or(i64::MAX))
}
