//! The mail of an invitation: what is enqueued with it, and what the worker
//! asks before it writes one.

use callboard_domain::ids::{InvitationId, UserId};
use callboard_store::Store;
use callboard_store::accounts::invitations::{self, InvitationRow};
use callboard_store::accounts::users;
use callboard_store::boxed;
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The mail of an invitation. Its token is made by the worker, so that none
/// stands in a queue.
#[derive(Debug, Serialize, Deserialize)]
pub struct InviteMail {
    /// The invitation.
    pub invitation: i64,
}

impl Payload for InviteMail {
    const KIND: &'static str = "mail_invite";
}

/// What the mail of an invitation says.
#[derive(Debug, Clone)]
pub struct DueMail {
    /// The account.
    pub user: UserId,
    /// Its name to sign in with.
    pub username: String,
    /// Where the mail goes.
    pub address: String,
    /// Who invites.
    pub invited_by: Option<String>,
}

/// The mail of an invitation that is still open, for an account that is not
/// disabled.
///
/// # Errors
/// [`crate::QueryError::Store`] when the database does not answer.
#[boxed]
pub async fn due_mail(store: &Store, id: InvitationId) -> Result<Option<DueMail>> {
    let mut session = store.db().read().await?;
    let found = invitations::get(&mut session, id).await?;
    let Some(invitation) = found.filter(InvitationRow::is_open) else { return Ok(None) };
    let user = users::get(&mut session, invitation.user).await?;
    let Some(user) = user.filter(|user| user.disabled_at.is_none()) else { return Ok(None) };
    let inviting = match invitation.invited_by {
        Some(inviting) => users::get(&mut session, inviting).await?,
        None => None,
    };
    Ok(Some(DueMail {
        user: user.id,
        username: user.username,
        address: invitation.email,
        invited_by: inviting.map(|inviting| inviting.name.unwrap_or(inviting.username)),
    }))
}
