//! Who is calling. One [`Identity`] per request, made by the
//! [`Authenticator`] and by nothing else.

use callboard_domain::ids::ProjectId;
use http::HeaderMap;

use crate::routes::{Access, Route};
use crate::scope::{Authorized, Denied, Scope};

/// What an account may do. There is no inheritance between roles: a route
/// lists every role it admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything, in all projects.
    Administrator,
    /// Sends results and triages, in assigned projects.
    Reporter,
    /// Reads, in assigned projects.
    User,
}

impl Role {
    /// The spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Administrator => "administrator",
            Self::Reporter => "reporter",
            Self::User => "user",
        }
    }
}

/// How the caller was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Principal {
    /// Authentication is off: everyone is the virtual administrator.
    AuthOff,
}

/// The caller of one request: who, in which role, with which projects.
#[derive(Debug, Clone)]
pub struct Identity {
    principal: Principal,
    scope: Scope,
}

impl Identity {
    /// How the caller was recognised.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The caller's role; `None` for a caller without an account.
    #[must_use]
    pub const fn role(&self) -> Option<Role> {
        match self.principal {
            Principal::AuthOff => Some(Role::Administrator),
        }
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

    /// Checks the caller's role against a route.
    ///
    /// # Errors
    /// [`Denied::AuthenticationRequired`] without a role,
    /// [`Denied::InsufficientRole`] with one the route does not list.
    pub fn admit(&self, route: &Route) -> Result<(), Denied> {
        match route.access {
            Access::Public | Access::Grant => Ok(()),
            Access::Roles(roles) => {
                let role = self.role().ok_or(Denied::AuthenticationRequired)?;
                if roles.contains(role) { Ok(()) } else { Err(Denied::InsufficientRole) }
            }
        }
    }
}

/// Turns the credentials of a request into an [`Identity`]. This version
/// knows one mode, authentication off, in which credentials are not read.
#[derive(Debug, Clone)]
pub struct Authenticator(Mode);

#[derive(Debug, Clone, Copy)]
enum Mode {
    Off,
}

impl Authenticator {
    /// Everyone is the virtual administrator.
    #[must_use]
    pub const fn off() -> Self {
        Self(Mode::Off)
    }

    /// Whether callers have to sign in.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        match self.0 {
            Mode::Off => false,
        }
    }

    /// Recognises the caller of a request to `route`.
    ///
    /// # Errors
    /// [`Denied::AuthenticationRequired`] when a presented credential opens
    /// nothing; never with authentication off.
    pub const fn authenticate(&self, _route: &Route, _headers: &HeaderMap) -> Result<Identity, Denied> {
        match self.0 {
            Mode::Off => Ok(Identity { principal: Principal::AuthOff, scope: Scope::All }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn with_authentication_off_every_route_admits_everyone() {
        let headers = HeaderMap::new();
        for route in ROUTES {
            let identity = Authenticator::off().authenticate(route, &headers).unwrap();
            assert_eq!(identity.admit(route), Ok(()), "{:?}", route.id);
            assert!(identity.authorize(ProjectId(7)).is_ok());
        }
    }
}
