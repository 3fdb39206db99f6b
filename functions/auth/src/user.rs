//! A user as answers show one.

use callboard_auth::{Identity, Principal, Role};
use serde::Serialize;
use utoipa::ToSchema;

/// A user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublicUser {
    /// Null for the virtual administrator, who has no account.
    id: Option<i64>,
    /// Name to sign in with.
    #[schema(example = "administrator")]
    username: String,
    /// Name to show.
    name: Option<String>,
    /// `administrator`, `reporter` or `user`.
    #[schema(example = "administrator")]
    role: &'static str,
    /// E-mail address.
    email: Option<String>,
    /// Address of a picture.
    avatar: Option<String>,
}

impl PublicUser {
    /// The caller.
    pub(crate) fn of(identity: &Identity) -> Option<Self> {
        match identity.principal() {
            Principal::AuthOff => Some(Self::virtual_administrator()),
            _ => None,
        }
    }

    /// Everyone, while authentication is off.
    pub(crate) fn virtual_administrator() -> Self {
        Self {
            id: None,
            username: "administrator".to_owned(),
            name: Some("Administrator".to_owned()),
            role: Role::Administrator.as_str(),
            email: None,
            avatar: None,
        }
    }
}
