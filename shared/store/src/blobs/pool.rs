//! The trace pool: parts that traces of a project have in common are stored
//! once. A trace is taken apart after it was stored: its parts are put in the
//! pool, the rest becomes an object of its own, and when what is put together
//! from them has the hash of the trace, one transaction exchanges the object.
//! A part counts one reference for each place in a trace that it stands in.

use std::ops::Range;

use callboard_domain::ids::{BlobId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_playwright::trace::pool::{Layout, Member};
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

use super::content::Content;
use super::{BlobKind, BlobRow, IN_MEMORY_BYTES, refer, stage};
use crate::db::{Session, args, statements};
use crate::ids::{self, Kind};
use crate::unclaimed;
use crate::{Result, Store, StoreError};

statements! {
    /// Traces of a run that are whole. ix: files_of_run
    WHOLE_TRACES = "SELECT DISTINCT b.id, b.sha256 FROM files f JOIN blobs b ON b.project_id = f.project_id AND b.id = f.blob_id \
        WHERE f.project_id = $1 AND f.run_id = $2 AND f.kind = 'trace' AND b.id > $3 AND b.size >= $4 AND b.own_size IS NULL \
        ORDER BY b.id LIMIT $5";
    /// Which of these parts the pool has. ix: blobs_content
    KNOWN = "SELECT sha256 FROM blobs WHERE project_id = $1 AND kind = 'pool' AND sha256 in_bytes($2) AND state <> 'deleting'";
    /// A trace is put together from its parts from now on.
    TAKE_APART = "UPDATE blobs SET key = $4, own_size = $5 WHERE project_id = $1 AND id = $2 AND key = $3 AND state = 'live' AND own_size IS NULL";
    /// A part of a trace.
    INSERT_MEMBER = "INSERT INTO trace_members (project_id, trace_blob_id, at, length, pool_blob_id) VALUES ($1, $2, $3, $4, $5)";
    /// What a trace refers to. PK
    HELD = "SELECT pool_blob_id, COUNT(*) FROM trace_members WHERE project_id = $1 AND trace_blob_id = $2 GROUP BY pool_blob_id ORDER BY pool_blob_id";
    /// References of a trace that goes; the last ones condemn the part.
    RELEASE_MANY = "UPDATE blobs SET refs = refs - $3, state = CASE WHEN refs = $3 THEN 'condemned' ELSE state END, \
        condemned_at = CASE WHEN refs = $3 THEN $4 ELSE condemned_at END, receipt_id = CASE WHEN refs = $3 THEN NULL ELSE receipt_id END \
        WHERE project_id = $1 AND id = $2 AND refs >= $3";
    /// The parts of a trace that goes. PK
    FORGET_MEMBERS = "DELETE FROM trace_members WHERE project_id = $1 AND trace_blob_id = $2";
}

/// Traces below this size are never worth taking apart.
const MIN_TRACE_BYTES: i64 = 32 * 1024;
/// How long the object of a trace stays after its row names another one: as
/// long as anybody may still read it.
const OLD_OBJECT_MS: i64 = 60 * 60 * 1000;
/// Type of what lies in the pool; it is never served by itself.
const POOL_TYPE: &str = "application/octet-stream";

/// A trace that is stored in one piece.
#[derive(Debug, Clone)]
pub struct WholeTrace {
    /// Its content.
    pub blob: BlobId,
    /// SHA-256 of it.
    pub sha256: [u8; 32],
}

/// Traces of a run that are whole and large enough, by id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn whole_traces(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: BlobId,
    limit: i64,
) -> Result<Vec<WholeTrace>> {
    let rows = session.all(&WHOLE_TRACES, args![project, run, after, MIN_TRACE_BYTES, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(WholeTrace { blob: BlobId(r.int()?), sha256: super::hash(r.bytes()?)? })
        })
        .collect()
}

/// Which of these hashes are parts in the pool.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn known(session: &mut Session, project: ProjectId, hashes: &[[u8; 32]]) -> Result<Vec<[u8; 32]>> {
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.to_vec()).collect();
    let rows = session.all(&KNOWN, args![project, hashes]).await?;
    rows.iter().map(super::read_hash).collect()
}

/// Takes a trace apart into its members and the rest. Answers whether that was
/// done: not when the trace changed or went meanwhile.
///
/// # Errors
/// [`StoreError::Storage`], [`StoreError::Database`];
/// [`StoreError::Damaged`] when what is put together is not the trace.
pub async fn take_apart(
    store: &Store,
    project: ProjectId,
    trace: &WholeTrace,
    members: Vec<Member>,
    now: Timestamp,
) -> Result<bool> {
    let (row, _) =
        super::read(&store.db().read().await?.one(&super::BY_ID, args![project, trace.blob]).await?)?;
    let Some(layout) = Layout::new(row.size, members.clone()).filter(|_| !row.is_apart) else {
        return Ok(false);
    };
    let whole = Content::whole(row.key.clone(), row.size);
    let mut pooled = Vec::with_capacity(members.len());
    for member in &members {
        pooled.push(put_in_pool(store, project, &whole, member, now).await?);
    }
    let key = announce_skeleton(store, project, trace, now).await?;
    write_skeleton(store, &whole, &layout, &key).await?;
    let own_size =
        i64::try_from(layout.skeleton_bytes()).map_err(|_| StoreError::Damaged("a size beyond 63 bits"))?;
    let keys = pooled.iter().map(|blob| blob.key.clone()).collect();
    if sha256_of(store, &Content::apart(key.clone(), layout, keys)).await? != trace.sha256 {
        return Err(StoreError::Damaged("the parts of a trace do not make the trace"));
    }
    let mut session = store.db().begin().await?;
    let taken = session.execute(&TAKE_APART, args![project, trace.blob, &row.key, &key, own_size]).await?;
    if taken == 0 {
        unclaimed::abandon(&mut session, project, &key, now).await?;
        session.commit().await?;
        return Ok(false);
    }
    unclaimed::claim(&mut session, &key, now).await?;
    unclaimed::abandon(&mut session, project, &row.key, Timestamp(now.millis() + OLD_OBJECT_MS)).await?;
    // Everybody who refers to parts does so in this order.
    let mut in_order: Vec<BlobId> = pooled.iter().map(|blob| blob.id).collect();
    in_order.sort_unstable();
    for part in in_order {
        refer(&mut session, project, part).await?;
    }
    for (member, part) in members.iter().zip(&pooled) {
        let place =
            |value: u64| i64::try_from(value).map_err(|_| StoreError::Damaged("a place beyond 63 bits"));
        let row = args![project, trace.blob, place(member.at)?, place(member.length)?, part.id];
        session.execute(&INSERT_MEMBER, row).await?;
    }
    session.commit().await?;
    Ok(true)
}

async fn put_in_pool(
    store: &Store,
    project: ProjectId,
    whole: &Content,
    member: &Member,
    now: Timestamp,
) -> Result<BlobRow> {
    let bytes = whole.stream(store, Some(range_of(member))).await?;
    let bytes = bytes.map(|piece| piece.map_err(std::io::Error::other));
    let staged = stage(store, project.get(), bytes, store.memory().room(IN_MEMORY_BYTES), now).await?;
    if staged.size != member.length {
        staged.discard(store).await?;
        return Err(StoreError::Damaged("a trace ends early"));
    }
    staged.publish_as(BlobKind::Pool, store, project, POOL_TYPE, now).await
}

const fn range_of(member: &Member) -> Range<u64> {
    member.at..member.at + member.length
}

/// Names the object of the rest before it is written.
async fn announce_skeleton(
    store: &Store,
    project: ProjectId,
    trace: &WholeTrace,
    now: Timestamp,
) -> Result<String> {
    let hash = hex::encode(trace.sha256);
    let mut session = store.db().begin().await?;
    // No key is used twice: a late delete never hits fresh bytes.
    let id = ids::allocate_one(&mut session, Kind::Blob).await?;
    let key = format!("project-{project}/traces/{}/{hash}.{id}", &hash[..2]);
    unclaimed::announce(&mut session, project, &key, now).await?;
    session.commit().await?;
    Ok(key)
}

async fn write_skeleton(store: &Store, whole: &Content, layout: &Layout, key: &str) -> Result<()> {
    let mut object = store.objects().writer(key)?;
    let written = async {
        for gap in layout.gaps() {
            let mut pieces = whole.stream(store, Some(gap)).await?;
            while let Some(piece) = pieces.next().await {
                object.write(&piece?).await?;
            }
        }
        object.finish().await
    }
    .await;
    if written.is_err() {
        object.abort().await;
    }
    written
}

async fn sha256_of(store: &Store, content: &Content) -> Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut pieces = content.stream(store, None).await?;
    while let Some(piece) = pieces.next().await {
        hasher.update(&piece?);
    }
    Ok(hasher.finalize().into())
}

/// Takes back the references of traces whose rows go in the same transaction.
pub(super) async fn release_members(
    session: &mut Session,
    traces: &[(ProjectId, BlobId)],
    now: Timestamp,
) -> Result<()> {
    let mut held = std::collections::BTreeMap::<(i64, i64), i64>::new();
    for (project, trace) in traces {
        for row in session.all(&HELD, args![*project, *trace]).await? {
            let mut r = row.reader();
            let (part, count) = (r.int()?, r.int()?);
            *held.entry((project.get(), part)).or_default() += count;
        }
        session.execute(&FORGET_MEMBERS, args![*project, *trace]).await?;
    }
    for ((project, part), count) in held {
        session.execute(&RELEASE_MANY, args![project, part, count, now]).await?;
    }
    Ok(())
}
