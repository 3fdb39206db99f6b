//! What a question can be answered with instead of an answer.

use callboard_auth::keys::SealingFailed;
use callboard_auth::scope::Denied;
use callboard_auth::sealed::SecretUnusable;
use callboard_domain::ids::ProjectId;
use callboard_domain::ingest::FieldError;
use callboard_store::StoreError;

use crate::account_refusal::AccountRefusal;
use crate::account_rule::AccountRule;
use crate::administration::AdministrationRule;

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
    /// A user account.
    User,
    /// An API key.
    ApiKey,
    /// A session.
    Session,
    /// An invitation.
    Invitation,
    /// A policy of a gate.
    GatePolicy,
    /// A tag.
    Tag,
    /// A link.
    Link,
    /// A marker.
    Marker,
    /// A function of a suite.
    TestFunction,
    /// A deletion.
    Deletion,
    /// A failure cluster.
    Cluster,
    /// A suggestion that two failure clusters are one.
    Suggestion,
    /// An export.
    Export,
    /// A channel of notifications.
    Channel,
    /// A subscription to notifications.
    Subscription,
    /// A delivery of a notification.
    Delivery,
    /// A notification of a person.
    Notification,
    /// A join of two histories.
    HistoryJoin,
    /// A diagnosis of a failure cluster.
    Diagnosis,
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
            Self::User => "user",
            Self::ApiKey => "api_key",
            Self::Session => "session",
            Self::Invitation => "invitation",
            Self::GatePolicy => "policy",
            Self::Tag => "tag",
            Self::Link => "link",
            Self::Marker => "marker",
            Self::TestFunction => "function",
            Self::Deletion => "deletion",
            Self::Cluster => "cluster",
            Self::Suggestion => "suggestion",
            Self::Export => "export",
            Self::Channel => "channel",
            Self::Subscription => "subscription",
            Self::Delivery => "delivery",
            Self::Notification => "notification",
            Self::HistoryJoin => "history_join",
            Self::Diagnosis => "diagnosis",
        }
    }

    /// The word in the audit log.
    #[must_use]
    pub const fn audit_kind(self) -> &'static str {
        match self {
            Self::GatePolicy => "gate_policy",
            Self::TestFunction => "test_function",
            other => other.word(),
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
            Self::User => "user",
            Self::ApiKey => "API key",
            Self::Session => "session",
            Self::Invitation => "invitation",
            Self::GatePolicy => "policy",
            Self::Tag => "tag",
            Self::Link => "link",
            Self::Marker => "marker",
            Self::TestFunction => "test function",
            Self::Deletion => "deletion",
            Self::Cluster => "failure cluster",
            Self::Suggestion => "suggestion",
            Self::Export => "export",
            Self::Channel => "channel",
            Self::Subscription => "subscription",
            Self::Delivery => "delivery",
            Self::Notification => "notification",
            Self::HistoryJoin => "join",
            Self::Diagnosis => "diagnosis",
        }
    }
}

/// Why a run token opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// None was sent.
    #[error("The token of the run is missing; send the one its start was answered with.")]
    Missing,
    /// It was never minted for this, and for this run.
    #[error("This token was not given out for this call of this run.")]
    Invalid,
    /// Too old.
    #[error("This token has expired; start again for a new one.")]
    Expired,
    /// Taken back, or whoever it was given to may no longer send results.
    #[error("This token was revoked.")]
    Revoked,
}

impl TokenRefusal {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing_token",
            Self::Invalid => "invalid_token",
            Self::Expired => "token_expired",
            Self::Revoked => "token_revoked",
        }
    }
}

/// Why a run takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LifeRefusal {
    /// It ended by its results or by its client.
    #[error("This run has already finished.")]
    Finished,
    /// A person cancelled it.
    #[error("This run was cancelled.")]
    Cancelled,
    /// It goes on, so it cannot be judged.
    #[error("This run has not finished yet. Ask again when it has.")]
    NotFinished,
    /// It is over, so it cannot be cancelled.
    #[error("This run is already over.")]
    AlreadyFinished,
    /// Its set-up cannot be followed by tests any more.
    #[error("This set-up cannot begin any more; start the run instead.")]
    CannotBegin,
}

impl LifeRefusal {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Finished => "run_finished",
            Self::Cancelled => "run_cancelled",
            Self::NotFinished => "run_not_finished",
            Self::AlreadyFinished => "run_already_finished",
            Self::CannotBegin => "begin_not_possible",
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
    /// It is in a project that the caller does not see.
    #[error("{}", Denied::ProjectAccessDenied)]
    OutOfScope {
        /// What was asked for.
        entity: Entity,
        /// Its id.
        id: i64,
        /// The project it is in.
        project: ProjectId,
    },
    /// A field of a submission is missing or wrong.
    #[error("{0}")]
    Field(#[from] FieldError),
    /// Uploaded bytes are not what their hash claims.
    #[error("The bytes of {part} do not match the SHA-256 sent with them; nothing was stored.")]
    HashMismatch {
        /// The part of the upload.
        part: String,
    },
    /// A run token does not open what it was sent for.
    #[error(transparent)]
    Token(#[from] TokenRefusal),
    /// The run is past what was asked.
    #[error(transparent)]
    Life(#[from] LifeRefusal),
    /// The test whose files these are is not stored, or not yet.
    #[error("The run has no such test case yet; send its result first, then its files.")]
    CaseNotFound,
    /// Content that was only named is not stored.
    #[error("The trace is not stored yet; send the file.")]
    BlobMissing,
    /// No upload ticket that still accepts bytes.
    #[error("This upload ticket is unknown or has expired; plan the file again for a new one.")]
    TicketNotFound,
    /// Other bytes arrived under the ticket before.
    #[error("This upload ticket was used for other bytes; plan the file again for a new one.")]
    TicketUsed,
    /// The files of a report are still being written.
    #[error("This report is still being unpacked; ask again in some seconds.")]
    ReportInProgress,
    /// More than a request may hold.
    #[error("{what} holds more than {limit} entries.")]
    TooMany {
        /// The list.
        what: &'static str,
        /// The most it may hold.
        limit: usize,
    },
    /// A rule about accounts stands in the way.
    #[error(transparent)]
    Rule(#[from] AccountRule),
    /// A rule about projects and what is attached to them stands in the way.
    #[error(transparent)]
    Administration(#[from] AdministrationRule),
    /// A secret cannot be kept or used.
    #[error(transparent)]
    Secret(#[from] SecretUnusable),
    /// It concerns an account and is refused.
    #[error(transparent)]
    Account(#[from] AccountRefusal),
    /// Something could not be sealed: no randomness, or a secret is missing.
    #[error(transparent)]
    Sealing(#[from] SealingFailed),
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
