//! Where each attempt of a run stands in its lane.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::evidence::{StepEvent, StepEventStatus};
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_query::executions::{AttemptSpan, Worker};
use callboard_query::shapes::ExecutionItem;

use super::Phase;
use crate::outcome::{Tone, Toned};
use crate::text::duration;

/// Width of a lane in the units of the drawing.
const WIDTH: i64 = 10_000;
/// The least an execution gets.
const LEAST: i64 = 30;

/// One execution in its lane.
pub(super) struct Bar {
    pub tone: Tone,
    pub execution: i64,
    /// Its attempts, the one that counts last.
    pub attempts: Vec<Attempt>,
    /// How long the shown attempts took together, ms.
    pub took_ms: i64,
    pub spoken: String,
}

/// An attempt in its lane.
pub(super) struct Attempt {
    pub x: i64,
    pub width: i64,
    /// Whether another one followed.
    pub is_earlier: bool,
}

/// What one worker of one shard did.
pub(super) struct Lane {
    pub name: String,
    /// The address of this lane alone.
    pub href: String,
    pub bars: Vec<Bar>,
    pub tests: i64,
    pub failed: i64,
    pub busy_ms: i64,
    /// Time of attempts that were tried again, ms.
    pub retried_ms: i64,
    /// Share of the shown time in which it was busy.
    pub load: f64,
}

/// A step of the set-up before the tests.
pub(super) struct SetupBar {
    pub x: i64,
    pub width: i64,
    /// How it ended.
    pub tone: Tone,
    pub title: String,
    pub duration_ms: i64,
    pub spoken: String,
}

/// What is drawn.
pub(super) struct Drawn {
    pub setup: Vec<SetupBar>,
    /// Time the set-up took, ms.
    pub setup_ms: i64,
    pub lanes: Vec<Lane>,
    /// Time from the first start to the last end, ms.
    pub span_ms: i64,
    /// From the start of the run to the first start, ms.
    pub since_ms: i64,
}

/// The time something took: its start and its end, ms since 1970.
type Times = (i64, i64);

/// When each attempt of an execution ran. One whose attempts are not told apart
/// ran in one piece.
fn attempts_of(item: &ExecutionItem, spans: &HashMap<i64, Vec<AttemptSpan>>) -> Vec<Times> {
    let Some(start) = item.started_at.map(Timestamp::millis) else { return Vec::new() };
    match spans.get(&item.id) {
        Some(spans) if spans.len() > 1 => spans
            .iter()
            .map(|span| (span.started_at.millis(), span.started_at.millis() + span.duration_ms))
            .collect(),
        _ => vec![(start, start + item.total_duration)],
    }
}

/// What of an execution belongs to a phase: the attempts, and whether others
/// followed the last of them. An execution whose attempts are not told apart
/// belongs to its first one.
fn of_phase(mut attempts: Vec<Times>, phase: Option<Phase>) -> (Vec<Times>, bool) {
    match phase {
        None | Some(Phase::Tests) => (attempts, false),
        Some(Phase::Setup) => (Vec::new(), false),
        Some(Phase::First) => {
            let go_on = attempts.len() > 1;
            attempts.truncate(1);
            (attempts, go_on)
        }
        Some(Phase::Retries) => (attempts.split_off(attempts.len().min(1)), false),
    }
}

/// The worker an execution ran in. One that was replaced after a failure keeps
/// its number: the slot is what counts.
fn worker_of(item: &ExecutionItem) -> Worker {
    Worker {
        shard: item.shard_index.unwrap_or(0),
        slot: item.parallel_index.or(item.worker_index).unwrap_or(0).max(0),
    }
}

/// Executions by shard and worker. `href` leads to one worker alone.
pub(super) fn draw(
    ran: &[ExecutionItem],
    spans: &HashMap<i64, Vec<AttemptSpan>>,
    steps: &[StepEvent],
    phase: Option<Phase>,
    run_start: Timestamp,
    href: impl Fn(Worker) -> String,
) -> Drawn {
    let timed = |step: &StepEvent| step.started_at.map(|start| (start, start + step.duration));
    let set_up: Vec<Times> = steps.iter().filter_map(timed).collect();
    let all: Vec<(&ExecutionItem, Vec<Times>, bool)> = ran
        .iter()
        .map(|item| {
            let (attempts, go_on) = of_phase(attempts_of(item, spans), phase);
            (item, attempts, go_on)
        })
        .filter(|(_, attempts, _)| !attempts.is_empty())
        .collect();
    let times = || all.iter().flat_map(|(_, attempts, _)| attempts).chain(&set_up);
    let first = times().map(|(start, _)| *start).min().unwrap_or(0);
    let last = times().map(|(_, end)| *end).max().unwrap_or(0);
    let span = (last - first).max(1);
    let place = |(start, end): Times| {
        let x = ((start - first) * WIDTH / span).clamp(0, WIDTH - LEAST);
        (x, ((end - start) * WIDTH / span).clamp(LEAST, WIDTH - x))
    };
    let setup = steps.iter().filter_map(|step| {
        let (x, width) = place(timed(step)?);
        let failed = step.status == StepEventStatus::Failed;
        let tone = if failed { Tone::Failed } else { Tone::Passed };
        let outcome = if failed { "failed, " } else { "" };
        let spoken = format!("{}: {outcome}{}", step.title, duration(step.duration));
        Some(SetupBar { x, width, tone, title: step.title.clone(), duration_ms: step.duration, spoken })
    });
    let began = all.iter().flat_map(|(_, attempts, _)| attempts).map(|(start, _)| *start).min();
    // Nobody works while the set-up goes on.
    let tested = (last - began.unwrap_or(first)).max(1);
    let mut lanes: BTreeMap<Worker, Lane> = BTreeMap::new();
    for (item, attempts, go_on) in all {
        let worker = worker_of(item);
        let lane = lanes.entry(worker).or_insert_with(|| Lane {
            name: name_of(worker),
            href: href(worker),
            bars: Vec::new(),
            tests: 0,
            failed: 0,
            busy_ms: 0,
            retried_ms: 0,
            load: 0.0,
        });
        let attempt = |(at, times): (usize, &Times)| {
            let (x, width) = place(*times);
            Attempt { x, width, is_earlier: go_on || at + 1 < attempts.len() }
        };
        let drawn = attempts.iter().enumerate().map(attempt).collect();
        let is_whole = !matches!(phase, Some(Phase::First | Phase::Retries));
        let took = |attempts: &[Times]| attempts.iter().map(|(start, end)| end - start).sum();
        let busy: i64 = if is_whole { item.total_duration } else { took(&attempts) };
        // Of a whole execution the attempts that do not decide, of a phase those before its last one.
        let earlier = match (is_whole, go_on) {
            (true, _) if item.retries > 0 => (item.total_duration - item.duration).max(0),
            (true, _) => 0,
            (false, true) => busy,
            (false, false) => took(&attempts[..attempts.len() - 1]),
        };
        let tone = item.tone();
        let outcome = tone.word().to_lowercase();
        let mut spoken = format!("{}: {outcome}, {}", item.title, duration(busy));
        if is_whole && earlier > 0 {
            let times = if item.retries == 1 { "once".to_owned() } else { format!("{} times", item.retries) };
            spoken.push_str(&format!(", retried {times}, {} in the other attempts", duration(earlier)));
        }
        // As insights count them: those that ran.
        lane.tests += i64::from(!matches!(item.status, TestStatus::Skipped | TestStatus::DidNotRun));
        lane.failed += i64::from(item.status.is_failing());
        lane.busy_ms += busy;
        lane.retried_ms += earlier;
        lane.bars.push(Bar { tone, execution: item.id, attempts: drawn, took_ms: busy, spoken });
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

/// A worker as people count.
pub(super) fn name_of(Worker { shard, slot }: Worker) -> String {
    if shard > 0 { format!("Shard {shard}, worker {}", slot + 1) } else { format!("Worker {}", slot + 1) }
}
