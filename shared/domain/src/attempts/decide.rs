//! What a set of attempts says about the execution.
//!
//! Invariant: a pure function of the set. A placeholder for a test that did
//! not run never outweighs a result, the newest generation decides, each
//! repetition is judged by `outcome`, and the worst one speaks for all.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{RepetitionOutcome, repetition_outcome};
use super::resolve::Resolved;
use super::{Attempt, AttemptSet, MAX_LISTED};
use crate::failure::Fingerprint;
use crate::status::{Outcome, TestStatus};
use crate::time::Timestamp;

/// The execution as its attempts decide it. Durations are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The attempt whose evidence, error and worker the execution shows: of the
    /// worst repetition the last unexpected one when it failed, else the last
    /// expected one.
    pub deciding: Attempt,
    /// Worst over repetitions.
    pub status: TestStatus,
    /// Failed and passed, in any order, or passed after attempts nobody reported.
    pub flaky: bool,
    /// Duration of the deciding attempt.
    pub duration_ms: i64,
    /// Sum over the attempts that count.
    pub total_duration_ms: i64,
    /// What the test cost beside itself: of a repetition that passed all
    /// attempts but the deciding one, of one that failed all but the first
    /// failure.
    pub lost_ms: i64,
    /// Highest retry among the attempts that count.
    pub retries: u32,
    /// How often the test was run from its beginning (`--repeat-each`).
    pub repetitions: usize,
    /// The same with those repetitions that were planned and did not run.
    pub all_repetitions: usize,
    /// Earliest start among the attempts that count.
    pub started_at: Option<Timestamp>,
    /// The listed attempts for display: those that count first, by repetition
    /// and retry, superseded ones after them.
    pub attempts: Vec<AttemptView>,
    /// Attempts that count or were superseded but are not listed.
    pub dropped: u32,
    /// Fingerprint of the attempt that failed last; `None` when the execution
    /// neither failed nor was flaky.
    pub fingerprint: Option<Fingerprint>,
}

/// A listed attempt with its place in the execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptView {
    /// The attempt.
    pub attempt: Attempt,
    /// 0-based repetition: the client's index, else the one worked out.
    pub repetition: u32,
    /// An older generation, or a placeholder beside a result: shown, not counted.
    pub superseded: bool,
    /// Whether this is the deciding attempt.
    pub deciding: bool,
}

impl Decision {
    /// Status and flaky flag as one value.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        Outcome::of(self.status, self.flaky)
    }

    /// The attempts as a sequence of failed (`true`) and passed ones, by
    /// repetition and retry. Attempts that nobody reported failed, else there
    /// had been no later one; skipped, interrupted and waiting attempts tried
    /// nothing.
    #[must_use]
    pub fn tries(&self) -> Vec<bool> {
        if !self.outcome().is_decided() {
            return Vec::new();
        }
        let counted = || self.attempts.iter().filter(|view| !view.superseded).map(|view| &view.attempt);
        let known = counted()
            .filter(|attempt| attempt.status.is_failing() || attempt.status == TestStatus::Passed)
            .map(|attempt| attempt.status.is_failing());
        let of_newest = || {
            self.attempts
                .iter()
                .map(|view| &view.attempt)
                .filter(|one| one.generation == self.deciding.generation)
        };
        let accounted = counted().count() + idle(of_newest, self.retries);
        let unreported =
            if self.repetitions > 1 { 0 } else { (self.retries as usize + 1).saturating_sub(accounted) };
        std::iter::repeat_n(true, unreported.min(MAX_LISTED)).chain(known).collect()
    }

    /// The attempt that shows how the execution failed: the deciding one of a
    /// failed execution, the last failed one of a flaky one; `None` otherwise.
    #[must_use]
    pub fn failed_attempt(&self) -> Option<&AttemptView> {
        match self.outcome() {
            Outcome::Failed | Outcome::TimedOut => self.attempts.iter().find(|view| view.deciding),
            Outcome::Flaky => {
                self.attempts.iter().rfind(|view| !view.superseded && view.attempt.status.is_failing())
            }
            _ => None,
        }
    }
}

/// Attempts that followed each other, in order of retry; positions in the
/// resolved list.
type Chain = Vec<usize>;

impl AttemptSet {
    /// Judges the set; `None` when it is empty.
    #[must_use]
    pub fn decide(&self) -> Option<Decision> {
        let resolved = self.resolved();
        let has_result = resolved.iter().any(|one| !one.attempt.is_did_not_run());
        let is_considered = |one: &Resolved| !(has_result && one.attempt.is_did_not_run());
        let newest =
            resolved.iter().filter(|one| is_considered(one)).map(|one| one.attempt.generation).max()?;
        let counts = |one: &Resolved| is_considered(one) && one.attempt.generation == newest;

        let numbered = repetitions(&resolved, is_considered);
        let judged: Vec<Repetition<'_>> = numbered
            .iter()
            .filter(|(generation, _, _)| *generation == newest)
            .filter_map(|(_, _, chain)| Repetition::judge(chain, &resolved))
            .collect();
        let worst = judged.iter().min_by_key(|repetition| {
            let position = repetition.deciding();
            let Resolved { attempt, is_listed } = &resolved[position];
            let start = (attempt.started_at.is_none(), attempt.started_at);
            (repetition.outcome.status.severity(), !is_listed, attempt.is_summary, start, position)
        })?;

        let counting: Vec<&Attempt> =
            resolved.iter().filter(|one| counts(one)).map(|one| &one.attempt).collect();
        let (deciding, status) = (worst.deciding(), worst.outcome.status);
        let flaky = status == TestStatus::Passed
            && (counting.iter().any(|attempt| attempt.flaky_claimed)
                || judged.iter().any(|repetition| repetition.is_flaky(&resolved)));
        let fingerprint = match status {
            status if status.is_failing() => last_fingerprint(std::slice::from_ref(worst), true, &resolved),
            // A client that sends only the result of a flaky test says with it what failed.
            _ if flaky => last_fingerprint(&judged, true, &resolved)
                .or_else(|| last_fingerprint(&judged, false, &resolved)),
            _ => None,
        };
        let planned: BTreeSet<u32> = resolved
            .iter()
            .filter(|one| one.attempt.generation == newest)
            .filter_map(|one| one.attempt.repetition)
            .collect();
        Some(Decision {
            all_repetitions: judged.len().max(planned.len()),
            fingerprint,
            status,
            flaky,
            duration_ms: resolved[deciding].attempt.duration_ms,
            total_duration_ms: counting
                .iter()
                .fold(0, |sum: i64, attempt| sum.saturating_add(attempt.duration_ms)),
            lost_ms: judged.iter().map(|one| one.lost_ms(&resolved)).fold(0, i64::saturating_add),
            retries: counting.iter().map(|attempt| attempt.retry).max().unwrap_or(0),
            repetitions: judged.len(),
            started_at: counting.iter().filter_map(|attempt| attempt.started_at).min(),
            attempts: views(&resolved, &numbered, deciding, counts),
            dropped: self.dropped(),
            deciding: resolved[deciding].attempt.clone(),
        })
    }
}

/// The attempts of one repetition with their outcome.
struct Repetition<'c> {
    chain: &'c Chain,
    outcome: RepetitionOutcome,
}

impl<'c> Repetition<'c> {
    fn judge(chain: &'c Chain, resolved: &[Resolved]) -> Option<Self> {
        let statuses: Vec<TestStatus> =
            chain.iter().map(|&position| resolved[position].attempt.status).collect();
        Some(Self { chain, outcome: repetition_outcome(&statuses)? })
    }

    /// The deciding attempt; a position in the resolved list.
    fn deciding(&self) -> usize {
        self.chain[self.outcome.deciding]
    }

    /// Failed and passed, or passed with an unknown beginning. Where it is
    /// known that the test did not run, because an earlier one of its serial
    /// group failed, nothing is unknown.
    fn is_flaky(&self, resolved: &[Resolved]) -> bool {
        if self.outcome.flaky || self.outcome.status != TestStatus::Passed {
            return self.outcome.flaky;
        }
        let deciding = &resolved[self.deciding()].attempt;
        let highest = self.chain.iter().map(|&position| resolved[position].attempt.retry).max().unwrap_or(0);
        let is_of_repetition =
            |one: &&Attempt| (one.generation, one.repetition) == (deciding.generation, deciding.repetition);
        let attempts = || resolved.iter().map(|one| &one.attempt).filter(is_of_repetition);
        self.chain.len() + idle(attempts, highest) <= highest as usize
    }

    /// Time of the attempts that did not matter in the end.
    fn lost_ms(&self, resolved: &[Resolved]) -> i64 {
        let attempt = |position: usize| &resolved[position].attempt;
        let needed = match self.outcome.status {
            TestStatus::Passed => Some(self.deciding()),
            TestStatus::Failed | TestStatus::TimedOut => {
                self.chain.iter().copied().find(|&position| attempt(position).status.is_failing())
            }
            _ => return 0,
        };
        let others = self.chain.iter().filter(|&&position| Some(position) != needed);
        others.map(|&position| attempt(position).duration_ms).fold(0, i64::saturating_add)
    }
}

/// The fingerprint of the last attempt, or the last failed one, that has any.
fn last_fingerprint(
    repetitions: &[Repetition<'_>],
    only_failed: bool,
    resolved: &[Resolved],
) -> Option<Fingerprint> {
    let attempts = repetitions.iter().flat_map(|one| one.chain).map(|&position| &resolved[position].attempt);
    attempts
        .filter(|attempt| !only_failed || attempt.status.is_failing())
        .filter_map(|attempt| attempt.facts.fingerprint)
        .next_back()
}

/// How many of the tries before a retry are known not to have run: those that
/// only a placeholder stands for.
fn idle<'a, I: Iterator<Item = &'a Attempt>>(attempts: impl Fn() -> I, retry: u32) -> usize {
    let told = |has_run: bool| -> BTreeSet<u32> {
        let of_kind = attempts().filter(|one| one.is_did_not_run() != has_run && one.retry < retry);
        of_kind.map(|one| one.retry).collect()
    };
    told(false).difference(&told(true)).count()
}

/// Sorts the considered attempts into repetitions: (generation, 0-based
/// number, chain).
fn repetitions(resolved: &[Resolved], is_considered: impl Fn(&Resolved) -> bool) -> Vec<(u32, u32, Chain)> {
    let mut groups: BTreeMap<(u32, Option<u32>), Vec<usize>> = BTreeMap::new();
    for (position, one) in resolved.iter().enumerate().filter(|(_, one)| is_considered(one)) {
        groups.entry((one.attempt.generation, one.attempt.repetition)).or_default().push(position);
    }
    let mut waited: BTreeMap<(u32, Option<u32>), BTreeSet<u32>> = BTreeMap::new();
    for Resolved { attempt, .. } in resolved.iter().filter(|one| one.attempt.is_did_not_run()) {
        waited.entry((attempt.generation, attempt.repetition)).or_default().insert(attempt.retry);
    }
    let mut numbered = Vec::new();
    for ((generation, index), members) in groups {
        let waited = waited.remove(&(generation, index)).unwrap_or_default();
        let has_index = index.is_some();
        for (number, chain) in (0..).zip(chains(resolved, members, has_index, &waited)) {
            numbered.push((generation, index.unwrap_or(number), chain));
        }
    }
    numbered
}

/// Strings attempts together. An attempt of retry r continues the earliest
/// chain that ends in a retry r−1 which did not pass and started before; if
/// there is none, one that passed, for a serial group is retried as a whole;
/// else it opens its own. Retries that a test `waited` through, because another
/// one of its serial group failed, break no chain. Under an index sent by the client a gap or
/// a passed predecessor does not break the chain, the index says they belong
/// together; parallel runs of the same index still stay apart.
fn chains(
    resolved: &[Resolved],
    mut members: Vec<usize>,
    has_index: bool,
    waited: &BTreeSet<u32>,
) -> Vec<Chain> {
    let attempt = |position: usize| &resolved[position].attempt;
    let start = |position: usize| (attempt(position).started_at.is_none(), attempt(position).started_at);
    members.sort_by_key(|&position| (attempt(position).retry, start(position), position));
    let mut chains: Vec<Chain> = Vec::new();
    for position in members {
        let current = attempt(position);
        let ends = |chain: &Chain| chain.last().map(|&last| attempt(last));
        let follows = |chain: &Chain| {
            ends(chain).is_some_and(|end| {
                end.retry < current.retry
                    && (end.retry + 1..current.retry).all(|retry| waited.contains(&retry))
                    && end.started_at.zip(current.started_at).is_none_or(|(one, next)| one <= next)
            })
        };
        let has_passed = |chain: &Chain| ends(chain).is_some_and(|end| end.status == TestStatus::Passed);
        let continues = |chain: &Chain| follows(chain) && !has_passed(chain);
        let belongs = |chain: &Chain| has_index && ends(chain).is_some_and(|end| end.retry < current.retry);
        let earliest = |accepts: &dyn Fn(&Chain) -> bool| {
            (0..chains.len())
                .filter(|&at| accepts(&chains[at]))
                .min_by_key(|&at| (chains[at].first().map(|&first| start(first)), at))
        };
        match earliest(&continues).or_else(|| earliest(&follows)).or_else(|| earliest(&belongs)) {
            Some(at) => chains[at].push(position),
            None => chains.push(vec![position]),
        }
    }
    chains.sort_by_key(|chain| chain.first().map(|&first| (start(first), first)));
    chains
}

fn views(
    resolved: &[Resolved],
    numbered: &[(u32, u32, Chain)],
    deciding: usize,
    counts: impl Fn(&Resolved) -> bool,
) -> Vec<AttemptView> {
    let number_of: BTreeMap<usize, u32> = numbered
        .iter()
        .flat_map(|(_, number, chain)| chain.iter().map(move |&position| (position, *number)))
        .collect();
    let mut views: Vec<AttemptView> = resolved
        .iter()
        .enumerate()
        .filter(|(_, one)| one.is_listed)
        .map(|(position, one)| AttemptView {
            attempt: one.attempt.clone(),
            repetition: number_of.get(&position).copied().or(one.attempt.repetition).unwrap_or(0),
            superseded: !counts(one),
            deciding: position == deciding,
        })
        .collect();
    views.sort_by_key(|view| {
        let generation = std::cmp::Reverse(view.attempt.generation);
        (view.superseded, generation, view.repetition, view.attempt.retry)
    });
    views
}
