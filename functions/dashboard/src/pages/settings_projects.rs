//! `/settings/projects`: every project with what was set for it, and a form
//! for a new one.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::projects::{self, ProjectFilters, Sort};
use callboard_query::shapes::Project;

use crate::components::{FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Projects per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 100 };

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    text: Option<String>,
    page: PageRequest,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { text: query.text("q")?, page: query.page(SIZE)? })
    }
}

/// Inputs of `pages/settings_projects.html`.
#[derive(Template)]
#[template(path = "pages/settings_projects.html")]
struct ProjectsPage {
    shell: Shell,
    tabs: SettingsTabs,
    filters: FilterBar,
    is_filtered: bool,
    projects: Vec<Project>,
    pager: Pager,
}

/// Every project, by name.
pub(crate) async fn settings_projects(
    visit: Visit,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ProjectsSettingsPage, &asked.text)?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let filters = ProjectFilters { contains: asked.text.clone(), tag: None };
    let limit = asked.page.rows();
    let found = projects::list(&visit.ctx, visit.scope(), &filters, Sort::Name, after, limit).await?;
    let found = cursors.page(found)?;
    answer(&ProjectsPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Projects),
        filters: FilterBar::new(&visit.address, &[]).search("q", "Search projects", asked.text.as_ref()),
        is_filtered: asked.text.is_some(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        projects: found.items,
        shell: Shell::new(&visit, Section::Settings, "Projects in the settings")
            .await?
            .under("Settings", "/settings")
            .here("Projects"),
    })
}
