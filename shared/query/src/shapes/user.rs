//! Accounts as answers show them. Passwords, hashes and provider ids have no
//! way in here.

use callboard_domain::time::Timestamp;
use callboard_store::accounts::users::UserRow;
use serde::Serialize;
use utoipa::ToSchema;

/// Who an account is, where another entity names it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserRef {
    /// User id.
    #[schema(example = 7)]
    pub id: i64,
    /// Name to sign in with.
    #[schema(example = "ada")]
    pub username: String,
    /// Name to show.
    pub name: Option<String>,
}

impl UserRef {
    /// Shows a stored account.
    #[must_use]
    pub fn from_row(row: &UserRow) -> Self {
        Self { id: row.id.get(), username: row.username.clone(), name: row.name.clone() }
    }
}

/// An account.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// User id.
    #[schema(example = 7)]
    pub id: i64,
    /// Name to sign in with.
    #[schema(example = "ada")]
    pub username: String,
    /// `administrator`, `reporter` or `user`.
    #[schema(example = "reporter")]
    pub role: &'static str,
    /// Name to show.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Whether the address was proven to be this person's.
    pub email_verified: bool,
    /// Address of a picture.
    pub avatar: Option<String>,
    /// The provider the account signs in with, `idp` or `codehost`.
    pub oauth_provider: Option<String>,
    /// Whether the account has a password.
    pub has_password: bool,
    /// Whether the account is kept out.
    pub disabled: bool,
    /// Whether it reaches every project, later ones included; always for administrators.
    pub is_global: bool,
    /// Last noted use of a session.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_seen_at: Option<Timestamp>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl User {
    /// Shows a stored account, with what is kept beside it.
    #[must_use]
    pub fn new(row: &UserRow, is_global: bool, last_seen_at: Option<Timestamp>) -> Self {
        let email = row.email.as_ref();
        Self {
            id: row.id.get(),
            username: row.username.clone(),
            role: row.role.as_str(),
            name: row.name.clone(),
            email: email.map(|email| email.address.clone()),
            email_verified: email.is_some_and(|email| email.verified_at.is_some()),
            avatar: row.avatar.clone(),
            oauth_provider: row.oauth.as_ref().map(|link| link.provider.clone()),
            has_password: !row.password.is_empty(),
            disabled: row.disabled_at.is_some(),
            is_global,
            last_seen_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}
