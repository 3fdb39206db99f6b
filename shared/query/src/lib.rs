//! Questions and commands over the stored data: what REST, MCP and pages
//! share, so that all three give the same numbers.
//!
//! A function here is a verb on a noun. It takes the narrowest proof of access
//! it needs ([`Scope`](callboard_auth::scope::Scope) for lists,
//! [`Authorized`](callboard_auth::scope::Authorized) for one project), and
//! returns a named, serialisable value. Must not live here: HTTP, JSON-RPC,
//! HTML, the environment.
//!
//! Public asynchronous functions are [`boxed`](callboard_store::boxed): several
//! surfaces ask the same question, and its code is made once. Commands that take
//! an [`Acting`](accounts::Acting) are not, as the macro does not see its lifetime,
//! and mostly one surface has them; nor is what is generic, which would be made
//! anew all the same.

pub mod accounts;
pub mod analytics;
pub mod audit;
pub mod badges;
pub mod baseline;
pub mod clusters;
pub mod comparison;
pub mod daily;
pub mod deletions;
pub mod diagnoses;
pub mod events;
mod evidence;
pub mod evidence_loss;
pub mod executions;
pub mod exports;
pub mod failures;
pub mod feedback;
pub mod feeds;
pub mod files;
pub mod flakiness;
pub mod gates;
pub mod grid;
pub mod histories;
pub mod insights;
pub mod limits;
pub mod links;
pub mod mail_settings;
pub mod markers;
pub mod network;
pub mod notifications;
pub mod owners;
pub mod page;
pub mod performance;
pub mod project_editing;
pub mod project_names;
pub mod projects;
pub mod quarantine;
pub mod resolve;
pub mod retention;
pub mod run_attempts;
pub mod run_editing;
pub mod run_errors;
pub mod run_views;
pub mod runs;
pub mod scm;
pub mod search;
pub mod settings;
pub mod shapes;
pub mod slower;
pub mod storage;
pub mod storage_quota;
pub mod tags;
pub mod test_cases;
pub mod test_functions;
pub mod timeouts;

pub use callboard_core::{
    Change, Entity, LifeRefusal, Links, QueryError, Result, TokenRefusal, administration,
};
pub use callboard_ingest::Context;
