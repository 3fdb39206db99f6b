//! A submission: a run with its test cases and their files, sent as a batch.

use std::collections::HashMap;

use callboard_auth::scope::{Authorized, Denied, Scope};
use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{ExecutionId, PackId, ProjectId, RunId};
use callboard_domain::ingest::{RunFields, TestCaseEntry};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;
use callboard_store::StoreError;
use callboard_store::evidence::{Frame, PackWriter, WrittenPack};
use callboard_store::ids::{self, Kind};
use callboard_store::projects;
use callboard_store::runs;

use super::chunk;
use super::files::{self, IncomingFile, PublishedFile};
use super::key::start_key;
use super::writer::Writer;
use crate::{Context, Entity, QueryError, Result};

/// What a client sends about a whole run.
#[derive(Debug, Default)]
pub struct Submission {
    /// Fields of the run.
    pub fields: RunFields,
    /// Its test cases, one entry per attempt.
    pub entries: Vec<TestCaseEntry>,
    /// Files of its test cases.
    pub files: Vec<IncomingFile>,
}

/// What became of a submission.
#[derive(Debug)]
pub struct Submitted {
    /// The run.
    pub run: RunId,
    /// Its project.
    pub project: ProjectId,
    /// Its status now.
    pub status: RunStatus,
    /// Its totals now.
    pub totals: Totals,
    /// Whether it was known already and the submission was merged into it.
    pub duplicate: bool,
    /// Execution of every entry, by index of the entry.
    pub executions: Vec<(usize, ExecutionId)>,
    /// Page of the run.
    pub url: String,
}

/// The project a submission names, made when it does not exist.
///
/// # Errors
/// [`QueryError::Denied`] when the caller may not write there, or may not
/// create projects; nothing is created then.
pub async fn open_project(
    ctx: &Context,
    scope: &Scope,
    name: &str,
    description: Option<&str>,
    now: Timestamp,
) -> Result<Authorized<ProjectId>> {
    let known = projects::find(&mut ctx.store.db().read().await?, name).await?;
    if let Some(project) = known {
        return Ok(scope.authorize(project.id)?);
    }
    if !scope.may_create_projects() {
        return Err(Denied::ProjectCreationForbidden.into());
    }
    let mut session = ctx.store.db().begin().await?;
    let id = projects::get_or_create(&mut session, name, description, now).await?;
    session.commit().await?;
    Ok(scope.authorize(id)?)
}

/// The project of this name, when it exists; for what arrives before the rest
/// of a submission can be judged.
///
/// # Errors
/// [`QueryError::Denied`] when the caller may not write there.
pub async fn known_project(ctx: &Context, scope: &Scope, name: &str) -> Result<Option<ProjectId>> {
    let known = projects::find(&mut ctx.store.db().read().await?, name).await?;
    Ok(match known {
        Some(project) => Some(scope.authorize(project.id)?.get()),
        None => None,
    })
}

/// The run that files are attached to later, with its project.
///
/// # Errors
/// [`QueryError::NotFound`], then [`QueryError::Denied`].
pub async fn run_to_attach_to(
    ctx: &Context,
    scope: &Scope,
    run: RunId,
) -> Result<(Authorized<ProjectId>, RunStatus)> {
    let project = crate::resolve::run(ctx, scope, run).await?;
    let row = runs::get(&mut ctx.store.db().read().await?, project.get(), run).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    Ok((project, row.status))
}

/// Stores a submission. The same submission again finds its run by its start
/// key and changes nothing. It goes on when the caller goes away: a client that
/// hangs up must not leave half of its run behind.
///
/// # Errors
/// [`QueryError::Store`]. Up to 2,000 entries nothing of
/// the submission is visible then; of a larger one, what was written so far
/// stays as an interrupted run, which the same submission completes.
pub async fn submit(
    ctx: &Context,
    project: Authorized<ProjectId>,
    submission: Submission,
    now: Timestamp,
) -> Result<Submitted> {
    let ctx = ctx.clone();
    let written = tokio::spawn(async move { write_submission(&ctx, project.get(), submission, now).await });
    written.await.map_err(|_| StoreError::Damaged("a submission broke off"))?
}

async fn write_submission(
    ctx: &Context,
    project: ProjectId,
    submission: Submission,
    now: Timestamp,
) -> Result<Submitted> {
    let Submission { fields, mut entries, files: incoming } = submission;
    let start = fields.start_time.unwrap_or(now);
    let key = start_key(&fields, start);
    let span = span_of(&entries);

    let mut files: HashMap<usize, Vec<PublishedFile>> = HashMap::new();
    for file in incoming {
        let file = files::publish(ctx, project, file, now).await?;
        files.entry(file.entry).or_default().push(file);
    }
    let known = known_run(ctx, project, key.as_ref()).await?;
    let (pack, slices, reserved) = write_evidence(ctx, project, known, &mut entries).await?;
    let groups = chunk::group(entries);
    let mut writer = Writer {
        ctx,
        project,
        fields: &fields,
        start,
        key,
        span,
        now,
        reserved,
        files,
        slices,
        pack: pack.as_ref(),
        is_recorded: false,
        begun: None,
    };
    let mut written = writer.write(known, &groups).await;
    if matches!(written, Ok(None)) {
        // Another call with the same start key was first: this one merges into its run.
        let known = known_run(ctx, project, key.as_ref()).await?;
        written = writer.write(known, &groups).await;
    }
    writer.clean_up(written.as_ref().err()).await;
    let (run, duplicate, executions) = written?.ok_or(StoreError::Damaged("a start key without a run"))?;
    Ok(Submitted {
        run: run.id,
        project,
        status: run.status,
        totals: run.totals,
        duplicate,
        executions,
        url: ctx.links.run(run.id.get()),
    })
}

async fn known_run(ctx: &Context, project: ProjectId, key: Option<&[u8; 32]>) -> Result<Option<RunId>> {
    Ok(match key {
        Some(key) => runs::by_start_key(&mut ctx.store.db().read().await?, project, key).await?,
        None => None,
    })
}

/// From the earliest start to the latest end of the test cases.
fn span_of(entries: &[TestCaseEntry]) -> Option<i64> {
    let first = entries.iter().filter_map(|entry| entry.started_at).min()?;
    let last =
        entries.iter().filter_map(|entry| Some(entry.started_at?.millis() + entry.duration_ms)).max()?;
    Some((last - first.millis()).max(0))
}

/// Writes the evidence of all entries as one pack, failing attempts first, and
/// takes it out of the entries. Answers the run id it reserved for the pack's
/// key when the run is new.
async fn write_evidence(
    ctx: &Context,
    project: ProjectId,
    known: Option<RunId>,
    entries: &mut [TestCaseEntry],
) -> Result<(Option<WrittenPack>, HashMap<usize, EvidenceSlice>, Option<RunId>)> {
    let mut evidence: Vec<(u8, usize, Box<Evidence>)> = entries
        .iter_mut()
        .filter_map(|entry| Some((entry.status.severity(), entry.index, entry.evidence.take()?)))
        .collect();
    if evidence.is_empty() {
        return Ok((None, HashMap::new(), None));
    }
    evidence.sort_by_key(|(severity, index, _)| (*severity, *index));
    // Compressing megabytes would hold up other requests of this thread.
    let packed = tokio::task::spawn_blocking(move || {
        let mut writer = PackWriter::new()?;
        let mut frames: Vec<(usize, Frame)> = Vec::with_capacity(evidence.len());
        for (_, index, evidence) in &evidence {
            frames.push((*index, writer.add(evidence)?));
        }
        Ok::<_, StoreError>((writer, frames))
    });
    let (writer, frames) =
        packed.await.map_err(|_| StoreError::Damaged("evidence could not be compressed"))??;
    let mut session = ctx.store.db().begin().await?;
    let reserved = match known {
        Some(_) => None,
        None => Some(RunId(ids::allocate_one(&mut session, Kind::Run).await?)),
    };
    let pack = PackId(ids::allocate_one(&mut session, Kind::Pack).await?);
    session.commit().await?;
    let run = known.or(reserved).ok_or(StoreError::Damaged("a pack without a run"))?;
    let written = writer.write(&ctx.store, project, run, pack).await?;
    let slices = frames.into_iter().map(|(index, frame)| (index, frame.of(pack))).collect();
    Ok((Some(written), slices, reserved))
}
