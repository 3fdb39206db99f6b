//! Whether the repository of a project can be read with its token.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{CommitQuery, Fetched};
use serde::Serialize;
use utoipa::ToSchema;

use super::access::Access;
use super::commits::RepositoryCommit;
use super::error::SourceControlError;
use super::host::Host;
use crate::Context;

/// What a repository that can be read says about itself.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTest {
    /// One sentence for people.
    #[schema(example = "Connected to acme/shop on GitHub. Newest commit on main: 0a1b2c3d.")]
    pub message: String,
    /// Owner and name as the provider spells them.
    #[schema(example = "acme/shop")]
    pub repository: String,
    /// `github`, `gitlab`, `gitea` or `bitbucket`.
    #[schema(example = "github")]
    pub provider: &'static str,
    /// Default branch; null while there are no commits.
    #[schema(example = "main")]
    pub default_branch: Option<String>,
    /// Newest commit of that branch.
    pub newest_commit: Option<RepositoryCommit>,
}

/// Asks the code host for the repository and its newest commit, whatever is
/// stored: tokens may see a repository and not its contents.
///
/// # Errors
/// [`SourceControlError`].
pub async fn test_connection(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    now: Timestamp,
) -> Result<ConnectionTest, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let info = host.ask(ctx, now, |client| client.check()).await?;
    let newest = match &info.default_branch {
        Some(branch) => {
            let query = CommitQuery { start: Some(branch.clone()), base: None, limit: 1, page: None };
            match host.ask(ctx, now, |client| client.commits(&query, None)).await? {
                Fetched::Fresh { value, .. } => value.commits.into_iter().next(),
                Fetched::NotModified => None,
            }
        }
        None => None,
    };
    let newest = newest.map(RepositoryCommit::from);
    let on_branch = match (&newest, &info.default_branch) {
        (Some(commit), Some(branch)) => format!("Newest commit on {branch}: {}.", commit.short_sha),
        _ => "It has no commits yet.".to_owned(),
    };
    Ok(ConnectionTest {
        message: format!("Connected to {} on {}. {on_branch}", info.full_name, host.provider.label()),
        repository: info.full_name,
        provider: host.provider.as_str(),
        default_branch: info.default_branch,
        newest_commit: newest,
    })
}
