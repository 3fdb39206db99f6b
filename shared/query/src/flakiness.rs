//! Questions about flaky tests: which there are, and what they cost.

mod classification;
mod counting;
pub(crate) mod exact;
mod judging;
pub mod settings;
mod turning;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::flakiness::{
    Assessment, DEFAULT_WINDOW, FlakyClass, RootCause, ScoreAt, Window, assess, course,
};
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::lane::LaneKey;
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{RecentOutcome, TestCategory, TestState};
use callboard_domain::time::{Day, Timestamp};
use callboard_store::db::Session;
use callboard_store::lanes::Speaking;
use callboard_store::rollups::scores::{self, FlakyFilter, FlakyRow};
use callboard_store::rollups::{self, CatalogueLanes};
use callboard_store::test_cases::{self, OwnerSource};
use callboard_store::{boxed, lanes, runs};
use serde::Serialize;
use utoipa::ToSchema;

use crate::page::Slice;
use crate::shapes::words::FlakyClassWord;
use crate::test_cases::{LaneQuery, bare_tag};
use crate::{Context, Entity, QueryError, Result};
use callboard_ingest::{read_session_with_fresh_aggregates, read_session_with_fresh_aggregates_in};

pub use classification::classify;
pub use counting::counts;
pub(crate) use counting::counts_in;
pub use judging::judge_run;
pub use turning::find_newly_flaky;

/// Runs that a default branch needs, so that it speaks for the project.
const ENOUGH_RUNS: i64 = 20;
/// Least score a listed test can have: below it a test is not called flaky.
pub const LEAST_LISTED: i64 = 30;
/// Least score of a test that is counted as flaky where projects are counted up.
pub const LEAST_COUNTED: i64 = 90;
/// Flaky tests of a project that are counted at most.
const MOST_COUNTED: i64 = 1_000;
/// Days that are looked through for the last flake of a test.
const LAST_FLAKE_DAYS: i64 = 90;

/// The lane tests are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JudgedLane {
    /// The lane.
    pub(crate) id: i64,
    /// Whether executions that failed in the end speak about chance: not across
    /// branches, where a test fails because of what is being developed.
    pub(crate) believes_failures: bool,
}

impl JudgedLane {
    /// The window of the stored score.
    pub(crate) const fn window(self, runs: usize) -> Window {
        Window { runs, failures: self.believes_failures }
    }
}

/// The lane that speaks for what is asked: that of the branch; without one,
/// that of the default branch when it has enough runs there, or of the only branch
/// there is unless the default branch is another one; else all runs together.
/// `None` when nothing ran there.
pub(crate) async fn judged_lane(
    session: &mut Session,
    project: ProjectId,
    lane: &LaneQuery,
) -> Result<Option<JudgedLane>> {
    let environment = lane.environment.as_deref();
    let branch = match &lane.branch {
        Some(branch) => Some(branch.clone()),
        None => {
            let mut told = lanes::speaking(session, vec![project.get()], environment, ENOUGH_RUNS).await?;
            let told =
                told.remove(&project).ok_or_else(|| QueryError::not_found(Entity::Project, project))?;
            speaking_branch(told)
        }
    };
    if let Some(branch) = branch {
        let key = LaneKey::asked(Some(&branch), environment);
        if let Some(id) = lanes::find_lane(session, project, &key).await? {
            return Ok(Some(JudgedLane { id, believes_failures: true }));
        }
        if lane.branch.is_some() {
            return Ok(None);
        }
    }
    let all = lanes::find_lane(session, project, &LaneKey::asked(None, environment)).await?;
    Ok(all.map(|id| JudgedLane { id, believes_failures: false }))
}

/// The branch that speaks for a project. Where all runs are of one branch its
/// failures are believed from the first run on: no other branch could bring
/// failures of unfinished work. That branch must not be unfinished work itself.
fn speaking_branch(told: Speaking) -> Option<String> {
    let default = told.default_branch.filter(|branch| !branch.is_empty());
    if let Some(only) = told.only_branch
        && default.as_ref().is_none_or(|default| *default == only)
    {
        return Some(only);
    }
    default.filter(|_| told.decided_runs >= ENOUGH_RUNS)
}

/// How flaky tests are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Sort {
    /// Most probably flaky first.
    #[default]
    Score,
    /// Most expensive first, by the machine's time and by how often a person
    /// was interrupted.
    Impact,
    /// Those that took most time of the machine first, and of those that took
    /// the same, or do not say how much, those that were retried most.
    Lost,
}

/// The order of [`Sort::Lost`] as one number.
fn lost_rank(wasted_ms: i64, retry_passes: i64) -> i64 {
    const RETRIES: i64 = 1 << 12;
    wasted_ms.saturating_mul(RETRIES).saturating_add(retry_passes.min(RETRIES - 1))
}

/// The conditions of a list of flaky tests.
#[derive(Debug, Clone, Default)]
pub struct FlakyQuery {
    /// Branch and environment.
    pub lane: LaneQuery,
    /// Newest decided runs to look at; `None` is the usual number.
    pub runs: Option<usize>,
    /// Only tests that failed or passed on a retry within this many days.
    pub days: Option<i64>,
    /// Least score.
    pub min_score: Option<i64>,
    /// All of these tags, with or without `@`.
    pub tags: Vec<String>,
    /// Only this owner.
    pub owner: Option<String>,
    /// Only this priority.
    pub priority: Option<String>,
    /// Only this cause.
    pub root_cause: Option<RootCause>,
    /// Sort.
    pub sort: Sort,
    /// Key of the last row of the page before: what it is sorted by, and id.
    pub after: Option<(i64, i64)>,
}

/// How sure a rate is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Confidence {
    /// 5 % quantile of the share of attempts that fail by chance.
    pub low: f64,
    /// 95 % quantile.
    pub high: f64,
}

/// A flaky test.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlakyTest {
    /// Test case id.
    pub test_case_id: i64,
    /// Its newest execution.
    pub latest_execution_id: i64,
    /// Title.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// One hundred times the probability that it fails by chance.
    #[schema(minimum = 0, maximum = 100)]
    pub flaky_score: i64,
    /// flaky or suspected.
    #[schema(value_type = FlakyClassWord)]
    pub class: FlakyClass,
    /// Between which rates it fails by chance.
    pub confidence: Confidence,
    /// Expected share of attempts that fail by chance.
    pub rate: f64,
    /// Probability that the next twenty runs see it fail by chance at least once.
    pub next_twenty_risk: f64,
    /// When it fails just now: the probability that this is a regression and not chance.
    pub regression_probability: Option<f64>,
    /// Failed / decided executions.
    pub failure_rate: f64,
    /// Decided executions, runs in which nearly everything failed left out.
    pub run_count: i64,
    /// Those that failed or timed out in the end.
    pub fail_count: i64,
    /// Those that passed on a retry.
    pub retry_pass_count: i64,
    /// Changes between passing and failing within one browser project.
    pub alternation_count: i64,
    /// Those of the changes among the newest sixteen executions that happened on one commit.
    pub same_commit_flips: i64,
    /// timing, network, assertion, environment or other.
    pub root_cause: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Owner.
    pub owner: Option<String>,
    /// Where the owner is named: `annotation` or `codeowners`.
    pub owner_source: Option<&'static str>,
    /// Priority.
    pub priority: Option<String>,
    /// What it costs, for ordering.
    pub impact: i64,
    /// Time lost on attempts that a retry made good, and on the retries of
    /// executions that failed in the end, ms.
    pub wasted_duration: i64,
    /// Mean time lost by an execution that did not pass on the first attempt, ms.
    pub avg_failed_duration: i64,
    /// When it last failed or passed on a retry; the start of the day when that was more than sixteen executions ago.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_flake_at: Option<Timestamp>,
    /// Whether it is known how long its failed attempts took; else both times lost are 0.
    #[serde(skip)]
    pub knows_durations: bool,
    /// How its newest executions ended, oldest first; for drawings.
    #[serde(skip)]
    pub recent: Vec<Outcome>,
}

struct Judged {
    case: TestCaseId,
    state: TestState,
    found: Assessment,
}

impl Judged {
    fn key(&self, sort: Sort) -> (i64, i64) {
        let value = match sort {
            Sort::Score => self.found.posterior.score(),
            Sort::Impact => self.found.evidence.impact(),
            Sort::Lost => lost_rank(self.found.evidence.wasted_ms, self.found.evidence.retry_passes),
        };
        (value, self.case.get())
    }
}

/// A page of the flaky tests of a project. Bounded by the tests of the project
/// that failed at all, whatever their history. With the page comes how many
/// tests there are.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &FlakyQuery,
    today: Day,
    limit: usize,
) -> Result<(Slice<FlakyTest, (i64, i64)>, usize)> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let Some(lane) = judged_lane(&mut session, project, &query.lane).await? else {
        return Ok((Slice { items: Vec::new(), next: None }, 0));
    };
    let mut judged = judge(&mut session, project, lane, query).await?;
    if let Some(days) = query.days {
        let since = Day(today.0 - days + 1);
        let all: Vec<&Judged> = judged.iter().collect();
        let flakes = last_flakes(&mut session, project, lane, &all, since, today).await?;
        judged.retain(|test| flakes.get(&test.case).is_some_and(|at| at.day() >= since));
    }
    let total = judged.len();
    judged.sort_by_key(|test| {
        let (value, id) = test.key(query.sort);
        (Reverse(value), id)
    });
    if let Some((value, id)) = query.after {
        judged.retain(|test| {
            let (own, own_id) = test.key(query.sort);
            (Reverse(own), own_id) > (Reverse(value), id)
        });
    }
    judged.truncate(limit + 1);
    let page = Slice::cut(judged, limit, |test| test.key(query.sort));
    let found = page.items.into_iter().map(|test| (project, lane, test)).collect();
    let items = show(&mut session, found, today).await?.into_iter().map(|(_, test)| test).collect();
    Ok((Slice { items, next: page.next }, total))
}

/// What is known of the flakiness of one test.
#[derive(Debug, Default)]
pub struct TestFlakiness {
    /// As the list of flaky tests has it; nothing of one that is not on it.
    pub now: Option<FlakyTest>,
    /// How its score came about; empty when it never had one.
    pub course: Vec<ScoreAt>,
}

/// Moments at which a score is told.
const COURSE: usize = 40;

/// What is known of the flakiness of one test.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn of_test(
    ctx: &Context,
    project: Authorized<ProjectId>,
    case: TestCaseId,
    lane: &LaneQuery,
    today: Day,
) -> Result<TestFlakiness> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let Some(lane) = judged_lane(&mut session, project, lane).await? else {
        return Ok(TestFlakiness::default());
    };
    let lanes = CatalogueLanes { shown: lane.id, judged: lane.id };
    let mut rows = rollups::with_states(&mut session, project, lanes, vec![case.get()]).await?;
    let Some(state) = rows.pop().and_then(|row| row.state) else { return Ok(TestFlakiness::default()) };
    let window = lane.window(DEFAULT_WINDOW);
    let course = course(state.recent(), window, COURSE);
    let min_runs = settings::effective(&mut session, project).await?.min_runs;
    let found = assess(state.recent(), window).filter(|found| is_listed(found, LEAST_LISTED, min_runs));
    let judged = found.map(|found| (project, lane, Judged { case, state, found })).into_iter().collect();
    let now = show(&mut session, judged, today).await?.pop().map(|(_, test)| test);
    Ok(TestFlakiness { now, course })
}

/// The flakiest tests of some projects together, in the order asked for: as many
/// statements to find them for one project as for many.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn leaders(
    ctx: &Context,
    projects: &[Authorized<ProjectId>],
    asked: &LaneQuery,
    sort: Sort,
    today: Day,
    limit: usize,
) -> Result<Vec<(ProjectId, FlakyTest)>> {
    let ids: Vec<ProjectId> = projects.iter().map(|project| project.get()).collect();
    let mut session = read_session_with_fresh_aggregates_in(ctx, Some(&ids)).await?;
    let lanes = counting::judged_lanes(&mut session, &ids, asked, LEAST_LISTED).await?;
    let flaky: Vec<ProjectId> = lanes.keys().copied().collect();
    let settings = settings::effective_of(&mut session, &flaky).await?;
    let places = lanes.iter().map(|(project, lane)| (project.get(), lane.id)).unzip();
    let mut found = Vec::new();
    for (project, _, FlakyRow { case, state }) in scores::flaky_in(&mut session, places, LEAST_LISTED).await?
    {
        let (Some(lane), Some(set)) = (lanes.get(&project), settings.get(&project)) else { continue };
        let judged = assess(state.recent(), lane.window(DEFAULT_WINDOW));
        if let Some(judged) = judged.filter(|judged| is_listed(judged, LEAST_LISTED, set.min_runs)) {
            found.push((project, *lane, Judged { case, state, found: judged }));
        }
    }
    let order = |test: &Judged| (Reverse(test.key(sort).0), test.case);
    found.sort_by_key(|(_, _, test)| order(test));
    found.truncate(limit);
    // Only what is shown is read whole.
    let mut shown = show(&mut session, found, today).await?;
    shown.sort_by_key(|(_, test)| {
        let value = match sort {
            Sort::Score => test.flaky_score,
            Sort::Impact => test.impact,
            Sort::Lost => lost_rank(test.wasted_duration, test.retry_pass_count),
        };
        (Reverse(value), test.test_case_id)
    });
    Ok(shown)
}

async fn judge(
    session: &mut Session,
    project: ProjectId,
    lane: JudgedLane,
    query: &FlakyQuery,
) -> Result<Vec<Judged>> {
    let runs = query.runs.unwrap_or(DEFAULT_WINDOW);
    let least = query.min_score.unwrap_or(0).max(LEAST_LISTED);
    let filter = FlakyFilter {
        min_score: (runs == DEFAULT_WINDOW).then_some(least),
        tags: query.tags.iter().map(|tag| bare_tag(tag)).collect(),
        owner: query.owner.clone(),
        priority: query.priority.clone(),
        root_cause: query.root_cause.map(|cause| cause.as_str().to_owned()),
    };
    let min_runs = settings::effective(session, project).await?.min_runs;
    let rows = scores::maybe_flaky(session, project, lane.id, &filter).await?;
    let judged = rows.into_iter().filter_map(|row| {
        let found = assess(row.state.recent(), lane.window(runs))?;
        is_listed(&found, least, min_runs).then_some(Judged { case: row.case, state: row.state, found })
    });
    Ok(judged.collect())
}

/// Whether a test is sure enough to fail by chance, and ran often enough for
/// that to be said.
fn is_listed(found: &Assessment, least: i64, min_runs: i64) -> bool {
    let is_sure = found.posterior.class.is_listed() && found.posterior.score() >= least;
    is_sure && found.evidence.runs >= min_runs
}

/// Reads what is shown of some tests: as many statements for those of many
/// projects as for those of one, but for the days of flakes long ago.
async fn show(
    session: &mut Session,
    found: Vec<(ProjectId, JudgedLane, Judged)>,
    today: Day,
) -> Result<Vec<(ProjectId, FlakyTest)>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = found.iter().map(|(.., test)| test.case.get()).collect();
    let projects: BTreeSet<i64> = found.iter().map(|(project, ..)| project.get()).collect();
    let projects: Vec<i64> = projects.into_iter().collect();
    let mut cases = test_cases::get_in(session, projects.clone(), ids.clone()).await?;
    let mut causes = test_cases::root_causes(session, projects.clone(), ids).await?;
    let commits = commits(session, projects, &found).await?;
    let since = Day(today.0 - LAST_FLAKE_DAYS);
    let mut of_project: BTreeMap<ProjectId, (JudgedLane, Vec<&Judged>)> = BTreeMap::new();
    for (project, lane, test) in &found {
        of_project.entry(*project).or_insert_with(|| (*lane, Vec::new())).1.push(test);
    }
    let mut last_flakes = HashMap::new();
    for (project, (lane, tests)) in of_project {
        last_flakes.extend(self::last_flakes(session, project, lane, &tests, since, today).await?);
    }
    let shown = found.into_iter().filter_map(|(project, _, test)| {
        let case = cases.remove(&test.case)?;
        let Judged { state, found: Assessment { posterior, broken, evidence }, .. } = &test;
        let shown = FlakyTest {
            test_case_id: case.id.get(),
            latest_execution_id: state.last_execution().get(),
            title: case.title,
            file_path: case.file_path,
            suite_path: case.suite_path,
            flaky_score: posterior.score(),
            class: posterior.class,
            confidence: Confidence { low: rounded(posterior.low), high: rounded(posterior.high) },
            rate: rounded(posterior.rate),
            next_twenty_risk: rounded(posterior.next_twenty_risk()),
            regression_probability: (state.category() == TestCategory::Failed).then(|| rounded(*broken)),
            failure_rate: evidence.failure_rate().unwrap_or(0.0),
            run_count: evidence.runs,
            fail_count: evidence.failed,
            retry_pass_count: evidence.retry_passes,
            alternation_count: evidence.alternations,
            same_commit_flips: same_commit_flips(state, &commits),
            root_cause: causes.remove(&test.case),
            tags: case.meta.tags,
            owner_source: case.owner_source.map(OwnerSource::as_str),
            owner: case.meta.owner,
            priority: case.meta.priority,
            impact: evidence.impact(),
            wasted_duration: evidence.wasted_ms,
            avg_failed_duration: evidence.mean_lost_ms.unwrap_or(0),
            knows_durations: evidence.mean_lost_ms.is_some(),
            last_flake_at: last_flakes.get(&test.case).copied(),
            recent: state.recent().map(|recent| recent.outcome).collect(),
        };
        Some((project, shown))
    });
    Ok(shown.collect())
}

/// Probabilities and shares are shown with four decimals.
fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

/// Commits of the runs of the newest executions.
async fn commits(
    session: &mut Session,
    projects: Vec<i64>,
    found: &[(ProjectId, JudgedLane, Judged)],
) -> Result<HashMap<RunId, String>> {
    let newest = found.iter().flat_map(|(.., test)| test.state.identified());
    let ids: BTreeSet<i64> = newest.map(|(_, execution, _)| execution.run().get()).collect();
    Ok(runs::commits_of(session, projects, ids.into_iter().collect()).await?)
}

fn same_commit_flips(state: &TestState, commits: &HashMap<RunId, String>) -> i64 {
    let mut before: HashMap<u8, (Option<&String>, bool)> = HashMap::new();
    let mut flips = 0;
    for (_, execution, recent) in state.identified() {
        if !recent.outcome.is_decided() || recent.is_mass_failure {
            continue;
        }
        let commit = commits.get(&execution.run());
        let now = (commit, recent.outcome.status().is_failing());
        if let Some((last_commit, has_failed)) = before.insert(recent.browser_slot, now) {
            flips += i64::from(commit.is_some() && last_commit == commit && has_failed != now.1);
        }
    }
    flips
}

/// When each of some tests last failed or passed on a retry, runs that failed
/// as a whole aside. Of what is older than its newest executions only the days
/// are known, not what kind of run it was in. One that did so neither lately
/// nor since a day has no entry.
async fn last_flakes(
    session: &mut Session,
    project: ProjectId,
    lane: JudgedLane,
    judged: &[&Judged],
    since: Day,
    today: Day,
) -> Result<HashMap<TestCaseId, Timestamp>> {
    let mut found = HashMap::new();
    // By the day before which their executions are not known one by one.
    let mut unknown: BTreeMap<Day, Vec<i64>> = BTreeMap::new();
    for test in judged {
        let is_clean = |outcome| !matches!(outcome, Outcome::Flaky | Outcome::Failed | Outcome::TimedOut);
        let is_told = |recent: &RecentOutcome| !recent.is_mass_failure && !is_clean(recent.outcome);
        match test.state.identified().rfind(|(.., recent)| is_told(recent)) {
            Some((at, ..)) => {
                found.insert(test.case, at);
            }
            None => {
                let oldest = test.state.identified().next().map_or(today, |(at, ..)| at.day());
                unknown.entry(oldest).or_default().push(test.case.get());
            }
        }
    }
    for (until, cases) in unknown {
        found.extend(scores::last_failing_days(session, project, lane.id, cases, since, until).await?);
    }
    Ok(found)
}
