//! Evidence packs: everything an ingest request tells about its attempts
//! beyond the hot columns, as independent zstd frames one behind the other, one
//! frame per attempt. A frame stands alone, so one ranged read returns one attempt.
//!
//! A large pack is an object. A small one is kept beside its row, where it
//! costs neither an object nor a transaction of its own: running clients send a
//! few results at a time. After the end of their run such packs are joined into
//! one object ([`joining`]), unless all of them together are hardly worth one.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Range;

use bytes::Bytes;
use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{PackId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::{Bulk, Column, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, Store, StoreError, boxed, unclaimed};

mod dictionary;
pub mod joining;

statements! {
    /// Where packs lie, and some of their parts when those are beside their rows. PK
    PARTS = "SELECT p.id, p.key, p.base, b.bytes FROM packs p LEFT JOIN pack_bytes b \
        ON b.project_id = p.project_id AND b.pack_id = p.id AND b.part BETWEEN $3 AND $4 \
        WHERE p.project_id = $1 AND p.id in_ints($2) ORDER BY p.id, b.part",
        postgres "SELECT p.id, p.key, p.base, b.bytes FROM unnest($2::bigint[]) AS asked(id) \
        CROSS JOIN LATERAL (SELECT * FROM packs WHERE project_id = $1 AND id BETWEEN asked.id AND asked.id \
            ORDER BY id LIMIT 1) AS p \
        LEFT JOIN LATERAL (SELECT part, bytes FROM pack_bytes WHERE project_id = $1 AND pack_id = p.id \
            AND part BETWEEN $3 AND $4 OFFSET 0) AS b ON true \
        ORDER BY p.id, b.part";
    /// A pack: of an object that has been written, or without a key of bytes beside it.
    INSERT = "INSERT INTO packs (id, project_id, run_id, key, size, slices, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    /// Removes a pack. PK
    DELETE = "DELETE FROM packs WHERE project_id = $1 AND id = $2 RETURNING key";
    /// Removes the bytes of a pack that has no object. PK
    DELETE_BYTES = "DELETE FROM pack_bytes WHERE project_id = $1 AND pack_id = $2";
    /// Bytes of evidence of a run. ix: packs_of_run
    SIZE_OF_RUN = "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM packs WHERE project_id = $1 AND run_id = $2";
}

/// Bytes of a pack that has no object, part by part.
static INSERT_PARTS: Bulk = Bulk::new(
    "evidence::INSERT_PARTS",
    2,
    "INSERT INTO pack_bytes (project_id, pack_id, part, bytes) SELECT $1, $2, r.part, r.bytes FROM",
    &[Column::Int("part"), Column::Bytes("bytes")],
    "WHERE true",
);

pub(crate) static BULKS: &[&Bulk] = &[&INSERT_PARTS];

/// Bytes of each part but the last.
const PART_BYTES: usize = 7_000;
/// Most bytes of a pack that is kept beside its row: what a client sends while
/// it runs is far below.
const MOST_IN_ROW: usize = 128 * 1024;
/// An attempt's evidence inflates to less than this; its parts are capped.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// A pack being filled.
#[derive(Default)]
pub struct PackWriter {
    bytes: Vec<u8>,
    slices: i64,
}

impl std::fmt::Debug for PackWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackWriter({} slices, {} bytes)", self.slices, self.bytes.len())
    }
}

/// Where a frame lies in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Offset of the first byte.
    pub offset: i64,
    /// Number of bytes.
    pub length: i64,
}

impl Frame {
    /// The frame within a pack whose id is now known.
    #[must_use]
    pub const fn in_pack(self, pack: PackId) -> EvidenceSlice {
        EvidenceSlice { pack, offset: self.offset, length: self.length }
    }
}

impl PackWriter {
    /// Adds the evidence of one attempt.
    ///
    /// # Errors
    /// [`StoreError::Upload`] when it cannot be compressed.
    pub fn add(&mut self, evidence: &Evidence) -> Result<Frame> {
        let json = serde_json::to_vec(evidence).map_err(io::Error::from)?;
        let frame = dictionary::compress(&json)?;
        let offset = as_i64(self.bytes.len())?;
        self.bytes.extend_from_slice(&frame);
        self.slices += 1;
        Ok(Frame { offset, length: as_i64(frame.len())? })
    }

    /// The pack with all that was added.
    #[must_use]
    pub fn filled(self) -> FilledPack {
        FilledPack { bytes: self.bytes, slices: self.slices }
    }
}

/// A pack that is nowhere yet.
#[derive(Default)]
pub struct FilledPack {
    bytes: Vec<u8>,
    slices: i64,
}

impl std::fmt::Debug for FilledPack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FilledPack({} slices, {} bytes)", self.slices, self.bytes.len())
    }
}

impl FilledPack {
    /// Whether it is small enough to be kept beside its row.
    #[must_use]
    pub fn fits_in_row(&self) -> bool {
        self.bytes.len() <= MOST_IN_ROW
    }

    /// Bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps it beside its row, under an id that was taken for it, in the
    /// transaction that points at it.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn keep(
        &self,
        session: &mut Session,
        (project, run): (ProjectId, RunId),
        id: PackId,
        now: Timestamp,
    ) -> Result<()> {
        let size = as_i64(self.bytes.len())?;
        session.write(&INSERT, args![id, project, run, IN_ROW, size, self.slices, now]).await?;
        insert_parts(session, project, id, &self.bytes).await
    }

    /// Writes the object of a pack that was announced. Its row follows with
    /// [`record`], in the transaction that points at it; without one it is
    /// swept a day later.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the object store refuses.
    pub async fn write(self, store: &Store, announced: AnnouncedPack) -> Result<WrittenPack> {
        let AnnouncedPack { id, key } = announced;
        let size = as_i64(self.bytes.len())?;
        store.objects().put(&key, Bytes::from(self.bytes)).await?;
        Ok(WrittenPack { id, key, size, slices: self.slices })
    }
}

/// The numbers of the parts that so many bytes of a pack beside its row have, and
/// how many bytes each of them.
pub(crate) fn parts_of(bytes: i64) -> Result<(Vec<i64>, i64)> {
    let of_each = as_i64(PART_BYTES)?;
    let last = (bytes - 1).div_euclid(of_each);
    Ok(((0..=last).collect(), of_each))
}

fn as_i64(n: impl TryInto<i64>) -> Result<i64> {
    n.try_into().map_err(|_| StoreError::Damaged("a size beyond 63 bits"))
}

/// Puts bytes beside the row of a pack.
pub(crate) async fn insert_parts(
    session: &mut Session,
    project: ProjectId,
    id: PackId,
    bytes: &[u8],
) -> Result<()> {
    let mut rows = INSERT_PARTS.rows();
    for (part, bytes) in (0_i64..).zip(bytes.chunks(PART_BYTES)) {
        rows.push([part.into(), bytes.into()]);
    }
    session.execute_bulk(&INSERT_PARTS, args![project, id], rows).await
}

/// The key of packs that have no object.
pub(crate) const IN_ROW: &str = "";

/// Where the bytes of a pack lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackPlace {
    /// Beside its row.
    Row,
    /// In an object, which packs of one run may share, from a byte on.
    Object {
        /// Key of the object.
        key: String,
        /// Its first byte of the pack.
        base: i64,
    },
}

impl PackPlace {
    pub(crate) fn new(key: String, base: i64) -> Self {
        if key == IN_ROW { Self::Row } else { Self::Object { key, base } }
    }

    /// The columns that say so.
    pub(crate) fn columns(&self) -> (&str, i64) {
        match self {
            Self::Row => (IN_ROW, 0),
            Self::Object { key, base } => (key, *base),
        }
    }
}

/// Takes ids for packs that will be kept beside their rows.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn take_ids(session: &mut Session, count: usize) -> Result<Vec<PackId>> {
    Ok(ids::allocate(session, Kind::Pack, count).await?.into_iter().map(PackId).collect())
}

/// Takes an id for a pack that will be kept beside its row.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn take_id(session: &mut Session) -> Result<PackId> {
    Ok(PackId(ids::allocate_one(session, Kind::Pack).await?))
}

/// A pack whose object is about to be written.
#[derive(Debug, Clone)]
pub struct AnnouncedPack {
    /// Id.
    pub id: PackId,
    key: String,
}

impl AnnouncedPack {
    /// Key of the object.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Names an object of a run's evidence before it is written, so that it is found
/// whatever happens next. From a transaction that is committed before.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn announce(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    now: Timestamp,
) -> Result<AnnouncedPack> {
    let id = take_id(session).await?;
    let key = format!("project-{project}/packs/{run}/{id}.zst");
    unclaimed::announce(session, project, &key, now).await?;
    Ok(AnnouncedPack { id, key })
}

/// A pack whose object exists and whose row does not yet.
#[derive(Debug, Clone)]
pub struct WrittenPack {
    /// Id.
    pub id: PackId,
    key: String,
    size: i64,
    slices: i64,
}

/// Removes a pack that turned out to hold nothing new.
///
/// # Errors
/// [`StoreError::Storage`] when the object store refuses.
pub async fn discard(store: &Store, pack: &WrittenPack) -> Result<()> {
    remove(store, &pack.key).await
}

/// Deletes an announced object that nothing points at.
async fn remove(store: &Store, key: &str) -> Result<()> {
    store.objects().delete(key).await?;
    let mut session = store.db().begin().await?;
    unclaimed::forget(&mut session, key).await?;
    session.commit().await
}

/// Makes a written pack part of its run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn record(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    pack: &WrittenPack,
    now: Timestamp,
) -> Result<()> {
    unclaimed::claim(session, &pack.key, now).await?;
    session.write(&INSERT, args![pack.id, project, run, &pack.key, pack.size, pack.slices, now]).await?;
    Ok(())
}

/// Lets go of a pack that no row points at: nothing in it was news.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn let_go(session: &mut Session, project: ProjectId, pack: PackId, now: Timestamp) -> Result<()> {
    let row = session.first(&DELETE, args![project, pack]).await?;
    match row.map(|row| row.reader().text()).transpose()? {
        Some(key) if key == IN_ROW => session.write(&DELETE_BYTES, args![project, pack]).await,
        // An object that it was joined into holds others, and has another name.
        Some(key) if key.ends_with(&format!("/{pack}.zst")) => {
            unclaimed::abandon(session, project, &key, now).await
        }
        _ => Ok(()),
    }
}

/// Reads the evidence of one attempt with one ranged read.
///
/// # Errors
/// As [`Located::read`].
#[boxed]
pub async fn read(store: &Store, project: ProjectId, slice: &EvidenceSlice) -> Result<Evidence> {
    let mut session = store.db().read().await?;
    let located = locate(&mut session, project, std::slice::from_ref(slice)).await?;
    drop(session);
    located.read(store, slice).await
}

/// Where the packs of some slices lie, with the bytes of those that are beside
/// their rows.
#[derive(Debug)]
pub struct Located {
    packs: HashMap<PackId, LocatedPack>,
    /// The first part that was read.
    first: u64,
}

#[derive(Debug)]
struct LocatedPack {
    place: PackPlace,
    /// Beside the row: its parts from the first that was read.
    bytes: Vec<u8>,
}

/// Finds the packs of some slices, in one statement: those that read evidence
/// of many attempts take what is beside the rows along.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn locate(session: &mut Session, project: ProjectId, slices: &[EvidenceSlice]) -> Result<Located> {
    // Whoever reads one that cannot be is told so then.
    let ranges: Vec<Range<u64>> = slices.iter().filter_map(|slice| range(0, slice).ok()).collect();
    let first = ranges.iter().map(|range| range.start / PART_BYTES as u64).min().unwrap_or_default();
    let last = ranges.iter().map(|range| range.end.saturating_sub(1) / PART_BYTES as u64).max();
    let (first_part, last_part) = (as_i64(first)?, as_i64(last.unwrap_or_default())?);
    let mut packs: HashMap<PackId, LocatedPack> = HashMap::new();
    if slices.is_empty() {
        return Ok(Located { packs, first });
    }
    let ids: BTreeSet<i64> = slices.iter().map(|slice| slice.pack.get()).collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    for row in session.all(&PARTS, args![project, ids, first_part, last_part]).await? {
        let mut r = row.reader();
        let (id, place) = (PackId(r.int()?), PackPlace::new(r.text()?, r.int()?));
        let bytes = r.opt_bytes()?.unwrap_or_default();
        packs
            .entry(id)
            .or_insert_with(|| LocatedPack { place, bytes: Vec::new() })
            .bytes
            .extend_from_slice(&bytes);
    }
    Ok(Located { packs, first })
}

impl Located {
    /// The evidence of one of the slices.
    ///
    /// # Errors
    /// [`StoreError::Storage`] when the object store refuses,
    /// [`StoreError::Damaged`] when the frame is not what was written.
    #[boxed]
    pub async fn read(&self, store: &Store, slice: &EvidenceSlice) -> Result<Evidence> {
        let pack =
            self.packs.get(&slice.pack).ok_or(StoreError::Damaged("an evidence pack without a row"))?;
        match &pack.place {
            PackPlace::Row => evidence_in(self.within(pack, slice)?),
            PackPlace::Object { key, base } => {
                evidence_in(&store.objects().get_range(key, range(*base, slice)?).await?)
            }
        }
    }

    fn within<'p>(&self, pack: &'p LocatedPack, slice: &EvidenceSlice) -> Result<&'p [u8]> {
        let Range { start, end } = range(0, slice)?;
        let place = |at: u64| usize::try_from(at.checked_sub(self.first * PART_BYTES as u64)?).ok();
        let cut = place(start).zip(place(end)).and_then(|(start, end)| pack.bytes.get(start..end));
        cut.ok_or(StoreError::Damaged("an evidence pack without all of its parts"))
    }
}

/// The evidence that a frame holds.
fn evidence_in(frame: &[u8]) -> Result<Evidence> {
    let json = dictionary::decompress(frame, MAX_FRAME_BYTES)
        .map_err(|_| StoreError::Damaged("an evidence frame"))?;
    serde_json::from_slice(&json).map_err(|_| StoreError::Damaged("an evidence frame"))
}

/// Where a slice lies in an object that holds its pack from a byte on.
fn range(base: i64, slice: &EvidenceSlice) -> Result<Range<u64>> {
    let start = u64::try_from(base + slice.offset).map_err(|_| StoreError::Damaged("an evidence offset"))?;
    let length = u64::try_from(slice.length).map_err(|_| StoreError::Damaged("an evidence length"))?;
    Ok(start..start + length)
}

/// Bytes of evidence that a run holds.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn size_of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<i64> {
    session.one(&SIZE_OF_RUN, args![project, run]).await?.reader().int()
}
