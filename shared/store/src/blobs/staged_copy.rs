//! Copies of staged objects that clients wrote. A client may write to its
//! object as long as its address is valid, also between a check of the bytes
//! and their use: what is checked and used is therefore a copy, whose key no
//! client knows.

use bytes::{Bytes, BytesMut};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

use super::{Body, HEAD_BYTES, IN_MEMORY_BYTES, Room, StagedBlob, announce_staged, forget_ticket};
use crate::{Result, Store};

/// Largest object that [`read`] is for.
pub const SMALL_BYTES: u64 = IN_MEMORY_BYTES as u64;

/// A copy whose bytes are not known yet.
#[derive(Debug)]
pub struct StagedCopy {
    ticket: [u8; 32],
    key: String,
}

/// Copies the object of a key; `None` when it is not there.
///
/// # Errors
/// [`crate::StoreError::Storage`] or [`crate::StoreError::Database`] when one refuses.
pub async fn copy(
    store: &Store,
    project: ProjectId,
    from: &str,
    now: Timestamp,
) -> Result<Option<StagedCopy>> {
    let (ticket, key) = announce_staged(store, project.get(), now).await?;
    match store.objects().copy(from, &key).await {
        Ok(()) => Ok(Some(StagedCopy { ticket, key })),
        Err(error) if error.is_missing_object() => {
            forget_ticket(store, &ticket).await?;
            Ok(None)
        }
        // Its row stays: nobody knows whether the copy was made.
        Err(error) => Err(error),
    }
}

/// Reads a small object into memory, within `room` for all of it, instead, where nobody changes it either; `None` when it is not there. Its bytes
/// are hashed.
///
/// # Errors
/// [`crate::StoreError::Storage`] when the store refuses.
pub async fn read(store: &Store, key: &str, size: u64, mut room: Room) -> Result<Option<StagedBlob>> {
    let bytes = match size {
        0 => Bytes::new(),
        size => match store.objects().get_range(key, 0..size).await {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing_object() => return Ok(None),
            Err(error) => return Err(error),
        },
    };
    room.shrink(bytes.len());
    let head = bytes.slice(..bytes.len().min(HEAD_BYTES));
    let (sha256, size) = (Sha256::digest(&bytes).into(), bytes.len() as u64);
    Ok(Some(StagedBlob { sha256, size, head, body: Body::Memory { bytes, _room: room } }))
}

/// Computes the SHA-256 of an object, and keeps its first bytes. An object of more
/// than `most` bytes is not read to its end; its size is then too large.
///
/// # Errors
/// [`crate::StoreError::Storage`] when the store refuses or breaks off.
pub async fn hash(store: &Store, key: &str, most: u64) -> Result<Hashed> {
    let mut bytes = store.objects().stream(key, None).await?;
    let (mut hasher, mut size, mut head) = (Sha256::new(), 0_u64, BytesMut::new());
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk?;
        hasher.update(&chunk);
        size += chunk.len() as u64;
        head.extend_from_slice(&chunk[..chunk.len().min(HEAD_BYTES - head.len())]);
        if size > most {
            break;
        }
    }
    Ok(Hashed { sha256: hasher.finalize().into(), size, head: head.freeze() })
}

/// What the bytes of an object are.
#[derive(Debug)]
pub struct Hashed {
    /// SHA-256.
    pub sha256: [u8; 32],
    /// Size in bytes.
    pub size: u64,
    /// The first bytes.
    pub head: Bytes,
}

impl StagedCopy {
    /// Computes what its bytes are; of more than `most` bytes it is only known
    /// that there are more.
    ///
    /// # Errors
    /// [`crate::StoreError::Storage`] when the store refuses; nothing is kept then.
    pub async fn hashed(self, store: &Store, most: u64) -> Result<StagedBlob> {
        match hash(store, &self.key, most).await {
            Ok(Hashed { sha256, size, head }) => Ok(self.into_blob(sha256, size, head)),
            Err(error) => {
                self.discard(store).await?;
                Err(error)
            }
        }
    }

    /// Takes its bytes for what was checked before.
    ///
    /// # Errors
    /// [`crate::StoreError::Storage`] when the store refuses; nothing is kept then.
    pub async fn checked_before(self, store: &Store, sha256: [u8; 32], size: u64) -> Result<StagedBlob> {
        if size == 0 {
            return Ok(self.into_blob(sha256, size, Bytes::new()));
        }
        match store.objects().get_range(&self.key, 0..size.min(HEAD_BYTES as u64)).await {
            Ok(head) => Ok(self.into_blob(sha256, size, head)),
            Err(error) => {
                self.discard(store).await?;
                Err(error)
            }
        }
    }

    fn into_blob(self, sha256: [u8; 32], size: u64, head: Bytes) -> StagedBlob {
        StagedBlob { sha256, size, head, body: Body::Staged { ticket: self.ticket, key: self.key } }
    }

    async fn discard(&self, store: &Store) -> Result<()> {
        store.objects().delete(&self.key).await?;
        forget_ticket(store, &self.ticket).await
    }
}
