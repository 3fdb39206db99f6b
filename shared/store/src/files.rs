//! Files of executions: traces, screenshots, videos and other attachments.
//! The content lies in `blobs`; a row here says whose it is and what the
//! client called it.

use callboard_domain::ids::{BlobId, ExecutionId, FileId, ProjectId, RunId};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

/// What a file is to its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A Playwright trace.
    Trace,
    /// An image.
    Screenshot,
    /// A video.
    Video,
    /// Anything else.
    Attachment,
}

impl FileKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Trace, Self::Screenshot, Self::Video, Self::Attachment];

    /// The spelling in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Screenshot => "screenshot",
            Self::Video => "video",
            Self::Attachment => "attachment",
        }
    }

    /// Reads a stored spelling or a filter value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A file about to be linked to an execution.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// Run.
    pub run: RunId,
    /// Execution.
    pub execution: ExecutionId,
    /// Repetition of the attempt.
    pub repetition: i64,
    /// Retry of the attempt.
    pub retry: i64,
    /// Kind.
    pub kind: FileKind,
    /// Name the test gave it.
    pub name: String,
    /// Type as recognised by the server.
    pub content_type: String,
    /// Name of the client's file.
    pub original_name: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// Width and height of a picture, pixels, where its head told them.
    pub dimensions: Option<Dimensions>,
    /// Content.
    pub blob: BlobId,
}

/// Width and height of a picture, pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// From left to right.
    pub width: i32,
    /// From top to bottom.
    pub height: i32,
}

/// A stored file.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// Id.
    pub id: FileId,
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Execution.
    pub execution: ExecutionId,
    /// Repetition of the attempt.
    pub repetition: i64,
    /// Retry of the attempt.
    pub retry: i64,
    /// Kind.
    pub kind: FileKind,
    /// Name the test gave it.
    pub name: String,
    /// Stored name: what `/api/files/<path>` looks up.
    pub path: String,
    /// Type as recognised by the server.
    pub content_type: String,
    /// Name of the client's file.
    pub original_name: Option<String>,
    /// Size in bytes.
    pub size: i64,
    /// Width and height of a picture, where they are known.
    pub dimensions: Option<Dimensions>,
    /// Content.
    pub blob: BlobId,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
    /// When it was stored.
    pub created_at: Timestamp,
    /// When its time is over; a file of a pinned run has no end.
    pub expires_at: Option<Timestamp>,
}

// The run is joined so that files of a hidden run are not found.
macro_rules! select_file {
    ($tail:literal) => {
        concat!(
            "SELECT f.id, f.project_id, f.run_id, f.execution_id, f.repetition, f.retry, f.kind, f.name, f.path, \
             f.content_type, f.original_name, f.size, f.width, f.height, f.blob_id, b.sha256, f.created_at, \
             CASE WHEN r.pinned_at IS NULL THEN f.expires_at END \
             FROM files f JOIN blobs b ON b.project_id = f.project_id AND b.id = f.blob_id \
             JOIN test_runs r ON r.project_id = f.project_id AND r.id = f.run_id ",
            $tail
        )
    };
}

statements! {
    /// One file.
    BY_ID = select_file!("WHERE f.project_id = $1 AND f.id = $2");
    /// One file by its stored name. ix: files_path
    BY_PATH = select_file!("WHERE f.project_id = $1 AND f.path = $2");
    /// The newest files of a kind of each of some executions. ix: files_of_execution
    NEWEST_OF = select_file!("WHERE f.project_id = $1 AND f.id IN (SELECT n.id FROM (SELECT k.id, \
        ROW_NUMBER() OVER (PARTITION BY k.execution_id ORDER BY k.id DESC) AS place FROM files k \
        WHERE k.project_id = $1 AND k.execution_id in_ints($2) AND k.kind = $3) n WHERE n.place <= $4) ORDER BY f.id DESC");
    /// Links content to an execution, unless it is linked already. ix: files_content
    INSERT = "INSERT INTO files (id, project_id, run_id, execution_id, repetition, retry, kind, name, path, content_type, \
        original_name, size, width, height, blob_id, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
        ON CONFLICT (project_id, execution_id, repetition, retry, kind, name, blob_id) DO NOTHING";
    /// Whether an attempt has another trace already. ix: files_of_execution
    OTHER_TRACE = "SELECT 1 FROM files WHERE project_id = $1 AND execution_id = $2 AND kind = 'trace' AND repetition = $3 AND retry = $4 AND blob_id <> $5";
    /// Files of an attempt. ix: files_of_execution
    OF_ATTEMPT = "SELECT id, kind, name, blob_id FROM files WHERE project_id = $1 AND execution_id = $2 AND repetition = $3 AND retry = $4";
    /// Files of a run by kind. ix: files_of_run
    SIZES_OF_RUN = "SELECT kind, COUNT(*), CAST(SUM(size) AS BIGINT) FROM files WHERE project_id = $1 AND run_id = $2 GROUP BY kind ORDER BY kind";
}

fn read(row: &Row) -> Result<FileRow> {
    let mut r = row.reader();
    Ok(FileRow {
        id: FileId(r.int()?),
        project: ProjectId(r.int()?),
        run: RunId(r.int()?),
        execution: ExecutionId(r.int()?),
        repetition: r.int()?,
        retry: r.int()?,
        kind: FileKind::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown kind of file"))?,
        name: r.text()?,
        path: r.text()?,
        content_type: r.text()?,
        original_name: r.opt_text()?,
        size: r.int()?,
        dimensions: dimensions(r.opt_int()?, r.opt_int()?),
        blob: BlobId(r.int()?),
        sha256: r.bytes()?.try_into().map_err(|_| StoreError::Damaged("a content hash"))?,
        created_at: r.time()?,
        expires_at: r.opt_time()?,
    })
}

fn dimensions(width: Option<i64>, height: Option<i64>) -> Option<Dimensions> {
    Some(Dimensions { width: i32::try_from(width?).ok()?, height: i32::try_from(height?).ok()? })
}

/// Links content to an attempt. Answers the kind under which it was linked, or
/// `None` when the attempt has this content under this name already. A second,
/// different trace of one attempt is kept as an attachment.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn link(
    session: &mut Session,
    project: ProjectId,
    file: &NewFile,
    now: Timestamp,
) -> Result<Option<FileKind>> {
    let kind = match file.kind {
        FileKind::Trace if has_other_trace(session, project, file).await? => FileKind::Attachment,
        kind => kind,
    };
    let linked = insert(session, project, file, kind, now).await?;
    Ok(linked.then_some(kind))
}

async fn has_other_trace(session: &mut Session, project: ProjectId, file: &NewFile) -> Result<bool> {
    let row = session
        .first(&OTHER_TRACE, args![project, file.execution, file.repetition, file.retry, file.blob])
        .await?;
    Ok(row.is_some())
}

async fn insert(
    session: &mut Session,
    project: ProjectId,
    file: &NewFile,
    kind: FileKind,
    now: Timestamp,
) -> Result<bool> {
    let id = ids::allocate_one(session, Kind::File).await?;
    let path = format!("project-{project}/files/{id}/{}", safe_name(file));
    let size = i64::try_from(file.size).map_err(|_| StoreError::Damaged("a size beyond 63 bits"))?;
    let done = session
        .execute(
            &INSERT,
            args![
                id,
                project,
                file.run,
                file.execution,
                file.repetition,
                file.retry,
                kind.as_str(),
                &file.name,
                path,
                &file.content_type,
                file.original_name.clone(),
                size,
                file.dimensions.map(|dimensions| i64::from(dimensions.width)),
                file.dimensions.map(|dimensions| i64::from(dimensions.height)),
                file.blob,
                now
            ],
        )
        .await?;
    if done == 1 {
        ids::list(session, Listed::File, project, &[id]).await?;
        crate::blobs::refer(session, project, file.blob).await?;
    }
    Ok(done == 1)
}

/// A name that is harmless in a URL and on a disk, close to what the client
/// called the file.
fn safe_name(file: &NewFile) -> String {
    let wanted = file.original_name.as_deref().unwrap_or(&file.name);
    let base = wanted.rsplit(['/', '\\']).next().unwrap_or(wanted);
    let safe: String = base
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' })
        .take(100)
        .collect();
    let safe = safe.trim_matches(['.', '-']);
    if safe.is_empty() { file.kind.as_str().to_owned() } else { safe.to_owned() }
}

/// One file.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: FileId) -> Result<Option<FileRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// One file by its stored name.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_path(session: &mut Session, project: ProjectId, path: &str) -> Result<Option<FileRow>> {
    session.first(&BY_PATH, args![project, path]).await?.as_ref().map(read).transpose()
}

/// A page of an execution's files by id; `kinds` limits it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_execution(
    session: &mut Session,
    project: ProjectId,
    execution: ExecutionId,
    kinds: Option<&[FileKind]>,
    after: Option<i64>,
    limit: i64,
) -> Result<Vec<FileRow>> {
    let filter = page_of(session.backend(), project, execution, kinds, after, limit);
    session.list(filter).await?.iter().map(read).collect()
}

fn page_of(
    backend: Backend,
    project: ProjectId,
    execution: ExecutionId,
    kinds: Option<&[FileKind]>,
    after: Option<i64>,
    limit: i64,
) -> Filter {
    let kinds = kinds.map(|kinds| kinds.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<_>>());
    let base = select_file!("WHERE f.project_id = $1 AND f.execution_id = $2");
    Filter::new(backend, base, args![project, execution])
        .and_if("f.kind in_texts(?)", kinds)
        .and_if("f.id > ?", after)
        .end("ORDER BY f.id LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    [(None, None), (Some(&[FileKind::Trace][..]), Some(1))]
        .map(|(kinds, after)| page_of(backend, ProjectId(1), ExecutionId(1), kinds, after, 1))
        .into()
}

/// The newest files of a kind, so many of each of some executions, the newest
/// first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn newest_of(
    session: &mut Session,
    project: ProjectId,
    executions: &[ExecutionId],
    kind: FileKind,
    of_each: i64,
) -> Result<Vec<FileRow>> {
    if executions.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = executions.iter().map(|id| id.get()).collect();
    session.all(&NEWEST_OF, args![project, ids, kind.as_str(), of_each]).await?.iter().map(read).collect()
}

/// A file that an attempt has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFile {
    /// Id.
    pub id: FileId,
    /// Kind.
    pub kind: FileKind,
    /// Name the test gave it.
    pub name: String,
    /// Its bytes.
    pub blob: BlobId,
}

/// The files of an attempt.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_attempt(
    session: &mut Session,
    project: ProjectId,
    execution: ExecutionId,
    (repetition, retry): (i64, i64),
) -> Result<Vec<HeldFile>> {
    let rows = session.all(&OF_ATTEMPT, args![project, execution, repetition, retry]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let id = FileId(r.int()?);
            let kind = FileKind::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown kind of file"))?;
            Ok(HeldFile { id, kind, name: r.text()?, blob: BlobId(r.int()?) })
        })
        .collect()
}

/// How many files of one kind a run holds.
#[derive(Debug, Clone, Copy)]
pub struct KindSize {
    /// Kind.
    pub kind: FileKind,
    /// Number of files.
    pub count: i64,
    /// Their sizes together, bytes.
    pub bytes: i64,
}

/// Files of a run by kind.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sizes_of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<KindSize>> {
    let rows = session.all(&SIZES_OF_RUN, args![project, run]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(KindSize {
                kind: FileKind::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown kind of file"))?,
                count: r.int()?,
                bytes: r.int()?,
            })
        })
        .collect()
}
