//! What administrators change of a project's repository. A stored token belongs
//! to the host it was saved for and never goes to another one.

use callboard_auth::sealed::{Place, StoredSecrets};
use callboard_domain::ids::ProjectId;
use callboard_integrations::scm::Provider;
use callboard_store::projects::edit::EditableProject;
use url::Url;

use crate::administration::AdministrationRule;
use crate::{Change, Result};

/// The word for a host whose provider nobody named.
const OTHER: &str = "other";

/// Where the token of a project's code host is stored.
pub(crate) fn scm_token_place(project: ProjectId) -> Place {
    Place::new("projects", "scm_token", project)
}

/// Changes of a repository.
pub(crate) struct RepositoryEdit {
    pub(crate) url: Change<String>,
    pub(crate) provider: Change<Provider>,
    /// In clear text.
    pub(crate) token: Change<String>,
}

/// Scheme, host and port of an address.
fn origin(url: Option<&str>) -> Option<String> {
    Some(Url::parse(url?).ok()?.origin().ascii_serialization())
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

/// The provider after an edit: whoever runs the host in the cloud, else the one
/// that was chosen, else what the name of the host suggests.
fn provider(
    wanted: Change<Provider>,
    stored: &EditableProject,
    is_same_host: bool,
) -> Result<Option<&'static str>> {
    let Some(host) = stored.repository_url.as_deref().and_then(host) else { return Ok(None) };
    let cloud = Provider::of_cloud_host(&host);
    if let (Some(cloud), Some(wanted)) = (cloud, wanted.value())
        && cloud != *wanted
    {
        return Err(AdministrationRule::ProviderOfAnotherHost.into());
    }
    let known = stored.repository_provider.as_deref().and_then(Provider::parse);
    let chosen = match wanted {
        Change::Set(provider) => Some(provider),
        Change::Keep if is_same_host => known,
        Change::Keep | Change::Clear => None,
    };
    Ok(Some(cloud.or(chosen).or_else(|| Provider::guess(&host)).map_or(OTHER, Provider::as_str)))
}

/// Applies the changes to what is stored.
///
/// # Errors
/// [`AdministrationRule`]; [`QueryError::Secret`](crate::QueryError::Secret)
/// when no token can be stored.
pub(crate) fn apply(
    edit: RepositoryEdit,
    stored: &mut EditableProject,
    secrets: &StoredSecrets,
) -> Result<()> {
    let before = origin(stored.repository_url.as_deref());
    stored.repository_url = edit.url.applied_to(stored.repository_url.take());
    let after = origin(stored.repository_url.as_deref());
    let is_moved = before.is_some() && before != after;
    if is_moved && edit.token.is_keep() && stored.scm_token.is_some() {
        if after.is_some() {
            return Err(AdministrationRule::TokenOfAnotherHost.into());
        }
        // Without its host a token is of no use, and could be sent to the next one.
        stored.scm_token = None;
    }
    stored.repository_provider = provider(edit.provider, stored, before == after)?.map(str::to_owned);
    let place = scm_token_place(stored.id);
    let token = edit.token.try_map(|plain| secrets.seal(&place, &plain))?;
    stored.scm_token = token.applied_to(stored.scm_token.take());
    Ok(())
}
