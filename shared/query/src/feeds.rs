//! Live feeds: what happens to a run, and to all runs, read from rows after a
//! number, so that any process can go on where another one stopped.

use std::collections::VecDeque;
use std::fmt::Write as _;

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::evidence::{Evidence, StepEvent};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::evidence;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow};
use callboard_store::runs::RunRow;
use callboard_store::{boxed, feed, lanes};
use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;
use serde_json::{Value, json};

use crate::executions::show;
use crate::notifications::Unread;
use crate::runs::required_run;
use crate::shapes::ExecutionItem;
use crate::{Context, Result};
use callboard_ingest::{MAX_ERROR_CHARS, apply_pending_for_run, holds_token, progress_of};

/// Results that are told again to a reader who comes late.
const CATCH_UP: i64 = 2_000;
/// Results of them that are told at a time: bounds what their steps take.
const TOLD_AT_ONCE: usize = 50;
/// Bytes of results that are told again with their steps and whole errors; those after them
/// are told without. With all of the others it stays below what functions may answer.
const TOLD_WHOLE_BYTES: usize = 3 * 1024 * 1024;
/// Evidence that is read at the same time.
const PARALLEL_READS: usize = 8;
/// Events of all runs read by one statement.
const PAGE: i64 = 500;
/// Rows of events of a run read by one statement; each holds several that came together.
const PAGE_OF_RUN: i64 = 100;

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The number to go on after; none for what is only told again.
    pub id: Option<i64>,
    /// The message: a JSON object; empty where only the number is told.
    pub data: String,
}

impl Message {
    /// How many notifications of the reader are unread.
    #[must_use]
    pub fn about_unread(unread: Unread) -> Self {
        let data = json!({ "type": "notifications", "unread": unread.count, "newest": unread.newest });
        Self { id: None, data: data.to_string() }
    }

    /// A number to go on after, and nothing else.
    const fn place(id: i64) -> Self {
        Self { id: Some(id), data: String::new() }
    }
}

/// Proof that the feed of a run may be read.
#[derive(Debug, Clone, Copy)]
pub struct RunReader {
    project: ProjectId,
    run: RunId,
}

impl RunReader {
    /// A reader whose scope reaches the run's project.
    #[must_use]
    pub const fn new(project: Authorized<ProjectId>, run: RunId) -> Self {
        Self { project: project.get(), run }
    }

    /// A client of the run itself.
    ///
    /// # Errors
    /// [`crate::QueryError::NotFound`], [`crate::QueryError::Token`].
    #[boxed]
    pub async fn by_token(ctx: &Context, run: RunId, token: &str, now: Timestamp) -> Result<Self> {
        Ok(Self { project: holds_token(&ctx.store, run, token, now).await?, run })
    }
}

/// What is told first to a reader without a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatchUp {
    /// Results stored so far.
    Results,
    /// Only where the run stands.
    Nothing,
}

/// A reader's place in the feed of a run.
#[derive(Debug)]
pub struct RunFeed {
    reader: RunReader,
    catch_up: CatchUp,
    last: Option<i64>,
    /// Results that the reader is still to be told again, before what happened
    /// since.
    untold: VecDeque<ExecutionRow>,
    /// Bytes that may still be told of results with their steps and whole errors.
    whole_bytes: usize,
    /// Whether the reader was told that the run is over.
    is_over: bool,
}

/// What a reader of a run gets next.
#[derive(Debug, Default)]
pub struct RunMessages {
    /// Messages, possibly none.
    pub messages: Vec<Message>,
    /// Whether nothing will follow.
    pub is_over: bool,
    /// Whether more follows immediately that a reader who goes on after the last
    /// number would miss.
    has_more: bool,
}

impl RunMessages {
    /// Whether the reader may be left here, to go on after the last number.
    #[must_use]
    pub const fn may_end(&self) -> bool {
        !self.has_more
    }
}

impl RunFeed {
    /// A reader after a number, or a new one.
    #[must_use]
    pub const fn after(reader: RunReader, last: Option<i64>, catch_up: CatchUp) -> Self {
        let untold = VecDeque::new();
        Self { reader, catch_up, last, untold, whole_bytes: TOLD_WHOLE_BYTES, is_over: false }
    }

    /// The stream is about to end: what is left is told without what takes long.
    pub const fn hurry(&mut self) {
        self.whole_bytes = 0;
    }

    /// What happened since the last call.
    ///
    /// # Errors
    /// [`crate::QueryError::NotFound`] when the run is gone.
    #[boxed]
    pub async fn next(&mut self, ctx: &Context, now: Timestamp) -> Result<RunMessages> {
        let RunReader { project, run } = self.reader;
        apply_pending_for_run(ctx, project, run).await?;
        let mut session = ctx.store.db().read().await?;
        let mut messages = Vec::new();
        // Read first: what is committed later is found among the events.
        let row = required_run(&mut session, project, run).await?;
        let last = match self.last {
            Some(last) if !self.untold.is_empty() => last,
            Some(last) if self.is_kept_after(&mut session, &row, last).await? => last,
            Some(_) => {
                messages.push(message(None, "reset", &json!({}), now));
                self.begin(&mut session, &row, &mut messages, now).await?
            }
            None => self.begin(&mut session, &row, &mut messages, now).await?,
        };
        self.last = Some(last);
        if !self.untold.is_empty() {
            // Evidence is read on connections of its own.
            drop(session);
            self.tell_again(ctx, &mut messages, now).await?;
            if !self.untold.is_empty() {
                return Ok(RunMessages { messages, is_over: false, has_more: true });
            }
            session = ctx.store.db().read().await?;
        }
        let found = feed::of_run(&mut session, project, run, last, PAGE_OF_RUN).await?;
        self.last = Some(found.events.last().map_or(last, |event| event.seq));
        // The row was read before the events: a run that goes on since is not over.
        let may_go_on = found.events.iter().any(|event| event.kind == "run-status");
        for event in found.events {
            self.is_over = event.kind == "run-finished" || (self.is_over && event.kind != "run-status");
            let data = envelope(&event.kind, &event.data, Some(event.seq), event.at);
            messages.push(Message { id: Some(event.seq), data });
        }
        let is_over = row.status.is_final() && !found.has_more && (self.is_over || !may_go_on);
        if is_over && !self.is_over {
            // The reader came after the end, or its event is not kept any more.
            if messages.is_empty() {
                messages.push(init(&row, false, now));
            }
            messages.push(message(None, "run-finished", &ended(&row), now));
            self.is_over = true;
        }
        Ok(RunMessages { messages, is_over, has_more: false })
    }

    /// Whether no lasting event after a number is gone.
    async fn is_kept_after(&self, session: &mut Session, row: &RunRow, last: i64) -> Result<bool> {
        let RunReader { project, run } = self.reader;
        if last >= row.feed_seq {
            return Ok(last == row.feed_seq);
        }
        let next = feed::of_run(session, project, run, last, 1).await?;
        if next.events.first().is_some_and(|event| event.seq == last + 1) {
            return Ok(true);
        }
        Ok(feed::reaches_back_to(session, project, run, last).await?)
    }

    /// Tells a new reader where the run stands; answers the number to go on
    /// after.
    async fn begin(
        &mut self,
        session: &mut Session,
        row: &RunRow,
        messages: &mut Vec<Message>,
        now: Timestamp,
    ) -> Result<i64> {
        let RunReader { project, run } = self.reader;
        self.is_over = false;
        if self.catch_up == CatchUp::Nothing {
            messages.push(init(row, false, now));
            return Ok(row.feed_seq);
        }
        let order = ExecutionOrder::IdDescending(None);
        let mut rows =
            executions::list(session, project, run, &ExecutionFilter::default(), &order, CATCH_UP + 1)
                .await?;
        let is_cut = rows.len() > usize::try_from(CATCH_UP).unwrap_or(usize::MAX);
        rows.truncate(usize::try_from(CATCH_UP).unwrap_or(usize::MAX));
        rows.reverse();
        messages.push(init(row, is_cut, now));
        self.untold = rows.into();
        Ok(row.feed_seq)
    }

    /// Tells the next of the results that were there before the reader came.
    async fn tell_again(&mut self, ctx: &Context, messages: &mut Vec<Message>, now: Timestamp) -> Result<()> {
        let project = self.reader.project;
        let rows: Vec<ExecutionRow> = self.untold.drain(..self.untold.len().min(TOLD_AT_ONCE)).collect();
        let mut session = ctx.store.db().read().await?;
        let browsers = lanes::browsers(&mut session, project).await?;
        let items = show(&mut session, project, &rows, &browsers).await?;
        drop(session);
        let evidence: Vec<_> = if self.whole_bytes > 0 {
            let read = rows.into_iter().map(|row| evidence_of(ctx, project, row.evidence));
            stream::iter(read).buffered(PARALLEL_READS).collect().await
        } else {
            rows.iter().map(|_| Evidence::default()).collect()
        };
        for (item, evidence) in items.into_iter().zip(evidence) {
            let mut replayed = Replayed::from_item(item, evidence);
            let mut told = message(None, "test-completed", &replayed, now);
            if replayed.is_whole && told.data.len() > self.whole_bytes {
                self.whole_bytes = 0;
                replayed.shorten();
                told = message(None, "test-completed", &replayed, now);
            }
            self.whole_bytes = self.whole_bytes.saturating_sub(told.data.len());
            messages.push(told);
        }
        Ok(())
    }
}

/// What an execution told besides its result. Where it cannot be read the result
/// is told all the same.
async fn evidence_of(ctx: &Context, project: ProjectId, slice: Option<EvidenceSlice>) -> Evidence {
    let Some(slice) = slice else { return Evidence::default() };
    evidence::read(&ctx.store, project, &slice).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "a result is told again without its steps and its whole error");
        Evidence::default()
    })
}

/// How many of the newest events tell what a run is at right now.
const JUST_NOW: i64 = 300;

/// The number after which a reader learns what a run is at right now: a
/// little before its newest event.
///
/// # Errors
/// [`crate::QueryError::NotFound`].
#[boxed]
pub async fn just_before_now(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<i64> {
    let row = required_run(&mut ctx.store.db().read().await?, project.get(), run).await?;
    Ok((row.feed_seq - JUST_NOW).max(0))
}

/// The number of the newest event about all runs. A page that is read after it
/// and follows the stream from it misses nothing.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn newest(ctx: &Context) -> Result<i64> {
    Ok(feed::global_head(&mut ctx.store.db().read().await?).await?)
}

/// A stored result as the feed tells it again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    replay: bool,
    execution_id: i64,
    test_case_id: i64,
    title: String,
    file_path: String,
    suite_path: Vec<String>,
    status: callboard_domain::status::TestStatus,
    flaky: bool,
    retries: i64,
    duration: i64,
    location: String,
    error: Option<String>,
    step_events: Vec<StepEvent>,
    wasted_time_ms: i64,
    worker_index: Option<i64>,
    shard_index: Option<i64>,
    started_at: Option<i64>,
    browser: Value,
    did_not_run_reason: Option<String>,
    skip_reason: Option<String>,
    blocked_by: Option<String>,
    #[serde(skip)]
    is_whole: bool,
    #[serde(skip)]
    summary: Option<String>,
}

impl Replayed {
    /// Leaves out what may be long.
    fn shorten(&mut self) {
        self.step_events.clear();
        self.error = self.summary.take();
        self.is_whole = false;
    }

    fn from_item(item: ExecutionItem, evidence: Evidence) -> Self {
        let whole: Option<String> = evidence.error.map(|error| error.chars().take(MAX_ERROR_CHARS).collect());
        Self {
            is_whole: whole.is_some() || !evidence.step_events.is_empty(),
            summary: item.error.clone(),
            replay: true,
            execution_id: item.id,
            test_case_id: item.test_case_id,
            title: item.title,
            file_path: item.file_path,
            suite_path: item.suite_path,
            status: item.status,
            flaky: item.flaky,
            retries: item.retries,
            duration: item.duration,
            location: item.location,
            error: item.error.map(|summary| whole.unwrap_or(summary)),
            step_events: evidence.step_events,
            wasted_time_ms: item.wasted_time_ms,
            worker_index: item.worker_index,
            shard_index: item.shard_index,
            started_at: item.started_at.map(Timestamp::millis),
            browser: json!({ "projectName": item.browser_project, "browserName": item.browser_name }),
            did_not_run_reason: item.did_not_run_reason,
            skip_reason: item.skip_reason,
            blocked_by: item.blocked_by,
        }
    }
}

/// Where a run stands.
fn init(row: &RunRow, is_cut: bool, now: Timestamp) -> Message {
    let mut data = json!({ "id": row.id, "status": row.status, "catchUpTruncated": is_cut });
    if let (Value::Object(data), Ok(Value::Object(progress))) =
        (&mut data, serde_json::to_value(progress_of(row)))
    {
        data.extend(progress);
    }
    let seq = row.feed_seq;
    let text = serde_json::to_string(&data).unwrap_or_default();
    Message { id: Some(seq), data: envelope("init", &text, Some(seq), now) }
}

fn ended(row: &RunRow) -> Value {
    json!({ "status": row.status, "duration": row.duration_ms, "totals": crate::shapes::Totals::from(row.totals) })
}

fn message(id: Option<i64>, kind: &str, data: &impl Serialize, at: Timestamp) -> Message {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    Message { id, data: envelope(kind, &data, id, at) }
}

/// The message around stored JSON, which is not read again for that.
fn envelope(kind: &str, data: &str, seq: Option<i64>, at: Timestamp) -> String {
    let mut text = format!(r#"{{"type":"{kind}","data":{data}"#);
    // Writing to a String cannot fail.
    let _ = match seq {
        Some(seq) => write!(text, r#","seq":{seq}"#),
        None => write!(text, r#","seq":null"#),
    };
    let _ = write!(text, r#","timestamp":{}}}"#, at.millis());
    text
}

/// A reader's place in the feed of all runs.
#[derive(Debug, Clone, Copy)]
pub struct GlobalFeed {
    last: Option<i64>,
}

impl GlobalFeed {
    /// A reader after a number, or a new one, who is told what happens from
    /// now on.
    #[must_use]
    pub const fn after(last: Option<i64>) -> Self {
        Self { last }
    }

    /// What happened to the runs in scope since the last call.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`].
    #[boxed]
    pub async fn next(&mut self, ctx: &Context, scope: &Scope) -> Result<Vec<Message>> {
        let mut session = ctx.store.db().read().await?;
        let head = feed::global_head(&mut session).await?;
        let Some(last) = self.last else {
            self.last = Some(head);
            // Whoever is cut off before anything happens goes on from here.
            return Ok(vec![Message::place(head)]);
        };
        if last == head {
            return Ok(Vec::new());
        }
        let events = feed::global(&mut session, last, PAGE).await?;
        let is_kept = events.first().is_some_and(|event| event.seq == last + 1);
        if last > head || !is_kept {
            self.last = Some(head);
            return Ok(vec![Message { id: Some(head), data: r#"{"type":"reset"}"#.to_owned() }]);
        }
        self.last = events.last().map(|event| event.seq).or(self.last);
        let seen = events.into_iter().filter(|event| scope.contains(event.project));
        Ok(seen
            .map(|event| {
                let data = json!({
                    "type": event.kind, "runId": event.run, "projectId": event.project, "status": event.status,
                });
                Message { id: Some(event.seq), data: data.to_string() }
            })
            .collect())
    }
}
