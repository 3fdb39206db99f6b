//! Content-addressed objects: every uploaded file is stored once per project
//! under the SHA-256 the server computed.
//!
//! Bytes arrive first, rows follow. Small content is kept in memory until its
//! hash is known; larger content is streamed to a staging object that has a
//! ticket row before its first byte, and moves to its final key once hashed.
//! A pending row is written before the final object, and becomes live in the
//! transaction that refers to it: whatever a crash leaves behind has a row
//! that names it, and [`collect`] removes what no row refers to.

pub mod assembled;
pub mod collect;
pub mod content;
pub mod freeing;
pub mod pool;
pub mod staged_copy;

use bytes::{Bytes, BytesMut};
use callboard_domain::ids::{BlobId, ProjectId};
use callboard_domain::time::Timestamp;
use futures::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};

use crate::db::{Backend, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, Store, StoreError};

pub use crate::memory_budget::{IN_MEMORY_BYTES, Room};

statements! {
    /// Staged bytes are about to arrive.
    INSERT_TICKET = "INSERT INTO upload_tickets (ticket_hash, project_id, staging_key, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
    /// Staged bytes are gone.
    DELETE_TICKET = "DELETE FROM upload_tickets WHERE ticket_hash = $1";
    /// Content that the project has. ix: blobs_content
    BY_HASH = "SELECT id, key, size, own_size, state FROM blobs WHERE project_id = $1 AND kind = $3 AND sha256 = $2 AND state <> 'deleting'";
    /// Which of these contents rows of the project refer to. ix: blobs_content
    STORED = "SELECT sha256 FROM blobs WHERE project_id = $1 AND kind = 'blob' AND sha256 in_bytes($2) AND state = 'live' AND state <> 'deleting'";
    /// Content that is about to be stored.
    INSERT_PENDING = "INSERT INTO blobs (id, project_id, sha256, size, key, content_type, state, refs, condemned_at, created_at, kind) \
        VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, $7, $8, $9) ON CONFLICT (project_id, kind, sha256) WHERE state <> 'deleting' DO NOTHING";
    /// Content that is stored again before it was collected. A deletion that condemned it keeps its mark, by which it
    /// learns that the content stays. ix: blobs_content
    PENDING_AGAIN = "UPDATE blobs SET state = 'pending', condemned_at = $3 \
        WHERE project_id = $1 AND kind = $4 AND sha256 = $2 AND state <> 'deleting' AND state IN ('pending', 'condemned')";
    /// A row begins to refer to content, which keeps the mark of a deletion as before.
    REFER = "UPDATE blobs SET state = 'live', refs = refs + 1, condemned_at = NULL \
        WHERE project_id = $1 AND id = $2 AND state <> 'deleting'";
    /// Contents that rows are about to refer to, in an order of their own.
    LOCK = "SELECT id FROM blobs WHERE project_id = $1 AND id in_ints($2) ORDER BY id for_update()";
    /// A row no longer refers to content; the last one condemns it.
    RELEASE = "UPDATE blobs SET refs = refs - 1, state = CASE WHEN refs = 1 THEN 'condemned' ELSE state END, \
        condemned_at = CASE WHEN refs = 1 THEN $3 ELSE condemned_at END, receipt_id = CASE WHEN refs = 1 THEN NULL ELSE receipt_id END \
        WHERE project_id = $1 AND id = $2 AND refs > 0";
    /// Where content lies.
    BY_ID = "SELECT id, key, size, own_size, state FROM blobs WHERE project_id = $1 AND id = $2";
}

/// How long staged bytes may lie before they count as left behind.
const STAGING_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// How long stored bytes may wait for the row that refers to them.
const PENDING_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// Tries to find a place for content that others let go of at the same time.
const PENDING_TRIES: usize = 10;
/// Enough of the head of a file to recognise its type.
const HEAD_BYTES: usize = 4096;

/// Uploaded bytes whose hash is known and that no row refers to yet.
#[derive(Debug)]
pub struct StagedBlob {
    /// SHA-256 as computed here.
    pub sha256: [u8; 32],
    /// Size in bytes.
    pub size: u64,
    /// The first bytes, for recognising the type.
    pub head: Bytes,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// With the room the bytes take.
    Memory {
        bytes: Bytes,
        _room: Room,
    },
    Staged {
        ticket: [u8; 32],
        key: String,
    },
}

/// Receives a file. `project` scopes the staging key; it may be zero as long
/// as the project is not known. A file that fits into `room` never touches
/// staging.
///
/// # Errors
/// [`StoreError::Upload`] when the stream breaks off: nothing is left then;
/// [`StoreError::Storage`] when the object store refuses.
pub async fn stage<S>(
    store: &Store,
    project: i64,
    mut body: S,
    mut room: Room,
    now: Timestamp,
) -> Result<StagedBlob>
where
    S: Stream<Item = std::io::Result<Bytes>> + Unpin + Send,
{
    let mut hasher = Sha256::new();
    let mut size = 0_u64;
    let mut buffer = BytesMut::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        hasher.update(&chunk);
        size += chunk.len() as u64;
        buffer.extend_from_slice(&chunk);
        if buffer.len() > room.bytes() {
            return stage_large(store, project, body, now, hasher, size, (buffer, room)).await;
        }
    }
    room.shrink(buffer.len());
    let bytes = buffer.freeze();
    let head = bytes.slice(..bytes.len().min(HEAD_BYTES));
    Ok(StagedBlob { sha256: hasher.finalize().into(), size, head, body: Body::Memory { bytes, _room: room } })
}

async fn stage_large<S>(
    store: &Store,
    project: i64,
    mut body: S,
    now: Timestamp,
    mut hasher: Sha256,
    mut size: u64,
    (buffer, room): (BytesMut, Room),
) -> Result<StagedBlob>
where
    S: Stream<Item = std::io::Result<Bytes>> + Unpin + Send,
{
    let head = Bytes::copy_from_slice(&buffer[..HEAD_BYTES.min(buffer.len())]);
    let (ticket, key) = announce_staged(store, project, now).await?;
    let mut object = store.objects().writer(&key)?;
    let received = async {
        object.write(&buffer).await?;
        // An upload can take long.
        drop((buffer, room));
        while let Some(chunk) = body.next().await {
            let chunk = chunk?;
            hasher.update(&chunk);
            size += chunk.len() as u64;
            object.write(&chunk).await?;
        }
        object.finish().await
    }
    .await;
    if let Err(error) = received {
        object.abort().await;
        forget_ticket(store, &ticket).await?;
        return Err(error);
    }
    Ok(StagedBlob { sha256: hasher.finalize().into(), size, head, body: Body::Staged { ticket, key } })
}

/// A key for bytes that are about to be staged, which its row names from now on.
async fn announce_staged(store: &Store, project: i64, now: Timestamp) -> Result<([u8; 32], String)> {
    let ticket: [u8; 32] = Sha256::digest(random_secret()?).into();
    let key = format!("staging/{project}/{}", hex::encode(ticket));
    let mut session = store.db().begin().await?;
    session
        .execute(&INSERT_TICKET, args![ticket, project, &key, now, now.millis() + STAGING_LIFE_MS])
        .await?;
    session.commit().await?;
    Ok((ticket, key))
}

/// 32 random bytes.
///
/// # Errors
/// [`StoreError::Damaged`] when the system gives none.
pub fn random_secret() -> Result<[u8; 32]> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|_| StoreError::Damaged("the system gives no random bytes"))?;
    Ok(secret)
}

async fn forget_ticket(store: &Store, ticket: &[u8; 32]) -> Result<()> {
    let mut session = store.db().begin().await?;
    session.execute(&DELETE_TICKET, args![*ticket]).await?;
    session.commit().await
}

/// What content is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobKind {
    /// A file.
    File,
    /// A part that traces share.
    Pool,
}

impl BlobKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::File => "blob",
            Self::Pool => "pool",
        }
    }

    /// Where content is put that is stored in one piece. No key is used twice:
    /// a late delete never hits fresh bytes.
    fn key(self, project: ProjectId, sha256: &[u8; 32], id: BlobId) -> String {
        let folder = match self {
            Self::File => "blobs",
            Self::Pool => "pool",
        };
        let hash = hex::encode(sha256);
        format!("project-{project}/{folder}/{}/{hash}.{id}", &hash[..2])
    }
}

/// Content that is stored. Its bytes are read with [`content::Content`].
#[derive(Debug, Clone)]
pub struct BlobRow {
    /// Id.
    pub id: BlobId,
    /// Size in bytes.
    pub size: u64,
    /// Key of its own object.
    pub key: String,
    /// Whether parts of it lie in objects of their own.
    is_apart: bool,
}

impl StagedBlob {
    /// Bytes it holds in memory.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        match &self.body {
            Body::Memory { bytes, .. } => bytes.len(),
            Body::Staged { .. } => 0,
        }
    }

    /// Lets go of bytes that are not wanted.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the object store refuses; the ticket still
    /// names the bytes then.
    pub async fn discard(self, store: &Store) -> Result<()> {
        if let Body::Staged { ticket, key } = self.body {
            store.objects().delete(&key).await?;
            forget_ticket(store, &ticket).await?;
        }
        Ok(())
    }

    /// Streams the bytes back, e.g. to unpack an archive.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the object store refuses.
    pub async fn open(&self, store: &Store) -> Result<futures::stream::BoxStream<'static, Result<Bytes>>> {
        match &self.body {
            Body::Memory { bytes, .. } => {
                let bytes = bytes.clone();
                Ok(futures::stream::once(async move { Ok(bytes) }).boxed())
            }
            Body::Staged { key, .. } => store.objects().stream(key, None).await,
        }
    }

    /// Puts the bytes under their final key. The content counts as stored once
    /// a transaction [`refer`]s to it.
    ///
    /// # Errors
    /// [`StoreError::Storage`] or [`StoreError::Database`] when one refuses.
    pub async fn publish(
        self,
        store: &Store,
        project: ProjectId,
        content_type: &str,
        now: Timestamp,
    ) -> Result<BlobRow> {
        self.publish_as(BlobKind::File, store, project, content_type, now).await
    }

    async fn publish_as(
        self,
        kind: BlobKind,
        store: &Store,
        project: ProjectId,
        content_type: &str,
        now: Timestamp,
    ) -> Result<BlobRow> {
        let sha256 = self.sha256;
        let found = by_hash(&mut store.db().read().await?, project, kind, &sha256).await?;
        let (blob, is_live) = match found {
            Some((blob, true)) => (blob, true),
            _ => pending(store, project, kind, &sha256, self.size, content_type, now).await?,
        };
        // What lies apart is complete as long as its row is there, and its object is not the whole.
        if is_live || blob.is_apart {
            self.discard(store).await?;
            return Ok(blob);
        }
        self.move_to(store, &blob.key).await?;
        Ok(blob)
    }

    /// Puts the bytes under a key that a row names already.
    ///
    /// # Errors
    /// [`StoreError::Storage`] or [`StoreError::Database`] when one refuses.
    pub async fn move_to(self, store: &Store, key: &str) -> Result<()> {
        match self.body {
            Body::Memory { bytes, .. } => store.objects().put(key, bytes).await,
            Body::Staged { ticket, key: staged } => {
                store.objects().rename(&staged, key).await?;
                forget_ticket(store, &ticket).await
            }
        }
    }
}

/// Content that waits for its bytes and for a row to refer to it; or, when
/// another upload of the same bytes was faster, content that is live (true).
async fn pending(
    store: &Store,
    project: ProjectId,
    kind: BlobKind,
    sha256: &[u8; 32],
    size: u64,
    content_type: &str,
    now: Timestamp,
) -> Result<(BlobRow, bool)> {
    let size = i64::try_from(size).map_err(|_| StoreError::Damaged("a size beyond 63 bits"))?;
    let waits_until = now.millis() + PENDING_LIFE_MS;
    for _ in 0..PENDING_TRIES {
        let mut session = store.db().begin().await?;
        // Collecting it begins anew, or it would be deleted while its bytes arrive.
        let again = args![project, *sha256, waits_until, kind.as_str()];
        if session.execute(&PENDING_AGAIN, again).await? == 0 {
            let id = ids::allocate_one(&mut session, Kind::Blob).await?;
            let key = kind.key(project, sha256, BlobId(id));
            let kind = kind.as_str();
            let new = args![id, project, *sha256, size, &key, content_type, waits_until, now, kind];
            session.execute(&INSERT_PENDING, new).await?;
        }
        let stored = by_hash(&mut session, project, kind, sha256).await?;
        session.commit().await?;
        // Live content that nothing refers to any more may have been taken for deletion meanwhile: it is stored anew.
        if let Some(stored) = stored {
            return Ok(stored);
        }
    }
    Err(StoreError::Damaged("content was not stored"))
}

/// Content that rows of the project refer to, by its hash.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn stored(session: &mut Session, project: ProjectId, sha256: &[u8; 32]) -> Result<Option<BlobRow>> {
    let found = by_hash(session, project, BlobKind::File, sha256).await?;
    Ok(found.filter(|(_, is_live)| *is_live).map(|(blob, _)| blob))
}

/// Content of the project by its hash, whether rows refer to it or it waits for
/// one. Only for callers who know that its bytes have arrived.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn arrived(
    session: &mut Session,
    project: ProjectId,
    sha256: &[u8; 32],
) -> Result<Option<BlobRow>> {
    let found = by_hash(session, project, BlobKind::File, sha256).await?;
    Ok(found.map(|(blob, _)| blob))
}

/// Which of these hashes are of content that rows of the project refer to.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn stored_of(
    session: &mut Session,
    project: ProjectId,
    hashes: &[[u8; 32]],
) -> Result<Vec<[u8; 32]>> {
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.to_vec()).collect();
    session.all(&STORED, args![project, hashes]).await?.iter().map(read_hash).collect()
}

/// A row that is one hash.
fn read_hash(row: &crate::db::Row) -> Result<[u8; 32]> {
    hash(row.reader().bytes()?)
}

fn hash(bytes: Vec<u8>) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| StoreError::Damaged("a content hash"))
}

/// Content of a project by its hash, and whether rows refer to it.
async fn by_hash(
    session: &mut Session,
    project: ProjectId,
    kind: BlobKind,
    sha256: &[u8; 32],
) -> Result<Option<(BlobRow, bool)>> {
    let row = session.first(&BY_HASH, args![project, *sha256, kind.as_str()]).await?;
    row.map(|row| read(&row)).transpose()
}

fn read(row: &crate::db::Row) -> Result<(BlobRow, bool)> {
    let mut r = row.reader();
    let id = BlobId(r.int()?);
    let key = r.text()?;
    let size = u64::try_from(r.int()?).map_err(|_| StoreError::Damaged("a negative size"))?;
    let is_apart = r.opt_int()?.is_some();
    Ok((BlobRow { id, size, key, is_apart }, r.text()? == "live"))
}

/// Locks contents before rows of the same transaction begin to refer to them
/// one after the other: two that refer to the same contents in another order
/// would wait for each other.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<()> {
    // With one there is no order; SQLite has one writer.
    if ids.len() > 1 && session.backend() == Backend::Postgres {
        session.all(&LOCK, args![project, ids]).await?;
    }
    Ok(())
}

/// Counts a reference from a row of the same transaction. Condemned content
/// is revived.
///
/// # Errors
/// [`StoreError::ContentGone`] when the content was collected since it was
/// found: the upload has to be repeated.
pub async fn refer(session: &mut Session, project: ProjectId, id: BlobId) -> Result<()> {
    match session.execute(&REFER, args![project, id]).await? {
        1 => Ok(()),
        _ => Err(StoreError::ContentGone),
    }
}

/// Takes a reference back whose row goes in the same transaction. Content
/// without references is condemned: it is collected after a grace period,
/// unless a new reference revives it.
///
/// # Errors
/// [`StoreError::Damaged`] when nothing referred to it.
pub async fn release(session: &mut Session, project: ProjectId, id: BlobId, now: Timestamp) -> Result<()> {
    match session.execute(&RELEASE, args![project, id, now]).await? {
        1 => Ok(()),
        _ => Err(StoreError::Damaged("content that nothing refers to was released")),
    }
}
