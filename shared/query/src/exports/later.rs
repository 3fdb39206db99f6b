//! Exports that a job makes: whatever does not fit one answer, and what is
//! not a run. The file is an object of its own, which goes by itself after a
//! day.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::export::{ExportFormat, ExportKind, ExportStatus};
use callboard_domain::ids::{ClusterId, ExecutionId, ExportId, ProjectId, RunId};
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::exports::{self, ExportRow};
use callboard_store::jobs::{self, Payload};
use callboard_store::objects::ObjectWriter;
use callboard_store::unclaimed;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::reading::{ExportWish, ExportedTest, told};
use super::run_file::{RunFile, json_line};
use super::{csv, page};
use crate::accounts::Acting;
use crate::clusters::{self, OccurrenceQuery};
use crate::executions::required_execution;
use crate::runs::RunQuery;
use crate::{Context, Entity, Links, QueryError, Result, runs};
use callboard_ingest::read_session_with_fresh_aggregates;

/// How long a file is kept, and how long an export may wait to be made, ms.
/// Objects that nobody claims live as long.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// Most rows of one export.
pub const MOST_ROWS: usize = 1_000_000;
/// Rows read at a time.
const ROWS_AT_ONCE: usize = 200;

/// What an export of several runs holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportRows {
    /// One row for each run.
    Runs,
    /// One row for each test of each run.
    #[default]
    Executions,
}

/// What is left out of an export, and what comes along; part of a job.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ExportFilter {
    /// Runs or tests, of a project.
    pub rows: ExportRows,
    /// Only tests of these statuses; all when empty.
    pub statuses: Vec<String>,
    /// Only runs on this branch.
    pub branch: Option<String>,
    /// Only runs in this environment.
    pub environment: Option<String>,
    /// Only runs that started at this moment (epoch ms) or later.
    pub from: Option<i64>,
    /// Only runs that started before this moment (epoch ms).
    pub before: Option<i64>,
    /// Every attempt of each test.
    pub attempts: bool,
    /// Whole errors.
    pub errors: bool,
    /// Everything that was captured.
    pub evidence: bool,
}

impl ExportFilter {
    fn wish(&self, format: ExportFormat) -> ExportWish {
        ExportWish {
            statuses: self.statuses.iter().filter_map(|word| TestStatus::parse(word)).collect(),
            attempts: self.attempts,
            errors: self.errors,
            evidence: self.evidence && format.is_rows(),
        }
    }

    fn runs(&self, project: Authorized<ProjectId>) -> RunQuery {
        RunQuery {
            projects: vec![project.get()],
            branches: self.branch.iter().cloned().collect(),
            environments: self.environment.iter().cloned().collect(),
            from: self.from.map(Timestamp),
            before: self.before.map(Timestamp),
            ascending: true,
            ..RunQuery::default()
        }
    }
}

/// An export that is to be made.
#[derive(Debug, Clone)]
pub struct NewExport {
    /// What it is of.
    pub kind: ExportKind,
    /// The id of that.
    pub target: i64,
    /// Its form; only runs have others than rows.
    pub format: ExportFormat,
    /// What is left out.
    pub filter: ExportFilter,
    /// Where its links to pages begin: the address the service is configured
    /// with. Without one they begin with their path, because others read them than
    /// the one who asked, by whatever name that was.
    pub origin: String,
}

/// The work of making an export.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MakeExport {
    /// Project.
    pub project: ProjectId,
    /// The export.
    pub export: i64,
    /// See [`NewExport`].
    pub origin: String,
    /// What is left out.
    pub filter: ExportFilter,
}

impl Payload for MakeExport {
    const KIND: &'static str = "make_export";
}

/// An export that is made by a job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// Export id.
    pub id: i64,
    /// `queued`, `running`, `ready` or `failed`.
    #[schema(example = "ready")]
    pub status: &'static str,
    /// `junit`, `ctrf`, `csv` or `ndjson`.
    #[schema(example = "ndjson")]
    pub format: &'static str,
    /// Bytes of the file, once it is there.
    pub size: Option<i64>,
    /// Where the file is, once it is there.
    pub download_url: Option<String>,
    /// When the file goes, once it is there.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Why it could not be made.
    pub error: Option<String>,
}

impl Export {
    fn from_row(row: ExportRow, ctx: &Context) -> Self {
        let is_ready = row.status == ExportStatus::Ready;
        Self {
            id: row.id.get(),
            status: row.status.as_str(),
            format: row.format.as_str(),
            size: row.size,
            download_url: row.path.filter(|_| is_ready).map(|path| ctx.links.file(&path)),
            expires_at: is_ready.then_some(row.expires_at),
            error: row.error,
        }
    }
}

/// Notes an export, to be made by a job.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    new: NewExport,
) -> Result<Export> {
    let (project, now) = (project.get(), acting.now);
    let expires_at = Timestamp(now.millis() + KEPT_MS);
    let mut session = ctx.store.db().begin().await?;
    let NewExport { kind, target, format, filter, origin } = new;
    let id = exports::create(&mut session, project, (kind, target), format, expires_at, now).await?;
    let job = MakeExport { project, export: id.get(), origin, filter };
    jobs::enqueue(&mut session, &format!("export:{id}"), Some(project), &job, now).await?;
    let detail = json!({ "kind": kind.as_str(), "format": format.as_str(), "export": id.get() });
    let recorded = acting
        .record(&mut session, AuditAction::ExportCreated, (kind.as_str(), target), Some(project), detail)
        .await?;
    let row = required(&mut session, project, id).await?;
    session.commit().await?;
    recorded.committed();
    Ok(Export::from_row(row, ctx))
}

/// One export. It is gone when its time is over.
///
/// # Errors
/// [`QueryError::NotFound`].
#[boxed]
pub async fn get(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExportId,
    now: Timestamp,
) -> Result<Export> {
    let row = required(&mut ctx.store.db().read().await?, project.get(), id).await?;
    if row.expires_at <= now {
        return Err(QueryError::not_found(Entity::Export, id));
    }
    Ok(Export::from_row(row, ctx))
}

async fn required(
    session: &mut callboard_store::Session,
    project: ProjectId,
    id: ExportId,
) -> Result<ExportRow> {
    let row = exports::get(session, project, id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::Export, id))
}

/// Makes an export. What it is of may be gone by now: the export says so, and
/// so does one that would hold more than [`MOST_ROWS`].
///
/// # Errors
/// [`QueryError::Store`]: making it again may help, unless `is_last`, when the
/// export is marked as failed.
#[boxed]
pub async fn make(ctx: &Context, job: &MakeExport, is_last: bool, now: Timestamp) -> Result<()> {
    let (project, id) = (job.project, ExportId(job.export));
    let found = exports::get(&mut ctx.store.db().read().await?, project, id).await?;
    let Some(mut row) = found.filter(|row| row.status != ExportStatus::Ready) else { return Ok(()) };
    let name = format!("callboard-{}-{}.{}", row.kind.as_str(), row.target, row.format.extension());
    let path = format!("project-{project}/exports/{id}/{name}");
    row.status = ExportStatus::Running;
    save(ctx, project, &row, Some(&path), now).await?;
    let ctx = &Context { links: Links::new(&job.origin), ..ctx.clone() };
    let making = Making {
        ctx,
        project: Authorized::of_job(project),
        format: row.format,
        filter: &job.filter,
        wish: job.filter.wish(row.format),
        writer: ctx.store.objects().writer(&path)?,
        size: 0,
        rows: 0,
    };
    match making.make(row.kind, row.target).await {
        Ok(size) => {
            row.status = ExportStatus::Ready;
            (row.path, row.size) = (Some(path.clone()), Some(size));
            row.expires_at = Timestamp(now.millis() + KEPT_MS);
            save(ctx, project, &row, Some(&path), now).await
        }
        Err(QueryError::Store(error)) if !is_last => Err(error.into()),
        Err(error) => {
            row.status = ExportStatus::Failed;
            row.error = Some(match &error {
                QueryError::Store(_) => "The database or the object store did not answer.".to_owned(),
                told => told.to_string(),
            });
            save(ctx, project, &row, None, now).await?;
            if let QueryError::Store(_) = error { Err(error) } else { Ok(()) }
        }
    }
}

/// Writes how far an export is; the object at `path` lives a day from now.
async fn save(
    ctx: &Context,
    project: ProjectId,
    row: &ExportRow,
    path: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    if let Some(path) = path {
        unclaimed::announce(&mut session, project, path, now).await?;
    }
    exports::save(&mut session, project, row).await?;
    Ok(session.commit().await?)
}

/// An export that is being written.
struct Making<'m> {
    ctx: &'m Context,
    project: Authorized<ProjectId>,
    format: ExportFormat,
    filter: &'m ExportFilter,
    wish: ExportWish,
    writer: ObjectWriter,
    size: i64,
    rows: usize,
}

impl Making<'_> {
    /// Writes the file and tells its size.
    async fn make(mut self, kind: ExportKind, target: i64) -> Result<i64> {
        let written = match kind {
            ExportKind::Run => self.run(RunId(target)).await,
            ExportKind::Project if self.filter.rows == ExportRows::Runs => self.runs().await,
            ExportKind::Project => self.executions().await,
            ExportKind::Cluster => self.cluster(ClusterId(target)).await,
            ExportKind::Execution => self.execution(ExecutionId(target)).await,
        };
        match written {
            Ok(()) => {
                self.writer.finish().await?;
                Ok(self.size)
            }
            Err(error) => {
                self.writer.abort().await;
                Err(error)
            }
        }
    }

    async fn write(&mut self, text: &str) -> Result<()> {
        self.size += i64::try_from(text.len()).unwrap_or(i64::MAX);
        Ok(self.writer.write(text.as_bytes()).await?)
    }

    fn count(&mut self, rows: usize) -> Result<()> {
        self.rows += rows;
        if self.rows > MOST_ROWS {
            return Err(QueryError::TooMany { what: "The export", limit: MOST_ROWS });
        }
        Ok(())
    }

    async fn tests(&mut self, tests: &[ExportedTest]) -> Result<()> {
        self.count(tests.len())?;
        let text: String = match self.format {
            ExportFormat::Csv => tests.iter().map(|test| csv::row(test, &self.wish)).collect(),
            _ => tests.iter().map(json_line).collect(),
        };
        self.write(&text).await
    }

    async fn head(&mut self, of_several_runs: bool) -> Result<()> {
        if self.format == ExportFormat::Csv {
            return self.write(&csv::head(&self.wish, of_several_runs)).await;
        }
        Ok(())
    }

    async fn run(&mut self, run: RunId) -> Result<()> {
        let (ctx, wish) = (self.ctx.clone(), self.wish.clone());
        let file = RunFile { ctx, project: self.project, run, format: self.format, wish };
        let head = file.head().await?;
        let mut after = None;
        loop {
            let part = file.part(&head, after).await?;
            self.write(&part.bytes).await?;
            match part.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn runs(&mut self) -> Result<()> {
        if self.format == ExportFormat::Csv {
            self.write(&csv::head_of_runs()).await?;
        }
        let mut query = self.filter.runs(self.project);
        loop {
            let found = runs::list_of(self.ctx, self.project, &query, ROWS_AT_ONCE).await?;
            self.count(found.items.len())?;
            let text: String = match self.format {
                ExportFormat::Csv => found.items.iter().map(csv::run).collect(),
                _ => found.items.iter().map(json_line).collect(),
            };
            self.write(&text).await?;
            match found.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn executions(&mut self) -> Result<()> {
        self.head(true).await?;
        let mut query = self.filter.runs(self.project);
        loop {
            let found = runs::list_of(self.ctx, self.project, &query, ROWS_AT_ONCE).await?;
            for run in &found.items {
                let id = RunId(run.brief.id);
                let mut after = None;
                loop {
                    let mut part = page(self.ctx, self.project, id, &self.wish, after).await?;
                    part.items.iter_mut().for_each(|test| test.run = Some(run.brief.clone()));
                    self.tests(&part.items).await?;
                    match part.next {
                        Some(next) => after = Some(next),
                        None => break,
                    }
                }
            }
            match found.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn cluster(&mut self, cluster: ClusterId) -> Result<()> {
        self.head(true).await?;
        let (ctx, project, wish) = (self.ctx, self.project, self.wish.clone());
        let mut query = OccurrenceQuery {
            branches: self.filter.branch.iter().cloned().collect(),
            environments: self.filter.environment.iter().cloned().collect(),
            from: self.filter.from.map(Timestamp),
            to: self.filter.before.map(|before| Timestamp(before - 1)),
            after: None,
        };
        loop {
            let found = clusters::occurrences(self.ctx, self.project, cluster, &query, ROWS_AT_ONCE).await?;
            let mut tests = Vec::with_capacity(found.items.len());
            for found in found.items {
                if wish.leaves_out(found.execution.status) {
                    continue;
                }
                let test = one(ctx, project, ExecutionId(found.execution.id), &wish).await?;
                tests.push(ExportedTest { run: Some(found.run), ..test });
            }
            self.tests(&tests).await?;
            match found.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn execution(&mut self, id: ExecutionId) -> Result<()> {
        self.head(true).await?;
        let run = runs::get(self.ctx, self.project, id.run()).await?.brief;
        let wish = self.wish.clone();
        let test = one(self.ctx, self.project, id, &wish).await?;
        self.tests(&[ExportedTest { run: Some(run), ..test }]).await
    }
}

/// What an export tells of one execution.
async fn one(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    wish: &ExportWish,
) -> Result<ExportedTest> {
    let row = required_execution(
        &mut read_session_with_fresh_aggregates(ctx, project.get()).await?,
        project.get(),
        id,
    )
    .await?;
    let tests = told(ctx, project.get(), &[row], wish).await?;
    tests.into_iter().next().ok_or_else(|| QueryError::not_found(Entity::Execution, id))
}
