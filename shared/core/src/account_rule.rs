//! Why something is not done with an account although the request is well
//! formed and the caller may.

/// A rule about accounts stands in the way; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountRule {
    /// Another account has the name.
    #[error("Another account has this username; choose another one.")]
    NameTaken,
    /// Another account has the trusted address.
    #[error("Another account has this e-mail address.")]
    EmailTaken,
    /// The address has an invitation that was not accepted yet.
    #[error(
        "This address has an open invitation; POST /api/invitations/{{id}}/resend sends it again, and DELETE takes it back."
    )]
    InvitationOpen,
    /// Nobody would be left who can administrate.
    #[error("This is the last administrator who can sign in; make somebody else an administrator first.")]
    LastAdministrator,
    /// Nobody takes power from themselves.
    #[error("You cannot delete or disable yourself or change your own role; another administrator can.")]
    CannotChangeSelf,
    /// The account has no address to write to.
    #[error("This account has no e-mail address; enter one first.")]
    NoEmail,
    /// The invitation was accepted or taken back, or its account is disabled.
    #[error("This invitation is not open any more.")]
    NotPending,
    /// The account is disabled.
    #[error("This account is disabled; enable it first.")]
    Disabled,
    /// Somebody signed in long ago has to prove who they are.
    #[error(
        "Changing the e-mail address takes the current password, or without one a sign-in within the last 15 minutes."
    )]
    PasswordRequired,
}

impl AccountRule {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NameTaken => "name_taken",
            Self::EmailTaken | Self::InvitationOpen => "email_taken",
            Self::LastAdministrator => "last_administrator",
            Self::CannotChangeSelf => "cannot_change_self",
            Self::NoEmail => "no_email",
            Self::NotPending | Self::Disabled => "not_pending",
            Self::PasswordRequired => "password_required",
        }
    }

    /// Whether the state of the accounts is in the way, and not the request.
    #[must_use]
    pub const fn is_conflict(self) -> bool {
        !matches!(self, Self::CannotChangeSelf | Self::PasswordRequired)
    }
}
