//! What is remarkable about a run: what broke, what recovered, what became
//! slow, and who had most to do.

use std::collections::{BTreeMap, HashMap, HashSet};

use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::{DEFAULT_WINDOW, FlakyClass, assess};
use callboard_domain::ids::{ClusterId, ProjectId, RunId, TestCaseId};
use callboard_domain::insights::{self, Shift};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_store::db::Session;
use callboard_store::executions::brief::{self, BriefRow};
use callboard_store::runs::{self, RunRow};
use callboard_store::test_cases::TestCaseRow;
use callboard_store::{boxed, clusters, lanes, rollups, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::baseline::{self, Baseline, BaselineRun};
use crate::comparison::each_step;
use crate::flakiness::judged_lane;
use crate::runs::required_run;
use crate::shapes::{Totals, non_empty};
use crate::test_cases::LaneQuery;
use crate::{Context, Result};
use callboard_ingest::read_session_with_fresh_aggregates;

/// Most tests in a list.
const LISTED: usize = 20;
/// Most tests among the slowest and the most changed ones.
const TOP: usize = 5;
/// Most workers that are listed, the busiest first.
const WORKERS: usize = 200;
/// Tests whose earlier durations are read at a time.
const STEP: usize = 500;
/// Tests of an old run whose earlier passes are looked up one by one, and the
/// days before it that are looked through.
const LONG_AGO: usize = 50;
/// See [`LONG_AGO`].
const LONG_AGO_DAYS: i64 = 28;

/// What is remarkable about a run. Without anything to compare with, every
/// comparing field is null.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunInsights {
    /// Whether there is something to compare with: an earlier green run, or earlier outcomes of the tests.
    pub has_baseline: bool,
    /// The green run it is measured against.
    pub baseline: Option<Baseline>,
    /// Totals.
    #[serde(flatten)]
    pub totals: Totals,
    /// Passed / (passed + failed).
    pub pass_rate: Option<f64>,
    /// That of the green run.
    pub baseline_pass_rate: Option<f64>,
    /// How much of the pass rate was won.
    pub pass_rate_delta: Option<f64>,
    /// How much longer a test takes on average than in the green run.
    pub avg_duration_delta: Option<i64>,
    /// Tests that passed before and fail now.
    pub new_regressions: Option<Vec<InsightTest>>,
    /// Tests that failed before and still do, and tests that nothing is known of and that fail now
    /// as others failed in earlier runs.
    pub recurrences: Option<Vec<InsightTest>>,
    /// Tests that failed before and pass now.
    pub recovered: Option<Vec<InsightTest>>,
    /// Tests that passed at the first attempt before and are flaky now; first those that were not
    /// called flaky before.
    pub new_flaky: Option<Vec<InsightTest>>,
    /// Tests that passed after a failed attempt.
    pub flaky_on_retry: Vec<InsightTest>,
    /// The five tests that took longest.
    pub slowest_tests: Vec<InsightTest>,
    /// Passed tests that became faster than their median of late, most first; null when none of them ran before.
    pub most_improved: Option<Vec<InsightTest>>,
    /// Passed tests that became slower than their median of late, most first; null likewise.
    pub most_regressed: Option<Vec<InsightTest>>,
    /// Who ran how much, the busiest first.
    pub workers: Vec<WorkerLoad>,
    /// How much longer the busiest worker took than the mean: 0 when all took the same.
    pub worker_imbalance: Option<f64>,
    /// Failures nobody had seen before.
    pub new_clusters: Vec<NewCluster>,
    /// Causes of new regressions that an earlier run had already shown, on another branch, in another
    /// environment or in another test; what most of them fail for first. At most 20.
    pub known_causes: Vec<KnownCause>,
    /// Lengths of the whole lists.
    pub counts: InsightCounts,
}

/// A cause of new regressions that was seen before.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownCause {
    /// Cluster.
    pub cluster_id: i64,
    /// What it is about.
    pub signature: String,
    /// New regressions of the run that fail for it; a test counts once in each browser.
    pub tests: i64,
    /// The run that showed it first.
    pub first_seen_run_id: i64,
    /// Branch of that run.
    pub branch: Option<String>,
    /// Environment of that run.
    pub environment: Option<String>,
}

/// A failure nobody had seen before.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewCluster {
    /// Cluster.
    pub cluster_id: i64,
    /// What it is about.
    pub signature: String,
}

/// A remarkable test.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InsightTest {
    /// Execution.
    pub execution_id: i64,
    /// Test case.
    pub test_case_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first; for pages.
    #[serde(skip)]
    pub suite_path: Vec<String>,
    /// Duration of the deciding attempt.
    pub duration: Option<i64>,
    /// Median of up to 20 earlier passes, where it matters.
    pub previous_duration: Option<i64>,
    /// Highest retry.
    pub retries: Option<i64>,
    /// Name of the browser project; empty when there is none.
    #[schema(example = "chromium")]
    pub browser_project: String,
}

/// What one worker did, together with those that took its place.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerLoad {
    /// Its index; of several that took each other's place, the first one's.
    pub worker_index: i64,
    /// Their parallel slot; null where the client does not tell it.
    pub parallel_index: Option<i64>,
    /// Its shard; null outside shards.
    pub shard_index: Option<i64>,
    /// Tests it ended.
    pub tests: i64,
    /// Sum over all their attempts.
    pub duration: i64,
}

/// Lengths of the lists of insights; null where the list is.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InsightCounts {
    /// Passed before and fail now.
    pub new_regressions: Option<i64>,
    /// Failed before and still do, or fail as others did.
    pub recurrences: Option<i64>,
    /// Failed before and pass now.
    pub recovered: Option<i64>,
    /// Stable before and flaky now.
    pub new_flaky: Option<i64>,
    /// Passed after a failed attempt.
    pub flaky_on_retry: i64,
    /// Became faster.
    pub improved: Option<i64>,
    /// Became slower.
    pub regressed: Option<i64>,
    /// Workers.
    pub workers: i64,
    /// Failures nobody had seen before.
    pub new_clusters: i64,
    /// Causes of new regressions that an earlier run had already shown.
    pub known_causes: i64,
}

/// A list that is cut, and how long it is.
#[derive(Default)]
struct Listed {
    rows: Vec<BriefRow>,
    count: i64,
}

impl Listed {
    fn push(&mut self, row: BriefRow) {
        self.count += 1;
        if self.rows.len() < LISTED {
            self.rows.push(row);
        }
    }
}

#[derive(Default)]
struct Read {
    /// Clusters that the run is the first to show.
    new_clusters: HashSet<ClusterId>,
    is_known: bool,
    new_regressions: Listed,
    /// How many of the new regressions fail as something failed in an earlier run.
    known_causes: HashMap<ClusterId, i64>,
    recurrences: Listed,
    recovered: Listed,
    new_flaky: Vec<BriefRow>,
    flaky: Listed,
    slowest: Vec<BriefRow>,
    passed: Vec<BriefRow>,
    workers: BTreeMap<(i64, i64), WorkerLoad>,
}

impl Read {
    /// It fails as something failed in an earlier run.
    fn old_cluster(&self, row: &BriefRow) -> Option<ClusterId> {
        row.cluster.filter(|cluster| !self.new_clusters.contains(cluster))
    }

    fn take(&mut self, row: BriefRow) {
        let has = |flag: Flags| row.flags.contains(flag);
        let is_failing = row.outcome.status().is_failing();
        self.is_known |= has(Flags::BASELINE_KNOWN);
        if !has(Flags::QUARANTINED) {
            if has(Flags::NEW_REGRESSION) {
                self.new_regressions.push(row);
                if let Some(cluster) = self.old_cluster(&row) {
                    *self.known_causes.entry(cluster).or_default() += 1;
                }
            } else if is_failing && (has(Flags::BASELINE_KNOWN) || self.old_cluster(&row).is_some()) {
                self.recurrences.push(row);
            }
            if has(Flags::FIXED) {
                self.recovered.push(row);
            }
            if has(Flags::NEW_FLAKY) {
                self.new_flaky.push(row);
            }
        }
        if row.outcome == Outcome::Flaky {
            self.flaky.push(row);
        }
        if matches!(row.outcome, Outcome::Passed | Outcome::Flaky) {
            self.passed.push(row);
        }
        if !matches!(row.outcome, Outcome::Skipped | Outcome::DidNotRun) {
            let place = self.slowest.partition_point(|slow| slow.duration_ms >= row.duration_ms);
            if place < TOP {
                self.slowest.insert(place, row);
                self.slowest.truncate(TOP);
            }
            // A worker that failed a test is replaced by one with another index in the same slot.
            if let Some(worker) = row.worker_index {
                let key = (row.shard_index.unwrap_or_default(), row.parallel_index.unwrap_or(worker));
                let load = self.workers.entry(key).or_insert(WorkerLoad {
                    worker_index: worker,
                    parallel_index: row.parallel_index,
                    shard_index: row.shard_index,
                    tests: 0,
                    duration: 0,
                });
                load.worker_index = load.worker_index.min(worker);
                load.tests += 1;
                load.duration += row.total_duration_ms;
            }
        }
    }
}

/// What is remarkable about a run: bounded by the rows of the run.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn of_run(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<RunInsights> {
    let mut session = read_session_with_fresh_aggregates(ctx, project.get()).await?;
    let row = required_run(&mut session, project.get(), run).await?;
    let green = baseline::of_run(&mut session, &row).await?;
    let new_clusters = clusters::reads::new_of_run(&mut session, project.get(), run, i64::MAX).await?;
    let mut read = Read { new_clusters: new_clusters.iter().copied().collect(), ..Read::default() };
    each_step(&mut session, &row, |row| read.take(row)).await?;
    let new_flaky = newly_flaky_first(&mut session, &row, &read.new_flaky).await?;
    let shifts = shifts(&mut session, &row, &read.passed).await?;
    let names = Names::load(&mut session, &row, &read, &new_flaky, &shifts).await?;

    let has_baseline = read.is_known || green.is_some();
    let list = |listed: &Listed| listed.rows.iter().filter_map(|row| names.shown(row, None)).collect();
    let compared = |listed: &Listed| has_baseline.then(|| list(listed));
    let counted = |listed: &Listed| has_baseline.then_some(listed.count);
    let top = |shifts: &[(BriefRow, Shift)]| {
        shifts.iter().take(TOP).filter_map(|(row, shift)| names.shown(row, Some(shift.before_ms))).collect()
    };
    let mut workers: Vec<WorkerLoad> = read.workers.values().copied().collect();
    let loads: Vec<i64> = workers.iter().map(|worker| worker.duration).collect();
    workers.sort_by_key(|worker| std::cmp::Reverse(worker.duration));
    let worker_count = count(workers.len());
    workers.truncate(WORKERS);
    let rates = Rates::from_run(&row, green.as_ref());
    let counts = InsightCounts {
        new_regressions: counted(&read.new_regressions),
        recurrences: counted(&read.recurrences),
        recovered: counted(&read.recovered),
        new_flaky: counted(&new_flaky),
        flaky_on_retry: read.flaky.count,
        improved: shifts.as_ref().map(|shifts| count(shifts.faster.len())),
        regressed: shifts.as_ref().map(|shifts| count(shifts.slower.len())),
        workers: worker_count,
        new_clusters: count(new_clusters.len()),
        known_causes: count(read.known_causes.len()),
    };
    let listed_clusters = named(&mut session, project.get(), &new_clusters).await?;
    let known_causes = known_causes(&mut session, project.get(), &read.known_causes).await?;
    Ok(RunInsights {
        has_baseline,
        baseline: green.as_ref().map(Baseline::from_run),
        totals: row.totals.into(),
        pass_rate: row.totals.pass_rate(),
        baseline_pass_rate: rates.before,
        pass_rate_delta: rates.delta,
        avg_duration_delta: green
            .as_ref()
            .and_then(|green| Some(row.test_durations.mean? - green.row.test_durations.mean?)),
        new_regressions: compared(&read.new_regressions),
        recurrences: compared(&read.recurrences),
        recovered: compared(&read.recovered),
        new_flaky: compared(&new_flaky),
        flaky_on_retry: list(&read.flaky),
        slowest_tests: read.slowest.iter().filter_map(|row| names.shown(row, None)).collect(),
        most_improved: shifts.as_ref().map(|shifts| top(&shifts.faster)),
        most_regressed: shifts.as_ref().map(|shifts| top(&shifts.slower)),
        workers,
        worker_imbalance: insights::imbalance(&loads),
        counts,
        new_clusters: listed_clusters,
        known_causes,
    })
}

/// The first of some clusters, with what they are about.
async fn named(session: &mut Session, project: ProjectId, all: &[ClusterId]) -> Result<Vec<NewCluster>> {
    let listed = &all[..all.len().min(LISTED)];
    let rows = clusters::get_many(session, project, listed.iter().map(|id| id.get()).collect()).await?;
    let shown = listed.iter().filter_map(|id| rows.iter().find(|row| row.id == *id));
    Ok(shown.map(|row| NewCluster { cluster_id: row.id.get(), signature: row.signature.clone() }).collect())
}

/// The causes that most tests fail for, and where they were seen first.
async fn known_causes(
    session: &mut Session,
    project: ProjectId,
    tests: &HashMap<ClusterId, i64>,
) -> Result<Vec<KnownCause>> {
    let mut most: Vec<(ClusterId, i64)> = tests.iter().map(|(cluster, tests)| (*cluster, *tests)).collect();
    most.sort_by_key(|(cluster, tests)| (std::cmp::Reverse(*tests), *cluster));
    most.truncate(LISTED);
    if most.is_empty() {
        return Ok(Vec::new());
    }
    let ids = most.iter().map(|(cluster, _)| cluster.get()).collect();
    let rows = clusters::get_many(session, project, ids).await?;
    let first = rows.iter().map(|row| row.first_run.get()).collect();
    let runs = runs::get_many(session, project, first).await?;
    let shown = |(cluster, tests): &(ClusterId, i64)| {
        let row = rows.iter().find(|row| row.id == *cluster)?;
        // The run may be gone while the cluster stays.
        let run = runs.iter().find(|run| run.id == row.first_run);
        Some(KnownCause {
            cluster_id: row.id.get(),
            signature: row.title.clone().unwrap_or_else(|| row.signature.clone()),
            tests: *tests,
            first_seen_run_id: row.first_run.get(),
            branch: run.and_then(|run| non_empty(&run.branch)),
            environment: run.and_then(|run| non_empty(&run.environment)),
        })
    };
    Ok(most.iter().filter_map(shown).collect())
}

fn count(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

struct Rates {
    before: Option<f64>,
    delta: Option<f64>,
}

impl Rates {
    fn from_run(run: &RunRow, green: Option<&BaselineRun>) -> Self {
        let before = green.and_then(|green| green.row.totals.pass_rate());
        let delta = run.totals.pass_rate().zip(before).map(|(now, before)| now - before);
        Self { before, delta: delta.map(|delta| (delta * 10_000.0).round() / 10_000.0) }
    }
}

/// Puts tests first that nobody called flaky before the run: the others do
/// again what is known of them.
async fn newly_flaky_first(session: &mut Session, run: &RunRow, rows: &[BriefRow]) -> Result<Listed> {
    let mut listed = Listed::default();
    let Some(lane) = judged_lane(session, run.project, &LaneQuery::default()).await? else {
        rows.iter().for_each(|row| listed.push(*row));
        return Ok(listed);
    };
    let mut known = Vec::new();
    for part in rows.chunks(STEP) {
        let tests = part.iter().map(|row| row.test_case.get()).collect();
        let states = rollups::states_in(session, run.project, lane.id, tests).await?;
        for row in part {
            let before = states.get(&row.test_case).map(|state| state.before(run.order_at, run.id));
            let found = before.and_then(|before| assess(before, lane.window(DEFAULT_WINDOW)));
            match found.map(|found| found.posterior.class) {
                Some(FlakyClass::Flaky) => known.push(*row),
                _ => listed.push(*row),
            }
        }
    }
    known.into_iter().for_each(|row| listed.push(row));
    Ok(listed)
}

/// Tests whose duration changed notably, most first.
struct Shifts {
    faster: Vec<(BriefRow, Shift)>,
    slower: Vec<(BriefRow, Shift)>,
}

impl Shifts {
    /// Measures a passed test against its earlier passes.
    fn take(&mut self, row: BriefRow, earlier: &[i64]) {
        match insights::shift(row.duration_ms, earlier) {
            Some(shift) if shift.delta_ms() > 0 => self.slower.push((row, shift)),
            Some(shift) => self.faster.push((row, shift)),
            None => {}
        }
    }
}

/// Measures passed tests against their earlier passes in the lane of the run;
/// `None` when none of them has any.
async fn shifts(session: &mut Session, run: &RunRow, passed: &[BriefRow]) -> Result<Option<Shifts>> {
    let mut found = Shifts { faster: Vec::new(), slower: Vec::new() };
    let mut is_known = false;
    let mut long_ago: Vec<(i64, BriefRow)> = Vec::new();
    for part in passed.chunks(STEP) {
        let tests = part.iter().map(|row| row.test_case.get()).collect();
        let states = rollups::states_in(session, run.project, run.lane_id, tests).await?;
        for row in part {
            let Some(state) = states.get(&row.test_case) else { continue };
            if state.knows_before(run.order_at, run.id) {
                let earlier = state.passed_durations_before(row.browser_id, run.order_at, run.id);
                is_known |= !earlier.is_empty();
                found.take(*row, &earlier);
            } else {
                let usual = insights::median(&state.passed_durations()).unwrap_or(row.duration_ms);
                long_ago.push(((row.duration_ms - usual).abs(), *row));
            }
        }
    }
    // Of an old run those are read again that took other than they do now.
    long_ago.sort_by_key(|(change, row)| (std::cmp::Reverse(*change), row.id));
    long_ago.truncate(LONG_AGO);
    let tests: Vec<i64> = long_ago.iter().map(|(_, row)| row.test_case.get()).collect();
    if !tests.is_empty() {
        let most = i64::try_from(insights::EARLIER_PASSES).unwrap_or(i64::MAX);
        let earlier = brief::passes_before(session, run, LONG_AGO_DAYS, tests, most).await?;
        is_known |= !earlier.is_empty();
        for (_, row) in &long_ago {
            found.take(*row, earlier.get(&row.series()).map_or(&[], Vec::as_slice));
        }
    }
    for list in [&mut found.faster, &mut found.slower] {
        list.sort_by_key(|(row, shift)| (std::cmp::Reverse(shift.delta_ms().abs()), row.id));
    }
    Ok(is_known.then_some(found))
}

/// What the listed tests and their browser projects are called.
struct Names {
    cases: HashMap<TestCaseId, TestCaseRow>,
    browsers: HashMap<i64, String>,
}

impl Names {
    async fn load(
        session: &mut Session,
        run: &RunRow,
        read: &Read,
        new_flaky: &Listed,
        shifts: &Option<Shifts>,
    ) -> Result<Self> {
        let lists = [&read.new_regressions, &read.recurrences, &read.recovered, new_flaky, &read.flaky];
        let mut ids: Vec<i64> = lists
            .iter()
            .flat_map(|list| &list.rows)
            .chain(&read.slowest)
            .map(|row| row.test_case.get())
            .collect();
        for shifts in shifts.iter().flat_map(|shifts| [&shifts.faster, &shifts.slower]) {
            ids.extend(shifts.iter().take(TOP).map(|(row, _)| row.test_case.get()));
        }
        let cases = test_cases::get_many(session, run.project, ids).await?;
        let browsers = lanes::browsers(session, run.project).await?;
        let browsers = browsers.into_iter().map(|browser| (browser.id, browser.name)).collect();
        Ok(Self { cases, browsers })
    }

    fn shown(&self, row: &BriefRow, previous_duration: Option<i64>) -> Option<InsightTest> {
        let case = self.cases.get(&row.test_case)?;
        Some(InsightTest {
            execution_id: row.id.get(),
            test_case_id: row.test_case.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            suite_path: case.suite_path.clone(),
            duration: Some(row.duration_ms),
            previous_duration,
            retries: Some(row.retries),
            browser_project: self.browsers.get(&row.browser_id).cloned().unwrap_or_default(),
        })
    }
}
