//! The merge rules as behaviour; `laws` holds what is true for any input.

mod laws;

use super::*;
use crate::status::Outcome;
use crate::status::TestStatus::{DidNotRun, Failed, Interrupted, Passed, Skipped, TimedOut};

fn attempt(retry: u32, status: TestStatus) -> Attempt {
    Attempt {
        retry,
        repetition: None,
        generation: 0,
        status,
        duration_ms: 100,
        started_at: None,
        flaky_claimed: false,
        facts: AttemptFacts::default(),
        evidence: None,
        is_summary: false,
    }
}

impl Attempt {
    fn at(self, started_at: i64) -> Self {
        Self { started_at: Some(Timestamp(started_at)), ..self }
    }

    fn took(self, duration_ms: i64) -> Self {
        Self { duration_ms, ..self }
    }

    fn of_generation(self, generation: u32) -> Self {
        Self { generation, ..self }
    }

    fn of_repetition(self, repetition: u32) -> Self {
        Self { repetition: Some(repetition), ..self }
    }

    fn in_pack(self, pack: i64) -> Self {
        Self { evidence: Some(EvidenceSlice { pack: PackId(pack), offset: 0, length: 9 }), ..self }
    }

    fn failing_with(mut self, error: &str) -> Self {
        self.facts.error_summary = Some(error.to_owned());
        self
    }

    fn in_shard(mut self, shard: i64) -> Self {
        self.facts.shard_index = Some(shard);
        self
    }

    fn on_worker(mut self, worker: i64) -> Self {
        self.facts.worker_index = Some(worker);
        self
    }
}

#[test]
fn repetitions_that_begin_at_once_on_two_workers_are_two() {
    let attempts = [
        attempt(0, Failed).at(0).on_worker(0),
        attempt(0, Failed).at(1).on_worker(1),
        attempt(1, Passed).at(500).on_worker(2),
        attempt(1, Passed).at(500).on_worker(3),
    ];
    let set = set_of(attempts.clone());
    let decision = set.decide().unwrap();
    assert_eq!((decision.outcome(), set.attempts().len()), (Outcome::Flaky, 4));
    // Whoever does not name the worker means one of them.
    let mut told = set.clone();
    assert_eq!(told.merge(vec![alone(attempt(1, Passed).at(500))]), [Merged::Filled]);
    assert_eq!(told.attempts().len(), 4);
    assert_eq!(told.decide().unwrap().outcome(), Outcome::Flaky);
}

fn alone(attempt: Attempt) -> Reported {
    Reported { attempt, history: Vec::new() }
}

fn line(retry: u32, status: TestStatus, started_at: Option<i64>) -> EarlierAttempt {
    EarlierAttempt { retry, status, duration_ms: 100, started_at: started_at.map(Timestamp) }
}

/// Merges each attempt as a request of its own.
fn set_of(attempts: impl IntoIterator<Item = Attempt>) -> AttemptSet {
    set_of_requests(attempts.into_iter().map(|attempt| vec![alone(attempt)]))
}

fn set_of_requests(requests: impl IntoIterator<Item = Vec<Reported>>) -> AttemptSet {
    let mut set = AttemptSet::default();
    requests.into_iter().for_each(|request| drop(set.merge(request)));
    set
}

fn decide(attempts: impl IntoIterator<Item = Attempt>) -> Decision {
    set_of(attempts).decide().unwrap()
}

#[test]
fn nothing_decides_nothing() {
    assert_eq!(AttemptSet::default().decide(), None);
}

#[test]
fn attempts_are_tries_and_unreported_ones_failed() {
    let tries = |attempts: Vec<Attempt>| decide(attempts).tries();
    assert_eq!(
        tries(vec![attempt(0, Failed), attempt(1, TimedOut), attempt(2, Passed)]),
        [true, true, false]
    );
    assert_eq!(tries(vec![attempt(2, Passed)]), [true, true, false]);
    assert_eq!(tries(vec![attempt(1, Failed)]), [true, true]);
    assert_eq!(tries(vec![attempt(0, Skipped)]), [] as [bool; 0]);
    assert_eq!(tries(vec![attempt(0, Failed), attempt(1, Interrupted)]), [true]);
    assert_eq!(tries(vec![attempt(0, Interrupted), attempt(1, Passed)]), [false]);
    assert_eq!(tries(vec![attempt(0, Failed), attempt(1, Skipped)]), [true]);
    let repeated = vec![attempt(0, Passed).of_repetition(0), attempt(0, Failed).of_repetition(1)];
    assert_eq!(tries(repeated), [false, true]);
}

#[test]
fn retries_are_lost_time_and_so_is_what_came_before_a_pass() {
    let lost = |attempts: Vec<Attempt>| decide(attempts).lost_ms;
    let tried =
        |last| vec![attempt(0, Failed).took(300), attempt(1, TimedOut).took(30), attempt(2, last).took(7)];
    assert_eq!((lost(tried(Passed)), lost(tried(Failed)), lost(tried(Interrupted))), (330, 37, 37));
    assert_eq!(lost(vec![attempt(0, Interrupted).took(300), attempt(1, Failed).took(20)]), 300);
    assert_eq!(lost(vec![attempt(0, Passed).took(300), attempt(1, Failed).took(20)]), 20);
    assert_eq!(lost(vec![attempt(0, Failed).took(300)]), 0);
    let repeated = vec![
        attempt(0, Passed).of_repetition(0).took(5),
        attempt(0, Failed).of_repetition(1).took(6),
        attempt(1, Passed).of_repetition(1).took(8),
    ];
    assert_eq!(lost(repeated), 6, "a repetition that passed at once lost nothing");
}

#[test]
fn a_pass_after_a_failure_is_one_flaky_test_in_either_order() {
    let failed = attempt(0, Failed).at(1).took(300);
    let passed = attempt(1, Passed).at(500).took(200);
    let decision = decide([failed.clone(), passed.clone()]);
    assert_eq!((decision.status, decision.flaky, decision.retries), (Passed, true, 1));
    assert_eq!((decision.duration_ms, decision.total_duration_ms), (200, 500));
    assert_eq!((decision.started_at, decision.attempts.len()), (Some(Timestamp(1)), 2));
    assert_eq!(decide([passed, failed]), decision);
}

#[test]
fn the_deciding_attempt_is_the_one_whose_failure_or_pass_counts() {
    let at = |retry: u32, status| {
        let number = i64::from(retry);
        attempt(retry, status).at(number * 100).took(number + 1).in_pack(number + 1)
    };
    // Cut off by Ctrl-C while it was tried again.
    let broken_off = [at(0, Failed).failing_with("boom"), at(1, Interrupted)];
    let decision = decide(broken_off.clone());
    assert_eq!((decision.outcome(), decision.duration_ms, decision.retries), (Outcome::Failed, 1, 1));
    assert_eq!(decision.deciding, broken_off[0]);
    assert_eq!(decision.failed_attempt().unwrap().attempt, broken_off[0]);
    assert_eq!(decide(broken_off.into_iter().rev()), decision);
    // Run again only because another test of its serial group failed.
    let serial = [at(0, Passed), at(1, Failed).failing_with("boom")];
    let decision = decide(serial.clone());
    assert_eq!((decision.outcome(), decision.repetitions), (Outcome::Flaky, 1));
    assert_eq!((&decision.deciding, &decision.failed_attempt().unwrap().attempt), (&serial[0], &serial[1]));
    let decision = decide([at(0, Passed), at(1, Interrupted)]);
    assert_eq!((decision.outcome(), decision.duration_ms), (Outcome::Passed, 1));
    assert_eq!(decision.failed_attempt(), None);
    let decision = decide([at(0, Failed), at(1, Skipped)]);
    assert_eq!((decision.outcome(), decision.deciding.status), (Outcome::Flaky, Skipped));
    assert_eq!(decide([at(0, Passed), at(1, Skipped)]).outcome(), Outcome::Flaky);
    let decision = decide([at(0, TimedOut), at(1, Failed), at(2, Interrupted)]);
    assert_eq!((decision.outcome(), decision.duration_ms), (Outcome::Failed, 2));
}

#[test]
fn the_fingerprint_is_that_of_the_last_failure_of_the_deciding_repetition() {
    let print = |attempt: Attempt, byte| {
        let facts = AttemptFacts { fingerprint: Some(Fingerprint([byte; 32])), ..AttemptFacts::default() };
        Attempt { facts, ..attempt }
    };
    let told = |attempts: Vec<Attempt>| decide(attempts).fingerprint.map(|print| print.0[0]);
    let failed = print(attempt(0, Failed).at(1), 1);
    assert_eq!(told(vec![failed.clone(), print(attempt(1, Interrupted).at(2), 2)]), Some(1));
    assert_eq!(told(vec![attempt(0, Passed).at(1), print(attempt(1, TimedOut).at(2), 3)]), Some(3));
    assert_eq!(told(vec![print(attempt(0, Interrupted).at(1), 2), attempt(1, Passed).at(2)]), None);
}

#[test]
fn a_placeholder_never_outweighs_a_result() {
    let decision = decide([attempt(0, Passed), attempt(0, DidNotRun).of_generation(1)]);
    assert_eq!((decision.status, decision.flaky), (Passed, false));
    assert!(decision.attempts[1].superseded);
    assert_eq!(decide([attempt(0, DidNotRun)]).status, DidNotRun);
}

#[test]
fn the_newest_generation_decides_and_older_attempts_stay_listed() {
    let decision = decide([
        attempt(0, Passed).at(1),
        attempt(1, Passed).at(2),
        attempt(0, Passed).at(3).took(7).of_generation(1),
    ]);
    assert_eq!((decision.status, decision.flaky, decision.retries), (Passed, false, 0));
    assert_eq!(decision.total_duration_ms, 7);
    assert_eq!(decision.attempts.iter().filter(|view| view.superseded).count(), 2);
}

#[test]
fn a_failure_that_a_rerun_repairs_is_flaky() {
    let judge = |first, second| {
        let decision = decide([attempt(0, first).at(1), attempt(0, second).at(2).of_generation(1)]);
        (decision.status, decision.flaky, decision.tries())
    };
    assert_eq!(judge(Failed, Passed), (Passed, true, vec![true, false]));
    assert_eq!(judge(Passed, Failed), (Failed, false, vec![false, true]));
    assert_eq!(judge(Failed, Failed), (Failed, false, vec![true, true]));
    assert_eq!(judge(Interrupted, Passed), (Passed, false, vec![false]));
    assert_eq!(judge(Failed, Skipped).0, Skipped);
    let flaky_before =
        [attempt(0, Failed).at(1), attempt(1, Passed).at(2), attempt(0, Passed).of_generation(1)];
    assert!(decide(flaky_before).flaky);
    let mut failed = attempt(0, TimedOut).at(1);
    failed.facts.fingerprint = Some(Fingerprint([7; 32]));
    let repaired = decide([failed, attempt(0, Passed).at(2).of_generation(1)]);
    assert_eq!(repaired.fingerprint, Some(Fingerprint([7; 32])), "it shows how it failed");
    assert_eq!(repaired.failed_attempt().map(|view| view.attempt.status), Some(TimedOut));
}

#[test]
fn what_runs_in_every_shard_is_repaired_shard_by_shard() {
    let of =
        |shard, generation, status, at| attempt(0, status).in_shard(shard).of_generation(generation).at(at);
    let both = decide([of(1, 0, Passed, 1), of(2, 0, Failed, 2)]);
    assert_eq!((both.status, both.flaky, both.repetitions), (Failed, false, 2));
    let undated = |shard, status| attempt(0, status).in_shard(shard);
    assert_eq!(decide([undated(1, Passed), undated(2, Failed)]).status, Failed);
    let crossed = [of(1, 0, Failed, 1), of(2, 0, Failed, 2), attempt(1, Passed).in_shard(2).at(3)];
    assert_eq!(decide(crossed).status, Failed, "the retry in the second shard is none of the first");
    let one_repaired = decide([of(1, 0, Failed, 1), of(2, 0, Failed, 2), of(1, 1, Passed, 3)]);
    assert_eq!((one_repaired.status, one_repaired.flaky), (Failed, false));
    let repaired =
        decide([of(1, 0, Failed, 1), of(2, 0, Failed, 2), of(1, 1, Passed, 3), of(2, 1, Passed, 4)]);
    assert_eq!((repaired.status, repaired.flaky), (Passed, true));
    let moved = decide([of(2, 0, Failed, 1), of(1, 1, Passed, 2)]);
    assert_eq!((moved.status, moved.flaky), (Passed, true), "a re-run deals its tests out anew");
}

#[test]
fn repetitions_without_index_are_told_apart_by_time() {
    let decision = decide([
        attempt(0, Passed).at(1),
        attempt(0, Failed).at(2).took(20),
        attempt(1, Passed).at(3).took(30),
        attempt(0, Passed).at(4),
    ]);
    assert_eq!((decision.status, decision.flaky, decision.retries), (Passed, true, 1));
    let numbers: Vec<(u32, u32)> =
        decision.attempts.iter().map(|view| (view.repetition, view.attempt.retry)).collect();
    assert_eq!(numbers, [(0, 0), (1, 0), (1, 1), (2, 0)]);
    assert_eq!(decision.repetitions, 3);
}

#[test]
fn the_worst_repetition_speaks_for_all() {
    let repetition = |index, status| attempt(0, status).of_repetition(index).took(i64::from(index));
    let decision = decide([repetition(0, Passed), repetition(1, TimedOut), repetition(2, Skipped)]);
    assert_eq!((decision.status, decision.duration_ms), (TimedOut, 1));
    assert_eq!(decide([repetition(0, Passed), repetition(1, Skipped)]).status, Passed);
    assert_eq!(decide([repetition(0, Interrupted), repetition(1, Passed)]).status, Interrupted);
}

#[test]
fn a_test_that_passes_again_because_its_serial_group_is_retried_is_not_flaky() {
    let both = [attempt(0, Passed).at(1), attempt(1, Passed).at(5)];
    let decision = decide(both.clone());
    assert_eq!((decision.status, decision.flaky, decision.repetitions), (Passed, false, 1));
    assert_eq!(decide(both.into_iter().rev()), decision);
    // A failure is followed first: another repetition passed on the first attempt.
    let repeated = [attempt(0, Passed).at(1), attempt(0, Failed).at(2), attempt(1, Passed).at(3)];
    assert!(decide(repeated).flaky);
}

#[test]
fn a_test_that_could_only_run_when_its_serial_group_was_retried_is_not_flaky() {
    let waited = || attempt(0, TestStatus::DidNotRun);
    let passed = decide([attempt(1, TestStatus::Passed).at(9_000), waited()]);
    assert_eq!((passed.status, passed.flaky, passed.retries), (TestStatus::Passed, false, 1));
    assert_eq!(passed.tries(), [false], "it was tried once");
    let failed = decide([waited(), attempt(1, TestStatus::Failed).at(9_000)]);
    assert_eq!((failed.status, failed.tries()), (TestStatus::Failed, vec![true]));
    // The retry before the last is not told by a placeholder of the first.
    assert!(decide([waited(), attempt(2, TestStatus::Passed).at(9_000)]).flaky);
    // Nor does it tell of a retry that one was tried as well.
    let reported = attempt(0, TestStatus::Passed).at(1_000).of_repetition(0);
    let later = attempt(2, TestStatus::Passed).at(9_000).of_repetition(0);
    assert!(decide([waited().of_repetition(0), reported, later]).flaky);
    // A placeholder of an earlier job says nothing about the attempts of a later one.
    assert!(decide([waited(), attempt(1, TestStatus::Passed).at(9_000).of_generation(1)]).flaky);
}

#[test]
fn a_retry_in_which_a_test_waited_for_its_serial_group_breaks_no_repetition() {
    let attempts = [attempt(0, Failed).at(1), attempt(1, DidNotRun), attempt(2, Passed).at(9)];
    let decision = decide(attempts);
    assert_eq!((decision.outcome(), decision.repetitions), (Outcome::Flaky, 1));
    let unknown = decide([attempt(0, Failed).at(1), attempt(2, Passed).at(9)]);
    assert_eq!((unknown.outcome(), unknown.repetitions), (Outcome::Failed, 2));
}

#[test]
fn an_index_keeps_a_repetition_together_over_a_gap() {
    let repetition = |retry, status| attempt(retry, status).of_repetition(0);
    let decision = decide([repetition(0, Failed), repetition(2, Passed)]);
    assert_eq!((decision.status, decision.flaky), (Passed, true));
}

#[test]
fn a_late_retry_alone_is_flaky_unless_its_history_was_interrupted() {
    assert!(decide([attempt(2, Passed)]).flaky);
    assert!(!decide([attempt(0, Interrupted), attempt(1, Passed)]).flaky);
    let claimed = Attempt { flaky_claimed: true, ..attempt(0, Passed) };
    assert!(decide([claimed]).flaky);
}

#[test]
fn a_duplicate_fills_gaps_keeps_the_first_evidence_and_the_worse_status() {
    let mut set = set_of([attempt(0, Passed).at(1).in_pack(4)]);
    let worse = attempt(0, Failed).at(1).in_pack(5).failing_with("boom");
    assert_eq!(set.merge(vec![alone(worse.clone())]), [Merged::Filled]);
    assert_eq!(set.merge(vec![alone(worse)]), [Merged::Unchanged]);
    assert_eq!(set.attempts(), [attempt(0, Failed).at(1).in_pack(4).failing_with("boom")]);
}

#[test]
fn an_undated_report_is_the_same_attempt_as_a_dated_one() {
    let mut set = set_of([attempt(0, Failed)]);
    assert_eq!(set.merge(vec![alone(attempt(0, Failed).at(1))]), [Merged::Filled]);
    assert_eq!(set.attempts(), [attempt(0, Failed).at(1)]);
    assert_eq!(set.merge(vec![alone(attempt(0, Failed).at(2))]), [Merged::Inserted]);
}

#[test]
fn an_undated_failure_does_not_taint_a_repetition_that_passed() {
    let passed_first = [attempt(0, Passed).at(1), attempt(0, Failed).at(2), attempt(1, Passed).at(3)];
    let decision = decide(passed_first.into_iter().chain([attempt(0, Failed)]));
    assert_eq!((decision.status, decision.attempts.len()), (Passed, 3));
}

#[test]
fn two_undated_entries_of_one_request_are_distinct_however_often_it_comes() {
    let request = vec![alone(attempt(0, Passed)), alone(attempt(0, Failed))];
    let mut set = AttemptSet::default();
    assert_eq!(set.merge(request.clone()), [Merged::Inserted; 2]);
    let before = set.clone();
    assert_eq!(set.merge(request), [Merged::Unchanged; 2]);
    assert_eq!(set, before);
    assert_eq!((set.attempts().len(), set.decide().unwrap().status), (2, Failed));
}

#[test]
fn clients_with_and_without_history_give_the_same_execution() {
    let attempts =
        [attempt(0, Failed).at(1).in_pack(1), attempt(1, TimedOut).at(2), attempt(2, Passed).at(3)];
    let without = set_of(attempts.clone());
    for is_dated in [true, false] {
        let date = |at: i64| is_dated.then_some(at);
        let lines = [line(0, Failed, date(1)), line(1, TimedOut, date(2)), line(2, Passed, date(3))];
        let requests: Vec<Vec<Reported>> = attempts
            .iter()
            .zip(1..)
            .map(|(attempt, known)| {
                vec![Reported { attempt: attempt.clone(), history: lines[..known].to_vec() }]
            })
            .collect();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let with = set_of_requests(order.map(|at| requests[at].clone()));
            assert_eq!(with.decide(), without.decide());
        }
        let in_one = set_of_requests([requests.concat()]);
        assert_eq!(in_one.decide(), without.decide());
    }
}

#[test]
fn history_stands_in_for_attempts_that_never_arrive() {
    let mut set = AttemptSet::default();
    let last = Reported { attempt: attempt(1, Passed).at(9), history: vec![line(0, Failed, Some(1))] };
    assert_eq!(set.merge(vec![last]), [Merged::Inserted]);
    let decision = set.decide().unwrap();
    assert_eq!((decision.flaky, decision.attempts.len()), (true, 2));
    assert!(decision.attempts[0].attempt.is_summary);
    assert_eq!(set.merge(vec![alone(attempt(0, Failed).at(1).in_pack(3))]), [Merged::Filled]);
    assert!(!set.attempts()[0].is_summary);
}

#[test]
fn a_full_report_outranks_what_history_says_about_it() {
    // An expected failure: the history of an older client calls it failed.
    let retried = Reported { attempt: attempt(1, Passed).at(2), history: vec![line(0, Failed, Some(1))] };
    let set = set_of_requests([vec![retried], vec![alone(attempt(0, Interrupted).at(1))]]);
    assert_eq!(set.attempts()[0].status, Interrupted);
}

#[test]
fn a_single_plain_attempt_needs_no_json() {
    assert_eq!(set_of([attempt(0, Passed).at(1)]).to_json(), None);
    assert!(set_of([attempt(0, Passed).of_generation(1)]).to_json().is_some());
    assert!(set_of([attempt(0, Failed).at(1), attempt(1, Passed).at(2)]).to_json().is_some());
}

#[test]
fn unknown_json_is_refused() {
    assert!(AttemptSet::from_json("{}").is_err());
    assert!(matches!(AttemptSet::from_json(r#"[{"s":9}]"#), Err(StoredAttemptsError::Status(9))));
}

#[test]
fn attempts_beyond_the_listed_ones_still_count_once() {
    let many = |status| (0..150).map(move |index| attempt(0, status).of_repetition(index).in_pack(1));
    let failure = attempt(0, Failed).of_repetition(500).in_pack(2).failing_with("rare");
    let mut set = set_of(many(Passed).chain([failure.clone()]));
    let decision = set.decide().unwrap();
    assert_eq!((decision.status, decision.dropped, decision.repetitions), (Failed, 51, 151));
    assert_eq!((decision.attempts.len(), &decision.deciding), (MAX_LISTED, &failure));
    assert_eq!(decision.total_duration_ms, 151 * 100);
    let again: Vec<Reported> = many(Passed).map(alone).collect();
    assert_eq!(set.merge(again), [Merged::Unchanged; 150]);
    assert_eq!(set.decide().unwrap(), decision);
}

#[test]
fn memory_is_bounded() {
    let requests = (0..30).map(|part| {
        (0..100).map(|index| alone(attempt(0, Passed).of_repetition(part * 100 + index))).collect()
    });
    let set = set_of_requests(requests);
    assert_eq!(set.dropped() as usize, MAX_REMEMBERED - MAX_LISTED);
}
