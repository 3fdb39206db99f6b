//! Branches on which a cluster was seen, with their open requests.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_http::ApiError;
use callboard_query::scm::{self, Access, ClusterBranch, SourceControlError};

use crate::visit::Visit;

/// Inputs of `components/cluster_branches.html`.
#[derive(Default)]
pub(super) struct Branches {
    /// The branches that showed it last first.
    pub branches: Vec<ClusterBranch>,
    /// Why their requests are not known, as a sentence.
    pub problem: Option<String>,
}

impl Branches {
    /// Asks the code host, unless its answer is stored.
    pub(super) async fn read(
        visit: &Visit,
        access: &Access<'_>,
        project: Authorized<ProjectId>,
        cluster: ClusterId,
    ) -> Result<Self, ApiError> {
        let none = |problem: String| Self { problem: Some(problem), ..Self::default() };
        match scm::cluster_branches(&visit.ctx, access, project, cluster, visit.now).await {
            Ok(branches) => Ok(Self { branches, problem: None }),
            Err(SourceControlError::NotConfigured(missing)) => Ok(none(missing.to_string())),
            Err(SourceControlError::Upstream { error, .. }) => Ok(none(error.to_string())),
            Err(SourceControlError::Query(error)) => Err(error.into()),
        }
    }
}
