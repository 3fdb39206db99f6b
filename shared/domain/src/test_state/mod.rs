//! What is known about one test in one lane without touching executions: the
//! last outcomes, lifetime counts and the recent history.
//!
//! Invariant: the state depends on the observations, not on the order in which
//! they were applied, once the rebuilds that [`TestState::apply`] asks for are
//! done. `recent` is the history, `browsers` what each browser project said
//! last, `columns` the stored form, `flags` the comparison of an execution
//! with its predecessor.

mod browsers;
mod category;
mod columns;
mod flags;
mod recent;
#[cfg(test)]
mod tests;

pub use category::TestCategory;
pub use columns::{NewestDurations, Predecessors, StateColumns, UnreadableState, passed_durations};
pub use flags::{ExecutionFlags, flags_for};
pub use recent::{MAX_RECENT, MAX_RECENT_MS, RecentOutcome};

use std::collections::{BTreeMap, BTreeSet};

use browsers::Browsers;
use recent::{Placed, Recent};

use crate::ids::{ExecutionId, RunId};
use crate::sketch::{bucket_of, nearest_rank};
use crate::status::Outcome;
use crate::time::{Day, Timestamp};
use crate::totals::{Totals, mean};

/// How many of the newest executions "recently flaky" looks at.
const RECENTLY: usize = 30;

/// One execution as a lane counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The execution; it knows its run.
    pub execution: ExecutionId,
    /// When its run started.
    pub order_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// `browser_projects.id`.
    pub browser: i64,
    /// Duration of the deciding attempt in milliseconds.
    pub duration_ms: i64,
    /// Wasted time in milliseconds.
    pub wasted_ms: i64,
    /// Time its other attempts took, in milliseconds; counts when it did not
    /// pass on the first attempt.
    pub lost_ms: i64,
    /// Its run is flagged as a mass failure, which says nothing about the test.
    pub mass_failure: bool,
}

/// The order of observations: start of the run, then execution.
type Key = (Timestamp, ExecutionId);

impl Observation {
    const fn key(&self) -> Key {
        (self.order_at, self.execution)
    }

    const fn recent(&self) -> RecentOutcome {
        RecentOutcome {
            outcome: self.outcome,
            is_mass_failure: self.mass_failure,
            browser_slot: RecentOutcome::slot_of(self.browser),
            duration_ms: Some(if self.duration_ms < 0 { 0 } else { self.duration_ms }),
            lost_ms: if RecentOutcome::is_costly(self.outcome) {
                Some(if self.lost_ms < 0 { 0 } else { self.lost_ms })
            } else {
                None
            },
        }
    }
}

/// Whether a change could be applied from the state alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Applied {
    /// The state is up to date.
    Done,
    /// Counts are up to date; the recent history has to be read again, see
    /// [`TestState::rebuild_recent`].
    NeedsRebuild,
}

/// The state of one test in one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestState {
    last: Key,
    last_passed: Option<Key>,
    last_failed_at: Option<Timestamp>,
    first_seen_at: Timestamp,
    counts: Totals,
    wasted_ms: i64,
    browsers: Browsers,
    recent: Recent,
    /// Observations that are counted but missing in `recent` until it is
    /// rebuilt; not stored, because a rebuild follows in the same transaction.
    unplaced: BTreeSet<Key>,
    /// What is no more, taken back or replaced, but stands in `recent` until it
    /// is rebuilt; not stored, likewise.
    stale: BTreeMap<Key, RecentOutcome>,
}

impl TestState {
    /// The state after the very first observation.
    #[must_use]
    pub fn first(observation: &Observation) -> Self {
        let mut state = Self {
            last: observation.key(),
            last_passed: None,
            last_failed_at: None,
            first_seen_at: observation.order_at,
            counts: Totals::default(),
            wasted_ms: 0,
            browsers: Browsers::default(),
            recent: Recent::default(),
            unplaced: BTreeSet::new(),
            stale: BTreeMap::new(),
        };
        // An empty history takes anything.
        let _done = state.apply(None, observation);
        state
    }

    /// Counts an execution: `previous` is the form in which it was counted
    /// before, `None` when it is new. Apply everything a transaction brings,
    /// then rebuild once if any call asked for it.
    pub fn apply(&mut self, previous: Option<&Observation>, now: &Observation) -> Applied {
        if let Some(previous) = previous {
            self.counts.count(previous.outcome, -1);
            self.wasted_ms = self.wasted_ms.saturating_sub(previous.wasted_ms);
        }
        self.counts.count(now.outcome, 1);
        self.wasted_ms = self.wasted_ms.saturating_add(now.wasted_ms);
        self.first_seen_at = self.first_seen_at.min(now.order_at);

        let placed = self.recent.place(now.key(), now.recent(), previous.is_none());
        if placed == Placed::Unknown {
            self.mark_stale(previous);
            self.unplaced.insert(now.key());
        }
        if let Some(newest) = self.recent.newest(|_| true) {
            self.last = self.last.max(newest);
        }
        let knows_browser = self.browsers.note(now.browser, now.key(), now.outcome);
        let knows_passed = self.note_passed(now);
        let knows_failed = self.note_failed(previous, now);
        if placed == Placed::Done && knows_browser && knows_passed && knows_failed {
            Applied::Done
        } else {
            Applied::NeedsRebuild
        }
    }

    /// Takes an execution back that was deleted. The recent history has to be
    /// read again afterwards, see [`TestState::rebuild_recent`].
    pub fn retract(&mut self, gone: &Observation) {
        self.counts.count(gone.outcome, -1);
        self.wasted_ms = self.wasted_ms.saturating_sub(gone.wasted_ms);
        if self.last_passed == Some(gone.key()) {
            self.last_passed = None;
        }
        if is_failing(gone.outcome) && self.last_failed_at == Some(gone.order_at) {
            self.last_failed_at = None;
        }
        self.browsers.forget(gone.browser, gone.key());
        self.mark_stale(Some(gone));
        self.unplaced.remove(&gone.key());
    }

    /// Notes that an observation stands in the history in a form it no longer
    /// has, unless it does not stand there yet.
    fn mark_stale(&mut self, former: Option<&Observation>) {
        if let Some(former) = former
            && !self.unplaced.contains(&former.key())
        {
            self.stale.entry(former.key()).or_insert_with(|| former.recent());
        }
    }

    /// Keeps the newest pass; `false` when it was taken back and the one before
    /// it is out of sight.
    fn note_passed(&mut self, now: &Observation) -> bool {
        if is_passed(now.outcome) {
            self.last_passed = self.last_passed.max(Some(now.key()));
        } else if self.last_passed == Some(now.key()) {
            self.last_passed = self.recent.newest(|recent| is_passed(recent.outcome));
            return self.last_passed.is_some() || self.counts.passed_tests == 0;
        }
        true
    }

    /// The same for the newest failure.
    fn note_failed(&mut self, previous: Option<&Observation>, now: &Observation) -> bool {
        let was_failing = previous.is_some_and(|previous| is_failing(previous.outcome));
        if is_failing(now.outcome) {
            self.last_failed_at = self.last_failed_at.max(Some(now.order_at));
        } else if was_failing && self.last_failed_at == Some(now.order_at) {
            self.last_failed_at = self.recent.newest(|recent| is_failing(recent.outcome)).map(|key| key.0);
            return self.last_failed_at.is_some() || self.counts.failed_tests == 0;
        }
        true
    }

    /// Rebuilds everything that depends on order from the lane's newest
    /// observations of this test (up to [`MAX_RECENT`], in any order, every
    /// applied one included). Lifetime counts stay, and so does what is known of
    /// others: history outlives executions that retention has deleted, wherever
    /// they stood among those that are left.
    pub fn rebuild_recent(&mut self, mut newest: Vec<Observation>) {
        newest.sort_unstable_by_key(Observation::key);
        newest.dedup_by_key(|observation| observation.key());
        newest.drain(..newest.len().saturating_sub(MAX_RECENT));
        let unplaced = std::mem::take(&mut self.unplaced).len();
        let stale = std::mem::take(&mut self.stale);
        if newest.is_empty() && stale.is_empty() {
            return;
        }

        for observation in &newest {
            let key = observation.key();
            // Nothing can get lost: what comes after it is noted as well.
            let _known = self.browsers.note(observation.browser, key, observation.outcome);
            self.first_seen_at = self.first_seen_at.min(observation.order_at);
            self.last_passed = self.last_passed.filter(|&last| last != key);
            self.last_failed_at = self.last_failed_at.filter(|&last| last != observation.order_at);
        }
        let newest_of = |is_wanted: fn(Outcome) -> bool| {
            let row = newest.iter().rev().find(|observation| is_wanted(observation.outcome));
            row.map(Observation::key).max(self.browsers.newest(is_wanted))
        };
        self.last_passed = self.last_passed.max(newest_of(is_passed));
        self.last_failed_at = self.last_failed_at.max(newest_of(is_failing).map(|key| key.0));
        let last = newest_of(|_| true);
        let rows = newest.iter().map(|observation| (observation.key(), observation.recent())).collect();
        self.recent.rebuild(rows, unplaced, &stale);
        self.last = self.recent.newest(|_| true).max(last).unwrap_or(self.last);
    }

    /// Start of the last run in which the test appeared.
    #[must_use]
    pub const fn last_order_at(&self) -> Timestamp {
        self.last.0
    }

    /// The newest execution.
    #[must_use]
    pub const fn last_execution(&self) -> ExecutionId {
        self.last.1
    }

    /// Whether the test appeared in a run behind a place.
    #[must_use]
    pub fn ran_after(&self, order_at: Timestamp, run: RunId) -> bool {
        self.last_run() > (order_at, run)
    }

    /// The last run in which the test appeared, with its start.
    #[must_use]
    pub const fn last_run(&self) -> (Timestamp, RunId) {
        (self.last.0, self.last.1.run())
    }

    /// Outcome of the newest execution.
    #[must_use]
    pub fn last_outcome(&self) -> Option<Outcome> {
        self.recent.iter().next_back().map(|recent| recent.outcome)
    }

    /// Start of the run and execution of the newest pass, flaky ones included.
    #[must_use]
    pub const fn last_passed(&self) -> Option<(Timestamp, ExecutionId)> {
        self.last_passed
    }

    /// Start of the run of the newest failure or timeout.
    #[must_use]
    pub const fn last_failed_at(&self) -> Option<Timestamp> {
        self.last_failed_at
    }

    /// Start of the earliest run that was ever counted.
    #[must_use]
    pub const fn first_seen_at(&self) -> Timestamp {
        self.first_seen_at
    }

    /// Day of the last run.
    #[must_use]
    pub const fn last_day(&self) -> Day {
        self.last.0.day()
    }

    /// Lifetime counts of executions.
    #[must_use]
    pub const fn counts(&self) -> &Totals {
        &self.counts
    }

    /// Lifetime sum of wasted time in milliseconds.
    #[must_use]
    pub const fn wasted_ms(&self) -> i64 {
        self.wasted_ms
    }

    /// Lifetime passed / (passed + failed); `None` when neither occurred.
    #[must_use]
    pub fn pass_rate(&self) -> Option<f64> {
        self.counts.pass_rate()
    }

    /// The recent history, oldest first, at most [`MAX_RECENT`].
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = RecentOutcome> + ExactSizeIterator + Clone + '_ {
        self.recent.iter()
    }

    /// The newest executions that are known one by one, oldest first: at most
    /// sixteen, each with the start of its run.
    pub fn identified(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Timestamp, ExecutionId, RecentOutcome)> + '_ {
        let unidentified = self.recent.iter().len() - self.recent.keys().len();
        self.recent
            .keys()
            .zip(self.recent.iter().skip(unidentified))
            .map(|((at, id), recent)| (at, id, recent))
    }

    /// Flaky ones among the newest 30 executions.
    #[must_use]
    pub fn recent_flaky(&self) -> i64 {
        let flaky = self.recent.iter().rev().take(RECENTLY).filter(|recent| recent.outcome == Outcome::Flaky);
        i64::try_from(flaky.count()).unwrap_or(i64::MAX)
    }

    /// Newest decided executions in a row that failed or timed out, counted
    /// within the recent history.
    #[must_use]
    pub fn failing_streak(&self) -> i64 {
        self.streak(is_failing)
    }

    /// Newest decided executions in a row that passed at the first attempt,
    /// counted within the recent history.
    #[must_use]
    pub fn passing_streak(&self) -> i64 {
        self.streak(|outcome| outcome == Outcome::Passed)
    }

    fn streak(&self, belongs: impl Fn(Outcome) -> bool) -> i64 {
        let decided =
            self.recent.iter().rev().map(|recent| recent.outcome).filter(|outcome| outcome.is_decided());
        i64::try_from(decided.take_while(|&outcome| belongs(outcome)).count()).unwrap_or(i64::MAX)
    }

    /// Durations in milliseconds of the passed ones among the newest
    /// [`MAX_RECENT_MS`] executions, oldest first. Failures end early or in a
    /// timeout and say nothing about how long the test takes.
    #[must_use]
    pub fn passed_durations(&self) -> Vec<i64> {
        let passed = self.recent.iter().filter(|recent| is_passed(recent.outcome));
        passed.filter_map(|recent| recent.duration_ms).collect()
    }

    /// How much of the recent history came before a run; `None` for a run so
    /// long ago that what came before it cannot be told from what came after.
    fn known_before(&self, order_at: Timestamp, run: RunId) -> Option<usize> {
        let unidentified = self.recent.iter().len() - self.recent.keys().len();
        let is_before = |key: &Key| (key.0, key.1.run()) < (order_at, run);
        let identified_before = self.recent.keys().filter(is_before).count();
        let is_oldest_identified = self.recent.keys().next().is_some_and(|key| key.1.run() == run);
        let is_known = identified_before > 0 || is_oldest_identified || unidentified == 0;
        is_known.then_some(unidentified + identified_before)
    }

    /// How many of the recent history came after a run: of one so long ago that
    /// not all of them can be told, those that can.
    #[must_use]
    pub fn count_after(&self, order_at: Timestamp, run: RunId) -> usize {
        self.recent.keys().filter(|key| (key.0, key.1.run()) > (order_at, run)).count()
    }

    /// Whether [`Self::before`] knows what came before a run.
    #[must_use]
    pub fn knows_before(&self, order_at: Timestamp, run: RunId) -> bool {
        self.known_before(order_at, run).is_some()
    }

    /// The recent history as it was before a run, oldest first. Empty for a run
    /// so long ago that what came before it cannot be told from what came after.
    pub fn before(
        &self,
        order_at: Timestamp,
        run: RunId,
    ) -> impl Iterator<Item = RecentOutcome> + Clone + '_ {
        self.recent.iter().take(self.known_before(order_at, run).unwrap_or(0))
    }

    /// Durations in milliseconds of the passes of a browser project in runs
    /// before the given one, as far as [`Self::before`] knows them.
    #[must_use]
    pub fn passed_durations_before(&self, browser: i64, order_at: Timestamp, run: RunId) -> Vec<i64> {
        let slot = RecentOutcome::slot_of(browser);
        let passes = self.before(order_at, run);
        let passes = passes.filter(|recent| recent.browser_slot == slot && is_passed(recent.outcome));
        passes.filter_map(|recent| recent.duration_ms).collect()
    }

    /// Mean of [`Self::passed_durations`], rounded half up.
    #[must_use]
    pub fn avg_duration_ms(&self) -> Option<i64> {
        let durations = self.passed_durations();
        let count = i64::try_from(durations.len()).ok()?;
        mean(durations.into_iter().map(i128::from).sum::<i128>(), count)
    }

    /// A quantile (0..=1) of [`Self::passed_durations`] by nearest rank.
    #[must_use]
    pub fn duration_quantile_ms(&self, q: f64) -> Option<i64> {
        let mut durations = self.passed_durations();
        durations.sort_unstable();
        let rank = nearest_rank(durations.len() as u64, q)?;
        durations.get(usize::try_from(rank).ok()? - 1).copied()
    }

    /// The 95th percentile of [`Self::passed_durations`].
    #[must_use]
    pub fn p95_duration_ms(&self) -> Option<i64> {
        self.duration_quantile_ms(0.95)
    }

    /// Logarithmic class of the mean duration (ratio 1.1, from 1 up); 0 while
    /// no duration is known. Grows with the duration and rarely changes.
    #[must_use]
    pub fn speed_class(&self) -> i64 {
        self.avg_duration_ms().map_or(0, |average| i64::from(bucket_of(average)) + 1)
    }

    /// What a person would call the test now: the worst outcome any browser
    /// project had in the last run it appeared in.
    #[must_use]
    pub fn category(&self) -> TestCategory {
        let run = self.last.1.run();
        let outcomes = self.browsers.outcomes_in(run).chain(self.last_outcome());
        outcomes.map(TestCategory::from_outcome).min().unwrap_or(TestCategory::NeverRun)
    }

    /// The last decided outcome of a browser project in a run before the given
    /// one; `None` when there is none or too much came after it for that to be
    /// known.
    #[must_use]
    pub fn decided_before(&self, browser: i64, order_at: Timestamp, run: RunId) -> Option<Outcome> {
        let before = (order_at, run);
        match self.browsers.decided_before(browser, before) {
            None if self.browsers.is_longer_than_known(browser) => {
                self.recent.decided_before(RecentOutcome::slot_of(browser), before)
            }
            known => known,
        }
    }

    /// Whether it is certain that a browser project decided nothing in runs
    /// before the given one.
    #[must_use]
    pub fn decided_nothing_before(&self, browser: i64, order_at: Timestamp, run: RunId) -> bool {
        let slot = RecentOutcome::slot_of(browser);
        let mut before = self.before(order_at, run);
        self.decided_before(browser, order_at, run).is_none()
            && self.knows_before(order_at, run)
            && !before.any(|seen| seen.browser_slot == slot && seen.outcome.is_decided())
    }

    /// The earliest run behind a place that is known to have decided the test in
    /// a browser project. Of a place so long ago that not all that came after it
    /// can be told, earlier ones may have as well.
    #[must_use]
    pub fn decided_after(&self, browser: i64, place: (Timestamp, RunId)) -> Option<(Timestamp, RunId)> {
        let slot = RecentOutcome::slot_of(browser);
        let told = self.browsers.is_alone_in_slot(browser).then(|| self.identified()).into_iter().flatten();
        let told = told.filter(|(.., seen)| seen.browser_slot == slot && seen.outcome.is_decided());
        let decided = told.map(|(at, id, _)| (at, id)).chain(self.browsers.decided(browser));
        decided.map(|key| (key.0, key.1.run())).filter(|decided| *decided > place).min()
    }

    /// The earliest run that is still told apart from others as far as a browser
    /// project goes: what it decided before earlier ones is forgotten. `None` when
    /// nothing is.
    #[must_use]
    pub fn told_from(&self, browser: i64) -> Option<(Timestamp, RunId)> {
        if self.recent.iter().len() == self.recent.keys().len() {
            return None;
        }
        let told = self.recent.keys().chain(self.browsers.decided(browser)).min();
        told.map(|key| (key.0, key.1.run()))
    }
}

/// Passed in the end.
const fn is_passed(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Passed | Outcome::Flaky)
}

/// Failed or timed out.
const fn is_failing(outcome: Outcome) -> bool {
    outcome.status().is_failing()
}
