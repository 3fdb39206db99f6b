//! Small packs of a run on their way into one object. Nothing that points at a
//! pack changes: its row says where its bytes begin from now on.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_domain::ids::{PackId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use super::{announce, as_i64, remove};
use crate::db::{Bulk, Column, Session, args, statements};
use crate::{Result, Store, StoreError, runs, storage, unclaimed};

statements! {
    /// Bytes of a run's packs that have no object. ix: packs_of_run
    WAITING_BYTES = "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM packs WHERE project_id = $1 AND run_id = $2 AND key = ''";
    /// Packs of a run that have no object. ix: packs_of_run
    WAITING = "SELECT id, size FROM packs WHERE project_id = $1 AND run_id = $2 AND key = '' ORDER BY id LIMIT $3";
    /// Those of them among some.
    STILL_WAITING = "SELECT id, size FROM packs WHERE project_id = $1 AND run_id = $2 AND id in_ints($3) AND key = '' ORDER BY id";
    /// Parts of some packs. PK
    PARTS = "SELECT pack_id, bytes FROM pack_bytes WHERE project_id = $1 AND pack_id in_ints($2) ORDER BY pack_id, part";
    /// Bytes that lie in an object. PK
    DELETE_BYTES = "DELETE FROM pack_bytes WHERE project_id = $1 AND pack_id in_ints($2)";
}

/// Packs lie in an object from now on. PK
static MOVE: Bulk = Bulk::new(
    "evidence::MOVE",
    2,
    "UPDATE packs SET key = $2, base = r.base FROM",
    &[Column::Int("id"), Column::Int("base")],
    "WHERE packs.project_id = $1 AND packs.id = r.id",
);

pub(crate) static BULKS: &[&Bulk] = &[&MOVE];

/// Bytes that are hardly worth an object: as many stay in the database for as
/// long as their run does.
const WORTH_AN_OBJECT: i64 = 16 * 1024;
/// Bytes of one object, about: they are in memory while it is written.
const OF_AN_OBJECT: i64 = 8 * 1024 * 1024;
/// Packs of one object.
const PACKS: i64 = 2_000;

/// Whether packs of a run without an object are worth one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn is_worth_it(session: &mut Session, project: ProjectId, run: RunId) -> Result<bool> {
    let bytes = session.one(&WAITING_BYTES, args![project, run]).await?.reader().int()?;
    Ok(bytes > WORTH_AN_OBJECT)
}

/// Joins packs of a run into one object; `false` when there was nothing to do,
/// or the run is gone.
///
/// # Errors
/// [`StoreError::Storage`] when the object store refuses, [`StoreError::Busy`]
/// when packs changed meanwhile: then nothing is different.
pub async fn join(store: &Store, project: ProjectId, run: RunId, now: Timestamp) -> Result<bool> {
    let mut session = store.db().read().await?;
    if !is_worth_it(&mut session, project, run).await? {
        return Ok(false);
    }
    // A run on its way out still has its packs for a while.
    if runs::get(&mut session, project, run).await?.is_none() {
        return Ok(false);
    }
    let mut packs = waiting(&mut session, project, run).await?;
    let mut size = 0;
    let fitting = packs.iter().take_while(|(_, bytes)| {
        let fits = size < OF_AN_OBJECT;
        size += bytes;
        fits
    });
    let fitting = fitting.count();
    packs.truncate(fitting);
    let joined = joined(&mut session, project, &packs).await?;
    drop(session);

    let mut session = store.db().begin().await?;
    let announced = announce(&mut session, project, run, now).await?;
    session.commit().await?;
    let key = announced.key();
    store.objects().put(key, joined).await?;
    let moved = point(store, (project, run), &packs, key, now).await;
    if matches!(moved, Ok(false) | Err(StoreError::Busy(_))) {
        remove(store, key).await?;
    }
    moved
}

type Pack = (PackId, i64);

fn ids(packs: &[Pack]) -> Vec<i64> {
    packs.iter().map(|(id, _)| id.get()).collect()
}

async fn waiting(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<Pack>> {
    read_packs(&session.all(&WAITING, args![project, run, PACKS]).await?)
}

fn read_packs(rows: &[crate::db::Row]) -> Result<Vec<Pack>> {
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((PackId(r.int()?), r.int()?))
        })
        .collect()
}

/// The bytes of some packs, one behind the other.
async fn joined(session: &mut Session, project: ProjectId, packs: &[Pack]) -> Result<Bytes> {
    let rows = session.all(&PARTS, args![project, ids(packs)]).await?;
    let mut joined = Vec::new();
    let mut found: BTreeMap<PackId, i64> = BTreeMap::new();
    for row in rows {
        let mut r = row.reader();
        let (id, bytes) = (PackId(r.int()?), r.bytes()?);
        *found.entry(id).or_default() += as_i64(bytes.len())?;
        joined.extend_from_slice(&bytes);
    }
    if found.into_iter().eq(packs.iter().copied()) { Ok(Bytes::from(joined)) } else { Err(changed()) }
}

fn changed() -> StoreError {
    StoreError::Busy("packs that changed while they were joined")
}

/// Lets the rows of packs say that they lie in an object; `false` when their
/// run is gone.
async fn point(
    store: &Store,
    (project, run): (ProjectId, RunId),
    packs: &[Pack],
    key: &str,
    now: Timestamp,
) -> Result<bool> {
    let mut session = store.db().begin().await?;
    // Whoever shortens packs holds the run as well.
    match runs::lock(&mut session, project, run).await {
        Err(StoreError::RunGone) => return Ok(false),
        run => run?,
    };
    let still = session.all(&STILL_WAITING, args![project, run, ids(packs)]).await?;
    if read_packs(&still)? != packs {
        return Err(changed());
    }
    unclaimed::claim(&mut session, key, now).await?;
    let (mut rows, mut base) = (MOVE.rows(), 0);
    for (id, size) in packs {
        rows.push([id.get().into(), base.into()]);
        base += size;
    }
    session.execute_bulk(&MOVE, args![project, key], rows).await?;
    session.write(&DELETE_BYTES, args![project, ids(packs)]).await?;
    storage::recount_run(&mut session, project, run, now).await?;
    session.commit().await?;
    Ok(true)
}
