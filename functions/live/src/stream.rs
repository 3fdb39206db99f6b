//! Feeds over server-sent events. Nothing is remembered between polls but the
//! reader's place, so a stream may end at any time and go on anywhere.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_auth::client_address::ClientAddress;
use callboard_auth::scope::Denied;
use callboard_domain::ids::RunId;
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site, StreamSlot};
use callboard_query::feeds::{CatchUp, GlobalFeed, Message, RunFeed, RunReader};
use callboard_query::notifications::{self, Unread};
use callboard_query::{Context, QueryError, resolve};
use futures::stream;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use tokio::time::{Instant, sleep};

/// How often a feed is looked at.
const POLL: Duration = Duration::from_millis(500);
/// How often the unread notifications of a reader are counted.
const BELL_POLL: Duration = Duration::from_secs(2);
/// How long nothing may be sent.
const QUIET: Duration = Duration::from_secs(10);
const _: () =
    assert!(QUIET.as_secs() < 15, "clients and proxies take a stream for dead that is silent for longer");
/// How long a decision about access holds, ms.
const TRUST_MS: i64 = 45_000;
/// How long a browser waits before it connects again, ms.
const RETRY: &str = "retry: 2000\n\n";
const HEARTBEAT: &str = ": heartbeat\n\n";
const TOKEN: &str = "x-stream-token";
const LAST_EVENT_ID: &str = "last-event-id";

/// Where a reader wants to go on.
#[derive(Debug)]
pub(crate) struct Resume {
    last: Option<i64>,
    catch_up: CatchUp,
}

impl FromQuery for Resume {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let catch_up =
            query.word("catchUp", &["none"], |word| (word == "none").then_some(CatchUp::Nothing))?;
        Ok(Self {
            last: query.number("lastEventId", 0..=i64::MAX)?,
            catch_up: catch_up.unwrap_or(CatchUp::Results),
        })
    }
}

impl Resume {
    /// The number to go on after; the header is what browsers send by
    /// themselves, so it is newer than the address. One that is no number
    /// belongs to something else.
    fn after(&self, headers: &HeaderMap) -> Option<i64> {
        let header = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
        header.and_then(|text| text.trim().parse().ok()).or(self.last)
    }
}

/// What happens to a run, as it happens.
///
/// Server-sent events; the data of each is `{type, data, seq, timestamp}`. A
/// reader without a number is told where the run stands and the results so
/// far. The answer ends after some minutes, or when the run is over; go on
/// with `Last-Event-ID`. Besides people and keys with access to the project,
/// the client of the run may read it with its token as `X-Stream-Token`.
#[utoipa::path(
    get,
    path = "/api/test-runs/{id}/stream",
    tag = "live",
    params(
        ("id" = i64, Path, description = "Run"),
        ("lastEventId" = Option<i64>, Query, description = "Go on after this event, where the header cannot be sent"),
        ("catchUp" = Option<String>, Query, description = "`none` leaves out the results so far"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
pub(crate) async fn run_stream(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(run): Path<RunId>,
    Query(resume): Query<Resume>,
    address: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let reader = may_read(&state, &ctx, &caller, run, &headers).await?;
    let slot = state.open_stream(&caller, address.as_deref())?;
    let feed = RunFeed::after(reader, resume.after(&headers), resume.catch_up);
    Ok(answer(state, ctx, headers, Source::Run { run, feed: Box::new(feed) }, slot))
}

/// What happens to the runs of all projects in scope, as it happens.
///
/// Server-sent events; the data of each is `{type, runId, projectId, status}`.
/// `reset` says that events were lost and everything has to be fetched anew. People who are signed in also hear of their
/// notifications: `{type: "notifications", unread, newest}`, when these numbers change.
#[utoipa::path(
    get,
    path = "/api/stream",
    tag = "live",
    params(("lastEventId" = Option<i64>, Query, description = "Go on after this event, where the header cannot be sent")),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
pub(crate) async fn global_stream(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(resume): Query<Resume>,
    address: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let slot = state.open_stream(&caller, address.as_deref())?;
    let feed = GlobalFeed::after(resume.after(&headers));
    Ok(answer(state, ctx, headers, Source::Global { caller, feed, bell: Bell::default() }, slot))
}

/// How many notifications of the caller are unread, as it changes.
///
/// Server-sent events; the data of each is `{type: "notifications", unread, newest}`. The first one says how many there
/// are now. `GET /api/stream` says the same beside what happens to runs.
#[utoipa::path(
    get,
    path = "/api/notifications/stream",
    tag = "live",
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
pub(crate) async fn notification_stream(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    address: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let slot = state.open_stream(&caller, address.as_deref())?;
    Ok(answer(state, ctx, headers, Source::Notifications { caller, bell: Bell::default() }, slot))
}

/// A reader is a person or key with access to the project, or the client of
/// the run.
async fn may_read(
    state: &AppState,
    ctx: &Context,
    caller: &Caller,
    run: RunId,
    headers: &HeaderMap,
) -> Result<RunReader, ApiError> {
    let denied = match caller.role() {
        Some(_) => match resolve::run(ctx, caller.scope(), run).await {
            Err(error @ QueryError::OutOfScope { .. }) => error.into(),
            resolved => return Ok(RunReader::new(resolved?, run)),
        },
        None => ApiError::from(Denied::AuthenticationRequired),
    };
    // Whoever feeds the run may read it, whatever else they send.
    match headers.get(TOKEN).and_then(|token| token.to_str().ok()) {
        Some(token) => Ok(RunReader::by_token(ctx, run, token, state.now()).await?),
        None => Err(denied),
    }
}

/// What the header of the reader's page was told.
#[derive(Default)]
struct Bell {
    unread: Option<Unread>,
    counted_at: Option<Instant>,
}

impl Bell {
    /// Whether it is time to count again; notes that it is done.
    fn is_due(&mut self) -> bool {
        let is_due = self.counted_at.is_none_or(|at| at.elapsed() >= BELL_POLL);
        if is_due {
            self.counted_at = Some(Instant::now());
        }
        is_due
    }

    /// Event of the stream when the number has changed.
    async fn next(&mut self, ctx: &Context, caller: &Caller) -> Result<Option<Message>, QueryError> {
        let Some(user) = caller.user_id().filter(|_| self.is_due()) else { return Ok(None) };
        let now = notifications::unread(ctx, user, caller.scope()).await?;
        let before = self.unread.replace(now);
        // At first too: the page may be older than the stream, whichever way the number went.
        Ok((before != Some(now)).then(|| Message::about_unread(now)))
    }
}

enum Source {
    Run { run: RunId, feed: Box<RunFeed> },
    Global { caller: Caller, feed: GlobalFeed, bell: Bell },
    Notifications { caller: Caller, bell: Bell },
}

/// A stream that is being read.
struct Reading {
    state: AppState,
    ctx: Context,
    headers: HeaderMap,
    source: Source,
    ends_at: Instant,
    trusted_until: Timestamp,
    sent_at: Instant,
    is_over: bool,
    may_end: bool,
    /// Counted as long as it is read.
    _slot: StreamSlot,
}

fn answer(state: AppState, ctx: Context, headers: HeaderMap, source: Source, slot: StreamSlot) -> Response {
    let now = Instant::now();
    let reading = Reading {
        ends_at: now + Duration::from_secs(state.config().sse_max_seconds),
        trusted_until: trusted_from(state.now()),
        sent_at: now,
        is_over: false,
        may_end: true,
        state,
        ctx,
        headers,
        source,
        _slot: slot,
    };
    let pieces = stream::unfold((Some(RETRY), reading), |(first, mut reading)| async move {
        let piece = match first {
            Some(first) => Bytes::from_static(first.as_bytes()),
            None => reading.next().await?,
        };
        Some((Ok::<_, std::io::Error>(piece), (None, reading)))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let set = response.headers_mut();
    set.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    set.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    set.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

const fn trusted_from(now: Timestamp) -> Timestamp {
    Timestamp(now.millis() + TRUST_MS)
}

impl Reading {
    /// The next piece to send; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over || (self.may_end && Instant::now() >= self.ends_at) {
                return None;
            }
            let now = self.state.now();
            if now >= self.trusted_until {
                self.check_again().await.ok()?;
                self.trusted_until = trusted_from(now);
            }
            let messages = match self.poll().await {
                Ok(messages) => messages,
                Err(error) => {
                    tracing::warn!(%error, "a stream ends early; its reader goes on where it was");
                    return None;
                }
            };
            if !messages.is_empty() {
                self.sent_at = Instant::now();
                return Some(written(&messages));
            }
            if self.is_over {
                return None;
            }
            if self.sent_at.elapsed() >= QUIET {
                self.sent_at = Instant::now();
                return Some(Bytes::from_static(HEARTBEAT.as_bytes()));
            }
            tokio::select! {
                () = sleep(POLL.min(self.ends_at.saturating_duration_since(Instant::now()))) => {}
                // Its reader goes on with whoever comes next.
                () = self.state.stopped() => return None,
            }
        }
    }

    async fn poll(&mut self) -> Result<Vec<Message>, QueryError> {
        match &mut self.source {
            Source::Run { feed, .. } => {
                if Instant::now() >= self.ends_at {
                    feed.hurry();
                }
                let found = feed.next(&self.ctx, self.state.now()).await?;
                self.is_over = found.is_over;
                self.may_end = found.may_end();
                Ok(found.messages)
            }
            Source::Global { caller, feed, bell } => {
                let mut messages = feed.next(&self.ctx, caller.scope()).await?;
                messages.extend(bell.next(&self.ctx, caller).await?);
                Ok(messages)
            }
            Source::Notifications { caller, bell } => {
                Ok(bell.next(&self.ctx, caller).await?.into_iter().collect())
            }
        }
    }

    /// Ends the stream of a reader who lost access.
    async fn check_again(&mut self) -> Result<(), ApiError> {
        match &mut self.source {
            Source::Run { run, .. } => {
                let caller = Caller::again(&self.state, RouteId::RunStream, &self.headers).await?;
                may_read(&self.state, &self.ctx, &caller, *run, &self.headers).await?;
            }
            Source::Global { caller, .. } => {
                *caller = Caller::again(&self.state, RouteId::GlobalStream, &self.headers).await?;
            }
            Source::Notifications { caller, .. } => {
                *caller = Caller::again(&self.state, RouteId::NotificationStream, &self.headers).await?;
            }
        }
        Ok(())
    }
}

fn written(messages: &[Message]) -> Bytes {
    let mut text = String::new();
    for message in messages {
        if let Some(id) = message.id {
            text.push_str(&format!("id: {id}\n"));
        }
        // The data is JSON on one line: its strings hold no raw line breaks. Readers keep a number that comes without any.
        if !message.data.is_empty() {
            text.push_str("data: ");
            text.push_str(&message.data);
            text.push('\n');
        }
        text.push('\n');
    }
    text.into()
}
