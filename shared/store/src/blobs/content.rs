//! Reading content. Most of it is one object; a trace that shares parts with
//! others is put together from several while it is read, so that it takes no
//! more memory, and any range of it is there without the rest.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use callboard_domain::ids::{BlobId, ProjectId};
use callboard_playwright::trace::pool::{Layout, Member, Piece};
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};

use super::BY_ID;
use crate::db::{Session, args, statements};
use crate::{Result, Store, StoreError};

statements! {
    /// The parts of a trace that lie elsewhere, in its order. PK, blobs PK
    MEMBERS = "SELECT m.at, m.length, b.key FROM trace_members m JOIN blobs b ON b.project_id = m.project_id AND b.id = m.pool_blob_id \
        WHERE m.project_id = $1 AND m.trace_blob_id = $2 ORDER BY m.at";
}

/// Where the bytes of some content are.
#[derive(Debug, Clone)]
pub struct Content {
    key: String,
    size: u64,
    parts: Option<Parts>,
}

#[derive(Debug, Clone)]
struct Parts {
    layout: Layout,
    /// One for each member.
    keys: Vec<String>,
}

impl Content {
    /// Content that is one object.
    #[must_use]
    pub const fn whole(key: String, size: u64) -> Self {
        Self { key, size, parts: None }
    }

    /// Content of the project by its id.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when there is none.
    pub async fn load(session: &mut Session, project: ProjectId, id: BlobId) -> Result<Self> {
        let (blob, _) = super::read(&session.one(&BY_ID, args![project, id]).await?)?;
        if !blob.is_apart {
            return Ok(Self::whole(blob.key, blob.size));
        }
        let rows = session.all(&MEMBERS, args![project, id]).await?;
        let mut members = Vec::with_capacity(rows.len());
        let mut keys = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut r = row.reader();
            let number =
                |value: i64| u64::try_from(value).map_err(|_| StoreError::Damaged("a negative place"));
            members.push(Member { at: number(r.int()?)?, length: number(r.int()?)? });
            keys.push(r.text()?);
        }
        let layout = Layout::new(blob.size, members)
            .ok_or(StoreError::Damaged("the parts of a trace do not fit together"))?;
        Ok(Self { key: blob.key, size: blob.size, parts: Some(Parts { layout, keys }) })
    }

    /// Content that is put together from a skeleton and members.
    pub(super) const fn apart(key: String, layout: Layout, keys: Vec<String>) -> Self {
        Self { key, size: layout.size(), parts: Some(Parts { layout, keys }) }
    }

    /// The key of its object, when it is one.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        self.parts.is_none().then_some(self.key.as_str())
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Streams it, or a range of it.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the object store refuses or has no such
    /// bytes; errors of later parts come with the stream.
    pub async fn stream(
        &self,
        store: &Store,
        range: Option<Range<u64>>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let Some(parts) = &self.parts else { return store.objects().stream(&self.key, range).await };
        let pieces = parts.layout.pieces(range.unwrap_or(0..self.size));
        let mut pieces = pieces.into_iter().map(|piece| match piece {
            Piece::Skeleton(range) => (self.key.clone(), range),
            Piece::Member(index, range) => (parts.keys[index].clone(), range),
        });
        let Some((key, range)) = pieces.next() else { return Ok(stream::empty().boxed()) };
        // The first part says whether the store answers, before anything is sent.
        let first = store.objects().stream(&key, Some(range)).await?;
        let store = store.clone();
        let rest = stream::iter(pieces.collect::<Vec<_>>())
            .then(move |(key, range)| {
                let store = store.clone();
                async move { store.objects().stream(&key, Some(range)).await }
            })
            .try_flatten();
        Ok(first.chain(rest).boxed())
    }

    /// A range of it, whole in memory.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the object store refuses or the range is
    /// not there.
    pub async fn read(&self, store: &Store, range: Range<u64>) -> Result<Bytes> {
        if self.parts.is_none() {
            return store.objects().get_range(&self.key, range).await;
        }
        let mut bytes = BytesMut::new();
        let mut pieces = self.stream(store, Some(range)).await?;
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece?);
        }
        Ok(bytes.freeze())
    }
}
