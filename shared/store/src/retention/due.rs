//! What is due, a batch at a time and the oldest first; and moving the date of
//! what is kept nevertheless.

use std::collections::BTreeMap;

use callboard_domain::ids::{BlobId, ExecutionId, ProjectId, ReportId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Session, args, statements};
use crate::files::FileKind;
use crate::{Result, StoreError};

statements! {
    /// Runs whose time is over, of projects that are not hidden. ix: test_runs_by_expiry
    RUNS = "SELECT project_id, id FROM test_runs WHERE expires_at <= $1 AND expires_at IS NOT NULL AND pinned_at IS NULL \
        AND EXISTS (SELECT 1 FROM projects p WHERE p.id = test_runs.project_id) \
        ORDER BY expires_at, id LIMIT $2";
    /// Files whose time is over. ix: files_by_expiry
    FILES = "SELECT project_id, run_id, id, execution_id, kind, blob_id FROM files WHERE expires_at <= $1 AND expires_at IS NOT NULL \
        ORDER BY expires_at, id LIMIT $2";
    /// Reports whose time is over. ix: reports_by_expiry
    REPORTS = "SELECT project_id, run_id, id, prefix, entries, size FROM reports WHERE expires_at <= $1 AND expires_at IS NOT NULL \
        ORDER BY expires_at, id LIMIT $2";
    /// The run whose evidence is due next. ix: packs_by_trim
    EVIDENCE = "SELECT project_id, run_id FROM packs WHERE trim_at <= $1 AND trim_at IS NOT NULL ORDER BY trim_at, run_id LIMIT 1";
    /// Moves the date of a run. PK
    MOVE_RUN = "UPDATE test_runs SET expires_at = $3 WHERE project_id = $1 AND id = $2";
    /// Moves the dates of files. PK
    MOVE_FILES = "UPDATE files SET expires_at = $3 WHERE project_id = $1 AND id in_ints($2)";
    /// Moves the date of a report. PK
    MOVE_REPORT = "UPDATE reports SET expires_at = $3 WHERE project_id = $1 AND id = $2";
    /// Moves the date of the evidence of a run. ix: packs_of_run
    MOVE_EVIDENCE = "UPDATE packs SET trim_at = $3 WHERE project_id = $1 AND run_id = $2";
    /// Files that are due, as far as they are still there and due. PK
    DELETE_FILES = "DELETE FROM files WHERE project_id = $1 AND id in_ints($2) AND expires_at <= $3 \
        RETURNING id, execution_id, kind, blob_id";
    /// Outcomes of some executions of a run. executions PK
    OUTCOMES = "SELECT id, outcome FROM executions WHERE project_id = $1 AND run_id = $2 AND id in_ints($3)";
    /// The places of files in the directory.
    UNLIST_FILES = "DELETE FROM id_directory WHERE kind = 3 AND id in_ints($1)";
    /// A report that is due. PK
    DELETE_REPORT = "DELETE FROM reports WHERE project_id = $1 AND id = $2 AND expires_at <= $3";
}

fn of_run(row: &crate::db::Row) -> Result<(ProjectId, RunId)> {
    let mut r = row.reader();
    Ok((ProjectId(r.int()?), RunId(r.int()?)))
}

/// At most `limit` runs whose time is over.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn runs(session: &mut Session, now: Timestamp, limit: i64) -> Result<Vec<(ProjectId, RunId)>> {
    session.all(&RUNS, args![now, limit]).await?.iter().map(of_run).collect()
}

/// A file whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueFile {
    /// File id.
    pub id: i64,
    /// Execution.
    pub execution: ExecutionId,
    /// What it is to its execution.
    pub kind: FileKind,
    /// Its content.
    pub blob: BlobId,
}

fn file(r: &mut crate::db::Reader<'_>) -> Result<DueFile> {
    Ok(DueFile {
        id: r.int()?,
        execution: ExecutionId(r.int()?),
        kind: FileKind::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown kind of file"))?,
        blob: BlobId(r.int()?),
    })
}

/// At most `limit` files whose time is over, with their runs.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn files(
    session: &mut Session,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(ProjectId, RunId, DueFile)>> {
    let rows = session.all(&FILES, args![now, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), RunId(r.int()?), file(&mut r)?))
        })
        .collect()
}

/// A report whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueReport {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Report.
    pub id: ReportId,
    /// Key prefix of its objects, without a trailing slash.
    pub prefix: String,
    /// Number of its objects.
    pub entries: i64,
    /// Their bytes.
    pub size: i64,
}

/// At most `limit` reports whose time is over.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn reports(session: &mut Session, now: Timestamp, limit: i64) -> Result<Vec<DueReport>> {
    let rows = session.all(&REPORTS, args![now, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(DueReport {
                project: ProjectId(r.int()?),
                run: RunId(r.int()?),
                id: ReportId(r.int()?),
                prefix: r.text()?,
                entries: r.int()?,
                size: r.int()?,
            })
        })
        .collect()
}

/// The run whose evidence is due next.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn evidence(session: &mut Session, now: Timestamp) -> Result<Option<(ProjectId, RunId)>> {
    session.first(&EVIDENCE, args![now]).await?.as_ref().map(of_run).transpose()
}

/// Moves the date of a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn move_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    to: Option<Timestamp>,
) -> Result<()> {
    session.execute(&MOVE_RUN, args![project, run, to]).await?;
    Ok(())
}

/// Moves the dates of files.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn move_files(
    session: &mut Session,
    project: ProjectId,
    ids: Vec<i64>,
    to: Option<Timestamp>,
) -> Result<()> {
    session.execute(&MOVE_FILES, args![project, ids, to]).await?;
    Ok(())
}

/// Moves the date of a report.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn move_report(
    session: &mut Session,
    project: ProjectId,
    id: ReportId,
    to: Option<Timestamp>,
) -> Result<()> {
    session.execute(&MOVE_REPORT, args![project, id, to]).await?;
    Ok(())
}

/// Moves the date of the evidence of a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn move_evidence(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    to: Option<Timestamp>,
) -> Result<()> {
    session.execute(&MOVE_EVIDENCE, args![project, run, to]).await?;
    Ok(())
}

/// Outcome codes of some executions of a run, by execution.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn outcomes(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    executions: Vec<i64>,
) -> Result<BTreeMap<ExecutionId, i64>> {
    let rows = session.all(&OUTCOMES, args![project, run, executions]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ExecutionId(r.int()?), r.int()?))
        })
        .collect()
}

/// Deletes files that are still due, and answers them.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_files(
    session: &mut Session,
    project: ProjectId,
    wanted: Vec<i64>,
    now: Timestamp,
) -> Result<Vec<DueFile>> {
    let rows = session.all(&DELETE_FILES, args![project, wanted, now]).await?;
    let gone = rows.iter().map(|row| file(&mut row.reader())).collect::<Result<Vec<_>>>()?;
    let ids: Vec<i64> = gone.iter().map(|file| file.id).collect();
    session.execute(&UNLIST_FILES, args![ids]).await?;
    Ok(gone)
}

/// Deletes the row of a report that is still due; `false` when it is not.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_report(
    session: &mut Session,
    project: ProjectId,
    id: ReportId,
    now: Timestamp,
) -> Result<bool> {
    Ok(session.execute(&DELETE_REPORT, args![project, id, now]).await? == 1)
}
