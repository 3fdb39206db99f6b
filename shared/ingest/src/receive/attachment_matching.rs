//! Which attempt the files of a test belong to. Clients that know no browser
//! projects name a test that may have run in several, and those that know no
//! repetitions an attempt that there may be several of; the trace they send
//! with it says where and when it was recorded.

use std::cmp::Reverse;

use callboard_domain::attempts::AttemptView;
use callboard_domain::evidence::Browser;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::ingest::CaseRef;
use callboard_domain::time::Timestamp;
use callboard_store::blobs::StagedBlob;
use callboard_store::db::Session;
use callboard_store::evidence;
use callboard_store::executions::ExecutionRow;
use callboard_store::files::{self, FileKind, FileRow};
use callboard_store::lanes::{self, BrowserProject};

use crate::apply::attempt_merge::stored_attempts;
use crate::receive::trace_browser::{self, Recording};
use crate::{Context, Result};

/// Files of an execution that are looked at.
const FILES_SEEN: i64 = 500;
/// How far outside of an attempt the beginning of its trace may lie, ms: both
/// are told by the client's clock, but not by the same process.
const SLACK_MS: i64 = 1_000;

/// An execution that has the attempt.
struct Candidate {
    row: ExecutionRow,
    /// The attempt; several when repetitions are not told apart.
    attempts: Vec<AttemptView>,
    /// Files of the attempt.
    files: Vec<FileRow>,
}

impl Candidate {
    /// Whether there is a repetition without such a file.
    fn lacks(&self, is_such: impl Fn(&FileRow) -> bool) -> bool {
        let has_one = |view: &AttemptView| self.files.iter().any(|file| is_of(file, view) && is_such(file));
        !self.attempts.iter().all(has_one)
    }
}

fn is_of(file: &FileRow, view: &AttemptView) -> bool {
    file.repetition == i64::from(view.repetition)
}

fn is_trace(file: &FileRow) -> bool {
    file.kind == FileKind::Trace
}

/// What is known of the files that were sent.
pub(crate) struct Sent {
    pub(crate) case: CaseRef,
    /// Whether the bytes of a trace came.
    pub(crate) has_trace: bool,
    /// Hash of the trace, told or computed.
    pub(crate) trace_hash: Option<[u8; 32]>,
    /// Name and hash of each attachment.
    pub(crate) attachments: Vec<(String, [u8; 32])>,
    /// What the trace tells of its recording, once it was asked.
    pub(crate) recording: Option<Recording>,
}

/// What files belong to.
pub(crate) struct Chosen {
    pub(crate) row: ExecutionRow,
    pub(crate) repetition: i64,
    /// How many files each possible execution had, where that told which is
    /// meant.
    among: Vec<(ExecutionId, usize)>,
}

impl Chosen {
    /// Whether nobody has linked files to the possible executions since the
    /// choice was made; asked while the run is locked. Browser projects run side
    /// by side: what two of them send of one test comes at the same time, and is
    /// often byte for byte the same.
    pub(crate) async fn holds(&self, session: &mut Session, project: ProjectId, retry: u32) -> Result<bool> {
        for &(execution, seen) in &self.among {
            if files_of(session, project, execution, retry).await?.len() != seen {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

async fn files_of(
    session: &mut Session,
    project: ProjectId,
    execution: ExecutionId,
    retry: u32,
) -> Result<Vec<FileRow>> {
    let mut files = files::of_execution(session, project, execution, None, None, FILES_SEEN).await?;
    files.retain(|file| file.retry == i64::from(retry));
    Ok(files)
}

/// Chooses the attempt that is meant among those of the test case; `None` when
/// it is not stored yet, as far as one can tell. Sending the same again chooses
/// the same, where a client names browser projects or the project has one.
/// `trace` is read when there is no other way to tell.
pub(crate) async fn choose(
    ctx: &Context,
    project: ProjectId,
    stored: Vec<ExecutionRow>,
    sent: &mut Sent,
    trace: Option<&StagedBlob>,
) -> Result<Option<Chosen>> {
    let mut candidates = Vec::with_capacity(stored.len());
    for row in stored {
        let mut attempts =
            stored_attempts(&row)?.decide().map(|decision| decision.attempts).unwrap_or_default();
        attempts.retain(|view| is_meant(view, sent));
        if !attempts.is_empty() {
            candidates.push(Candidate { row, attempts, files: Vec::new() });
        }
    }
    let mut session = ctx.store.db().read().await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    if sent.case.browser_project.is_none()
        && let [only] = &candidates[..]
        && let [view] = &only.attempts[..]
        && (!sent.has_trace || only.row.traces == 0)
    {
        let files = files_of(&mut session, project, only.row.id, sent.case.retry).await?;
        // The result of another browser project, which left the same files, may not have come yet.
        if browsers.len() > 1 && sent.trace_hash.is_none() && has_all(&files, sent) {
            return Ok(None);
        }
        // Nothing there speaks against it.
        let repetition = i64::from(sent.case.repeat_each_index.unwrap_or(view.repetition));
        let among = vec![(only.row.id, files.len())];
        return Ok(candidates.pop().map(|only| Chosen { row: only.row, repetition, among }));
    }
    if let Some(name) = &sent.case.browser_project {
        let wanted = browsers.iter().find(|browser| browser.name == *name).map(|browser| browser.id);
        candidates.retain(|candidate| Some(candidate.row.browser_id) == wanted);
    }
    for candidate in &mut candidates {
        candidate.files = files_of(&mut session, project, candidate.row.id, sent.case.retry).await?;
    }
    drop(session);
    let is_unclear = is_unclear(&candidates);
    if let Some(trace) = trace.filter(|_| is_unclear) {
        sent.recording = trace_browser::find_recording(ctx, trace).await;
    }
    let recording = sent.recording.as_ref().filter(|_| is_unclear);
    let among = candidates.iter().map(|candidate| (candidate.row.id, candidate.files.len())).collect();
    if candidates.len() > 1 {
        narrow(ctx, project, &mut candidates, sent, (recording, &browsers)).await;
    }
    let Some(candidate) = candidates.into_iter().next() else { return Ok(None) };
    let Some(view) = repetition(&candidate, sent, recording) else { return Ok(None) };
    if sent.case.browser_project.is_none()
        && let Some(recording) = recording
        && is_of_another(ctx, project, &candidate, view, (recording, &browsers), sent).await
    {
        return Ok(None);
    }
    let repetition = i64::from(sent.case.repeat_each_index.unwrap_or(view.repetition));
    Ok(Some(Chosen { repetition, row: candidate.row, among }))
}

fn is_meant(view: &AttemptView, sent: &Sent) -> bool {
    let own = |index| view.attempt.repetition.is_none_or(|own| own == index);
    view.attempt.retry == sent.case.retry && sent.case.repeat_each_index.is_none_or(own)
}

/// Whether it takes more than the name of the test to tell which is meant.
fn is_unclear(candidates: &[Candidate]) -> bool {
    match candidates {
        [only] => only.attempts.len() > 1 || !only.lacks(is_trace),
        _ => true,
    }
}

/// Leaves the likeliest first.
async fn narrow(
    ctx: &Context,
    project: ProjectId,
    candidates: &mut Vec<Candidate>,
    sent: &Sent,
    (recording, browsers): (Option<&Recording>, &[BrowserProject]),
) {
    candidates.sort_by_key(|candidate| Reverse(candidate.row.id));
    if let Some(hash) = sent.trace_hash {
        // No two attempts record the same trace: it has been sent before.
        keep(candidates, |candidate| candidate.files.iter().any(|file| file.sha256 == hash));
    }
    if candidates.len() > 1
        && let Some(recording) = recording
    {
        keep_recorded(ctx, project, candidates, recording, browsers).await;
    }
    if candidates.len() > 1 {
        keep_announced(ctx, project, candidates, sent).await;
    }
    if sent.trace_hash.is_some() {
        keep(candidates, |candidate| candidate.lacks(is_trace));
    } else if candidates.iter().any(|candidate| candidate.lacks(|_| true)) {
        keep(candidates, |candidate| candidate.lacks(|_| true));
    } else {
        keep(candidates, |candidate| candidate.files.iter().any(|file| is_sent(file, sent)));
    }
}

/// Whether everything that was sent is there.
fn has_all(files: &[FileRow], sent: &Sent) -> bool {
    let is_there = |(name, sha256): &(String, [u8; 32])| {
        files.iter().any(|file| file.sha256 == *sha256 && file.name == *name)
    };
    !sent.attachments.is_empty() && sent.attachments.iter().all(is_there)
}

fn is_sent(file: &FileRow, sent: &Sent) -> bool {
    sent.attachments.iter().any(|(name, sha256)| *sha256 == file.sha256 && *name == file.name)
}

/// The repetition that is meant: the one that has these files already, else of
/// those that have none the one that began with the trace.
fn repetition<'c>(
    candidate: &'c Candidate,
    sent: &Sent,
    recording: Option<&Recording>,
) -> Option<&'c AttemptView> {
    let views = &candidate.attempts;
    let with = |is_such: &dyn Fn(&FileRow) -> bool| {
        let file = candidate.files.iter().find(|file| is_such(file))?;
        views.iter().find(|view| is_of(file, view))
    };
    let trace = sent.trace_hash;
    if let Some(view) = trace.and_then(|hash| with(&|file| file.sha256 == hash)) {
        return Some(view);
    }
    let is_free = |view: &&AttemptView| {
        !candidate.files.iter().any(|file| is_of(file, view) && (trace.is_none() || is_trace(file)))
    };
    let mut free: Vec<&AttemptView> = views.iter().filter(is_free).collect();
    if free.is_empty() {
        if trace.is_none()
            && let Some(view) = with(&|file| is_sent(file, sent))
        {
            return Some(view);
        }
        free = views.iter().collect();
    }
    let distance = |view: &&AttemptView| {
        let began = recording?.began_at?.millis();
        Some((began - view.attempt.started_at?.millis()).abs())
    };
    free.into_iter().min_by_key(|view| distance(view).unwrap_or(i64::MAX))
}

fn has_another_trace(candidate: &Candidate, view: &AttemptView, hash: Option<[u8; 32]>) -> bool {
    let is_other = |file: &FileRow| Some(file.sha256) != hash;
    let mut traces = candidate.files.iter().filter(|file| is_of(file, view) && is_trace(file)).peekable();
    traces.peek().is_some() && traces.all(is_other)
}

/// Whether a trace began before its attempt or after it.
fn is_outside(view: &AttemptView, began: Timestamp) -> bool {
    view.attempt.started_at.is_some_and(|start| {
        let end = start.millis() + view.attempt.duration_ms;
        began.millis() + SLACK_MS < start.millis() || began.millis() > end + SLACK_MS
    })
}

/// Whether a trace cannot be of an attempt: that has another one, and this one
/// was recorded in another browser or at another time. The result it belongs
/// to has not come yet.
async fn is_of_another(
    ctx: &Context,
    project: ProjectId,
    candidate: &Candidate,
    view: &AttemptView,
    (recording, browsers): (&Recording, &[BrowserProject]),
    sent: &Sent,
) -> bool {
    if !has_another_trace(candidate, view, sent.trace_hash) {
        return false;
    }
    if recording.began_at.is_some_and(|began| is_outside(view, began)) {
        return true;
    }
    let browser = browsers.iter().find(|browser| browser.id == candidate.row.browser_id);
    let told = browser.and_then(|browser| browser.browser_name.as_ref());
    if told.is_some() && recording.browser_name.is_some() && told != recording.browser_name.as_ref() {
        return true;
    }
    recording.viewport.is_some()
        && configured(ctx, project, candidate)
            .await
            .is_some_and(|browser| browser.viewport.is_some() && !agrees(&browser, recording))
}

/// Keeps those that agree with where and when a trace was recorded.
async fn keep_recorded(
    ctx: &Context,
    project: ProjectId,
    candidates: &mut Vec<Candidate>,
    recording: &Recording,
    browsers: &[BrowserProject],
) {
    keep(candidates, |candidate| {
        let browser = browsers.iter().find(|browser| browser.id == candidate.row.browser_id);
        recording.browser_name.is_some()
            && browser.is_some_and(|browser| browser.browser_name == recording.browser_name)
    });
    if candidates.len() > 1 && recording.viewport.is_some() {
        let mut agreeing = Vec::new();
        for candidate in candidates.iter() {
            let browser = configured(ctx, project, candidate).await;
            if browser.is_some_and(|browser| agrees(&browser, recording)) {
                agreeing.push(candidate.row.id);
            }
        }
        keep(candidates, |candidate| agreeing.contains(&candidate.row.id));
    }
    if candidates.len() > 1
        && let Some(began) = recording.began_at
    {
        let distance = |candidate: &Candidate| {
            let starts = candidate.attempts.iter().filter_map(|view| view.attempt.started_at);
            starts.map(|start| (began.millis() - start.millis()).abs()).min()
        };
        let nearest = candidates.iter().map(distance).min_by_key(|distance| distance.unwrap_or(i64::MAX));
        if let Some(nearest) = nearest.flatten() {
            keep(candidates, |candidate| distance(candidate) == Some(nearest));
        }
    }
}

/// Keeps those with an attempt that left files of just these names.
async fn keep_announced(ctx: &Context, project: ProjectId, candidates: &mut Vec<Candidate>, sent: &Sent) {
    let mut names: Vec<&str> = sent.attachments.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let mut announced = Vec::new();
    for candidate in candidates.iter() {
        for slice in candidate.attempts.iter().filter_map(|view| view.attempt.evidence) {
            let Ok(evidence) = evidence::read(&ctx.store, project, &slice).await else { continue };
            let mut left = evidence.left_files;
            left.sort_unstable();
            if !left.is_empty() && left == names {
                announced.push(candidate.row.id);
            }
        }
    }
    keep(candidates, |candidate| announced.contains(&candidate.row.id));
}

/// The browser an attempt was configured with, as far as it can be read.
async fn configured(ctx: &Context, project: ProjectId, candidate: &Candidate) -> Option<Browser> {
    let slice = candidate.attempts.iter().find_map(|view| view.attempt.evidence)?;
    evidence::read(&ctx.store, project, &slice).await.ok()?.browser
}

fn agrees(browser: &Browser, recording: &Recording) -> bool {
    let viewport = browser.viewport.map(|size| (size.width, size.height));
    viewport == recording.viewport && (recording.channel.is_none() || browser.channel == recording.channel)
}

/// Leaves out those that do not agree, unless that would leave none.
fn keep(candidates: &mut Vec<Candidate>, agrees: impl Fn(&Candidate) -> bool) {
    if candidates.iter().any(&agrees) {
        candidates.retain(agrees);
    }
}
