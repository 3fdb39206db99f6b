//! When each test of a run ran, a lane per worker and shard.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::executions::{self, ExecutionQuery, OutcomeGroup, Sort};
use callboard_query::shapes::ExecutionItem;
use serde::Serialize;

use super::Head;
use super::executions::{OUTCOMES, known};
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
/// Which tests one can ask for by how often they were tried.
const TRIED: [(&str, &str); 2] = [("once", "Tried once"), ("again", "Retried")];
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
            outcomes: query.any_of("outcome", |text| known(&OUTCOMES, text))?,
            browser: chosen(query, "browser").into_iter().next(),
            tried: query.one_of("tried", |text| known(&TRIED, text))?,
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
        let offered = OUTCOMES.map(|(word, label)| Choice::new(word, label));
        FilterBar::new(&visit.address, &["tab"])
            .select("outcome", "Outcome", "Any outcome", offered, &outcomes)
            .select(
                "tried",
                "Attempts",
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
    x: i64,
    width: i64,
    /// How much of it earlier attempts took.
    retried: i64,
    spoken: String,
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

/// Inputs of `pages/run_timeline.html`.
#[derive(Template)]
#[template(path = "pages/run_timeline.html")]
struct TimelineTab {
    shell: Shell,
    head: Head,
    filters: FilterBar,
    is_filtered: bool,
    lanes: Vec<Lane>,
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
    let (lanes, span_ms) = lanes(&ran);
    let mut longest = ran.clone();
    longest.sort_by_key(|item| std::cmp::Reverse(item.total_duration));
    longest.truncate(5);
    let is_part = visit.address.is_part(found.next_cursor.is_some());
    let total = if is_part { Some(executions::count(&visit.ctx, project, run, &query).await?) } else { None };
    answer(&TimelineTab {
        ticks: (0..TICKS).map(|tick| span_ms * tick / (TICKS - 1)).collect(),
        busy_ms: lanes.iter().map(|lane| lane.busy_ms).sum(),
        retried_ms: lanes.iter().map(|lane| lane.retried_ms).sum(),
        filters: asked.bar(&visit, &head).tally("execution", ran.len(), found.next_cursor.is_some(), total),
        is_filtered: asked.is_filtered(),
        shown: ran.len(),
        is_part,
        span_ms,
        lanes,
        longest,
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        shell,
        head,
    })
}

/// Executions by shard and worker, and the time they span, ms. A worker that
/// was replaced after a failure keeps its lane: its slot is what counts.
fn lanes(ran: &[ExecutionItem]) -> (Vec<Lane>, i64) {
    let times =
        |item: &ExecutionItem| item.started_at.map(|at| (at.millis(), at.millis() + item.total_duration));
    let first = ran.iter().filter_map(times).map(|(start, _)| start).min().unwrap_or(0);
    let last = ran.iter().filter_map(times).map(|(_, end)| end).max().unwrap_or(0);
    let span = (last - first).max(1);
    let mut lanes: BTreeMap<(i64, i64), Lane> = BTreeMap::new();
    for item in ran {
        let Some((start, _)) = times(item) else { continue };
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
        let x = ((start - first) * WIDTH / span).clamp(0, WIDTH - LEAST);
        let tone = item.tone();
        lane.tests += 1;
        lane.failed += i64::from(item.status.is_failing());
        lane.busy_ms += item.total_duration;
        let width = (item.total_duration * WIDTH / span).clamp(LEAST, WIDTH - x);
        // The attempt that counts is the last one.
        let earlier = if item.retries > 0 { (item.total_duration - item.duration).max(0) } else { 0 };
        let retried = earlier * width / item.total_duration.max(1);
        let outcome = tone.word().to_lowercase();
        let mut spoken = format!("{}: {outcome}, {}", item.title, duration(item.total_duration));
        if retried > 0 {
            let times = if item.retries == 1 { "once".to_owned() } else { format!("{} times", item.retries) };
            spoken.push_str(&format!(", retried {times}, {} before the last attempt", duration(earlier)));
        }
        lane.bars.push(Bar { tone, execution: item.id, x, width, retried, spoken });
        lane.retried_ms += earlier;
    }
    let mut lanes: Vec<Lane> = lanes.into_values().collect();
    for lane in &mut lanes {
        #[expect(clippy::cast_precision_loss, reason = "durations of a run are far below 2^52 ms")]
        let load = lane.busy_ms as f64 / span as f64;
        lane.load = load.min(1.0);
    }
    (lanes, span)
}
