//! The rows behind trimming evidence: who points into the packs of a run, and
//! pointing elsewhere.

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::ids::{ExecutionId, PackId, ProjectId, RunId};
use callboard_domain::status::Outcome;

use crate::db::{Session, args, statements};
use crate::evidence::{PackPlace, insert_parts};
use crate::{Result, StoreError};

statements! {
    /// Executions of a run that may point at evidence, behind one. PK
    POINTING = "SELECT id, outcome, pack_id, pack_offset, pack_length, attempts FROM executions \
        WHERE project_id = $1 AND run_id = $2 AND id > $3 AND id <= $4 AND (pack_id IS NOT NULL OR attempts IS NOT NULL) ORDER BY id LIMIT $5";
    /// Takes the evidence of executions away. PK
    CLEAR = "UPDATE executions SET pack_id = NULL, pack_offset = NULL, pack_length = NULL \
        WHERE project_id = $1 AND run_id = $2 AND id in_ints($3)";
    /// Points an execution elsewhere. PK
    POINT = "UPDATE executions SET pack_id = $4, pack_offset = $5, pack_length = $6, attempts = $7 \
        WHERE project_id = $1 AND run_id = $2 AND id = $3";
    /// The packs of a run. ix: packs_of_run
    PACKS = "SELECT id, key, base, size, slices FROM packs WHERE project_id = $1 AND run_id = $2 ORDER BY id";
    /// Bytes of a pack that has no object. PK
    PARTS = "SELECT bytes FROM pack_bytes WHERE project_id = $1 AND pack_id = $2 ORDER BY part";
    /// Lets a pack lie elsewhere. PK
    REPLACE = "UPDATE packs SET key = $5, base = $6, size = $7, slices = $8 WHERE project_id = $1 AND id = $2 AND key = $3 AND base = $4";
    /// A pack of which nothing is left. PK
    DELETE = "DELETE FROM packs WHERE project_id = $1 AND id = $2 AND key = $3 AND base = $4";
    /// Bytes of a pack that has no object. PK
    DELETE_PARTS = "DELETE FROM pack_bytes WHERE project_id = $1 AND pack_id = $2";
}

/// An execution and the evidence it points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointing {
    /// Execution.
    pub id: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// Evidence of the deciding attempt.
    pub evidence: Option<EvidenceSlice>,
    /// Attempts as JSON, when the row does not say it all.
    pub attempts: Option<String>,
}

/// At most `limit` executions of a run that may point at evidence, by id,
/// behind `after`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn pointing(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: Option<ExecutionId>,
    limit: i64,
) -> Result<Vec<Pointing>> {
    let (low, high) = ExecutionId::range_of(run);
    let low = after.map_or(low, ExecutionId::get);
    let rows = session.all(&POINTING, args![project, run, low, high, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let (id, outcome) = (ExecutionId(r.int()?), r.int()?);
            let evidence = match (r.opt_int()?, r.opt_int()?, r.opt_int()?) {
                (Some(pack), Some(offset), Some(length)) => {
                    Some(EvidenceSlice { pack: PackId(pack), offset, length })
                }
                _ => None,
            };
            let outcome = Outcome::from_code(outcome).ok_or(StoreError::Damaged("an unknown outcome"))?;
            Ok(Pointing { id, outcome, evidence, attempts: r.opt_text()? })
        })
        .collect()
}

/// Takes the evidence of executions away that have no stored attempts.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn clear(session: &mut Session, project: ProjectId, run: RunId, ids: Vec<i64>) -> Result<()> {
    if !ids.is_empty() {
        session.execute(&CLEAR, args![project, run, ids]).await?;
    }
    Ok(())
}

/// Points an execution elsewhere.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn point(session: &mut Session, project: ProjectId, run: RunId, to: &Pointing) -> Result<()> {
    let part = |read: fn(EvidenceSlice) -> i64| to.evidence.map(read);
    let values = args![
        project,
        run,
        to.id,
        part(|slice| slice.pack.get()),
        part(|slice| slice.offset),
        part(|slice| slice.length),
        to.attempts.clone()
    ];
    session.execute(&POINT, values).await?;
    Ok(())
}

/// A stored pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackRow {
    /// Id.
    pub id: PackId,
    /// Where its bytes lie.
    pub place: PackPlace,
    /// Bytes.
    pub size: i64,
    /// Number of frames in it.
    pub slices: i64,
}

/// The packs of a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn packs(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<PackRow>> {
    let rows = session.all(&PACKS, args![project, run]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let id = PackId(r.int()?);
            let place = PackPlace::new(r.text()?, r.int()?);
            Ok(PackRow { id, place, size: r.int()?, slices: r.int()? })
        })
        .collect()
}

/// Bytes of a pack that is kept beside its row.
///
/// # Errors
/// [`StoreError::Busy`] when it is not any more.
pub async fn bytes(session: &mut Session, project: ProjectId, id: PackId) -> Result<Vec<u8>> {
    let rows = session.all(&PARTS, args![project, id]).await?;
    let parts = rows.iter().map(|row| row.reader().bytes()).collect::<Result<Vec<_>>>()?;
    if parts.is_empty() { Err(MOVED) } else { Ok(parts.concat()) }
}

/// A pack that lies elsewhere than it did when it was read.
const MOVED: StoreError = StoreError::Busy("a pack of evidence that was moved while it was trimmed");

/// Lets a pack lie in another object, which was announced and is the caller's
/// to claim. The old object is the caller's to let go.
///
/// # Errors
/// [`StoreError::Busy`] when the pack was moved meanwhile.
pub async fn replace(session: &mut Session, project: ProjectId, old: &PackRow, by: &PackRow) -> Result<()> {
    let (old_key, old_base) = old.place.columns();
    let (key, base) = by.place.columns();
    let values = args![project, old.id, old_key, old_base, key, base, by.size, by.slices];
    if session.execute(&REPLACE, values).await? == 1 { Ok(()) } else { Err(MOVED) }
}

/// Leaves less of a pack that is kept beside its row.
///
/// # Errors
/// [`StoreError::Busy`] when it is not any more.
pub async fn replace_bytes(
    session: &mut Session,
    project: ProjectId,
    old: &PackRow,
    by: &PackRow,
    bytes: &[u8],
) -> Result<()> {
    replace(session, project, old, by).await?;
    session.execute(&DELETE_PARTS, args![project, by.id]).await?;
    insert_parts(session, project, by.id, bytes).await
}

/// Deletes a pack of which nothing is left.
///
/// # Errors
/// [`StoreError::Busy`] when it was moved meanwhile.
pub async fn delete(session: &mut Session, project: ProjectId, pack: &PackRow) -> Result<()> {
    let (key, base) = pack.place.columns();
    if session.execute(&DELETE, args![project, pack.id, key, base]).await? != 1 {
        return Err(MOVED);
    }
    if pack.place == PackPlace::Row {
        session.execute(&DELETE_PARTS, args![project, pack.id]).await?;
    }
    Ok(())
}
