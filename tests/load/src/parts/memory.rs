//! `memory`: what the local runner holds when idle, at most while it is busy,
//! and while the same work goes on and on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use callboard_store::Backend;

use super::Setting;
use crate::generator::{Payload, Runs};
use crate::load::{Plan, drive};
use crate::machine;
use crate::report::{Cell, Table, tenths};
use crate::subject::{self, Subject};

const BUDGET: Duration = Duration::from_secs(10);
const MIB: f64 = 1024.0 * 1024.0;

/// Payload, tests per run, runs, requests in flight.
const LOADS: [(Payload, usize, usize, usize); 4] = [
    (Payload::Lean, 100, 200, 8),
    (Payload::Rich, 100, 100, 8),
    (Payload::Lean, 5_000, 8, 2),
    (Payload::Rich, 1_000, 12, 4),
];

/// Runs of a thousand tests one after the other: how many at a time, and how
/// often the memory is looked at.
const STEADY: (usize, usize) = (25, 4);
const STEADY_BUDGET: Duration = Duration::from_secs(20);

/// Measures one engine.
///
/// # Errors
/// When the service does not start or stores nothing.
pub async fn measure(setting: Setting, backend: Backend) -> Result<Table> {
    let subject = Subject::start(backend).await?;
    let mut table = Table::new(
        format!("Resident memory of the local runner, {}", subject::engine(backend)),
        &["when", "MB", "target"],
    );
    table.row(vec![
        "idle after start".into(),
        megabytes(machine::resident_bytes(subject.pid())),
        "≤ 25".into(),
    ]);
    for (payload, tests, runs, concurrency) in LOADS {
        machine::forget_peak(subject.pid());
        let project = format!("memory-{}-{tests}", payload.name());
        let count = setting.bounded(runs);
        let runs = Runs::new(setting.seed, &project, payload, tests, count as u64, setting.until);
        let bodies: Vec<Bytes> = (0..count as u64).map(|number| runs.body(number)).collect::<Result<_>>()?;
        let (client, bodies) = (subject.client(), Arc::new(bodies));
        let measured = drive(Plan { concurrency, requests: count, budget: BUDGET }, move |number| {
            let (client, bodies) = (client.clone(), Arc::clone(&bodies));
            async move {
                subject::submit(&client, bodies[number].clone()).await?;
                subject::read(&client, "/api/health").await.map(drop)
            }
        })
        .await?;
        let when = format!("peak, {concurrency} × {} runs of {tests}", payload.name());
        table.row(vec![when.into(), megabytes(machine::peak_bytes(subject.pid())), "≤ 150".into()]);
        if let Some(refusal) = measured.refusal {
            table.note(format!("Refused: {refusal}"));
        }
    }
    table.row(vec!["after the load".into(), megabytes(machine::resident_bytes(subject.pid())), "–".into()]);
    steady(setting, &subject, &mut table).await?;
    Ok(table)
}

/// The same runs again and again, after which there should be no more than
/// before.
async fn steady(setting: Setting, subject: &Subject, table: &mut Table) -> Result<()> {
    let (count, times) = (setting.bounded(STEADY.0), STEADY.1);
    let total = (count * times) as u64;
    let runs = Runs::new(setting.seed, "memory-steady", Payload::Rich, 1_000, total, setting.until);
    for time in 0..times {
        let numbers = (time * count) as u64..((time + 1) * count) as u64;
        let bodies: Arc<Vec<Bytes>> =
            Arc::new(numbers.map(|number| runs.body(number)).collect::<Result<_>>()?);
        let client = subject.client();
        machine::forget_peak(subject.pid());
        let plan = Plan { concurrency: 1, requests: count, budget: STEADY_BUDGET };
        let measured = drive(plan, move |number| {
            let (client, bodies) = (client.clone(), Arc::clone(&bodies));
            async move { subject::submit(&client, bodies[number].clone()).await.map(drop) }
        })
        .await?;
        let done = time * count + measured.answered();
        let peak = megabytes(machine::peak_bytes(subject.pid()));
        table.row(vec![
            format!("peak, up to run {done} of 1000 tests one by one").into(),
            peak,
            "flat".into(),
        ]);
    }
    Ok(())
}

fn megabytes(bytes: Option<u64>) -> Cell {
    bytes.map_or(Cell::None, |bytes| tenths(bytes as f64 / MIB))
}
