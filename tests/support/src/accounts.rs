//! A service on which people sign in, and quick ways to be one of them:
//! accounts, sessions and keys straight in the store. Only what a test is
//! about goes through the front.

use anyhow::{Context, Result};
use callboard_auth::cookies::CookieForm;
use callboard_auth::session_cookie::SessionClaims;
use callboard_auth::{api_key, username};
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_query::accounts::sign_in::begin_session;
use callboard_query::accounts::visitor::Visitor;
use callboard_store::Backend;
use callboard_store::accounts::api_keys::{self, NewKey};
use callboard_store::accounts::assignments;
use callboard_store::accounts::users::{self, Email, EmailSource, Saved, UserRow};

use crate::access::AUTH_SECRET;
use crate::{Client, Service, Settings, TestDatabase};

/// The password of every account that has one.
pub const PASSWORD: &str = "correct horse battery staple";
/// Its hash with the parameters of new ones.
pub const PASSWORD_HASH: &str =
    "$scrypt$ln=15,r=8,p=3$AAECAwQFBgcICQoLDA0ODw$ZwXboEbK+6uo3pibyojgA4zgNULQwM2WqPlWpy+G7mc";
/// Its hash with the cheapest parameters that are accepted, for tests that
/// check many wrong ones.
pub const CHEAP_PASSWORD_HASH: &str =
    "$scrypt$ln=14,r=8,p=1$AAECAwQFBgcICQoLDA0ODw$11kKyiyYAc8G7rp3KmncMc44YlkdllIqxOa7pq0fMaU";

/// The settings that make callers sign in.
#[must_use]
pub fn secured_settings() -> Settings {
    [("SERVICE_AUTH_ENABLED", "true"), ("SERVICE_AUTH_SECRET", AUTH_SECRET)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

impl Service {
    /// Starts a service that asks who is calling, on a fresh database.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn secured(backend: Backend) -> Result<Self> {
        Self::over(TestDatabase::fresh(backend).await?, &secured_settings()).await
    }

    /// Creates an account that has [`PASSWORD`] and reaches no project.
    ///
    /// # Errors
    /// When the name is taken or the store refuses.
    pub async fn account(&self, name: &str, role: Role) -> Result<UserId> {
        self.account_with(name, role, |_| {}).await
    }

    /// Creates an account after a change to its row.
    ///
    /// # Errors
    /// As [`Service::account`].
    pub async fn account_with(
        &self,
        name: &str,
        role: Role,
        change: impl FnOnce(&mut UserRow),
    ) -> Result<UserId> {
        let mut session = self.state().store().db().begin().await?;
        let now = self.state().now();
        let id = users::new_id(&mut session).await?;
        let mut user = UserRow {
            id,
            username: name.to_owned(),
            username_key: username::username_key(name),
            password: PASSWORD_HASH.to_owned(),
            role,
            name: None,
            email: None,
            avatar: None,
            oauth: None,
            session_epoch: 0,
            disabled_at: None,
            created_at: now,
            updated_at: now,
        };
        change(&mut user);
        let saved = users::insert(&mut session, &user).await?;
        anyhow::ensure!(saved == Saved::Done, "the account {name} cannot be made: {saved:?}");
        session.commit().await?;
        Ok(id)
    }

    /// Assigns a project to an account, or with `None` all of them.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn assign(&self, user: UserId, project: Option<ProjectId>) -> Result<()> {
        let mut session = self.state().store().db().begin().await?;
        assignments::add(&mut session, user, project, None, self.state().now()).await?;
        Ok(session.commit().await?)
    }

    /// A browser in which an account is signed in.
    ///
    /// # Errors
    /// When there is no such account or the store refuses.
    pub async fn browser_of(&self, user: UserId) -> Result<Client> {
        let claims = self.session_of(user).await?;
        let cookie = self.state().cookies().set(&claims, CookieForm::Plain)?;
        let browser = self.client().browser();
        browser.keep_cookie(cookie.to_str()?);
        Ok(browser)
    }

    async fn session_of(&self, user: UserId) -> Result<SessionClaims> {
        let mut session = self.state().store().db().begin().await?;
        let row = users::get(&mut session, user).await?.context("no such account")?;
        let visitor = Visitor::default();
        let claims = begin_session(&mut session, &row, "password", &visitor, self.state().now()).await?;
        session.commit().await?;
        Ok(claims)
    }

    /// A program with an API key of an account.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn program_of(&self, user: UserId, permission: KeyPermission) -> Result<Client> {
        self.program_with(user, |key| key.permission = permission).await
    }

    /// A program with an API key of an account, after a change to the key.
    ///
    /// # Errors
    /// As [`Service::program_of`].
    pub async fn program_with(&self, user: UserId, change: impl FnOnce(&mut NewKey)) -> Result<Client> {
        let fresh = api_key::mint()?;
        let mut new = NewKey {
            user,
            name: "a key".to_owned(),
            key_hash: fresh.hash,
            key_prefix: fresh.shown.clone(),
            permission: KeyPermission::Full,
            projects: None,
            parent: None,
            created_by: user,
            created_at: self.state().now(),
            expires_at: None,
        };
        change(&mut new);
        let mut session = self.state().store().db().begin().await?;
        api_keys::insert(&mut session, &new).await?;
        session.commit().await?;
        self.client().with_header("authorization", &format!("Bearer {}", fresh.text))
    }
}

/// A trusted address, for [`Service::account_with`].
#[must_use]
pub fn trusted(address: &str) -> Option<Email> {
    Some(Email { address: address.to_owned(), source: EmailSource::Admin, verified_at: None })
}

/// Runs a test against a fresh service on each engine that asks who is
/// calling.
///
/// # Panics
/// As [`crate::for_each_service`].
pub async fn for_each_secured_service<F>(test: F)
where
    F: AsyncFn(&Service),
{
    crate::databases::for_each_backend(async |backend| match Service::secured(backend).await {
        Ok(service) => test(&service).await,
        Err(error) => panic!("no service to test: {error:#}"),
    })
    .await;
}
