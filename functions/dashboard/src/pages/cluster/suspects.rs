//! Commits and files that may have caused a cluster.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_http::ApiError;
use callboard_query::scm::{
    self, Access, ClusterRange, ClusterSuspects, SourceControlError, SuspectCommitItem, SuspectFileItem,
    SuspectsOf,
};

use crate::visit::Visit;

/// Inputs of `components/cluster_suspects.html`.
#[derive(Default)]
pub(super) struct Suspects {
    /// Commits that anything ties to the failure, with the addresses of their pages.
    pub commits: Vec<(SuspectCommitItem, String)>,
    /// Files that anything ties to the failure.
    pub files: Vec<SuspectFileItem>,
    /// Commits whose changes were examined, and how many files they changed.
    pub examined: (i64, i64),
    /// Whether there are older commits than these.
    pub goes_on: bool,
    /// Why there is nothing, or not everything, as a sentence.
    pub problem: Option<String>,
    /// Whether somebody has to configure something first.
    pub is_to_configure: bool,
}

impl Suspects {
    /// What is stored; `None` when nobody asked for it yet. Asks no code host.
    pub(super) async fn stored(
        visit: &Visit,
        access: &Access<'_>,
        project: Authorized<ProjectId>,
        cluster: ClusterId,
    ) -> Result<Option<Self>, ApiError> {
        let wanted = SuspectsOf { cluster, base: None };
        let found = scm::stored_suspects(&visit.ctx, access, project, wanted, visit.now).await?;
        Ok(found.map(Self::from))
    }

    /// Asks the code host, unless its answers are stored.
    pub(super) async fn read(
        visit: &Visit,
        access: &Access<'_>,
        project: Authorized<ProjectId>,
        cluster: ClusterId,
    ) -> Result<Self, ApiError> {
        let none = |problem: String| Self { problem: Some(problem), ..Self::default() };
        let wanted = SuspectsOf { cluster, base: None };
        match scm::suspects(&visit.ctx, access, project, wanted, visit.now).await {
            Ok(ClusterRange::Suspects(found)) => Ok(Self::from(*found)),
            Ok(ClusterRange::None(_, reason)) => Ok(none(reason.to_string())),
            Err(SourceControlError::NotConfigured(missing)) => {
                Ok(Self { is_to_configure: true, ..none(missing.to_string()) })
            }
            Err(SourceControlError::Upstream { error, .. }) => Ok(none(error.to_string())),
            Err(SourceControlError::Query(error)) => Err(error.into()),
        }
    }
}

impl From<ClusterSuspects> for Suspects {
    fn from(found: ClusterSuspects) -> Self {
        let page = |suspect: SuspectCommitItem| {
            let page = found.provider.commit_page(&found.repository_url, &suspect.commit.sha);
            (suspect, page)
        };
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let commits = found.commits.into_iter().filter(|suspect| !suspect.reasons.is_empty());
        Self {
            commits: commits.map(page).collect(),
            files: found.files,
            examined: (count(found.examined_commits), count(found.files_count)),
            goes_on: found.commits_cut,
            problem: found.problem,
            is_to_configure: false,
        }
    }
}
