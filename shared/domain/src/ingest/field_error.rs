//! What is wrong with a request's run fields, when it cannot be left out.

use super::warnings::quoted;

/// A required field is missing, or a field has a value that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Required fields did not come.
    #[error("{} required; send {} in the body.", naming(fields), if fields.len() == 1 { "it" } else { "them" })]
    Missing {
        /// Wire names of all of them.
        fields: Vec<&'static str>,
    },
    /// A field has a value that cannot be used and cannot be left out.
    #[error("{field} must be {expected}, got {got}.")]
    Invalid {
        /// Wire name.
        field: &'static str,
        /// What would be right.
        expected: &'static str,
        /// What came, shortened.
        got: String,
    },
    /// The project's name is too long or has characters names cannot have.
    #[error(
        "projectName must be 1 to 255 characters without control characters, got {got}; choose another name."
    )]
    InvalidProjectName {
        /// What came, shortened.
        got: String,
    },
    /// Index and total of the shard do not fit together.
    #[error(
        "shardIndex must be between 1 and shardTotal, and shardTotal at most 1000, got shard {index} of {total}."
    )]
    InvalidShard {
        /// What came as index.
        index: String,
        /// What came as total.
        total: String,
    },
}

fn naming(fields: &[&str]) -> String {
    match fields {
        [only] => format!("{only} is"),
        [front @ .., last] => format!("{} and {last} are", front.join(", ")),
        [] => "A field is".to_owned(),
    }
}

impl FieldError {
    /// The code of the error's answer.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing_field",
            Self::Invalid { .. } => "invalid_field",
            Self::InvalidProjectName { .. } => "invalid_project_name",
            Self::InvalidShard { .. } => "invalid_shard",
        }
    }

    pub(super) fn project_name(got: &str) -> Self {
        Self::InvalidProjectName { got: quoted(got) }
    }
}
