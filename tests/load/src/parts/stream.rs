//! `stream`: live runs that send their results in batches of five, four
//! reporters at a time, each waiting for one answer before its next batch.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use callboard_store::Backend;
use callboard_test_support::{Answer, Client};
use reqwest::Method;
use serde_json::{Value, json};

use super::Setting;
use crate::generator::{Payload, Runs};
use crate::load::{Measured, Plan, drive, quantile_ms};
use crate::machine;
use crate::report::{Cell, Table, hundredths, whole};
use crate::subject::{self, Subject};
use crate::yardstick;

/// Results of one call.
const BATCH: usize = 5;
/// Reporters at a time.
const REPORTERS: usize = 4;
/// Tests of a run.
const TESTS: usize = 200;
/// Runs of a payload.
const RUNS: usize = 120;
const BUDGET: Duration = Duration::from_secs(20);
/// Runs and tests of each over which memory is watched, and how often: it grows
/// until the caches of the engine are full.
const LONG: (usize, usize, usize) = (100, 1_000, 3);
const MIB: f64 = 1024.0 * 1024.0;

/// Measures one engine.
///
/// # Errors
/// When the service does not start or takes no result.
pub async fn measure(setting: Setting, backend: Backend) -> Result<Table> {
    let subject = Subject::start(backend).await?;
    let title = format!("Streaming in batches of {BATCH}, {}", subject::engine(backend));
    let columns = [
        "payload",
        "reporters",
        "exec/s",
        "target",
        "per row",
        "target",
        "call p50 ms",
        "call p95 ms",
        "µs CPU/exec",
    ];
    let mut table = Table::new(title, &columns);
    let (reference, mut yardsticks) =
        (yardstick::row_by_row_where_targets_were_set(backend), Vec::with_capacity(2));
    for (payload, target) in [(Payload::Lean, 15_000.0), (Payload::Rich, 5_000.0)] {
        let cpu_before = machine::processor_time(subject.pid());
        let count = setting.bounded(RUNS) as u64 + 1;
        let runs = runs_of(setting, payload, TESTS, count);
        let streamed = stream(&subject, &runs, 0..count).await?;
        table.note(format!(
            "{}: start p50 {:.2} ms, p95 {:.2} ms; finish p50 {:.2} ms, p95 {:.2} ms.",
            payload.name(),
            quantile_ms(&streamed.taken.starts, 0.5),
            quantile_ms(&streamed.taken.starts, 0.95),
            quantile_ms(&streamed.taken.finishes, 0.5),
            quantile_ms(&streamed.taken.finishes, 0.95),
        ));
        let cpu =
            machine::processor_time(subject.pid()).zip(cpu_before).map(|(after, before)| after - before);
        let executions = (streamed.runs.answered() * TESTS) as f64;
        let per_second = streamed.runs.per_second() * TESTS as f64;
        // Beside each: machines slow down and speed up.
        let rows = yardstick::row_by_row(backend).await.context("the yardstick")?;
        yardsticks.push(format!("{rows:.0}"));
        table.row(vec![
            payload.name().into(),
            whole(REPORTERS as f64),
            whole(per_second),
            format!("≥ {target:.0}/s").into(),
            hundredths(per_second / rows),
            format!("≥ {:.2}", target / reference).into(),
            hundredths(quantile_ms(&streamed.taken.batches, 0.5)),
            hundredths(quantile_ms(&streamed.taken.batches, 0.95)),
            cpu.map_or(Cell::None, |cpu| whole(cpu.as_secs_f64() * 1e6 / executions)),
        ]);
        if let Some(refusal) = streamed.runs.refusal {
            table.note(format!("{}: {refusal}", payload.name()));
        }
    }
    table.note(format!(
        "per row: executions streamed in the time in which one plain row is stored with a statement of its own, in one \
         transaction and without a service; measured after each payload: {} rows/s, where the targets were set {reference:.0}.",
        yardsticks.join(" and "),
    ));
    table.note(memory(setting, &subject).await?);
    table.note(format!(
        "Runs of {TESTS} tests, each opened with a start and closed with a finish, which count in the time; what a \
         reporter sends is made before. Answers are waited for, so the figure is {REPORTERS} calls in flight at most."
    ));
    Ok(table)
}

/// So many runs of a project of their own.
fn runs_of(setting: Setting, payload: Payload, tests: usize, count: u64) -> Runs {
    let project = format!("stream-{}-{tests}", payload.name());
    Runs::new(setting.seed, &project, payload, tests, count, setting.until)
}

/// What is resident while the same runs come again and again. A slow engine takes
/// fewer of them in its time.
async fn memory(setting: Setting, subject: &Subject) -> Result<String> {
    let (runs, tests, times) = (setting.bounded(LONG.0), LONG.1, LONG.2);
    let megabytes = |bytes: Option<u64>| bytes.map_or(0.0, |bytes| bytes as f64 / MIB);
    let before = megabytes(machine::resident_bytes(subject.pid()));
    machine::forget_peak(subject.pid());
    let (mut told, mut done, count) = (String::new(), 0, runs as u64 + 1);
    let all = runs_of(setting, Payload::Lean, tests, count * times as u64);
    for time in 0..times as u64 {
        done += stream(subject, &all, time * count..(time + 1) * count).await?.runs.answered();
        let resident = megabytes(machine::resident_bytes(subject.pid()));
        let _ = write!(told, "after {done} of them {resident:.1} MB, ");
    }
    let peak = megabytes(machine::peak_bytes(subject.pid()));
    Ok(format!(
        "Resident memory before further runs of {tests} tests {before:.1} MB, {told}at the peak {peak:.1} MB."
    ))
}

/// What streaming some runs took.
struct Streamed {
    runs: Measured,
    taken: Taken,
}

/// How long each call took.
#[derive(Debug, Clone, Default)]
struct Taken {
    starts: Vec<Duration>,
    /// Those that carried results.
    batches: Vec<Duration>,
    finishes: Vec<Duration>,
}

impl Taken {
    fn append(&mut self, mut other: Self) {
        self.starts.append(&mut other.starts);
        self.batches.append(&mut other.batches);
        self.finishes.append(&mut other.finishes);
    }
}

/// Streams the runs of those numbers. The first of them is not measured: it may be
/// the one that makes the suite.
async fn stream(subject: &Subject, runs: &Runs, numbers: Range<u64>) -> Result<Streamed> {
    let scripts: Vec<Script> =
        numbers.map(|number| Script::from_runs(runs, number)).collect::<Result<_>>()?;
    let (client, count) = (subject.client(), scripts.len().saturating_sub(1));
    scripts.first().context("no run")?.play(&client).await?;
    let scripts = Arc::new(scripts);
    let taken = Arc::new(Mutex::new(Taken::default()));
    let kept = Arc::clone(&taken);
    let plan = Plan { concurrency: REPORTERS, requests: count, budget: BUDGET };
    let measured = drive(plan, move |number| {
        let (client, scripts, kept) = (client.clone(), Arc::clone(&scripts), Arc::clone(&kept));
        async move {
            let own = scripts[number + 1].play(&client).await?;
            kept.lock().unwrap_or_else(PoisonError::into_inner).append(own);
            Ok(())
        }
    })
    .await?;
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Streamed { runs: measured, taken })
}

/// What one reporter sends.
struct Script {
    start: Value,
    /// Results by call, without the token.
    batches: Vec<String>,
    finish: Value,
}

impl Script {
    fn from_runs(runs: &Runs, number: u64) -> Result<Self> {
        let mut run: Value = serde_json::from_slice(&runs.body(number)?)?;
        let cases = run["testCases"].take();
        let cases = cases.as_array().context("a run without tests")?;
        let batches = cases
            .chunks(BATCH)
            .map(|batch| {
                let events: Vec<Value> = batch
                    .iter()
                    .map(|case| {
                        let mut event = case.clone();
                        event["type"] = json!("complete");
                        event
                    })
                    .collect();
                Value::Array(events).to_string()
            })
            .collect();
        let finish = json!({"status": run["status"], "duration": run["duration"]});
        if let Some(run) = run.as_object_mut() {
            for key in ["testCases", "status", "duration"] {
                run.remove(key);
            }
            run.insert("clientRunId".to_owned(), json!(format!("bench-{number:08}")));
            // One suite in four jobs at a time: each a run of its own.
            run.remove("instanceId");
        }
        Ok(Self { start: run, batches, finish })
    }

    /// Sends everything, in order; each call is timed.
    async fn play(&self, client: &Client) -> Result<Taken> {
        let mut taken = Taken::default();
        let sent = Instant::now();
        let opened = post(client, "/api/test-runs/start", self.start.to_string()).await?;
        taken.starts.push(sent.elapsed());
        let run = opened["runId"].as_i64().context("no runId")?;
        let token = opened["streamToken"].as_str().context("no streamToken")?;
        for batch in &self.batches {
            let body = format!(r#"{{"streamToken":"{token}","testCases":{batch}}}"#);
            let sent = Instant::now();
            post(client, &format!("/api/test-runs/{run}/events"), body).await?;
            taken.batches.push(sent.elapsed());
        }
        let mut finish = self.finish.clone();
        finish["streamToken"] = json!(token);
        let sent = Instant::now();
        post(client, &format!("/api/test-runs/{run}/finish"), finish.to_string()).await?;
        taken.finishes.push(sent.elapsed());
        Ok(taken)
    }
}

async fn post(client: &Client, path: &str, body: String) -> Result<Value> {
    let request = client
        .request(Method::POST, path)
        .header(reqwest::header::CONTENT_TYPE, "application/json")
        .body(body);
    Answer::send(request).await?.success()
}
