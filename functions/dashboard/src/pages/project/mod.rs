//! `/projects/{id}`: one project, its runs and its tests.

mod cases;
mod clusters;
mod compare;
mod flaky;
mod grid;
mod health;
mod members;
mod owners;
mod performance;
mod quarantine;
mod runs;
mod settings;

use axum::extract::State;
use axum::response::Response;
use callboard_domain::ids::ProjectId;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_query::notifications::Watched;
use callboard_query::shapes::Project;
use callboard_query::{projects, resolve};

use crate::outcome::Standing;
use crate::shell::{Section, Shell};
use crate::visit::Visit;

/// The tabs by their words in the address.
const TABS: [&str; 12] = [
    "runs",
    "grid",
    "cases",
    "clusters",
    "flaky",
    "performance",
    "health",
    "quarantine",
    "owners",
    "compare",
    "members",
    "settings",
];

/// The tab that is asked for, with its filters.
#[derive(Debug)]
pub(crate) enum Params {
    /// `?tab=runs`, the first one.
    Runs(runs::Params),
    /// `?tab=cases`.
    Cases(cases::Params),
    /// `?tab=grid`.
    Grid(grid::Params),
    /// `?tab=clusters`.
    Clusters(clusters::Params),
    /// `?tab=flaky`.
    Flaky(flaky::Params),
    /// `?tab=performance`.
    Performance(performance::Params),
    /// `?tab=health`.
    Health(health::Params),
    /// `?tab=quarantine`.
    Quarantine(quarantine::Params),
    /// `?tab=owners`.
    Owners(owners::Params),
    /// `?tab=compare`.
    Compare(compare::Params),
    /// `?tab=members`.
    Members,
    /// `?tab=settings`.
    Settings,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab = query.one_of("tab", &TABS.map(|tab| (tab, tab)))?;
        Ok(match tab {
            Some("cases") => Self::Cases(cases::Params::from_query(query)?),
            Some("grid") => Self::Grid(grid::Params::from_query(query)?),
            Some("clusters") => Self::Clusters(clusters::Params::from_query(query)?),
            Some("flaky") => Self::Flaky(flaky::Params::from_query(query)?),
            Some("performance") => Self::Performance(performance::Params::from_query(query)?),
            Some("health") => Self::Health(health::Params::from_query(query)?),
            Some("quarantine") => Self::Quarantine(quarantine::Params::from_query(query)?),
            Some("owners") => Self::Owners(owners::Params::from_query(query)?),
            Some("compare") => Self::Compare(compare::Params::from_query(query)?),
            Some("members") => Self::Members,
            Some("settings") => Self::Settings,
            _ => Self::Runs(runs::Params::from_query(query)?),
        })
    }
}

/// What all tabs of the project show above themselves.
struct Head {
    project: Project,
    standing: Standing,
    tab: &'static str,
    /// Whether the reader may see who reaches the project, and what is set.
    shows_members: bool,
}

impl Head {
    /// What the title of the page begins with, so that tabs can be told apart
    /// in a history.
    fn tab_title(&self) -> &'static str {
        match self.tab {
            "grid" => "Test grid · ",
            "cases" => "Test cases · ",
            "clusters" => "Clusters · ",
            "flaky" => "Flaky · ",
            "performance" => "Performance · ",
            "health" => "Spec health · ",
            "quarantine" => "Quarantine · ",
            "owners" => "Owners · ",
            "compare" => "Compare · ",
            "members" => "Members · ",
            "settings" => "Settings · ",
            _ => "",
        }
    }
}

/// One project.
pub(crate) async fn project(
    State(state): State<AppState>,
    visit: Visit,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let authorized = resolve::project(&visit.ctx, visit.scope(), id).await?;
    let project = projects::get(&visit.ctx, authorized).await?;
    let name = project.reference.shown().to_owned();
    let shell = Shell::new(&visit, Section::Project(id.get()), name.as_str()).await?;
    let watched = Watched { project: authorized, test_case: None, cluster: None };
    let shell = shell.under("Projects", "/projects").here(name).offering(&visit, watched).await?;
    let shows_members = visit.caller.is_administrator();
    let telling = project.telling_run.as_ref().or(project.latest_run.as_ref());
    let standing = Standing(project.tendency, telling.map(|run| run.status));
    let head = |tab| Head { project, standing, tab, shows_members };
    match asked {
        Params::Runs(asked) => runs::tab(visit, authorized, head("runs"), shell, asked).await,
        Params::Cases(asked) => cases::tab(visit, authorized, head("cases"), shell, asked).await,
        Params::Grid(asked) => grid::tab(visit, authorized, head("grid"), shell, asked).await,
        Params::Clusters(asked) => clusters::tab(visit, authorized, head("clusters"), shell, asked).await,
        Params::Flaky(asked) => flaky::tab(visit, authorized, head("flaky"), shell, asked).await,
        Params::Performance(asked) => {
            performance::tab(visit, authorized, head("performance"), shell, asked).await
        }
        Params::Health(asked) => health::tab(visit, authorized, head("health"), shell, asked).await,
        Params::Quarantine(asked) => {
            quarantine::tab(visit, authorized, head("quarantine"), shell, asked).await
        }
        Params::Owners(asked) => owners::tab(visit, authorized, head("owners"), shell, asked).await,
        Params::Compare(asked) => compare::tab(visit, authorized, head("compare"), shell, asked).await,
        Params::Members => {
            members::tab(visit, state.auth_enabled(), authorized, head("members"), shell).await
        }
        Params::Settings => settings::tab(&state, &visit, head("settings"), shell).await,
    }
}
