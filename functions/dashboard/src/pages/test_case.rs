//! `/test-cases/{id}`: one test across runs.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::flakiness::ScoreAt;
use callboard_domain::ids::TestCaseId;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Day;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState};
use callboard_query::flakiness::{self, FlakyTest};
use callboard_query::links::Hook;
use callboard_query::notifications::Watched;
use callboard_query::quarantine::{self, Quarantine};
use callboard_query::shapes::{
    ExecutionWithRun, Facets, RunCounts, StabilityBucket, TestCaseDetail, TestCaseItem,
};
use callboard_query::test_cases::{self, HistoryQuery, LaneQuery};
use callboard_query::{projects, resolve};
use serde::Serialize;
use tokio::try_join;

use crate::address::chosen;
use crate::components::{
    ChanceRange, Choice, FilterBar, HistoryChart, LineOf, LinkPanel, MarkerList, Pager, Point, Series,
    ShiftList, TurnList,
};
use crate::filters;
use crate::outcome::{Tone, Toned};
use crate::shell::Shell;
use crate::text::{day_of, duration, percent};
use crate::visit::{Visit, answer};

/// Executions per page of the history.
const SIZE: PageSize = PageSize { min: 1, default: 30, max: 100 };
/// The parameter with the statuses of its history.
const STATUS: &str = "status";
/// Executions the chart shows.
const CHART: usize = 60;
/// Days the trends show, and how many of them have to have a result.
const TREND_DAYS: i64 = 60;
const FEWEST_DAYS: usize = 3;

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    branch: Option<String>,
    environment: Option<String>,
    browser: Option<String>,
    statuses: Vec<TestStatus>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let one = |name: &str| chosen(query, name).into_iter().next();
        Ok(Self {
            branch: one("branch"),
            environment: one("environment"),
            browser: one("browser"),
            statuses: query.words(STATUS, &TestStatus::ALL.map(TestStatus::as_str), TestStatus::parse)?,
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
    fn lane(&self) -> LaneQuery {
        LaneQuery { branch: self.branch.clone(), environment: self.environment.clone() }
    }

    /// How many executions of a test there are, whatever their browser project.
    fn count(&self, test: &TestCaseItem) -> i64 {
        let of = |status: &TestStatus| match status {
            TestStatus::Passed => test.passed,
            TestStatus::Failed => test.failed - test.timed_out,
            TestStatus::TimedOut => test.timed_out,
            TestStatus::Interrupted => test.interrupted,
            TestStatus::Skipped => test.skipped,
            TestStatus::DidNotRun => test.did_not_run,
        };
        if self.statuses.is_empty() {
            return test.total_runs;
        }
        TestStatus::ALL.iter().filter(|status| self.statuses.contains(status)).map(of).sum()
    }

    /// What narrows the numbers, the charts and the history.
    fn narrowing(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<_>>();
        FilterBar::new(&visit.address, &[STATUS])
            .branches(facets, "All branches", &one(&self.branch))
            .environments(facets, &one(&self.environment))
            .browsers(&facets.browsers, &one(&self.browser))
            .beside_another("the page")
    }

    /// What narrows its history alone.
    fn bar(&self, visit: &Visit) -> FilterBar {
        let statuses = TestStatus::ALL.map(|status| Choice::new(status.as_str(), status.tone().word()));
        let asked: Vec<String> = self.statuses.iter().map(|status| status.as_str().to_owned()).collect();
        FilterBar::new(&visit.address, &["branch", "environment", "browser"]).select(
            STATUS,
            "Status",
            "Any status",
            statuses,
            &asked,
        )
    }
}

/// Inputs of `pages/test_case.html`.
#[derive(Template)]
#[template(path = "pages/test_case.html")]
struct TestCasePage {
    shell: Shell,
    case: TestCaseDetail,
    tone: Tone,
    /// What narrows its numbers, its charts and its history.
    narrowing: FilterBar,
    /// Whether it shows less than all executions.
    is_narrowed: bool,
    /// The browser project that was chosen, which does not narrow all of it.
    browser: Option<String>,
    chart: HistoryChart,
    shifts: ShiftList,
    turns: TurnList,
    /// Reliability and duration by day, where there are days enough.
    trends: Option<(Series, Series)>,
    markers: MarkerList,
    quarantine: Option<Quarantine>,
    /// What is known of its flakiness, with its drawing; of one that is not
    /// called flaky nothing.
    flaky: Option<(FlakyTest, ChanceRange)>,
    /// Its score over its last executions, where it ever had one.
    course: Option<Series>,
    links: LinkPanel,
    filters: FilterBar,
    history: Vec<ExecutionWithRun>,
    /// Runs of its project: the history is of those that are kept.
    runs: RunCounts,
    pager: Pager,
    /// Whether the reader may set the test aside.
    may_triage: bool,
}

/// One test across runs.
pub(crate) async fn test_case(
    State(state): State<AppState>,
    visit: Visit,
    Path(id): Path<TestCaseId>,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let project = resolve::test_case(&visit.ctx, visit.scope(), id).await?;
    // Links to a joined test lead to the one that its results count for.
    let id = resolve::kept_test(&visit.ctx, project, id).await?;
    let cursors = CursorScope::new(RouteId::TestCasePage, &asked)?;
    let (lane, limit) = (asked.lane(), asked.page.limit as usize);
    let charted = HistoryQuery { browser: asked.browser.clone(), ..HistoryQuery::from_lane(&lane) };
    let query = HistoryQuery {
        statuses: asked.statuses.clone(),
        after: cursors.decode(asked.page.cursor.as_deref())?,
        ..charted.clone()
    };
    let today = visit.now.day();
    let since = Day(today.0 - TREND_DAYS + 1).start();
    let hook = Hook { target: LinkTarget::TestCase, id: id.get() };
    let ctx = &visit.ctx;
    let of_store = async {
        Ok(try_join!(
            test_cases::detail(ctx, project, id, &lane),
            test_cases::past(ctx, project, id, (&charted, CHART), (&query, limit)),
            test_cases::stability_by_day(ctx, project, id, &lane, TREND_DAYS, today),
            quarantine::of_test(ctx, project, id, visit.now),
            flakiness::of_test(ctx, project, id, &lane, today),
            projects::run_counts(ctx, project),
        )?)
    };
    let ((case, past, days, quarantine, flaky, runs), facets, markers, links) = try_join!(
        Box::pin(of_store),
        visit.places(project),
        MarkerList::since(&visit, project, since, asked.environment.as_deref()),
        LinkPanel::load(&visit, &state, project, hook),
    )?;
    let mut charted = past.newest;
    charted.reverse();
    let history = cursors.page(past.page)?;
    let shifts = ShiftList::of_executions(&charted, visit.now);
    let turns = TurnList::of_executions(&charted, visit.now);
    let goes_on = history.next_cursor.is_some();
    let total = match asked.browser {
        None => visit.ever_counted(project, asked.count(&case.item), goes_on).await?,
        Some(_) => None,
    };
    let watched = Watched { project, test_case: Some(id), cluster: None };
    let name = &case.item.title;
    let catalogue = format!("/projects/{}?tab=cases", case.project.id);
    let shell = Shell::in_project(&visit, &case.project, name).await?;
    answer(&TestCasePage {
        shell: shell.under("Test cases", catalogue).here(name).offering(&visit, watched).await?,
        tone: case.item.tone(),
        narrowing: asked.narrowing(&visit, &facets),
        is_narrowed: asked.branch.is_some() || asked.environment.is_some() || asked.browser.is_some(),
        browser: asked.browser.clone(),
        chart: HistoryChart::new(&charted, visit.now).with_shifts(&shifts.marks()),
        filters: asked.bar(&visit).tally("execution", history.items.len(), goes_on, total),
        trends: (days.len() >= FEWEST_DAYS).then(|| trends(&days, &markers, &shifts, &turns)),
        shifts,
        turns,
        markers,
        quarantine,
        course: (!flaky.course.is_empty()).then(|| course(&flaky.course)),
        flaky: flaky.now.map(|test| (test.clone(), ChanceRange::from_test(&test))),
        links,
        pager: Pager::new(&visit.address, history.next_cursor.as_ref()),
        history: history.items,
        runs,
        may_triage: visit.caller.may_triage(),
        case,
    })
}

/// The flaky score by executions.
fn course(scores: &[ScoreAt]) -> Series {
    let label = |at: &ScoreAt| match at.behind {
        0 => "now".to_owned(),
        1 => "before its last execution".to_owned(),
        behind => format!("{behind} executions ago"),
    };
    let points = scores.iter().map(|at| Point { label: label(at), note: None, href: None });
    let lines = [LineOf { name: "Score", values: scores.iter().map(|at| Some(at.score)).collect() }];
    Series::new("Flaky score", points.collect(), &lines, |score| score.to_string())
}

/// How reliable the test was on each day, and how long it took.
fn trends(
    days: &[StabilityBucket],
    markers: &MarkerList,
    shifts: &ShiftList,
    turns: &TurnList,
) -> (Series, Series) {
    let dates: Vec<Day> = days.iter().map(|day| day.date).collect();
    let points = || days.iter().map(|day| Point { label: day_of(day.date), note: None, href: None });
    let times: Vec<_> = days.iter().map(|day| day.from).collect();
    let shares = [
        LineOf { name: "Passed", values: days.iter().map(|day| day.pass_rate.map(permille)).collect() },
        LineOf { name: "Flaky", values: days.iter().map(|day| day.flaky_rate.map(permille)).collect() },
    ];
    #[expect(clippy::cast_precision_loss, reason = "a share of a thousand")]
    let share = |value: i64| percent(value as f64 / 1_000.0);
    let means = [LineOf { name: "Mean", values: days.iter().map(|day| day.avg_duration).collect() }];
    (
        Series::new("Reliability by day", points().collect(), &shares, share)
            .with_markers(&times, markers.markers())
            .with_marks(TurnList::MARKS, &turns.marks_by_day(&dates)),
        Series::new("Duration by day", points().collect(), &means, duration)
            .with_markers(&times, markers.markers())
            .with_marks(ShiftList::MARKS, &shifts.marks_by_day(&dates)),
    )
}

/// Only everything is a thousand, and only nothing is none.
#[expect(clippy::cast_possible_truncation, reason = "a share of a thousand")]
fn permille(rate: f64) -> i64 {
    let least = if rate > 0.0 { 1 } else { 0 };
    let most = if rate < 1.0 { 999 } else { 1_000 };
    ((rate * 1_000.0).round() as i64).clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::permille;

    #[test]
    fn only_everything_is_a_thousand_and_only_nothing_is_none() {
        for (rate, share) in [(1.0, 1_000), (0.9999, 999), (0.5, 500), (0.0001, 1), (0.0, 0)] {
            assert_eq!(permille(rate), share, "{rate}");
        }
    }
}
