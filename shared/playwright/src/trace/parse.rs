//! What the files of a trace say, put together: the steps of the test runner,
//! the calls of the library behind them, pages, console and requests, all on
//! one clock.

use std::collections::HashMap;

use serde_json::Value;

use super::archive::{Archive, Packed};
use super::dom::Snapshots;
use super::events::{
    self, After, AriaSnapshot, Before, Console, ContextOptions, ErrorLine, Event, Frame, Kind, Line, Log,
    Screencast, WholeAction, for_each_line,
};
use super::network::{ConsoleLine, Exchange};
use super::stacks::{self, Stacks};
use super::{ByteRanges, Limits, ParseError, TraceError};
use callboard_domain::text::cut;

/// Newest format that was seen.
const NEWEST_KNOWN: u32 = 10;
const MAX_LOG_LINES: usize = 200;
const MAX_TEXT_CHARS: usize = 20_000;
/// Errors of the test: each is compared with those of all its actions.
const MAX_ERRORS: usize = 200;
/// Most actions, requests and console lines kept.
const MAX_KEPT: usize = 20_000;

/// An error of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionError {
    /// Class of the error; often empty.
    pub name: String,
    /// Message with the call log, without terminal colours.
    pub message: String,
    /// Stack as text.
    pub stack: Option<String>,
}

/// A file the test attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Name.
    pub name: String,
    /// Type it claims.
    pub content_type: String,
    /// Entry that may hold it.
    pub entry: String,
}

/// A step of the test or a call of the library; where both are known, one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Action {
    /// Id within the trace.
    pub id: String,
    /// The step around it.
    pub parent: Option<String>,
    /// What a reader calls it.
    pub title: String,
    /// Last word of the API it calls, such as `click` or `toBeVisible`.
    pub api: Option<String>,
    /// Locator as written, when the trace has it.
    pub locator: Option<String>,
    /// Selector in the engine's own form.
    pub selector: Option<String>,
    /// Start, epoch milliseconds.
    pub start: f64,
    /// End; `None` when it never ended.
    pub end: Option<f64>,
    /// Why it failed.
    pub error: Option<ActionError>,
    /// Where it was called, innermost first.
    pub stack: Vec<Frame>,
    /// What the library noted.
    pub log: Vec<String>,
    /// Files attached by it.
    pub attachments: Vec<Attachment>,
    /// Whether it is a step of the runner rather than a call of the library.
    pub is_step: bool,
    /// Whether the test made a step of it by name (`test.step`).
    pub is_named_step: bool,
    /// Id of the library's call, which snapshots refer to.
    pub call: Option<String>,
    /// Name of the snapshot taken before.
    pub before_snapshot: Option<String>,
    /// Name of the snapshot taken after.
    pub after_snapshot: Option<String>,
    step_id: Option<String>,
    library_api: Option<String>,
}

/// A picture of the page while the test ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreencastFrame {
    /// Entry that holds it.
    pub entry: String,
    /// When, epoch milliseconds.
    pub at: f64,
}

/// Everything that was read of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Format.
    pub version: u32,
    /// Browser.
    pub browser: String,
    /// Attribute that holds test ids.
    pub test_id_attribute: String,
    /// Steps and calls in the order they started.
    pub actions: Vec<Action>,
    /// Errors the runner reported for the test, without colours.
    pub errors: Vec<ActionError>,
    /// Console output and uncaught errors of pages.
    pub console: Vec<ConsoleLine>,
    /// Requests.
    pub exchanges: Vec<Exchange>,
    /// Pictures, oldest first.
    pub screencast: Vec<ScreencastFrame>,
    /// Accessibility snapshot, when the runner took one.
    pub aria: Option<String>,
    /// Documents; empty unless they were asked for.
    pub snapshots: Snapshots,
}

/// The fetched files of a trace.
#[derive(Debug, Clone, Default)]
pub struct TraceFiles {
    /// `*.trace`, with their names.
    traces: Vec<(String, Packed)>,
    networks: Vec<(String, Packed)>,
    stacks: Vec<(String, Packed)>,
    limits: Limits,
}

impl TraceFiles {
    /// Fetches what [`Trace::parse`] reads. Files of requests only on demand:
    /// they are the larger half of many traces.
    ///
    /// # Errors
    /// [`TraceError`].
    pub async fn fetch<R: ByteRanges>(
        archive: &Archive,
        file: &R,
        with_network: bool,
    ) -> Result<Self, TraceError<R::Error>> {
        let mut files = Self { limits: archive.limits(), ..Self::default() };
        let mut left = archive.limits().fetched_bytes;
        for name in archive.names() {
            // What lies in folders are resources, whatever they are called.
            if name.contains('/') {
                continue;
            }
            let Some((stem, kind)) = name.rsplit_once('.') else { continue };
            let list = match kind {
                "trace" => &mut files.traces,
                "network" if with_network => &mut files.networks,
                "stacks" => &mut files.stacks,
                _ => continue,
            };
            let packed = archive.packed_size_of(name).unwrap_or(0);
            left = left.checked_sub(packed).ok_or(TraceError::TooLarge("its events are too large"))?;
            if let Some(packed) = archive.fetch(file, name).await? {
                list.push((stem.to_owned(), packed));
            }
        }
        Ok(files)
    }
}

impl Trace {
    /// Puts together what the files say. Documents of pages are kept only with
    /// `with_snapshots`: they are by far the largest part.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`], [`TraceError::Unreadable`].
    pub fn parse(files: &TraceFiles, with_snapshots: bool) -> Result<Self, ParseError> {
        let limits = files.limits;
        let mut reading = Reading {
            limits,
            with_snapshots,
            events_left: limits.events,
            budget: limits.total_bytes,
            room_for_stacks: stacks::Room::of_trace(),
            trace: Self { test_id_attribute: "data-testid".to_owned(), ..Self::default() },
        };
        if files.traces.is_empty() {
            return Err(TraceError::Unreadable("there are no events in it"));
        }
        for (name, packed) in &files.traces {
            let stacks = files.stacks.iter().find(|(stem, _)| stem == name).map(|(_, packed)| packed);
            let stacks = stacks.map(|packed| reading.stacks(packed)).transpose()?.unwrap_or_default();
            reading.file(packed, &stacks)?;
        }
        for (_, packed) in &files.networks {
            reading.network(packed)?;
        }
        let mut trace = reading.trace;
        trace.join();
        Ok(trace)
    }

    /// Whether the format is newer than any that was seen.
    #[must_use]
    pub const fn is_newer_format(&self) -> bool {
        self.version > NEWEST_KNOWN
    }

    /// The action of an id.
    #[must_use]
    pub fn action(&self, id: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// Joins the runner's steps with the library's calls behind them: by id,
    /// else by API and overlapping time.
    fn join(&mut self) {
        let (mut steps, calls): (Vec<Action>, Vec<Action>) =
            std::mem::take(&mut self.actions).into_iter().partition(|action| action.is_step);
        let places: HashMap<String, usize> =
            steps.iter().enumerate().map(|(place, step)| (step.id.clone(), place)).collect();
        let mut apart = Vec::new();
        for call in calls {
            let by_id = call.step_id.as_ref().and_then(|id| places.get(id)).or_else(|| places.get(&call.id));
            let place = by_id.copied().or_else(|| {
                steps.iter().position(|step| {
                    step.call.is_none()
                        && step.api.is_some()
                        && step.title == call.title
                        && step.overlaps(&call)
                })
            });
            match place {
                Some(place) if steps[place].call.is_none() => steps[place].absorb(call),
                _ => apart.push(call),
            }
        }
        steps.append(&mut apart);
        steps.sort_by(|one, other| one.start.total_cmp(&other.start));
        self.actions = steps;
        self.screencast.sort_by(|one, other| one.at.total_cmp(&other.at));
        self.console.sort_by(|one, other| one.at.total_cmp(&other.at));
        self.exchanges.sort_by(|one, other| one.at.total_cmp(&other.at));
    }
}

impl Action {
    fn overlaps(&self, other: &Self) -> bool {
        let end = |action: &Self| action.end.unwrap_or(f64::INFINITY);
        self.start <= end(other) && other.start <= end(self)
    }

    /// Takes what only the library's half knows.
    fn absorb(&mut self, call: Self) {
        self.call = Some(call.id);
        if self.stack.is_empty() {
            self.stack = call.stack;
        }
        self.selector = call.selector.or_else(|| self.selector.take());
        // An assertion is `expect` to the library; the step knows which.
        if self.api.is_none() {
            self.api = call.library_api.filter(|api| api != "expect");
        }
        self.log = call.log;
        self.before_snapshot = call.before_snapshot;
        self.after_snapshot = call.after_snapshot;
        self.error = self.error.take().or(call.error);
    }
}

struct Reading {
    limits: Limits,
    with_snapshots: bool,
    events_left: usize,
    budget: u64,
    room_for_stacks: stacks::Room,
    trace: Trace,
}

/// What is known of the file that is read.
#[derive(Default)]
struct Context {
    /// Epoch milliseconds at zero of its clock.
    offset: f64,
    is_runner: bool,
    is_known: bool,
    places: HashMap<String, usize>,
}

impl Reading {
    fn count(&mut self) -> Result<(), ParseError> {
        self.events_left = self.events_left.checked_sub(1).ok_or(TraceError::TooLarge("too many events"))?;
        Ok(())
    }

    fn file(&mut self, packed: &Packed, stacks: &Stacks) -> Result<(), ParseError> {
        let mut context = Context::default();
        let limits = self.limits;
        let mut budget = self.budget;
        for_each_line(packed.reader(), limits, &mut budget, |line| {
            self.count()?;
            match line {
                Line::Whole(text) => self.line(text, &mut context, stacks)?,
                Line::Beginning(text) if self.with_snapshots => self.trace.snapshots.add_too_large(text)?,
                Line::Beginning(_) => {}
            }
            Ok(())
        })?;
        self.budget = budget;
        Ok(())
    }

    fn line(&mut self, line: &str, context: &mut Context, stacks: &Stacks) -> Result<(), ParseError> {
        // A cut trace ends in half a line.
        let Ok(kind) = serde_json::from_str::<Kind<'_>>(line) else { return Ok(()) };
        match &*kind.kind {
            "context-options" => {
                if let Some(options) = events::read::<ContextOptions>(line) {
                    self.options(options, context);
                }
            }
            "before" => {
                if let Some(before) = events::read::<Before>(line) {
                    self.before(before, context, stacks)?;
                }
            }
            "after" => {
                if let Some(after) = events::read::<After>(line) {
                    self.after(after, context);
                }
            }
            "action" => {
                if let Some(old) = events::read::<WholeAction>(line).and_then(|whole| whole.metadata) {
                    self.old_action(old, context);
                }
            }
            "log" => {
                if let Some(log) = events::read::<Log>(line) {
                    let action =
                        context.places.get(&log.call_id).and_then(|place| self.trace.actions.get_mut(*place));
                    if let Some(action) = action.filter(|action| action.log.len() < MAX_LOG_LINES) {
                        action.log.push(cut(plain(&log.message), MAX_TEXT_CHARS));
                    }
                }
            }
            "error" if self.trace.errors.len() < MAX_ERRORS => {
                if let Some(error) = events::read::<ErrorLine>(line) {
                    let message = cut(plain(&error.message), MAX_TEXT_CHARS);
                    self.trace.errors.push(ActionError { name: String::new(), message, stack: None });
                }
            }
            "console" => {
                if let Some(console) = events::read::<Console>(line) {
                    self.console(ConsoleLine::from_console(console, context.offset));
                }
            }
            "event" if line.contains("\"pageError\"") => {
                if let Some(event) = events::read::<Event>(line)
                    && let Some(line) = ConsoleLine::of_page_error(&event, context.offset)
                {
                    self.console(line);
                }
            }
            "screencast-frame" => {
                if let Some(frame) = events::read::<Screencast>(line) {
                    let by_hash = frame.sha1.map(|sha1| format!("resources/{sha1}"));
                    if let Some(entry) = frame.file.or(by_hash) {
                        self.trace
                            .screencast
                            .push(ScreencastFrame { entry, at: frame.timestamp + context.offset });
                    }
                }
            }
            "aria-snapshot" => {
                if let Some(aria) = events::read::<AriaSnapshot>(line) {
                    self.trace.aria = aria.snapshot.or(aria.text).map(|text| cut(text, 100_000));
                }
            }
            "frame-snapshot" if self.with_snapshots => self.trace.snapshots.add(line)?,
            _ => {}
        }
        Ok(())
    }

    fn options(&mut self, options: ContextOptions, context: &mut Context) {
        self.trace.version = self.trace.version.max(options.version);
        if !options.browser_name.is_empty() {
            self.trace.browser = cut(options.browser_name, 50);
        }
        if let Some(attribute) = options.test_id_attribute_name.filter(|name| !name.is_empty()) {
            self.trace.test_id_attribute = cut(attribute, 100);
        }
        context.is_runner = options.origin == "testRunner";
        if let Some(monotonic) = options.monotonic_time {
            context.offset = options.wall_time - monotonic;
            context.is_known = true;
        }
    }

    fn before(&mut self, before: Before, context: &mut Context, stacks: &Stacks) -> Result<(), ParseError> {
        if before.call_id.is_empty() || self.trace.actions.len() >= MAX_KEPT {
            return Ok(());
        }
        // Older formats have both clocks on each action instead.
        if let (false, Some(wall)) = (context.is_known, before.wall_time) {
            context.offset = wall - before.start_time;
            context.is_known = true;
        }
        let class = before.class.unwrap_or_default();
        let is_step = context.is_runner || class == "Test";
        let method = before.method.unwrap_or_default();
        let title = before.api_name.clone().or(before.title).unwrap_or_else(|| format!("{class}.{method}"));
        let is_named_step = is_step && (method == "test.step" || before.call_id.starts_with("test.step@"));
        let api = api_of(before.api_name.as_deref(), &title, &before.call_id, &method);
        let stack = match before.stack {
            none if none.is_empty() => stacks.frames(&before.call_id, &mut self.room_for_stacks)?,
            stack => stacks::kept(stack),
        };
        let param = |name: &str| {
            before.params.get(name).and_then(Value::as_str).map(|text| cut(text.to_owned(), 2_000))
        };
        let action = Action {
            parent: before.parent_id,
            title: cut(plain(&title), 500),
            api: if is_step && !is_named_step { api } else { None },
            locator: param("locator"),
            selector: param("selector"),
            start: before.start_time + context.offset,
            stack,
            is_step,
            is_named_step,
            call: (!is_step).then(|| before.call_id.clone()),
            before_snapshot: before.before_snapshot,
            step_id: before.step_id,
            library_api: (!is_step).then_some(method),
            id: before.call_id.clone(),
            ..Action::default()
        };
        context.places.insert(before.call_id, self.trace.actions.len());
        self.trace.actions.push(action);
        Ok(())
    }

    fn after(&mut self, after: After, context: &Context) {
        let place = context.places.get(&after.call_id).copied();
        let Some(action) = place.and_then(|place| self.trace.actions.get_mut(place)) else { return };
        action.end = Some(after.end_time + context.offset);
        action.after_snapshot = after.after_snapshot;
        action.error = after.error.filter(|error| !error.message.is_empty()).map(error_of);
        let attachments = after.attachments.into_iter().take(100).filter_map(|attachment| {
            let entry =
                attachment.file.or_else(|| attachment.sha1.map(|sha1| format!("resources/{sha1}")))?;
            Some(Attachment {
                name: cut(attachment.name, 500),
                content_type: cut(attachment.content_type, 100),
                entry,
            })
        });
        action.attachments = attachments.collect();
    }

    fn old_action(&mut self, old: events::OldMetadata, context: &mut Context) {
        if self.trace.actions.len() >= MAX_KEPT {
            return;
        }
        if let (false, Some(wall)) = (context.is_known, old.wall_time) {
            context.offset = wall - old.start_time;
            context.is_known = true;
        }
        let method = old.method.unwrap_or_default();
        let title = old.api_name.unwrap_or_else(|| format!("{}.{method}", old.r#type.unwrap_or_default()));
        self.trace.actions.push(Action {
            api: title.rsplit('.').next().map(str::to_owned),
            title: cut(title, 500),
            selector: old.params.get("selector").and_then(Value::as_str).map(str::to_owned),
            start: old.start_time + context.offset,
            end: (old.end_time > 0.0).then_some(old.end_time + context.offset),
            error: old.error.map(|error| error_of(error.error)),
            stack: stacks::kept(old.stack),
            log: old
                .log
                .into_iter()
                .take(MAX_LOG_LINES)
                .map(|line| cut(plain(&line), MAX_TEXT_CHARS))
                .collect(),
            call: Some(old.id.clone()),
            before_snapshot: Some(format!("before@{}", old.id)),
            after_snapshot: Some(format!("after@{}", old.id)),
            id: old.id,
            ..Action::default()
        });
    }

    fn console(&mut self, line: ConsoleLine) {
        if self.trace.console.len() < MAX_KEPT {
            self.trace.console.push(line);
        }
    }

    fn network(&mut self, packed: &Packed) -> Result<(), ParseError> {
        let limits = self.limits;
        let mut budget = self.budget;
        for_each_line(packed.reader(), limits, &mut budget, |line| {
            self.count()?;
            if let Line::Whole(text) = line
                && let Some(exchange) = Exchange::read(text)
                && self.trace.exchanges.len() < MAX_KEPT
            {
                self.trace.exchanges.push(exchange);
            }
            Ok(())
        })?;
        self.budget = budget;
        Ok(())
    }

    fn stacks(&mut self, packed: &Packed) -> Result<Stacks, ParseError> {
        let content = packed.inflate(stacks::MAX_FILE_BYTES.min(self.budget))?;
        self.budget = self.budget.saturating_sub(content.len() as u64);
        Stacks::read(&content, self.limits.events)
    }
}

fn error_of(error: events::ErrorFields) -> ActionError {
    ActionError {
        name: cut(error.name, 200),
        message: cut(plain(&error.message), MAX_TEXT_CHARS),
        stack: error.stack.map(|stack| cut(plain(&stack), MAX_TEXT_CHARS)),
    }
}

fn plain(text: &str) -> String {
    callboard_domain::text::strip_ansi(text).into_owned()
}

/// The last word of the API: `locator.click` → `click`, `Expect "toBeVisible"`
/// → `toBeVisible`. Titles of other steps are sentences, and name no API.
fn api_of(api_name: Option<&str>, title: &str, id: &str, method: &str) -> Option<String> {
    if let Some(matcher) = title.strip_prefix("Expect \"").and_then(|rest| rest.strip_suffix('"')) {
        return Some(matcher.rsplit(' ').next().unwrap_or(matcher).to_owned());
    }
    let is_api = method == "step" && (id.starts_with("pw:api@") || id.starts_with("expect@"));
    let name = api_name.filter(|_| is_api)?;
    let word = name.rsplit('.').next().unwrap_or(name);
    word.chars().all(|char| char.is_ascii_alphanumeric()).then(|| word.to_owned())
}
