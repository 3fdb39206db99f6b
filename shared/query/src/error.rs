//! What a question can be answered with instead of an answer.

use callboard_auth::scope::Denied;
use callboard_domain::ingest::FieldError;
use callboard_store::StoreError;

/// Result of a question or command.
pub type Result<T, E = QueryError> = std::result::Result<T, E>;

/// A kind of thing that may not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entity {
    /// A project.
    Project,
    /// A run.
    Run,
    /// A test case.
    TestCase,
    /// An execution.
    Execution,
    /// A file or report.
    File,
}

impl Entity {
    /// The word in error codes: `<word>_not_found`, `invalid_<word>_id`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Run => "run",
            Self::TestCase => "test_case",
            Self::Execution => "execution",
            Self::File => "file",
        }
    }

    /// The word in sentences.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Run => "run",
            Self::TestCase => "test case",
            Self::Execution => "execution",
            Self::File => "file",
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// Nothing has this id.
    #[error("There is no {} {id}.", entity.noun())]
    NotFound {
        /// Kind.
        entity: Entity,
        /// The id or name asked for.
        id: String,
    },
    /// The caller may not.
    #[error("{0}")]
    Denied(#[from] Denied),
    /// A field of a submission is missing or wrong.
    #[error("{0}")]
    Field(#[from] FieldError),
    /// Uploaded bytes are not what their hash claims.
    #[error("The bytes of {part} do not match the SHA-256 sent with them; nothing was stored.")]
    HashMismatch {
        /// The part of the upload.
        part: String,
    },
    /// More than a request may hold.
    #[error("{what} holds more than {limit} entries.")]
    TooMany {
        /// The list.
        what: &'static str,
        /// The most it may hold.
        limit: usize,
    },
    /// The database or the object store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueryError {
    /// Nothing has this id.
    #[must_use]
    pub fn not_found(entity: Entity, id: impl ToString) -> Self {
        Self::NotFound { entity, id: id.to_string() }
    }
}
