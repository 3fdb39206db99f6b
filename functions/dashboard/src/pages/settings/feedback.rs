//! `/settings/source-control/projects/{id}`: whether the runs of a project comment on requests and set statuses, and
//! what became of each call.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::feedback::{FeedbackAction, FeedbackKind, FeedbackState};
use callboard_domain::ids::ProjectId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState};
use callboard_query::feedback::{self, FeedbackEntry};
use callboard_query::scm::Provider;
use callboard_query::{projects, resolve, scm};
use serde::Serialize;

use crate::components::{Choice, FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Entries per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// Inputs of `pages/feedback.html`.
#[derive(Template)]
#[template(path = "pages/feedback.html")]
struct FeedbackPage {
    shell: Shell,
    tabs: SettingsTabs,
    id: i64,
    name: String,
    repository: Option<String>,
    /// What the provider calls a request.
    request: &'static str,
    /// Whether there are a repository and a token.
    is_connected: bool,
    /// Whether the address of the service is known, which links in comments need.
    has_site: bool,
    comment: bool,
    status: bool,
    context: String,
    default_context: String,
    filters: FilterBar,
    is_filtered: bool,
    entries: Vec<FeedbackEntry>,
    pager: Pager,
}

/// Which entries are shown.
#[derive(Debug, Serialize)]
pub(crate) struct FeedbackParams {
    state: Option<FeedbackState>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for FeedbackParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let state = query.word("state", FeedbackState::WORDS, FeedbackState::parse)?;
        Ok(Self { state, page: query.page(SIZE)? })
    }
}

/// Settings and log of a project; for administrators.
pub(crate) async fn feedback(
    State(state): State<AppState>,
    visit: Visit,
    Path(id): Path<ProjectId>,
    Query(params): Query<FeedbackParams>,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::FeedbackPage, &(id, &params))?;
    let before = cursors.decode(params.page.cursor.as_deref())?;
    let authorized = resolve::project(&visit.ctx, visit.scope(), id).await?;
    let project = projects::get(&visit.ctx, authorized).await?;
    let name = project.reference.shown().to_owned();
    let set = feedback::of_project(&visit.ctx, authorized).await?;
    let found =
        feedback::feedback_log(&visit.ctx, authorized, params.state, before, params.page.rows()).await?;
    let found = cursors.page(found)?;
    let provider = project.repository_provider.as_deref().and_then(Provider::parse);
    let states = [FeedbackState::Pending, FeedbackState::Sent, FeedbackState::Failed, FeedbackState::Skipped];
    let states = states.into_iter().map(|state| Choice::new(state.as_str(), state_label(state)));
    let chosen = params.state.map(|state| state.as_str().to_owned());
    let bar =
        FilterBar::new(&visit.address, &[]).select("state", "State", "Any state", states, chosen.as_slice());
    let shell = Shell::new(&visit, Section::Settings, &name).await?;
    answer(&FeedbackPage {
        shell: shell
            .under("Settings", "/settings")
            .under("Source control", "/settings/source-control")
            .here(&name),
        tabs: SettingsTabs::new(&visit, SettingsTab::SourceControl),
        id: id.get(),
        name,
        request: if provider == Some(Provider::GitLab) { "merge request" } else { "pull request" },
        is_connected: scm::has_repository(&visit.ctx, authorized).await?,
        has_site: state.config().site_url.is_some(),
        repository: project.repository_url,
        comment: set.settings.comment.unwrap_or_default(),
        status: set.settings.status.unwrap_or_default(),
        context: set.settings.status_context.unwrap_or_default(),
        default_context: set.default_context,
        filters: bar.tally("call", found.items.len(), found.next_cursor.is_some(), None),
        is_filtered: params.state.is_some(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        entries: found.items,
    })
}

const fn state_label(state: FeedbackState) -> &'static str {
    match state {
        FeedbackState::Pending => "waiting to retry",
        FeedbackState::Sending => "sending",
        FeedbackState::Sent => "sent",
        FeedbackState::Failed => "failed",
        FeedbackState::Skipped => "skipped",
    }
}

const fn action_label(entry: &FeedbackEntry) -> &'static str {
    match (entry.kind, entry.action) {
        (FeedbackKind::Comment, FeedbackAction::Created) => "Comment created",
        (FeedbackKind::Comment, FeedbackAction::Recreated) => "Deleted comment created again",
        (FeedbackKind::Comment, FeedbackAction::Replaced) => {
            "New comment, as another account wrote the old one"
        }
        (FeedbackKind::Comment, FeedbackAction::Updated | FeedbackAction::Set) => "Comment updated",
        (FeedbackKind::Comment, FeedbackAction::None) => "Comment",
        (FeedbackKind::Status, FeedbackAction::None) => "Status",
        (FeedbackKind::Status, _) => "Status set",
    }
}
