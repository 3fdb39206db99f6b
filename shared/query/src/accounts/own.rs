//! The caller's own account, as signing in and `me` show it.

use callboard_auth::{Identity, Principal, Role};
use callboard_store::Store;
use callboard_store::accounts::users::{self, UserRow};
use callboard_store::boxed;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Result;

/// The account of whoever asks.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnAccount {
    /// Null for the virtual administrator, who has no account.
    pub id: Option<i64>,
    /// Name to sign in with.
    #[schema(example = "ada")]
    pub username: String,
    /// Name to show.
    pub name: Option<String>,
    /// `administrator`, `reporter` or `user`.
    #[schema(example = "reporter")]
    pub role: &'static str,
    /// E-mail address.
    pub email: Option<String>,
    /// Whether the address was proven to be this person's.
    pub email_verified: bool,
    /// Address of a picture.
    pub avatar: Option<String>,
    /// The provider the account is linked to, `idp` or `codehost`.
    pub oauth_provider: Option<String>,
    /// Whether the account has a password.
    pub has_password: bool,
}

impl OwnAccount {
    /// Shows a stored account.
    #[must_use]
    pub fn from_row(row: &UserRow) -> Self {
        let email = row.email.as_ref();
        Self {
            id: Some(row.id.get()),
            username: row.username.clone(),
            name: row.name.clone(),
            role: row.role.as_str(),
            email: email.map(|email| email.address.clone()),
            email_verified: email.is_some_and(|email| email.verified_at.is_some()),
            avatar: row.avatar.clone(),
            oauth_provider: row.oauth.as_ref().map(|link| link.provider.clone()),
            has_password: !row.password.is_empty(),
        }
    }

    /// Everyone, while authentication is off.
    #[must_use]
    pub fn virtual_administrator() -> Self {
        Self {
            id: None,
            username: "administrator".to_owned(),
            name: Some("Administrator".to_owned()),
            role: Role::Administrator.as_str(),
            email: None,
            email_verified: false,
            avatar: None,
            oauth_provider: None,
            has_password: false,
        }
    }
}

/// The account of a caller; none for nobody in particular.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn load(store: &Store, caller: &Identity) -> Result<Option<OwnAccount>> {
    if matches!(caller.principal(), Principal::AuthOff) {
        return Ok(Some(OwnAccount::virtual_administrator()));
    }
    let Some(user) = caller.user_id() else { return Ok(None) };
    let row = users::get(&mut store.db().read().await?, user).await?;
    Ok(row.as_ref().map(OwnAccount::from_row))
}
