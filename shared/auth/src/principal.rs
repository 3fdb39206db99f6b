//! Who is calling: one [`Identity`] for each request, made here and nowhere
//! else, out of what the store knows about the credential that was presented.

use std::sync::Arc;

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ApiKeyId, ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::grant::LinkHolder;
use crate::routes::{Access, Method, ProjectSource, Roles, Route};
use crate::scope::{Authorized, Denied, Entered, Scope};

/// How the caller was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Principal {
    /// Authentication is off: everyone is the virtual administrator.
    AuthOff,
    /// Nobody in particular.
    Anonymous,
    /// A person who signed in.
    Session(SessionProof),
    /// A program with a key of an account.
    ApiKey {
        /// The key.
        key: ApiKeyId,
        /// What the key may be used for.
        permission: KeyPermission,
        /// Whether it is narrowed to some of its owner's projects.
        is_narrowed: bool,
    },
}

/// The session a person acts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionProof {
    /// SHA-256 of the session's id: the key of its row.
    pub sid_hash: [u8; 32],
    /// The account's epoch.
    pub epoch: i64,
    /// When the person last proved who they are.
    pub auth_at: Timestamp,
}

/// The account behind a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The account.
    pub user: UserId,
    /// Name to sign in with.
    pub username: Arc<str>,
    /// Role.
    pub role: Role,
    /// Its epoch: sessions and file links of another one are dead.
    pub epoch: i64,
}

/// What the store knows about an account that presented a credential.
#[derive(Debug, Clone)]
pub struct AccountFacts {
    /// The account.
    pub account: Account,
    /// Whether every project is assigned to it.
    pub all_projects: bool,
    /// Projects assigned one by one.
    pub projects: Vec<ProjectId>,
}

impl AccountFacts {
    pub(crate) fn scope(&self) -> Scope {
        if self.account.role == Role::Administrator || self.all_projects {
            Scope::all()
        } else {
            Scope::new(self.projects.iter().copied())
        }
    }
}

/// The caller of one request: who, in which role, with which projects.
#[derive(Debug, Clone)]
pub struct Identity {
    principal: Principal,
    account: Option<Account>,
    scope: Scope,
}

impl Identity {
    /// Everyone, while authentication is off.
    #[must_use]
    pub fn auth_off() -> Self {
        Self { principal: Principal::AuthOff, account: None, scope: Scope::all() }
    }

    /// Nobody in particular: no role, no project.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { principal: Principal::Anonymous, account: None, scope: Scope::new([]) }
    }

    /// A person who signed in.
    #[must_use]
    pub fn signed_in(facts: AccountFacts, session: SessionProof) -> Self {
        Self { scope: facts.scope(), account: Some(facts.account), principal: Principal::Session(session) }
    }

    /// A program with a key, which reaches what its owner reaches, or the
    /// part of that the key is narrowed to.
    #[must_use]
    pub fn with_key(
        facts: AccountFacts,
        key: ApiKeyId,
        permission: KeyPermission,
        narrowed_to: Option<Vec<ProjectId>>,
    ) -> Self {
        let is_narrowed = narrowed_to.is_some();
        let scope = match narrowed_to {
            Some(projects) => facts.scope().narrowed_to(projects),
            None => facts.scope(),
        };
        Self {
            scope,
            account: Some(facts.account),
            principal: Principal::ApiKey { key, permission, is_narrowed },
        }
    }

    /// How the caller was recognised.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The caller's account; none for the virtual administrator.
    #[must_use]
    pub const fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// The id of the caller's account.
    #[must_use]
    pub fn user_id(&self) -> Option<UserId> {
        self.account.as_ref().map(|account| account.user)
    }

    /// Whom file links are made for when the caller asks for them.
    #[must_use]
    pub fn link_holder(&self) -> Option<LinkHolder> {
        let key = self.key_id();
        self.account.as_ref().map(|account| LinkHolder { user: account.user, epoch: account.epoch, key })
    }

    /// The key the caller acts with.
    #[must_use]
    pub const fn key_id(&self) -> Option<ApiKeyId> {
        match self.principal {
            Principal::ApiKey { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The session the caller acts with.
    #[must_use]
    pub const fn session(&self) -> Option<&SessionProof> {
        match &self.principal {
            Principal::Session(session) => Some(session),
            _ => None,
        }
    }

    /// The caller's role; none for a caller without an account.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self.principal {
            Principal::AuthOff => Some(Role::Administrator),
            _ => self.account.as_ref().map(|account| account.role),
        }
    }

    /// Whether the caller may do everything.
    #[must_use]
    pub fn is_administrator(&self) -> bool {
        self.role() == Some(Role::Administrator)
    }

    /// Whether the credential reaches as far as its owner: not so a key that is
    /// narrowed to some projects.
    #[must_use]
    pub const fn reaches_everything(&self) -> bool {
        !matches!(self.principal, Principal::ApiKey { is_narrowed: true, .. })
    }

    /// Whether the credential reads what people look at: not so a key that was
    /// made to send results or to be asked for metrics.
    #[must_use]
    pub const fn reads(&self) -> bool {
        !matches!(
            self.principal,
            Principal::ApiKey { permission: KeyPermission::Ingest | KeyPermission::Metrics, .. }
        )
    }

    /// Whether the caller may change what is stored about results: a
    /// reporter or administrator, with a key only when it is not narrowed to
    /// reading.
    #[must_use]
    pub fn may_triage(&self) -> bool {
        let by_role = matches!(self.role(), Some(Role::Administrator | Role::Reporter));
        let by_key = match self.principal {
            Principal::ApiKey { permission, .. } => permission == KeyPermission::Full,
            _ => true,
        };
        by_role && by_key
    }

    /// The projects the caller sees. Lists, searches and counts apply it in
    /// SQL.
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Proof that the caller may touch a project.
    ///
    /// # Errors
    /// [`Denied::ProjectAccessDenied`] when it is not among the caller's.
    pub fn authorize(&self, project: ProjectId) -> Result<Authorized<ProjectId>, Denied> {
        self.scope.authorize(project)
    }

    /// Proof that the caller may act on an account: their own, or any for an
    /// administrator. Accounts are not within some projects, so a key that is
    /// narrowed to those leads to its owner's account only.
    ///
    /// # Errors
    /// [`Denied::InsufficientRole`] for an account of somebody else, and
    /// [`Denied::KeyScopeDenied`] when it is the key that does not reach it.
    pub fn authorize_account(&self, user: UserId) -> Result<Authorized<UserId>, Denied> {
        match (self.user_id() == Some(user), self.is_administrator(), self.reaches_everything()) {
            (false, false, _) => Err(Denied::InsufficientRole),
            (false, true, false) => Err(Denied::KeyScopeDenied),
            (true, ..) | (false, true, true) => {
                self.scope.note(|entered| entered.accounts.insert(user));
                Ok(Authorized::grant(user))
            }
        }
    }

    /// Whether the caller may see which accounts there are: an administrator,
    /// with a key only when it is not narrowed to some projects.
    #[must_use]
    pub fn sees_accounts(&self) -> bool {
        self.is_administrator() && self.reaches_everything()
    }

    /// Fails unless the caller may still enter what an earlier request of
    /// theirs was let into.
    ///
    /// # Errors
    /// As [`Identity::authorize`] and [`Identity::authorize_account`].
    pub fn may_enter_again(&self, entered: &Entered) -> Result<(), Denied> {
        entered.projects.iter().try_for_each(|project| self.authorize(*project).map(drop))?;
        entered.accounts.iter().try_for_each(|user| self.authorize_account(*user).map(drop))
    }

    /// A name for the credential: what limits count and repeated requests are
    /// recognised by.
    #[must_use]
    pub fn credential(&self) -> String {
        match (&self.principal, &self.account) {
            (Principal::ApiKey { key, .. }, _) => format!("key:{key}"),
            (_, Some(account)) => format!("user:{}", account.user),
            (Principal::AuthOff, None) => "everyone".to_owned(),
            (_, None) => "anonymous".to_owned(),
        }
    }

    /// Checks the caller against a route.
    ///
    /// # Errors
    /// [`Denied::AuthenticationRequired`] without a role,
    /// [`Denied::InsufficientRole`] with one the route does not list,
    /// [`Denied::SessionRequired`] with a key where a person has to be signed
    /// in, [`Denied::KeyScopeDenied`] for what the key is not meant for.
    pub fn admit(&self, route: &Route) -> Result<(), Denied> {
        match route.access {
            Access::Roles(roles) => self.admit_role(route, roles),
            Access::RolesOrRunToken(roles) if self.role().is_some() => self.admit_role(route, roles),
            // What opens these is not an account: nothing, or a secret the handler looks at.
            _ => Ok(()),
        }
    }

    /// Whether an account may call a route that a secret in its body opens too, when there is none.
    ///
    /// # Errors
    /// As [`Identity::admit`].
    pub fn admit_account(&self, route: &Route) -> Result<(), Denied> {
        match route.access {
            Access::BodyTokenOrRoles(roles) => self.admit_role(route, roles),
            _ => self.admit(route),
        }
    }

    fn admit_role(&self, route: &Route, roles: Roles) -> Result<(), Denied> {
        let role = self.role().ok_or(Denied::AuthenticationRequired)?;
        if !roles.contains(role) {
            return Err(Denied::InsufficientRole);
        }
        let Principal::ApiKey { permission, is_narrowed, .. } = self.principal else { return Ok(()) };
        if route.session_only {
            return Err(Denied::SessionRequired);
        }
        let is_meant_for_it = match permission {
            KeyPermission::Full => true,
            KeyPermission::Ingest => route.ingest,
            // The MCP endpoint answers questions by POST; its tools that change something ask `may_triage`.
            KeyPermission::Read => route.method == Method::Get || !route.mutates,
            KeyPermission::Metrics => false,
        };
        // What administrators alone do to the whole installation is not within some projects.
        let is_instance_wide = route.project == ProjectSource::None && !roles.contains(Role::Reporter);
        if is_meant_for_it && !(is_narrowed && is_instance_wide) {
            Ok(())
        } else {
            Err(Denied::KeyScopeDenied)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{ROUTES, RouteId};

    fn facts(role: Role, projects: &[i64]) -> AccountFacts {
        AccountFacts {
            account: Account { user: UserId(5), username: "ada".into(), role, epoch: 1 },
            all_projects: false,
            projects: projects.iter().map(|id| ProjectId(*id)).collect(),
        }
    }

    fn key(role: Role, permission: KeyPermission) -> Identity {
        Identity::with_key(facts(role, &[1]), ApiKeyId(9), permission, None)
    }

    #[test]
    fn with_authentication_off_every_route_admits_everyone() {
        for route in ROUTES {
            assert_eq!(Identity::auth_off().admit(route), Ok(()), "{:?}", route.id);
        }
        assert!(Identity::auth_off().authorize(ProjectId(7)).is_ok());
    }

    #[test]
    fn a_caller_without_an_account_has_nothing() {
        let nobody = Identity::anonymous();
        assert_eq!(nobody.admit(RouteId::GetProject.route()), Err(Denied::AuthenticationRequired));
        assert_eq!(nobody.admit(RouteId::Health.route()), Ok(()));
        assert_eq!(nobody.authorize(ProjectId(1)), Err(Denied::ProjectAccessDenied));
    }

    #[test]
    fn administrators_reach_every_project_and_others_theirs() {
        let session = SessionProof { sid_hash: [0; 32], epoch: 1, auth_at: Timestamp(0) };
        let admin = Identity::signed_in(facts(Role::Administrator, &[]), session.clone());
        assert!(admin.authorize(ProjectId(2)).is_ok() && admin.scope().may_create_projects());
        let reporter = Identity::signed_in(facts(Role::Reporter, &[1]), session);
        assert!(reporter.authorize(ProjectId(1)).is_ok());
        assert_eq!(reporter.authorize(ProjectId(2)), Err(Denied::ProjectAccessDenied));
        assert!(reporter.authorize_account(UserId(5)).is_ok());
        assert_eq!(reporter.authorize_account(UserId(6)), Err(Denied::InsufficientRole));
    }

    #[test]
    fn a_key_does_what_it_is_meant_for_and_no_more_than_its_owner() {
        let submit = RouteId::SubmitRun.route();
        let read = RouteId::GetProject.route();
        assert_eq!(key(Role::User, KeyPermission::Full).admit(submit), Err(Denied::InsufficientRole));
        assert_eq!(key(Role::Reporter, KeyPermission::Ingest).admit(submit), Ok(()));
        assert_eq!(key(Role::Reporter, KeyPermission::Ingest).admit(read), Err(Denied::KeyScopeDenied));
        assert_eq!(key(Role::Reporter, KeyPermission::Read).admit(read), Ok(()));
        assert_eq!(key(Role::Reporter, KeyPermission::Read).admit(submit), Err(Denied::KeyScopeDenied));
        assert!(!key(Role::Reporter, KeyPermission::Read).may_triage());
        assert_eq!(key(Role::Administrator, KeyPermission::Metrics).admit(read), Err(Denied::KeyScopeDenied));
        let narrowed = Identity::with_key(
            facts(Role::Administrator, &[]),
            ApiKeyId(9),
            KeyPermission::Full,
            Some(vec![ProjectId(3)]),
        );
        assert!(narrowed.authorize(ProjectId(3)).is_ok());
        assert_eq!(narrowed.authorize(ProjectId(4)), Err(Denied::ProjectAccessDenied));
    }
}
