//! The rows behind trimming evidence: who points into the packs of a run, and
//! pointing elsewhere.

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::ids::{ExecutionId, PackId, ProjectId, RunId};
use callboard_domain::status::Outcome;
use callboard_domain::time::Timestamp;

use crate::db::{Session, args, statements};
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
    PACKS = "SELECT id, key, size, slices FROM packs WHERE project_id = $1 AND run_id = $2 ORDER BY id";
    /// Puts another object in the place of a pack. PK
    REPLACE = "UPDATE packs SET key = $3, size = $4, slices = $5 WHERE project_id = $1 AND id = $2";
    /// A pack of which nothing is left. PK
    DELETE = "DELETE FROM packs WHERE project_id = $1 AND id = $2";
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
/// [`StoreError::Database`] when the database refuses.
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
/// [`StoreError::Database`] when the database refuses.
pub async fn clear(session: &mut Session, project: ProjectId, run: RunId, ids: Vec<i64>) -> Result<()> {
    if !ids.is_empty() {
        session.execute(&CLEAR, args![project, run, ids]).await?;
    }
    Ok(())
}

/// Points an execution elsewhere.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
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
    /// Key of its object.
    pub key: String,
    /// Bytes.
    pub size: i64,
    /// Number of frames in it.
    pub slices: i64,
}

/// The packs of a run.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn packs(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<PackRow>> {
    let rows = session.all(&PACKS, args![project, run]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(PackRow { id: PackId(r.int()?), key: r.text()?, size: r.int()?, slices: r.int()? })
        })
        .collect()
}

/// Puts another object in the place of a pack; its key was announced. The
/// object of the old key is the caller's to let go.
///
/// # Errors
/// [`StoreError::ContentGone`] when the new object waited for too long.
pub async fn replace(session: &mut Session, project: ProjectId, by: &PackRow, now: Timestamp) -> Result<()> {
    crate::unclaimed::claim(session, &by.key, now).await?;
    session.execute(&REPLACE, args![project, by.id, &by.key, by.size, by.slices]).await?;
    Ok(())
}

/// Deletes the row of a pack of which nothing is left.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn delete(session: &mut Session, project: ProjectId, id: PackId) -> Result<()> {
    session.execute(&DELETE, args![project, id]).await?;
    Ok(())
}
