//! `/analytics`: all projects together over a chosen period.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use callboard_domain::ids::ProjectId;
use callboard_domain::standouts::Severity;
use callboard_domain::time::{Day, Timestamp};
use callboard_http::ApiError;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_query::analytics::{
    self, BrowserMatrix, CiTimeTrend, ErrorTypeCount, InsightItem, LeaderboardItem, PassRateHeatmap, Period,
    PortfolioItem, RegressionVelocity, SeenProjects, WasteOfProject, WastedTime, WidgetQuery,
};
use callboard_query::flakiness::Sort;
use callboard_query::network::{self, SlowEndpoint};
use callboard_query::projects;
use callboard_query::shapes::{Facets, ProjectRef, RunBrief};
use callboard_query::test_cases::LaneQuery;

use crate::address::chosen;
use crate::components::{Choice, ClusterTable, FilterBar, LineOf, Point, Series, Strip};
use crate::filters;
use crate::outcome::{Standing, Tone, Toned};
use crate::shell::{Section, Shell};
use crate::text::{day_of, duration, grouped, months_of, percent, points};
use crate::visit::{Visit, answer};
use tokio::try_join;

/// Projects and tests each list shows.
const ROWS: usize = 25;
/// Slow endpoints the page shows.
const ENDPOINTS: usize = 15;
/// Projects one can choose from.
const OFFERED: usize = 200;
/// Periods one can choose, in days.
const PERIODS: [(&str, i64, &str); 4] = [
    ("7", 7, "Last 7 days"),
    ("14", 14, "Last 14 days"),
    ("30", 30, "Last 30 days"),
    ("90", 90, "Last 90 days"),
];
/// Where nothing else is asked for.
const USUAL: usize = 2;
/// Days between two dates that are looked at together.
const MOST_DAYS: i64 = 90;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    period: usize,
    /// The days, where they were chosen by their dates.
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    project: Option<ProjectId>,
    lane: LaneQuery,
    full_runs: Option<bool>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let period = query.word("days", &PERIODS.map(|(word, ..)| word), |text| {
            PERIODS.iter().position(|(word, ..)| *word == text)
        })?;
        let full_runs = query.one_of("suite", &[("full", true), ("partial", false)])?;
        let (from, to) = query.window()?;
        if let (Some(from), Some(to)) = (from, to)
            && to.day().0 - from.day().0 >= MOST_DAYS
        {
            let message = format!("from and to must cover at most {MOST_DAYS} days.");
            return Err(ApiError::invalid_query("from", message));
        }
        Ok(Self {
            period: period.unwrap_or(USUAL),
            from,
            to,
            project: query.number("project", 1..=i64::MAX)?.map(ProjectId),
            lane: LaneQuery {
                branch: chosen(query, "branch").pop(),
                environment: chosen(query, "environment").pop(),
            },
            full_runs,
        })
    }
}

impl Params {
    /// The last day that is looked at, and how many days up to it.
    ///
    /// # Errors
    /// 400 for a time that has not begun.
    fn days(&self, today: Day) -> Result<(Day, i64), ApiError> {
        if self.from.is_some_and(|from| from.day() > today) {
            return Err(ApiError::invalid_query("from", "from must not lie in the future."));
        }
        let usual = PERIODS[self.period].1;
        let until = match (self.from, self.to) {
            (_, Some(to)) => to.day(),
            (Some(from), None) => Day(from.day().0 + MOST_DAYS - 1),
            (None, None) => today,
        };
        let until = Day(until.0.min(today.0));
        let days = self.from.map_or(usual, |from| until.0 - from.day().0 + 1);
        Ok((until, days.clamp(1, MOST_DAYS)))
    }

    /// Branches and environments can be chosen once a project is: every
    /// project has its own.
    fn bar(&self, visit: &Visit, offered: Vec<ProjectRef>, facets: &Facets) -> FilterBar {
        let choices = offered.into_iter().map(|project| Choice::new(project.id.to_string(), project.shown()));
        let chosen: Vec<String> = self.project.iter().map(|id| id.get().to_string()).collect();
        let suites = [Choice::new("full", "Full runs"), Choice::new("partial", "Partial runs")];
        let suite = self.full_runs.map(|full| if full { "full" } else { "partial" }.to_owned());
        let bar = FilterBar::new(&visit.address, &["days"]);
        // Where dates are chosen, they are the period.
        let bar = if self.from.is_some() || self.to.is_some() {
            bar
        } else {
            let periods = PERIODS.map(|(word, _, label)| Choice::new(word, label));
            bar.choice("days", "Period", periods, PERIODS[self.period].0)
        };
        bar.days(self.from, self.to)
            .select("project", "Project", "All projects", choices, &chosen)
            .branches(facets, "All branches", self.lane.branch.as_slice())
            .environments(facets, self.lane.environment.as_slice())
            .select("suite", "Suite", "Full and partial", suites, suite.as_slice())
    }
}

impl AnalyticsPage {
    /// Whether there was a time before to compare with.
    fn has_deltas(&self) -> bool {
        self.health.iter().any(|row| row.delta.is_some())
    }
}

/// A project in the table of health.
struct Health {
    item: PortfolioItem,
    tone: Tone,
    strip: Strip,
    delta: Option<String>,
}

/// A cell of a map of pass rates.
struct HeatCell {
    band: &'static str,
    text: String,
    spoken: String,
}

/// A project on a map of pass rates.
struct HeatRow {
    project: ProjectRef,
    cells: Vec<HeatCell>,
}

/// A project's share of what was lost.
struct Share {
    waste: WasteOfProject,
    width: i64,
}

/// Inputs of `pages/analytics.html`.
#[derive(Template)]
#[template(path = "pages/analytics.html")]
struct AnalyticsPage {
    shell: Shell,
    /// Whether others may have projects, and this person has none of them.
    needs_assignment: bool,
    filters: FilterBar,
    /// Highlights, with its project where the sentence does not name it.
    standouts: Vec<(InsightItem, Option<ProjectRef>)>,
    health: Vec<Health>,
    /// The first and the last day, where they were chosen by their dates.
    chosen: Option<(Day, Day)>,
    /// Projects that are not in the table of health.
    left_out: usize,
    days: Vec<Day>,
    /// Their months, each with how many of the days it has.
    months: Vec<(String, usize)>,
    heat: Vec<HeatRow>,
    /// Flaky tests, each with its share of what the most expensive one costs, in thousandths.
    leaderboard: Vec<(LeaderboardItem, i64)>,
    total_open: i64,
    resolved: i64,
    kinds: Vec<ErrorTypeCount>,
    clusters: ClusterTable,
    velocity: Series,
    ci_time: Series,
    wasted: Series,
    shares: Vec<Share>,
    browsers: Vec<String>,
    matrix: Vec<HeatRow>,
    endpoints: Vec<SlowEndpoint>,
    /// Whether runs are chosen by what browsers, endpoints and clusters are not counted by.
    is_wider: bool,
    /// The one project that is looked at.
    project: Option<i64>,
    lane: LaneQuery,
}

/// All projects together.
pub(crate) async fn analytics(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    let shell =
        Shell::new(&visit, Section::Analytics, "Analytics").await?.under("Home", "/").here("Analytics");
    let (today, days) = asked.days(visit.now.day())?;
    let query = WidgetQuery {
        days,
        lane: asked.lane.clone(),
        full_runs: asked.full_runs,
        projects: asked.project.into_iter().collect(),
        limit: ROWS,
    };
    let (ctx, scope) = (&visit.ctx, visit.scope());
    let seen = SeenProjects::load(ctx, scope, &query).await?;
    let slow = async {
        let endpoints = network::slow_endpoints(ctx, &seen, &query, today).await?;
        // What stands out is about today.
        let found = if today == visit.now.day() {
            analytics::insights(ctx, scope, &seen, &query, &endpoints, visit.now).await?
        } else {
            Vec::new()
        };
        Ok((endpoints, found))
    };
    // Each of them reads by itself, and the slowest of them decides how long the page takes.
    let (portfolio, map, period, open, browsers, leaders, offered, (mut endpoints, found)) = try_join!(
        analytics::portfolio(ctx, scope, &query, today),
        analytics::pass_rate_heatmap(ctx, &seen, &query, today),
        Period::load(ctx, &seen, &query, today),
        analytics::cluster_landscape(ctx, scope, &seen, &query, today, visit.now),
        analytics::browser_matrix(ctx, &seen, &query, today),
        analytics::flaky_leaderboard(ctx, scope, &seen, &query, Sort::Lost, today),
        projects::names(ctx, scope, OFFERED),
        slow,
    )?;
    let wasted = analytics::wasted_time(&period);
    let browser_names = names(&browsers.browsers);
    let standouts = placed(found, &portfolio);
    let facets = match asked.project {
        Some(project) => visit.places(visit.caller.authorize(project)?).await?,
        None => Facets::default(),
    };
    let left_out = if portfolio.len() < ROWS { 0 } else { offered.len().saturating_sub(ROWS) };
    let needs_assignment = offered.is_empty() && !scope.may_create_projects();
    endpoints.truncate(ENDPOINTS);
    answer(&AnalyticsPage {
        filters: asked.bar(&visit, offered, &facets),
        needs_assignment,
        chosen: (asked.from.is_some() || asked.to.is_some()).then_some((Day(today.0 - days + 1), today)),
        standouts,
        left_out,
        health: portfolio.into_iter().map(|item| Health::from_item(item, &visit)).collect(),
        months: months_of(&map.buckets),
        days: map.buckets.clone(),
        heat: heat(&map),
        total_open: open.total_open,
        resolved: open.resolved_in_period,
        kinds: open.by_error_type,
        clusters: ClusterTable::of_all(open.clusters, visit.now)
            .with_people(visit.caller.account().is_some()),
        leaderboard: ranked(leaders),
        velocity: velocity(analytics::regression_velocity(&period), &map.buckets),
        ci_time: ci_time(analytics::ci_time_trend(&period), &map.buckets),
        matrix: matrix(&browser_names, browsers),
        browsers: browser_names,
        endpoints,
        is_wider: asked.full_runs.is_some()
            || asked.lane.branch.is_some()
            || asked.lane.environment.is_some(),
        project: asked.project.map(ProjectId::get),
        lane: asked.lane.clone(),
        shares: shares(&wasted),
        wasted: waste(wasted, &map.buckets),
        shell,
    })
}

impl Toned for Severity {
    fn tone(&self) -> Tone {
        match self {
            Self::Critical => Tone::Failed,
            Self::Warning => Tone::Flaky,
            Self::Good => Tone::Passed,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Critical => "Critical",
            Self::Warning => "Warning",
            Self::Good => "Good",
        }
    }
}

impl Health {
    fn from_item(item: PortfolioItem, visit: &Visit) -> Self {
        let (tendency, latest) = item.standing;
        let tone = Standing(tendency, latest).tone();
        // What stands beside the streak and is about other branches would contradict it.
        let judged = item.judged_branch.as_deref();
        let is_judged =
            |run: &&RunBrief| judged.is_none_or(|branch| run.branch.as_deref().unwrap_or_default() == branch);
        let runs: Vec<RunBrief> = item.recent_runs.iter().filter(is_judged).cloned().collect();
        let strip = Strip::of_runs(&runs, visit.now);
        Self { tone, strip, delta: item.pass_rate_delta.map(points), item }
    }
}

/// Highlights with the project it is about: failures read alike wherever
/// they happen.
fn placed(found: Vec<InsightItem>, portfolio: &[PortfolioItem]) -> Vec<(InsightItem, Option<ProjectRef>)> {
    let projects = || portfolio.iter().map(|item| &item.project);
    let placed = found.into_iter().map(|item| {
        let project = projects().find(|project| Some(project.id) == item.project_id);
        let project =
            project.filter(|project| portfolio.len() > 1 && !item.message.contains(project.shown()));
        (item, project.cloned())
    });
    placed.collect()
}

/// A pass rate as a cell; `place` is where it was reached.
fn cell(project: &str, place: &str, rate: Option<f64>) -> HeatCell {
    let (band, text) = match rate {
        None => ("heat-none", String::new()),
        // Whole percents; only everything is a hundred, and only nothing is none.
        Some(rate) if rate >= 1.0 => ("heat-best", "100".to_owned()),
        Some(rate) => (
            if rate >= 0.97 {
                "heat-good"
            } else if rate >= 0.9 {
                "heat-fair"
            } else {
                "heat-poor"
            },
            format!("{:.0}", (rate * 100.0).round().clamp(if rate > 0.0 { 1.0 } else { 0.0 }, 99.0)),
        ),
    };
    let rate = rate.map_or_else(|| "nothing ran".to_owned(), |rate| format!("{} passed", percent(rate)));
    HeatCell { band, text, spoken: format!("{project}, {place}: {rate}") }
}

fn heat(map: &PassRateHeatmap) -> Vec<HeatRow> {
    let places: Vec<String> = map.buckets.iter().map(|day| day_of(*day)).collect();
    let rows = map.rows.iter().map(|row| heat_row(row.project.clone(), &places, &row.cells));
    rows.collect()
}

fn matrix(browsers: &[String], map: BrowserMatrix) -> Vec<HeatRow> {
    map.rows.into_iter().map(|row| heat_row(row.project, browsers, &row.cells)).collect()
}

/// Browser projects as people read them: tests can have none.
fn names(browsers: &[String]) -> Vec<String> {
    let name = |browser: &String| if browser.is_empty() { "no browser" } else { browser }.to_owned();
    browsers.iter().map(name).collect()
}

fn heat_row(project: ProjectRef, places: &[String], rates: &[Option<f64>]) -> HeatRow {
    let cells = places.iter().zip(rates).map(|(place, rate)| cell(project.shown(), place, *rate)).collect();
    HeatRow { project, cells }
}

/// The days of a period, oldest first, each with what is known of it: nothing
/// where nothing ran.
fn each_day<'t, T>(days: &[Day], known: &'t [T], date: impl Fn(&T) -> Day) -> Vec<Option<&'t T>> {
    days.iter().map(|day| known.iter().find(|each| date(each) == *day)).collect()
}

/// A point of a chart, and why it has no values where it has none.
fn point<T>(label: String, known: Option<T>) -> Point {
    let note = known.is_none().then(|| "nothing ran".to_owned());
    Point { label, note, href: None }
}

/// A point for each day.
fn day_points<T>(days: &[Day], known: &[Option<&T>]) -> Vec<Point> {
    days.iter().zip(known).map(|(day, known)| point(day_of(*day), *known)).collect()
}

/// The Monday of a day's week.
const fn week_of(day: Day) -> Day {
    // 1970-01-01 was a Thursday.
    Day(day.0 - (day.0 + 3).rem_euclid(7))
}

/// Days of a period that is short enough to be drawn day by day.
const DAY_BY_DAY: usize = 14;

/// What broke, by weeks where there are many days. Those in which nothing did
/// are told as well, unless nothing ran.
fn velocity(found: RegressionVelocity, days: &[Day]) -> Series {
    let is_by_week = days.len() > DAY_BY_DAY;
    let place = |day: Day| if is_by_week { week_of(day) } else { day };
    let mut sums: BTreeMap<Day, Option<(i64, i64)>> = days.iter().map(|day| (place(*day), None)).collect();
    for point in &found.points {
        let sum = sums.entry(place(point.date)).or_default().get_or_insert_default();
        sum.0 += point.regressions.regressions;
        sum.1 += point.regressions.new_flaky;
    }
    let label = |day: &Day| if is_by_week { format!("week of {}", day_of(*day)) } else { day_of(*day) };
    let points_of = sums.iter().map(|(day, sum)| point(label(day), *sum)).collect();
    let lines = [
        LineOf { name: "New failures", values: sums.values().map(|sum| Some((*sum)?.0)).collect() },
        LineOf { name: "Newly flaky", values: sums.values().map(|sum| Some((*sum)?.1)).collect() },
    ];
    let title = if is_by_week { "Tests that broke each week" } else { "Tests that broke each day" };
    let series = Series::new(title, points_of, &lines, grouped)
        .fact(grouped(found.totals.regressions), "new failures")
        .fact(grouped(found.totals.new_flaky), "newly flaky");
    with_delta(series, found.delta_rate, "same as previous period")
}

fn ci_time(found: CiTimeTrend, days: &[Day]) -> Series {
    let known = each_day(days, &found.points, |point| point.date);
    let times = known.iter().map(|day| Some((*day)?.time.duration_ms)).collect();
    let lines = [LineOf { name: "Wall clock", values: times }];
    let series = Series::new("Time in CI", day_points(days, &known), &lines, duration)
        .fact(duration(found.totals.duration_ms), "in all")
        .fact(grouped(found.totals.run_count), "runs");
    with_delta(series, found.delta_rate, "same as previous period")
}

fn waste(found: WastedTime, days: &[Day]) -> Series {
    let known = each_day(days, &found.points, |point| point.date);
    let failed = known.iter().map(|day| Some((*day)?.waste.failed_ms)).collect();
    let waits = known.iter().map(|day| Some((*day)?.waste.wait_ms)).collect();
    let lines =
        [LineOf { name: "Lost to retries", values: failed }, LineOf { name: "Fixed waits", values: waits }];
    Series::new("Time lost", day_points(days, &known), &lines, duration)
        .fact(duration(found.totals.failed_ms), "lost to retries")
        .fact(duration(found.totals.wait_ms), "in fixed waits")
}

/// The change vs. previous period; `times_what` ends the sentence of a multiple of it.
fn with_delta(series: Series, delta: Option<f64>, times_what: &'static str) -> Series {
    match delta {
        Some(delta) if delta >= 1.0 => {
            let times = format!("{:.1}", delta + 1.0);
            series.fact(format!("{}\u{a0}times", times.trim_end_matches(".0")), times_what)
        }
        Some(delta) => {
            let sign = match delta {
                ..0.0 => "−",
                0.0 => "±",
                _ => "+",
            };
            series.fact(format!("{sign}{}", percent(delta.abs())), "vs. previous period")
        }
        None => series,
    }
}

/// The most expensive tests, what they cost first.
fn ranked(tests: Vec<LeaderboardItem>) -> Vec<(LeaderboardItem, i64)> {
    let most = tests.iter().map(|each| each.test.wasted_duration).max().unwrap_or(0).max(1);
    let share = |each: LeaderboardItem| {
        let width = (each.test.wasted_duration * 1_000 / most).clamp(4, 1_000);
        (each, width)
    };
    tests.into_iter().map(share).collect()
}

fn shares(wasted: &WastedTime) -> Vec<Share> {
    let total = |waste: &WasteOfProject| waste.waste.failed_ms + waste.waste.wait_ms;
    let most = wasted.by_project.iter().map(total).max().unwrap_or(0).max(1);
    let share =
        |waste: &WasteOfProject| Share { width: (total(waste) * 1_000 / most).max(4), waste: waste.clone() };
    wasted.by_project.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn only_everything_is_a_hundred_on_a_map_and_only_nothing_is_none() {
        for (rate, text) in [(1.0, "100"), (0.9996, "99"), (0.625, "63"), (0.0004, "1"), (0.0, "0")] {
            assert_eq!(cell("shop", "today", Some(rate)).text, text, "{rate}");
        }
    }
}
