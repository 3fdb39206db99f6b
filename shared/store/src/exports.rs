//! Exports that a job makes. Their bytes are objects that the sweep of
//! unclaimed objects deletes when their time is over.

use callboard_domain::export::{ExportFormat, ExportKind, ExportStatus};
use callboard_domain::ids::{ExecutionId, ExportId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

/// An export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRow {
    /// Id.
    pub id: ExportId,
    /// What it is of.
    pub kind: ExportKind,
    /// The id of that.
    pub target: i64,
    /// Its form.
    pub format: ExportFormat,
    /// How far it is.
    pub status: ExportStatus,
    /// The key of its bytes, once they are there.
    pub path: Option<String>,
    /// How many bytes.
    pub size: Option<i64>,
    /// Why it could not be made.
    pub error: Option<String>,
    /// When it is forgotten.
    pub expires_at: Timestamp,
}

statements! {
    /// A new export.
    INSERT = "INSERT INTO exports (id, project_id, kind, target_id, format, status, created_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, 'queued', $6, $7)";
    /// One export. That of a run or an execution is there as long as the run is; the run is in the upper bits of the
    /// execution's id.
    BY_ID = "SELECT id, kind, target_id, format, status, path, size, error, expires_at FROM exports WHERE project_id = $1 AND id = $2 \
        AND (kind NOT IN ('run', 'execution') OR EXISTS (SELECT 1 FROM test_runs r WHERE r.project_id = $1 \
        AND r.id = CASE kind WHEN 'run' THEN target_id ELSE target_id >> 20 END))";
    /// Writes how far an export is.
    SAVE = "UPDATE exports SET status = $3, path = $4, size = $5, error = $6, expires_at = $7 WHERE project_id = $1 AND id = $2";
    /// Exports whose time is over. ix: exports_by_expiry
    PURGE = "DELETE FROM exports WHERE id IN (SELECT id FROM exports WHERE expires_at <= $1 ORDER BY expires_at, id LIMIT $2) RETURNING id";
}

// What the statement above takes for granted.
const _: () = assert!(ExecutionId::compose(RunId(1), 0).get() == 1 << 20);

fn read(row: &Row) -> Result<ExportRow> {
    let mut r = row.reader();
    let damaged = || StoreError::Damaged("a word of an export");
    Ok(ExportRow {
        id: ExportId(r.int()?),
        kind: ExportKind::parse(&r.text()?).ok_or_else(damaged)?,
        target: r.int()?,
        format: ExportFormat::parse(&r.text()?).ok_or_else(damaged)?,
        status: ExportStatus::parse(&r.text()?).ok_or_else(damaged)?,
        path: r.opt_text()?,
        size: r.opt_int()?,
        error: r.opt_text()?,
        expires_at: r.time()?,
    })
}

/// Notes an export that is to be made.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn create(
    session: &mut Session,
    project: ProjectId,
    (kind, target): (ExportKind, i64),
    format: ExportFormat,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<ExportId> {
    let id = ids::allocate_one(session, Kind::Export).await?;
    ids::list(session, Listed::Export, project, &[id]).await?;
    let values = args![id, project, kind.as_str(), target, format.as_str(), now, expires_at];
    session.execute(&INSERT, values).await?;
    Ok(ExportId(id))
}

/// One export.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: ExportId) -> Result<Option<ExportRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Writes how far an export is.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save(session: &mut Session, project: ProjectId, export: &ExportRow) -> Result<()> {
    let ExportRow { id, status, path, size, error, expires_at, .. } = export;
    let values = args![project, *id, status.as_str(), path.clone(), *size, error.clone(), *expires_at];
    session.execute(&SAVE, values).await?;
    Ok(())
}

/// Forgets at most `limit` exports whose time is over.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge(session: &mut Session, now: Timestamp, limit: i64) -> Result<u64> {
    let gone = session.all(&PURGE, args![now, limit]).await?;
    for row in &gone {
        ids::unlist(session, Listed::Export, row.reader().int()?).await?;
    }
    Ok(gone.len() as u64)
}
