//! Why something is not done with a project or what is attached to it,
//! although the request is well formed and the caller may.

/// A rule stands in the way; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdministrationRule {
    /// Another project has the name.
    #[error("Another project has this name; choose another one.")]
    ProjectNameTaken,
    /// Another tag has the word.
    #[error("Another tag has this text; choose another one.")]
    TagTaken,
    /// Another policy of the project has the name.
    #[error("Another policy of this project has this name; choose another one.")]
    PolicyNameTaken,
    /// The module has another function of the name.
    #[error(
        "A function of this name already exists in this module; choose another name, or change that one."
    )]
    FunctionExists,
    /// A gate was asked nothing.
    #[error(
        "There is nothing to judge by: send rules, or the name of a policy; the project has no default one."
    )]
    NoPolicy,
    /// The run is pinned.
    #[error("This run is pinned; unpin it first, or delete it with force=true.")]
    Pinned,
    /// The configuration of the service sets it.
    #[error("{key} is set by {variable}, where the service runs; change it there.")]
    SettingLocked {
        /// The path of the key.
        key: &'static str,
        /// The variable that sets it.
        variable: &'static str,
    },
    /// It was decided before.
    #[error("This has been decided already; nothing was changed.")]
    NotPending,
    /// A deletion was restored before.
    #[error("This deletion was restored already; nothing was changed.")]
    RestoredBefore,
    /// A deletion is being restored at this moment.
    #[error("This deletion is being restored already; wait until it is done.")]
    RestoringAlready,
    /// A deletion has no grace period.
    #[error("This deletion cannot be restored: it took effect immediately.")]
    NeverRestorable,
    /// The grace period of a deletion is over.
    #[error("This deletion can no longer be restored: its grace period is over.")]
    RestoreTooLate,
    /// Runs of a deleted project are to be restored.
    #[error("The project of these runs is deleted; restore the project first.")]
    ProjectIsDeleted,
    /// What was given to confirm a deletion is not the name.
    #[error("Confirm with the exact name of the project; nothing was deleted.")]
    NotConfirmed,
    /// The repository moves to another host, and its token stays.
    #[error(
        "The stored access token belongs to the host of the present repository; send scmToken along with a repositoryUrl on another host."
    )]
    TokenOfAnotherHost,
    /// The list of a shared token moves to another host, and the token stays.
    #[error(
        "The stored access token belongs to the present host; send token along with repositories at another host."
    )]
    SharedTokenOfAnotherHost,
    /// A shared token is to serve several hosts.
    #[error("repositories must all be at one host: the token is sent to no other.")]
    RepositoriesOfSeveralHosts,
    /// The host of the repository is run by another provider.
    #[error("repositoryProvider must be the provider that runs the repository's host; leave it out there.")]
    ProviderOfAnotherHost,
    /// The address of a model changes, and its key stays.
    #[error(
        "The stored API key belongs to the present base address; send {field} along with another baseUrl."
    )]
    ModelKeyOfAnotherAddress {
        /// The field of the key.
        field: &'static str,
    },
    /// The host of the mail server changes, and its password stays.
    #[error("The stored password belongs to the present host; send password along with another host.")]
    MailPasswordOfAnotherHost,
    /// The password of the mail server would cross the network unencrypted.
    #[error(
        "security must be tls or starttls when a password is set; otherwise it would be sent unencrypted."
    )]
    MailPasswordExposed,
    /// A model lacks what it takes to call it.
    #[error("{field} is missing: a model takes a provider, a base address and a name.")]
    ModelIncomplete {
        /// The field.
        field: &'static str,
    },
    /// Diagnoses are switched on without a model.
    #[error("enabled can be true once a model is configured.")]
    NoModel,
    /// The diagnosis has ended.
    #[error("This diagnosis has ended already; nothing was changed.")]
    DiagnosisEnded,
    /// The execution did not fail.
    #[error("This execution did not fail, so there is nothing to diagnose.")]
    NothingFailed,
    /// A delivery is on its way, or has arrived.
    #[error("Only a delivery that failed, is parked or may not have arrived can be sent again.")]
    DeliveryNotFailed,
}

impl AdministrationRule {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::ProjectNameTaken | Self::TagTaken | Self::PolicyNameTaken => "name_taken",
            Self::FunctionExists => "already_exists",
            Self::NoPolicy => "invalid_body",
            Self::Pinned => "in_use",
            Self::SettingLocked { .. } => "setting_locked",
            Self::NotPending | Self::DeliveryNotFailed | Self::DiagnosisEnded => "not_pending",
            Self::NothingFailed => "not_failed",
            Self::RestoredBefore
            | Self::RestoringAlready
            | Self::NeverRestorable
            | Self::RestoreTooLate
            | Self::ProjectIsDeleted => "not_restorable",
            Self::TokenOfAnotherHost
            | Self::SharedTokenOfAnotherHost
            | Self::ModelKeyOfAnotherAddress { .. }
            | Self::MailPasswordOfAnotherHost
            | Self::ModelIncomplete { .. } => "missing_field",
            Self::MailPasswordExposed
            | Self::NotConfirmed
            | Self::ProviderOfAnotherHost
            | Self::RepositoriesOfSeveralHosts
            | Self::NoModel => "invalid_field",
        }
    }

    /// Whether what is stored is in the way, and not the request.
    #[must_use]
    pub const fn is_conflict(self) -> bool {
        !matches!(
            self,
            Self::NotConfirmed
                | Self::NoPolicy
                | Self::TokenOfAnotherHost
                | Self::SharedTokenOfAnotherHost
                | Self::RepositoriesOfSeveralHosts
                | Self::ProviderOfAnotherHost
                | Self::ModelKeyOfAnotherAddress { .. }
                | Self::MailPasswordOfAnotherHost
                | Self::MailPasswordExposed
                | Self::ModelIncomplete { .. }
                | Self::NoModel
        )
    }
}
