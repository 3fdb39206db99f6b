//! Signing in at a provider: what is decided about it without talking to
//! anybody. The transaction cookie, the allowlists, and what of a provider's
//! answer counts.

mod allowlist;
mod profile;
mod transaction;

pub use allowlist::{Allowlist, domain_of};
pub use profile::{Profile, primary_email};
pub use transaction::{Link, OauthTransaction};

/// The providers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// An identity provider that speaks OpenID Connect.
    Idp,
    /// A host of source code.
    Codehost,
}

impl Provider {
    /// Every provider, in the order of the buttons.
    pub const ALL: [Self; 2] = [Self::Idp, Self::Codehost];

    /// The name in addresses and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idp => "idp",
            Self::Codehost => "codehost",
        }
    }

    /// Reads the name of [`Provider::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == text)
    }
}

/// Why a sign-in at a provider ends without a session. The code travels in
/// the address of the page that explains it; nothing a provider said does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OauthRefusal {
    /// Nobody has to sign in here.
    #[error("Authentication is off; there is nothing to sign in to.")]
    AuthDisabled,
    /// Nobody signs in at a provider in demo mode.
    #[error("This is a demo: signing in through a provider is not available.")]
    DemoMode,
    /// Not a provider, or not a configured one.
    #[error("This sign-in method is not configured.")]
    InvalidProvider,
    /// The person or the provider said no, or the account is disabled.
    #[error("The sign-in was cancelled or is not allowed.")]
    AccessDenied,
    /// The sign-in was not begun in this browser, or too long ago.
    #[error("The sign-in took too long or was not begun in this browser; please try again.")]
    InvalidState,
    /// The provider sent no code.
    #[error("The provider's answer was incomplete; please try again.")]
    MissingCode,
    /// The address is not of an allowed domain.
    #[error("Your e-mail domain may not sign in here.")]
    DomainNotAllowed,
    /// The person is in none of the allowed organisations.
    #[error("You are not a member of an organisation that may sign in here.")]
    OrganisationNotAllowed,
    /// The address belongs to an account that signs in another way.
    #[error(
        "An account with this e-mail address is already linked to a different sign-in method. Sign in as you did before, or ask an administrator."
    )]
    AccountExists,
    /// The provider account is linked to another account.
    #[error("This provider account is already linked to another user.")]
    AlreadyLinked,
    /// Linking takes a person who is signed in.
    #[error("Sign in first, then connect the provider on your account page.")]
    LinkRequiresLogin,
    /// Linking takes a recent sign-in.
    #[error("Please sign in again before you connect a provider.")]
    ReauthenticationRequired,
    /// The first account is made another way.
    #[error("The first administrator has to be created before anybody can sign in.")]
    SetupRequired,
    /// Something between us and the provider failed.
    #[error("The sign-in did not work; please try again.")]
    Failed,
}

impl OauthRefusal {
    /// Every refusal.
    pub const ALL: [Self; 14] = [
        Self::AuthDisabled,
        Self::DemoMode,
        Self::InvalidProvider,
        Self::AccessDenied,
        Self::InvalidState,
        Self::MissingCode,
        Self::DomainNotAllowed,
        Self::OrganisationNotAllowed,
        Self::AccountExists,
        Self::AlreadyLinked,
        Self::LinkRequiresLogin,
        Self::ReauthenticationRequired,
        Self::SetupRequired,
        Self::Failed,
    ];

    /// The code in addresses.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::AuthDisabled => "auth-disabled",
            Self::DemoMode => "demo-mode",
            Self::InvalidProvider => "invalid-provider",
            Self::AccessDenied => "access-denied",
            Self::InvalidState => "invalid-state",
            Self::MissingCode => "missing-code",
            Self::DomainNotAllowed => "domain-not-allowed",
            Self::OrganisationNotAllowed => "org-not-allowed",
            Self::AccountExists => "account-exists",
            Self::AlreadyLinked => "already-linked",
            Self::LinkRequiresLogin => "link-requires-login",
            Self::ReauthenticationRequired => "reauth-required",
            Self::SetupRequired => "setup-required",
            Self::Failed => "oauth-failed",
        }
    }

    /// Reads a code of [`OauthRefusal::code`].
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_read_back() {
        assert!(
            OauthRefusal::ALL.iter().all(|refusal| OauthRefusal::parse(refusal.code()) == Some(*refusal))
        );
        assert!(Provider::ALL.iter().all(|provider| Provider::parse(provider.as_str()) == Some(*provider)));
        assert_eq!(Provider::parse("IDP"), None);
    }
}
