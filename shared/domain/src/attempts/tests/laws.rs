//! Laws of attempt sets: order of arrival and repeated delivery never show,
//! stored sets read back, and repetitions are judged alike in any order.

use proptest::prelude::*;

use super::*;

fn any_status() -> impl Strategy<Value = TestStatus> {
    proptest::sample::select(TestStatus::ALL.to_vec())
}

fn any_attempt() -> impl Strategy<Value = Attempt> {
    let identity = (0..3_u32, proptest::option::of(0..2_u32), 0..2_u32, proptest::option::of(0..4_i64));
    let result = (any_status(), 0..3_i64, proptest::bool::weighted(0.1), proptest::option::of(1..9_i64));
    let text = (proptest::option::of("[ab]"), proptest::option::of(0..3_u8));
    let place = (proptest::option::of(0..2_i64), proptest::option::of(1..3_i64));
    let facts = (text, proptest::option::of(0..3_i64), 0..3_i64, any::<bool>(), place);
    (identity, result, facts).prop_map(|((retry, repetition, generation, start), result, facts)| {
        let (status, duration_ms, flaky_claimed, pack) = result;
        let ((error_summary, failure), slowest_ms, steps, expected_failure, place) = facts;
        let (worker_index, shard_index) = place;
        let slowest_step = slowest_ms.map(|ms| format!("step {ms}"));
        Attempt {
            repetition,
            generation,
            duration_ms,
            started_at: start.map(Timestamp),
            flaky_claimed,
            facts: AttemptFacts {
                error_summary,
                slowest_step,
                slowest_ms,
                steps,
                expected_failure,
                worker_index,
                shard_index,
                fingerprint: failure.map(|byte| Fingerprint([byte; 32])),
                ..AttemptFacts::default()
            },
            evidence: pack.map(|pack| EvidenceSlice { pack: PackId(pack), offset: pack * 7, length: 5 }),
            ..attempt(retry, status)
        }
    })
}

fn any_report() -> impl Strategy<Value = Reported> {
    let line = (0..3_u32, any_status(), 0..3_i64, proptest::option::of(0..4_i64)).prop_map(
        |(retry, status, duration_ms, start)| EarlierAttempt {
            retry,
            status,
            duration_ms,
            started_at: start.map(Timestamp),
        },
    );
    (any_attempt(), proptest::collection::vec(line, 0..3))
        .prop_map(|(attempt, history)| Reported { attempt, history })
}

/// Requests, and an order in which they arrive, some of them repeatedly and
/// with their entries shuffled.
fn requests_in_two_orders() -> impl Strategy<Value = (Vec<Vec<Reported>>, Vec<Vec<Reported>>)> {
    proptest::collection::vec(proptest::collection::vec(any_report(), 1..5), 1..6).prop_flat_map(|requests| {
        let repeated = [requests.clone(), requests.clone()].concat();
        let shuffled: Vec<_> = repeated.into_iter().map(|request| Just(request).prop_shuffle()).collect();
        (Just(requests), shuffled.prop_shuffle())
    })
}

/// How the attempts of one test ended, by retry, and an order in which they are
/// reported.
fn attempts_in_any_order() -> impl Strategy<Value = (Vec<TestStatus>, Vec<(u32, TestStatus)>)> {
    proptest::collection::vec(any_status(), 1..6).prop_flat_map(|statuses| {
        let sent: Vec<(u32, TestStatus)> = (0..).zip(statuses.iter().copied()).collect();
        (Just(statuses), Just(sent).prop_shuffle())
    })
}

/// A test that ran several times under one number of configured retries, as a
/// dating client reports it: every attempt in a request of its own.
fn repeated_test() -> impl Strategy<Value = (Vec<Attempt>, Vec<Attempt>, TestStatus, bool)> {
    let repetition = (0..4_usize, proptest::sample::select(vec![Failed, TimedOut]));
    (0..3_usize, proptest::collection::vec(repetition, 1..60), any::<bool>()).prop_flat_map(
        |(retries, repetitions, has_index)| {
            let mut attempts = Vec::new();
            let (mut status, mut flaky) = (Passed, false);
            for (index, (failures, failure)) in (0_u32..).zip(repetitions) {
                let passes = failures <= retries;
                let failures = std::iter::repeat_n(failure, failures.min(retries + 1));
                let ends: Vec<TestStatus> = failures.chain(passes.then_some(Passed)).collect();
                flaky |= ends.len() > 1;
                if !passes && failure.severity() < status.severity() {
                    status = failure;
                }
                for (retry, end) in (0..).zip(ends) {
                    let number = i64::try_from(attempts.len()).unwrap();
                    let one = attempt(retry, end).at(number * 10).in_pack(number).took(number);
                    attempts.push(if has_index { one.of_repetition(index) } else { one });
                }
            }
            let sent = [attempts.clone(), attempts.clone()].concat();
            (Just(attempts), Just(sent).prop_shuffle(), Just(status), Just(flaky && status == Passed))
        },
    )
}

proptest! {
    #[test]
    fn arrival_order_and_repeated_delivery_never_show((requests, arriving) in requests_in_two_orders()) {
        let (one, another) = (set_of_requests(requests), set_of_requests(arriving));
        prop_assert_eq!(one.decide(), another.decide());
        prop_assert_eq!(one.to_json(), another.to_json());
        prop_assert_eq!(one, another);
    }

    #[test]
    fn attempts_of_one_test_are_judged_alike_in_any_order(
        (statuses, arriving) in attempts_in_any_order(), has_index in any::<bool>(), is_dated in any::<bool>(),
    ) {
        let sent = |&(retry, status): &(u32, TestStatus)| {
            let one = attempt(retry, status).took(i64::from(retry)).in_pack(i64::from(retry));
            let one = if has_index { one.of_repetition(0) } else { one };
            if is_dated { one.at(i64::from(retry) * 100) } else { one }
        };
        let in_order: Vec<_> = (0..).zip(statuses.iter().copied()).collect();
        let decision = set_of(in_order.iter().map(sent)).decide().unwrap();
        prop_assert_eq!(&set_of(arriving.iter().map(sent)).decide().unwrap(), &decision);
        let has = |wanted: fn(TestStatus) -> bool| statuses.iter().any(|status| wanted(*status));
        let (failed, passed) = (has(TestStatus::is_failing), has(|status| status == Passed));
        let mut ran = statuses.iter().filter(|status| !matches!(status, Interrupted | DidNotRun));
        let ends_skipped = ran.next_back() == Some(&Skipped);
        prop_assert_eq!(decision.status.is_failing(), failed && !passed && !ends_skipped);
        prop_assert_eq!(decision.flaky, failed && (passed || ends_skipped) || passed && ends_skipped);
        prop_assert_eq!(decision.failed_attempt().is_some(), failed);
    }

    #[test]
    fn stored_sets_read_back((requests, _) in requests_in_two_orders()) {
        let set = set_of_requests(requests);
        if let Some(json) = set.to_json() {
            let again = AttemptSet::from_json(&json).unwrap();
            prop_assert_eq!(again.to_json(), Some(json));
            prop_assert_eq!(again, set);
        }
    }

    #[test]
    fn sending_a_request_again_reports_no_change((requests, _) in requests_in_two_orders()) {
        let mut set = set_of_requests(requests.clone());
        for request in requests {
            let unchanged = vec![Merged::Unchanged; request.len()];
            prop_assert_eq!(set.merge(request), unchanged);
        }
    }

    #[test]
    fn repetitions_are_judged_alike_in_any_order((attempts, arriving, status, flaky) in repeated_test()) {
        let (sorted, shuffled) = (set_of(attempts.clone()), set_of(arriving));
        prop_assert_eq!(sorted.to_json(), shuffled.to_json());
        let decision = shuffled.decide().unwrap();
        prop_assert_eq!(&sorted.decide().unwrap(), &decision);
        prop_assert_eq!((decision.status, decision.flaky), (status, flaky));
        prop_assert_eq!(decision.attempts.len() + decision.dropped as usize, attempts.len());
        prop_assert_eq!(decision.total_duration_ms, attempts.iter().map(|one| one.duration_ms).sum::<i64>());
        prop_assert_eq!(decision.attempts.iter().filter(|view| view.deciding).count(), 1);
    }
}
