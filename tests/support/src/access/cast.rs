//! Who asks: accounts of every role and reach, with the sessions and keys they
//! ask with, alive and dead.

use anyhow::{Context, Result};
use callboard_auth::api_key;
use callboard_auth::cookies::{CookieForm, SealedCookies};
use callboard_auth::keys::Secrets;
use callboard_auth::session_cookie::SessionClaims;
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::Store;
use callboard_store::accounts::api_keys::{self, NewKey};
use callboard_store::accounts::assignments;
use callboard_store::accounts::sessions::{self, NewSession};
use callboard_store::accounts::users::{self, UserRow};
use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};

use super::Holding;

/// The secret of the services these accounts belong to.
pub const AUTH_SECRET: &str = "d41d8cd98f00b204e9800998ecf8427e0c5f3a11";

/// How a caller proves who they are.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Who, for messages.
    pub name: String,
    /// The header, if any.
    pub(super) header: Option<(HeaderName, HeaderValue)>,
    /// What the service should know about them.
    pub(super) standing: Standing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Standing {
    Nobody,
    DeadKey,
    Account { user: UserId, role: Role, sees: Sees, key: Option<KeyPermission>, is_narrowed: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sees {
    Everything,
    First,
    Nothing,
}

/// Accounts over two projects.
#[derive(Debug)]
pub struct Cast {
    /// Everybody.
    pub callers: Vec<Credential>,
    pub(super) first: Holding,
    pub(super) second: Holding,
    /// An account that belongs to nobody who calls.
    pub(super) bystander: UserId,
}

impl Cast {
    /// Creates the accounts, straight in the store.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn assemble(store: &Store, now: Timestamp, first: Holding, second: Holding) -> Result<Self> {
        let mut maker = Maker { store, now, cookies: SealedCookies::new(&Secrets::new(&[AUTH_SECRET])) };
        let mine = ProjectId(first.project);
        let admin = maker.user("admin", Role::Administrator, &[]).await?;
        let reporter = maker.user("reporter of all", Role::Reporter, &[None]).await?;
        let reporter_of_first = maker.user("reporter of one", Role::Reporter, &[Some(mine)]).await?;
        let user_of_first = maker.user("user of one", Role::User, &[Some(mine)]).await?;
        let newcomer = maker.user("newcomer", Role::User, &[]).await?;
        let bystander = maker.user("bystander", Role::User, &[]).await?;

        let mut callers =
            vec![Credential { name: "nobody".to_owned(), header: None, standing: Standing::Nobody }];
        for (user, role, sees) in [
            (admin, Role::Administrator, Sees::Everything),
            (reporter, Role::Reporter, Sees::Everything),
            (reporter_of_first, Role::Reporter, Sees::First),
            (user_of_first, Role::User, Sees::First),
            (newcomer, Role::User, Sees::Nothing),
        ] {
            let account = |key| Standing::Account { user: user.0, role, sees, key, is_narrowed: false };
            callers.push(maker.session(&user, account(None)).await?);
            callers.push(
                maker
                    .key(&user, KeyPermission::Full, Life::Alive, account(Some(KeyPermission::Full)))
                    .await?,
            );
        }
        for permission in [KeyPermission::Ingest, KeyPermission::Read, KeyPermission::Metrics] {
            let standing = Standing::Account {
                user: reporter_of_first.0,
                role: Role::Reporter,
                sees: Sees::First,
                key: Some(permission),
                is_narrowed: false,
            };
            callers.push(maker.key(&reporter_of_first, permission, Life::Alive, standing).await?);
        }
        for (user, role) in [(admin, Role::Administrator), (reporter, Role::Reporter)] {
            let standing = Standing::Account {
                user: user.0,
                role,
                sees: Sees::First,
                key: Some(KeyPermission::Full),
                is_narrowed: true,
            };
            callers.push(maker.narrowed_key(&user, mine, standing).await?);
        }
        for life in [Life::Expired, Life::Revoked] {
            callers.push(maker.key(&admin, KeyPermission::Full, life, Standing::DeadKey).await?);
        }
        let leaver = maker.user("leaver", Role::Administrator, &[]).await?;
        callers.push(maker.session(&leaver, Standing::Nobody).await?);
        callers.push(maker.key(&leaver, KeyPermission::Full, Life::Alive, Standing::DeadKey).await?);
        maker.disable(&leaver).await?;
        Ok(Self { callers, first, second, bystander: bystander.0 })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Alive,
    Expired,
    Revoked,
}

struct Maker<'s> {
    store: &'s Store,
    now: Timestamp,
    cookies: SealedCookies,
}

type Known = (UserId, &'static str);

impl Maker<'_> {
    async fn user(
        &mut self,
        name: &'static str,
        role: Role,
        projects: &[Option<ProjectId>],
    ) -> Result<Known> {
        let mut session = self.store.db().begin().await?;
        let id = users::new_id(&mut session).await?;
        let user = UserRow {
            id,
            username: name.to_owned(),
            username_key: name.to_owned(),
            password: String::new(),
            role,
            name: None,
            email: None,
            avatar: None,
            oauth: None,
            session_epoch: 0,
            disabled_at: None,
            created_at: self.now,
            updated_at: self.now,
        };
        users::insert(&mut session, &user).await?;
        for project in projects {
            assignments::add(&mut session, id, *project, None, self.now).await?;
        }
        session.commit().await?;
        Ok((id, name))
    }

    async fn session(&mut self, (user, name): &Known, standing: Standing) -> Result<Credential> {
        let claims = SessionClaims::start(*user, 0, self.now)?;
        let new = NewSession {
            sid_hash: claims.sid_hash(),
            user: *user,
            epoch: 0,
            auth_at: self.now,
            created_at: self.now,
            expires_at: claims.expires_at,
            method: "password",
            ip_hash: None,
            user_agent: None,
        };
        let mut session = self.store.db().begin().await?;
        sessions::insert(&mut session, &new).await?;
        session.commit().await?;
        let set = self.cookies.set(&claims, CookieForm::Plain)?;
        let pair = set.to_str()?.split(';').next().context("a cookie without a value")?.to_owned();
        // A service behind TLS reads the name with the prefix.
        let secure = self.cookies.set(&claims, CookieForm::Secure)?;
        let secure = secure.to_str()?.split(';').next().context("a cookie without a value")?.to_owned();
        let header = Some((COOKIE, HeaderValue::from_str(&format!("{pair}; {secure}"))?));
        Ok(Credential { name: format!("{name} (session)"), header, standing })
    }

    /// A key, sent in a header of its own, that reaches one project of all.
    async fn narrowed_key(
        &mut self,
        (user, name): &Known,
        project: ProjectId,
        standing: Standing,
    ) -> Result<Credential> {
        let fresh = api_key::mint()?;
        let new = NewKey {
            user: *user,
            name: "a narrow key".to_owned(),
            key_hash: fresh.hash,
            key_prefix: fresh.shown.clone(),
            permission: KeyPermission::Full,
            projects: Some(vec![project]),
            parent: None,
            created_by: *user,
            created_at: self.now,
            expires_at: None,
        };
        let mut session = self.store.db().begin().await?;
        api_keys::insert(&mut session, &new).await?;
        session.commit().await?;
        let header = Some((HeaderName::from_static("x-api-key"), HeaderValue::from_str(&fresh.text)?));
        Ok(Credential { name: format!("{name} (narrowed key)"), header, standing })
    }

    async fn disable(&mut self, (user, _): &Known) -> Result<()> {
        let mut session = self.store.db().begin().await?;
        let mut row = users::lock(&mut session, *user).await?.context("no such account")?;
        row.disabled_at = Some(self.now);
        users::save(&mut session, &row).await?;
        Ok(session.commit().await?)
    }

    async fn key(
        &mut self,
        (user, name): &Known,
        permission: KeyPermission,
        life: Life,
        standing: Standing,
    ) -> Result<Credential> {
        let fresh = api_key::mint()?;
        let new = NewKey {
            user: *user,
            name: "a key".to_owned(),
            key_hash: fresh.hash,
            key_prefix: fresh.shown.clone(),
            permission,
            projects: None,
            parent: None,
            created_by: *user,
            created_at: self.now,
            expires_at: (life == Life::Expired).then_some(Timestamp(self.now.millis() - 1000)),
        };
        let mut session = self.store.db().begin().await?;
        let id = api_keys::insert(&mut session, &new).await?;
        if life == Life::Revoked {
            api_keys::revoke(&mut session, id, self.now).await?;
        }
        session.commit().await?;
        let header = Some((AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", fresh.text))?));
        Ok(Credential { name: format!("{name} ({} key, {life:?})", permission.as_str()), header, standing })
    }
}
