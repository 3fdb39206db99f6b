//! The pull or merge request that a run tested.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_query::scm::{self, RequestItem, RequestState, RunPlace, SourceControlError};
use callboard_query::shapes::RunDetail;

use crate::visit::Visit;

/// Whether the request is read from the code host.
#[derive(Debug)]
pub(crate) struct Shown(bool);

impl FromQuery for Shown {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self(query.one_of("request", &[("show", true)])?.unwrap_or_default()))
    }
}

/// Inputs of the line below the head of a run.
pub(super) enum RequestLine {
    /// The run may have one; it is asked for after the page is shown.
    Later,
    /// This one.
    Found(RequestItem),
    /// There is none.
    None,
    /// It could not be read: why, as a sentence.
    Problem(String),
}

impl RequestLine {
    /// Asks the code host only when the page asks for it.
    pub(super) async fn read(
        visit: &Visit,
        state: &AppState,
        project: Authorized<ProjectId>,
        run: &RunDetail,
        Shown(is_shown): Shown,
    ) -> Result<Self, ApiError> {
        let brief = &run.item.brief;
        let (commit, branch) = (brief.commit.as_deref(), brief.branch.as_deref());
        let place = RunPlace::new(commit, branch, run.item.pull_request.as_deref());
        if place.is_nowhere() || !scm::has_repository(&visit.ctx, project).await? {
            return Ok(Self::None);
        }
        if !is_shown {
            return Ok(Self::Later);
        }
        let found = scm::request_of(&visit.ctx, &state.source_control(), project, place, visit.now).await;
        match found {
            Ok(found) => Ok(found.map_or(Self::None, Self::Found)),
            Err(SourceControlError::NotConfigured(missing)) => Ok(Self::Problem(missing.to_string())),
            Err(SourceControlError::Upstream { error, .. }) => Ok(Self::Problem(error.to_string())),
            Err(SourceControlError::Query(error)) => Err(error.into()),
        }
    }

    /// Whether the page asks for it after it is shown.
    pub(super) const fn is_later(&self) -> bool {
        matches!(self, Self::Later)
    }

    /// The request, where it was read.
    pub(super) const fn found(&self) -> Option<&RequestItem> {
        match self {
            Self::Found(request) => Some(request),
            _ => None,
        }
    }

    /// Why it could not be read.
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// The class that carries the colour of its state.
    pub(super) const fn tag_class(&self) -> &'static str {
        match self {
            Self::Found(RequestItem { state: RequestState::Open | RequestState::Merged, .. }) => {
                "tag passed-tag"
            }
            _ => "tag",
        }
    }
}
