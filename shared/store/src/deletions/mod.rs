//! Receipts: what was deleted, and how far the freeing of it has come. The
//! steps that free are in [`runs`] and [`project`].

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
}

impl DeletionState {
    /// Every spelling.
    pub const WORDS: &'static [&'static str] = &["pending", "freeing", "complete", "failed"];

    /// The spelling in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Freeing => "freeing",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }

    /// Reads a spelling.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Freeing, Self::Complete, Self::Failed]
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
}

macro_rules! select_receipt {
    ($tail:literal) => {
        concat!(
            "SELECT d.id, d.project_id, d.target_kind, d.target_id, d.label, d.reason, u.id, u.username, u.name, d.state, \
             d.rows, d.objects, d.bytes, d.freed_objects, d.freed_bytes, d.shared_objects, d.shared_bytes, d.remaining, \
             d.error, d.created_at, d.completed_at, d.verified_at \
             FROM deletion_receipts d LEFT JOIN users u ON u.id = d.requested_by ",
            $tail
        )
    };
}

statements! {
    /// A new receipt.
    INSERT = "INSERT INTO deletion_receipts (id, project_id, target_kind, target_id, label, reason, requested_by, state, rows, \
        objects, bytes, freed_objects, freed_bytes, shared_objects, shared_bytes, remaining, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, 0, 0, 0, 0, 0, 0, $9, $10)";
    /// One receipt.
    BY_ID = select_receipt!("WHERE d.id = $1");
    /// The deletion of files of a project that still takes some on. ix: deletion_receipts_open
    OPEN_FOR_FILES = "SELECT id FROM deletion_receipts WHERE state = 'pending' AND state <> 'complete' AND project_id = $1 \
        AND target_kind = 'files' ORDER BY id DESC LIMIT 1 for_update()";
    /// Begins to free: from now on a deletion takes nothing more on. PK
    BEGIN = "UPDATE deletion_receipts SET state = 'freeing' WHERE id = $1 AND state = 'pending'";
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
    Ok(ReceiptRow {
        id,
        project,
        target_kind,
        target_id,
        label,
        reason,
        requested_by: user.zip(username).map(|(user, username)| (UserId(user), username, name)),
        state: DeletionState::parse(&r.text()?).ok_or(StoreError::Damaged("the state of a deletion"))?,
        rows: serde_json::from_str(&r.text()?).map_err(|_| StoreError::Damaged("the rows of a deletion"))?,
        objects: ObjectCount { count: r.int()?, bytes: r.int()? },
        freed: ObjectCount { count: r.int()?, bytes: r.int()? },
        kept_shared: ObjectCount { count: r.int()?, bytes: r.int()? },
        remaining: r.int()?,
        error: r.opt_text()?,
        created_at: r.time()?,
        completed_at: r.opt_time()?,
        verified_at: r.opt_time()?,
    })
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
}

fn rows_json(rows: DeletedRows) -> String {
    serde_json::json!(rows).to_string()
}

/// Creates a receipt.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
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
        now
    ];
    session.execute(&INSERT, values).await?;
    Ok(DeletionId(id))
}

/// One receipt.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn get(session: &mut Session, id: DeletionId) -> Result<Option<ReceiptRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// The deletion of files of a project that has not begun to free, locked: it
/// takes more on until then.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn open_for_files(session: &mut Session, project: ProjectId) -> Result<Option<DeletionId>> {
    let row = session.first(&OPEN_FOR_FILES, args![project]).await?;
    row.map(|row| row.reader().int().map(DeletionId)).transpose()
}

/// Begins to free what a deletion took on; `false` when that was begun before.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn begin(session: &mut Session, id: DeletionId) -> Result<bool> {
    Ok(session.execute(&BEGIN, args![id]).await? == 1)
}

/// Writes how far a deletion has come. One worker at a time holds its job, so
/// nothing is overwritten.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn save(session: &mut Session, receipt: &ReceiptRow) -> Result<()> {
    let values = args![
        receipt.id,
        receipt.state.as_str(),
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
/// [`StoreError::Database`] when the database refuses.
pub async fn list(session: &mut Session, wanted: &ReceiptFilter, limit: i64) -> Result<Vec<ReceiptRow>> {
    session.list(page(session.backend(), wanted, limit)).await?.iter().map(read).collect()
}

fn page(backend: Backend, wanted: &ReceiptFilter, limit: i64) -> Filter {
    let filter = Filter::new(backend, select_receipt!("WHERE 1 = 1"), args![])
        .and_if("d.state = ?", wanted.state.map(DeletionState::as_str))
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
        project: Some(ProjectId(1)),
        from: Some(Timestamp(0)),
        to: Some(Timestamp(0)),
        after: Some((0, 0)),
    };
    [ReceiptFilter::default(), all].map(|wanted| page(backend, &wanted, 1)).into()
}

/// Forgets at most `limit` receipts from before a moment; answers how many.
///
/// # Errors
/// [`StoreError::Database`] when the database refuses.
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}
