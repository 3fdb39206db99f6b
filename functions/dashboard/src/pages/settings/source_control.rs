//! `/settings/source-control`: what runs and projects say about the code they
//! test, what is missing for it, and where that is set.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::extract::Query;
use callboard_http::{ApiError, AppState};
use callboard_query::scm::{self, Provider, StoredToken};
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
    /// Whether it uses the shared token.
    is_shared: bool,
    branch: Option<String>,
    commit: Option<String>,
    /// Whether a run arrived that could have said so.
    has_run: bool,
}

impl Row {
    fn from_project(project: Project, shared: &StoredToken) -> Self {
        let latest = project.latest_run;
        let provider = project.repository_provider.as_deref();
        let is_served = project.repository_url.as_deref().is_some_and(|url| shared.serves(url, provider));
        Self {
            id: project.reference.id,
            name: project.reference.shown().to_owned(),
            host: provider_label(project.repository_provider.as_deref()),
            repository: project.repository_url,
            has_token: project.has_scm_token,
            is_shared: !project.has_scm_token && is_served,
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
    /// What the shared token serves, an entry a line, and whether it is stored.
    shared_repositories: String,
    has_shared_token: bool,
    shared_hint: &'static str,
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
    let shared = scm::stored_token(&visit.ctx).await?;
    answer(&SourceControlPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::SourceControl),
        keeps_secrets: !state.config().secret_keys.is_empty(),
        filters: list.filters,
        is_filtered: list.is_filtered,
        pager: list.pager,
        rows: list.projects.into_iter().map(|project| Row::from_project(project, &shared)).collect(),
        shared_repositories: shared.repositories.join("\n"),
        has_shared_token: shared.has_token,
        shared_hint: token_hint(shared.has_token),
        shell: Shell::new(&visit, Section::Settings, "Source control")
            .await?
            .under("Settings", "/settings")
            .here("Source control"),
    })
}

const fn token_hint(is_stored: bool) -> &'static str {
    if is_stored {
        "Empty keeps the present one, which is stored encrypted and not shown."
    } else {
        "Needs read access to the repositories' contents. Stored encrypted and not shown again."
    }
}
