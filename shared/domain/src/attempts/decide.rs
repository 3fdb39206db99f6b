//! What a set of attempts says about the execution.
//!
//! Invariant: a pure function of the set. A placeholder for a test that did
//! not run never outweighs a result, the newest generation decides, attempts of
//! different shards are different repetitions, each repetition is judged by
//! `outcome`, and the worst one speaks for all. A failure that a newer generation
//! repaired makes the execution flaky: both ran one commit.

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
    /// Failed and passed, in any order, or passed after attempts nobody reported, or
    /// passed in a re-run after it had failed.
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
        Outcome::from_status(self.status, self.flaky)
    }

    /// The attempts as a sequence of failed (`true`) and passed ones, by generation,
    /// repetition and retry. Attempts that nobody reported failed, else there
    /// had been no later one; skipped, interrupted and waiting attempts tried
    /// nothing.
    #[must_use]
    pub fn tries(&self) -> Vec<bool> {
        if !self.outcome().is_decided() {
            return Vec::new();
        }
        let counted = || self.attempts.iter().filter(|view| !view.superseded).map(|view| &view.attempt);
        let mut superseded: Vec<&Attempt> =
            self.attempts.iter().filter(|view| view.superseded).map(|view| &view.attempt).collect();
        superseded.sort_by_key(|attempt| attempt.generation);
        let tried = |attempt: &Attempt| match attempt.status {
            status if status.is_failing() => Some(true),
            TestStatus::Passed => Some(false),
            _ => None,
        };
        let of_newest = || {
            self.attempts
                .iter()
                .map(|view| &view.attempt)
                .filter(|one| one.generation == self.deciding.generation)
        };
        let accounted = counted().count() + idle(of_newest, self.retries);
        let unreported =
            if self.repetitions > 1 { 0 } else { (self.retries as usize + 1).saturating_sub(accounted) };
        let before = superseded.into_iter().filter_map(tried);
        let unknown = std::iter::repeat_n(true, unreported.min(MAX_LISTED));
        before.chain(unknown).chain(counted().filter_map(tried)).collect()
    }

    /// The attempt that shows how the execution failed: the deciding one of a
    /// failed execution, the last failed one of a flaky one; `None` otherwise.
    #[must_use]
    pub fn failed_attempt(&self) -> Option<&AttemptView> {
        match self.outcome() {
            Outcome::Failed | Outcome::TimedOut => self.attempts.iter().find(|view| view.deciding),
            Outcome::Flaky => {
                let failed = || self.attempts.iter().filter(|view| view.attempt.status.is_failing());
                // A re-run repaired it: then the newest of the superseded ones shows how.
                let repaired = || failed().max_by_key(|view| (view.attempt.generation, view.attempt.retry));
                failed().rfind(|view| !view.superseded).or_else(repaired)
            }
            _ => None,
        }
    }
}

/// Attempts that followed each other, in order of retry; positions in the
/// resolved list.
type Chain = Vec<usize>;

impl AttemptSet {
    /// Judges what was known when only these generations had run; `None` when the
    /// test was not among it.
    #[must_use]
    pub fn decide_until(&self, generation: u32) -> Option<Decision> {
        let known = self.entries().iter().filter(|entry| entry.attempt.generation <= generation);
        Self::from_entries(known.cloned().collect()).decide()
    }

    /// Judges the set; `None` when it is empty.
    #[must_use]
    pub fn decide(&self) -> Option<Decision> {
        let resolved = self.resolved();
        let has_result = resolved.iter().any(|one| !one.attempt.is_did_not_run());
        let is_considered = |one: &Resolved| !(has_result && one.attempt.is_did_not_run());
        let newest = Newest::from_resolved(resolved.iter().filter(|one| is_considered(one)));
        let counts = |one: &Resolved| is_considered(one) && newest.is_current(&one.attempt);

        let numbered = repetitions(&resolved, is_considered);
        let is_current = |chain: &Chain| {
            chain.first().is_some_and(|&position| newest.is_current(&resolved[position].attempt))
        };
        let judge = |is_wanted: bool| -> Vec<Repetition<'_>> {
            let wanted = numbered.iter().filter(|(_, _, chain)| is_current(chain) == is_wanted);
            wanted.filter_map(|(_, _, chain)| Repetition::judge(chain, &resolved)).collect()
        };
        let (judged, superseded) = (judge(true), judge(false));
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
                || judged.iter().any(|repetition| repetition.is_flaky(&resolved))
                || superseded.iter().any(|one| one.outcome.flaky || one.outcome.status.is_failing()));
        let fingerprint = match status {
            status if status.is_failing() => last_fingerprint(std::slice::from_ref(worst), true, &resolved),
            // A client that sends only the result of a flaky test says with it what failed.
            _ if flaky => last_fingerprint(&judged, true, &resolved)
                .or_else(|| last_fingerprint(&superseded, true, &resolved))
                .or_else(|| last_fingerprint(&judged, false, &resolved)),
            _ => None,
        };
        let planned: BTreeSet<u32> = resolved
            .iter()
            .filter(|one| newest.is_current(&one.attempt))
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

/// The generations of the considered attempts, by shard: `None` outside shards.
struct Newest(BTreeMap<Option<i64>, (u32, u32)>);

impl Newest {
    fn from_resolved<'r>(considered: impl Iterator<Item = &'r Resolved>) -> Self {
        let mut shards: BTreeMap<Option<i64>, (u32, u32)> = BTreeMap::new();
        for Resolved { attempt, .. } in considered {
            let generation = attempt.generation;
            let known = shards.entry(attempt.facts.shard_index).or_insert((generation, generation));
            *known = (known.0.min(generation), known.1.max(generation));
        }
        Self(shards)
    }

    /// Whether no newer attempt takes the place of this one: one of its own shard, or one
    /// of a shard that did not have the test before, as a re-run of the failed tests deals
    /// them out anew.
    fn is_current(&self, attempt: &Attempt) -> bool {
        self.0.iter().all(|(shard, &(oldest, newest))| {
            let decides = if *shard == attempt.facts.shard_index { newest } else { oldest };
            decides <= attempt.generation
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
        let repetition = |one: &Attempt| (one.generation, one.facts.shard_index, one.repetition);
        let is_of_repetition = |one: &&Attempt| repetition(one) == repetition(deciding);
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
    type Group = (u32, Option<u32>, Option<i64>);
    let group = |one: &Attempt| -> Group { (one.generation, one.repetition, one.facts.shard_index) };
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (position, one) in resolved.iter().enumerate().filter(|(_, one)| is_considered(one)) {
        groups.entry(group(&one.attempt)).or_default().push(position);
    }
    let mut waited: BTreeMap<Group, BTreeSet<u32>> = BTreeMap::new();
    for Resolved { attempt, .. } in resolved.iter().filter(|one| one.attempt.is_did_not_run()) {
        waited.entry(group(attempt)).or_default().insert(attempt.retry);
    }
    let mut numbered = Vec::new();
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    for (group, members) in groups {
        let (generation, index, _) = group;
        let waited = waited.remove(&group).unwrap_or_default();
        for chain in chains(resolved, members, index.is_some(), &waited) {
            let next = numbers.entry(generation).or_insert(0);
            numbered.push((generation, index.unwrap_or(*next), chain));
            *next += 1;
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
