//! State as behaviour, and its equality under any order of application,
//! against a small model of the rows it summarises.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const DAY_MS: i64 = 86_400_000;

/// The execution of a run in a browser project; run n starts on day n.
fn seen(run: i64, browser: i64, outcome: Outcome) -> Observation {
    Observation {
        execution: ExecutionId::compose(RunId(run), browser),
        order_at: Timestamp(run * DAY_MS),
        outcome,
        browser,
        duration_ms: 100 * run,
        wasted_ms: 1,
        lost_ms: 10 * run,
        mass_failure: false,
    }
}

fn state_of(observations: &[Observation]) -> TestState {
    let mut state = TestState::first(&observations[0]);
    for observation in &observations[1..] {
        assert_eq!(state.apply(None, observation), Applied::Done);
    }
    state
}

/// Executions as the store keeps them.
#[derive(Default)]
struct Rows(BTreeMap<ExecutionId, Observation>);

impl Rows {
    fn newest(&self) -> Vec<Observation> {
        let mut all: Vec<Observation> = self.0.values().copied().collect();
        all.sort_by_key(|row| std::cmp::Reverse(row.key()));
        all.truncate(MAX_RECENT);
        all
    }

    /// Writes a batch of rows, then applies it to the state as an ingest
    /// transaction does, reading and storing the columns.
    fn ingest(&mut self, stored: Option<StateColumns>, batch: &[Observation]) -> StateColumns {
        let mut changes: Vec<(Option<Observation>, Observation)> = Vec::new();
        for now in batch {
            match changes.iter_mut().find(|(_, other)| other.execution == now.execution) {
                Some((_, other)) => *other = *now,
                None => changes.push((self.0.get(&now.execution).copied(), *now)),
            }
        }
        self.0.extend(changes.iter().map(|(_, now)| (now.execution, *now)));
        let mut state = stored.map(|columns| TestState::from_columns(&columns).unwrap());
        let mut needs_rebuild = false;
        for (previous, now) in &changes {
            match &mut state {
                None => state = Some(TestState::first(now)),
                Some(state) => needs_rebuild |= state.apply(previous.as_ref(), now) == Applied::NeedsRebuild,
            }
        }
        let mut state = state.unwrap();
        if needs_rebuild {
            state.rebuild_recent(self.newest());
        }
        let columns = state.to_columns();
        assert_eq!(TestState::from_columns(&columns).unwrap(), state);
        columns
    }

    fn in_order(&self) -> StateColumns {
        let mut rows: Vec<Observation> = self.0.values().copied().collect();
        rows.sort_by_key(Observation::key);
        state_of(&rows).to_columns()
    }
}

#[test]
fn numbers_of_the_catalogue_come_from_the_state_alone() {
    let state = state_of(&[
        seen(1, 1, Outcome::Passed),
        seen(2, 1, Outcome::Flaky),
        seen(3, 1, Outcome::Skipped),
        seen(4, 1, Outcome::Failed),
        seen(5, 1, Outcome::TimedOut),
        seen(6, 1, Outcome::Interrupted),
    ]);
    assert_eq!(state.counts().total_tests, 6);
    assert_eq!((state.counts().passed_tests, state.counts().failed_tests), (2, 2));
    assert_eq!((state.pass_rate(), state.recent_flaky()), (Some(0.5), 1));
    assert_eq!((state.avg_duration_ms(), state.p95_duration_ms()), (Some(150), Some(200)));
    assert_eq!((state.failing_streak(), state.passing_streak()), (2, 0));
    assert_eq!(
        (state.last_passed().unwrap().0, state.last_failed_at().unwrap()),
        (Timestamp(2 * DAY_MS), Timestamp(5 * DAY_MS))
    );
    assert_eq!(
        (state.category(), state.last_day(), state.wasted_ms()),
        (TestCategory::Interrupted, Day(6), 6)
    );
}

#[test]
fn a_test_is_as_bad_as_its_worst_browser_in_the_last_run() {
    let mut state = state_of(&[seen(1, 1, Outcome::Failed), seen(1, 2, Outcome::Passed)]);
    assert_eq!((state.category(), state.last_outcome()), (TestCategory::Failed, Some(Outcome::Passed)));
    assert_eq!(state.apply(None, &seen(2, 2, Outcome::Passed)), Applied::Done);
    assert_eq!(state.category(), TestCategory::Passed);
}

#[test]
fn overlapping_runs_and_retries_need_no_rebuild() {
    let mut state =
        state_of(&[seen(1, 1, Outcome::Failed), seen(1, 2, Outcome::Passed), seen(3, 1, Outcome::Passed)]);
    assert_eq!(state.apply(None, &seen(2, 1, Outcome::Passed)), Applied::Done);
    let retried = state.apply(Some(&seen(1, 1, Outcome::Failed)), &seen(1, 1, Outcome::Flaky));
    assert_eq!(retried, Applied::Done);
    let outcomes: Vec<Outcome> = state.recent().map(|recent| recent.outcome).collect();
    assert_eq!(outcomes, [Outcome::Flaky, Outcome::Passed, Outcome::Passed, Outcome::Passed]);
    assert_eq!((state.counts().failed_tests, state.last_failed_at()), (0, None));
}

#[test]
fn a_result_older_than_the_identified_ones_asks_for_a_rebuild() {
    let newer: Vec<Observation> = (2..30).map(|run| seen(run, 1, Outcome::Passed)).collect();
    let mut state = state_of(&newer);
    assert_eq!(state.apply(None, &seen(1, 1, Outcome::Failed)), Applied::NeedsRebuild);
    assert_eq!(state.counts().total_tests, 29);
}

#[test]
fn a_pass_taken_back_is_replaced_by_the_one_before_it() {
    let mut rows = Rows::default();
    let failed = (2..=20).map(|run| seen(run, 1, Outcome::Failed));
    let all: Vec<Observation> = std::iter::once(seen(1, 1, Outcome::Passed))
        .chain(failed)
        .chain([seen(21, 1, Outcome::Passed)])
        .collect();
    let mut columns = rows.ingest(None, &all);
    columns = rows.ingest(Some(columns), &[seen(21, 1, Outcome::Failed)]);
    assert_eq!(columns.last_passed_at, Some(DAY_MS));
    assert_eq!((columns.failing_streak, columns.passed), (20, 1));
}

#[test]
fn a_rebuild_believes_the_rows() {
    let mut state = state_of(&[seen(1, 1, Outcome::Passed), seen(2, 1, Outcome::Failed)]);
    state.rebuild_recent(vec![seen(2, 1, Outcome::Skipped), seen(1, 1, Outcome::Skipped)]);
    assert_eq!((state.last_passed(), state.last_failed_at()), (None, None));
    let decided = |state: &TestState| state.decided_before(1, Timestamp(9 * DAY_MS), RunId(9));
    assert_eq!(decided(&state), None);
    assert_eq!((state.category(), state.recent().len()), (TestCategory::Skipped, 2));
    assert_eq!(state.apply(None, &seen(3, 1, Outcome::Failed)), Applied::Done);
    state.retract(&seen(3, 1, Outcome::Failed));
    state.retract(&seen(2, 1, Outcome::Skipped));
    state.rebuild_recent(vec![seen(1, 1, Outcome::Passed)]);
    assert_eq!((decided(&state), state.last_failed_at()), (Some(Outcome::Passed), None));
}

#[test]
fn history_outlives_executions_that_retention_deleted() {
    let mut rows = Rows::default();
    let all: Vec<Observation> = (1..=50).map(|run| seen(run, 1, Outcome::Passed)).collect();
    let mut columns = rows.ingest(None, &all);
    rows.0.retain(|execution, _| execution.run().get() > 20);
    columns = rows.ingest(Some(columns), &[seen(25, 2, Outcome::Failed)]);
    let state = TestState::from_columns(&columns).unwrap();
    assert_eq!((state.counts().total_tests, state.recent().len()), (51, 51));
    let position = state.recent().position(|recent| recent.outcome == Outcome::Failed);
    assert_eq!(position, Some(25));
}

#[test]
fn a_run_that_outlives_newer_ones_is_told_of_once() {
    let outcome = |run: i64| match run {
        3 => Outcome::Flaky,
        9..=12 => Outcome::Failed,
        _ => Outcome::Passed,
    };
    let all: Vec<Observation> = (1..=40).map(|run| seen(run, 1, outcome(run))).collect();
    let mut rows = Rows::default();
    let columns = rows.ingest(None, &all);
    // The third run is kept as the last green one, the eleventh for its failure.
    rows.0.retain(|execution, _| matches!(execution.run().get(), 3 | 11 | 36..));
    let columns = rows.ingest(Some(columns), &[seen(11, 1, Outcome::TimedOut)]);
    let mut state = TestState::from_columns(&columns).unwrap();
    let outcomes = |state: &TestState| state.recent().map(|recent| recent.outcome).collect::<Vec<_>>();
    let mut expected: Vec<Outcome> = (1..=40).map(outcome).collect();
    expected[10] = Outcome::TimedOut;
    assert_eq!(outcomes(&state), expected);
    assert_eq!(state.recent().map(|recent| recent.duration_ms).collect::<Vec<_>>(), {
        (1..=40).map(|run| Some(100 * run)).collect::<Vec<_>>()
    });
    // A person deletes the newest run and one of those whose place is not known.
    for run in [40, 11] {
        let gone = rows.0.remove(&ExecutionId::compose(RunId(run), 1)).unwrap();
        state.retract(&gone);
    }
    state.rebuild_recent(rows.newest());
    expected.remove(39);
    expected.remove(10);
    assert_eq!(outcomes(&state), expected);
    assert_eq!(
        (state.last_order_at(), state.last_failed_at()),
        (Timestamp(39 * DAY_MS), Some(Timestamp(12 * DAY_MS)))
    );
    let columns = state.to_columns();
    assert_eq!(TestState::from_columns(&columns).unwrap(), state);
}

#[test]
fn the_last_run_stays_the_last_when_only_an_older_one_is_left() {
    let runs: Vec<Observation> = (1..=30).map(|run| seen(run, 1, Outcome::Passed)).collect();
    let mut state = state_of(&runs);
    let late = seen(2, 2, Outcome::Failed);
    assert_eq!(state.apply(None, &late), Applied::NeedsRebuild);
    state.rebuild_recent(vec![runs[0], late]);
    assert_eq!((state.last_order_at(), state.last_passed()), (runs[29].order_at, Some(runs[29].key())));
    assert_eq!((state.category(), state.recent().len()), (TestCategory::Passed, 31));
    assert_eq!(state.last_failed_at(), Some(late.order_at));
}

#[test]
fn what_is_left_of_deleted_executions_is_as_old_as_the_last_that_was_not_taken_back() {
    let runs = [seen(1, 1, Outcome::Passed), seen(1, 2, Outcome::Failed), seen(2, 1, Outcome::Passed)];
    let mut state = TestState::from_columns(&state_of(&runs).to_columns()).unwrap();
    // Retention deleted the first run, a person the second.
    state.retract(&runs[2]);
    state.rebuild_recent(Vec::new());
    assert_eq!((state.last_order_at(), state.last_execution()), runs[1].key());
    assert_eq!(state.last_passed(), Some(runs[0].key()));
    assert_eq!(state.last_failed_at(), Some(runs[1].order_at));
    assert_eq!((state.category(), state.counts().total_tests), (TestCategory::Failed, 2));
    let columns = state.to_columns();
    assert_eq!(TestState::from_columns(&columns).unwrap(), state);
}

#[test]
fn a_predecessor_is_found_in_an_earlier_run_of_the_same_browser() {
    let state = state_of(&[
        seen(1, 1, Outcome::Passed),
        seen(1, 2, Outcome::Failed),
        seen(2, 1, Outcome::Skipped),
        seen(3, 1, Outcome::Failed),
    ]);
    let before = |browser, run: i64| state.decided_before(browser, Timestamp(run * DAY_MS), RunId(run));
    assert_eq!(before(1, 3), Some(Outcome::Passed), "its own outcome does not count");
    assert_eq!(before(1, 4), Some(Outcome::Failed));
    assert_eq!(before(2, 4), Some(Outcome::Failed));
    assert_eq!((before(1, 1), before(3, 4)), (None, None));
}

#[test]
fn a_predecessor_is_found_behind_the_runs_that_overtook_a_long_one() {
    let of = |run: i64| match run {
        14 => seen(run, 1, Outcome::Failed),
        15 => seen(run, 2, Outcome::Passed),
        _ => seen(run, 1, Outcome::Passed),
    };
    let state = state_of(&(1..=30).map(of).collect::<Vec<_>>());
    let before = |run: i64| state.decided_before(1, Timestamp(run * DAY_MS), RunId(run));
    assert_eq!((before(31), before(20)), (Some(Outcome::Passed), Some(Outcome::Passed)));
    assert_eq!(before(16), Some(Outcome::Failed), "fourteen runs came after it");
    assert_eq!(before(15), None, "what it would be compared with is told apart from nothing any more");
    let young = state_of(&(10..=20).map(of).collect::<Vec<_>>());
    let first = |run: i64| young.decided_before(1, Timestamp(run * DAY_MS), RunId(run));
    assert_eq!((first(11), first(10)), (Some(Outcome::Passed), None));
}

#[test]
fn what_decided_a_test_next_is_told_by_browser() {
    let place = |run: i64| (Timestamp(run * DAY_MS), RunId(run));
    let of = |run: i64| match run {
        5 => seen(run, 1, Outcome::Skipped),
        6 => seen(run, 2, Outcome::Failed),
        _ => seen(run, 1, Outcome::Passed),
    };
    let state = state_of(&(1..=30).map(of).collect::<Vec<_>>());
    let after = |browser, run| state.decided_after(browser, place(run));
    assert_eq!((after(1, 20), after(1, 30)), (Some(place(21)), None));
    assert_eq!(after(1, 3), Some(place(15)), "the earliest that is still told apart");
    assert_eq!((after(2, 3), after(2, 6), after(3, 3)), (Some(place(6)), None, None));
    let young = state_of(&(1..=9).map(of).collect::<Vec<_>>());
    let after = |browser, run| young.decided_after(browser, place(run));
    assert_eq!(after(1, 4), Some(place(7)), "neither a skipped one nor that of another browser");
    // Of two browser projects that share a place in the history, the last outcomes are known.
    let mut shared = young.clone();
    assert_eq!(shared.apply(None, &seen(10, 17, Outcome::Passed)), Applied::Done);
    let after = |browser, run| shared.decided_after(browser, place(run));
    assert_eq!((after(17, 4), after(1, 4)), (Some(place(10)), Some(place(8))));
}

#[test]
fn nothing_was_decided_before_where_the_history_reaches_and_has_none() {
    let of = |run: i64| seen(run, 1, if run < 4 { Outcome::Skipped } else { Outcome::Passed });
    let nothing = |last: i64, browser: i64, run: i64| {
        let state = state_of(&(1..=last).map(of).collect::<Vec<_>>());
        state.decided_nothing_before(browser, Timestamp(run * DAY_MS), RunId(run))
    };
    assert_eq!([1, 4, 5].map(|run| nothing(9, 1, run)), [true, true, false]);
    assert!(nothing(9, 2, 9), "another browser");
    assert!(!nothing(30, 1, 4), "that may have been forgotten");
}

#[test]
fn a_history_tells_from_where_on_it_is_known() {
    let place = |run: i64| (Timestamp(run * DAY_MS), RunId(run));
    let of = |run: i64| seen(run, if run == 2 || run == 5 { 2 } else { 1 }, Outcome::Passed);
    let told = |last: i64, browser| state_of(&(1..=last).map(of).collect::<Vec<_>>()).told_from(browser);
    assert_eq!(told(9, 1), None);
    assert_eq!(told(30, 1), Some(place(15)));
    assert_eq!(told(30, 2), Some(place(2)), "its last two outcomes are kept");
}

#[test]
fn a_browser_may_begin_behind_a_place_where_nothing_is_known_before() {
    let of = |run: i64| seen(run, 1, if run < 4 { Outcome::Skipped } else { Outcome::Passed });
    let columns = state_of(&(2..=9).map(of).collect::<Vec<_>>()).to_columns();
    let (at, id) = (Timestamp(columns.last_order_at), ExecutionId(columns.last_execution_id));
    let known = Predecessors::from_columns(at, id, &columns.by_browser).unwrap();
    let begins = |browser, run: i64| known.may_begin_behind(browser, (Timestamp(run * DAY_MS), RunId(run)));
    assert_eq!([1, 3, 8, 9].map(|run| begins(1, run)), [true, true, true, false]);
    let nothing = |known: &Predecessors, browser, run: i64| {
        known.decided_nothing_before(browser, Timestamp(run * DAY_MS), RunId(run))
    };
    assert_eq!([nothing(&known, 1, 4), nothing(&known, 2, 4)], [false, true], "two later ones are known");
    let columns = state_of(&(2..=4).map(of).collect::<Vec<_>>()).to_columns();
    let (at, id) = (Timestamp(columns.last_order_at), ExecutionId(columns.last_execution_id));
    let young = Predecessors::from_columns(at, id, &columns.by_browser).unwrap();
    assert_eq!([nothing(&young, 1, 4), nothing(&young, 1, 5)], [true, false]);
}

#[test]
fn durations_before_a_run_leave_out_what_came_after() {
    let mut runs: Vec<Observation> = (1..=30).map(|run| seen(run, 1, Outcome::Passed)).collect();
    for (at, seen) in runs.iter_mut().enumerate() {
        seen.duration_ms = i64::try_from(at).unwrap() + 1;
    }
    runs.push(Observation { duration_ms: 77, ..seen(30, 2, Outcome::Passed) });
    let state = state_of(&runs);
    let before = |run: i64| state.passed_durations_before(1, Timestamp(run * DAY_MS), RunId(run));
    assert_eq!(before(30), (1..=29).collect::<Vec<_>>());
    assert_eq!(before(31).len(), 30, "a run that is still to come");
    assert_eq!(before(20), (1..=19).collect::<Vec<_>>());
    assert_eq!(before(3), Vec::<i64>::new(), "so long ago that it cannot be told");
    let knows = |run: i64| state.knows_before(Timestamp(run * DAY_MS), RunId(run));
    assert!(knows(20) && !knows(3));
}

#[test]
fn flags_compare_with_the_predecessor() {
    use ExecutionFlags as Flags;
    let flags = |previous, now| flags_for(Some(previous), now);
    assert!(flags(Outcome::Passed, Outcome::TimedOut).contains(Flags::NEW_REGRESSION));
    assert!(flags(Outcome::Flaky, Outcome::Failed).contains(Flags::NEW_REGRESSION));
    assert!(flags(Outcome::Passed, Outcome::Flaky).contains(Flags::NEW_FLAKY));
    assert!(flags(Outcome::Failed, Outcome::Flaky).contains(Flags::FIXED));
    assert_eq!(flags(Outcome::Failed, Outcome::Failed), Flags::BASELINE_KNOWN);
    assert_eq!(flags(Outcome::Flaky, Outcome::Flaky), Flags::BASELINE_KNOWN);
    assert_eq!(flags_for(None, Outcome::Failed).bits(), 0);
    let kept = Flags::QUARANTINED.set(Flags::FIXED, true).compared(flags(Outcome::Passed, Outcome::Failed));
    assert_eq!(kept.bits(), 16 + 2 + 64);
}

#[test]
fn categories_survive_storage() {
    for category in TestCategory::ALL {
        assert_eq!(TestCategory::from_code(category.code()), Some(category));
        assert_eq!(TestCategory::parse(category.as_str()), Some(category));
    }
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    proptest::sample::select(Outcome::ALL.to_vec())
}

/// Two runs start at the same moment, and so share their place in time.
fn observations(
    runs: std::ops::Range<i64>,
    browsers: std::ops::RangeInclusive<i64>,
) -> impl Strategy<Value = Observation> {
    (runs, browsers, any_outcome(), 0..100_000_i64, any::<bool>()).prop_map(
        |(run, browser, outcome, duration_ms, mass_failure)| Observation {
            order_at: Timestamp(1_000 * (run / 2)),
            duration_ms,
            mass_failure,
            ..seen(run, browser, outcome)
        },
    )
}

/// Batches of results, arriving in any order and changing what came before.
fn batches(
    one: impl Strategy<Value = Observation>,
    size: usize,
) -> impl Strategy<Value = Vec<Vec<Observation>>> {
    proptest::collection::vec(proptest::collection::vec(one, 1..4), 1..size)
}

proptest! {
    #[test]
    fn any_order_of_results_and_changes_gives_the_state_of_the_sorted_ones(
        batches in batches(observations(1..60, 1..=3), 120),
    ) {
        let mut rows = Rows::default();
        let mut columns = None;
        for batch in &batches {
            columns = Some(rows.ingest(columns, batch));
        }
        prop_assert_eq!(columns, Some(rows.in_order()));
    }

    #[test]
    fn damaged_columns_are_refused_or_read_but_never_panic(
        by_browser: Vec<u8>, recent: Vec<u8>, recent_ms: Vec<u8>,
    ) {
        let mut columns = state_of(&[seen(1, 1, Outcome::Passed)]).to_columns();
        for (column, bytes) in [(0, by_browser), (1, recent), (2, recent_ms)] {
            let mut damaged = columns.clone();
            *[&mut damaged.by_browser, &mut damaged.recent, &mut damaged.recent_ms][column] = bytes.clone();
            if let Ok(mut state) = TestState::from_columns(&damaged) {
                let _ = state.apply(None, &seen(2, 1, Outcome::Failed));
                let _ = state.to_columns();
            }
            *[&mut columns.by_browser, &mut columns.recent, &mut columns.recent_ms][column] = bytes;
            let _ = TestState::from_columns(&columns);
        }
    }
}

proptest! {
    // Each case reads the whole window some three hundred times.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn histories_longer_than_the_window_agree_too(
        unordered in Just((1..320_i64).collect::<Vec<_>>()).prop_shuffle(),
        outcomes in proptest::collection::vec(any_outcome(), 320),
    ) {
        let mut rows = Rows::default();
        let mut columns = None;
        for run in unordered {
            let browser = run * 7 % 20;
            let outcome = outcomes[usize::try_from(run).unwrap()];
            columns = Some(rows.ingest(columns, &[seen(run, browser, outcome)]));
        }
        prop_assert_eq!(columns, Some(rows.in_order()));
    }
}
