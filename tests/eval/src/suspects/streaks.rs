//! Red streaks: every fault of the suspects, in the same history, seen through
//! runs of a test that fails by chance in one run of ten. What a service knows of
//! such a streak is ranked, beside blaming the commit of the first red run.

use anyhow::Result;
use callboard_domain::suspects::{CommitChange, Culprit, Observation, locate, reds_needed};

use super::faults::FAULTS;
use super::history::{History, Numbers};
use super::{Hits, commits, ranked};
use crate::table::{Table, Target};

/// Streaks of each fault. Together with the seeds of the faults this was fixed
/// before any of them was ranked.
const STREAKS: u64 = 10;
/// Share of runs that fail by chance, and that pass although the test is broken, in
/// thousandths.
const FLAKES: u64 = 100;
const LUCK: u64 = 20;
/// One commit of so many is tested as it lands.
const TESTED_ONE_IN: u64 = 6;
/// Runs on the newest commit until somebody asks.
const RUNS_ON_HEAD: usize = 2;
/// Runs that are proposed and made afterwards, at most.
const MAX_STEPS: usize = 25;
/// Probability at which nothing more is tested.
const FOUND: f64 = 0.95;

/// A run of the test: the place of its commit, 0 for the newest, and its outcome.
#[derive(Debug, Clone, Copy)]
struct Run {
    place: usize,
    has_failed: bool,
}

/// The test on a commit: broken from the culprit on.
fn outcome(numbers: &mut Numbers, place: usize, culprit: usize) -> bool {
    let chance = numbers.below(1_000);
    if place <= culprit { chance >= LUCK } else { chance < FLAKES }
}

/// The runs up to the moment at which somebody asks, oldest first; the last one
/// failed.
fn streak(numbers: &mut Numbers, count: usize, culprit: usize) -> Vec<Run> {
    loop {
        let tested = (1..count).rev().filter(|_| numbers.below(TESTED_ONE_IN) == 0).collect::<Vec<_>>();
        let places = tested.into_iter().chain([0; RUNS_ON_HEAD]);
        let runs: Vec<Run> =
            places.map(|place| Run { place, has_failed: outcome(numbers, place, culprit) }).collect();
        if runs.last().is_some_and(|run| run.has_failed) {
            return runs;
        }
    }
}

fn rate() -> f64 {
    f64::from(u32::try_from(FLAKES).unwrap_or(0)) / 1_000.0
}

/// What the service would say: the range from the last pass to the failure that
/// ends it, weighed and located. Places count from the newest commit of all.
struct Answer {
    /// Place of the newest commit of the range.
    newest: usize,
    shas: Vec<String>,
    priors: Vec<f64>,
    observations: Vec<Observation>,
    found: Culprit,
}

impl Answer {
    fn make(rank: &dyn Fn(&[CommitChange]) -> Vec<f64>, all: &[CommitChange], runs: &[Run]) -> Self {
        let reds = runs.iter().rev().take_while(|run| run.has_failed).count();
        let reds = &runs[runs.len() - reds..];
        // The commit before the history passed; it is not part of any range.
        let green = runs.iter().rev().find(|run| !run.has_failed).map_or(all.len(), |run| run.place);
        let end = reds_needed(rate()).min(reds.len()) - 1;
        let newest = reds[end].place;
        let range = &all[newest..green.max(newest)];
        let observations: Vec<Observation> = runs
            .iter()
            .map(|run| Observation {
                sha: all[run.place].sha.clone(),
                has_failed: run.has_failed,
                flake_rate: rate(),
            })
            .collect();
        let shas = range.iter().map(|commit| commit.sha.clone()).collect();
        let mut answer = Self { newest, shas, priors: rank(range), observations, found: Culprit::default() };
        answer.locate();
        answer
    }

    fn locate(&mut self) {
        let commits: Vec<(&str, f64)> =
            self.shas.iter().map(String::as_str).zip(self.priors.iter().copied()).collect();
        self.found = locate(&commits, &self.observations, rate());
    }

    /// Places of the range, the most probable first; among equals the newest.
    fn ranked(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.shas.len()).collect();
        let of = |place: &usize| self.found.probabilities.get(*place).copied().unwrap_or_default();
        places.sort_by(|one, other| of(other).total_cmp(&of(one)));
        places
    }

    /// Where the culprit is in the ranking.
    fn place_of(&self, culprit: usize) -> Option<usize> {
        let wanted = culprit.checked_sub(self.newest)?;
        self.ranked().iter().position(|place| *place == wanted)
    }

    /// Makes the runs that are proposed until a commit is sure; how many it took, and
    /// whether it is the right one.
    fn follow(mut self, numbers: &mut Numbers, culprit: usize) -> (usize, bool) {
        let mut steps = 0;
        while let Some(next) = self.found.next.filter(|_| steps < MAX_STEPS) {
            let has_failed = outcome(numbers, next.place + self.newest, culprit);
            let sha = self.shas[next.place].clone();
            self.observations.push(Observation { sha, has_failed, flake_rate: rate() });
            self.locate();
            steps += 1;
        }
        let sure = self.ranked().first().is_some_and(|first| {
            self.found.probabilities[*first] >= FOUND && *first + self.newest == culprit
        });
        (steps, sure)
    }
}

/// Bisecting with one run for each step; how many it took, and whether it was right.
fn bisect(numbers: &mut Numbers, (newest, green): (usize, usize), culprit: usize) -> (usize, bool) {
    // `bad` is known to fail, `good` to pass.
    let (mut bad, mut good, mut steps) = (newest, green, 0);
    while good - bad > 1 {
        let middle = usize::midpoint(bad, good);
        if outcome(numbers, middle, culprit) {
            bad = middle
        } else {
            good = middle
        }
        steps += 1;
    }
    (steps, bad == culprit)
}

/// Finds the culprit of every streak.
pub(crate) fn measure(details: bool) -> Result<Table> {
    let mut table = Table::new("Culprits: the commit that turned a flaky test red");
    let (mut ranking, mut unweighed, mut first_red) = (Hits::default(), Hits::default(), Hits::default());
    let (mut steps, mut sure, mut halvings, mut right) = (0, 0, 0, 0);
    let (mut streaks, mut outside) = (0, 0);
    for fault in &FAULTS {
        let history = History::make(fault)?;
        let all = commits(&history)?;
        let Some(culprit) = all.iter().position(|commit| commit.sha == history.culprit) else { continue };
        let weighed = |range: &[CommitChange]| {
            let found = ranked(fault, &history, range);
            let of = |commit: &CommitChange| found.commits.iter().find(|suspect| suspect.sha == commit.sha);
            range
                .iter()
                .map(|commit| of(commit).map_or(0.0, |suspect| suspect.probability))
                .collect::<Vec<f64>>()
        };
        let even = |range: &[CommitChange]| vec![1.0; range.len()];
        for number in 0..STREAKS {
            let mut numbers = Numbers(fault.seed * 1_000 + number);
            let runs = streak(&mut numbers, all.len(), culprit);
            streaks += 1;
            let answer = Answer::make(&weighed, &all, &runs);
            let place = answer.place_of(culprit);
            ranking.count(place);
            unweighed.count(Answer::make(&even, &all, &runs).place_of(culprit));
            // The trivial method blames the commit of the first red run, then those before it.
            let reds = runs.iter().rev().take_while(|run| run.has_failed);
            let blamed = reds.last().map_or(0, |run| run.place);
            first_red.count(culprit.checked_sub(blamed));
            outside += usize::from(place.is_none());
            if details && place.is_none_or(|place| place >= 3) {
                let shown =
                    runs.iter().map(|run| format!("{}{}", run.place, if run.has_failed { "x" } else { "." }));
                table.note(format!(
                    "{:?} in {} #{number}: culprit {culprit} of {}, place {place:?}, runs {}",
                    fault.kind,
                    fault.area,
                    all.len(),
                    shown.collect::<Vec<_>>().join(" ")
                ));
            }
            let range = (answer.newest, answer.newest + answer.shas.len());
            let (made, is_sure) = answer.follow(&mut numbers, culprit);
            steps += made;
            sure += usize::from(is_sure);
            let (made, is_right) = bisect(&mut numbers, range, culprit);
            halvings += made;
            right += usize::from(is_right);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "three hundred streaks")]
    let share = |count: usize| count as f64 / streaks as f64;
    table.add("commit, first place", share(ranking.first), Target::None, Some(share(first_red.first)));
    table.add(
        "commit, first three",
        share(ranking.third),
        Target::AtLeast(0.85),
        Some(share(first_red.third)),
    );
    table.add("first three, without changes", share(unweighed.third), Target::None, None);
    table.add("right after proposed runs", share(sure), Target::None, Some(share(right)));
    table.add("runs that took", share(steps), Target::None, Some(share(halvings)));
    table.note(format!(
        "{streaks} streaks of a test that fails by chance in {FLAKES} and passes by luck in {LUCK} of 1,000 \
         runs; the trivial method blames the commit of the first red run, and bisects with one run a step.",
    ));
    table.note(format!("In {outside} streaks the culprit lies outside the range that was read."));
    Ok(table)
}
