//! Receipts: what was deleted, and how far the freeing of it has come. The
//! steps that free are in [`runs`] and [`project`]; rows that a restore needs
//! are in [`kept`].

pub mod kept;
pub mod project;
pub mod runs;

use callboard_domain::ids::{DeletionId, ProjectId, UserId};
use callboard_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// How long receipts are kept, days.
pub const KEPT_DAYS: i64 = 400;

/// How far a deletion has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionState {
    /// What it names is hidden; freeing has not begun.
    Pending,
    /// Rows and objects are going.
    Freeing,
    /// Nothing is left, and the object store confirmed it.
    Complete,
    /// A step failed again and again; it is tried on.
    Failed,
    /// It was restored, and rows are moving back.
    Restoring,
    /// It was restored.
    Restored,
}

impl DeletionState {
    /// Every spelling.
    pub const WORDS: &'static [&'static str] =
        &["pending", "freeing", "complete", "failed", "restoring", "restored"];

    /// The spelling in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Freeing => "freeing",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Restoring => "restoring",
            Self::Restored => "restored",
        }
    }

    /// The spelling in the column `state`. A restore has columns of its own.
    const fn stored(self) -> &'static str {
        match self {
            Self::Restoring => "pending",
            Self::Restored => "complete",
            state => state.as_str(),
        }
    }

    /// Whether nothing remains to be done.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Restored)
    }

    /// Reads a spelling.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Freeing, Self::Complete, Self::Failed, Self::Restoring, Self::Restored]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// Rows that were deleted, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedRows {
    /// Runs.
    pub runs: i64,
    /// Executions.
    pub executions: i64,
    /// Files and reports.
    pub files: i64,
    /// All others.
    pub other: i64,
}

/// A number of objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectCount {
    /// Objects.
    pub count: i64,
    /// Bytes.
    pub bytes: i64,
}

impl ObjectCount {
    /// Counts some more.
    pub const fn add(&mut self, count: i64, bytes: i64) {
        self.count += count;
        self.bytes += bytes;
    }
}

/// A receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    /// Id.
    pub id: DeletionId,
    /// In which project.
    pub project: Option<ProjectId>,
    /// Its name, unless it is deleted.
    pub project_name: Option<String>,
    /// `run`, `runs`, `project` or `files`.
    pub target_kind: String,
    /// Id of the run or project; of the project for several runs and for files.
    pub target_id: i64,
    /// What it was called.
    pub label: String,
    /// `user`, `retention` or `purge`.
    pub reason: String,
    /// Who asked for it: id, name to sign in with, name to show.
    pub requested_by: Option<(UserId, String, Option<String>)>,
    /// How far it has come.
    pub state: DeletionState,
    /// Rows that are gone.
    pub rows: DeletedRows,
    /// Objects that go with it.
    pub objects: ObjectCount,
    /// Objects that are gone.
    pub freed: ObjectCount,
    /// Objects that something else refers to, and that stay.
    pub kept_shared: ObjectCount,
    /// Runs and objects that are still to go.
    pub remaining: i64,
    /// What went wrong last.
    pub error: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When nothing was left.
    pub completed_at: Option<Timestamp>,
    /// When the object store confirmed that.
    pub verified_at: Option<Timestamp>,
    /// Until when it can be restored; `None` when it never could.
    pub restorable_until: Option<Timestamp>,
    /// When it was restored.
    pub restored_at: Option<Timestamp>,
}

impl ReceiptRow {
    /// Whether it can be restored at a moment.
    #[must_use]
    pub fn is_restorable(&self, now: Timestamp) -> bool {
        self.state == DeletionState::Pending && self.restorable_until.is_some_and(|until| now < until)
    }
}

macro_rules! select_receipt {
    ($tail:literal) => {
        concat!(
            "SELECT d.id, d.project_id, d.target_kind, d.target_id, d.label, d.reason, u.id, u.username, u.name, d.state, \
             d.rows, d.objects, d.bytes, d.freed_objects, d.freed_bytes, d.shared_objects, d.shared_bytes, d.remaining, \
             d.error, d.created_at, d.completed_at, d.verified_at, d.restorable_until, d.restore_requested_at, d.restored_at, p.name \
             FROM deletion_receipts d LEFT JOIN users u ON u.id = d.requested_by LEFT JOIN projects p ON p.id = d.project_id ",
            $tail
        )
    };
}

statements! {
    /// A new receipt.
    INSERT = "INSERT INTO deletion_receipts (id, project_id, target_kind, target_id, label, reason, requested_by, state, rows, \
        objects, bytes, freed_objects, freed_bytes, shared_objects, shared_bytes, remaining, created_at, restorable_until) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, 0, 0, 0, 0, 0, 0, $9, $10, $11)";
    /// One receipt.
    BY_ID = select_receipt!("WHERE d.id = $1");
    /// The deletion of files of a project that still takes some on. ix: deletion_receipts_open
    OPEN_FOR_FILES = "SELECT id FROM deletion_receipts WHERE state = 'pending' AND state <> 'complete' AND project_id = $1 \
        AND target_kind = 'files' ORDER BY id DESC LIMIT 1 for_update()";
    /// Begins to free: from now on a deletion takes nothing more on. PK
    BEGIN = "UPDATE deletion_receipts SET state = 'freeing' WHERE id = $1 AND state = 'pending' \
        AND restore_requested_at IS NULL";
    /// Locks a receipt.
    LOCK = "SELECT id FROM deletion_receipts WHERE id = $1 for_update()";
    /// Asks for a restore.
    REQUEST_RESTORE = "UPDATE deletion_receipts SET restore_requested_at = $2 WHERE id = $1";
    /// Notes that everything is restored.
    FINISH_RESTORE = "UPDATE deletion_receipts SET state = 'complete', remaining = 0, error = NULL, restored_at = $2, completed_at = $2 \
        WHERE id = $1";
    /// Writes how far a deletion has come.
    SAVE = "UPDATE deletion_receipts SET state = $2, rows = $3, objects = $4, bytes = $5, freed_objects = $6, freed_bytes = $7, \
        shared_objects = $8, shared_bytes = $9, remaining = $10, error = $11, completed_at = $12, verified_at = $13 WHERE id = $1";
    /// Receipts that were kept long enough. ix: deletion_receipts_by_time
    PURGE = "DELETE FROM deletion_receipts WHERE id IN (SELECT id FROM deletion_receipts \
        WHERE created_at < $1 AND state = 'complete' ORDER BY created_at, id LIMIT $2)";
}

fn read(row: &Row) -> Result<ReceiptRow> {
    let mut r = row.reader();
    let (id, project) = (DeletionId(r.int()?), r.opt_int()?.map(ProjectId));
    let (target_kind, target_id, label, reason) = (r.text()?, r.int()?, r.text()?, r.text()?);
    let (user, username, name) = (r.opt_int()?, r.opt_text()?, r.opt_text()?);
    let state = DeletionState::parse(&r.text()?).ok_or(StoreError::Damaged("the state of a deletion"))?;
    let mut receipt = ReceiptRow {
        id,
        project,
        project_name: None,
        target_kind,
        target_id,
        label,
        reason,
        requested_by: user.zip(username).map(|(user, username)| (UserId(user), username, name)),
        state,
        rows: serde_json::from_str(&r.text()?).map_err(|_| StoreError::Damaged("the rows of a deletion"))?,
        objects: ObjectCount { count: r.int()?, bytes: r.int()? },
        freed: ObjectCount { count: r.int()?, bytes: r.int()? },
        kept_shared: ObjectCount { count: r.int()?, bytes: r.int()? },
        remaining: r.int()?,
        error: r.opt_text()?,
        created_at: r.time()?,
        completed_at: r.opt_time()?,
        verified_at: r.opt_time()?,
        restorable_until: r.opt_time()?,
        restored_at: None,
    };
    let requested_at = r.opt_time()?;
    receipt.restored_at = r.opt_time()?;
    receipt.project_name = r.opt_text()?;
    if receipt.restored_at.is_some() {
        receipt.state = DeletionState::Restored;
    } else if requested_at.is_some() {
        receipt.state = DeletionState::Restoring;
    }
    Ok(receipt)
}

/// What a new receipt says.
#[derive(Debug, Clone)]
pub struct NewReceipt<'n> {
    /// In which project.
    pub project: Option<ProjectId>,
    /// `run`, `runs`, `project` or `files`.
    pub target_kind: &'static str,
    /// Id of what goes.
    pub target_id: i64,
    /// What it is called.
    pub label: &'n str,
    /// `user`, `retention` or `purge`.
    pub reason: &'static str,
    /// Who asks for it.
    pub requested_by: Option<UserId>,
    /// Runs that go.
    pub runs: i64,
    /// Until when it can be restored.
    pub restorable_until: Option<Timestamp>,
}

fn rows_json(rows: DeletedRows) -> String {
    serde_json::json!(rows).to_string()
}

/// Creates a receipt.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn create(session: &mut Session, new: &NewReceipt<'_>, now: Timestamp) -> Result<DeletionId> {
    let id = ids::allocate_one(session, Kind::Deletion).await?;
    let values = args![
        id,
        new.project,
        new.target_kind,
        new.target_id,
        new.label,
        new.reason,
        new.requested_by,
        rows_json(DeletedRows::default()),
        new.runs,
        now,
        new.restorable_until
    ];
    session.execute(&INSERT, values).await?;
    Ok(DeletionId(id))
}

/// One receipt.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, id: DeletionId) -> Result<Option<ReceiptRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// One receipt, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, id: DeletionId) -> Result<Option<ReceiptRow>> {
    session.first(&LOCK, args![id]).await?;
    get(session, id).await
}

/// Asks for a restore of a locked receipt.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn request_restore(session: &mut Session, id: DeletionId, now: Timestamp) -> Result<()> {
    session.execute(&REQUEST_RESTORE, args![id, now]).await?;
    Ok(())
}

/// Notes that everything is restored.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn finish_restore(session: &mut Session, id: DeletionId, now: Timestamp) -> Result<()> {
    session.execute(&FINISH_RESTORE, args![id, now]).await?;
    Ok(())
}

/// The deletion of files of a project that has not begun to free, locked: it
/// takes more on until then.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn open_for_files(session: &mut Session, project: ProjectId) -> Result<Option<DeletionId>> {
    let row = session.first(&OPEN_FOR_FILES, args![project]).await?;
    row.map(|row| row.reader().int().map(DeletionId)).transpose()
}

/// Begins to free what a deletion took on; `false` when that was begun before.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn begin(session: &mut Session, id: DeletionId) -> Result<bool> {
    Ok(session.execute(&BEGIN, args![id]).await? == 1)
}

/// Writes how far a deletion has come. One worker at a time holds its job, so
/// nothing is overwritten.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save(session: &mut Session, receipt: &ReceiptRow) -> Result<()> {
    let values = args![
        receipt.id,
        receipt.state.stored(),
        rows_json(receipt.rows),
        receipt.objects.count,
        receipt.objects.bytes,
        receipt.freed.count,
        receipt.freed.bytes,
        receipt.kept_shared.count,
        receipt.kept_shared.bytes,
        receipt.remaining,
        receipt.error.clone(),
        receipt.completed_at,
        receipt.verified_at
    ];
    session.execute(&SAVE, values).await?;
    Ok(())
}

/// Which receipts a list shows.
#[derive(Debug, Clone, Default)]
pub struct ReceiptFilter {
    /// Only in this state.
    pub state: Option<DeletionState>,
    /// Only those that can be restored at this moment.
    pub restorable_at: Option<Timestamp>,
    /// Only in this project.
    pub project: Option<ProjectId>,
    /// Asked for at this moment or later.
    pub from: Option<Timestamp>,
    /// Asked for at this moment or earlier.
    pub to: Option<Timestamp>,
    /// Key of the last row of the page before: time and id.
    pub after: Option<(i64, i64)>,
}

/// A page of receipts, newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(session: &mut Session, wanted: &ReceiptFilter, limit: i64) -> Result<Vec<ReceiptRow>> {
    session.list(page(session.backend(), wanted, limit)).await?.iter().map(read).collect()
}

fn page(backend: Backend, wanted: &ReceiptFilter, limit: i64) -> Filter {
    let filter = Filter::new(backend, select_receipt!("WHERE 1 = 1"), args![]);
    let filter = match wanted.state {
        Some(DeletionState::Restored) => filter.and("d.restored_at IS NOT NULL", args![]),
        Some(DeletionState::Restoring) => {
            filter.and("d.restore_requested_at IS NOT NULL AND d.restored_at IS NULL", args![])
        }
        Some(state) => filter.and("d.state = ? AND d.restore_requested_at IS NULL", args![state.as_str()]),
        None => filter,
    };
    let filter = match wanted.restorable_at {
        Some(at) => filter.and(
            "d.state = 'pending' AND d.restore_requested_at IS NULL AND d.restorable_until > ?",
            args![at],
        ),
        None => filter,
    };
    let filter = filter
        .and_if("d.project_id = ?", wanted.project.map(ProjectId::get))
        .and_if("d.created_at >= ?", wanted.from.map(Timestamp::millis))
        .and_if("d.created_at <= ?", wanted.to.map(Timestamp::millis));
    let filter = match wanted.after {
        Some((at, id)) => filter.and("(d.created_at, d.id) < (?, ?)", args![at, id]),
        None => filter,
    };
    // ix: deletion_receipts_by_time
    filter.end("ORDER BY d.created_at DESC, d.id DESC LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = ReceiptFilter {
        state: Some(DeletionState::Freeing),
        restorable_at: Some(Timestamp(0)),
        project: Some(ProjectId(1)),
        from: Some(Timestamp(0)),
        to: Some(Timestamp(0)),
        after: Some((0, 0)),
    };
    let in_state = |state| ReceiptFilter { state: Some(state), ..ReceiptFilter::default() };
    let restores = [in_state(DeletionState::Restoring), in_state(DeletionState::Restored)];
    [ReceiptFilter::default(), all]
        .into_iter()
        .chain(restores)
        .map(|wanted| page(backend, &wanted, 1))
        .collect()
}

/// Forgets at most `limit` receipts from before a moment; answers how many.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
