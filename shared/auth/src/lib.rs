//! Who may do what: the one issuer of identities, scopes and proofs of access.
//!
//! Lives here: the route table, principals and roles, scope and
//! [`scope::Authorized`], the browser gates (Host, Origin), keys and what is
//! sealed with them (file grants, cookies, stored secrets), passwords, tokens,
//! client addresses and the classes of limits. All of it is computed from arguments: headers, settings, secrets
//! and the time come in, decisions go out. Must not live here: HTTP answers,
//! extractors, SQL of other aggregates.

pub mod api_key;
pub mod client_address;
pub mod cookies;
pub mod credentials;
pub mod email_address;
pub mod gate;
pub mod grant;
pub mod keys;
pub mod limits;
pub mod oauth;
pub mod origin;
pub mod password;
pub mod password_blocklist;
pub mod principal;
pub mod routes;
pub mod scope;
pub mod sealed;
pub mod session_cookie;
pub mod tick;
pub mod token;
pub mod username;

pub use callboard_domain::account::{KeyPermission, Role};
pub use grant::{FileGrants, Grant, GrantRefusal, GrantTarget, LinkHolder};
pub use origin::{Origin, Scheme};
pub use principal::{Account, AccountFacts, Identity, Principal, SessionProof};
pub use routes::{ROUTES, Route, RouteId};
pub use scope::{Authorized, Denied, Scope};
