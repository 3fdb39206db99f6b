//! `submit`: latency and executions per second of whole runs, beside the rate
//! at which the same rows can be written without the service.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_store::{Backend, evidence};
use callboard_test_support::TestDatabase;

use super::Setting;
use crate::generator::{Payload, Runs};
use crate::load::{Measured, Plan, drive};
use crate::report::{Cell, Table, hundredths, tenths, whole};
use crate::subject::{self, Stored, Subject};
use crate::{machine, yardstick};

/// No row of the table sends for longer.
const BUDGET: Duration = Duration::from_secs(15);
/// Runs the yardstick writes again, at most.
const RAW_RUNS: usize = 31;

/// A payload, a size, how many runs of it, and how many of them at a time.
const SHAPES: [(Payload, usize, usize, &[usize]); 6] = [
    (Payload::Lean, 10, 300, &[1, 4]),
    (Payload::Lean, 100, 150, &[1, 4]),
    (Payload::Lean, 1_000, 40, &[1]),
    (Payload::Lean, 5_000, 30, &[1]),
    (Payload::Minimal, 100, 100, &[4]),
    (Payload::Rich, 100, 100, &[1, 4]),
];

/// Measures one engine.
///
/// # Errors
/// When the service does not start or stores nothing.
pub async fn measure(setting: Setting, backend: Backend) -> Result<Table> {
    let subject = Subject::start(backend).await?;
    let title = format!("Submit, {}", subject::engine(backend));
    let columns = [
        "payload",
        "tests/run",
        "conc.",
        "first ms",
        "p50 ms",
        "p95 ms",
        "exec/s",
        "target",
        "counted/s",
        "µs CPU/exec",
        "raw exec/s",
        "of raw %",
    ];
    let mut table = Table::new(title, &columns);
    let mut rollups = 0.0;
    for (payload, tests, count, concurrencies) in SHAPES {
        let mut cells = Vec::new();
        for &concurrency in concurrencies {
            cells.push(
                Measurement::measure(setting, &subject, payload, tests, setting.bounded(count), concurrency)
                    .await?,
            );
        }
        let runs: Vec<(i64, i64)> =
            cells[0].runs.iter().take(RAW_RUNS).map(|stored| (stored.project, stored.run)).collect();
        let raw = yardstick::measure(subject.database(), &runs).await.context("the yardstick")?;
        if payload == Payload::Lean {
            rollups = raw.rollups_per_execution;
        }
        if payload == Payload::Rich {
            let bytes = evidence_at_rest(subject.database(), cells[0].runs[0], tests).await?;
            table.note(format!(
                "Evidence at rest: {bytes:.0} bytes per rich execution (target: at most 1,200)."
            ));
        }
        for cell in cells {
            cell.add_to(&mut table, backend, raw.executions_per_second);
        }
    }
    table.note(format!(
        "lean: with branch and environment, {rollups:.1} rollup rows per execution; minimal: without, half of them; \
         rich: about 5 KB of evidence per test."
    ));
    table.note(
        "first: the first run of a new suite. raw: the same execution and rollup rows, one bulk statement per table and \
         transaction per run, one writer, no service; target: at least 50 % of it.",
    );
    table.note(
        "counted: submits, and after them the wait of a reader until the numbers of all tests hold them; CPU includes both.",
    );
    table.note("CPU is that of the service process, without that of a database server.");
    Ok(table)
}

/// Bytes that the evidence of a run takes, per test.
async fn evidence_at_rest(database: &TestDatabase, run: Stored, tests: usize) -> Result<f64> {
    let store = database.store().await?;
    let (project, run) = (ProjectId(run.project), RunId(run.run));
    let bytes = evidence::size_of_run(&mut store.db().read().await?, project, run).await?;
    store.db().close().await;
    Ok(bytes as f64 / tests as f64)
}

/// What one row of the table is made of.
struct Measurement {
    payload: Payload,
    tests: usize,
    concurrency: usize,
    first: Duration,
    measured: Measured,
    /// From the first submit until the numbers of every test hold all of them.
    counted: Duration,
    cpu: Option<Duration>,
    runs: Vec<Stored>,
}

impl Measurement {
    async fn measure(
        setting: Setting,
        subject: &Subject,
        payload: Payload,
        tests: usize,
        count: usize,
        concurrency: usize,
    ) -> Result<Self> {
        let project = format!("{}-{tests}-by-{concurrency}", payload.name());
        let runs = Runs::new(setting.seed, &project, payload, tests, count as u64 + 1, setting.until);
        let bodies: Vec<Bytes> = (0..=count as u64).map(|number| runs.body(number)).collect::<Result<_>>()?;
        let client = subject.client();
        let begun = Instant::now();
        let warm = subject::submit(&client, bodies[0].clone()).await?;
        let first = begun.elapsed();
        let cpu_before = machine::processor_time(subject.pid());
        let plan = Plan { concurrency, requests: count, budget: BUDGET };
        let kept = Arc::new(std::sync::Mutex::new(vec![warm]));
        let (bodies, stored) = (Arc::new(bodies), Arc::clone(&kept));
        let measured = drive(plan, move |number| {
            let (client, bodies, stored) = (client.clone(), Arc::clone(&bodies), Arc::clone(&stored));
            async move {
                let run = subject::submit(&client, bodies[number + 1].clone()).await?;
                stored.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(run);
                Ok(())
            }
        })
        .await?;
        // Whoever asks for numbers of tests waits until what came is counted.
        let counting = Instant::now();
        subject::read(&subject.client(), &format!("/api/projects/{}/test-cases?limit=1", warm.project))
            .await?;
        let counted = measured.wall() + counting.elapsed();
        let cpu =
            machine::processor_time(subject.pid()).zip(cpu_before).map(|(after, before)| after - before);
        let runs = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Ok(Self { payload, tests, concurrency, first, measured, counted, cpu, runs })
    }

    fn add_to(self, table: &mut Table, backend: Backend, raw: f64) {
        let per_second = self.measured.per_second() * self.tests as f64;
        let executions = (self.measured.answered() * self.tests) as f64;
        table.row(vec![
            self.payload.name().into(),
            whole(self.tests as f64),
            whole(self.concurrency as f64),
            tenths(self.first.as_secs_f64() * 1000.0),
            hundredths(self.measured.quantile_ms(0.5)),
            hundredths(self.measured.quantile_ms(0.95)),
            whole(per_second),
            target(self.payload, self.tests, self.concurrency, backend).into(),
            whole(executions / self.counted.as_secs_f64()),
            self.cpu.map_or(Cell::None, |cpu| whole(cpu.as_secs_f64() * 1e6 / executions)),
            whole(raw),
            whole(100.0 * per_second / raw),
        ]);
        if let Some(refusal) = self.measured.refusal {
            table.note(format!("Refused at {} tests: {refusal}", self.tests));
        }
    }
}

fn target(payload: Payload, tests: usize, concurrency: usize, backend: Backend) -> &'static str {
    match (payload, tests, concurrency, backend) {
        (Payload::Lean, 100, 4, Backend::Sqlite) => "≥ 25000/s",
        (Payload::Lean, 100, 4, Backend::Postgres) => "≥ 15000/s",
        (Payload::Rich, 100, 4, _) => "≥ 25000/s",
        (Payload::Lean, 5_000, 1, _) => "p95 ≤ 300 ms",
        _ => "–",
    }
}
