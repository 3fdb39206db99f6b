//! Why a tool call fails, as the sentence its caller reads. Every one names
//! what was wrong and what to do next; none names another project, a
//! statement or a path. Only the dispatcher turns them into `isError`.

use std::error::Error;

use callboard_auth::Role;
use callboard_auth::routes::Roles;
use callboard_query::limits::LimitError;
use callboard_query::{Entity, QueryError};

use crate::arguments::ArgumentError;

/// Why a tool call fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The caller's role may not.
    #[error("This action requires the {} role (yours: {}).", either(*needed), yours.map_or("none", Role::as_str))]
    Role {
        /// Roles that may.
        needed: Roles,
        /// The caller's.
        yours: Option<Role>,
    },
    /// A write over a connection that asked for reads only.
    #[error(
        "This connection is read-only (`?readonly=1`); remove that parameter to call a tool that writes."
    )]
    ReadOnly,
    /// A write in demo mode.
    #[error("{}", callboard_http::error::DEMO_REFUSAL)]
    Demo,
    /// An argument is missing or wrong.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Nothing has this id.
    #[error("{} {id} not found.{}", capitalised(noun(*entity)), next_step(*entity))]
    NotFound {
        /// Kind.
        entity: Entity,
        /// Id asked for.
        id: String,
    },
    /// The project is not among the caller's.
    #[error("{}", no_access(*entity, id))]
    NoAccess {
        /// Kind.
        entity: Entity,
        /// Id asked for.
        id: String,
    },
    /// The key may not write.
    #[error(
        "This API key only reads; its permission was narrowed when it was created. Call with a key whose permission \
         is full."
    )]
    KeyReads,
    /// The key reaches some projects, and the answer tells of all.
    #[error(
        "This API key was narrowed to some projects when it was created; this tool tells of all of them. Call with a \
         key that was not."
    )]
    KeyNarrowed,
    /// Refused for a reason of its own, which is a whole sentence for the
    /// caller.
    #[error("{0}")]
    Refused(String),
    /// Something has to be configured first.
    #[error("{what} Configure it at {page}")]
    NotConfigured {
        /// What is missing, as a sentence.
        what: String,
        /// Address of the settings page.
        page: String,
    },
    /// A request to a code host failed.
    #[error("{what} It is configured at {page}")]
    Upstream {
        /// Why, as a sentence.
        what: String,
        /// Address of the settings page.
        page: String,
    },
    /// Come back later.
    #[error("{what} Try again in {seconds} seconds.")]
    Busy {
        /// Why, as a sentence.
        what: String,
        /// Whole seconds to wait.
        seconds: i64,
    },
    /// Our fault; the text for the caller is made where the reference is known.
    #[error(transparent)]
    Fault(Box<dyn Error + Send + Sync>),
}

impl ToolError {
    /// Our fault.
    pub(crate) fn fault(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Fault(cause.into())
    }

    /// A failed question about the entity `id`.
    pub(crate) fn about(entity: Entity, id: impl ToString, error: QueryError) -> Self {
        match error {
            QueryError::Denied(_) | QueryError::OutOfScope { .. } => {
                Self::NoAccess { entity, id: id.to_string() }
            }
            other => other.into(),
        }
    }
}

impl From<LimitError> for ToolError {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::Limited { retry_after_seconds } => Self::Busy {
                what: "There were too many of these calls.".to_owned(),
                seconds: retry_after_seconds,
            },
            LimitError::Store(store) => Self::fault(store),
        }
    }
}

impl From<QueryError> for ToolError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::NotFound { entity, id } => Self::NotFound { entity, id },
            QueryError::Store(_) | QueryError::Sealing(_) => Self::fault(error),
            // These are written for callers.
            refusal => Self::Refused(refusal.to_string()),
        }
    }
}

fn no_access(entity: Entity, id: &str) -> String {
    match entity {
        Entity::Project => format!("No access to project {id}."),
        other => format!("No access to {} {id}: its project is not assigned to you.", noun(other)),
    }
}

/// What tools call a kind: arguments say `clusterId`.
const fn noun(entity: Entity) -> &'static str {
    match entity {
        Entity::Cluster => "cluster",
        other => other.noun(),
    }
}

/// The tool that finds ids of a kind, as the end of a sentence; nothing for
/// accounts, which no tool shows.
const fn next_step(entity: Entity) -> &'static str {
    match entity {
        Entity::Project => " list_projects finds one.",
        Entity::Run => " list_recent_activity or list_runs finds one.",
        Entity::TestCase => " search_test_cases finds one.",
        Entity::Execution | Entity::File => " get_run or list_failed_cases finds one.",
        Entity::Diagnosis => " get_cluster_diagnosis finds one.",
        Entity::Cluster => " list_open_clusters or list_clusters finds one.",
        _ => "",
    }
}

/// Roles as a sentence names them, the least powerful first.
fn either(roles: Roles) -> String {
    let names: Vec<&str> = roles.as_slice().iter().rev().map(|role| role.as_str()).collect();
    names.join(" or ")
}

fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_says_what_to_do() {
        let role = ToolError::Role { needed: Roles::REPORTING, yours: Some(Role::User) };
        assert_eq!(
            role.to_string(),
            "This action requires the reporter or administrator role (yours: user)."
        );
        let missing = ToolError::from(QueryError::not_found(Entity::TestCase, 7));
        assert_eq!(missing.to_string(), "Test case 7 not found. search_test_cases finds one.");
        let denied = |entity, id| {
            let denied = QueryError::Denied(callboard_auth::Denied::ProjectAccessDenied);
            ToolError::about(entity, id, denied).to_string()
        };
        assert_eq!(denied(Entity::Project, 7), "No access to project 7.");
        assert_eq!(denied(Entity::Run, 123), "No access to run 123: its project is not assigned to you.");
    }
}
