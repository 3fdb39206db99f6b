//! Which projects a caller reaches. [`Scope`] and [`Authorized`] can be passed
//! on anywhere, but made only in this crate: a query that demands one cannot be
//! called without a decision.
//!
//! A scope remembers what it let its request into. An answer that is kept and
//! given again is bound to that: who has lost it since gets nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use callboard_domain::ids::{ProjectId, UserId};

/// The projects of a caller. Clones share what they remember.
#[derive(Debug, Clone)]
pub struct Scope {
    /// These projects, possibly none; every one, later ones included, when there is no list.
    reach: Option<Arc<BTreeSet<ProjectId>>>,
    entered: Arc<Mutex<Entered>>,
}

/// What a request was let into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entered {
    /// Projects.
    pub projects: BTreeSet<ProjectId>,
    /// Accounts.
    pub accounts: BTreeSet<UserId>,
}

impl Scope {
    /// Every project, later ones included.
    pub(crate) fn all() -> Self {
        Self { reach: None, entered: Arc::default() }
    }

    /// These projects; possibly none.
    pub(crate) fn new(projects: impl IntoIterator<Item = ProjectId>) -> Self {
        Self { reach: Some(Arc::new(projects.into_iter().collect())), entered: Arc::default() }
    }

    /// `None` when all projects are in reach, else the list to put into SQL.
    #[must_use]
    pub fn projects(&self) -> Option<Vec<ProjectId>> {
        self.reach.as_ref().map(|projects| projects.iter().copied().collect())
    }

    /// Whether a project is in reach.
    #[must_use]
    pub fn contains(&self, project: ProjectId) -> bool {
        self.reach.as_ref().is_none_or(|projects| projects.contains(&project))
    }

    /// Proof that a project is in reach.
    ///
    /// # Errors
    /// [`Denied::ProjectAccessDenied`] when it is not.
    pub fn authorize(&self, project: ProjectId) -> Result<Authorized<ProjectId>, Denied> {
        if !self.contains(project) {
            return Err(Denied::ProjectAccessDenied);
        }
        self.note(|entered| entered.projects.insert(project));
        Ok(Authorized(project))
    }

    /// Whether a first submission may create a project: that takes access to
    /// projects that do not exist yet.
    #[must_use]
    pub const fn may_create_projects(&self) -> bool {
        self.reach.is_none()
    }

    /// The part of this scope that lies in `projects`. Narrowing never adds
    /// reach.
    #[must_use]
    pub fn narrowed_to(&self, projects: impl IntoIterator<Item = ProjectId>) -> Self {
        Self::new(projects.into_iter().filter(|project| self.contains(*project)))
    }

    /// What this scope let its request into until now.
    #[must_use]
    pub fn entered(&self) -> Entered {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, what: impl FnOnce(&mut Entered) -> bool) {
        what(&mut self.entered.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A value whose project was found within the caller's scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authorized<T>(T);

impl<T: Copy> Authorized<T> {
    /// The value.
    #[must_use]
    pub const fn get(&self) -> T {
        self.0
    }
}

impl Authorized<ProjectId> {
    /// The access of a job: whoever enqueued it had it, and the job answers
    /// nobody. Handlers of requests never call this.
    #[must_use]
    pub const fn of_job(project: ProjectId) -> Self {
        Self(project)
    }

    /// The access of whoever holds the secret of a badge: its handler answers
    /// the badge and nothing else of the project.
    #[must_use]
    pub const fn of_badge(project: ProjectId) -> Self {
        Self(project)
    }
}

impl<T> Authorized<T> {
    pub(crate) const fn grant(value: T) -> Self {
        Self(value)
    }
}

/// Why a caller is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No credential, or none that opens anything.
    #[error("You have to sign in, or to send an API key.")]
    AuthenticationRequired,
    /// An API key was presented and it opens nothing.
    #[error("This API key is not valid: it is malformed, unknown, revoked or expired.")]
    InvalidApiKey,
    /// The route does not list the caller's role.
    #[error("Your role does not allow this.")]
    InsufficientRole,
    /// A key was used where a person has to be signed in.
    #[error("This takes a person who is signed in; an API key does not do.")]
    SessionRequired,
    /// The key is narrowed to something else.
    #[error(
        "This API key is not meant for this; its permission or its projects were narrowed when it was created."
    )]
    KeyScopeDenied,
    /// The project is not among the caller's.
    #[error("You have no access to this project.")]
    ProjectAccessDenied,
    /// The project does not exist yet and the caller may not create one.
    #[error("You have no access to this project, and only a caller with access to all projects creates one.")]
    ProjectCreationForbidden,
}

impl Denied {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::AuthenticationRequired => "authentication_required",
            Self::InvalidApiKey => "invalid_api_key",
            Self::InsufficientRole => "insufficient_role",
            Self::SessionRequired => "session_required",
            Self::KeyScopeDenied => "key_scope_denied",
            Self::ProjectAccessDenied => "project_access_denied",
            Self::ProjectCreationForbidden => "project_creation_forbidden",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrowing_never_adds_reach() {
        let some = Scope::all().narrowed_to([ProjectId(1), ProjectId(2)]);
        assert!(some.authorize(ProjectId(2)).is_ok());
        assert_eq!(some.authorize(ProjectId(3)), Err(Denied::ProjectAccessDenied));
        let fewer = some.narrowed_to([ProjectId(2), ProjectId(3)]);
        assert_eq!(fewer.projects(), Some(vec![ProjectId(2)]));
        assert!(!fewer.may_create_projects());
        assert_eq!(Scope::all().projects(), None);
    }

    #[test]
    fn a_scope_remembers_what_it_let_its_request_into() {
        let scope = Scope::new([ProjectId(1), ProjectId(2)]);
        let passed_on = scope.clone();
        assert!(passed_on.authorize(ProjectId(2)).is_ok() && passed_on.authorize(ProjectId(3)).is_err());
        assert_eq!(scope.entered().projects, BTreeSet::from([ProjectId(2)]));
        assert!(Scope::new([ProjectId(2)]).entered().projects.is_empty());
    }
}
