//! `/settings/projects`: every project with what was set for it, and a form
//! for a new one.

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::ApiError;
use callboard_http::extract::Query;

use super::project_list::{Params, ProjectList};
use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Inputs of `pages/settings_projects.html`.
#[derive(Template)]
#[template(path = "pages/settings_projects.html")]
struct ProjectsPage {
    shell: Shell,
    tabs: SettingsTabs,
    list: ProjectList,
}

/// Every project, by name or by its latest run.
pub(crate) async fn projects(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    answer(&ProjectsPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Projects),
        list: asked.find(&visit, RouteId::ProjectsSettingsPage).await?,
        shell: Shell::new(&visit, Section::Settings, "Projects in the settings")
            .await?
            .under("Settings", "/settings")
            .here("Projects"),
    })
}
