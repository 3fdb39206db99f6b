//! Traces read where they lie: the directory at their end, and then the
//! entries a question needs. What is asked has a file each.

mod network;
mod page;
mod stacks;

use std::ops::Range;

use callboard_auth::scope::Authorized;
use callboard_domain::failure::{ErrorText, signature};
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_playwright::trace::{
    Archive, ByteRanges, FailingAction, Limits, ParseError, Trace, TraceError, TraceFiles,
};
use callboard_store::blobs::content::Content;
use callboard_store::db::Session;
use callboard_store::executions;
use callboard_store::files::{self, FileKind};
use callboard_store::{Store, StoreError, boxed};
use serde::Serialize;
use utoipa::ToSchema;

use super::subject::Subject;
use crate::{Context, Entity, QueryError, Result};

pub use network::{NetworkBody, TraceNetwork, network_body, trace_network};
pub use page::{Dom, DomSnapshot, dom_snapshot};
pub(super) use page::{failing_aria, failing_document};
pub use stacks::{TraceStacks, trace_stacks};

/// Traces of an execution that are looked at.
const MAX_TRACES: i64 = 50;

/// Whether a trace had an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceStatus {
    /// It had.
    Ok,
    /// The attempt has no trace.
    NoTrace,
    /// Its trace does not hold what was asked for.
    NoData,
    /// It is larger than what is read.
    TooLarge,
    /// It is no trace, damaged, or made in an unknown way.
    Unsupported,
}

/// A trace that is read in stretches.
struct StoredTrace {
    store: Store,
    content: Content,
}

impl ByteRanges for StoredTrace {
    type Error = StoreError;

    fn size(&self) -> u64 {
        self.content.size()
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        Ok(self.content.read(&self.store, range).await?.to_vec())
    }
}

/// An opened trace.
struct Opened {
    file: StoredTrace,
    archive: Archive,
}

/// What a trace answers, or why it does not.
type Told<T> = std::result::Result<T, TraceStatus>;

/// Turns what a trace cannot tell into a status; only a store that fails is
/// an error.
fn told<T>(found: std::result::Result<T, TraceError<StoreError>>) -> Result<Told<T>> {
    match found {
        Ok(value) => Ok(Ok(value)),
        Err(TraceError::TooLarge(_)) => Ok(Err(TraceStatus::TooLarge)),
        Err(TraceError::Unreadable(_)) => Ok(Err(TraceStatus::Unsupported)),
        Err(TraceError::Source(error)) => Err(error.into()),
    }
}

/// Finds the trace of an attempt: the asked one, else that of the attempt
/// that failed, else the last one there is.
async fn find(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<Option<files::FileRow>> {
    let mut session = ctx.store.db().read().await?;
    let row = executions::get(&mut session, project.get(), id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::Execution, id))?;
    let traces = traces_of(&mut session, project, id).await?;
    drop(session);
    let of_retry = |retry: i64| traces.iter().rfind(|file| file.retry == retry).cloned();
    if let Some(attempt) = attempt {
        return Ok(of_retry(i64::from(attempt)));
    }
    if traces.len() < 2 {
        return Ok(traces.into_iter().next());
    }
    let spoken_of = Subject::read(ctx, project, id).await?.attempt.0;
    Ok(of_retry(i64::from(spoken_of)).or_else(|| traces.last().cloned()))
}

async fn traces_of(
    session: &mut Session,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<Vec<files::FileRow>> {
    Ok(files::of_execution(session, project.get(), id, Some(&[FileKind::Trace]), None, MAX_TRACES).await?)
}

/// The part of an `ETag` that stands for the trace an answer comes from:
/// nothing without a trace.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn trace_tag(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<Option<String>> {
    Ok(find(ctx, project, id, attempt).await?.map(|file| hex::encode(&file.sha256[..12])))
}

async fn open(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<Told<Opened>> {
    let Some(row) = find(ctx, project, id, attempt).await? else { return Ok(Err(TraceStatus::NoTrace)) };
    let content = Content::load(&mut ctx.store.db().read().await?, project.get(), row.blob).await?;
    open_content(ctx, content).await
}

/// Opens the trace of the attempt of an execution that is known to exist.
async fn open_of(ctx: &Context, project: Authorized<ProjectId>, subject: &Subject) -> Result<Told<Opened>> {
    let mut session = ctx.store.db().read().await?;
    let traces = traces_of(&mut session, project, subject.row.id).await?;
    let Some(row) = traces.iter().rfind(|file| file.retry == i64::from(subject.attempt.0)) else {
        return Ok(Err(TraceStatus::NoTrace));
    };
    let content = Content::load(&mut session, project.get(), row.blob).await?;
    drop(session);
    open_content(ctx, content).await
}

async fn open_content(ctx: &Context, content: Content) -> Result<Told<Opened>> {
    let file = StoredTrace { store: ctx.store.clone(), content };
    Ok(told(Archive::open(&file, Limits::DEFAULT).await)?.map(|archive| Opened { file, archive }))
}

impl Opened {
    /// The parsed trace. Inflating and parsing are work for a thread of their
    /// own.
    async fn parse(&self, with_network: bool, with_snapshots: bool) -> Result<Told<Trace>> {
        let files = match told(TraceFiles::fetch(&self.archive, &self.file, with_network).await)? {
            Ok(files) => files,
            Err(status) => return Ok(Err(status)),
        };
        let parsed = tokio::task::spawn_blocking(move || Trace::parse(&files, with_snapshots)).await;
        let parsed = parsed.map_err(|_| StoreError::Damaged("a trace that cannot be read"))?;
        told(parsed.map_err(ParseError::widen))
    }

    async fn entry(&self, name: &str, max_bytes: u64) -> Result<Told<Vec<u8>>> {
        if self.archive.size_of(name).is_some_and(|size| size > max_bytes) {
            return Ok(Err(TraceStatus::TooLarge));
        }
        let packed = match told(self.archive.fetch(&self.file, name).await)? {
            Ok(Some(packed)) => packed,
            Ok(None) => return Ok(Err(TraceStatus::NoData)),
            Err(status) => return Ok(Err(status)),
        };
        told(packed.inflate(max_bytes).map_err(ParseError::widen))
    }
}

/// Recognises the error the runner reported by its fingerprint.
fn recogniser(errors: &[String]) -> impl Fn(&str) -> bool + use<> {
    let fingerprint = |text: &str| {
        signature(&[ErrorText { message: text, stack: None }], &[]).map(|signature| signature.fingerprint())
    };
    let reported: Vec<_> = errors.iter().filter_map(|error| fingerprint(error)).collect();
    move |message| fingerprint(message).is_some_and(|found| reported.contains(&found))
}

/// The failing action by what the runner says in the trace itself.
fn failing_of(trace: &Trace) -> Option<FailingAction<'_>> {
    let errors: Vec<String> = trace.errors.iter().map(|error| error.message.clone()).collect();
    trace.failing_action(recogniser(&errors))
}

fn warning_of(trace: &Trace) -> Option<&'static str> {
    trace.is_newer_format().then_some("newer-format")
}

fn moment(millis: f64) -> Option<Timestamp> {
    (millis > 0.0 && millis < 9e15).then(|| Timestamp(rounded(millis)))
}

#[expect(clippy::cast_possible_truncation, reason = "bounded just before")]
fn rounded(millis: f64) -> i64 {
    if millis.is_finite() { millis.clamp(0.0, 9e15).round() as i64 } else { 0 }
}
