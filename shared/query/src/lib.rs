//! Questions and commands over the stored data: what REST, MCP and pages
//! share, so that all three give the same numbers.
//!
//! A function here is a verb on a noun. It takes the narrowest proof of access
//! it needs ([`Scope`](callboard_auth::scope::Scope) for lists,
//! [`Authorized`](callboard_auth::scope::Authorized) for one project), and
//! returns a named, serialisable value. Must not live here: HTTP, JSON-RPC,
//! HTML, the environment.

pub mod accounts;
pub mod audit;
mod change;
mod context;
pub mod daily;
mod error;
mod evidence;
pub mod executions;
pub mod feeds;
pub mod files;
pub mod ingest;
pub mod limits;
pub mod page;
pub mod project_names;
pub mod projects;
pub mod resolve;
pub mod runs;
pub mod shapes;
pub mod test_cases;

pub use change::Change;
pub use context::{Context, Links};
pub use error::{Entity, LifeRefusal, QueryError, Result, TokenRefusal};
