//! Why a code host brought nothing.

use callboard_domain::time::Timestamp;

use super::repository::Provider;

/// Why a code host brought nothing. The text is one sentence for people and
/// holds neither the token nor anything the host said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScmError {
    /// The token is wrong, expired or revoked.
    #[error("{} rejected the access token; it may be wrong, expired or revoked.", provider.label())]
    TokenRejected {
        /// Provider.
        provider: Provider,
    },
    /// The repository is not there, or the token does not see it.
    #[error(
        "{} has no repository {repository} that the access token can read; it may have been renamed or deleted.",
        provider.label()
    )]
    RepositoryNotFound {
        /// Provider.
        provider: Provider,
        /// Its path.
        repository: String,
    },
    /// The repository is there, and what was asked for is not in it.
    #[error("The repository {repository} has no {wanted}.")]
    NotInRepository {
        /// Its path.
        repository: String,
        /// What was asked for: `commit 0a1b2c3`, `branch main`.
        wanted: String,
    },
    /// The token may not do this.
    #[error("The access token lacks the permission {permission} on {}.", provider.label())]
    MissingPermission {
        /// Provider.
        provider: Provider,
        /// Permission as the provider calls it.
        permission: String,
    },
    /// There were too many requests.
    #[error("{} limits requests of this access token{}.", provider.label(), until_words(*until))]
    RateLimited {
        /// Provider.
        provider: Provider,
        /// When requests are answered again, where the provider says so.
        until: Option<Timestamp>,
    },
    /// There was no answer.
    #[error("The host {host} could not be reached.")]
    Unreachable {
        /// Host.
        host: String,
    },
    /// There was no answer in time.
    #[error("The host {host} did not answer in time.")]
    TooSlow {
        /// Host.
        host: String,
    },
    /// The host is not one that this service calls.
    #[error(
        "The host {host} is refused: it is not on the open internet or not called with https; SERVICE_EGRESS_ALLOW can allow it."
    )]
    AddressRefused {
        /// Host.
        host: String,
    },
    /// The host redirects to another one, which must not get the token.
    #[error("The host {host} redirects to another address; enter that address as the repository's.")]
    Redirected {
        /// Host.
        host: String,
    },
    /// The answer is larger than what is read.
    #[error("The answer of {} is larger than the {} MB that are read.", provider.label(), limit_bytes / 1_000_000)]
    TooLarge {
        /// Provider.
        provider: Provider,
        /// Bytes that are read.
        limit_bytes: usize,
    },
    /// A comment was not found among those that are read.
    #[error(
        "The request has more than the {searched} comments that are searched, so no second comment is created."
    )]
    TooManyComments {
        /// Comments that are searched.
        searched: u32,
    },
    /// The provider failed.
    #[error("{} answered with status {status}.", provider.label())]
    Failed {
        /// Provider.
        provider: Provider,
        /// HTTP status.
        status: u16,
    },
    /// The answer is not what the provider's API promises.
    #[error("The answer of {host} is not one of the {} API; check address and provider.", provider.label())]
    Unreadable {
        /// Provider.
        provider: Provider,
        /// Host.
        host: String,
    },
}

fn until_words(until: Option<Timestamp>) -> String {
    let Some(until) = until else { return "; try again later".to_owned() };
    let iso = until.to_iso();
    format!(" until {} {} UTC", &iso[..10], &iso[11..16])
}

impl ScmError {
    /// HTTP status of the provider's answer, where one says more than the
    /// sentence.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::TokenRejected { .. } => Some(401),
            Self::RepositoryNotFound { .. } | Self::NotInRepository { .. } => Some(404),
            Self::MissingPermission { .. } => Some(403),
            Self::RateLimited { .. } => Some(429),
            Self::Failed { status, .. } => Some(*status),
            Self::Unreachable { .. }
            | Self::TooSlow { .. }
            | Self::AddressRefused { .. }
            | Self::Redirected { .. }
            | Self::TooLarge { .. }
            | Self::TooManyComments { .. }
            | Self::Unreadable { .. } => None,
        }
    }
}
