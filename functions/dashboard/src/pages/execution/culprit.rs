//! Which commit turned the test red.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_http::{ApiError, AppState};
use callboard_query::scm::{self, CulpritSearch, CulpritState, SourceControlError};
use callboard_query::shapes::ExecutionDetail;

use crate::visit::Visit;

/// Commits that are shown.
const SHOWN: usize = 8;

/// Inputs of `components/execution_culprit.html`.
pub(super) struct CulpritBlock {
    /// How far the search is.
    pub search: CulpritSearch,
    /// Commits that are not shown.
    pub hidden: i64,
}

impl CulpritBlock {
    /// What is known of the commit that turned the test red; `None` for tests that
    /// passed, and without a repository. Asks no code host.
    pub(super) async fn read(
        visit: &Visit,
        state: &AppState,
        project: Authorized<ProjectId>,
        detail: &ExecutionDetail,
    ) -> Result<Option<Self>, ApiError> {
        if !detail.item.status.is_failing() || !scm::has_repository(&visit.ctx, project).await? {
            return Ok(None);
        }
        let id = ExecutionId(detail.item.id);
        let found = scm::culprit(&visit.ctx, &state.source_control(), project, id, visit.now).await;
        let mut search = match found {
            Ok(search) => search,
            // The suspects of the cluster say what has to be configured.
            Err(SourceControlError::NotConfigured(_) | SourceControlError::Upstream { .. }) => {
                return Ok(None);
            }
            Err(SourceControlError::Query(error)) => return Err(error.into()),
        };
        let hidden = search.suspects.len().saturating_sub(SHOWN);
        search.suspects.truncate(SHOWN);
        Ok(Some(Self { search, hidden: i64::try_from(hidden).unwrap_or(i64::MAX) }))
    }

    /// Whether the commits are being read.
    pub(super) fn is_running(&self) -> bool {
        self.search.state == CulpritState::Running
    }

    /// Whether somebody can start the search.
    pub(super) fn can_start(&self) -> bool {
        matches!(self.search.state, CulpritState::None | CulpritState::Failed)
    }

    /// Whether it failed before.
    pub(super) fn has_failed(&self) -> bool {
        self.search.state == CulpritState::Failed
    }
}
