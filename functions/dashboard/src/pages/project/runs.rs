//! The runs of a project, with the trend of the last 30 days.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_auth::scope::Authorized;
use callboard_domain::export::ExportKind;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::{Day, Timestamp};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::run_filters::run_statuses;
use callboard_query::page::Total;
use callboard_query::runs::{self, RunQuery};
use callboard_query::shapes::Facets;
use callboard_query::test_cases::LaneQuery;
use callboard_query::{daily, feeds};
use serde::Serialize;

use super::Head;
use crate::address::chosen;
use crate::components::{
    Choice, ExportMenu, FilterBar, MarkerList, Pager, RunTable, SetupSteps, Sorting, TREND_DAYS, Trend,
};
use crate::filters;
use crate::outcome::Toned;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Runs per page.
const SIZE: PageSize = PageSize { min: 1, default: 30, max: 100 };
/// The orders: their words in the address, how they read, and whether the oldest comes first.
const ORDERS: [(&str, &str, bool); 2] = [("desc", "Newest first", false), ("asc", "Oldest first", true)];

/// Statuses as they are shown.
const SHOWN: [RunStatus; 6] = [
    RunStatus::Passed,
    RunStatus::Failed,
    RunStatus::TimedOut,
    RunStatus::Interrupted,
    RunStatus::Cancelled,
    RunStatus::Running,
];

/// The statuses that are shown as one.
const fn meant(status: RunStatus) -> &'static [RunStatus] {
    use RunStatus::{Cancelled, Failed, Finalizing, Initializing, Interrupted, Passed, Running, TimedOut};
    match status {
        Running | Initializing | Finalizing => &[Initializing, Running, Finalizing],
        Passed => &[Passed],
        Failed => &[Failed],
        TimedOut => &[TimedOut],
        Interrupted => &[Interrupted],
        Cancelled => &[Cancelled],
    }
}

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    branches: Vec<String>,
    environments: Vec<String>,
    statuses: Vec<RunStatus>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    full_runs: Option<bool>,
    oldest_first: bool,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let full_runs = query.one_of("suite", &[("full", true), ("partial", false)])?;
        let (from, to) = query.window()?;
        let orders = ORDERS.map(|(word, _, oldest_first)| (word, oldest_first));
        Ok(Self {
            branches: chosen(query, "branch"),
            environments: chosen(query, "environment"),
            statuses: run_statuses(query)?,
            from,
            to,
            full_runs,
            oldest_first: query.one_of("order", &orders)?.unwrap_or(false),
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
    /// The word of the order in the address.
    const fn order_word(&self) -> &'static str {
        ORDERS[if self.oldest_first { 1 } else { 0 }].0
    }

    fn is_filtered(&self) -> bool {
        !self.branches.is_empty()
            || !self.environments.is_empty()
            || !self.statuses.is_empty()
            || self.from.is_some()
            || self.to.is_some()
            || self.full_runs.is_some()
    }

    fn before(&self) -> Option<Timestamp> {
        self.to.map(|to| Timestamp(to.millis() + 1))
    }

    /// Whether the list is narrowed by what a file of it cannot be.
    fn is_beyond_files(&self) -> bool {
        let are_several = self.branches.len() > 1 || self.environments.len() > 1;
        are_several || !self.statuses.is_empty() || self.full_runs.is_some()
    }

    fn query(&self, project: ProjectId, after: Option<(i64, i64)>) -> RunQuery {
        RunQuery {
            projects: vec![project],
            branches: self.branches.clone(),
            environments: self.environments.clone(),
            statuses: self.statuses.iter().flat_map(|status| meant(*status)).copied().collect(),
            from: self.from,
            before: self.before(),
            full_runs: self.full_runs,
            ascending: self.oldest_first,
            after,
            ..RunQuery::default()
        }
    }

    fn bar(&self, visit: &Visit, facets: &Facets) -> FilterBar {
        let statuses = SHOWN.map(|status| Choice::new(status.as_str(), status.tone().word()));
        let asked: Vec<String> = self.statuses.iter().map(|status| status.as_str().to_owned()).collect();
        let suites = [Choice::new("full", "Full runs"), Choice::new("partial", "Partial runs")];
        let suite = self.full_runs.map(|full| if full { "full" } else { "partial" }.to_owned());
        FilterBar::new(&visit.address, &["tab", "order"])
            .branches(facets, "All branches", &self.branches)
            .select("status", "Status", "Any status", statuses, &asked)
            .environments(facets, &self.environments)
            .select("suite", "Suite", "Full and partial", suites, suite.as_slice())
            .days(self.from, self.to)
            .choice(
                "order",
                "Order",
                ORDERS.map(|(word, label, _)| Choice::new(word, label)),
                self.order_word(),
            )
    }
}

/// Inputs of `pages/project_runs.html`.
#[derive(Template)]
#[template(path = "pages/project_runs.html")]
struct RunsTab {
    shell: Shell,
    head: Head,
    trend: Trend,
    markers: MarkerList,
    filters: FilterBar,
    runs: RunTable,
    pager: Pager,
    is_filtered: bool,
    /// The event after which the stream tells what this page does not show;
    /// none where it shows older runs.
    after: Option<i64>,
    /// How to send the first run, while there is none.
    steps: SetupSteps,
    /// A file of the runs, for those who may have one made.
    export: Option<ExportMenu>,
}

/// The first tab of a project.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    head: Head,
    shell: Shell,
    asked: Params,
) -> Result<Response, ApiError> {
    let is_old = visit.address.is_continued() || asked.oldest_first;
    let after = if is_old { None } else { Some(feeds::newest(&visit.ctx).await?) };
    let cursors = CursorScope::new(RouteId::ProjectPage, &("runs", &asked))?;
    let query = asked.query(project.get(), cursors.decode(asked.page.cursor.as_deref())?);
    let found = runs::list(&visit.ctx, visit.scope(), &query, asked.page.limit as usize).await?;
    let found = cursors.page(found)?;
    let today = visit.now.day();
    let lane = LaneQuery { branch: only(&asked.branches), environment: only(&asked.environments) };
    let days = daily::counts(&visit.ctx, &[project], &lane, Day(today.0 - TREND_DAYS + 1)).await?;
    let facets = visit.places(project).await?;
    let since = Day(today.0 - TREND_DAYS + 1).start();
    let markers = MarkerList::since(&visit, project, since, lane.environment.as_deref()).await?;
    let goes_on = found.next_cursor.is_some();
    let total = if !asked.is_filtered() {
        Some(Total::Exactly(head.project.kept_runs))
    } else if visit.address.is_part(goes_on) {
        runs::count(&visit.ctx, project, head.project.kept_runs, &query).await?
    } else {
        None
    };
    answer(&RunsTab {
        trend: Trend::new(days, today, |day| Some(visit.address.of_day(&day.to_iso())))
            .with_markers(markers.markers())
            .about(asked.is_filtered().then(|| counted_in(&lane))),
        markers,
        filters: asked.bar(&visit, &facets).tally("run", found.items.len(), goes_on, total),
        runs: RunTable::new(found.items, false, visit.now).with_ticks().sorted_by(Sorting::by(
            "order",
            &visit.address,
            asked.order_word(),
        )),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        is_filtered: asked.is_filtered(),
        after,
        export: (visit.caller.may_triage() && head.project.total_runs > 0).then(|| {
            let menu = ExportMenu::new(ExportKind::Project, project.get().get());
            menu.only(only(&asked.branches), only(&asked.environments))
                .between(asked.from, asked.before())
                .wider(asked.is_beyond_files())
        }),
        steps: SetupSteps::new(&visit, shell.viewer.is_some(), Some(&head.project.reference.name)),
        shell,
        head,
    })
}

/// Which runs the trend counts when the list below it is narrowed: it follows
/// one branch and one environment, and nothing else.
fn counted_in(lane: &LaneQuery) -> String {
    let on = lane.branch.as_ref().map_or("all branches", String::as_str);
    let of = lane.environment.as_ref().map(|environment| format!(" in {environment}")).unwrap_or_default();
    format!("all runs on {on}{of}; other filters do not change this chart")
}

/// The one value of a filter; the daily counts know one branch or all of them.
fn only(values: &[String]) -> Option<String> {
    if let [one] = values { Some(one.clone()) } else { None }
}
