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
pub(crate) enum Asked {
    /// `?tab=runs`, the first one.
    Runs(runs::Asked),
    /// `?tab=cases`.
    Cases(cases::Asked),
    /// `?tab=grid`.
    Grid(grid::Asked),
    /// `?tab=clusters`.
    Clusters(clusters::Asked),
    /// `?tab=flaky`.
    Flaky(flaky::Asked),
    /// `?tab=performance`.
    Performance(performance::Asked),
    /// `?tab=health`.
    Health(health::Asked),
    /// `?tab=quarantine`.
    Quarantine(quarantine::Asked),
    /// `?tab=owners`.
    Owners(owners::Asked),
    /// `?tab=compare`.
    Compare(compare::Asked),
    /// `?tab=members`.
    Members,
    /// `?tab=settings`.
    Settings,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab = query.one_of("tab", &TABS.map(|tab| (tab, tab)))?;
        Ok(match tab {
            Some("cases") => Self::Cases(cases::Asked::from_query(query)?),
            Some("grid") => Self::Grid(grid::Asked::from_query(query)?),
            Some("clusters") => Self::Clusters(clusters::Asked::from_query(query)?),
            Some("flaky") => Self::Flaky(flaky::Asked::from_query(query)?),
            Some("performance") => Self::Performance(performance::Asked::from_query(query)?),
            Some("health") => Self::Health(health::Asked::from_query(query)?),
            Some("quarantine") => Self::Quarantine(quarantine::Asked::from_query(query)?),
            Some("owners") => Self::Owners(owners::Asked::from_query(query)?),
            Some("compare") => Self::Compare(compare::Asked::from_query(query)?),
            Some("members") => Self::Members,
            Some("settings") => Self::Settings,
            _ => Self::Runs(runs::Asked::from_query(query)?),
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
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let authorized = resolve::project(&visit.ctx, visit.scope(), id).await?;
    let project = projects::get(&visit.ctx, authorized).await?;
    let name = project.reference.shown().to_owned();
    let shell = Shell::new(&visit, Section::Project(id.get()), name.as_str()).await?;
    let shell = shell.under("Projects", "/projects").here(name);
    let shows_members = visit.caller.is_administrator();
    let telling = project.telling_run.as_ref().or(project.latest_run.as_ref());
    let standing = Standing(project.tendency, telling.map(|run| run.status));
    let head = |tab| Head { project, standing, tab, shows_members };
    match asked {
        Asked::Runs(asked) => runs::tab(visit, authorized, head("runs"), shell, asked).await,
        Asked::Cases(asked) => cases::tab(visit, authorized, head("cases"), shell, asked).await,
        Asked::Grid(asked) => grid::tab(visit, authorized, head("grid"), shell, asked).await,
        Asked::Clusters(asked) => clusters::tab(visit, authorized, head("clusters"), shell, asked).await,
        Asked::Flaky(asked) => flaky::tab(visit, authorized, head("flaky"), shell, asked).await,
        Asked::Performance(asked) => {
            performance::tab(visit, authorized, head("performance"), shell, asked).await
        }
        Asked::Health(asked) => health::tab(visit, authorized, head("health"), shell, asked).await,
        Asked::Quarantine(asked) => {
            quarantine::tab(visit, authorized, head("quarantine"), shell, asked).await
        }
        Asked::Owners(asked) => owners::tab(visit, authorized, head("owners"), shell, asked).await,
        Asked::Compare(asked) => compare::tab(visit, authorized, head("compare"), shell, asked).await,
        Asked::Members => members::tab(visit, state.auth_enabled(), authorized, head("members"), shell).await,
        Asked::Settings => settings::tab(&state, &visit, head("settings"), shell).await,
    }
}
