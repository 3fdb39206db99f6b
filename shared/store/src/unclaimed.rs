//! Objects that no row refers to yet. Their keys stand here before their bytes
//! are written and go in the transaction that refers to them: what a crash in
//! between leaves behind is found without listing the object store.

use callboard_domain::ids::{DeletionId, ProjectId};
use callboard_domain::time::Timestamp;
use futures::{StreamExt as _, stream};

use crate::db::{Session, args, statements};
use crate::{Result, Store, StoreError};

/// How long an object may wait for the row that refers to it: no request takes
/// a small part of it.
const LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// Processes whose clocks differ by less agree on what is still to be claimed.
const MARGIN_MS: i64 = 60 * 60 * 1000;
/// Objects deleted at the same time.
const AT_ONCE: usize = 8;

statements! {
    /// An object is about to be written.
    INSERT = "INSERT INTO unclaimed_objects (key, project_id, delete_at) VALUES ($1, $2, $3) \
        ON CONFLICT (key) DO UPDATE SET delete_at = excluded.delete_at";
    /// An announced object that is not to be claimed any more.
    EXPIRE = "UPDATE unclaimed_objects SET delete_at = $2 WHERE key = $1";
    /// An object that goes with a deletion.
    INSERT_OF = "INSERT INTO unclaimed_objects (key, project_id, delete_at, receipt_id) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (key) DO UPDATE SET delete_at = excluded.delete_at, receipt_id = excluded.receipt_id";
    /// An announced object that goes with a deletion.
    LEAVE_TO = "UPDATE unclaimed_objects SET receipt_id = $2 WHERE key = $1";
    /// Objects that go with a deletion. ix: unclaimed_objects_of_receipt
    OF_RECEIPT = "SELECT key FROM unclaimed_objects WHERE receipt_id = $1 AND receipt_id IS NOT NULL ORDER BY key LIMIT $2";
    /// A row refers to the object.
    CLAIM = "DELETE FROM unclaimed_objects WHERE key = $1 AND delete_at > $2";
    /// The object is gone.
    DELETE = "DELETE FROM unclaimed_objects WHERE key in_texts($1)";
    /// Objects that nobody claimed in time. ix: unclaimed_objects_by_time
    EXPIRED_OBJECTS = "SELECT key FROM unclaimed_objects WHERE delete_at <= $1 ORDER BY delete_at LIMIT $2";
    /// Staged uploads whose time is over. ix: upload_tickets_by_expiry
    EXPIRED_TICKETS = "SELECT ticket_hash, staging_key FROM upload_tickets WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2";
    /// Staged uploads that are gone.
    DELETE_TICKETS = "DELETE FROM upload_tickets WHERE ticket_hash in_bytes($1)";
}

/// Names an object, or with a slash at the end everything below a prefix, that
/// is about to be written. From a transaction that is committed before.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn announce(session: &mut Session, project: ProjectId, key: &str, now: Timestamp) -> Result<()> {
    announce_until(session, project, key, Timestamp(now.millis() + LIFE_MS)).await
}

/// [`announce`] for an object that may wait longer, or not as long, for the row
/// that refers to it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn announce_until(
    session: &mut Session,
    project: ProjectId,
    key: &str,
    until: Timestamp,
) -> Result<()> {
    session.execute(&INSERT, args![key, project, until]).await?;
    Ok(())
}

/// Leaves an object, or everything below a prefix, to the sweep.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn abandon(session: &mut Session, project: ProjectId, key: &str, now: Timestamp) -> Result<()> {
    announce_until(session, project, key, now).await
}

/// Leaves an object to the sweep if it was announced.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn abandon_announced(session: &mut Session, key: &str, now: Timestamp) -> Result<()> {
    session.execute(&EXPIRE, args![key, now]).await?;
    Ok(())
}

/// Leaves an object, or everything below a prefix, to a deletion. What the
/// deletion has not freed after a day is swept.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn abandon_to(
    session: &mut Session,
    project: ProjectId,
    key: &str,
    receipt: DeletionId,
    now: Timestamp,
) -> Result<()> {
    session.execute(&INSERT_OF, args![key, project, now.millis() + LIFE_MS, receipt]).await?;
    Ok(())
}

/// Leaves an object to a deletion if it was announced, or abandoned.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn leave_to(session: &mut Session, key: &str, receipt: DeletionId) -> Result<()> {
    session.execute(&LEAVE_TO, args![key, receipt]).await?;
    Ok(())
}

/// Deletes at most `limit` objects of a deletion.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn free(store: &Store, receipt: DeletionId, limit: i64) -> Result<Swept> {
    let rows = store.db().read().await?.all(&OF_RECEIPT, args![receipt, limit]).await?;
    let keys = rows.iter().map(|row| row.reader().text()).collect::<Result<Vec<_>>>()?;
    let (gone, refused) = delete_all(store, keys.into_iter().map(|key| (key.clone(), key))).await;
    if !gone.is_empty() {
        let mut session = store.db().begin().await?;
        session.execute(&DELETE, args![gone.clone()]).await?;
        session.commit().await?;
    }
    Ok(Swept { deleted: gone.len(), refused, bytes: 0 })
}

/// Takes an announced object into the caller's transaction, which writes the
/// row that refers to it.
///
/// # Errors
/// [`StoreError::ContentGone`] when it waited for too long.
pub async fn claim(session: &mut Session, key: &str, now: Timestamp) -> Result<()> {
    match session.execute(&CLAIM, args![key, now]).await? {
        1 => Ok(()),
        _ => Err(StoreError::ContentGone),
    }
}

/// Forgets an announced object that was deleted.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn forget(session: &mut Session, key: &str) -> Result<()> {
    session.execute(&DELETE, args![vec![key.to_owned()]]).await?;
    Ok(())
}

/// What a batch of a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Their bytes, where rows knew them.
    pub bytes: i64,
    /// Objects (or prefixes) that are gone, with their rows.
    pub deleted: usize,
    /// Objects that the store refused to delete; their rows stay.
    pub refused: usize,
}

/// Deletes at most `limit` objects that nobody claimed in time.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sweep(store: &Store, now: Timestamp, limit: i64) -> Result<Swept> {
    let rows = store.db().read().await?.all(&EXPIRED_OBJECTS, args![long_past(now), limit]).await?;
    let keys = rows.iter().map(|row| row.reader().text()).collect::<Result<Vec<_>>>()?;
    let (gone, refused) = delete_all(store, keys.into_iter().map(|key| (key.clone(), key))).await;
    if !gone.is_empty() {
        let mut session = store.db().begin().await?;
        session.execute(&DELETE, args![gone.clone()]).await?;
        session.commit().await?;
    }
    Ok(Swept { deleted: gone.len(), refused, bytes: 0 })
}

/// Deletes at most `limit` staged uploads whose ticket has expired.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sweep_staging(store: &Store, now: Timestamp, limit: i64) -> Result<Swept> {
    let rows = store.db().read().await?.all(&EXPIRED_TICKETS, args![long_past(now), limit]).await?;
    let tickets = rows
        .iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.bytes()?, r.text()?))
        })
        .collect::<Result<Vec<_>>>()?;
    let (gone, refused) = delete_all(store, tickets).await;
    let deleted = gone.len();
    if deleted > 0 {
        let mut session = store.db().begin().await?;
        session.execute(&DELETE_TICKETS, args![gone]).await?;
        session.commit().await?;
    }
    Ok(Swept { deleted, refused, bytes: 0 })
}

fn long_past(now: Timestamp) -> Timestamp {
    Timestamp(now.millis() - MARGIN_MS)
}

/// Deletes objects by key, a few at the same time. Answers the names of those that are
/// gone, and how many the store refused.
pub(crate) async fn delete_all<N>(
    store: &Store,
    objects: impl IntoIterator<Item = (N, String)>,
) -> (Vec<N>, usize) {
    let deleted = stream::iter(objects).map(|(name, key)| async move {
        let deleted = if key.ends_with('/') {
            store.objects().delete_below(&key).await
        } else {
            store.objects().delete(&key).await
        };
        if let Err(error) = &deleted {
            tracing::warn!(key, %error, "an object could not be deleted");
        }
        deleted.map(|()| name)
    });
    let deleted: Vec<Result<N>> = deleted.buffer_unordered(AT_ONCE).collect().await;
    let asked = deleted.len();
    let gone: Vec<N> = deleted.into_iter().flatten().collect();
    let refused = asked - gone.len();
    (gone, refused)
}
