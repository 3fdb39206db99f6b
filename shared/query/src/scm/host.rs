//! The code host of a project, ready to be asked.

use std::time::Duration;

use callboard_auth::scope::Authorized;
use callboard_auth::sealed::SecretUnusable;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{Provider, Repository, ScmError, SourceControl, connect};
use callboard_store::db::Session;
use callboard_store::projects::edit::{self, RepositorySettings};
use url::Url;

use super::access::Access;
use super::cache::{Entry, Freshness, MINUTE_MS, key};
use super::editing::scm_token_place;
use super::error::{NotConfigured, SourceControlError};
use super::shared_token;
use crate::{Context, Entity, QueryError};

/// How long one question may take, however many requests it is: agents wait
/// for 25 seconds.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long a rate limit is taken for granted.
const MAX_LIMIT_MS: i64 = 60 * MINUTE_MS;
const RATE_LIMIT: &str = "rate-limit";

/// Whether a project has a repository, and a token of its own or of the installation for it. Both may still be wrong.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn has_repository(ctx: &Context, project: Authorized<ProjectId>) -> crate::Result<bool> {
    let mut session = ctx.store.db().read().await?;
    let Some(settings) = edit::repository(&mut session, project.get()).await? else { return Ok(false) };
    match (&settings.url, &settings.sealed_token) {
        (None, _) => Ok(false),
        (Some(_), Some(_)) => Ok(true),
        (Some(_), None) => match repository(&settings) {
            Ok((_, repository)) => shared_token::serves(&mut session, &repository).await,
            Err(_) => Ok(false),
        },
    }
}

/// The code host of a project.
pub(crate) struct Host {
    pub(crate) project: ProjectId,
    /// Address of the repository.
    pub(crate) url: String,
    /// Owner and name.
    pub(crate) path: String,
    /// One address for the repository, however the settings spell it.
    pub(crate) identity: String,
    pub(crate) provider: Provider,
    pub(crate) default_branch: Option<String>,
    host: String,
    client: Box<dyn SourceControl>,
}

/// The provider of a repository: whoever runs the host in the cloud, else the
/// one that an administrator chose.
fn provider_of(host: &str, stored: Option<&str>) -> Option<Provider> {
    Provider::of_cloud_host(host).or_else(|| Provider::parse(stored?))
}

/// Address and repository that the settings of a project name.
pub(super) fn repository(settings: &RepositorySettings) -> Result<(String, Repository), NotConfigured> {
    let url = settings.url.clone().ok_or(NotConfigured::Repository)?;
    let repository = repository_at(&url, settings.provider.as_deref())?;
    Ok((url, repository))
}

/// The repository at an address.
pub(super) fn repository_at(url: &str, provider: Option<&str>) -> Result<Repository, NotConfigured> {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let provider = provider_of(&host, provider).ok_or(NotConfigured::Provider { host })?;
    Ok(Repository::from_address(url, provider)?)
}

/// The provider of a project's repository and one address for it, however the settings spell it; `None` without a usable
/// one.
///
/// # Errors
/// [`QueryError::Store`].
pub(crate) async fn repository_identity(
    session: &mut Session,
    project: ProjectId,
) -> crate::Result<Option<String>> {
    let settings = edit::repository(session, project).await?;
    let found = settings.and_then(|settings| repository(&settings).ok());
    Ok(found.map(|(_, repository)| format!("{} {}", repository.provider().as_str(), repository.identity())))
}

/// What stands for a repository in the keys of stored answers.
pub(super) fn repository_key(provider: Provider, url: &str) -> String {
    format!("{} {url}", provider.as_str())
}

impl Host {
    /// The code host of a project.
    ///
    /// # Errors
    /// [`SourceControlError::NotConfigured`].
    pub(crate) async fn open(
        ctx: &Context,
        access: &Access<'_>,
        project: Authorized<ProjectId>,
        now: Timestamp,
    ) -> Result<Self, SourceControlError> {
        let project = project.get();
        let mut session = ctx.store.db().read().await?;
        let settings = edit::repository(&mut session, project).await?;
        let settings = settings.ok_or_else(|| QueryError::not_found(Entity::Project, project))?;
        let (url, repository) = repository(&settings)?;
        let token = match settings.sealed_token.as_deref() {
            Some(sealed) => access
                .secrets
                .open(&scm_token_place(project), sealed)
                .map(|token| token.to_string())
                .map_err(|error| match error {
                    SecretUnusable::NotConfigured => SourceControlError::Query(error.into()),
                    _ => NotConfigured::SealedToken.into(),
                })?,
            None => shared_token::open(&mut session, access.secrets, &repository).await?,
        };
        drop(session);
        Ok(Self {
            project,
            url,
            path: repository.path().to_owned(),
            identity: repository.identity().to_owned(),
            provider: repository.provider(),
            default_branch: settings.default_branch.filter(|branch| !branch.is_empty()),
            host: repository.host().to_owned(),
            client: connect(access.client.clone(), repository, &token, now),
        })
    }

    /// The key under which an answer of this repository is stored.
    pub(crate) fn key(&self, kind: &str, question: &impl serde::Serialize) -> crate::Result<String> {
        key(kind, &repository_key(self.provider, &self.url), question)
    }

    /// Asks the code host, unless it said before that it will not answer yet.
    ///
    /// # Errors
    /// [`SourceControlError::Upstream`].
    pub(crate) async fn ask<'h, T, F>(
        &'h self,
        ctx: &Context,
        now: Timestamp,
        question: impl FnOnce(&'h dyn SourceControl) -> F,
    ) -> Result<T, SourceControlError>
    where
        F: Future<Output = Result<T, ScmError>>,
    {
        let key = self.key(RATE_LIMIT, &())?;
        let mut limit: Entry<Timestamp> = Entry::look_up(ctx, self.project, key, now).await?;
        if let Some(until) = limit.take_fresh() {
            return Err(self.failed(ScmError::RateLimited { provider: self.provider, until: Some(until) }));
        }
        let answer = tokio::time::timeout(DEADLINE, question(self.client.as_ref())).await;
        let answer = answer.unwrap_or_else(|_| Err(ScmError::TooSlow { host: self.host.clone() }));
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if let ScmError::RateLimited { until: Some(until), .. } = error {
            let limited_ms = (until.millis() - now.millis()).clamp(0, MAX_LIMIT_MS);
            let freshness = Freshness { fresh_ms: limited_ms, kept_ms: limited_ms };
            limit.store(ctx, until, None, freshness, now).await?;
        }
        Err(self.failed(error))
    }

    /// The code host brought nothing.
    pub(crate) fn failed(&self, error: ScmError) -> SourceControlError {
        SourceControlError::Upstream { provider: self.provider, error }
    }
}
