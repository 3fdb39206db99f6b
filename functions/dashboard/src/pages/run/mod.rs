//! `/test-runs/{id}`: one run, its executions, its reports and what is known
//! about how it came to be.

mod compare;
mod endpoints;
mod executions;
mod facts;
mod groups;
mod insights;
mod regression;
mod request;
mod timeline;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::ids::RunId;
use callboard_domain::status::RunStatus;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_query::links::Hook;
use callboard_query::run_attempts::RunAttempt;
use callboard_query::shapes::{GateBrief, RunDetail, ShardItem};
use callboard_query::{feeds, gates, resolve, runs};

use crate::address::MAX_ID;
use crate::components::{
    DeletionChoice, InPlace, LinkPanel, LiveRun, OutcomeBar, OutcomeCount, Progress, name_of, outcome_counts,
};
use crate::filters;
use crate::outcome::Toned;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// What gates said that the page lists; REST has the rest.
const GATES: usize = 20;

/// The tabs by their words in the address.
const TABS: [&str; 9] = [
    "executions",
    "insights",
    "groups",
    "regression",
    "timeline",
    "compare",
    "endpoints",
    "reports",
    "details",
];

/// The tab that is asked for, with its filters.
#[derive(Debug)]
pub(crate) enum Params {
    /// `?tab=executions`, the first one.
    Executions(executions::Params),
    /// `?tab=insights`.
    Insights,
    /// `?tab=groups`.
    Groups(groups::Params),
    /// `?tab=regression`, and whether commits are read from the repository.
    Regression(bool),
    /// `?tab=compare`.
    Compare(compare::Params),
    /// `?tab=endpoints`.
    Endpoints(endpoints::Params),
    /// `?tab=timeline`.
    Timeline(timeline::Params),
    /// `?tab=reports`, with the report that is shown inside of the page.
    Reports(Option<i64>),
    /// `?tab=details`.
    Details,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab = query.one_of("tab", &TABS.map(|tab| (tab, tab)))?;
        Ok(match tab {
            Some("insights") => Self::Insights,
            Some("groups") => Self::Groups(groups::Params::from_query(query)?),
            Some("regression") => {
                Self::Regression(query.one_of("commits", &[("list", true)])?.unwrap_or_default())
            }
            Some("compare") => Self::Compare(compare::Params::from_query(query)?),
            Some("endpoints") => Self::Endpoints(endpoints::Params::from_query(query)?),
            Some("timeline") => Self::Timeline(timeline::Params::from_query(query)?),
            Some("reports") => Self::Reports(query.number("report", 1..=MAX_ID)?),
            Some("details") => Self::Details,
            _ => Self::Executions(executions::Params::from_query(query)?),
        })
    }
}

/// What every tab of the run shows above itself.
struct Head {
    run: RunDetail,
    name: String,
    bar: OutcomeBar,
    /// Tests the run wanted to run, where not all of them have a result.
    planned: Option<i64>,
    counts: Vec<OutcomeCount>,
    live: Option<LiveRun>,
    /// Whether the reader may keep the run.
    may_triage: bool,
    /// Its pull request.
    request: request::RequestLine,
    tab: &'static str,
}

impl Head {
    /// The class that carries the colour of its result.
    fn result_class(&self) -> &'static str {
        self.run.item.brief.status.tone().class()
    }

    /// What the run was after each of its attempts.
    fn attempts(&self) -> Vec<(RunStatus, String)> {
        let line = |attempt: &RunAttempt| {
            let result = match attempt.totals.failed_tests {
                0 => attempt.status.tone().word().to_lowercase(),
                failed => format!("{failed} failed"),
            };
            let shards: Vec<String> = attempt.shards.iter().map(i64::to_string).collect();
            let of_shards = match shards.len() {
                0 => String::new(),
                _ if attempt.attempt == 1 => String::new(),
                1 => format!(" (shard {})", shards.join("")),
                _ => format!(" (shards {})", shards.join(", ")),
            };
            (attempt.status, format!("Attempt {}{of_shards}: {result}", attempt.attempt))
        };
        self.run.attempts.iter().map(line).collect()
    }

    /// The CI job of a client of the run, with its address.
    fn job_of(&self, shard: &ShardItem) -> Option<facts::Job> {
        shard.ci.as_ref().and_then(facts::job)
    }

    /// What the title of the page begins with, so that tabs can be told apart
    /// in a history.
    fn tab_title(&self) -> &'static str {
        match self.tab {
            "insights" => "Insights · ",
            "groups" => "Failure groups · ",
            "regression" => "Regression · ",
            "compare" => "Compare · ",
            "endpoints" => "Endpoints · ",
            "timeline" => "Timeline · ",
            "reports" => "Reports · ",
            "details" => "Details · ",
            _ => "",
        }
    }
}

/// Inputs of `pages/run_reports.html`.
#[derive(Template)]
#[template(path = "pages/run_reports.html")]
struct ReportsTab {
    shell: Shell,
    head: Head,
    /// Whether reports that are pages open inside of this one.
    opens_here: bool,
    /// The report that is shown, with its id.
    open: Option<(i64, InPlace)>,
}

impl ReportsTab {
    /// Whether a report opens inside of the page.
    fn opens_here(&self, path: &str) -> bool {
        self.opens_here && is_html(path)
    }

    /// Whether this report is shown inside of the page.
    fn shows(&self, report: &i64) -> bool {
        self.open.as_ref().is_some_and(|(open, _)| open == report)
    }
}

/// Inputs of `pages/run_details.html`.
#[derive(Template)]
#[template(path = "pages/run_details.html")]
struct DetailsTab {
    shell: Shell,
    head: Head,
    groups: Vec<facts::Group>,
    raw: String,
    links: LinkPanel,
    gates: Vec<GateBrief>,
    is_administrator: bool,
    choice: DeletionChoice,
    /// Reports of the run.
    reports: i64,
    /// What the run stores.
    bytes: i64,
}

/// One run.
pub(crate) async fn run(
    State(state): State<AppState>,
    visit: Visit,
    Path(id): Path<RunId>,
    Query(asked): Query<Params>,
    Query(shown): Query<request::Shown>,
) -> Result<Response, ApiError> {
    let project = resolve::run(&visit.ctx, visit.scope(), id).await?;
    let run = runs::detail(&visit.ctx, project, id).await?;
    let name = name_of(&run.item);
    let shell = Shell::in_project(&visit, &run.project, &name).await?.here(format!("Run {id}"));
    let totals = run.item.brief.totals;
    let live = if run.item.brief.status.is_final() {
        None
    } else {
        let after = feeds::just_before_now(&visit.ctx, project, id).await?;
        LiveRun::new(&run.item, after, visit.caller.may_triage())
    };
    let planned = Progress::planned_of(&run.item);
    let request = request::RequestLine::read(&visit, &state, project, &run, shown).await?;
    let mut head = Head {
        request,
        bar: OutcomeBar::of_run(&run.item, planned),
        planned,
        counts: outcome_counts(&totals),
        may_triage: visit.caller.may_triage(),
        name,
        run,
        live,
        tab: "executions",
    };
    match asked {
        Params::Executions(asked) => {
            let cursors = CursorScope::new(RouteId::RunPage, &("executions", &asked))?;
            executions::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Params::Insights => {
            head.tab = "insights";
            insights::tab(visit, project, id, head, shell).await
        }
        Params::Groups(asked) => {
            head.tab = "groups";
            let cursors = CursorScope::new(RouteId::RunPage, &("groups", &asked))?;
            groups::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Params::Regression(lists_commits) => {
            head.tab = "regression";
            let access = lists_commits.then(|| state.source_control());
            regression::tab(visit, access, project, id, head, shell).await
        }
        Params::Compare(asked) => {
            head.tab = "compare";
            let cursors = CursorScope::new(RouteId::RunPage, &("compare", &asked))?;
            compare::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Params::Endpoints(asked) => {
            head.tab = "endpoints";
            let cursors = CursorScope::new(RouteId::RunPage, &("endpoints", &asked))?;
            endpoints::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Params::Timeline(asked) => {
            head.tab = "timeline";
            let cursors = CursorScope::new(RouteId::RunPage, &("timeline", &asked))?;
            timeline::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Params::Reports(asked) => {
            head.tab = "reports";
            let asked = head.run.reports.iter().find(|report| Some(report.id) == asked);
            let opens_here = state.shows_in_place();
            let open = match asked.filter(|report| opens_here && is_html(&report.path)) {
                Some(report) => {
                    Some((report.id, InPlace::report(&state, &visit, &report.path, &report.label).await?))
                }
                None => None,
            };
            answer(&ReportsTab { shell, head, opens_here, open })
        }
        Params::Details => {
            head.tab = "details";
            let groups = facts::groups(&head.run.metadata);
            let raw = serde_json::to_string_pretty(&head.run.metadata).map_err(ApiError::internal)?;
            let hook = Hook { target: LinkTarget::Run, id: id.get() };
            let of_reports: i64 = head.run.reports.iter().map(|report| report.size).sum();
            answer(&DetailsTab {
                reports: i64::try_from(head.run.reports.len()).unwrap_or(i64::MAX),
                bytes: head.run.storage.bytes + head.run.storage.evidence_bytes + of_reports,
                links: LinkPanel::load(&visit, &state, project, hook).await?,
                gates: gates::results(&visit.ctx, project, id, None, GATES).await?.items,
                is_administrator: visit.caller.is_administrator(),
                choice: DeletionChoice::new(&visit),
                shell,
                head,
                groups,
                raw,
            })
        }
    }
}

/// Whether the entry of a report is a page, which can be shown inside of ours.
fn is_html(path: &str) -> bool {
    [".html", ".htm"].iter().any(|end| path.ends_with(end))
}
