//! When each test of a run ran, a lane per worker and shard.

mod axis;
mod drawing;

use std::collections::HashMap;

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::evidence::StepEvent;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::executions::{self, ExecutionQuery, OutcomeGroup, Sort, Worker};
use callboard_query::page::Slice;
use callboard_query::shapes::ExecutionItem;
use serde::Serialize;

use self::axis::{Tick, ticks};
use self::drawing::{Drawn, Lane, SetupBar, draw, name_of};
use super::Head;
use super::executions::{HOWEVER_TRIED, OUTCOMES, TRIED, itself};
use crate::address::chosen;
use crate::components::{Choice, FilterBar, Pager};
use crate::filters;
use crate::outcome::Tone;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Executions per page, in the order of their start.
const SIZE: PageSize = PageSize { min: 1, default: 400, max: 600 };
/// Rows of what took longest.
const LONGEST: usize = 5;

/// A part of the time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Phase {
    /// What was done before the tests.
    Setup,
    /// Everything but that.
    Tests,
    /// What would have been left without retries.
    First,
    /// What retries added.
    Retries,
}

/// The phases by their words in the address.
const PHASES: [(&str, &str, Phase); 4] = [
    ("setup", "Set-up", Phase::Setup),
    ("tests", "Tests only", Phase::Tests),
    ("first", "First attempts", Phase::First),
    ("retries", "Retries", Phase::Retries),
];

/// What is asked for.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    outcomes: Vec<&'static str>,
    browser: Option<String>,
    tried: Option<&'static str>,
    phase: Option<Phase>,
    worker: Option<Worker>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self {
            outcomes: query.any_of("outcome", &OUTCOMES.map(itself))?,
            browser: chosen(query, "browser").into_iter().next(),
            tried: query.one_of("tried", &TRIED.map(itself))?,
            phase: query.one_of("phase", &PHASES.map(|(word, _, phase)| (word, phase)))?,
            worker: query.word("worker", &["a number such as 2", "shard and number such as 1.2"], worker)?,
            page: query.page(SIZE)?,
        })
    }
}

/// A worker as the address has it: `2`, or `1.2` in shard 1; the numbers are
/// those that people read.
fn worker(text: &str) -> Option<Worker> {
    let number = |text: &str| text.parse().ok().filter(|number: &i64| (1..=1_000_000).contains(number));
    let (shard, place) = match text.split_once('.') {
        Some((shard, place)) => (number(shard)?, place),
        None => (0, text),
    };
    Some(Worker { shard, slot: number(place)? - 1 })
}

/// The word of a worker in the address.
fn spelt(Worker { shard, slot }: Worker) -> String {
    if shard > 0 { format!("{shard}.{}", slot + 1) } else { (slot + 1).to_string() }
}

impl Params {
    /// Whether some executions are left out.
    fn is_filtered(&self) -> bool {
        let phase = matches!(self.phase, Some(Phase::First | Phase::Retries));
        !self.outcomes.is_empty()
            || self.browser.is_some()
            || self.tried.is_some()
            || self.worker.is_some()
            || phase
    }

    /// Whether the set-up is shown.
    fn shows_setup(&self, visit: &Visit) -> bool {
        match self.phase {
            Some(phase) => phase == Phase::Setup,
            None => !self.is_filtered() && !visit.address.is_continued(),
        }
    }

    fn query(&self, after: Option<executions::ExecutionKey>) -> ExecutionQuery {
        let retried = self.tried.map(|word| word == "again");
        ExecutionQuery {
            sort: Sort::StartedAt,
            outcomes: self.outcomes.iter().filter_map(|word| OutcomeGroup::parse(word)).collect(),
            browser: self.browser.clone(),
            retried: retried.or((self.phase == Some(Phase::Retries)).then_some(true)),
            place: self.worker,
            after,
            ..ExecutionQuery::default()
        }
    }

    fn bar(&self, visit: &Visit, head: &Head, has_setup: bool, workers: &[Worker]) -> FilterBar {
        let outcomes: Vec<String> = self.outcomes.iter().map(|word| (*word).to_owned()).collect();
        let tried: Vec<String> = self.tried.iter().map(|word| (*word).to_owned()).collect();
        // What never started has no place in time.
        let offered = OUTCOMES.into_iter().filter(|(word, _)| *word != "didnotrun");
        let offered = offered.map(|(word, label)| Choice::new(word, label));
        let of_setup = |phase: Phase| matches!(phase, Phase::Setup | Phase::Tests);
        let phases = PHASES.into_iter().filter(|(.., phase)| has_setup || !of_setup(*phase));
        let phase = PHASES.into_iter().find(|(.., phase)| self.phase == Some(*phase));
        let phase: Vec<String> = phase.map(|(word, ..)| word.to_owned()).into_iter().collect();
        let worker = self.worker.map(spelt);
        FilterBar::new(&visit.address, &["tab"])
            .select(
                "phase",
                "Phase",
                "All phases",
                phases.map(|(word, label, _)| Choice::new(word, label)),
                &phase,
            )
            .select("outcome", "Outcome", "Any outcome", offered, &outcomes)
            .select(
                "tried",
                "Retries",
                HOWEVER_TRIED,
                TRIED.map(|(word, label)| Choice::new(word, label)),
                &tried,
            )
            .select(
                "worker",
                "Worker",
                "All workers",
                workers.iter().map(|worker| Choice::new(spelt(*worker), name_of(*worker))),
                worker.as_slice(),
            )
            .browsers(&head.run.item.browsers, self.browser.as_slice())
    }
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
    /// Marks of the axis, by the time since the run started.
    ticks: Vec<Tick>,
    /// Shown time, ms.
    span_ms: i64,
    busy_ms: i64,
    retried_ms: i64,
    /// Whether the set-up alone is asked for.
    only_setup: bool,
    shown: usize,
    /// Whether the run has more executions than the page shows.
    is_part: bool,
    /// Outcomes among what is drawn, in the order of their first bar.
    told: Vec<Tone>,
    /// What took longest, with the time of its shown attempts, ms.
    longest: Vec<(ExecutionItem, i64)>,
    /// Whose time that is.
    longest_of: &'static str,
    pager: Pager,
}

/// The lanes of a run.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
    asked: Params,
    cursors: CursorScope,
) -> Result<Response, ApiError> {
    let query = asked.query(cursors.decode(asked.page.cursor.as_deref())?);
    let mut steps: Vec<StepEvent> = serde_json::from_value(head.run.setup_steps.clone()).unwrap_or_default();
    // What does not say when it was has no place here.
    steps.retain(|step| step.started_at.is_some());
    let has_setup = !steps.is_empty();
    let only_setup = asked.phase == Some(Phase::Setup);
    let found = if only_setup {
        Slice { items: Vec::new(), next: None }
    } else {
        executions::list(&visit.ctx, project, run, &query, asked.page.limit as usize).await?
    };
    let found = cursors.page(found)?;
    let ran: Vec<ExecutionItem> = found.items.into_iter().filter(|item| item.started_at.is_some()).collect();
    let again = ran.iter().filter(|item| item.retries > 0).map(|item| ExecutionId(item.id));
    let spans = executions::attempt_spans(&visit.ctx, project, &again.collect::<Vec<_>>()).await?;
    let steps = if asked.shows_setup(&visit) { steps } else { Vec::new() };
    let start_time = head.run.item.brief.start_time;
    let href = |worker| visit.address.with("worker", &spelt(worker));
    let Drawn { setup, setup_ms, lanes, span_ms, since_ms } =
        draw(&ran, &spans, &steps, asked.phase, start_time, href);
    let workers = executions::workers(&visit.ctx, project, run).await?;
    let shown: usize = lanes.iter().map(|lane| lane.bars.len()).sum();
    let mut took: HashMap<i64, i64> = HashMap::new();
    let mut told: Vec<Tone> = Vec::new();
    for bar in lanes.iter().flat_map(|lane| &lane.bars) {
        took.insert(bar.execution, bar.took_ms);
        if !told.contains(&bar.tone) {
            told.push(bar.tone);
        }
    }
    let shown_of = |item: ExecutionItem| took.get(&item.id).map(|took| (item, *took));
    let mut longest: Vec<(ExecutionItem, i64)> = ran.into_iter().filter_map(shown_of).collect();
    longest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    longest.truncate(LONGEST);
    let is_part = visit.address.is_part(found.next_cursor.is_some());
    let total = if is_part { Some(executions::count(&visit.ctx, project, run, &query).await?) } else { None };
    let filters = asked.bar(&visit, &head, has_setup, &workers);
    let filters = if only_setup {
        filters.tally("step", setup.len(), false, None)
    } else {
        filters.tally("execution", shown, found.next_cursor.is_some(), total)
    };
    answer(&TimelineTab {
        ticks: ticks(since_ms, span_ms, if only_setup { axis::FEW } else { axis::MOST }),
        busy_ms: lanes.iter().map(|lane| lane.busy_ms).sum(),
        retried_ms: lanes.iter().map(|lane| lane.retried_ms).sum(),
        filters: filters.above_drawing(),
        is_filtered: asked.is_filtered(),
        only_setup,
        shown,
        is_part,
        span_ms,
        setup,
        setup_ms,
        lanes,
        told,
        longest,
        longest_of: match asked.phase {
            Some(Phase::First) => "First attempt",
            Some(Phase::Retries) => "Retries",
            Some(Phase::Setup | Phase::Tests) | None => "All attempts",
        },
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        shell,
        head,
    })
}
