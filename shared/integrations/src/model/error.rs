//! Why a model brought no answer.

use callboard_domain::time::Timestamp;

/// Why a model brought no answer. The text is one sentence for people and holds
/// neither the key nor anything the endpoint said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The key is wrong, expired or lacks a permission.
    #[error("{host} rejected the API key; it may be wrong, expired or not allowed to use this model.")]
    KeyRejected {
        /// Host.
        host: String,
    },
    /// There is no such model, or no such API.
    #[error("{host} does not know the model {model}, or its API is not at this base address.")]
    ModelUnknown {
        /// Host.
        host: String,
        /// Model.
        model: String,
    },
    /// There were too many requests, or the quota is used up.
    #[error("{host} limits requests of this key{}.", until_words(*until))]
    RateLimited {
        /// Host.
        host: String,
        /// When requests are answered again, where the endpoint says so.
        until: Option<Timestamp>,
    },
    /// There was no answer.
    #[error("The host {host} could not be reached.")]
    Unreachable {
        /// Host.
        host: String,
    },
    /// There was no answer in time.
    #[error("The host {host} did not answer within {seconds} s.")]
    TooSlow {
        /// Host.
        host: String,
        /// The limit.
        seconds: u64,
    },
    /// The host is not one that this service calls.
    #[error(
        "The host {host} is refused: it is not on the open internet or not called with https; SERVICE_EGRESS_ALLOW can allow it."
    )]
    AddressRefused {
        /// Host.
        host: String,
    },
    /// The host redirects to another one, which must not get the key.
    #[error("The host {host} redirects to another address; enter that address as the base address.")]
    Redirected {
        /// Host.
        host: String,
    },
    /// The answer is larger than what is read.
    #[error("The answer of {host} is larger than the {} MB that are read.", limit_bytes / 1_000_000)]
    TooLarge {
        /// Host.
        host: String,
        /// Bytes that are read.
        limit_bytes: usize,
    },
    /// The request itself is refused, mostly because it is too long for the model.
    #[error(
        "{host} refused the request with status {status}; the evidence may be longer than the model accepts."
    )]
    RequestRefused {
        /// Host.
        host: String,
        /// HTTP status.
        status: u16,
    },
    /// The endpoint failed.
    #[error("{host} answered with status {status}.")]
    Failed {
        /// Host.
        host: String,
        /// HTTP status.
        status: u16,
    },
    /// The answer is not what the API promises.
    #[error("The answer of {host} is not JSON of this API; check base address and provider.")]
    Unreadable {
        /// Host.
        host: String,
    },
    /// The model stopped before it was done.
    #[error("The model stopped before its answer was complete.")]
    CutOff,
    /// The model gave no text: it refused, or wanted to call a tool that it was
    /// not offered.
    #[error("The model gave no answer to the question.")]
    NoAnswer,
}

fn until_words(until: Option<Timestamp>) -> String {
    let Some(until) = until else { return "; try again later".to_owned() };
    let iso = until.to_iso();
    format!(" until {} {} UTC", &iso[..10], &iso[11..16])
}

impl ModelError {
    /// HTTP status of the endpoint's answer, where one says more than the
    /// sentence.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::KeyRejected { .. } => Some(401),
            Self::ModelUnknown { .. } => Some(404),
            Self::RateLimited { .. } => Some(429),
            Self::RequestRefused { status, .. } | Self::Failed { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The word that is stored with a diagnosis.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::KeyRejected { .. } => "key_rejected",
            Self::ModelUnknown { .. } => "model_unknown",
            Self::RateLimited { .. } => "rate_limited",
            Self::Unreachable { .. } => "unreachable",
            Self::TooSlow { .. } => "too_slow",
            Self::AddressRefused { .. } => "address_refused",
            Self::Redirected { .. } => "redirected",
            Self::TooLarge { .. } => "answer_too_large",
            Self::RequestRefused { .. } => "request_refused",
            Self::Failed { .. } => "endpoint_failed",
            Self::Unreadable { .. } => "answer_unreadable",
            Self::CutOff => "answer_cut_off",
            Self::NoAnswer => "no_answer",
        }
    }

    /// Whether the same request may succeed shortly after, and when.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Unreachable { .. } => true,
            Self::Failed { status, .. } => *status >= 500,
            _ => false,
        }
    }
}
