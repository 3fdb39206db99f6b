//! `/test-runs/{id}`: one run, its executions, its reports and what is known
//! about how it came to be.

mod compare;
mod executions;
mod facts;
mod groups;
mod insights;
mod regression;
mod timeline;

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_query::shapes::RunDetail;
use callboard_query::{feeds, resolve, runs};

use crate::components::{LiveRun, OutcomeBar, OutcomeCount, name_of, outcome_counts};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// The tabs by their words in the address.
const TABS: [&str; 8] =
    ["executions", "insights", "groups", "regression", "timeline", "compare", "reports", "details"];

/// The tab that is asked for, with its filters.
#[derive(Debug)]
pub(crate) enum Asked {
    /// `?tab=executions`, the first one.
    Executions(executions::Asked),
    /// `?tab=insights`.
    Insights,
    /// `?tab=groups`.
    Groups(groups::Asked),
    /// `?tab=regression`.
    Regression,
    /// `?tab=compare`.
    Compare(compare::Asked),
    /// `?tab=timeline`.
    Timeline(timeline::Asked),
    /// `?tab=reports`.
    Reports,
    /// `?tab=details`.
    Details,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab = query.one_of("tab", |text| TABS.into_iter().find(|tab| *tab == text))?;
        Ok(match tab {
            Some("insights") => Self::Insights,
            Some("groups") => Self::Groups(groups::Asked::from_query(query)?),
            Some("regression") => Self::Regression,
            Some("compare") => Self::Compare(compare::Asked::from_query(query)?),
            Some("timeline") => Self::Timeline(timeline::Asked::from_query(query)?),
            Some("reports") => Self::Reports,
            Some("details") => Self::Details,
            _ => Self::Executions(executions::Asked::from_query(query)?),
        })
    }
}

/// What every tab of the run shows above itself.
struct Head {
    run: RunDetail,
    name: String,
    bar: OutcomeBar,
    counts: Vec<OutcomeCount>,
    live: Option<LiveRun>,
    /// Whether the reader may keep the run.
    may_triage: bool,
    tab: &'static str,
}

/// Inputs of `pages/run_reports.html`.
#[derive(Template)]
#[template(path = "pages/run_reports.html")]
struct ReportsTab {
    shell: Shell,
    head: Head,
}

/// Inputs of `pages/run_details.html`.
#[derive(Template)]
#[template(path = "pages/run_details.html")]
struct DetailsTab {
    shell: Shell,
    head: Head,
    groups: Vec<facts::Group>,
    raw: String,
}

/// One run.
pub(crate) async fn run(
    visit: Visit,
    Path(id): Path<RunId>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let project = resolve::run(&visit.ctx, visit.scope(), id).await?;
    let run = runs::detail(&visit.ctx, project, id).await?;
    let name = name_of(&run.item);
    let shell = Shell::in_project(&visit, &run.project, &name).await?.here(format!("Run {id}"));
    let totals = run.item.brief.totals;
    let live = if run.item.brief.status.is_final() {
        None
    } else {
        LiveRun::of(&run.item, feeds::just_before_now(&visit.ctx, project, id).await?)
    };
    let mut head = Head {
        bar: OutcomeBar::of(&totals),
        counts: outcome_counts(&totals),
        may_triage: visit.caller.may_triage(),
        name,
        run,
        live,
        tab: "executions",
    };
    match asked {
        Asked::Executions(asked) => {
            let cursors = CursorScope::new(RouteId::RunPage, &("executions", &asked))?;
            executions::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Asked::Insights => {
            head.tab = "insights";
            insights::tab(visit, project, id, head, shell).await
        }
        Asked::Groups(asked) => {
            head.tab = "groups";
            let cursors = CursorScope::new(RouteId::RunPage, &("groups", &asked))?;
            groups::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Asked::Regression => {
            head.tab = "regression";
            regression::tab(visit, project, id, head, shell).await
        }
        Asked::Compare(asked) => {
            head.tab = "compare";
            let cursors = CursorScope::new(RouteId::RunPage, &("compare", &asked))?;
            compare::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Asked::Timeline(asked) => {
            head.tab = "timeline";
            let cursors = CursorScope::new(RouteId::RunPage, &("timeline", &asked))?;
            timeline::tab(visit, project, id, head, shell, asked, cursors).await
        }
        Asked::Reports => {
            head.tab = "reports";
            answer(&ReportsTab { shell, head })
        }
        Asked::Details => {
            head.tab = "details";
            let groups = facts::groups(&head.run.metadata);
            let raw = serde_json::to_string_pretty(&head.run.metadata).map_err(ApiError::internal)?;
            answer(&DetailsTab { shell, head, groups, raw })
        }
    }
}
