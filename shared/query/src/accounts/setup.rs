//! The first administrator: made by whoever comes first to an installation
//! without accounts.

use callboard_auth::password::{PasswordRemark, PasswordRules};
use callboard_auth::username::{judge_username, username_key};
use callboard_domain::account::Role;
use callboard_domain::audit::AuditAction;
use callboard_domain::time::Timestamp;
use callboard_store::Store;
pub use callboard_store::accounts::users::SetupState;
use callboard_store::accounts::users::{self, Saved, UserRow};
use callboard_store::boxed;
use serde_json::Map;

use super::refusal::AccountRefusal;
use super::sign_in::{SignedIn, begin_session, by_subject};
use super::visitor::Visitor;
use crate::Result;

/// The first administrator as they introduce themselves.
#[derive(Debug, Clone)]
pub struct FirstAdministrator {
    /// Name to sign in with.
    pub username: String,
    /// Name to show.
    pub name: Option<String>,
}

impl FirstAdministrator {
    /// Judges the name and the password before anything is hashed.
    ///
    /// # Errors
    /// [`AccountRefusal::Field`].
    pub fn judge(
        &self,
        password: &str,
        rules: &PasswordRules,
    ) -> Result<Option<PasswordRemark>, AccountRefusal> {
        judge_username(&self.username).map_err(|refused| AccountRefusal::field("username", refused))?;
        rules.judge(password).map_err(|refused| AccountRefusal::field("password", refused))
    }
}

/// How far the first set-up has come.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn state(store: &Store) -> Result<SetupState> {
    Ok(users::setup_state(&mut store.db().read().await?).await?)
}

/// Whether the first administrator is still to be made.
///
/// # Errors
/// As [`state`].
pub async fn is_needed(store: &Store) -> Result<bool> {
    Ok(state(store).await? == SetupState::Needed)
}

/// Makes the first administrator and signs them in. Of any number of callers
/// at the same time exactly one succeeds.
///
/// # Errors
/// [`AccountRefusal::SetupUnavailable`] once there is an account or somebody
/// else was first; [`crate::QueryError::Store`].
#[boxed]
pub async fn create(
    store: &Store,
    first: &FirstAdministrator,
    password_hash: String,
    visitor: &Visitor,
    now: Timestamp,
) -> Result<SignedIn> {
    let mut session = store.db().begin().await?;
    if !users::claim_setup(&mut session, now).await? {
        return Err(AccountRefusal::SetupUnavailable.into());
    }
    let user = UserRow {
        id: users::new_id(&mut session).await?,
        username: first.username.clone(),
        username_key: username_key(&first.username),
        password: password_hash,
        role: Role::Administrator,
        name: first.name.clone(),
        email: None,
        avatar: None,
        oauth: None,
        session_epoch: 0,
        disabled_at: None,
        created_at: now,
        updated_at: now,
    };
    if users::insert(&mut session, &user).await? != Saved::Done {
        return Err(AccountRefusal::SetupUnavailable.into());
    }
    let claims = begin_session(&mut session, &user, "setup", visitor, now).await?;
    let noted = by_subject(visitor, user.id)
        .note(&mut session, AuditAction::Setup, Some(user.id), Map::new(), now)
        .await?;
    session.commit().await?;
    noted.committed();
    Ok(SignedIn { user, claims })
}
