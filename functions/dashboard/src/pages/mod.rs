//! One module per page: a handler that asks one or two questions, and the
//! inputs of its template.

mod accounts;
mod analytics;
mod cluster;
mod entrance;
mod execution;
mod home;
mod inbox;
mod project;
mod project_table;
mod projects;
mod run;
pub(crate) mod settings;
mod test_case;
mod unknown;

pub(crate) use accounts::{account, audit, user, user_keys, users};
pub(crate) use analytics::analytics;
pub(crate) use cluster::cluster;
pub(crate) use entrance::{in_place, login, reset, setup, unsubscribe, verify};
pub(crate) use execution::execution;
pub(crate) use home::home;
pub(crate) use inbox::inbox;
pub(crate) use project::project;
pub(crate) use projects::projects;
pub(crate) use run::run;
pub(crate) use test_case::test_case;
pub(crate) use unknown::unknown;

/// Formats a run can be exported in, with their names.
pub(crate) const EXPORT_FORMATS: [(&str, &str); 4] =
    [("junit", "JUnit (XML)"), ("ctrf", "CTRF (JSON)"), ("csv", "CSV"), ("ndjson", "NDJSON")];
