//! `/settings/source-control`: what runs and projects say about the code they
//! test, what is missing for it, and where that is set.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState};
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
            name: project.reference.label.unwrap_or(project.reference.name),
            host: match project.repository_provider.as_deref() {
                Some("github") => "GitHub",
                Some("gitlab") => "GitLab",
                Some("bitbucket") => "Bitbucket",
                _ => "another host",
            },
            repository: project.repository_url,
            has_token: project.has_scm_token,
            has_run: latest.is_some(),
            branch: latest.as_ref().and_then(|run| run.branch.clone()),
            commit: latest.and_then(|run| run.commit),
        }
    }
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
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::SourceControlPage, &asked.text)?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let filters = ProjectFilters { contains: asked.text.clone(), tag: None };
    let limit = asked.page.rows();
    let found = projects::list(&visit.ctx, visit.scope(), &filters, Sort::Name, after, limit).await?;
    let found = cursors.page(found)?;
    answer(&SourceControlPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::SourceControl),
        keeps_secrets: !state.config().secret_keys.is_empty(),
        filters: FilterBar::new(&visit.address, &[]).search("q", "Search projects", asked.text.as_ref()),
        is_filtered: asked.text.is_some(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        rows: found.items.into_iter().map(Row::of).collect(),
        shell: Shell::new(&visit, Section::Settings, "Source control")
            .await?
            .under("Settings", "/settings")
            .here("Source control"),
    })
}
