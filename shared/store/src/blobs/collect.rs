//! Collecting content that no row refers to, in two phases. First it is
//! condemned, and a new reference revives it; after a grace period it is
//! `deleting`, which nothing leaves: its object goes, then its row. The same
//! content that arrives meanwhile gets a row and a key of its own.

use std::collections::BTreeSet;

use callboard_domain::ids::{BlobId, ProjectId};
use callboard_domain::time::Timestamp;

use super::pool;
use crate::db::{Row, args, statements};
use crate::unclaimed::{Swept, delete_all};
use crate::{Result, Store};

/// How long a collector may take to delete the objects of a batch before
/// another one takes the batch over.
const LEASE_MS: i64 = 5 * 60 * 1000;

statements! {
    /// Bytes whose row never came. ix: blobs_collection
    CONDEMN_PENDING = "UPDATE blobs SET state = 'condemned', condemned_at = $1 WHERE (project_id, id) IN \
        (SELECT project_id, id FROM blobs WHERE state = 'pending' AND state <> 'live' AND condemned_at <= $1 ORDER BY condemned_at LIMIT $2 skip_locked())";
    /// Content whose grace is over. ix: blobs_collection
    BEGIN = "WITH due AS MATERIALIZED (SELECT project_id, id FROM blobs WHERE state = 'condemned' AND state <> 'live' AND refs = 0 \
            AND receipt_id IS NULL AND condemned_at <= $1 ORDER BY condemned_at LIMIT $3 skip_locked()) \
        UPDATE blobs SET state = 'deleting', lease_until = $2 WHERE (project_id, id) IN (SELECT project_id, id FROM due) RETURNING id, key, project_id, own_size, size";
    /// Content whose collector died. ix: blobs_collection
    TAKE_OVER = "WITH due AS MATERIALIZED (SELECT project_id, id FROM blobs WHERE state = 'deleting' AND state <> 'live' \
            AND receipt_id IS NULL AND lease_until <= $1 LIMIT $3 skip_locked()) \
        UPDATE blobs SET lease_until = $2 WHERE (project_id, id) IN (SELECT project_id, id FROM due) RETURNING id, key, project_id, own_size, size";
    /// Content whose object is gone. ix: blobs_collection
    DELETE = "DELETE FROM blobs WHERE state = 'deleting' AND state <> 'live' AND id in_ints($1) RETURNING id";
}

/// Condemns at most `limit` stored objects whose row never came. Answers how
/// many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn condemn_pending(store: &Store, now: Timestamp, limit: i64) -> Result<u64> {
    let mut session = store.db().begin().await?;
    let condemned = session.execute(&CONDEMN_PENDING, args![now, limit]).await?;
    session.commit().await?;
    Ok(condemned)
}

/// Deletes at most `limit` objects that were condemned at least `grace_ms`
/// ago, and then their rows. What a collector that died has begun is done
/// again.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn collect(store: &Store, grace_ms: i64, now: Timestamp, limit: i64) -> Result<Swept> {
    let lease_until = now.millis() + LEASE_MS;
    let mut session = store.db().begin().await?;
    let mut rows = session.all(&TAKE_OVER, args![now, lease_until, limit]).await?;
    let left = limit - i64::try_from(rows.len()).unwrap_or(limit);
    rows.extend(session.all(&BEGIN, args![now.millis() - grace_ms, lease_until, left]).await?);
    session.commit().await?;
    let due = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    let objects: Vec<(i64, String)> = due.iter().map(|due| (due.id, due.key.clone())).collect();
    let (gone, refused) = delete_all(store, objects).await;
    if gone.is_empty() {
        return Ok(Swept { refused, ..Swept::default() });
    }
    let mut session = store.db().begin().await?;
    // Whoever took a slow batch over comes here too: what a trace held is let
    // go of, and counted, by the one of them that deletes its row.
    let rows = session.all(&DELETE, args![gone]).await?;
    let deleted = rows.iter().map(|row| row.reader().int()).collect::<Result<BTreeSet<i64>>>()?;
    let due: Vec<Due> = due.into_iter().filter(|due| deleted.contains(&due.id)).collect();
    let apart = due.iter().filter(|due| due.is_apart);
    let traces: Vec<(ProjectId, BlobId)> = apart.map(|due| (due.project, BlobId(due.id))).collect();
    pool::release_members(&mut session, &traces, now).await?;
    session.commit().await?;
    Ok(Swept { deleted: due.len(), refused, bytes: due.iter().map(|due| due.bytes).sum() })
}

struct Due {
    id: i64,
    key: String,
    project: ProjectId,
    is_apart: bool,
    bytes: i64,
}

fn read(row: &Row) -> Result<Due> {
    let mut r = row.reader();
    let (id, key, project) = (r.int()?, r.text()?, ProjectId(r.int()?));
    let (own_size, size) = (r.opt_int()?, r.int()?);
    Ok(Due { id, key, project, is_apart: own_size.is_some(), bytes: own_size.unwrap_or(size) })
}
