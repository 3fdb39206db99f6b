//! What running clients sent, from its acknowledgement until it is worked into
//! its run.
//!
//! A client waits for the one row that keeps its call. What follows from it
//! costs much less for many calls together, and is done a moment later by
//! whichever process comes first.
//!
//! On PostgreSQL calls go in the transaction that works them in. On SQLite they are
//! in [a file of their own](crate::db), of which the transaction of the run writes
//! nothing: it notes on the [slot](crate::runs::slots::SlotRow::worked_in) up to which
//! of its calls it came, and those are removed after it. What a process that ended in
//! between has left is known by that, and is not worked in again.

use std::borrow::Cow;

use callboard_domain::ids::{PackId, ProjectId, RunId, SlotId};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Bulk, Column, Db, Read, Row, Session, Statement, args, statements};
use crate::evidence;
use crate::ids::Listed;
use crate::runs::slots::SlotRow;
use crate::runs::tokens::{TokenHash, feeding_client, is_minter_ok, run_and_token};
use crate::{Result, StoreError, compression};

/// On SQLite, whether a call `i` is worked in, and not removed yet.
macro_rules! is_worked_in {
    () => {
        "EXISTS (SELECT 1 FROM run_slots s WHERE s.project_id = i.project_id AND s.id = i.slot_id AND s.worked_in >= i.id)"
    };
}

statements! {
    /// Calls of a run in the order in which they came. ix: run_intake_of_run
    OF_RUN = concat!("SELECT id, slot_id, at, pack_id, CAST(length(evidence) AS BIGINT), \
        CASE WHEN length(body) <= $5 THEN body END FROM run_intake i WHERE project_id = $1 AND run_id = $2 AND refusals < $4 AND NOT ", is_worked_in!(), " ORDER BY id LIMIT $3"),
        postgres "SELECT id, slot_id, at, pack_id, CAST(length(evidence) AS BIGINT), \
        CASE WHEN length(body) <= $5 THEN body END FROM run_intake WHERE project_id = $1 AND run_id = $2 AND refusals < $4 ORDER BY id LIMIT $3";
    /// The body of one call. PK
    BODY = "SELECT body FROM run_intake WHERE id = $1 AND project_id = $2 AND run_id = $3";
    /// The first and the last call of a run that wait. ix: run_intake_of_run
    SPAN = concat!("SELECT MIN(id), MAX(id) FROM run_intake i WHERE project_id = $1 AND run_id = $2 AND refusals < $3 AND NOT ",
        is_worked_in!()),
        postgres "SELECT MIN(id), MAX(id) FROM run_intake WHERE project_id = $1 AND run_id = $2 AND refusals < $3";
    /// Runs of which calls wait. ix: run_intake_of_run
    WAITING = concat!("SELECT DISTINCT project_id, run_id FROM run_intake i WHERE refusals < $2 AND NOT ", is_worked_in!(),
        " ORDER BY project_id, run_id LIMIT $1"),
        postgres "SELECT DISTINCT project_id, run_id FROM run_intake WHERE refusals < $2 ORDER BY project_id, run_id LIMIT $1";
    /// Calls of a run that are worked in, as their transaction removes them. PK
    REMOVE = "DELETE FROM run_intake WHERE id in_ints($3) AND project_id = $1 AND run_id = $2";
    /// Calls of a run that is gone. ix: run_intake_of_run
    REMOVE_ALL = "DELETE FROM run_intake WHERE project_id = $1 AND run_id = $2";
    /// Notes that a call could not be worked in: SQLite gives ids that are free again to calls of others. PK
    REFUSE = "UPDATE run_intake SET refusals = refusals + 1 WHERE id = $1 AND run_id = $2 RETURNING refusals";
    /// Attempts that were sent before. PK
    KNOWN = "SELECT k.key FROM id_directory d JOIN run_intake_keys k ON k.project_id = d.project_id AND k.run_id = d.id \
        WHERE d.kind = $1 AND d.id = $2 AND k.key in_ints($3)";
    /// The evidence of calls becomes packs beside their rows: bytes of parts that have so many. PK
    PACK_BYTES = "INSERT INTO pack_bytes (project_id, pack_id, part, bytes) \
        SELECT i.project_id, i.pack_id, k.value, substr(i.evidence, k.value * $5 + 1, $5) FROM run_intake i CROSS JOIN json_each($4) k \
        WHERE i.id in_ints($3) AND i.project_id = $1 AND i.run_id = $2 AND k.value * $5 < length(i.evidence)",
        postgres "INSERT INTO pack_bytes (project_id, pack_id, part, bytes) \
        SELECT i.project_id, i.pack_id, k.part, substr(i.evidence, (k.part * $5::bigint + 1)::integer, $5::integer) \
        FROM run_intake i CROSS JOIN unnest($4::bigint[]) AS k (part) \
        WHERE i.id in_ints($3) AND i.project_id = $1 AND i.run_id = $2 AND k.part * $5::bigint < length(i.evidence)";
    /// Forgets which attempts of a run were sent. PK
    FORGET = "DELETE FROM run_intake_keys WHERE project_id = $1 AND run_id = $2";
}

/// On SQLite, the place of a call behind all that wait, and behind all of its slot that
/// are worked in: that is what tells it from them.
macro_rules! next_place {
    ($project:literal, $slot:literal) => {
        concat!(
            "1 + MAX(COALESCE((SELECT MAX(id) FROM run_intake), 0), \
             COALESCE((SELECT worked_in FROM run_slots WHERE project_id = ",
            $project,
            " AND id = ",
            $slot,
            "), 0))"
        )
    };
}

/// A call; on PostgreSQL with its attempts, so that it takes one way there and
/// back and a transaction of its own.
static ADD: Statement = Statement::of_each(
    "intake::ADD",
    concat!(
        "INSERT INTO run_intake (id, project_id, run_id, slot_id, at, pack_id, evidence, body) VALUES (",
        next_place!("$1", "$3"),
        ", $1, $2, $3, $4, $5, $6, $7)"
    ),
    "WITH keys AS (INSERT INTO run_intake_keys (project_id, run_id, key) SELECT $1, $2, unnest($8::bigint[]) \
     ON CONFLICT DO NOTHING) \
     INSERT INTO run_intake (project_id, run_id, slot_id, at, pack_id, evidence, body) VALUES ($1, $2, $3, $4, $5, $6, $7)",
);

/// A call of a client who may bring it: a row for it, and none for anybody else. On
/// PostgreSQL its evidence gets the id of its pack here, and its attempts go with it,
/// of which the answer says how many are new.
static ADD_OF_CLIENT: Statement = Statement::of_each(
    "intake::ADD_OF_CLIENT",
    concat!(
        "INSERT INTO run_intake (id, project_id, run_id, slot_id, at, body, evidence, pack_id) SELECT ",
        next_place!("r.project_id", "t.slot_id"),
        ", r.project_id, r.id, t.slot_id, $4, $5, $6, $7 ",
        feeding_client!(),
        " RETURNING project_id, slot_id"
    ),
    concat!(
        "WITH kept AS (INSERT INTO run_intake (project_id, run_id, slot_id, at, body, evidence, pack_id) \
           SELECT r.project_id, r.id, t.slot_id, $4::bigint, $5::bytea, $6::bytea, \
             CASE WHEN $6::bytea IS NOT NULL THEN nextval('ids_pack') END ",
        feeding_client!(),
        " RETURNING project_id, run_id, slot_id), \
         new AS (INSERT INTO run_intake_keys (project_id, run_id, key) SELECT project_id, run_id, unnest($7::bigint[]) FROM kept \
           ON CONFLICT DO NOTHING RETURNING key) \
         SELECT project_id, slot_id, (SELECT count(*) FROM new) FROM kept"
    ),
);
/// Calls of a run that are worked in; those that were set aside before stay.
static REMOVE_WORKED_IN: Statement = Statement::new(
    "intake::REMOVE_WORKED_IN",
    concat!(
        "DELETE FROM run_intake AS i WHERE project_id = $1 AND run_id = $2 AND refusals < $3 AND ",
        is_worked_in!()
    ),
);
/// Attempts of the call that was added by the statement before, if it was.
static ADD_KEYS_OF_CLIENT: Statement = Statement::new(
    "intake::ADD_KEYS_OF_CLIENT",
    "INSERT INTO run_intake_keys (project_id, run_id, key) SELECT i.project_id, i.run_id, k.value \
     FROM run_intake i, json_each($1) k WHERE changes() = 1 AND i.id = last_insert_rowid() \
     ON CONFLICT DO NOTHING",
);

/// The statements that the engines need worded differently.
pub(crate) static WORDED_APART: &[&Statement] = &[&ADD, &ADD_OF_CLIENT];

/// The statements that PostgreSQL has no need of.
pub(crate) static SQLITE_ALONE: &[&Statement] = &[&REMOVE_WORKED_IN, &ADD_KEYS_OF_CLIENT];

static ADD_KEYS: Bulk = Bulk::new(
    "intake::ADD_KEYS",
    0,
    "INSERT INTO run_intake_keys (project_id, run_id, key) SELECT r.project_id, r.run_id, r.key FROM",
    &[Column::Int("project_id"), Column::Int("run_id"), Column::Int("key")],
    "WHERE true ON CONFLICT DO NOTHING",
);

/// The evidence of calls becomes packs: their rows.
static ADD_PACKS: Bulk = Bulk::new(
    "intake::ADD_PACKS",
    2,
    "INSERT INTO packs (id, project_id, run_id, key, size, slices, created_at) \
     SELECT i.pack_id, i.project_id, i.run_id, '', length(i.evidence), r.slices, i.at FROM",
    &[Column::Int("call"), Column::Int("slices")],
    "CROSS JOIN run_intake i WHERE i.id = r.call AND i.project_id = $1 AND i.run_id = $2",
);

pub(crate) static BULKS: &[&Bulk] = &[&ADD_KEYS, &ADD_PACKS];

/// How often a call is tried that cannot be worked in.
const MOST_REFUSALS: i64 = 3;
/// Speed over ratio: a client waits.
const COMPRESSION_LEVEL: i32 = 1;
/// Most bytes that SQLite keeps as they are: writing them is quicker than making
/// them fewer. PostgreSQL would make them fewer itself, which takes longer.
const PLAIN_BYTES: usize = 16 * 1024;
/// No body is larger: what clients send is bounded.
const MAX_BODY_BYTES: usize = 512 * 1024 * 1024;
/// Most bytes of a stored body that is read together with others.
pub const SMALL_STORED_BYTES: i64 = 32 * 1024;

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
    /// What that pack will hold, when it is made as the call is worked in.
    pub evidence: Option<Vec<u8>>,
    /// What it brought, as [`stored`] made it.
    pub body: Vec<u8>,
    /// Its attempts, for `known_read`.
    pub keys: Vec<i64>,
}

/// A call that waits.
#[derive(Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// Its place in the order in which they came.
    pub id: i64,
    /// The slot of the client.
    pub slot: SlotId,
    /// When it came.
    pub at: Timestamp,
    /// The pack of its evidence.
    pub pack: Option<PackId>,
    /// Bytes of the evidence that waits with it: that pack has still to be made, by
    /// [`make_packs`].
    pub evidence_bytes: Option<i64>,
    /// What it brought, for [`told`]; of a large one, [`body_of`] reads it.
    pub body: Option<Vec<u8>>,
}

/// The stored form of a body, which is a JSON object: itself, or compressed.
///
/// # Errors
/// [`StoreError::Upload`] when it cannot be compressed.
pub fn stored(json: Vec<u8>, backend: Backend) -> Result<Vec<u8>> {
    if backend == Backend::Sqlite && json.len() <= PLAIN_BYTES {
        return Ok(json);
    }
    Ok(compression::compress(&json, COMPRESSION_LEVEL)?)
}

/// Bytes of the body that [`stored`] took.
///
/// # Errors
/// [`StoreError::Damaged`] when it took none like that.
pub fn told_bytes(body: &[u8]) -> Result<usize> {
    if body.starts_with(b"{") {
        return Ok(body.len());
    }
    compression::content_size(body, MAX_BODY_BYTES).map_err(|_| StoreError::Damaged("results that wait"))
}

/// The body that [`stored`] took.
///
/// # Errors
/// [`StoreError::Damaged`] when it took none like that.
pub fn told(body: &[u8]) -> Result<Cow<'_, [u8]>> {
    // No frame begins like an object.
    if body.starts_with(b"{") {
        return Ok(Cow::Borrowed(body));
    }
    let json = compression::decompress(body, MAX_BODY_BYTES);
    json.map(Cow::Owned).map_err(|_| StoreError::Damaged("results that wait"))
}

/// Keeps calls, in a session [of them](Db::intake) on SQLite. On PostgreSQL it may be
/// outside of a transaction for one call.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn add(session: &mut Session, calls: Vec<NewCall>) -> Result<()> {
    let mut rows = ADD_KEYS.rows();
    let is_apart = session.backend() == Backend::Sqlite;
    for NewCall { project, run, slot, at, pack, evidence, body, keys } in calls {
        let mut args = args![project, run, slot, at, pack.map(PackId::get), evidence, body];
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

/// A call of somebody who says to be a client of a run.
#[derive(Debug)]
pub struct ClaimedCall<'a> {
    /// The run.
    pub run: RunId,
    /// The token.
    pub token: TokenHash,
    /// When it came.
    pub at: Timestamp,
    /// What it brought, as [`stored`] made it.
    pub body: &'a [u8],
    /// Its attempts.
    pub keys: &'a [i64],
    /// Its evidence.
    pub evidence: Option<&'a [u8]>,
    /// The pack that will hold it; PostgreSQL takes one itself.
    pub pack: Option<PackId>,
}

/// A call that was kept for a client of a run that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Project.
    pub project: ProjectId,
    /// The slot of the client.
    pub slot: SlotId,
    /// How many of its attempts are new.
    pub inserted: usize,
}

/// Keeps the calls of those who may bring them, each immediately on PostgreSQL and all
/// in one transaction on SQLite, which ends with it: one way to the database. `None`
/// stands for who is not seen immediately to be a client of a run that goes on, and for
/// whom nothing is kept; who that is tells
/// [`tokens::check_feeder`](crate::runs::tokens::check_feeder).
///
/// # Errors
/// [`StoreError::Database`]; on SQLite nothing is kept
/// then.
pub async fn add_of_clients(
    mut session: Session,
    calls: &[ClaimedCall<'_>],
) -> Result<Vec<Option<Admitted>>> {
    // The row of each call that is kept, and how many of its attempts are new; on PostgreSQL its row says that.
    let mut kept = Vec::with_capacity(calls.len());
    for ClaimedCall { run, token, at, body, keys, evidence, pack } in calls {
        let mut args = args![Listed::Run as i64, *run, token.0, *at, *body, evidence.map(<[u8]>::to_vec)];
        match session.backend() {
            Backend::Sqlite => {
                args.push(pack.map(PackId::get).into());
                session.write(&ADD_OF_CLIENT, args).await?;
                session.write(&ADD_KEYS_OF_CLIENT, args![keys.to_vec()]).await?;
            }
            Backend::Postgres => {
                args.push(keys.to_vec().into());
                kept.push((session.first(&ADD_OF_CLIENT, args).await?, None));
            }
        }
    }
    let mut told = session.commit_told().await?.into_iter();
    while let (Some(call), Some(keys)) = (told.next(), told.next()) {
        kept.push((call.rows.into_iter().next(), Some(i64::try_from(keys.touched).unwrap_or(i64::MAX))));
    }
    let admitted = kept.into_iter().map(|(row, new)| {
        let Some(row) = row else { return Ok(None) };
        let mut r = row.reader();
        let (project, slot) = (ProjectId(r.int()?), SlotId(r.int()?));
        let inserted = new.map_or_else(|| r.int(), Ok)?;
        Ok(Some(Admitted { project, slot, inserted: usize::try_from(inserted).unwrap_or_default() }))
    });
    let admitted: Vec<Option<Admitted>> = admitted.collect::<Result<_>>()?;
    match admitted.len() == calls.len() {
        true => Ok(admitted),
        false => Err(StoreError::Damaged("calls of which nobody knows whether they are kept")),
    }
}

/// At most `limit` calls of a run that wait, in the order in which they came. Of a
/// body with more than [`SMALL_STORED_BYTES`] only [`body_of`] tells.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    limit: i64,
) -> Result<Vec<WaitingCall>> {
    let rows = session.all(&OF_RUN, args![project, run, limit, MOST_REFUSALS, SMALL_STORED_BYTES]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let (id, slot, at) = (r.int()?, SlotId(r.int()?), r.time()?);
            let (pack, evidence_bytes) = (r.opt_int()?.map(PackId), r.opt_int()?);
            Ok(WaitingCall { id, slot, at, pack, evidence_bytes, body: r.opt_bytes()? })
        })
        .collect()
}

/// The body of a call, whatever its size; `None` when it waits no more.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn body_of(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    id: i64,
) -> Result<Option<Vec<u8>>> {
    let row = session.first(&BODY, args![id, project, run]).await?;
    row.map(|row| row.reader().bytes()).transpose()
}

/// The places of the first and the last call of a run that wait.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn span(session: &mut Session, project: ProjectId, run: RunId) -> Result<Option<(i64, i64)>> {
    let row = session.one(&SPAN, args![project, run, MOST_REFUSALS]).await?;
    let mut r = row.reader();
    Ok(r.opt_int()?.zip(r.opt_int()?))
}

/// At most `limit` runs of which calls wait.
///
/// # Errors
/// [`StoreError::Database`].
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
/// itself; whether it is set aside now, so that others go on. It stays stored; who has
/// it tried again later gives it a place behind the others, as it would be taken for
/// worked in at its own.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn refuse(db: &Db, run: RunId, id: i64) -> Result<bool> {
    let mut session = db.intake().await?;
    let row = session.first(&REFUSE, args![id, run]).await?;
    session.commit().await?;
    Ok(row.map(|row| row.reader().int()).transpose()?.is_some_and(|refusals| refusals >= MOST_REFUSALS))
}

/// A pack that is to be made of the evidence of a call.
#[derive(Debug, Clone, Copy)]
pub struct UnmadePack {
    /// The call.
    pub call: i64,
    /// Number of slices.
    pub slices: i64,
    /// Bytes.
    pub bytes: i64,
}

/// Makes packs that rows point at now. Their bytes do not leave the database for
/// that.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn make_packs(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    packs: &[UnmadePack],
) -> Result<()> {
    let Some(largest) = packs.iter().map(|pack| pack.bytes).max() else { return Ok(()) };
    let (mut rows, mut calls) = (ADD_PACKS.rows(), Vec::with_capacity(packs.len()));
    for UnmadePack { call, slices, .. } in packs {
        rows.push([(*call).into(), (*slices).into()]);
        calls.push(*call);
    }
    session.execute_bulk(&ADD_PACKS, args![project, run], rows).await?;
    let (parts, part_bytes) = evidence::parts_of(largest)?;
    session.write(&PACK_BYTES, args![project, run, calls, parts, part_bytes]).await
}

/// Lets go of calls of a slot that are worked in, in the transaction that does that: on
/// SQLite the slot, which is still to be written, notes it, and [`clear`] removes them.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn let_go(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    slot: &mut SlotRow,
    ids: Vec<i64>,
) -> Result<()> {
    match session.backend() {
        Backend::Sqlite => {
            slot.worked_in = ids.into_iter().fold(slot.worked_in, i64::max);
            Ok(())
        }
        Backend::Postgres => session.write(&REMOVE, args![project, run, ids]).await,
    }
}

/// Removes what [`let_go`] only noted; nothing to do on PostgreSQL.
///
/// # Errors
/// [`StoreError::Database`]; it is done with the next ones
/// then, or by [`forget`].
pub async fn clear(db: &Db, project: ProjectId, run: RunId) -> Result<()> {
    if db.backend() == Backend::Postgres {
        return Ok(());
    }
    let mut session = db.intake().await?;
    session.write(&REMOVE_WORKED_IN, args![project, run, MOST_REFUSALS]).await?;
    session.commit().await
}

/// Lets go of all calls of a run that is gone.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn remove_all(db: &Db, project: ProjectId, run: RunId) -> Result<()> {
    let mut session = db.intake().await?;
    // As long as there are calls, somebody comes here again.
    session.write(&FORGET, args![project, run]).await?;
    session.write(&REMOVE_ALL, args![project, run]).await?;
    session.commit().await
}

/// What [`read_known`] reads: which of some attempts were sent to a run before.
pub(crate) fn known_read(run: RunId, keys: Vec<i64>) -> Read {
    (&KNOWN, args![Listed::Run as i64, run, keys])
}

/// The attempts that were sent before.
pub(crate) fn read_known(rows: &[Row]) -> Result<Vec<i64>> {
    rows.iter().map(|row| row.reader().int()).collect()
}

/// Forgets which attempts of a run that is over were sent: its results tell. On SQLite
/// also what [`clear`] may have left.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn forget(db: &Db, project: ProjectId, run: RunId) -> Result<()> {
    let mut session = db.intake().await?;
    session.write(&FORGET, args![project, run]).await?;
    if session.backend() == Backend::Sqlite {
        session.write(&REMOVE_WORKED_IN, args![project, run, MOST_REFUSALS]).await?;
    }
    session.commit().await
}
