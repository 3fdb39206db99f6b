//! The access token of the installation: for projects without one, and for the repositories on its list only. It belongs
//! to the host of that list and never goes to another one.

use callboard_auth::sealed::{Place, SecretUnusable, StoredSecrets};
use callboard_domain::audit::AuditAction;
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{AllowedRepository, Repository};
use callboard_store::accounts::users;
use callboard_store::db::Session;
use callboard_store::settings::{self, StoredSettings};
use callboard_store::{Store, StoreError, boxed};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::{NotConfigured, SourceControlError};
use super::host::repository_at;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::shapes::UserRef;
use crate::{Change, Context, Result};

const NAME: &str = "source-control";

fn token_place() -> Place {
    Place::new("settings", "source-control.token", 0)
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SharedToken {
    repositories: Vec<String>,
    sealed_token: Option<String>,
}

impl SharedToken {
    fn parse(stored: Option<&StoredSettings>) -> Result<Self> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        Ok(serde_json::from_str(&stored.value)
            .map_err(|_| StoreError::Damaged("settings of source control"))?)
    }

    async fn read(session: &mut Session) -> Result<Self> {
        Self::parse(settings::get(session, None, NAME).await?.as_ref())
    }

    fn serves(&self, repository: &Repository) -> bool {
        self.sealed_token.is_some() && is_listed(&self.repositories, repository)
    }

    /// The host of the list.
    fn origin(&self) -> Option<String> {
        self.repositories
            .iter()
            .find_map(|entry| Some(AllowedRepository::parse(entry).ok()?.origin().to_owned()))
    }
}

/// The token of the installation as administrators see it.
#[derive(Debug, Clone)]
pub struct StoredToken {
    /// Repositories that it serves, as they were entered.
    pub repositories: Vec<String>,
    /// Whether a token is stored.
    pub has_token: bool,
    /// When it was set last.
    pub updated_at: Option<Timestamp>,
    /// By whom, as long as the account exists.
    pub updated_by: Option<UserRef>,
}

impl StoredToken {
    /// Whether it serves the repository that a project names.
    #[must_use]
    pub fn serves(&self, url: &str, provider: Option<&str>) -> bool {
        self.has_token
            && repository_at(url, provider).is_ok_and(|repository| is_listed(&self.repositories, &repository))
    }
}

fn is_listed(entries: &[String], repository: &Repository) -> bool {
    let mut entries = entries.iter().filter_map(|entry| AllowedRepository::parse(entry).ok());
    entries.any(|entry| entry.means(repository))
}

/// The token of the installation and what it serves.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn stored_token(ctx: &Context) -> Result<StoredToken> {
    let mut session = ctx.store.db().read().await?;
    let stored = settings::get(&mut session, None, NAME).await?;
    let by = match stored.as_ref().and_then(|stored| stored.updated_by) {
        Some(user) => users::get_many(&mut session, vec![user.get()]).await?,
        None => Vec::new(),
    };
    let set = SharedToken::parse(stored.as_ref())?;
    Ok(StoredToken {
        has_token: set.sealed_token.is_some(),
        repositories: set.repositories,
        updated_at: stored.map(|stored| stored.updated_at),
        updated_by: by.first().map(UserRef::from_row),
    })
}

/// Whether the token of the installation serves a repository.
pub(super) async fn serves(session: &mut Session, repository: &Repository) -> Result<bool> {
    Ok(SharedToken::read(session).await?.serves(repository))
}

/// The token of the installation in clear text, for a repository on its list.
pub(super) async fn open(
    session: &mut Session,
    secrets: &StoredSecrets,
    repository: &Repository,
) -> std::result::Result<String, SourceControlError> {
    let set = SharedToken::read(session).await?;
    let sealed =
        set.sealed_token.as_deref().filter(|_| set.serves(repository)).ok_or(NotConfigured::Token)?;
    match secrets.open(&token_place(), sealed) {
        Ok(token) => Ok(token.to_string()),
        Err(error @ SecretUnusable::NotConfigured) => Err(SourceControlError::Query(error.into())),
        Err(_) => Err(NotConfigured::SealedToken.into()),
    }
}

/// Changes of the token of the installation.
#[derive(Debug, Clone, Default)]
pub struct SharedTokenEdit {
    /// Repositories that it serves; clearing them deletes the token.
    pub repositories: Change<Vec<String>>,
    /// Token in clear text.
    pub token: Change<String>,
}

/// Changes the token of the installation and what it serves.
///
/// # Errors
/// [`AdministrationRule`]; [`crate::QueryError::Secret`] when no token can be stored.
pub async fn edit_shared_token(
    ctx: &Context,
    acting: Acting<'_>,
    secrets: &StoredSecrets,
    edit: SharedTokenEdit,
) -> Result<()> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let locked = settings::lock(&mut session, None, NAME, acting.now).await?;
    let before = SharedToken::parse(Some(&locked))?;
    let sealed = edit.token.try_map(|plain| secrets.seal(&token_place(), &plain))?;
    let is_token_kept = sealed.is_keep();
    let mut after = SharedToken {
        repositories: edit.repositories.applied_to(Some(before.repositories.clone())).unwrap_or_default(),
        sealed_token: sealed.applied_to(before.sealed_token.clone()),
    };
    let origin = after.origin();
    let is_there = |entry: &String| {
        AllowedRepository::parse(entry).is_ok_and(|it| Some(it.origin()) == origin.as_deref())
    };
    if !after.repositories.iter().all(is_there) {
        return Err(AdministrationRule::RepositoriesOfSeveralHosts.into());
    }
    if origin.is_none() {
        // Without its host a token is of no use, and could be sent to the next one.
        after.sealed_token = None;
    } else if after.sealed_token.is_some() && is_token_kept && origin != before.origin() {
        return Err(AdministrationRule::SharedTokenOfAnotherHost.into());
    }
    if after == before {
        return Ok(());
    }
    let by = acting.caller.user_id();
    settings::set(&mut session, None, NAME, &json!(after).to_string(), acting.now, by).await?;
    let target = ("settings", 0);
    let mut noted = Vec::new();
    if after.repositories != before.repositories {
        let changed =
            json!({ "repositories": { "before": before.repositories, "after": after.repositories } });
        let detail = json!({ "group": NAME, "changed": changed });
        noted.push(acting.record(&mut session, AuditAction::SettingsChanged, target, None, detail).await?);
    }
    if after.sealed_token != before.sealed_token {
        let is_set = after.sealed_token.is_some();
        let action = if is_set { AuditAction::SecretSet } else { AuditAction::SecretCleared };
        let detail = json!({ "secret": "source-control.token" });
        noted.push(acting.record(&mut session, action, target, None, detail).await?);
    }
    session.commit().await?;
    noted.into_iter().for_each(callboard_store::audit::Recorded::committed);
    Ok(())
}

/// Seals the stored token under the first key of the ring: stored secrets, those sealed again, and those that no key
/// opens.
pub(crate) async fn rotate(store: &Store, secrets: &StoredSecrets) -> Result<(u64, u64, u64)> {
    let mut session = store.db().begin().await?;
    let Some(stored) = settings::get(&mut session, None, NAME).await? else { return Ok((0, 0, 0)) };
    let locked = settings::lock(&mut session, None, NAME, stored.updated_at).await?;
    let mut found = SharedToken::parse(Some(&locked))?;
    let Some(sealed) = &found.sealed_token else { return Ok((0, 0, 0)) };
    match secrets.reseal(&token_place(), sealed) {
        Ok(None) => Ok((1, 0, 0)),
        Ok(Some(resealed)) => {
            found.sealed_token = Some(resealed);
            let (at, by) = (locked.updated_at, locked.updated_by);
            settings::set(&mut session, None, NAME, &json!(found).to_string(), at, by).await?;
            session.commit().await?;
            Ok((1, 1, 0))
        }
        Err(unusable) => {
            tracing::error!(%unusable, "the stored access token of the installation was not sealed again");
            Ok((1, 0, 1))
        }
    }
}
