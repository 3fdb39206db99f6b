//! Traces read where they lie: the directory at their end, and then the
//! entries a question needs.

use std::collections::BTreeMap;
use std::ops::Range;

use base64ct::{Base64, Encoding as _};
use callboard_auth::scope::Authorized;
use callboard_domain::failure::{ErrorText, signature};
use callboard_domain::healing::aria;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::text::cut;
use callboard_domain::time::Timestamp;
use callboard_domain::trace::dom::Document;
use callboard_domain::trace::mask::masked;
use callboard_domain::trace::{
    Archive, Body, ByteRanges, ConsoleLine, Exchange, FailingAction, Frame, Header, Limits, Trace,
    TraceError, TraceFiles, resource_name, source_name,
};
use callboard_store::blobs::content::Content;
use callboard_store::executions;
use callboard_store::files::{self, FileKind};
use callboard_store::{Store, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use super::subject::Subject;
use crate::{Context, Entity, QueryError, Result};

/// Traces of an execution that are looked at.
const MAX_TRACES: i64 = 50;
/// Frames of a stack.
const MAX_FRAMES: usize = 50;
/// Files whose source is shown.
const MAX_SOURCES: usize = 5;
/// Largest source file, bytes.
const MAX_SOURCE_BYTES: u64 = 1 << 20;
/// Lines of source before and after a frame.
const SOURCE_LINES: usize = 12;
const MAX_LINE_CHARS: usize = 500;
/// Largest body that is answered, bytes.
const MAX_BODY_BYTES: u64 = 1 << 20;
/// Largest accessibility snapshot, bytes.
const MAX_ARIA_BYTES: u64 = 1 << 20;

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
pub(super) struct StoredTrace {
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
pub(super) struct Opened {
    file: StoredTrace,
    archive: Archive,
}

/// What a trace answers, or why it does not.
pub(super) type Told<T> = std::result::Result<T, TraceStatus>;

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
    let traces =
        files::of_execution(&mut session, project.get(), id, Some(&[FileKind::Trace]), None, MAX_TRACES)
            .await?;
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

/// The part of an `ETag` that stands for the trace an answer comes from:
/// nothing without a trace.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
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
    let content = Content::of(&mut ctx.store.db().read().await?, project.get(), row.blob).await?;
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
        told(parsed.map_err(callboard_domain::trace::ParseError::widen))
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
        told(packed.inflate(max_bytes).map_err(callboard_domain::trace::ParseError::widen))
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

/// The action that failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingStep {
    /// What the runner calls it.
    #[schema(example = "locator.click")]
    pub title: String,
    /// Last word of its API.
    #[schema(example = "click")]
    pub api: Option<String>,
    /// Locator as written in the test.
    #[schema(example = "getByRole('button', { name: 'Log in' })")]
    pub locator: Option<String>,
    /// Steps the test named around it, outermost first.
    pub steps: Vec<String>,
    /// Its error with the call log, without colours.
    pub error: Option<String>,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// How long it took, ms.
    pub duration: Option<i64>,
}

impl FailingStep {
    fn of(failing: &FailingAction<'_>) -> Self {
        let action = failing.action;
        Self {
            title: action.title.clone(),
            api: action.api.clone(),
            locator: failing.locator().map(|locator| masked(&locator).into_owned()),
            steps: failing.steps.iter().map(|&step| step.to_owned()).collect(),
            error: (!failing.message.is_empty()).then(|| masked(failing.message).into_owned()),
            started_at: moment(action.start),
            duration: action.end.map(|end| rounded(end - action.start)),
        }
    }
}

/// A line of source.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SourceLine {
    /// Number, from 1.
    pub line: usize,
    /// Text, at most 500 characters.
    pub text: String,
}

/// A place in the sources.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackFrame {
    /// File as the runner named it.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Function; null at the top level.
    pub function: Option<String>,
    /// Lines around it, as far as the trace has them.
    pub source: Vec<SourceLine>,
}

/// Where a test failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceStacks {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// Format of the trace.
    pub version: Option<u32>,
    /// `newer-format` when the format is newer than any that was seen.
    pub warning: Option<&'static str>,
    /// The action that failed.
    pub action: Option<FailingStep>,
    /// Its stack, innermost first, at most 50.
    pub frames: Vec<StackFrame>,
}

impl TraceStacks {
    const fn without(status: TraceStatus) -> Self {
        Self { status, version: None, warning: None, action: None, frames: Vec::new() }
    }
}

fn warning_of(trace: &Trace) -> Option<&'static str> {
    trace.is_newer_format().then_some("newer-format")
}

/// Which action failed, and where it was called.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn trace_stacks(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<TraceStacks> {
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) => return Ok(TraceStacks::without(status)),
    };
    let trace = match opened.parse(false, false).await? {
        Ok(trace) => trace,
        Err(status) => return Ok(TraceStacks::without(status)),
    };
    let Some(failing) = failing_of(&trace) else {
        let status = TraceStatus::NoData;
        return Ok(TraceStacks { version: Some(trace.version), ..TraceStacks::without(status) });
    };
    let frames: Vec<&Frame> = failing.frames().iter().take(MAX_FRAMES).collect();
    let mut sources: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for frame in &frames {
        if sources.len() == MAX_SOURCES || sources.contains_key(frame.file.as_str()) {
            continue;
        }
        let Some(name) = source_name(&opened.archive, &frame.file) else { continue };
        if let Ok(bytes) = opened.entry(&name, MAX_SOURCE_BYTES).await? {
            let text = String::from_utf8_lossy(&bytes);
            sources.insert(&frame.file, text.lines().map(str::to_owned).collect());
        }
    }
    let frames = frames
        .iter()
        .map(|frame| StackFrame {
            file: frame.file.clone(),
            line: frame.line,
            column: frame.column,
            function: (!frame.function.is_empty()).then(|| frame.function.clone()),
            source: sources
                .get(frame.file.as_str())
                .map(|lines| around(lines, frame.line))
                .unwrap_or_default(),
        })
        .collect();
    Ok(TraceStacks {
        status: TraceStatus::Ok,
        version: Some(trace.version),
        warning: warning_of(&trace),
        action: Some(FailingStep::of(&failing)),
        frames,
    })
}

fn around(lines: &[String], line: u32) -> Vec<SourceLine> {
    let at = usize::try_from(line).unwrap_or(usize::MAX);
    let first = at.saturating_sub(SOURCE_LINES).max(1);
    let shown = lines
        .iter()
        .enumerate()
        .skip(first - 1)
        .take_while(|(index, _)| *index < at.saturating_add(SOURCE_LINES));
    shown
        .map(|(index, text)| SourceLine {
            line: index + 1,
            text: cut(masked(text).into_owned(), MAX_LINE_CHARS),
        })
        .collect()
}

/// A header.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TraceHeader {
    /// Name.
    pub name: String,
    /// Value; `***` when it may be a secret.
    pub value: String,
}

/// The content of a request or response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceBody {
    /// Type it claims.
    pub content_type: String,
    /// Bytes, when known.
    pub size: Option<i64>,
    /// What to ask `trace-network-body` for.
    pub sha1: Option<String>,
}

impl TraceBody {
    fn of(body: &Body) -> Self {
        let name = body.entry.as_deref().and_then(|entry| entry.strip_prefix("resources/"));
        Self { content_type: body.content_type.clone(), size: body.size, sha1: name.map(str::to_owned) }
    }
}

/// A request in a trace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceRequest {
    /// Method.
    #[schema(example = "POST")]
    pub method: String,
    /// Address, secrets masked.
    pub url: String,
    /// Status; 0 without a response.
    pub status: i64,
    /// Reason phrase.
    pub status_text: String,
    /// Whether there was no answer, or one of 400 and above.
    pub failed: bool,
    /// Why there was no response.
    pub failure: Option<String>,
    /// Kind of resource.
    pub resource_type: Option<String>,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// How long it took, ms.
    pub duration: i64,
    /// Headers sent.
    pub request_headers: Vec<TraceHeader>,
    /// Headers received.
    pub response_headers: Vec<TraceHeader>,
    /// What was sent.
    pub request_body: Option<TraceBody>,
    /// What was received.
    pub response_body: Option<TraceBody>,
}

impl TraceRequest {
    fn of(exchange: &Exchange) -> Self {
        let headers = |headers: &[Header]| {
            headers
                .iter()
                .map(|header| TraceHeader { name: header.name.clone(), value: header.value.clone() })
                .collect()
        };
        Self {
            method: exchange.method.clone(),
            url: exchange.url.clone(),
            status: exchange.status,
            status_text: exchange.status_text.clone(),
            failed: exchange.has_failed(),
            failure: exchange.failure.clone(),
            resource_type: exchange.resource_type.clone(),
            started_at: moment(exchange.at),
            duration: rounded(exchange.duration),
            request_headers: headers(&exchange.request_headers),
            response_headers: headers(&exchange.response_headers),
            request_body: exchange.request_body.as_ref().map(TraceBody::of),
            response_body: exchange.response_body.as_ref().map(TraceBody::of),
        }
    }
}

/// A line of the console in a trace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceConsoleLine {
    /// `error`, `warning`, `log`, … or `pageerror`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Text, secrets masked.
    pub text: String,
    /// `url:line`.
    pub location: Option<String>,
    /// When.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
}

impl TraceConsoleLine {
    fn of(line: &ConsoleLine) -> Self {
        Self {
            kind: line.kind.clone(),
            text: line.text.clone(),
            location: line.location.clone(),
            at: moment(line.at),
        }
    }
}

/// What pages asked for and said around a failure.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceNetwork {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// `newer-format` when the format is newer than any that was seen.
    pub warning: Option<&'static str>,
    /// Requests from a second before the failing action to its end, and those
    /// that broke at any time; all when nothing failed. At most 500.
    pub requests: Vec<TraceRequest>,
    /// Console lines of the same time, and uncaught errors of any time; at
    /// most 200.
    pub console: Vec<TraceConsoleLine>,
}

impl TraceNetwork {
    const fn without(status: TraceStatus) -> Self {
        Self { status, warning: None, requests: Vec::new(), console: Vec::new() }
    }
}

/// Requests and console lines that belong to a failure.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn trace_network(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<TraceNetwork> {
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) => return Ok(TraceNetwork::without(status)),
    };
    let trace = match opened.parse(true, false).await? {
        Ok(trace) => trace,
        Err(status) => return Ok(TraceNetwork::without(status)),
    };
    let window = failing_of(&trace).map(|failing| failing.window());
    let requests: Vec<TraceRequest> =
        trace.relevant_exchanges(window).into_iter().map(TraceRequest::of).collect();
    let console: Vec<TraceConsoleLine> =
        trace.relevant_console(window).into_iter().map(TraceConsoleLine::of).collect();
    let is_empty = requests.is_empty() && console.is_empty();
    Ok(TraceNetwork {
        status: if is_empty { TraceStatus::NoData } else { TraceStatus::Ok },
        warning: warning_of(&trace),
        requests,
        console,
    })
}

/// The content of a request or response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkBody {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// Type as the bytes look: `text/plain` for text, whatever it claimed.
    pub content_type: Option<String>,
    /// Bytes.
    pub size: Option<usize>,
    /// Text, secrets masked.
    pub content: Option<String>,
    /// Anything else, as a `data:` address.
    pub data_uri: Option<String>,
}

/// A body by the hash a request names; at most 1 MiB.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn network_body(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
    sha1: &str,
) -> Result<NetworkBody> {
    let without =
        |status| NetworkBody { status, content_type: None, size: None, content: None, data_uri: None };
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) => return Ok(without(status)),
    };
    let Some(name) = resource_name(&opened.archive, sha1) else { return Ok(without(TraceStatus::NoData)) };
    let bytes = match opened.entry(&name, MAX_BODY_BYTES).await? {
        Ok(bytes) => bytes,
        Err(status) => return Ok(without(status)),
    };
    let size = Some(bytes.len());
    let recognised = infer::get(&bytes).map(|kind| kind.mime_type());
    Ok(match (String::from_utf8(bytes), recognised) {
        (Ok(text), None) => NetworkBody {
            status: TraceStatus::Ok,
            content_type: Some("text/plain".to_owned()),
            size,
            content: Some(masked(&text).into_owned()),
            data_uri: None,
        },
        (read, recognised) => {
            let bytes = read.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
            // Only what a browser shows without running it keeps its type.
            let is_image =
                recognised.is_some_and(|kind| kind.starts_with("image/") && kind != "image/svg+xml");
            let content_type = if is_image { recognised } else { None }.unwrap_or("application/octet-stream");
            NetworkBody {
                status: TraceStatus::Ok,
                content_type: Some(content_type.to_owned()),
                size,
                content: None,
                data_uri: Some(format!("data:{content_type};base64,{}", Base64::encode_string(&bytes))),
            }
        }
    })
}

/// How a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dom {
    /// As HTML.
    #[default]
    Dom,
    /// As the accessibility tree.
    Aria,
}

impl Dom {
    /// The words of the parameter.
    pub const WORDS: &'static [&'static str] = &["dom", "aria"];

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "dom" => Some(Self::Dom),
            "aria" => Some(Self::Aria),
            _ => None,
        }
    }
}

/// The page a test failed on.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomSnapshot {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// How the page is shown.
    pub source: Dom,
    /// Address of the page, secrets masked.
    pub url: Option<String>,
    /// The page without scripts, handlers and secrets, at most 1,500,000
    /// characters. Show it in a sandbox.
    pub html: Option<String>,
    /// The accessibility tree.
    pub aria: Option<String>,
}

/// The page a test failed on, as its trace has it.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
pub async fn dom_snapshot(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
    source: Dom,
) -> Result<DomSnapshot> {
    let without = |status| DomSnapshot { status, source, url: None, html: None, aria: None };
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) if source == Dom::Aria => {
            let aria = Subject::read(ctx, project, id).await?.evidence.aria_snapshot;
            return Ok(aria.map_or_else(
                || without(status),
                |aria| DomSnapshot { aria: Some(aria), ..without(TraceStatus::Ok) },
            ));
        }
        Err(status) => return Ok(without(status)),
    };
    let trace = match opened.parse(false, source == Dom::Dom).await? {
        Ok(trace) => trace,
        Err(status) => return Ok(without(status)),
    };
    if source == Dom::Aria {
        let aria = match aria_of(&opened, &trace).await? {
            Some(aria) => Some(aria),
            None => Subject::read(ctx, project, id).await?.evidence.aria_snapshot,
        };
        let status = if aria.is_some() { TraceStatus::Ok } else { TraceStatus::NoData };
        return Ok(DomSnapshot { aria: aria.map(|aria| masked(&aria).into_owned()), ..without(status) });
    }
    let written = tokio::task::spawn_blocking(move || {
        let document = trace.document(failing_of(&trace).map(|failing| failing.action))?;
        Ok::<_, callboard_domain::trace::ParseError>(document.map(|document| (document.html(), document.url)))
    });
    let written = written.await.map_err(|_| StoreError::Damaged("a trace that cannot be read"))?;
    Ok(match told(written.map_err(callboard_domain::trace::ParseError::widen))? {
        Ok(Some((html, url))) => DomSnapshot { url: Some(url), html: Some(html), ..without(TraceStatus::Ok) },
        Ok(None) => without(TraceStatus::NoData),
        Err(status) => without(status),
    })
}

/// The accessibility tree a trace holds: its own event, else what the runner
/// wrote about the error.
async fn aria_of(opened: &Opened, trace: &Trace) -> Result<Option<String>> {
    if let Some(aria) = &trace.aria {
        return Ok(Some(aria.clone()));
    }
    let Some(entry) = trace.error_context() else { return Ok(None) };
    let Ok(bytes) = opened.entry(entry, MAX_ARIA_BYTES).await? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    Ok(aria::of_error_context(&text).map(str::to_owned))
}

/// The document of the page a test failed on, with the attribute that holds
/// test ids; nothing when the trace cannot tell.
pub(super) async fn failing_document(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: u32,
) -> Result<Option<(Document, String)>> {
    let Ok(opened) = open(ctx, project, id, Some(attempt)).await? else { return Ok(None) };
    let Ok(trace) = opened.parse(false, true).await? else { return Ok(None) };
    let found = tokio::task::spawn_blocking(move || {
        let document = trace.document(failing_of(&trace).map(|failing| failing.action));
        document.ok().flatten().map(|document| (document, trace.test_id_attribute.clone()))
    });
    Ok(found.await.map_err(|_| StoreError::Damaged("a trace that cannot be read"))?)
}

/// The accessibility tree of the page a test failed on, from its trace.
pub(super) async fn failing_aria(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: u32,
) -> Result<Option<String>> {
    let Ok(opened) = open(ctx, project, id, Some(attempt)).await? else { return Ok(None) };
    let Ok(trace) = opened.parse(false, false).await? else { return Ok(None) };
    aria_of(&opened, &trace).await
}

fn moment(millis: f64) -> Option<Timestamp> {
    (millis > 0.0 && millis < 9e15).then(|| Timestamp(rounded(millis)))
}

#[expect(clippy::cast_possible_truncation, reason = "bounded just before")]
fn rounded(millis: f64) -> i64 {
    if millis.is_finite() { millis.clamp(0.0, 9e15).round() as i64 } else { 0 }
}
