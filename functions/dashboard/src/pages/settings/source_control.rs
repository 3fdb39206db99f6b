//! `/settings/source-control`: what runs and projects say about the code they
//! test, what is missing for it, and where that is set.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::extract::Query;
use callboard_http::{ApiError, AppState};
use callboard_query::scm::Provider;
use callboard_query::shapes::Project;

use super::project_list::Params;
use crate::components::{FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// A project with what is known about its code.
struct Row {
    id: i64,
    name: String,
    repository: Option<String>,
    host: &'static str,
    has_token: bool,
    branch: Option<String>,
    commit: Option<String>,
    /// Whether a run arrived that could have said so.
    has_run: bool,
}

impl Row {
    fn of(project: Project) -> Self {
        let latest = project.latest_run;
        Self {
            id: project.reference.id,
            name: project.reference.shown().to_owned(),
            host: provider_label(project.repository_provider.as_deref()),
            repository: project.repository_url,
            has_token: project.has_scm_token,
            has_run: latest.is_some(),
            branch: latest.as_ref().and_then(|run| run.branch.clone()),
            commit: latest.and_then(|run| run.commit),
        }
    }
}

/// What people call a kind of code host.
fn provider_label(word: Option<&str>) -> &'static str {
    word.and_then(Provider::parse).map_or("another host", Provider::label)
}

/// Inputs of `pages/source_control.html`.
#[derive(Template)]
#[template(path = "pages/source_control.html")]
struct SourceControlPage {
    shell: Shell,
    tabs: SettingsTabs,
    /// Whether a token can be kept at all.
    keeps_secrets: bool,
    filters: FilterBar,
    is_filtered: bool,
    rows: Vec<Row>,
    pager: Pager,
}

/// Every project with its repository, by name.
pub(crate) async fn source_control(
    State(state): State<AppState>,
    visit: Visit,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let list = asked.find(&visit, RouteId::SourceControlPage).await?;
    answer(&SourceControlPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::SourceControl),
        keeps_secrets: !state.config().secret_keys.is_empty(),
        filters: list.filters,
        is_filtered: list.is_filtered,
        pager: list.pager,
        rows: list.projects.into_iter().map(Row::of).collect(),
        shell: Shell::new(&visit, Section::Settings, "Source control")
            .await?
            .under("Settings", "/settings")
            .here("Source control"),
    })
}
