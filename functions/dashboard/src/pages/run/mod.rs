//! `/test-runs/{id}`: one run, its executions, its reports and what is known
//! about how it came to be.

mod executions;
mod facts;

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::RunId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_query::shapes::RunDetail;
use callboard_query::{resolve, runs};

use crate::components::{OutcomeBar, OutcomeCount, name_of, outcome_counts};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// The tab that is asked for, with its filters.
#[derive(Debug)]
pub(crate) enum Asked {
    /// `?tab=executions`, the first one.
    Executions(executions::Asked),
    /// `?tab=reports`.
    Reports,
    /// `?tab=details`.
    Details,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab = query.one_of("tab", |text| match text {
            "executions" => Some(None),
            "reports" => Some(Some(Self::Reports)),
            "details" => Some(Some(Self::Details)),
            _ => None,
        })?;
        match tab.flatten() {
            Some(tab) => Ok(tab),
            None => executions::Asked::from_query(query).map(Self::Executions),
        }
    }
}

/// What every tab of the run shows above itself.
struct Head {
    run: RunDetail,
    name: String,
    bar: OutcomeBar,
    counts: Vec<OutcomeCount>,
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
    let mut head =
        Head { bar: OutcomeBar::of(&totals), counts: outcome_counts(&totals), name, run, tab: "executions" };
    match asked {
        Asked::Executions(asked) => {
            let cursors = CursorScope::new(RouteId::RunPage, &("executions", &asked))?;
            executions::tab(visit, project, id, head, shell, asked, cursors).await
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
