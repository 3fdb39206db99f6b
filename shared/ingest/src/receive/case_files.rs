//! Files of a test of a run that goes on: which attempt they belong to, and
//! their link to it.

use callboard_auth::scope::Scope;
use callboard_domain::ids::{ExecutionId, FileId, ProjectId, RunId, SlotId};
use callboard_domain::ingest::{CaseRef, MAX_ATTACHMENTS};
use callboard_domain::time::Timestamp;
use callboard_store::blobs::{self, BlobRow, StagedBlob};
use callboard_store::executions::{self, RunPlace};
use callboard_store::files::{self, FileKind, HeldFile};
use callboard_store::runs::tokens::TokenKind;
use callboard_store::runs::{self, slots};
use callboard_store::{boxed, jobs, projects, test_cases};

use crate::apply::attachments::{Linked, PublishedFile, link_all, lock_contents};
use crate::apply::pending;
use crate::receive::attachment_matching::{Chosen, Sent, choose};
use crate::receive::files::{FileKindHint, IncomingFile, StoredFile, publish, publish_stored};
use crate::stage::run_token::{self, Bearer};
use crate::transaction::follow_up::Recompute;
use crate::transaction::run_events;
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Entity, QueryError, Result};
use callboard_core::retry;

/// What a client sends about one attempt of a test.
#[derive(Debug)]
pub struct CaseFiles {
    /// Which one.
    pub case: CaseRef,
    /// SHA-256 of the trace, as the client computed it.
    pub trace_hash: Option<[u8; 32]>,
    /// The trace; none when the client believes that it is stored.
    pub trace: Option<IncomingFile>,
    /// Attachments.
    pub attachments: Vec<IncomingFile>,
}

/// What was linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseFilesTaken {
    /// The execution.
    pub execution: ExecutionId,
    /// Traces that are new.
    pub traces: i64,
    /// Attachments that are new.
    pub attachments: i64,
    /// Attachments beyond what an attempt may have.
    pub surplus: usize,
    /// The file, where one was sent and there was room for it.
    pub file: Option<FileId>,
}

impl CaseFiles {
    /// Lets go of everything received.
    #[boxed]
    pub async fn discard(self, ctx: &Context) {
        let staged = self.trace.into_iter().chain(self.attachments).map(|file| file.staged);
        for blob in staged {
            discard(ctx, blob).await;
        }
    }
}

async fn discard(ctx: &Context, blob: StagedBlob) {
    if let Err(error) = blob.discard(&ctx.store).await {
        tracing::warn!(%error, "a staged file could not be removed; its ticket names it");
    }
}

/// Which of these traces are stored in the project of a name; none when there
/// is no such project in scope: nobody learns that one exists.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn stored_traces(
    ctx: &Context,
    scope: &Scope,
    project_name: &str,
    hashes: &[[u8; 32]],
) -> Result<Vec<[u8; 32]>> {
    let mut session = ctx.store.db().read().await?;
    let project = projects::find(&mut session, project_name).await?;
    match project.and_then(|project| scope.authorize(project.id).ok()) {
        Some(project) => Ok(blobs::stored_of(&mut session, project.get(), hashes).await?),
        None => Ok(Vec::new()),
    }
}

/// Whether a client of a run may send files, before they are received.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`].
#[boxed]
pub async fn may_feed(ctx: &Context, run: RunId, token: Option<&str>, now: Timestamp) -> Result<()> {
    run_token::recognise(&ctx.store, run, token, TokenKind::Stream, now).await.map(|_| ())
}

/// Notes that a client of a run is sending: a long upload is a sign of life.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`].
#[boxed]
pub async fn is_sending(ctx: &Context, run: RunId, token: &str, now: Timestamp) -> Result<()> {
    let Bearer { project, slot, .. } =
        run_token::recognise(&ctx.store, run, Some(token), TokenKind::Stream, now).await?;
    let mut session = ctx.store.db().begin().await?;
    runs::touch(&mut session, project, run, now).await?;
    slots::touch(&mut session, project, slot, now).await?;
    Ok(session.commit().await?)
}

/// Links files to an attempt of a running test. Nothing is kept when one of
/// them cannot be; sending them again adds nothing.
///
/// # Errors
/// [`QueryError::CaseNotFound`] as long as the attempt is not stored,
/// [`QueryError::BlobMissing`] when the trace was only named,
/// [`QueryError::HashMismatch`], [`QueryError::Token`], [`QueryError::Life`].
#[boxed]
pub async fn case_files(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    files: CaseFiles,
    now: Timestamp,
) -> Result<CaseFilesTaken> {
    let mut found = match find(ctx, run, token, &files, now).await {
        Ok(found) => found,
        Err(error) => {
            files.discard(ctx).await;
            return Err(error);
        }
    };
    let project = found.place.project;
    let CaseFiles { trace, mut attachments, .. } = files;
    let rest = attachments.split_off(MAX_ATTACHMENTS.min(attachments.len()));
    let surplus = rest.len();
    for file in rest {
        discard(ctx, file.staged).await;
    }
    let mut published = Vec::with_capacity(attachments.len() + 1);
    if let Some(stored) = found.trace.take() {
        published.push(PublishedFile::stored_trace(0, &found.sent.case.title, stored));
    }
    for file in trace.into_iter().chain(attachments) {
        published.push(publish(ctx, project, file, now).await?);
    }
    link_again(ctx, &mut found, published, surplus, now).await
}

/// [`link`], repeated while the transaction gives way to others.
async fn link_again(
    ctx: &Context,
    found: &mut Found,
    published: Vec<PublishedFile>,
    surplus: usize,
    now: Timestamp,
) -> Result<CaseFilesTaken> {
    let mut attempt = 1;
    loop {
        match link(ctx, found, published.clone(), surplus, now).await {
            Err(QueryError::Store(error)) if error.is_conflict() && attempt < retry::ATTEMPTS => {
                tracing::info!(%error, attempt, "a transaction gave way to another and is repeated");
                attempt += 1;
            }
            linked => return linked,
        }
    }
}

/// Links files that are published, in one transaction.
async fn link(
    ctx: &Context,
    Found { sender, place, chosen, sent, .. }: &mut Found,
    published: Vec<PublishedFile>,
    surplus: usize,
    now: Timestamp,
) -> Result<CaseFilesTaken> {
    let RunPlace { project, run, .. } = *place;
    let mut choices = 1;
    let (mut session, mut locked) = loop {
        let mut session = ctx.store.db().begin().await?;
        let locked = LockedRun::lock(&mut session, project, run).await?;
        if choices == MOST_CHOICES || chosen.holds(&mut session, project, sent.case.retry).await? {
            break (session, locked);
        }
        // What is asked next may be asked of objects; the run does not stay locked meanwhile.
        drop(session);
        *chosen = chosen_of(ctx, *place, sent, None).await?;
        choices += 1;
    };
    if let Sender::Client(slot) = *sender {
        locked.resume_client(slot, now)?;
    }
    let (row, case) = (&chosen.row, &sent.case);
    let attempt = (chosen.repetition, i64::from(case.retry));
    // Under the lock, so that calls at the same time do not both take the last places.
    let held = files::of_attempt(&mut session, project, row.id, attempt).await?;
    let sent_files = published.len();
    let published = with_room(published, &held);
    let surplus = surplus + sent_files - published.len();
    lock_contents(&mut session, project, &published.iter().collect::<Vec<_>>()).await?;
    let linked = link_all(&mut session, *place, row.id, attempt, &published, now).await?;
    let mut file = None;
    if let [only] = &published[..] {
        let held = files::of_attempt(&mut session, project, row.id, attempt).await?;
        let is_it = |held: &&HeldFile| held.blob == only.blob.id && held.name == only.name;
        file = held.iter().find(is_it).map(|held| held.id);
    }
    if linked.traces + linked.others > 0 {
        let (title, location) = (&case.title, &case.location);
        locked.note(run_events::case_files(row, title, location, linked.traces, linked.others));
    }
    match sender {
        Sender::Client(_) => locked.recompute_status(now, None, &ctx.patience),
        // Files that follow the end of a run: what was decided about its files then is decided for these.
        Sender::Account if locked.run.status.is_final() && linked != Linked::default() => {
            let recompute = Recompute { project, run };
            let key = recompute.key(locked.run.version);
            jobs::enqueue(&mut session, &key, Some(project), &recompute, now).await?;
        }
        Sender::Account => {}
    }
    locked.close(session, now).await?;
    Ok(CaseFilesTaken { execution: row.id, traces: linked.traces, attachments: linked.others, surplus, file })
}

/// The files that an attempt has or has room for. Bytes of the others are let go
/// of in time, as nothing refers to them.
fn with_room(mut published: Vec<PublishedFile>, held: &[HeldFile]) -> Vec<PublishedFile> {
    let mut room = MAX_ATTACHMENTS.saturating_sub(held.iter().filter(|file| !is_trace(file.kind)).count());
    // A second, different trace becomes an attachment.
    let mut has_trace = held.iter().any(|file| is_trace(file.kind));
    published.retain(|file| {
        if held.iter().any(|known| known.name == file.name && known.blob == file.blob.id) {
            return true;
        }
        if is_trace(file.kind) && !has_trace {
            has_trace = true;
            return true;
        }
        let is_free = room > 0;
        room = room.saturating_sub(1);
        is_free
    });
    published
}

const fn is_trace(kind: FileKind) -> bool {
    matches!(kind, FileKind::Trace)
}

/// How often an attempt is chosen while others link files to the same test.
const MOST_CHOICES: u32 = 16;

/// Who sends files of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A client of the run, which goes on by that.
    Client(SlotId),
    /// An account. Whether the run goes on does not depend on it, and it may be over.
    Account,
}

struct Found {
    sender: Sender,
    place: RunPlace,
    chosen: Chosen,
    sent: Sent,
    /// The trace, when only its hash came.
    trace: Option<BlobRow>,
}

/// Everything that can be wrong is found before anything is stored.
async fn find(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    files: &CaseFiles,
    now: Timestamp,
) -> Result<Found> {
    let mut session = ctx.store.db().read().await?;
    let bearer = run_token::recognise_in(&mut session, run, token, TokenKind::Stream, now).await?;
    let project = bearer.project;
    bearer.refuse_early()?;
    drop(session);
    let place = place_of(ctx, project, run).await?;
    // Objects may have to be read to tell which is meant; no connection waits for them.
    let trace = files.trace.as_ref().map(|trace| &trace.staged);
    let mut sent = Sent {
        case: files.case.clone(),
        has_trace: trace.is_some(),
        trace_hash: trace.map(|trace| trace.sha256).or(files.trace_hash),
        attachments: files.attachments.iter().map(|file| (file.name.clone(), file.staged.sha256)).collect(),
        recording: None,
    };
    let chosen = chosen_of(ctx, place, &mut sent, trace).await?;
    let mut session = ctx.store.db().read().await?;
    if let (Some(told), Some(trace)) = (files.trace_hash, trace)
        && told != trace.sha256
    {
        return Err(QueryError::HashMismatch { part: "trace".to_owned() });
    }
    let trace = match (files.trace_hash, trace) {
        (Some(hash), None) => {
            let stored = blobs::stored(&mut session, project, &hash).await?;
            Some(stored.ok_or(QueryError::BlobMissing)?)
        }
        _ => None,
    };
    Ok(Found { sender: Sender::Client(bearer.slot), place, chosen, sent, trace })
}

/// Where a run lies, with all results that have come.
pub(crate) async fn place_of(ctx: &Context, project: ProjectId, run: RunId) -> Result<RunPlace> {
    pending::apply_pending_for_run(ctx, project, run).await?;
    let mut session = ctx.store.db().read().await?;
    let row = runs::get(&mut session, project, run).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::Run, run))?;
    Ok(RunPlace { project, run, day: row.order_at.day(), lane_id: row.lane_id })
}

/// One file of an attempt that was uploaded on its own.
#[derive(Debug, Clone)]
pub(crate) struct UploadedFile {
    /// The attempt.
    pub(crate) case: CaseRef,
    /// A trace, or an attachment.
    pub(crate) hint: FileKindHint,
    /// Name the test gave it.
    pub(crate) name: String,
    /// Type the client told.
    pub(crate) content_type: String,
    /// Name of the client's file.
    pub(crate) original_name: Option<String>,
    /// SHA-256 of its bytes.
    pub(crate) sha256: [u8; 32],
}

impl UploadedFile {
    fn sent(&self) -> Sent {
        let is_trace = self.hint == FileKindHint::Trace;
        let attachment = (!is_trace).then(|| (self.name.clone(), self.sha256));
        Sent {
            case: self.case.clone(),
            has_trace: is_trace,
            trace_hash: is_trace.then_some(self.sha256),
            attachments: attachment.into_iter().collect(),
            recording: None,
        }
    }
}

/// Where the bytes of an uploaded file are.
#[derive(Debug)]
pub(crate) enum UploadedBytes {
    /// Staged and verified.
    Staged(StagedBlob),
    /// Stored before.
    Stored(BlobRow),
}

/// Whether the attempt of an uploaded file is stored, as far as that can be told
/// without its bytes.
pub(crate) async fn has_attempt(ctx: &Context, place: RunPlace, file: &UploadedFile) -> Result<bool> {
    match chosen_of(ctx, place, &mut file.sent(), None).await {
        Ok(_) => Ok(true),
        Err(QueryError::CaseNotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Links an uploaded file to its attempt. Staged bytes of one that cannot be
/// linked are let go of.
#[boxed]
pub(crate) async fn link_uploaded(
    ctx: &Context,
    place: RunPlace,
    sender: Sender,
    file: UploadedFile,
    bytes: UploadedBytes,
    now: Timestamp,
) -> Result<CaseFilesTaken> {
    let mut sent = file.sent();
    let trace = match &bytes {
        UploadedBytes::Staged(staged) if file.hint == FileKindHint::Trace => Some(staged),
        _ => None,
    };
    let chosen = match (chosen_of(ctx, place, &mut sent, trace).await, bytes) {
        (Ok(chosen), bytes) => (chosen, bytes),
        (Err(error), UploadedBytes::Staged(staged)) => {
            discard(ctx, staged).await;
            return Err(error);
        }
        (Err(error), UploadedBytes::Stored(_)) => return Err(error),
    };
    let (chosen, bytes) = chosen;
    let UploadedFile { hint, name, content_type, original_name, .. } = file;
    let published = match bytes {
        UploadedBytes::Staged(staged) => {
            let file = IncomingFile { entry: 0, hint, name, content_type, original_name, staged };
            publish(ctx, place.project, file, now).await?
        }
        UploadedBytes::Stored(blob) => {
            let file = StoredFile { hint, name, content_type, original_name, blob };
            publish_stored(ctx, place.project, file).await?
        }
    };
    let mut found = Found { sender, place, chosen, sent, trace: None };
    link_again(ctx, &mut found, vec![published], 0, now).await
}

/// The attempt that is meant.
async fn chosen_of(
    ctx: &Context,
    place: RunPlace,
    sent: &mut Sent,
    trace: Option<&StagedBlob>,
) -> Result<Chosen> {
    let mut session = ctx.store.db().read().await?;
    let case = test_cases::find(&mut session, place.project, sent.case.identity).await?;
    let case = case.ok_or(QueryError::CaseNotFound)?;
    let stored = executions::of_batch(&mut session, place, vec![case.get()]).await?;
    drop(session);
    choose(ctx, place.project, stored, sent, trace).await?.ok_or(QueryError::CaseNotFound)
}
