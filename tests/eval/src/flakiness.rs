//! Flaky tests by what the filter says about simulated histories of
//! `tests/data/flakiness`, beside calling every test flaky that both passed
//! and failed.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};
use callboard_domain::flakiness::{Code, Filter, Posterior};
use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::table::{Table, Target};

/// From this rate on a test really is flaky.
const FLAKY_RATE: f64 = 0.002;
/// Bins of the calibration error.
const BINS: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    id: u64,
    theta: f64,
    broken_runs: Vec<usize>,
    outage_runs: Vec<usize>,
    repaired_at: Option<usize>,
    runs: Vec<(u8, String)>,
}

impl History {
    fn is_flaky(&self) -> bool {
        self.theta >= FLAKY_RATE
    }

    /// Attempts and commits as they were.
    fn exactly(&self) -> Posterior {
        self.judged(|run| (if run.0 == 1 { Code::New } else { Code::Same }, run.1.as_str()))
    }

    /// What the stored history keeps: one outcome per run.
    fn by_outcomes(&self) -> Posterior {
        self.judged(|run| {
            let outcome = match (run.1.contains('F'), run.1.ends_with('P')) {
                (true, true) => "FP",
                (_, true) => "P",
                _ => "F",
            };
            (Code::New, outcome)
        })
    }

    fn judged<'h>(&'h self, read: impl Fn(&'h (u8, String)) -> (Code, &'h str)) -> Posterior {
        let mut filter = Filter::default();
        for (number, run) in self.runs.iter().enumerate() {
            let (code, attempts) = read(run);
            if self.outage_runs.contains(&number) {
                filter.skip(code);
            } else {
                filter.run(code, attempts.bytes().map(|attempt| attempt == b'F'));
            }
        }
        filter.posterior()
    }

    /// Passed and failed, whenever.
    fn is_mixed(&self) -> bool {
        let attempts = || self.runs.iter().flat_map(|(_, attempts)| attempts.bytes());
        attempts().any(|attempt| attempt == b'F') && attempts().any(|attempt| attempt == b'P')
    }
}

#[derive(Debug, Default)]
struct Score {
    right: f64,
    wrong: f64,
    missed: f64,
    broken: f64,
    broken_called_flaky: f64,
    bins: [(f64, f64, f64); BINS],
}

impl Score {
    fn from_histories(histories: &[History], judge: impl Fn(&History) -> (bool, f64)) -> Self {
        let mut score = Self::default();
        for history in histories {
            let (is_called_flaky, probability) = judge(history);
            // A test that was mended on the way is neither.
            if history.repaired_at.is_none() {
                match (is_called_flaky, history.is_flaky()) {
                    (true, true) => score.right += 1.0,
                    (true, false) => score.wrong += 1.0,
                    (false, true) => score.missed += 1.0,
                    (false, false) => {}
                }
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=10")]
                let bin = ((probability * 10.0) as usize).min(BINS - 1);
                let (count, flaky, sum) = &mut score.bins[bin];
                *count += 1.0;
                *flaky += f64::from(u8::from(history.is_flaky()));
                *sum += probability;
            }
            if !history.broken_runs.is_empty() && history.theta == 0.0 {
                score.broken += 1.0;
                score.broken_called_flaky += f64::from(u8::from(is_called_flaky));
            }
        }
        score
    }

    fn precision(&self) -> f64 {
        self.right / (self.right + self.wrong).max(1.0)
    }

    fn recall(&self) -> f64 {
        self.right / (self.right + self.missed).max(1.0)
    }

    fn broken_called_flaky(&self) -> f64 {
        self.broken_called_flaky / self.broken.max(1.0)
    }

    /// Expected calibration error: how far probabilities are from frequencies.
    fn calibration(&self) -> f64 {
        let count: f64 = self.bins.iter().map(|bin| bin.0).sum();
        self.bins.iter().map(|(_, flaky, sum)| (flaky - sum).abs()).sum::<f64>() / count.max(1.0)
    }
}

/// Judges the histories and compares with how they were made.
pub(crate) fn measure(data: &Path, details: bool) -> Result<Table> {
    let path = data.join("flakiness/histories.jsonl.gz");
    let file = std::fs::File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text)?;
    let histories: Vec<History> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;

    let simple = Score::from_histories(&histories, |history| {
        let is_mixed = history.is_mixed();
        (is_mixed, if is_mixed { 1.0 } else { 0.0 })
    });
    let mut table = Table::new(format!("Flaky tests: {} simulated histories", histories.len()));
    for (name, judge) in
        [("attempts", History::exactly as fn(&History) -> Posterior), ("outcomes", History::by_outcomes)]
    {
        let score = Score::from_histories(&histories, |history| {
            let found = judge(history);
            (found.is_flaky, found.probability)
        });
        let row = |what: &str| format!("{what}, by {name}");
        table.add(row("precision"), score.precision(), Target::AtLeast(0.95), Some(simple.precision()));
        table.add(row("recall"), score.recall(), Target::None, Some(simple.recall()));
        table.add(
            row("broken called flaky"),
            score.broken_called_flaky(),
            Target::AtMost(0.02),
            Some(simple.broken_called_flaky()),
        );
        table.add(
            row("calibration error"),
            score.calibration(),
            Target::AtMost(0.05),
            Some(simple.calibration()),
        );
    }
    if details {
        let wrong = histories.iter().filter(|history| history.repaired_at.is_none());
        for history in wrong.filter(|history| history.exactly().is_flaky && !history.is_flaky()) {
            table.note(format!("history {} was called flaky", history.id));
        }
    }
    table.note("Many rates are so low that nothing happened in sixty runs: recall cannot be much higher.");
    Ok(table)
}
