//! A link that opens the form of a new issue with a text filled in. Nothing is created until a person does.

use callboard_auth::scope::Authorized;
use callboard_domain::feedback::{IssueFacts, issue_body, issue_title};
use callboard_domain::ids::ProjectId;
use callboard_integrations::scm::Provider;
use callboard_store::boxed;
use callboard_store::projects::edit;

use super::host::repository;
use crate::shapes::ClusterDetail;
use crate::{Context, Result};

/// Where an issue about a cluster is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIssue {
    /// The provider's page with title and text.
    pub url: String,
    /// Whose page it is.
    pub provider: Provider,
}

/// The page on which a person files an issue about a cluster; `None` without a repository of a known provider.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn new_issue(
    ctx: &Context,
    project: Authorized<ProjectId>,
    cluster: &ClusterDetail,
) -> Result<Option<NewIssue>> {
    let settings = edit::repository(&mut ctx.store.db().read().await?, project.get()).await?;
    let Some(Ok((url, repository))) = settings.as_ref().map(repository) else { return Ok(None) };
    let (item, brief) = (&cluster.item, &cluster.item.brief);
    let tests = cluster.affected_test_cases.iter().map(|test| test.title.clone()).collect();
    let facts = IssueFacts {
        name: brief.title.clone().unwrap_or_else(|| brief.signature.clone()),
        url: ctx.links.cluster(brief.id),
        error: item.sample_error.clone(),
        occurrences: brief.occurrences,
        tests: (tests, brief.affected_tests),
        first_run: (item.first_seen_run_id, ctx.links.run(item.first_seen_run_id)),
    };
    let provider = repository.provider();
    let page = provider.new_issue_page(&url, &issue_title(&facts), &issue_body(&facts));
    Ok(Some(NewIssue { url: page, provider }))
}
