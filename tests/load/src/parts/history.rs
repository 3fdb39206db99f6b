//! `history`: what a submit costs while the history of its tests grows, and
//! the filled service that `read` asks afterwards.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use callboard_store::Backend;

use super::Setting;
use crate::generator::{Payload, Runs};
use crate::load::{Measured, Plan, drive, quantile_ms};
use crate::report::{Table, hundredths, whole};
use crate::subject::{self, Stored, Subject};

/// Tests of the project that grows.
const TESTS: usize = 200;
/// Small projects beside it.
const OTHERS: usize = 50;
/// Fewest and most runs before a point of the history whose latencies are
/// compared: a fifth of what came before, so that work in the background, which
/// comes every half a minute, does not make up a whole window.
const WINDOW: (usize, usize) = (30, 300);
/// Most time for each execution; few of them have [`LEAST_BUDGET`].
const BUDGET: Duration = Duration::from_micros(900);
const LEAST_BUDGET: Duration = Duration::from_secs(90);

/// A service with a long history.
#[derive(Debug)]
pub struct History {
    /// The service.
    pub subject: Subject,
    /// Its newest run, with evidence.
    pub newest: Stored,
    /// A run whose tests have the whole history.
    pub longest: Stored,
    /// How long each submit took, in order.
    measured: Measured,
}

impl History {
    /// Fills a fresh service: 50 small projects and one that grows run by run.
    ///
    /// # Errors
    /// When the service does not start or refuses a run.
    pub async fn fill(setting: Setting, backend: Backend, executions: u32) -> Result<Self> {
        let subject = Subject::start(backend).await?;
        let client = subject.client();
        for number in 0..OTHERS {
            let name = format!("small-{number:02}");
            let runs = Runs::new(setting.seed + number as u64, &name, Payload::Lean, 10, 2, setting.until);
            for run in 0..2 {
                subject::submit(&client, runs.body(run)?).await?;
            }
        }
        let count = setting.bounded(executions as usize / TESTS);
        let runs = Runs::new(setting.seed, "growing", Payload::Lean, TESTS, count as u64 + 1, setting.until);
        let bodies: Vec<Bytes> = (1..=count as u64).map(|number| runs.body(number)).collect::<Result<_>>()?;
        let longest = subject::submit(&subject.client(), runs.body(0)?).await.context("the first run")?;
        let (client, bodies) = (subject.client(), Arc::new(bodies));
        let budget = (BUDGET * executions).max(LEAST_BUDGET);
        let plan = Plan { concurrency: 1, requests: count, budget };
        let measured = drive(plan, move |number| {
            let (client, bodies) = (client.clone(), Arc::clone(&bodies));
            async move { subject::submit(&client, bodies[number].clone()).await.map(drop) }
        })
        .await?;
        let last = count as u64 + 1;
        let rich = Runs::new(setting.seed, "growing", Payload::Rich, TESTS, last, setting.until);
        let newest = subject::submit(&subject.client(), rich.body(last)?).await.context("the newest run")?;
        Ok(Self { subject, newest, longest, measured })
    }

    /// Executions in the growing project.
    #[must_use]
    pub fn executions(&self) -> usize {
        (self.measured.answered() + 2) * TESTS
    }

    /// The table of this part.
    #[must_use]
    pub fn table(&self, backend: Backend) -> Table {
        let title = format!("Submit as history grows, {}", subject::engine(backend));
        let columns = ["executions before", "p50 ms", "p95 ms", "times the first", "target"];
        let mut table = Table::new(title, &columns);
        let latencies = self.measured.latencies();
        // The first submits meet a suite that is partly new in its lanes.
        let points = [1, 5, 10, 25, 50, 100].map(|percent| latencies.len() * percent / 100);
        let mut first = None;
        for end in points {
            let window = &latencies[end.saturating_sub((end / 5).clamp(WINDOW.0, WINDOW.1))..end];
            if window.len() < WINDOW.0.min(latencies.len() / 10) {
                continue;
            }
            let median = quantile_ms(window, 0.5);
            let first = *first.get_or_insert(median);
            table.row(vec![
                whole(((end - window.len()) * TESTS) as f64),
                hundredths(median),
                hundredths(quantile_ms(window, 0.95)),
                hundredths(median / first),
                "≤ 1.3".into(),
            ]);
        }
        table.note(format!(
            "{TESTS} tests per run in four lanes, one client, medians over {} to {} submits.",
            WINDOW.0, WINDOW.1
        ));
        if let Some(refusal) = &self.measured.refusal {
            table.note(format!("Refused: {refusal}"));
        }
        table
    }
}
