//! `/projects/{id}`: one project, its runs and its tests.

mod cases;
mod members;
mod runs;

use axum::response::Response;
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_query::shapes::Project;
use callboard_query::{projects, resolve};

use crate::shell::{Section, Shell};
use crate::visit::Visit;

/// The tab that is asked for, with its filters.
#[derive(Debug)]
pub(crate) enum Asked {
    /// `?tab=runs`, the first one.
    Runs(runs::Asked),
    /// `?tab=cases`.
    Cases(cases::Asked),
    /// `?tab=members`.
    Members,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let tab =
            query.one_of("tab", |text| ["runs", "cases", "members"].into_iter().find(|tab| *tab == text))?;
        Ok(match tab {
            Some("cases") => Self::Cases(cases::Asked::from_query(query)?),
            Some("members") => Self::Members,
            _ => Self::Runs(runs::Asked::from_query(query)?),
        })
    }
}

/// What all tabs of the project show above themselves.
struct Head {
    project: Project,
    tab: &'static str,
    /// Whether the reader may see who reaches the project.
    shows_members: bool,
}

/// One project.
pub(crate) async fn project(
    visit: Visit,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let authorized = resolve::project(&visit.ctx, visit.scope(), id).await?;
    let project = projects::get(&visit.ctx, authorized).await?;
    let name = project.reference.name.clone();
    let shell = Shell::new(&visit, Section::Project(id.get()), name.as_str()).await?;
    let shell = shell.under("Projects", "/projects").here(name);
    let shows_members = visit.caller.is_administrator();
    let head = |tab| Head { project, tab, shows_members };
    match asked {
        Asked::Runs(asked) => runs::tab(visit, authorized, head("runs"), shell, asked).await,
        Asked::Cases(asked) => cases::tab(visit, authorized, head("cases"), shell, asked).await,
        Asked::Members => members::tab(visit, authorized, head("members"), shell).await,
    }
}
