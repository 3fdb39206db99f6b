//! Reports of a run: each one directory of objects, visible only when it is
//! complete.
//!
//! While an upload writes the objects of a report, its row is pending and the
//! upload says again and again that it is still at it; the same archive that
//! arrives meanwhile waits for it. An upload that fell silent is succeeded by a
//! report with an id and a directory of its own, so that what the silent one
//! still does reaches nothing that is visible.
//!
//! A report that takes longer than a call is left to a job: its row is pending
//! with an entry page, its archive lies beside its directory, and both wait for
//! the job. The archive is known from then on.

use callboard_domain::ids::{ProjectId, ReportId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, Store, StoreError, unclaimed};

/// How long an upload that fell silent keeps others from storing its archive.
const SILENCE_MS: i64 = 60 * 1000;
/// How long the row of an upload that fell silent is kept when its archive does
/// not come again.
const PENDING_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// How long an archive waits for its job, which is tried again and again while
/// the object store refuses.
const LEFT_LIFE_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A stored report.
#[derive(Debug, Clone)]
pub struct ReportRow {
    /// Id.
    pub id: ReportId,
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Type word, e.g. `html`.
    pub kind: String,
    /// Display label.
    pub label: String,
    /// Key prefix of its objects, without a trailing slash.
    pub prefix: String,
    /// Entry page below the prefix.
    pub entry: String,
    /// Sizes of its entries together, bytes.
    pub size: i64,
    /// Number of entries.
    pub entries: i64,
    /// SHA-256 of the archive it was made from.
    pub archive_sha256: [u8; 32],
    /// When it was stored.
    pub created_at: Timestamp,
}

impl ReportRow {
    /// Stored name of its entry page.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.prefix, self.entry)
    }
}

macro_rules! select_report {
    ($tail:literal) => {
        concat!(
            "SELECT id, project_id, run_id, type, label, prefix, entry, size, entries, archive_sha256, created_at \
             FROM reports ",
            $tail
        )
    };
}

statements! {
    /// Complete reports of a run. ix: reports_of_run
    OF_RUN = select_report!("WHERE project_id = $1 AND run_id = $2 AND state = 'ready' ORDER BY id LIMIT 200");
    /// One complete report of a run that is not hidden.
    BY_ID = select_report!("WHERE project_id = $1 AND id = $2 AND state = 'ready' \
        AND EXISTS (SELECT 1 FROM test_runs r WHERE r.project_id = reports.project_id AND r.id = reports.run_id)");
    /// One report that waits for its job.
    LEFT = select_report!("WHERE project_id = $1 AND id = $2 AND state = 'pending' AND entry <> ''");
    /// The report made, or to be made, from an archive. ix: reports_content
    BY_ARCHIVE = select_report!("WHERE project_id = $1 AND run_id = $2 AND type = $3 AND archive_sha256 = $4 \
        AND (state = 'ready' OR entry <> '')");
    /// Labels in use on a run. ix: reports_of_run
    LABELS = "SELECT label FROM reports WHERE project_id = $1 AND run_id = $2 ORDER BY id LIMIT 200";
    /// A report whose objects are about to be written.
    INSERT = "INSERT INTO reports (id, project_id, run_id, type, label, prefix, entry, size, entries, archive_sha256, state, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, '', 0, 0, $7, 'pending', $8) \
        ON CONFLICT (project_id, run_id, type, archive_sha256) DO NOTHING";
    /// The upload of a report is still at it.
    HOLD = "UPDATE reports SET created_at = $3 WHERE project_id = $1 AND id = $2 AND state = 'pending'";
    /// A report whose upload fell silent. ix: reports_content
    DELETE_SILENT = "DELETE FROM reports WHERE project_id = $1 AND run_id = $2 AND type = $3 AND archive_sha256 = $4 \
        AND state = 'pending' AND entry = '' AND created_at <= $5 RETURNING prefix";
    /// A report whose archive was looked through waits for its job.
    LEAVE = "UPDATE reports SET entry = $3 WHERE project_id = $1 AND id = $2 AND state = 'pending'";
    /// A report whose objects are complete.
    COMPLETE = "UPDATE reports SET entry = $3, size = $4, entries = $5, state = 'ready', created_at = $6 \
        WHERE project_id = $1 AND id = $2 AND state = 'pending'";
    /// A report that turned out unusable.
    DELETE = "DELETE FROM reports WHERE project_id = $1 AND id = $2 AND state = 'pending' AND entry = ''";
    /// A report whose job cannot complete it.
    DELETE_WAITING = "DELETE FROM reports WHERE project_id = $1 AND id = $2 AND state = 'pending' AND entry <> ''";
    /// Whether a report is there, complete or not.
    IS_THERE = "SELECT 1 FROM reports WHERE project_id = $1 AND id = $2";
    /// Reports that were begun and left. ix: reports_pending
    DELETE_LEFT = "DELETE FROM reports WHERE (project_id, id) IN (SELECT project_id, id FROM reports \
        WHERE state = 'pending' AND entry = '' AND created_at <= $1 ORDER BY created_at LIMIT $2 skip_locked()) RETURNING project_id, prefix";
}

fn read(row: &Row) -> Result<ReportRow> {
    let mut r = row.reader();
    Ok(ReportRow {
        id: ReportId(r.int()?),
        project: ProjectId(r.int()?),
        run: RunId(r.int()?),
        kind: r.text()?,
        label: r.text()?,
        prefix: r.text()?,
        entry: r.text()?,
        size: r.int()?,
        entries: r.int()?,
        archive_sha256: r.bytes()?.try_into().map_err(|_| StoreError::Damaged("a content hash"))?,
        created_at: r.time()?,
    })
}

/// Complete reports of a run by id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<ReportRow>> {
    session.all(&OF_RUN, args![project, run]).await?.iter().map(read).collect()
}

/// One complete report.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: ReportId) -> Result<Option<ReportRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// One report that waits for its job.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn left(session: &mut Session, project: ProjectId, id: ReportId) -> Result<Option<ReportRow>> {
    session.first(&LEFT, args![project, id]).await?.as_ref().map(read).transpose()
}

/// The report a run already has from this archive, be it complete or waiting
/// for its job.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_archive(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    kind: &str,
    sha256: &[u8; 32],
) -> Result<Option<ReportRow>> {
    session.first(&BY_ARCHIVE, args![project, run, kind, *sha256]).await?.as_ref().map(read).transpose()
}

/// A report whose objects an upload is writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunReport {
    /// Id.
    pub id: ReportId,
    /// Key prefix of its objects, without a trailing slash; no other upload
    /// writes below it.
    pub prefix: String,
}

impl BegunReport {
    /// A report of a run, by its id.
    #[must_use]
    pub fn new(project: ProjectId, run: RunId, id: ReportId) -> Self {
        Self { id, prefix: format!("project-{project}/reports/{run}/{id}") }
    }

    /// Key of its archive while it waits for its job: beside its directory,
    /// where it goes with its run.
    #[must_use]
    pub fn archive_key(&self) -> String {
        archive_of(&self.prefix)
    }

    /// Its directory among the objects that no row refers to.
    fn directory(&self) -> String {
        format!("{}/", self.prefix)
    }
}

fn archive_of(prefix: &str) -> String {
    format!("{prefix}.gz")
}

/// Begins a report; `None` when the archive is stored already, or another
/// upload is at it. A second label of the same text gets a number.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn begin(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    kind: &str,
    label: &str,
    sha256: &[u8; 32],
    now: Timestamp,
) -> Result<Option<BegunReport>> {
    let silent = args![project, run, kind, *sha256, now.millis() - SILENCE_MS];
    for row in session.all(&DELETE_SILENT, silent).await? {
        abandon(session, project, &row.reader().text()?, now).await?;
    }
    let id = ids::allocate_one(session, Kind::Report).await?;
    let rows = session.all(&LABELS, args![project, run]).await?;
    let taken = rows.iter().map(|row| row.reader().text()).collect::<Result<Vec<_>>>()?;
    let label = distinct_label(label, &taken);
    let begun = BegunReport::new(project, run, ReportId(id));
    let row = args![id, project, run, kind, label, &begun.prefix, *sha256, now];
    if session.execute(&INSERT, row).await? == 0 {
        return Ok(None);
    }
    unclaimed::announce(session, project, &begun.directory(), now).await?;
    Ok(Some(begun))
}

/// Says that the upload of a report is still at it; `false` when the report is
/// not its own any more, because the run went or another upload succeeded it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn hold(session: &mut Session, project: ProjectId, id: ReportId, now: Timestamp) -> Result<bool> {
    Ok(session.execute(&HOLD, args![project, id, now]).await? == 1)
}

/// Announces the archive of a report, which is about to be written.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn announce_archive(
    session: &mut Session,
    project: ProjectId,
    begun: &BegunReport,
    now: Timestamp,
) -> Result<()> {
    unclaimed::announce(session, project, &begun.archive_key(), now).await
}

/// Leaves a report whose archive is written to a job. The archive and what was
/// unpacked of it are kept for as long as the job may take.
///
/// # Errors
/// [`StoreError::ContentGone`] when it is not its upload's own any more.
pub async fn leave(
    session: &mut Session,
    project: ProjectId,
    begun: &BegunReport,
    entry: &str,
    now: Timestamp,
) -> Result<ReportRow> {
    session.execute(&LEAVE, args![project, begun.id, entry]).await?;
    let until = Timestamp(now.millis() + LEFT_LIFE_MS);
    unclaimed::announce_until(session, project, &begun.archive_key(), until).await?;
    unclaimed::announce_until(session, project, &begun.directory(), until).await?;
    left(session, project, begun.id).await?.ok_or(StoreError::ContentGone)
}

/// Removes what a job has no use for any more: the archive of a report and,
/// when its run was deleted, all that was written of it. What another worker
/// still writes then is left to the sweep.
///
/// # Errors
/// [`StoreError::Storage`] or [`StoreError::Database`] when one refuses; the
/// sweep removes it then.
pub async fn clear(store: &Store, project: ProjectId, begun: &BegunReport, now: Timestamp) -> Result<()> {
    let row = store.db().read().await?.first(&IS_THERE, args![project, begun.id]).await?;
    if row.is_none() {
        store.objects().delete_below(&begun.directory()).await?;
    }
    store.objects().delete(&begun.archive_key()).await?;
    let mut session = store.db().begin().await?;
    unclaimed::forget(&mut session, &begun.archive_key()).await?;
    if row.is_none() {
        unclaimed::abandon(&mut session, project, &begun.directory(), now).await?;
    }
    session.commit().await
}

/// Whether a report waits for its job for so long that the sweep may have taken
/// its archive.
#[must_use]
pub fn is_overdue(row: &ReportRow, now: Timestamp) -> bool {
    row.created_at.millis() + LEFT_LIFE_MS <= now.millis()
}

fn distinct_label(label: &str, taken: &[String]) -> String {
    let mut distinct = label.to_owned();
    let mut number = 2;
    while taken.contains(&distinct) {
        distinct = format!("{label} ({number})");
        number += 1;
    }
    distinct
}

/// Makes a report visible.
///
/// # Errors
/// [`StoreError::ContentGone`] when it is not its upload's own any more.
pub async fn complete(
    session: &mut Session,
    project: ProjectId,
    begun: &BegunReport,
    entry: &str,
    size: i64,
    entries: i64,
    now: Timestamp,
) -> Result<ReportRow> {
    let contents = args![project, begun.id, entry, size, entries, now];
    if session.execute(&COMPLETE, contents).await? == 0 {
        return Err(StoreError::ContentGone);
    }
    unclaimed::claim(session, &begun.directory(), now).await?;
    get(session, project, begun.id).await?.ok_or(StoreError::Damaged("a report vanished while it was stored"))
}

/// Forgets a report that was not completed; what it wrote is left to the sweep.
/// One that is complete all the same, or waits for its job, stays: the answer
/// to its transaction was lost.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn discard(
    session: &mut Session,
    project: ProjectId,
    begun: &BegunReport,
    now: Timestamp,
) -> Result<()> {
    session.execute(&DELETE, args![project, begun.id]).await?;
    if session.first(&IS_THERE, args![project, begun.id]).await?.is_some() {
        return Ok(());
    }
    abandon(session, project, &begun.prefix, now).await
}

/// Forgets a report that waited for its job and cannot be completed. One that
/// another worker completed stays.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn discard_waiting(
    session: &mut Session,
    project: ProjectId,
    begun: &BegunReport,
    now: Timestamp,
) -> Result<()> {
    session.execute(&DELETE_WAITING, args![project, begun.id]).await?;
    discard(session, project, begun, now).await
}

/// Leaves the directory of a report to the sweep, and its archive where one was
/// announced.
async fn abandon(session: &mut Session, project: ProjectId, prefix: &str, now: Timestamp) -> Result<()> {
    unclaimed::abandon_announced(session, &archive_of(prefix), now).await?;
    unclaimed::abandon(session, project, &format!("{prefix}/"), now).await
}

/// Forgets at most `limit` reports that were begun long ago and never
/// completed, and leaves what they wrote to the sweep. Answers how many.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn discard_left(session: &mut Session, now: Timestamp, limit: i64) -> Result<usize> {
    let rows = session.all(&DELETE_LEFT, args![now.millis() - PENDING_LIFE_MS, limit]).await?;
    for row in &rows {
        let mut r = row.reader();
        let (project, prefix) = (ProjectId(r.int()?), r.text()?);
        abandon(session, project, &prefix, now).await?;
    }
    Ok(rows.len())
}
