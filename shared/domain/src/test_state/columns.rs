//! The stored form of a test's state.
//!
//! Invariant: equal states give equal columns, and reading them back gives the
//! equal state; packed columns that were not written here are refused.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::browsers::{Browsers, MAX_BROWSERS, MAX_DECIDED, Seen, Series};
use super::recent::{MAX_IDENTIFIED, MAX_RECENT_MS, Recent, RecentOutcome};
use super::{Key, TestState};
use crate::ids::{ExecutionId, RunId};
use crate::status::Outcome;
use crate::time::Timestamp;
use crate::totals::Totals;
use crate::varint::{read, unzigzag, write, zigzag};

/// Columns of `test_state`, without its key and the flaky score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateColumns {
    /// Start of the last run, epoch milliseconds.
    pub last_order_at: i64,
    /// The newest execution.
    pub last_execution_id: i64,
    /// Outcome code of the newest execution.
    pub last_outcome: i64,
    /// Packed: identities of the newest outcomes, outcomes by browser project,
    /// time lost by those that did not pass on the first attempt.
    pub by_browser: Vec<u8>,
    /// Start of the run of the newest pass, epoch milliseconds.
    pub last_passed_at: Option<i64>,
    /// The newest passed execution.
    pub last_passed_execution_id: Option<i64>,
    /// Start of the run of the newest failure, epoch milliseconds.
    pub last_failed_at: Option<i64>,
    /// Start of the earliest run, epoch milliseconds.
    pub first_seen_at: i64,
    /// Executions ever counted.
    pub total: i64,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included.
    pub failed: i64,
    /// Timed out.
    pub timedout: i64,
    /// Interrupted.
    pub interrupted: i64,
    /// Passed after a failed attempt.
    pub flaky: i64,
    /// Skipped.
    pub skipped: i64,
    /// Planned, never started.
    pub didnotrun: i64,
    /// See [`TestState::failing_streak`].
    pub failing_streak: i64,
    /// See [`TestState::passing_streak`].
    pub passing_streak: i64,
    /// Sum of wasted time in milliseconds.
    pub wasted_ms: i64,
    /// Code of [`TestState::category`].
    pub category: i64,
    /// Day of the last run, days since 1970-01-01.
    pub last_day: i64,
    /// See [`TestState::speed_class`].
    pub speed_class: i64,
    /// One byte per outcome, oldest first.
    pub recent: Vec<u8>,
    /// Durations of the newest outcomes in milliseconds, oldest first.
    pub recent_ms: Vec<u8>,
}

/// A packed column that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("column {0} of test_state is not readable")]
pub struct UnreadableState(pub &'static str);

impl TestState {
    /// The columns to store.
    #[must_use]
    pub fn to_columns(&self) -> StateColumns {
        StateColumns {
            last_order_at: self.last.0.millis(),
            last_execution_id: self.last.1.get(),
            last_outcome: self.last_outcome().map_or(0, Outcome::code),
            by_browser: pack_browsers(self),
            last_passed_at: self.last_passed.map(|key| key.0.millis()),
            last_passed_execution_id: self.last_passed.map(|key| key.1.get()),
            last_failed_at: self.last_failed_at.map(Timestamp::millis),
            first_seen_at: self.first_seen_at.millis(),
            total: self.counts.total_tests,
            passed: self.counts.passed_tests,
            failed: self.counts.failed_tests,
            timedout: self.counts.timed_out_tests,
            interrupted: self.counts.interrupted_tests,
            flaky: self.counts.flaky_tests,
            skipped: self.counts.skipped_tests,
            didnotrun: self.counts.did_not_run_tests,
            failing_streak: self.failing_streak(),
            passing_streak: self.passing_streak(),
            wasted_ms: self.wasted_ms,
            category: self.category().code(),
            last_day: self.last_day().0,
            speed_class: self.speed_class(),
            recent: self.recent.iter().map(RecentOutcome::to_byte).collect(),
            recent_ms: pack_durations(&self.recent),
        }
    }

    /// Reads the columns; derived ones (streaks, category, day, speed class,
    /// last outcome) are not needed and ignored.
    ///
    /// # Errors
    /// When a packed column is damaged: rebuild the state from executions.
    pub fn from_columns(columns: &StateColumns) -> Result<Self, UnreadableState> {
        let last = (Timestamp(columns.last_order_at), ExecutionId(columns.last_execution_id));
        let mut outcomes = unpack_recent(&columns.recent, &columns.recent_ms)?;
        let (keys, browsers, lost) =
            unpack_browsers(&columns.by_browser, last).ok_or(UnreadableState("by_browser"))?;
        give_back_lost(&mut outcomes, &lost).ok_or(UnreadableState("by_browser"))?;
        Ok(Self {
            last,
            last_passed: columns
                .last_passed_at
                .zip(columns.last_passed_execution_id)
                .map(|(at, id)| (Timestamp(at), ExecutionId(id))),
            last_failed_at: columns.last_failed_at.map(Timestamp),
            first_seen_at: Timestamp(columns.first_seen_at),
            counts: Totals {
                total_tests: columns.total,
                passed_tests: columns.passed,
                failed_tests: columns.failed,
                timed_out_tests: columns.timedout,
                interrupted_tests: columns.interrupted,
                skipped_tests: columns.skipped,
                did_not_run_tests: columns.didnotrun,
                flaky_tests: columns.flaky,
            },
            wasted_ms: columns.wasted_ms,
            browsers,
            recent: Recent::from_parts(outcomes, keys).ok_or(UnreadableState("recent"))?,
            unplaced: BTreeSet::new(),
            stale: BTreeMap::new(),
        })
    }
}

/// Durations of the newest outcomes that have one.
fn pack_durations(recent: &Recent) -> Vec<u8> {
    let newest_first = recent.iter().rev().map_while(|outcome| outcome.duration_ms);
    let mut durations = Vec::with_capacity(MAX_RECENT_MS);
    durations.extend(newest_first.take(MAX_RECENT_MS));
    durations.reverse();
    let mut bytes = Vec::with_capacity(durations.len() * 2);
    durations.into_iter().for_each(|duration| write(&mut bytes, duration.unsigned_abs()));
    bytes
}

fn unpack_recent(recent: &[u8], mut recent_ms: &[u8]) -> Result<Vec<RecentOutcome>, UnreadableState> {
    // States are read by the hundred for every run, each to get one outcome more: nothing grows on the way.
    let mut outcomes = Vec::with_capacity(recent.len() + 1);
    for byte in recent {
        outcomes.push(RecentOutcome::from_byte(*byte).ok_or(UnreadableState("recent"))?);
    }
    let damaged = UnreadableState("recent_ms");
    let mut durations = Vec::with_capacity(recent_ms.len());
    while !recent_ms.is_empty() {
        let duration = read(&mut recent_ms).and_then(|duration| i64::try_from(duration).ok());
        durations.push(duration.ok_or(damaged)?);
    }
    if durations.len() > outcomes.len().min(MAX_RECENT_MS) {
        return Err(damaged);
    }
    for (outcome, duration) in outcomes.iter_mut().rev().zip(durations.into_iter().rev()) {
        outcome.duration_ms = Some(duration);
    }
    Ok(outcomes)
}

/// The durations of some of the newest executions of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewestDurations {
    /// Of the newest passed ones, ms, oldest first.
    pub passed_ms: Vec<i64>,
    /// Failed ones since the oldest of these.
    pub failed: i64,
    /// Timed out ones among the failed.
    pub timed_out: i64,
}

/// Reads the durations of the newest `runs` passed executions from two columns
/// of a state, without the rest of it.
///
/// # Errors
/// When a packed column is damaged.
pub fn passed_durations(
    recent: &[u8],
    recent_ms: &[u8],
    runs: usize,
) -> Result<NewestDurations, UnreadableState> {
    let mut newest = NewestDurations::default();
    for recent in unpack_recent(recent, recent_ms)?.into_iter().rev() {
        if newest.passed_ms.len() == runs {
            break;
        }
        match (recent.outcome, recent.duration_ms) {
            (_, None) => break,
            (Outcome::Passed | Outcome::Flaky, Some(duration)) => newest.passed_ms.push(duration),
            (Outcome::Failed | Outcome::TimedOut, _) => {
                newest.failed += 1;
                newest.timed_out += i64::from(recent.outcome == Outcome::TimedOut);
            }
            _ => {}
        }
    }
    newest.passed_ms.reverse();
    Ok(newest)
}

/// What each browser project said last about a test, without the rest of its
/// state.
#[derive(Debug, Clone)]
pub struct Predecessors(Browsers);

impl Predecessors {
    /// Reads three columns of a state.
    ///
    /// # Errors
    /// When the packed column is damaged.
    pub fn from_columns(
        last_order_at: Timestamp,
        last_execution: ExecutionId,
        by_browser: &[u8],
    ) -> Result<Self, UnreadableState> {
        let (_, browsers, _) = unpack_browsers(by_browser, (last_order_at, last_execution))
            .ok_or(UnreadableState("by_browser"))?;
        Ok(Self(browsers))
    }

    /// As [`TestState::decided_before`], of the last two decided outcomes alone.
    #[must_use]
    pub fn decided_before(&self, browser: i64, order_at: Timestamp, run: RunId) -> Option<Outcome> {
        self.0.decided_before(browser, (order_at, run))
    }

    /// Whether a browser project decided nothing in runs before the given one: so
    /// little is known of it that nothing can have been forgotten.
    #[must_use]
    pub fn decided_nothing_before(&self, browser: i64, order_at: Timestamp, run: RunId) -> bool {
        self.decided_before(browser, order_at, run).is_none() && !self.0.may_have_forgotten(browser)
    }

    /// Whether a browser project may have decided the test for the first time
    /// behind a place: nothing is known of it before.
    #[must_use]
    pub fn may_begin_behind(&self, browser: i64, place: (Timestamp, RunId)) -> bool {
        self.0.may_begin_behind(browser, place)
    }
}

/// What the packed identities and outcomes of a test in one or two browser
/// projects take.
const USUAL_BYTES: usize = 256;

/// Number of identities, each as the distance to the next newer one, starting
/// at the last observation; then number of browser projects, each with its id,
/// its last outcome and its decided ones, newest first; then, unless there is
/// none, the time lost by each outcome that can have lost any, newest first and
/// one more than it is, so that 0 is "unknown".
fn pack_browsers(state: &TestState) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    write(&mut bytes, state.recent.keys().len() as u64);
    let mut newer = state.last;
    for key in state.recent.keys().rev() {
        write_key(&mut bytes, newer, key);
        newer = key;
    }
    write(&mut bytes, state.browsers.series().len() as u64);
    for (&browser, series) in state.browsers.series() {
        write(&mut bytes, zigzag(browser));
        write(&mut bytes, series.decided.len() as u64);
        let mut newer = state.last;
        for seen in std::iter::once(&series.last).chain(&series.decided) {
            write_key(&mut bytes, newer, seen.key);
            write(&mut bytes, seen.outcome.code().unsigned_abs());
            newer = seen.key;
        }
    }
    let costly = state.recent.iter().rev().filter(|outcome| RecentOutcome::is_costly(outcome.outcome));
    let mut lost: Vec<u64> =
        costly.map(|outcome| outcome.lost_ms.map_or(0, |ms| ms.unsigned_abs().saturating_add(1))).collect();
    lost.truncate(lost.iter().rposition(|&known| known > 0).map_or(0, |oldest| oldest + 1));
    lost.into_iter().for_each(|ms| write(&mut bytes, ms));
    bytes
}

/// Puts the time lost, newest first, to the outcomes it belongs to.
fn give_back_lost(outcomes: &mut [RecentOutcome], lost: &[u64]) -> Option<()> {
    let mut lost = lost.iter();
    for outcome in outcomes.iter_mut().rev().filter(|outcome| RecentOutcome::is_costly(outcome.outcome)) {
        let Some(&ms) = lost.next() else { break };
        outcome.lost_ms = ms.checked_sub(1).map(i64::try_from).transpose().ok()?;
    }
    lost.next().is_none().then_some(())
}

fn unpack_browsers(mut bytes: &[u8], last: Key) -> Option<(Vec<Key>, Browsers, Vec<u64>)> {
    let bytes = &mut bytes;
    let identified = read_count(bytes, MAX_IDENTIFIED)?;
    let mut keys = Vec::with_capacity(identified + 1);
    let mut newer = last;
    for _ in 0..identified {
        newer = read_key(bytes, newer)?;
        keys.push(newer);
    }
    keys.reverse();
    let mut all = BTreeMap::new();
    for _ in 0..read_count(bytes, MAX_BROWSERS)? {
        let browser = unzigzag(read(bytes)?);
        let decided = read_count(bytes, MAX_DECIDED)?;
        let mut newer = last;
        let mut seen = Vec::with_capacity(1 + decided);
        for _ in 0..=decided {
            newer = read_key(bytes, newer)?;
            let outcome = Outcome::from_code(i64::try_from(read(bytes)?).ok()?)?;
            seen.push(Seen { key: newer, outcome });
        }
        let decided = seen.split_off(1);
        all.insert(browser, Series { last: seen.pop()?, decided });
    }
    let mut lost = Vec::new();
    while !bytes.is_empty() {
        lost.push(read(bytes)?);
    }
    Some((keys, Browsers::from_series(all), lost))
}

fn read_count(bytes: &mut &[u8], most: usize) -> Option<usize> {
    usize::try_from(read(bytes)?).ok().filter(|&count| count <= most)
}

/// Distances wrap, so that no stored number can make reading fail loudly.
fn write_key(bytes: &mut Vec<u8>, newer: Key, key: Key) {
    write(bytes, zigzag(newer.0.millis().wrapping_sub(key.0.millis())));
    write(bytes, zigzag(newer.1.get().wrapping_sub(key.1.get())));
}

fn read_key(bytes: &mut &[u8], newer: Key) -> Option<Key> {
    let at = newer.0.millis().wrapping_sub(unzigzag(read(bytes)?));
    let id = newer.1.get().wrapping_sub(unzigzag(read(bytes)?));
    Some((Timestamp(at), ExecutionId(id)))
}
