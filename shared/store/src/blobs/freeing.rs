//! Content that goes with a deletion: it is not kept for a grace period, and
//! what it frees is told to the deletion's receipt. Content that something
//! else still refers to stays; so does what the deletion condemned and an
//! upload brought again before it was gone.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::ids::{BlobId, DeletionId, ProjectId};
use callboard_domain::time::Timestamp;

use super::{BlobKind, pool};
use crate::db::{Session, args, statements};
use crate::deletions::ObjectCount;
use crate::unclaimed::{self, delete_all};
use crate::{Result, Store};

/// How long the objects of a batch may take to delete before the deletion
/// takes it up again.
const LEASE_MS: i64 = 60 * 1000;

statements! {
    /// Rows that are deleted no longer refer to content; the last of them condemns it for the deletion.
    RELEASE_FOR = "UPDATE blobs SET refs = refs - $3, state = CASE WHEN refs = $3 THEN 'condemned' ELSE state END, \
        condemned_at = CASE WHEN refs = $3 THEN $4 ELSE condemned_at END, receipt_id = CASE WHEN refs = $3 THEN $5 ELSE receipt_id END \
        WHERE project_id = $1 AND id = $2 AND refs >= $3 RETURNING refs, COALESCE(own_size, size)";
    /// Content of a deletion that can go. ix: blobs_of_receipt
    BEGIN_OF = "WITH due AS MATERIALIZED (SELECT project_id, id FROM blobs WHERE receipt_id = $1 AND receipt_id IS NOT NULL AND refs = 0 \
            AND (state = 'condemned' OR (state = 'deleting' AND lease_until <= $2)) ORDER BY id LIMIT $4 skip_locked()) \
        UPDATE blobs SET state = 'deleting', lease_until = $3 WHERE (project_id, id) IN (SELECT project_id, id FROM due) \
        RETURNING id, key, project_id, COALESCE(own_size, size), own_size, sha256";
    /// Content of a deletion whose object is gone.
    DELETE_OF = "DELETE FROM blobs WHERE receipt_id = $1 AND receipt_id IS NOT NULL AND state = 'deleting' AND id in_ints($2) RETURNING id";
    /// Content that a deletion condemned and that came again. ix: blobs_of_receipt
    LEAVE = "UPDATE blobs SET receipt_id = NULL WHERE receipt_id = $1 AND receipt_id IS NOT NULL AND state IN ('pending', 'live') \
        RETURNING COALESCE(own_size, size)";
    /// Content of a deletion that is left. ix: blobs_of_receipt
    LEFT_OF = "SELECT COUNT(*) FROM blobs WHERE receipt_id = $1 AND receipt_id IS NOT NULL";
    /// Parts of a trace. PK
    PARTS = "SELECT DISTINCT pool_blob_id FROM trace_members WHERE project_id = $1 AND trace_blob_id = $2";
    /// Parts that went with the last trace they were in.
    ADOPT = "UPDATE blobs SET receipt_id = $3 WHERE project_id = $1 AND id in_ints($2) AND state = 'condemned' AND refs = 0 \
        RETURNING COALESCE(own_size, size)";
}

/// What became of content that rows let go of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// Whether something else refers to it.
    pub is_shared: bool,
    /// Bytes of its own object.
    pub bytes: i64,
}

/// Takes `count` references back whose rows go in the same transaction.
///
/// # Errors
/// [`crate::StoreError::Damaged`] when fewer referred to it.
pub async fn release_for(
    session: &mut Session,
    project: ProjectId,
    id: BlobId,
    count: i64,
    receipt: DeletionId,
    now: Timestamp,
) -> Result<Released> {
    let row = session.one(&RELEASE_FOR, args![project, id, count, now, receipt]).await?;
    let mut r = row.reader();
    Ok(Released { is_shared: r.int()? > 0, bytes: r.int()? })
}

/// What freeing a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freed {
    /// Objects that are gone.
    pub objects: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Further objects that have to go since: parts that only these held.
    pub found: ObjectCount,
    /// Objects the store refused to delete.
    pub refused: usize,
}

/// Deletes at most `limit` objects of a deletion, then their rows. `None` when
/// there was nothing to do.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn free(store: &Store, receipt: DeletionId, now: Timestamp, limit: i64) -> Result<Option<Freed>> {
    let mut session = store.db().begin().await?;
    let rows = session.all(&BEGIN_OF, args![receipt, now, now.millis() + LEASE_MS, limit]).await?;
    session.commit().await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut due = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut r = row.reader();
        let (id, key, project, bytes) = (r.int()?, r.text()?, ProjectId(r.int()?), r.int()?);
        let (is_apart, sha256) = (r.opt_int()?.is_some(), super::hash(r.bytes()?)?);
        let before = is_apart.then(|| BlobKind::File.key(project, &sha256, BlobId(id)));
        due.push(Due { id, key, project, bytes, before });
    }
    let objects: Vec<(i64, String)> = due.iter().map(|due| (due.id, due.key.clone())).collect();
    let (gone, refused) = delete_all(store, objects).await;
    let mut freed = Freed { refused, ..Freed::default() };
    let mut session = store.db().begin().await?;
    // Whoever took a slow batch over comes here too: what a trace held is let
    // go of, and counted, by the one of them that deletes its row.
    let rows = session.all(&DELETE_OF, args![receipt, gone]).await?;
    let deleted = rows.iter().map(|row| row.reader().int()).collect::<Result<BTreeSet<i64>>>()?;
    let mut traces = Vec::new();
    for due in due.iter().filter(|due| deleted.contains(&due.id)) {
        freed.objects += 1;
        freed.bytes += due.bytes;
        if let Some(key) = &due.before {
            unclaimed::leave_to(&mut session, key, receipt).await?;
            traces.push((due.project, BlobId(due.id)));
        }
    }
    release_parts(&mut session, &traces, receipt, now, &mut freed.found).await?;
    session.commit().await?;
    Ok(Some(freed))
}

struct Due {
    id: i64,
    key: String,
    project: ProjectId,
    bytes: i64,
    /// Of a trace that was taken apart, where it lay in one piece: it may still
    /// lie there.
    before: Option<String>,
}

/// Lets go of the parts of traces; those that nothing else holds go with the
/// deletion too and are added to `found`.
async fn release_parts(
    session: &mut Session,
    traces: &[(ProjectId, BlobId)],
    receipt: DeletionId,
    now: Timestamp,
    found: &mut ObjectCount,
) -> Result<()> {
    let mut parts = BTreeMap::<i64, BTreeSet<i64>>::new();
    for (project, trace) in traces {
        let parts = parts.entry(project.get()).or_default();
        for row in session.all(&PARTS, args![*project, *trace]).await? {
            parts.insert(row.reader().int()?);
        }
    }
    pool::release_members(session, traces, now).await?;
    for (project, parts) in parts {
        let parts: Vec<i64> = parts.into_iter().collect();
        for row in session.all(&ADOPT, args![project, parts, receipt]).await? {
            found.add(1, row.reader().int()?);
        }
    }
    Ok(())
}

/// What is left of the content of a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// Objects that came again, and stay. They are not the deletion's any more.
    pub kept: ObjectCount,
    /// Objects that are still to go.
    pub to_go: i64,
}

/// Leaves to others what came again of the content of a deletion, and answers
/// what is left.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn left_of(session: &mut Session, receipt: DeletionId) -> Result<Left> {
    let mut left = Left::default();
    // First: what is condemned anew meanwhile has to be among what is to go.
    for row in session.all(&LEAVE, args![receipt]).await? {
        left.kept.add(1, row.reader().int()?);
    }
    left.to_go = session.one(&LEFT_OF, args![receipt]).await?.reader().int()?;
    Ok(left)
}
