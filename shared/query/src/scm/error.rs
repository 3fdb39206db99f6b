//! Why source control brought nothing.

use callboard_integrations::scm::{InvalidRepository, Provider, ScmError};
use callboard_store::StoreError;

use crate::QueryError;

/// What is missing before a repository can be read. The text is one sentence
/// for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotConfigured {
    /// The project has no repository.
    #[error(
        "The project has no repository; an administrator can enter its address in the project's settings."
    )]
    Repository,
    /// The address of the repository names none.
    #[error("The repository's address cannot be used: {0}.")]
    Address(#[from] InvalidRepository),
    /// Nobody said what kind of code host it is at.
    #[error("The provider of {host} is not known; an administrator can choose it in the project's settings.")]
    Provider {
        /// Host of the repository.
        host: String,
    },
    /// The project has no token.
    #[error(
        "No access token is stored for the repository; an administrator can save one in the project's settings, or add the repository to the shared token's list."
    )]
    Token,
    /// The project's runs are to say nothing at its code host.
    #[error("Comments and statuses are off; an administrator can switch them on in the project's settings.")]
    Feedback,
    /// The stored token does not open.
    #[error(
        "The stored access token cannot be opened; save it again, or restore its key in SERVICE_SECRET_KEY."
    )]
    SealedToken,
}

impl NotConfigured {
    /// The field of the project that is missing.
    #[must_use]
    pub const fn setting(&self) -> &'static str {
        match self {
            Self::Repository | Self::Address(_) => "repositoryUrl",
            Self::Provider { .. } => "repositoryProvider",
            Self::Token | Self::SealedToken => "scmToken",
            Self::Feedback => "comment",
        }
    }
}

/// Why source control brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum SourceControlError {
    /// Something has to be configured first.
    #[error(transparent)]
    NotConfigured(#[from] NotConfigured),
    /// The code host brought nothing.
    #[error("{error}")]
    Upstream {
        /// Its kind.
        provider: Provider,
        /// Why.
        error: ScmError,
    },
    /// The question itself has no answer.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<StoreError> for SourceControlError {
    fn from(error: StoreError) -> Self {
        Self::Query(error.into())
    }
}
