//! Slots: the clients that feed a run, one row each, with the keys under which
//! a repeated call finds its own again. Rows change only while their run is
//! locked.

use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::run_life::{Slot, SlotState};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::{Result, StoreError};

macro_rules! select_slot {
    ($tail:literal) => {
        concat!(
            "SELECT id, run_id, shard_index, ordinal, generation, state, claimed_status, start_time, duration, waiting, \
             opened_at, begun_at, last_activity_at, metadata_ci, worked_in, errors, job_attempt FROM run_slots ",
            $tail
        )
    };
}

statements! {
    /// The slots of a run in the order they were opened. ix: run_slots_of_run
    OF_RUN = select_slot!("WHERE project_id = $1 AND run_id = $2 ORDER BY ordinal, id");
    /// The slot of a start key. ix: run_slots_start_key
    BY_START_KEY = "SELECT run_id, id FROM run_slots WHERE project_id = $1 AND start_key = $2";
    /// The newest slot of a recovery key. ix: run_slots_recovery_key
    BY_RECOVERY_KEY = "SELECT run_id, id FROM run_slots WHERE project_id = $1 AND recovery_key = $2 AND opened_at > $3 \
        ORDER BY opened_at DESC, id DESC LIMIT 1";
    /// The unsharded slot of a pipeline that began about then and whose run is not over, or was not yet when the batch began: its
    /// client may not have heard that it is. ix: test_runs_by_instance, run_slots_of_run
    BEGUN_ABOUT = "SELECT s.run_id, s.id FROM test_runs r JOIN run_slots s ON s.project_id = r.project_id AND s.run_id = r.id \
        WHERE r.project_id = $1 AND r.instance_id = $2 AND r.shard_total IS NULL \
        AND (r.status IN ('initializing', 'running', 'finalizing', 'interrupted') \
        OR (r.status = 'cancelled' AND r.end_reason = 'superseded') \
        OR (r.status IN ('passed', 'failed', 'timedout') AND r.finished_at >= $5)) \
        AND s.start_key IS NULL AND s.begun_at >= $3 AND s.begun_at <= $4 ORDER BY ABS(s.begun_at - $5), s.id DESC LIMIT 1";
    /// The slot of the set-up that a batch of its client follows: registered before the batch began and not used since.
    /// ix: test_runs_by_instance, run_slots_of_run
    REGISTERED_BEFORE = "SELECT s.run_id, s.id FROM test_runs r JOIN run_slots s ON s.project_id = r.project_id AND s.run_id = r.id \
        WHERE r.project_id = $1 AND r.instance_id = $2 AND r.shard_total IS NULL AND r.status = 'initializing' \
        AND s.start_key IS NULL AND s.state = 'setup' AND s.begun_at IS NULL AND s.opened_at >= $3 AND s.opened_at <= $4 \
        ORDER BY ABS(s.opened_at - $5), s.id DESC LIMIT 1";
    /// The runs that clients of a CI job fed, newest first. ix: run_slots_job
    RUNS_OF_JOB = "SELECT DISTINCT run_id FROM run_slots WHERE project_id = $1 AND job_key = $2 ORDER BY run_id DESC LIMIT $3";
    /// A slot; a concurrent caller with the same key may have been first.
    INSERT = "INSERT INTO run_slots (id, project_id, run_id, shard_index, ordinal, generation, state, start_key, recovery_key, \
        claimed_status, start_time, duration, waiting, opened_at, begun_at, last_activity_at, metadata_ci, errors, job_key, job_attempt) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) \
        ON CONFLICT (project_id, start_key) WHERE start_key IS NOT NULL DO NOTHING";
    /// Writes where a slot stands.
    UPDATE = "UPDATE run_slots SET state = $3, claimed_status = $4, start_time = $5, duration = $6, waiting = $7, opened_at = $8, \
        begun_at = $9, last_activity_at = $10, metadata_ci = $11, worked_in = $12, generation = $13, errors = $14 WHERE project_id = $1 AND id = $2";
    /// Gives a slot the key its client named late, unless another slot has it. ix: run_slots_start_key
    NAME = "UPDATE run_slots SET start_key = $3 WHERE project_id = $1 AND id = $2 AND start_key IS NULL \
        AND NOT EXISTS (SELECT 1 FROM run_slots o WHERE o.project_id = $1 AND o.start_key = $3)";
    /// Notes a sign of life.
    TOUCH = "UPDATE run_slots SET last_activity_at = $3 WHERE project_id = $1 AND id = $2 AND last_activity_at < $3";
}

/// A stored slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRow {
    /// Id.
    pub id: SlotId,
    /// Run.
    pub run: RunId,
    /// What the life of the run depends on.
    pub slot: Slot,
    /// What the client told about its CI job: a JSON object.
    pub metadata_ci: Option<String>,
    /// Up to which of its calls are worked in, where they do not go with that: see
    /// [`intake`](crate::intake).
    pub worked_in: i64,
    /// Errors that belong to no test, as its client sent them: a JSON list.
    pub errors: Option<String>,
}

/// The keys under which the call that opened a slot finds it again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotKeys {
    /// Names the call; unique within the project.
    pub start: Option<[u8; 32]>,
    /// What a body says that was saved before its client knew its run.
    pub recovery: Option<[u8; 32]>,
    /// The CI job that ran it, whichever attempt of it.
    pub job: Option<[u8; 32]>,
}

/// A slot and its run, found by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundSlot {
    /// Run.
    pub run: RunId,
    /// Slot.
    pub slot: SlotId,
}

pub(super) fn read(row: &Row) -> Result<SlotRow> {
    let mut r = row.reader();
    let (id, run) = (SlotId(r.int()?), RunId(r.int()?));
    let (shard_index, ordinal, generation) = (r.int()?, r.int()?, r.int()?);
    let slot = Slot {
        shard_index,
        ordinal,
        generation,
        state: SlotState::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown state of a slot"))?,
        claimed: r.opt_text()?.as_deref().and_then(RunStatus::parse),
        start_time: r.time()?,
        duration_ms: r.opt_int()?,
        waiting: r.flag()?,
        opened_at: r.time()?,
        begun_at: r.opt_time()?,
        last_activity_at: r.time()?,
        job_attempt: None,
    };
    let mut row =
        SlotRow { id, run, slot, metadata_ci: r.opt_text()?, worked_in: r.int()?, errors: r.opt_text()? };
    row.slot.job_attempt = r.opt_int()?;
    Ok(row)
}

fn found(row: &Row) -> Result<FoundSlot> {
    let mut r = row.reader();
    Ok(FoundSlot { run: RunId(r.int()?), slot: SlotId(r.int()?) })
}

/// The slots of a run in the order they were opened.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<SlotRow>> {
    session.all(&OF_RUN, args![project, run]).await?.iter().map(read).collect()
}

/// The slot a start key belongs to.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_start_key(
    session: &mut Session,
    project: ProjectId,
    key: &[u8; 32],
) -> Result<Option<FoundSlot>> {
    session.first(&BY_START_KEY, args![project, *key]).await?.as_ref().map(found).transpose()
}

/// The newest slot opened after a moment whose client may have sent this body.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_recovery_key(
    session: &mut Session,
    project: ProjectId,
    key: &[u8; 32],
    opened_after: Timestamp,
) -> Result<Option<FoundSlot>> {
    let row = session.first(&BY_RECOVERY_KEY, args![project, *key, opened_after]).await?;
    row.as_ref().map(found).transpose()
}

/// The slot of an unsharded run of a pipeline whose tests began about a moment,
/// give or take `slack_ms`, and whose run was not over then. Only slots that
/// were set up without a key of their own are meant.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn begun_about(
    session: &mut Session,
    project: ProjectId,
    instance: &str,
    moment: Timestamp,
    slack_ms: i64,
) -> Result<Option<FoundSlot>> {
    let (from, to) = (Timestamp(moment.millis() - slack_ms), Timestamp(moment.millis() + slack_ms));
    let row = session.first(&BEGUN_ABOUT, args![project, instance, from, to, moment]).await?;
    row.as_ref().map(found).transpose()
}

/// The slot of an unsharded run of a pipeline that was registered at most `ago_ms`
/// before a moment, give or take `slack_ms`, and that nobody has fed since. Only slots
/// that were set up without a key of their own are meant.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn registered_before(
    session: &mut Session,
    project: ProjectId,
    instance: &str,
    moment: Timestamp,
    (ago_ms, slack_ms): (i64, i64),
) -> Result<Option<FoundSlot>> {
    let (from, to) = (Timestamp(moment.millis() - ago_ms), Timestamp(moment.millis() + slack_ms));
    let row = session.first(&REGISTERED_BEFORE, args![project, instance, from, to, moment]).await?;
    row.as_ref().map(found).transpose()
}

/// At most `limit` runs that clients of a CI job fed, newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn runs_of_job(
    session: &mut Session,
    project: ProjectId,
    job: &[u8; 32],
    limit: i64,
) -> Result<Vec<RunId>> {
    let rows = session.all(&RUNS_OF_JOB, args![project, *job, limit]).await?;
    rows.iter().map(|row| row.reader().int().map(RunId)).collect()
}

/// Stores a new slot; `false` when another caller took the start key first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(
    session: &mut Session,
    project: ProjectId,
    row: &SlotRow,
    keys: SlotKeys,
) -> Result<bool> {
    let s = &row.slot;
    let done = session
        .execute(
            &INSERT,
            args![
                row.id,
                project,
                row.run,
                s.shard_index,
                s.ordinal,
                s.generation,
                s.state.as_str(),
                keys.start.map(|key| key.to_vec()),
                keys.recovery.map(|key| key.to_vec()),
                s.claimed.map(RunStatus::as_str),
                s.start_time,
                s.duration_ms,
                s.waiting,
                s.opened_at,
                s.begun_at,
                s.last_activity_at,
                row.metadata_ci.clone(),
                row.errors.clone(),
                keys.job.map(|key| key.to_vec()),
                s.job_attempt
            ],
        )
        .await?;
    Ok(done == 1)
}

/// Writes where a slot stands.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn update(session: &mut Session, project: ProjectId, row: &SlotRow) -> Result<()> {
    let s = &row.slot;
    session
        .write(
            &UPDATE,
            args![
                project,
                row.id,
                s.state.as_str(),
                s.claimed.map(RunStatus::as_str),
                s.start_time,
                s.duration_ms,
                s.waiting,
                s.opened_at,
                s.begun_at,
                s.last_activity_at,
                row.metadata_ci.clone(),
                row.worked_in,
                s.generation,
                row.errors.clone()
            ],
        )
        .await?;
    Ok(())
}

/// Gives a slot without a start key the one its client named later; nothing
/// happens when another slot has it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn name(session: &mut Session, project: ProjectId, slot: SlotId, key: [u8; 32]) -> Result<()> {
    session.write(&NAME, args![project, slot, key]).await?;
    Ok(())
}

/// Notes a sign of life of a slot.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn touch(session: &mut Session, project: ProjectId, slot: SlotId, now: Timestamp) -> Result<()> {
    session.write(&TOUCH, args![project, slot, now]).await?;
    Ok(())
}
