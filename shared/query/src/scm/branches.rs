//! Branches on which a failure cluster was seen, with their open requests.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::RequestQuery;
use callboard_store::clusters::reads;
use serde::Serialize;
use utoipa::ToSchema;

use super::access::Access;
use super::error::SourceControlError;
use super::host::Host;
use super::requests::{RequestItem, listed};
use crate::{Context, clusters};

/// Branches that are listed, those that showed the cluster last.
const MAX_BRANCHES: i64 = 50;

/// A branch on which a cluster was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBranch {
    /// Name.
    #[schema(example = "feature/cart")]
    pub branch: String,
    /// Whether it is the project's default branch.
    pub is_default: bool,
    /// Its open pull or merge request; null when it has none.
    pub request: Option<RequestItem>,
}

/// Branches of the newest runs that show a cluster, each with its open request.
///
/// # Errors
/// [`SourceControlError`].
pub async fn cluster_branches(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    cluster: ClusterId,
    now: Timestamp,
) -> Result<Vec<ClusterBranch>, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let cluster = clusters::survivor(ctx, project, cluster).await?;
    let mut session = ctx.store.db().read().await?;
    let branches = reads::branches(&mut session, project.get(), cluster, MAX_BRANCHES).await?;
    drop(session);
    // Nothing has to be asked about the default branch: requests lead to it.
    let is_default = |branch: &str| host.default_branch.as_deref() == Some(branch);
    let requests = match branches.iter().all(|branch| is_default(branch)) {
        true => Vec::new(),
        false => listed(ctx, &host, &RequestQuery::Open, now).await?,
    };
    let request_of = |branch: &str| {
        let from = |is_fork: bool| {
            requests.iter().find(|request| request.branch == branch && request.is_fork == is_fork)
        };
        from(false).or_else(|| from(true)).cloned()
    };
    let items = branches.into_iter().map(|branch| ClusterBranch {
        is_default: is_default(&branch),
        request: if is_default(&branch) { None } else { request_of(&branch) },
        branch,
    });
    Ok(items.collect())
}
