//! When each test of a run ran, a lane per worker and shard.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::evidence::{StepEvent, StepEventStatus};
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::executions::{self, AttemptSpan, ExecutionQuery, OutcomeGroup, Sort};
use callboard_query::shapes::ExecutionItem;
use serde::Serialize;

use super::Head;
use super::executions::{OUTCOMES, TRIED, itself};
use crate::address::chosen;
use crate::components::{Choice, FilterBar, Pager};
use crate::filters;
use crate::outcome::{Tone, Toned};
use crate::shell::Shell;
use crate::text::duration;
use crate::visit::{Visit, answer};

/// Executions per page, in the order of their start.
const SIZE: PageSize = PageSize { min: 1, default: 400, max: 600 };
/// Width of a lane in the units of the drawing.
const WIDTH: i64 = 10_000;
/// The least an execution gets.
const LEAST: i64 = 30;
/// Marks of the axis, its ends included.
const TICKS: i64 = 5;

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Asked {
    outcomes: Vec<&'static str>,
    browser: Option<String>,
    tried: Option<&'static str>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self {
            outcomes: query.any_of("outcome", &OUTCOMES.map(itself))?,
            browser: chosen(query, "browser").into_iter().next(),
            tried: query.one_of("tried", &TRIED.map(itself))?,
            page: query.page(SIZE)?,
        })
    }
}

impl Asked {
    fn is_filtered(&self) -> bool {
        !self.outcomes.is_empty() || self.browser.is_some() || self.tried.is_some()
    }

    fn bar(&self, visit: &Visit, head: &Head) -> FilterBar {
        let outcomes: Vec<String> = self.outcomes.iter().map(|word| (*word).to_owned()).collect();
        let tried: Vec<String> = self.tried.iter().map(|word| (*word).to_owned()).collect();
        // What never started has no place in time.
        let offered = OUTCOMES.into_iter().filter(|(word, _)| *word != "didnotrun");
        let offered = offered.map(|(word, label)| Choice::new(word, label));
        FilterBar::new(&visit.address, &["tab"])
            .select("outcome", "Outcome", "Any outcome", offered, &outcomes)
            .select(
                "tried",
                "Retries",
                "Retried or not",
                TRIED.map(|(word, label)| Choice::new(word, label)),
                &tried,
            )
            .browsers(&head.run.item.browsers, self.browser.as_slice())
    }
}

/// One execution in its lane.
struct Bar {
    tone: Tone,
    execution: i64,
    /// Its attempts, the one that counts last.
    attempts: Vec<Attempt>,
    spoken: String,
}

/// An attempt in its lane.
struct Attempt {
    x: i64,
    width: i64,
    /// Whether another one followed.
    is_earlier: bool,
}

/// What one worker of one shard did.
struct Lane {
    name: String,
    bars: Vec<Bar>,
    tests: i64,
    failed: i64,
    busy_ms: i64,
    /// Time of attempts that were tried again, ms.
    retried_ms: i64,
    /// Share of the shown time in which it was busy.
    load: f64,
}

/// A step of the set-up before the tests.
struct SetupBar {
    x: i64,
    width: i64,
    failed: bool,
    spoken: String,
}

/// Inputs of `pages/run_timeline.html`.
#[derive(Template)]
#[template(path = "pages/run_timeline.html")]
struct TimelineTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    is_filtered: bool,
    /// What was done before the tests; empty where only some of them are shown.
    setup: Vec<SetupBar>,
    setup_ms: i64,
    lanes: Vec<Lane>,
    /// Marks of the axis, ms since the run started.
    ticks: Vec<i64>,
    /// Shown time, ms.
    span_ms: i64,
    busy_ms: i64,
    retried_ms: i64,
    shown: usize,
    /// Whether the run has more executions than the page shows.
    is_part: bool,
    longest: Vec<ExecutionItem>,
    pager: Pager,
}

/// The lanes of a run.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
    asked: Asked,
    cursors: CursorScope,
) -> Result<Response, ApiError> {
    let query = ExecutionQuery {
        sort: Sort::StartedAt,
        outcomes: asked.outcomes.iter().filter_map(|word| OutcomeGroup::parse(word)).collect(),
        browser: asked.browser.clone(),
        retried: asked.tried.map(|word| word == "again"),
        after: cursors.decode(asked.page.cursor.as_deref())?,
        ..ExecutionQuery::default()
    };
    let found = executions::list(&visit.ctx, project, run, &query, asked.page.limit as usize).await?;
    let found = cursors.page(found)?;
    let ran: Vec<ExecutionItem> = found.items.into_iter().filter(|item| item.started_at.is_some()).collect();
    let again = ran.iter().filter(|item| item.retries > 0).map(|item| ExecutionId(item.id));
    let spans = executions::attempt_spans(&visit.ctx, project, &again.collect::<Vec<_>>()).await?;
    let steps: Vec<StepEvent> = if asked.is_filtered() || visit.address.is_continued() {
        Vec::new()
    } else {
        serde_json::from_value(head.run.setup_steps.clone()).unwrap_or_default()
    };
    let start_time = head.run.item.brief.start_time;
    let Drawn { setup, setup_ms, lanes, span_ms, since_ms } = draw(&ran, &spans, &steps, start_time);
    let mut longest = ran.clone();
    longest.sort_by_key(|item| std::cmp::Reverse(item.total_duration));
    longest.truncate(5);
    let is_part = visit.address.is_part(found.next_cursor.is_some());
    let total = if is_part { Some(executions::count(&visit.ctx, project, run, &query).await?) } else { None };
    answer(&TimelineTab {
        ticks: (0..TICKS).map(|tick| since_ms + span_ms * tick / (TICKS - 1)).collect(),
        busy_ms: lanes.iter().map(|lane| lane.busy_ms).sum(),
        retried_ms: lanes.iter().map(|lane| lane.retried_ms).sum(),
        filters: asked
            .bar(&visit, &head)
            .tally("execution", ran.len(), found.next_cursor.is_some(), total)
            .above_drawing(),
        is_filtered: asked.is_filtered(),
        shown: ran.len(),
        is_part,
        span_ms,
        setup,
        setup_ms,
        lanes,
        longest,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        shell,
        head,
    })
}

/// What is drawn.
struct Drawn {
    setup: Vec<SetupBar>,
    /// Time the set-up took, ms.
    setup_ms: i64,
    lanes: Vec<Lane>,
    /// Time from the first start to the last end, ms.
    span_ms: i64,
    /// From the start of the run to the first start, ms.
    since_ms: i64,
}

/// When each attempt of an execution ran, ms since 1970: start and end. One
/// whose attempts are not told apart ran in one piece.
fn attempts_of(item: &ExecutionItem, spans: &HashMap<i64, Vec<AttemptSpan>>) -> Vec<(i64, i64)> {
    let Some(start) = item.started_at.map(Timestamp::millis) else { return Vec::new() };
    match spans.get(&item.id) {
        Some(spans) if spans.len() > 1 => spans
            .iter()
            .map(|span| (span.started_at.millis(), span.started_at.millis() + span.duration_ms))
            .collect(),
        _ => vec![(start, start + item.total_duration)],
    }
}

/// Executions by shard and worker. A worker that was replaced after a failure
/// keeps its lane: its slot is what counts.
fn draw(
    ran: &[ExecutionItem],
    spans: &HashMap<i64, Vec<AttemptSpan>>,
    steps: &[StepEvent],
    run_start: Timestamp,
) -> Drawn {
    let timed = |step: &StepEvent| step.started_at.map(|start| (start, start + step.duration));
    let set_up: Vec<(i64, i64)> = steps.iter().filter_map(timed).collect();
    let all: Vec<(&ExecutionItem, Vec<(i64, i64)>)> =
        ran.iter().map(|item| (item, attempts_of(item, spans))).collect();
    let times = || all.iter().flat_map(|(_, attempts)| attempts).chain(&set_up);
    let first = times().map(|(start, _)| *start).min().unwrap_or(0);
    let last = times().map(|(_, end)| *end).max().unwrap_or(0);
    let span = (last - first).max(1);
    let place = |(start, end): (i64, i64)| {
        let x = ((start - first) * WIDTH / span).clamp(0, WIDTH - LEAST);
        (x, ((end - start) * WIDTH / span).clamp(LEAST, WIDTH - x))
    };
    let setup = steps.iter().filter_map(|step| {
        let (x, width) = place(timed(step)?);
        let failed = step.status == StepEventStatus::Failed;
        let outcome = if failed { "failed, " } else { "" };
        let spoken = format!("{}: {outcome}{}", step.title, duration(step.duration));
        Some(SetupBar { x, width, failed, spoken })
    });
    let began = all.iter().flat_map(|(_, attempts)| attempts).map(|(start, _)| *start).min();
    // Nobody works while the set-up goes on.
    let tested = (last - began.unwrap_or(first)).max(1);
    let mut lanes: BTreeMap<(i64, i64), Lane> = BTreeMap::new();
    for (item, attempts) in all {
        let shard = item.shard_index.unwrap_or(0);
        let worker = item.parallel_index.or(item.worker_index).unwrap_or(0).max(0);
        let lane = lanes.entry((shard, worker)).or_insert_with(|| Lane {
            name: if shard > 0 {
                format!("Shard {shard}, worker {}", worker + 1)
            } else {
                format!("Worker {}", worker + 1)
            },
            bars: Vec::new(),
            tests: 0,
            failed: 0,
            busy_ms: 0,
            retried_ms: 0,
            load: 0.0,
        });
        let attempt = |(at, times): (usize, &(i64, i64))| {
            let (x, width) = place(*times);
            Attempt { x, width, is_earlier: at + 1 < attempts.len() }
        };
        let drawn = attempts.iter().enumerate().map(attempt).collect();
        // The attempt that counts is the last one.
        let earlier = if item.retries > 0 { (item.total_duration - item.duration).max(0) } else { 0 };
        let tone = item.tone();
        let outcome = tone.word().to_lowercase();
        let mut spoken = format!("{}: {outcome}, {}", item.title, duration(item.total_duration));
        if earlier > 0 {
            let times = if item.retries == 1 { "once".to_owned() } else { format!("{} times", item.retries) };
            spoken.push_str(&format!(", retried {times}, {} before the last attempt", duration(earlier)));
        }
        lane.tests += 1;
        lane.failed += i64::from(item.status.is_failing());
        lane.busy_ms += item.total_duration;
        lane.retried_ms += earlier;
        lane.bars.push(Bar { tone, execution: item.id, attempts: drawn, spoken });
    }
    let mut lanes: Vec<Lane> = lanes.into_values().collect();
    for lane in &mut lanes {
        #[expect(clippy::cast_precision_loss, reason = "durations of a run are far below 2^52 ms")]
        let load = lane.busy_ms as f64 / tested as f64;
        lane.load = load.min(1.0);
    }
    let set_up_from = set_up.iter().map(|(start, _)| *start).min().unwrap_or(0);
    let set_up_until = set_up.iter().map(|(_, end)| *end).max().unwrap_or(0);
    Drawn {
        setup: setup.collect(),
        setup_ms: set_up_until - set_up_from,
        lanes,
        span_ms: span,
        since_ms: (first - run_start.millis()).max(0),
    }
}
