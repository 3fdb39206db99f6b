//! From the recent history of a test to what it says about its flakiness.
//!
//! Invariant: browser projects are series of their own, a test is as bad as
//! its worst series, and undecided executions are no runs of a series.

use std::collections::BTreeMap;

use super::filter::{Code, Filter, Posterior};
use crate::status::Outcome;
use crate::test_state::RecentOutcome;

/// Runs a score looks at when nobody says otherwise.
pub const DEFAULT_WINDOW: usize = 50;

/// What of the recent history counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Newest decided runs of each series.
    pub runs: usize,
    /// Whether executions that failed in the end are believed. Across branches
    /// they are not: a feature branch on which a test fails says nothing about
    /// chance. They are counted either way.
    pub failures: bool,
}

impl Window {
    /// The window of the stored score.
    #[must_use]
    pub const fn standard(failures: bool) -> Self {
        Self { runs: DEFAULT_WINDOW, failures }
    }
}

/// The counts behind a score. They explain it and are never mixed into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Decided executions of the window, mass failures left out.
    pub runs: i64,
    /// Those that failed or timed out in the end.
    pub failed: i64,
    /// Those that passed on a retry.
    pub retry_passes: i64,
    /// Changes between passing and failing in the end, within one series.
    pub alternations: i64,
    /// Mean time lost by an execution that failed or passed on a retry, ms.
    pub mean_lost_ms: Option<i64>,
    /// Time that those executions lost together, ms: on the attempts before a
    /// passing one, and on the retries of one that failed in the end. One whose
    /// own time is not known any more counts with the mean.
    pub wasted_ms: i64,
}

impl Evidence {
    /// Failed / decided; `None` without decided ones.
    #[must_use]
    pub fn failure_rate(&self) -> Option<f64> {
        crate::totals::rate(self.failed, self.runs)
    }

    /// What the test costs, for ordering: wasted minutes at 0.7, an
    /// interrupted person at 9 for each pass on a retry.
    #[must_use]
    pub fn impact(&self) -> i64 {
        #[expect(clippy::cast_precision_loss, reason = "durations stay far below 2^52")]
        let minutes = self.wasted_ms as f64 / 60_000.0;
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let wasted = (minutes * 0.7 + 0.5).floor() as i64;
        wasted.saturating_add(self.retry_passes.saturating_mul(9))
    }
}

/// What the recent history of a test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// Of the series that is most probably flaky.
    pub posterior: Posterior,
    /// Highest probability of any series that the test is broken.
    pub broken: f64,
    /// Counts over all series.
    pub evidence: Evidence,
}

/// Whether anything in the history calls for a score at all.
fn is_remarkable(outcome: &RecentOutcome, window: Window) -> bool {
    match outcome.outcome {
        Outcome::Flaky => true,
        Outcome::Failed | Outcome::TimedOut => window.failures,
        _ => false,
    }
}

/// The score of a test at one moment of its recent history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreAt {
    /// Executions that came after it.
    pub behind: usize,
    /// `round(100 · probability)` that the test was flaky by what was known
    /// then; 0 when nothing called for a score.
    pub score: i64,
}

/// The score after so many executions as there are, and at up to `most - 1`
/// moments before, evenly apart, oldest first. Nothing before the tenth
/// execution, which no score is worth much after. Empty when the score was 0
/// all the time.
#[must_use]
pub fn course(
    recent: impl ExactSizeIterator<Item = RecentOutcome> + Clone,
    window: Window,
    most: usize,
) -> Vec<ScoreAt> {
    const FIRST: usize = 10;
    let all = recent.len();
    if all < FIRST || most < 2 {
        return Vec::new();
    }
    let parts = (most - 1).min(all - FIRST).max(1);
    let mut moments: Vec<usize> = (0..=parts).map(|at| FIRST + at * (all - FIRST) / parts).collect();
    moments.dedup();
    let scores: Vec<ScoreAt> = moments
        .into_iter()
        .map(|known| ScoreAt {
            behind: all - known,
            score: assess(recent.clone().take(known), window).map_or(0, |found| found.posterior.score()),
        })
        .collect();
    if scores.iter().all(|at| at.score == 0) { Vec::new() } else { scores }
}

/// Judges the recent history of a test, oldest first; `None` when nothing
/// failed within the window, not even on a first attempt.
#[must_use]
pub fn assess(recent: impl Iterator<Item = RecentOutcome> + Clone, window: Window) -> Option<Assessment> {
    if !recent.clone().any(|outcome| is_remarkable(&outcome, window)) {
        return None;
    }
    let all = series(recent, window);
    let is_needed = all.values().flatten().any(|run| is_remarkable(run, window) && !run.is_mass_failure);
    if !is_needed {
        return None;
    }
    let mut worst: Option<Posterior> = None;
    let (mut broken, mut lost, mut lost_n, mut costly) = (0.0_f64, 0_i128, 0_i128, 0_i128);
    let mut evidence = Evidence::default();
    for runs in all.values() {
        let posterior = judge(runs, window.failures);
        broken = broken.max(posterior.broken);
        if worst.is_none_or(|worst| posterior.probability > worst.probability) {
            worst = Some(posterior);
        }
        let mut failed_before = None;
        for run in runs.iter().filter(|run| !run.is_mass_failure) {
            let failed = run.outcome != Outcome::Flaky && run.outcome.status().is_failing();
            evidence.runs += 1;
            evidence.failed += i64::from(failed);
            evidence.retry_passes += i64::from(run.outcome == Outcome::Flaky);
            evidence.alternations += i64::from(failed_before.is_some_and(|before| before != failed));
            failed_before = Some(failed);
            if run.outcome != Outcome::Passed {
                costly += 1;
                lost += run.lost_ms.map_or(0, i128::from);
                lost_n += i128::from(run.lost_ms.is_some());
            }
        }
    }
    if lost_n > 0 {
        let rounded =
            |sum: i128, parts: i128| i64::try_from((2 * sum + parts) / (2 * parts)).unwrap_or(i64::MAX);
        evidence.mean_lost_ms = Some(rounded(lost, lost_n));
        evidence.wasted_ms = rounded(lost * costly, lost_n);
    }
    Some(Assessment { posterior: worst?, broken, evidence })
}

/// A decided execution of one series with what its row knows beyond the recent
/// history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactRun<'a> {
    /// The commit that was tested, if anybody told.
    pub commit: Option<&'a str>,
    /// Its attempts in order, `true` for a failed one.
    pub tries: Vec<bool>,
    /// It failed or timed out in the end.
    pub has_failed: bool,
    /// Its run failed as a whole.
    pub is_mass_failure: bool,
}

/// Judges one series, oldest first, from all its attempts and commits: where
/// tests are not retried, failing and passing on one commit is what tells a
/// flaky test from a broken one.
#[must_use]
pub fn judge_exactly<'a>(runs: impl IntoIterator<Item = ExactRun<'a>>, failures: bool) -> Posterior {
    let mut filter = Filter::default();
    let mut before = None;
    for run in runs {
        if run.has_failed && !failures && !run.is_mass_failure {
            continue;
        }
        let is_same = run.commit.is_some() && run.commit == before;
        let code = if is_same { Code::Same } else { Code::New };
        before = run.commit;
        if run.is_mass_failure {
            filter.skip(code);
        } else {
            filter.run(code, run.tries);
        }
    }
    filter.posterior()
}

/// Decided outcomes by series, the newest of each.
fn series(recent: impl Iterator<Item = RecentOutcome>, window: Window) -> BTreeMap<u8, Vec<RecentOutcome>> {
    let mut all: BTreeMap<u8, Vec<RecentOutcome>> = BTreeMap::new();
    for outcome in recent {
        if outcome.outcome.is_decided() {
            all.entry(outcome.browser_slot).or_default().push(outcome);
        }
    }
    for runs in all.values_mut() {
        let decided = runs.iter().filter(|run| !run.is_mass_failure).count();
        let mut surplus = decided.saturating_sub(window.runs);
        let keep = runs.iter().position(|run| {
            if surplus == 0 {
                return true;
            }
            surplus -= usize::from(!run.is_mass_failure);
            false
        });
        runs.drain(..keep.unwrap_or(runs.len()));
    }
    all
}

/// What is known from outcomes alone: every run may have tested new code.
fn judge(runs: &[RecentOutcome], failures: bool) -> Posterior {
    let mut filter = Filter::default();
    for run in runs {
        match run.outcome {
            _ if run.is_mass_failure => filter.skip(Code::New),
            Outcome::Flaky => filter.run(Code::New, [true, false]),
            Outcome::Passed => filter.run(Code::New, [false]),
            _ if failures => filter.run(Code::New, [true]),
            _ => {}
        }
    }
    filter.posterior()
}
