//! What a set of attempts says about the execution.
//!
//! Invariant: a pure function of the set. A placeholder for a test that did
//! not run never outweighs a result, the newest generation decides, and the
//! worst repetition speaks for all.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve::Resolved;
use super::{Attempt, AttemptSet, MAX_LISTED};
use crate::failure::Fingerprint;
use crate::status::{Outcome, TestStatus};
use crate::time::Timestamp;

/// The execution as its attempts decide it. Durations are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The attempt whose evidence, error and worker the execution shows: the
    /// last one of the worst repetition.
    pub deciding: Attempt,
    /// Worst over repetitions.
    pub status: TestStatus,
    /// Passed in the end, after a failure or after attempts nobody reported.
    pub flaky: bool,
    /// Duration of the deciding attempt.
    pub duration_ms: i64,
    /// Sum over the attempts that count.
    pub total_duration_ms: i64,
    /// What the test cost beside itself: of a repetition that passed all
    /// attempts but the last, of one that failed all but the first.
    pub lost_ms: i64,
    /// Highest retry among the attempts that count.
    pub retries: u32,
    /// How often the test was run from its beginning (`--repeat-each`).
    pub repetitions: usize,
    /// Earliest start among the attempts that count.
    pub started_at: Option<Timestamp>,
    /// The listed attempts for display: those that count first, by repetition
    /// and retry, superseded ones after them.
    pub attempts: Vec<AttemptView>,
    /// Attempts that count or were superseded but are not listed.
    pub dropped: u32,
    /// What the attempt that failed last tells its failure from; of an
    /// execution that neither failed nor was flaky, nothing.
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
    /// repetition and retry. Where only the outcome and the number of retries
    /// are known, those before the last one failed; a test that was skipped or
    /// interrupted tried nothing.
    #[must_use]
    pub fn tries(&self) -> Vec<bool> {
        let outcome = self.outcome();
        if !outcome.is_decided() {
            return Vec::new();
        }
        let counted = self.attempts.iter().filter(|view| !view.superseded);
        let known: Vec<bool> = counted
            .filter(|view| view.attempt.status.is_failing() || view.attempt.status == TestStatus::Passed)
            .map(|view| view.attempt.status.is_failing())
            .collect();
        let is_newest = |one: &&Attempt| one.generation == self.deciding.generation;
        let newest = || self.attempts.iter().map(|view| &view.attempt).filter(is_newest);
        if self.repetitions > 1 || known.len() + idle(newest, self.retries) > self.retries as usize {
            return known;
        }
        // Of what lies beyond the listed ones no more is needed than that it failed.
        let mut tries = vec![true; (self.retries as usize).min(MAX_LISTED)];
        tries.push(outcome.status().is_failing());
        tries
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
        let chains: Vec<&Chain> = numbered
            .iter()
            .filter(|(generation, _, _)| *generation == newest)
            .map(|(_, _, chain)| chain)
            .collect();
        let last = |chain: &Chain| chain.last().copied();
        let deciding = chains.iter().filter_map(|chain| last(chain)).min_by_key(|&position| {
            let Resolved { attempt, is_listed } = &resolved[position];
            let start = (attempt.started_at.is_none(), attempt.started_at);
            (attempt.status.severity(), !is_listed, attempt.is_summary, start, position)
        })?;

        let counting: Vec<&Attempt> =
            resolved.iter().filter(|one| counts(one)).map(|one| &one.attempt).collect();
        let status = resolved[deciding].attempt.status;
        let flaky = status == TestStatus::Passed
            && (counting.iter().any(|attempt| attempt.flaky_claimed)
                || chains.iter().any(|chain| had_trouble(chain, &resolved)));
        let fingerprint = told_failure(deciding, flaky, &chains, &resolved);
        Some(Decision {
            fingerprint,
            status,
            flaky,
            duration_ms: resolved[deciding].attempt.duration_ms,
            total_duration_ms: counting
                .iter()
                .fold(0, |sum: i64, attempt| sum.saturating_add(attempt.duration_ms)),
            lost_ms: chains.iter().map(|chain| lost_ms(chain, &resolved)).fold(0, i64::saturating_add),
            retries: counting.iter().map(|attempt| attempt.retry).max().unwrap_or(0),
            repetitions: chains.len(),
            started_at: counting.iter().filter_map(|attempt| attempt.started_at).min(),
            attempts: views(&resolved, &numbered, deciding, counts),
            dropped: self.dropped(),
            deciding: resolved[deciding].attempt.clone(),
        })
    }
}

/// Time of the attempts of a chain that did not matter in the end.
fn lost_ms(chain: &Chain, resolved: &[Resolved]) -> i64 {
    let sum = |positions: &[usize]| {
        let durations = positions.iter().map(|&position| resolved[position].attempt.duration_ms);
        durations.fold(0, i64::saturating_add)
    };
    match (chain.as_slice(), chain.last().map(|&last| resolved[last].attempt.status)) {
        ([_, after @ ..], Some(status)) if status.is_failing() => sum(after),
        ([before @ .., _], Some(TestStatus::Passed)) => sum(before),
        _ => 0,
    }
}

/// The fingerprint of the last failed attempt: of the deciding repetition when
/// that failed, of any when the test was flaky. A client that sends only the
/// result of a flaky test says with it what failed.
fn told_failure(
    deciding: usize,
    flaky: bool,
    chains: &[&Chain],
    resolved: &[Resolved],
) -> Option<Fingerprint> {
    let has_failed = resolved[deciding].attempt.status.is_failing();
    if !has_failed && !flaky {
        return None;
    }
    let told = |only_failing: bool| {
        let of_interest = chains.iter().filter(|chain| !has_failed || chain.last() == Some(&deciding));
        of_interest
            .flat_map(|chain| chain.iter())
            .map(|&position| &resolved[position].attempt)
            .filter(|attempt| !only_failing || attempt.status.is_failing())
            .filter_map(|attempt| attempt.facts.fingerprint)
            .next_back()
    };
    told(true).or_else(|| told(false))
}

/// A passed chain that failed on the way, or whose beginning is unknown. Where
/// it is known that the test did not run, because an earlier one of its serial
/// group failed, nothing is unknown.
fn had_trouble(chain: &Chain, resolved: &[Resolved]) -> bool {
    let Some((&last, earlier)) = chain.split_last() else {
        return false;
    };
    let decided = &resolved[last].attempt;
    let is_of_chain =
        |one: &&Attempt| (one.generation, one.repetition) == (decided.generation, decided.repetition);
    let of_chain = || resolved.iter().map(|one| &one.attempt).filter(is_of_chain);
    let needed = decided.retry as usize;
    let is_complete = earlier.len() >= needed || earlier.len() + idle(of_chain, decided.retry) >= needed;
    (decided.status == TestStatus::Passed && !is_complete)
        || earlier.iter().any(|&position| resolved[position].attempt.status.is_failing())
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
    let mut numbered = Vec::new();
    for ((generation, index), members) in groups {
        let has_index = index.is_some();
        for (number, chain) in (0..).zip(chains(resolved, members, has_index)) {
            numbered.push((generation, index.unwrap_or(number), chain));
        }
    }
    numbered
}

/// Strings attempts together. An attempt of retry r continues the earliest
/// chain that ends in a retry r−1 which did not pass and started before; if
/// there is none, one that passed, for a serial group is retried as a whole;
/// else it opens its own. Under an index sent by the client a gap or
/// a passed predecessor does not break the chain, the index says they belong
/// together; parallel runs of the same index still stay apart.
fn chains(resolved: &[Resolved], mut members: Vec<usize>, has_index: bool) -> Vec<Chain> {
    let attempt = |position: usize| &resolved[position].attempt;
    let start = |position: usize| (attempt(position).started_at.is_none(), attempt(position).started_at);
    members.sort_by_key(|&position| (attempt(position).retry, start(position), position));
    let mut chains: Vec<Chain> = Vec::new();
    for position in members {
        let current = attempt(position);
        let ends = |chain: &Chain| chain.last().map(|&last| attempt(last));
        let follows = |chain: &Chain| {
            ends(chain).is_some_and(|end| {
                end.retry.checked_add(1) == Some(current.retry)
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
