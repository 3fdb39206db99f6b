//! A submission: a run with its test cases and their files, sent as a batch.

use std::collections::HashMap;

use callboard_auth::scope::{Authorized, Denied, Scope};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::ingest::RunFields;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;
use callboard_store::audit::{self, Actor, AuditEvent, Target};
use callboard_store::{Reservation, StoreError};
use callboard_store::{blobs, boxed, projects};

use crate::aggregate::aggregation;
use crate::apply::attachments::PublishedFile;
use crate::apply::pending;
use crate::receive::batch_writer::{Writer, Written};
use crate::receive::entries::Entries;
use crate::receive::files::{self, IncomingFile};
use crate::resolve::run_resolution::{OpenKind, Opening};
use crate::resolve::start_keys::batch_keys;
use crate::{Context, Result};

/// What a client sends about a whole run.
#[derive(Debug, Default)]
pub struct Submission {
    /// Fields of the run.
    pub fields: RunFields,
    /// Its test cases, one entry per attempt.
    pub entries: Entries,
    /// Files of its test cases.
    pub files: Vec<IncomingFile>,
    /// Traces that the client takes for stored.
    pub named_traces: Vec<NamedTrace>,
    /// What it holds of the budget for bodies until it is stored, whether its
    /// client waits for that or not.
    pub held: Option<Reservation>,
}

/// A trace of which only the hash came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedTrace {
    /// Index of the entry in the submitted list.
    pub entry: usize,
    /// SHA-256 of the trace.
    pub sha256: [u8; 32],
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
    /// Entries whose trace was only named and is not stored.
    pub missing_traces: Vec<usize>,
    /// Page of the run.
    pub url: String,
}

/// The project a submission names, made when it does not exist. `actor` is
/// who sends it, for the audit log.
///
/// # Errors
/// [`crate::QueryError::Denied`] when the caller may not write there, or may not
/// create projects; nothing is created then.
#[boxed]
pub async fn open_project(
    ctx: &Context,
    scope: &Scope,
    name: &str,
    description: Option<&str>,
    actor: Actor,
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
    let named = projects::get_or_create(&mut session, name, description, now).await?;
    let mut noted = None;
    if named.is_new {
        let detail = serde_json::Map::from_iter([
            ("name".to_owned(), name.into()),
            ("by".to_owned(), "submission".into()),
        ]);
        let target = Some(Target { kind: "project", id: named.id.get() });
        let (action, project) = (AuditAction::ProjectCreated, Some(named.id));
        let event = AuditEvent { at: now, actor, action, target, project, detail };
        noted = Some(audit::record(&mut session, event).await?);
    }
    session.commit().await?;
    if let Some(noted) = noted {
        noted.committed();
    }
    Ok(scope.authorize(named.id)?)
}

/// The project of this name that files are on their way to before the rest of
/// their submission can be judged; none when it is yet to be made.
///
/// # Errors
/// As [`open_project`], of which this makes nothing.
#[boxed]
pub async fn known_project(ctx: &Context, scope: &Scope, name: &str) -> Result<Option<ProjectId>> {
    match projects::find(&mut ctx.store.db().read().await?, name).await? {
        Some(known) => Ok(Some(scope.authorize(known.id)?.get())),
        None if scope.may_create_projects() => Ok(None),
        None => Err(Denied::ProjectCreationForbidden.into()),
    }
}

/// Stores a submission. The same submission again finds its run by its start
/// key and changes nothing. It goes on when the caller goes away: a client that
/// hangs up must not leave half of its run behind.
///
/// # Errors
/// [`crate::QueryError::Store`]. Up to 2,000 entries nothing of
/// the submission is visible then; of a larger one, what was written so far
/// stays as an interrupted run, which the same submission completes.
#[boxed]
pub async fn submit(
    ctx: &Context,
    project: Authorized<ProjectId>,
    submission: Submission,
    now: Timestamp,
) -> Result<Submitted> {
    let ctx = ctx.clone();
    let written =
        tokio::spawn(async move { Box::pin(write_submission(&ctx, project.get(), submission, now)).await });
    written.await.map_err(|_| StoreError::Damaged("a submission broke off"))?
}

async fn write_submission(
    ctx: &Context,
    project: ProjectId,
    submission: Submission,
    now: Timestamp,
) -> Result<Submitted> {
    let arrival = ctx.write_coalescer.begin_request();
    let Submission { fields, mut entries, files: incoming, named_traces, held: _held } = submission;
    let start = fields.start_time.unwrap_or(now);
    let keys = batch_keys(&fields, start);
    let span = entries.span_ms();
    let opening = Opening { ctx, project, fields: &fields, start, keys, purpose: OpenKind::Batch, now };

    let mut files: HashMap<usize, Vec<PublishedFile>> = HashMap::new();
    for file in incoming {
        let file = files::publish(ctx, project, file, now).await?;
        files.entry(file.entry).or_default().push(file);
    }
    let missing_traces = add_stored(ctx, project, &named_traces, &mut entries, &mut files).await?;
    let known = opening.look(&mut ctx.store.db().read().await?).await?.run();
    if let Some(run) = known {
        pending::apply_pending_for_run(ctx, project, run).await?;
    }
    let mut parts = entries.into_parts();
    let mut writer = Writer::new(opening, span, files, known);
    let written = writer.write(&mut parts).await;
    writer.clean_up(written.as_ref().err()).await;
    let Written { run, is_known, executions } = written?;
    drop(arrival);
    aggregation::keep_up(ctx, project, executions.len()).await;
    Ok(Submitted {
        run: run.id,
        project,
        status: run.status,
        totals: run.totals,
        duplicate: is_known,
        executions,
        missing_traces,
        url: ctx.links.run(run.id.get()),
    })
}

/// Adds the traces that are stored to the files of their entries; answers the
/// entries whose trace is not. One that is missing costs nothing else: a client
/// that is refused here would lose its whole run for it.
async fn add_stored(
    ctx: &Context,
    project: ProjectId,
    named: &[NamedTrace],
    entries: &mut Entries,
    files: &mut HashMap<usize, Vec<PublishedFile>>,
) -> Result<Vec<usize>> {
    let mut missing = Vec::new();
    if named.is_empty() {
        return Ok(missing);
    }
    let titles = entries.titles(named.iter().map(|trace| trace.entry).collect()).await?;
    let mut session = ctx.store.db().read().await?;
    for NamedTrace { entry, sha256 } in named {
        let title = titles.get(entry).map_or("", String::as_str);
        match blobs::stored(&mut session, project, sha256).await? {
            Some(blob) => {
                files.entry(*entry).or_default().push(PublishedFile::stored_trace(*entry, title, blob));
            }
            None => missing.push(*entry),
        }
    }
    Ok(missing)
}
