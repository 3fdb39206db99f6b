//! What running clients sent, from its acknowledgement until it is worked into
//! its run.
//!
//! A client waits for the one row that keeps its call. What follows from it
//! costs much less for many calls together, and is done a moment later by
//! whichever process comes first.

use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Bulk, Column, Read, Row, Session, Statement, args, statements};
use crate::ids::Listed;
use crate::{Result, StoreError};

statements! {
    /// Calls of a run in the order in which they came. ix: run_intake_of_run
    OF_RUN = "SELECT id, slot_id, at, pack_id, body FROM run_intake WHERE project_id = $1 AND run_id = $2 AND refusals < $4 ORDER BY id LIMIT $3";
    /// Whether a call of a run waits. ix: run_intake_of_run
    IS_WAITING = "SELECT 1 FROM run_intake WHERE project_id = $1 AND run_id = $2 AND refusals < $3 LIMIT 1";
    /// Runs of which calls wait. ix: run_intake_of_run
    WAITING = "SELECT DISTINCT project_id, run_id FROM run_intake WHERE refusals < $2 ORDER BY project_id, run_id LIMIT $1";
    /// Calls that are worked in. PK
    REMOVE = "DELETE FROM run_intake WHERE id in_ints($1)";
    /// Notes that a call could not be worked in. PK
    REFUSE = "UPDATE run_intake SET refusals = refusals + 1 WHERE id = $1 RETURNING refusals";
    /// Attempts that were sent before. PK
    KNOWN = "SELECT k.key FROM id_directory d JOIN run_intake_keys k ON k.project_id = d.project_id AND k.run_id = d.id \
        WHERE d.kind = $1 AND d.id = $2 AND k.key in_ints($3)";
    /// Forgets which attempts of a run were sent. PK
    FORGET = "DELETE FROM run_intake_keys WHERE project_id = $1 AND run_id = $2";
}

/// A call; on PostgreSQL with its attempts, so that it takes one way there and
/// back and a transaction of its own.
static ADD: Statement = Statement::of_each(
    "intake::ADD",
    "INSERT INTO run_intake (project_id, run_id, slot_id, at, pack_id, body) VALUES ($1, $2, $3, $4, $5, $6)",
    "WITH keys AS (INSERT INTO run_intake_keys (project_id, run_id, key) SELECT $1, $2, unnest($7::bigint[]) \
     ON CONFLICT DO NOTHING) \
     INSERT INTO run_intake (project_id, run_id, slot_id, at, pack_id, body) VALUES ($1, $2, $3, $4, $5, $6)",
);

/// The statements that the engines need worded differently.
pub(crate) static WORDED_APART: &[&Statement] = &[&ADD];

static ADD_KEYS: Bulk = Bulk::new(
    "intake::ADD_KEYS",
    0,
    "INSERT INTO run_intake_keys (project_id, run_id, key) SELECT r.project_id, r.run_id, r.key FROM",
    &[Column::Int("project_id"), Column::Int("run_id"), Column::Int("key")],
    "WHERE true ON CONFLICT DO NOTHING",
);

pub(crate) static BULKS: &[&Bulk] = &[&ADD_KEYS];

/// How often a call is tried that cannot be worked in.
const MOST_REFUSALS: i64 = 3;
/// Speed over ratio: a client waits.
const COMPRESSION_LEVEL: i32 = 1;
/// No body is larger: what clients send is bounded.
const MAX_BODY_BYTES: usize = 512 * 1024 * 1024;

/// What a client sent in one call.
#[derive(Debug)]
pub struct NewCall {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// The slot of the client.
    pub slot: SlotId,
    /// When it came.
    pub at: Timestamp,
    /// The pack of its evidence.
    pub pack: Option<PackId>,
    /// What it brought, compressed.
    pub body: Vec<u8>,
    /// Its attempts, for [`known_read`].
    pub keys: Vec<i64>,
}

/// A call that waits.
#[derive(Debug)]
pub struct WaitingCall {
    /// Its place in the order in which they came.
    pub id: i64,
    /// The slot of the client.
    pub slot: SlotId,
    /// When it came.
    pub at: Timestamp,
    /// The pack of its evidence.
    pub pack: Option<PackId>,
    /// What it brought, compressed.
    pub body: Vec<u8>,
}

/// The bytes of a body.
///
/// # Errors
/// [`StoreError::Upload`] when they cannot be compressed.
pub fn compress(json: &[u8]) -> Result<Vec<u8>> {
    Ok(zstd::bulk::compress(json, COMPRESSION_LEVEL)?)
}

/// What [`compress`] made the bytes of.
///
/// # Errors
/// [`StoreError::Damaged`] when they are something else.
pub fn decompress(body: &[u8]) -> Result<Vec<u8>> {
    let size = zstd::bulk::Decompressor::upper_bound(body).filter(|size| *size <= MAX_BODY_BYTES);
    size.and_then(|size| zstd::bulk::decompress(body, size).ok())
        .ok_or(StoreError::Damaged("results that wait"))
}

/// Keeps calls. On PostgreSQL it may be outside of a transaction for one call.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn add(session: &mut Session, calls: Vec<NewCall>) -> Result<()> {
    let mut rows = ADD_KEYS.rows();
    let is_apart = session.backend() == Backend::Sqlite;
    for NewCall { project, run, slot, at, pack, body, keys } in calls {
        let mut args = args![project, run, slot, at, pack.map(PackId::get), body];
        if is_apart {
            for key in keys {
                rows.push([project.into(), run.into(), key.into()]);
            }
        } else {
            args.push(keys.into());
        }
        session.write(&ADD, args).await?;
    }
    session.execute_bulk(&ADD_KEYS, args![], rows).await
}

/// At most `limit` calls of a run that wait, in the order in which they came.
/// The run is locked: whoever works them in holds it.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    limit: i64,
) -> Result<Vec<WaitingCall>> {
    let rows = session.all(&OF_RUN, args![project, run, limit, MOST_REFUSALS]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let (id, slot, at) = (r.int()?, SlotId(r.int()?), r.time()?);
            Ok(WaitingCall { id, slot, at, pack: r.opt_int()?.map(PackId), body: r.bytes()? })
        })
        .collect()
}

/// Whether a call of a run waits.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn is_waiting(session: &mut Session, project: ProjectId, run: RunId) -> Result<bool> {
    Ok(session.first(&IS_WAITING, args![project, run, MOST_REFUSALS]).await?.is_some())
}

/// At most `limit` runs of which calls wait.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn waiting(session: &mut Session, limit: i64) -> Result<Vec<(ProjectId, RunId)>> {
    let rows = session.all(&WAITING, args![limit, MOST_REFUSALS]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), RunId(r.int()?)))
        })
        .collect()
}

/// Notes that a call could not be worked in although nothing hindered that but
/// itself; whether it is set aside now, so that others go on. It stays stored.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn refuse(session: &mut Session, id: i64) -> Result<bool> {
    let row = session.first(&REFUSE, args![id]).await?;
    Ok(row.map(|row| row.reader().int()).transpose()?.is_some_and(|refusals| refusals >= MOST_REFUSALS))
}

/// Lets go of calls that are worked in.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn remove(session: &mut Session, ids: Vec<i64>) -> Result<()> {
    session.write(&REMOVE, args![ids]).await
}

/// What [`read_known`] reads: which of some attempts were sent to a run before.
pub(crate) fn known_read(run: RunId, keys: Vec<i64>) -> Read {
    (&KNOWN, args![Listed::Run as i64, run, keys])
}

/// The attempts that were sent before.
pub(crate) fn read_known(rows: &[Row]) -> Result<Vec<i64>> {
    rows.iter().map(|row| row.reader().int()).collect()
}

/// Forgets which attempts of a run were sent: its results tell.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn forget(session: &mut Session, project: ProjectId, run: RunId) -> Result<()> {
    session.write(&FORGET, args![project, run]).await
}
