//! Who may do what: the one issuer of identities, scopes and proofs of access.
//!
//! Lives here: the route table, principals and roles, scope and
//! [`scope::Authorized`], the browser gates (Host, Origin) and sealed file
//! grants. All of it is computed from arguments: headers, settings, secrets
//! and the time come in, decisions go out. Must not live here: HTTP answers,
//! extractors, SQL of other aggregates.

pub mod gate;
pub mod grant;
pub mod origin;
pub mod principal;
pub mod routes;
pub mod scope;

pub use grant::{FileGrants, Grant, GrantRefusal, GrantTarget};
pub use origin::{Origin, Scheme};
pub use principal::{Authenticator, Identity, Principal, Role};
pub use routes::{ROUTES, Route, RouteId};
pub use scope::{Authorized, Denied, Scope};
