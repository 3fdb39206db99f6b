//! Why signing in, or changing what one signs in with, is refused. Rules that
//! other accounts make are in `rule.rs`.

/// A refusal about credentials and the account they belong to. What a stranger
/// is told does not depend on whether an account exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountRefusal {
    /// Name and password open nothing, for whatever reason.
    #[error("The username or the password is wrong.")]
    InvalidCredentials,
    /// The present password that was given is not the account's.
    #[error("The current password is wrong.")]
    WrongCurrentPassword,
    /// The sign-in is too long ago for this.
    #[error("You signed in too long ago for this; sign in again.")]
    ReauthenticationRequired,
    /// Mail cannot be sent.
    #[error("This service sends no mail; an administrator has to configure it.")]
    SmtpNotConfigured,
    /// Nobody signs in.
    #[error("Authentication is off: there is nothing to sign in to.")]
    AuthDisabled,
    /// There is an account already.
    #[error("The first administrator exists already; sign in instead.")]
    SetupUnavailable,
    /// A mailed token opens nothing.
    #[error("This link is not valid any more; ask for a new one.")]
    InvalidOrExpiredToken,
    /// The account has no address to write to.
    #[error("This account has no e-mail address.")]
    NoAddress,
    /// A field cannot be used.
    #[error("{message}")]
    Field {
        /// Its name on the wire.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
}

impl AccountRefusal {
    /// A field cannot be used, for this reason.
    pub fn field(field: &'static str, reason: impl ToString) -> Self {
        Self::Field { field, message: reason.to_string() }
    }

    /// The error code on the wire.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidCredentials | Self::WrongCurrentPassword => "invalid_credentials",
            Self::ReauthenticationRequired => "reauthentication_required",
            Self::SmtpNotConfigured => "smtp_not_configured",
            Self::AuthDisabled => "auth_disabled",
            Self::SetupUnavailable => "setup_unavailable",
            Self::InvalidOrExpiredToken => "invalid_or_expired_token",
            Self::NoAddress => "no_email",
            Self::Field { .. } => "invalid_field",
        }
    }
}
