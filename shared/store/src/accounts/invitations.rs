//! Invitations: who was asked to join, as what. An invitation belongs to an
//! account that exists already and that nobody can sign in to yet; its token
//! is kept with the other tokens of that account.

use callboard_domain::account::Role;
use callboard_domain::ids::{InvitationId, ProjectId, UserId};
use callboard_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// The projects an invitation promises.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvitedScope {
    /// All projects, later ones included.
    pub is_global: bool,
    /// Projects named one by one.
    pub project_ids: Vec<ProjectId>,
}

/// An invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationRow {
    /// Id.
    pub id: InvitationId,
    /// The account it is for.
    pub user: UserId,
    /// Where it was sent.
    pub email: String,
    /// The role it promises.
    pub role: Role,
    /// The projects it promises.
    pub scope: InvitedScope,
    /// Who invited.
    pub invited_by: Option<UserId>,
    /// When.
    pub created_at: Timestamp,
    /// When its token stops.
    pub expires_at: Timestamp,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// When it was taken back, or a newer one took its place.
    pub revoked_at: Option<Timestamp>,
}

impl InvitationRow {
    /// Whether it waits for an answer; its token may have expired.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.accepted_at.is_none() && self.revoked_at.is_none()
    }
}

macro_rules! select_invitation {
    ($tail:literal) => {
        concat!(
            "SELECT id, user_id, email, role, scope, invited_by, created_at, expires_at, accepted_at, revoked_at \
             FROM invitations ",
            $tail
        )
    };
}

statements! {
    /// A new invitation.
    INSERT = "INSERT INTO invitations (id, user_id, email, role, scope, invited_by, created_at, expires_at) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    /// One invitation.
    BY_ID = select_invitation!("WHERE id = $1");
    /// One invitation, held until the end of the transaction.
    LOCK = select_invitation!("WHERE id = $1 for_update()");
    /// Invitations, newest first. ix: invitations_by_time
    LIST = select_invitation!("WHERE (created_at, id) < ($1, $2) AND ($4 = 0 OR (accepted_at IS NULL AND revoked_at IS NULL)) ORDER BY created_at DESC, id DESC LIMIT $3");
    /// How many open invitations there are, up to so many. Bounded by the limit and by those that are over
    COUNT_OPEN = "SELECT COUNT(*) FROM (SELECT 1 FROM invitations WHERE accepted_at IS NULL AND revoked_at IS NULL LIMIT $1) counted";
    /// Sends an open invitation again: to which address, and until when.
    RENEW = "UPDATE invitations SET email = $2, expires_at = $3 WHERE id = $1 AND accepted_at IS NULL AND revoked_at IS NULL";
    /// Takes an open invitation back.
    REVOKE = "UPDATE invitations SET revoked_at = $2 WHERE id = $1 AND accepted_at IS NULL AND revoked_at IS NULL";
    /// Takes the open invitations of an account back. ix: invitations_of_user
    REVOKE_OF = "UPDATE invitations SET revoked_at = $2 WHERE user_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL";
    /// Whether an account has an open invitation. ix: invitations_of_user
    OPEN_UNTIL = "SELECT expires_at FROM invitations WHERE user_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL \
        ORDER BY expires_at DESC LIMIT 1";
    /// Notes that the open invitation of an account was accepted. ix: invitations_of_user
    ACCEPT_OF = "UPDATE invitations SET accepted_at = $2 WHERE user_id = $1 AND accepted_at IS NULL AND revoked_at IS NULL";
}

fn read(row: &Row) -> Result<InvitationRow> {
    let mut r = row.reader();
    Ok(InvitationRow {
        id: InvitationId(r.int()?),
        user: UserId(r.int()?),
        email: r.text()?,
        role: Role::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown role"))?,
        scope: serde_json::from_str(&r.text()?)
            .map_err(|_| StoreError::Damaged("the projects of an invitation are not a list"))?,
        invited_by: r.opt_int()?.map(UserId),
        created_at: r.time()?,
        expires_at: r.time()?,
        accepted_at: r.opt_time()?,
        revoked_at: r.opt_time()?,
    })
}

/// Takes an id for a new invitation.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn new_id(session: &mut Session) -> Result<InvitationId> {
    ids::allocate_one(session, Kind::Invitation).await.map(InvitationId)
}

/// Stores a new invitation, which takes the place of open ones of the same
/// account.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(session: &mut Session, new: &InvitationRow) -> Result<()> {
    session.execute(&REVOKE_OF, args![new.user, new.created_at]).await?;
    let scope = serde_json::to_string(&new.scope)
        .map_err(|_| StoreError::Damaged("the projects of an invitation cannot be written"))?;
    let values = args![
        new.id,
        new.user,
        &new.email,
        new.role.as_str(),
        scope,
        new.invited_by,
        new.created_at,
        new.expires_at,
    ];
    session.execute(&INSERT, values).await?;
    Ok(())
}

/// One invitation.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, id: InvitationId) -> Result<Option<InvitationRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// One invitation, held until the end of the transaction. Whoever changes an
/// invitation holds its account's row first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, id: InvitationId) -> Result<Option<InvitationRow>> {
    session.first(&LOCK, args![id]).await?.as_ref().map(read).transpose()
}

/// A page of invitations, of all or of those that were neither accepted nor
/// revoked, newest first; `before` is the key of the last row
/// of the page before: when it was created, and its id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    only_open: bool,
    before: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<InvitationRow>> {
    let (at, id) = before.unwrap_or((i64::MAX, i64::MAX));
    session.all(&LIST, args![at, id, limit, i64::from(only_open)]).await?.iter().map(read).collect()
}

/// How many invitations were neither accepted nor revoked, up to `most`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn count_open(session: &mut Session, most: i64) -> Result<i64> {
    match session.first(&COUNT_OPEN, args![most]).await? {
        Some(row) => row.reader().int(),
        None => Ok(0),
    }
}

/// Notes that an open invitation was sent again: to which address, and until
/// when it lasts now.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn renew(
    session: &mut Session,
    id: InvitationId,
    email: &str,
    expires_at: Timestamp,
) -> Result<()> {
    session.execute(&RENEW, args![id, email, expires_at]).await?;
    Ok(())
}

/// Until when the open invitation of an account lasts, or lasted: it may have
/// expired. `None` when it has none.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn open_until(session: &mut Session, user: UserId) -> Result<Option<Timestamp>> {
    session.first(&OPEN_UNTIL, args![user]).await?.map(|row| row.reader().time()).transpose()
}

/// Takes an open invitation back.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revoke(session: &mut Session, id: InvitationId, now: Timestamp) -> Result<()> {
    session.execute(&REVOKE, args![id, now]).await?;
    Ok(())
}

/// Notes that the open invitation of an account was accepted; tells whether
/// there was one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn accept_of(session: &mut Session, user: UserId, now: Timestamp) -> Result<bool> {
    Ok(session.execute(&ACCEPT_OF, args![user, now]).await? > 0)
}
