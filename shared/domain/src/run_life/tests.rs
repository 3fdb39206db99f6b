use super::*;

const NOW: Timestamp = Timestamp(10_000_000);

fn slot(index: i64, generation: i64, state: SlotState) -> Slot {
    Slot {
        shard_index: index,
        ordinal: index * 10 + generation,
        generation,
        state,
        claimed: (state == SlotState::Finished).then_some(RunStatus::Passed),
        start_time: NOW,
        duration_ms: Some(100),
        waiting: false,
        opened_at: NOW,
        begun_at: (state != SlotState::Setup).then_some(NOW),
        last_activity_at: NOW,
    }
}

fn of(all: &[Slot], total: i64) -> Slots<'_> {
    Slots { all, shard_total: (total > 1).then_some(total), is_rerun: false }
}

fn is_complete(all: &[Slot], total: i64) -> bool {
    of(all, total).is_complete(NOW, &Patience::default())
}

#[test]
fn a_lost_slot_whose_place_another_took_says_nothing_until_it_is_heard_of() {
    use SlotState::{Finished, Live, Lost};
    let at = |ordinal: i64, state, (opened, last): (i64, i64)| Slot {
        ordinal,
        opened_at: Timestamp(opened),
        start_time: Timestamp(opened),
        last_activity_at: Timestamp(last),
        ..slot(1, 0, state)
    };
    let outcome = |all: &[Slot]| of(all, 1).outcome(RunStatus::Passed);
    let retry = at(1, Finished, (160, 400));
    assert_eq!(outcome(&[at(0, Lost, (100, 150)), retry.clone()]), RunStatus::Passed);
    assert_eq!(outcome(&[at(0, Lost, (100, 170)), retry.clone()]), RunStatus::Interrupted);
    assert_eq!(outcome(&[at(0, Live, (100, 150)), retry.clone()]), RunStatus::Interrupted);
    assert_eq!(outcome(&[at(0, Lost, (100, 150))]), RunStatus::Interrupted);
    let twice = [at(0, Lost, (100, 150)), at(1, Lost, (160, 180)), at(2, Finished, (190, 400))];
    assert_eq!(outcome(&twice), RunStatus::Passed);
    let beside = [at(0, Finished, (90, 400)), at(1, Lost, (100, 150)), at(2, Finished, (160, 400))];
    assert_eq!(outcome(&beside), RunStatus::Interrupted, "it may have taken the place of either");
    let kept = |ms| Slot {
        claimed: Some(RunStatus::Interrupted),
        duration_ms: Some(ms),
        ..at(0, Finished, (100, 500))
    };
    assert_eq!(outcome(&[kept(50), retry.clone()]), RunStatus::Passed);
    assert_eq!(outcome(&[kept(70), retry]), RunStatus::Interrupted);
}

#[test]
fn a_run_is_complete_when_every_index_finished_and_nobody_is_at_work() {
    use SlotState::{Finished, Live, Lost, Setup};
    assert!(!is_complete(&[], 1));
    assert!(is_complete(&[slot(0, 0, Finished)], 1));
    assert!(!is_complete(&[slot(1, 0, Finished)], 2));
    assert!(!is_complete(&[slot(1, 0, Finished), slot(1, 0, Finished)], 2), "one twice counts once");
    assert!(is_complete(&[slot(1, 0, Finished), slot(2, 0, Finished)], 2));
    assert!(!is_complete(&[slot(1, 0, Finished), slot(2, 0, Finished), slot(2, 0, Live)], 2));
    assert!(!is_complete(&[slot(1, 0, Finished), slot(2, 0, Lost)], 2));
    assert!(is_complete(&[slot(1, 0, Lost), slot(1, 1, Finished), slot(2, 0, Finished)], 2));
    assert!(!is_complete(&[slot(1, 0, Finished), slot(2, 0, Finished), slot(2, 1, Setup)], 2));
    assert!(
        is_complete(&[slot(1, 0, Setup), slot(1, 1, Finished), slot(2, 0, Finished)], 2),
        "a set-up whose place was taken is not waited for"
    );
}

#[test]
fn the_worst_claim_of_the_newest_generation_decides() {
    use SlotState::{Finished, Lost};
    let failed = Slot { claimed: Some(RunStatus::Failed), ..slot(1, 0, Finished) };
    assert_eq!(of(&[failed.clone(), slot(2, 0, Finished)], 2).outcome(RunStatus::Passed), RunStatus::Failed);
    let retried = [failed, slot(1, 1, Finished), slot(2, 0, Finished)];
    assert_eq!(of(&retried, 2).outcome(RunStatus::Passed), RunStatus::Passed);
    let lost = [slot(1, 0, Finished), slot(1, 1, Lost), slot(2, 0, Finished)];
    assert_eq!(of(&lost, 2).outcome(RunStatus::Passed), RunStatus::Interrupted);
    let silent = Slot { claimed: None, ..slot(0, 0, Finished) };
    assert_eq!(of(&[silent], 1).outcome(RunStatus::TimedOut), RunStatus::TimedOut);
}

#[test]
fn a_leg_beside_a_live_one_shares_its_generation_and_a_retry_opens_the_next() {
    use SlotState::{Finished, Live, Lost, Setup};
    assert_eq!(of(&[], 2).next_generation(1), 0);
    assert_eq!(of(&[slot(1, 0, Live)], 2).next_generation(1), 0);
    for over in [Finished, Lost, Setup] {
        assert_eq!(of(&[slot(1, 0, over)], 2).next_generation(1), 1, "{over:?}");
    }
    assert_eq!(of(&[slot(1, 0, Lost), slot(1, 1, Live)], 2).next_generation(1), 1);
    assert_eq!(of(&[slot(1, 0, Live)], 2).next_generation(2), 0);
}

#[test]
fn a_late_shard_joins_what_waits_for_it_and_repeats_what_is_over() {
    use SlotState::{Finished, Lost};
    let slots = [slot(1, 0, Finished), slot(2, 0, Lost)];
    let newest =
        |status, end_reason| Newest { status, end_reason, last_activity_at: NOW, slots: of(&slots, 3) };
    let join = |newest: Newest<'_>, index| newest.joined_by(index, None, NOW, &Patience::default());
    assert_eq!(join(newest(RunStatus::Running, None), Some(1)), Joining::Join);
    let waited = newest(RunStatus::Interrupted, Some(EndReason::ShardsMissing));
    assert_eq!(join(waited, Some(2)), Joining::Join);
    let stopped = newest(RunStatus::Interrupted, Some(EndReason::Client));
    assert_eq!(join(stopped, Some(2)), Joining::Apart);
    assert_eq!(join(newest(RunStatus::Failed, None), Some(2)), Joining::Rerun);
    assert_eq!(join(newest(RunStatus::Failed, None), None), Joining::Join, "the third index never began");
    let old = Newest { last_activity_at: Timestamp(NOW.0 - 21_600_001), ..newest(RunStatus::Running, None) };
    assert_eq!(join(old, Some(3)), Joining::Apart);
}

#[test]
fn a_batch_kept_for_long_leaves_the_run_alone_that_has_its_shard_since() {
    let slots = [slot(1, 0, SlotState::Live)];
    let join = |index, earlier_ms| {
        let newest = Newest {
            status: RunStatus::Running,
            end_reason: None,
            last_activity_at: NOW,
            slots: of(&slots, 2),
        };
        let start = Timestamp(NOW.0 - earlier_ms);
        newest.joined_by(Some(index), Some(start), NOW, &Patience::default())
    };
    let patience = Patience::default().shard_join_ms;
    assert_eq!(join(1, patience), Joining::Join, "another leg of the same pipeline");
    assert_eq!(join(1, patience + 1), Joining::Earlier);
    assert_eq!(join(2, patience + 1), Joining::Join, "that shard is still missing");
}
