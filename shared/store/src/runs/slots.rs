//! Slots: one per call that opened or completed a run, with the key under which
//! the same call finds it again.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;

use crate::Result;
use crate::db::{Session, args, statements};
use crate::ids::{self, Kind};

statements! {
    /// What the client claimed of a run. ix: run_slots_of_run
    CLAIM = "SELECT claimed_status FROM run_slots WHERE project_id = $1 AND run_id = $2 AND claimed_status IS NOT NULL \
        ORDER BY shard_index, id LIMIT 1";
    /// The slot of a start key. ix: run_slots_start_key
    SLOT_BY_KEY = "SELECT run_id FROM run_slots WHERE project_id = $1 AND start_key = $2";
    /// A slot; a concurrent caller with the same key may have been first.
    INSERT_SLOT = "INSERT INTO run_slots (id, project_id, run_id, shard_index, state, start_key, claimed_status, duration) \
        VALUES ($1, $2, $3, $4, 'finished', $5, $6, $7) \
        ON CONFLICT (project_id, start_key) WHERE start_key IS NOT NULL DO NOTHING";
}

/// The run a start key belongs to.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn by_start_key(
    session: &mut Session,
    project: ProjectId,
    key: &[u8; 32],
) -> Result<Option<RunId>> {
    let row = session.first(&SLOT_BY_KEY, args![project, *key]).await?;
    row.map(|row| row.reader().int().map(RunId)).transpose()
}

/// The status that the client first claimed for a run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn claimed_status(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<Option<RunStatus>> {
    let row = session.first(&CLAIM, args![project, run]).await?;
    let claim = row.map(|row| row.reader().text()).transpose()?;
    Ok(claim.and_then(|claim| RunStatus::parse(&claim)))
}

/// Records the slot of a batch; `false` when another caller took the start key
/// first.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn add_finished_slot(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    start_key: Option<[u8; 32]>,
    claimed_status: Option<RunStatus>,
    duration_ms: Option<i64>,
) -> Result<bool> {
    let id = ids::allocate_one(session, Kind::Slot).await?;
    let key = start_key.map(|key| key.to_vec());
    let claimed = claimed_status.map(RunStatus::as_str);
    let done =
        session.execute(&INSERT_SLOT, args![id, project, run, 0_i64, key, claimed, duration_ms]).await?;
    Ok(done == 1)
}
