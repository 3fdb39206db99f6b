use super::*;

const NOW: Timestamp = Timestamp(10_000_000);

fn slot(index: i64, generation: i64, state: SlotState) -> Slot {
    Slot {
        shard_index: index,
        ordinal: index * 10 + generation,
        generation,
        job_attempt: None,
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

fn slots_with_total(all: &[Slot], total: i64) -> Slots<'_> {
    Slots { all, shard_total: (total > 1).then_some(total), is_rerun: false }
}

fn is_complete(all: &[Slot], total: i64) -> bool {
    slots_with_total(all, total).is_complete(NOW, &Patience::default())
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
    let outcome = |all: &[Slot]| slots_with_total(all, 1).outcome(RunStatus::Passed);
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
    assert_eq!(
        slots_with_total(&[failed.clone(), slot(2, 0, Finished)], 2).outcome(RunStatus::Passed),
        RunStatus::Failed
    );
    let retried = [failed, slot(1, 1, Finished), slot(2, 0, Finished)];
    assert_eq!(slots_with_total(&retried, 2).outcome(RunStatus::Passed), RunStatus::Passed);
    let lost = [slot(1, 0, Finished), slot(1, 1, Lost), slot(2, 0, Finished)];
    assert_eq!(slots_with_total(&lost, 2).outcome(RunStatus::Passed), RunStatus::Interrupted);
    let silent = Slot { claimed: None, ..slot(0, 0, Finished) };
    assert_eq!(slots_with_total(&[silent], 1).outcome(RunStatus::TimedOut), RunStatus::TimedOut);
}

#[test]
fn a_leg_beside_a_live_one_shares_its_generation_and_a_retry_opens_the_next() {
    use SlotState::{Finished, Live, Lost, Setup};
    assert_eq!(slots_with_total(&[], 2).generation_of_new(1, None, false).number, 0);
    assert_eq!(slots_with_total(&[slot(1, 0, Live)], 2).generation_of_new(1, None, false).number, 0);
    for over in [Finished, Lost, Setup] {
        assert_eq!(
            slots_with_total(&[slot(1, 0, over)], 2).generation_of_new(1, None, false).number,
            1,
            "{over:?}"
        );
    }
    assert_eq!(
        slots_with_total(&[slot(1, 0, Lost), slot(1, 1, Live)], 2).generation_of_new(1, None, false).number,
        1
    );
    assert_eq!(slots_with_total(&[slot(1, 0, Live)], 2).generation_of_new(2, None, false).number, 0);
}

#[test]
fn a_late_shard_joins_what_waits_for_it_and_repeats_what_is_over() {
    use SlotState::{Finished, Lost};
    let slots = [slot(1, 0, Finished), slot(2, 0, Lost)];
    let newest = |status, end_reason| Newest {
        status,
        end_reason,
        last_activity_at: NOW,
        slots: slots_with_total(&slots, 3),
    };
    let join = |newest: Newest<'_>, index| newest.joined_by(index, None, None, NOW, &Patience::default());
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
            slots: slots_with_total(&slots, 2),
        };
        let start = Timestamp(NOW.0 - earlier_ms);
        newest.joined_by(Some(index), Some(start), None, NOW, &Patience::default())
    };
    let patience = Patience::default().shard_join_ms;
    assert_eq!(join(1, patience), Joining::Join, "another leg of the same pipeline");
    assert_eq!(join(1, patience + 1), Joining::Earlier);
    assert_eq!(join(2, patience + 1), Joining::Join, "that shard is still missing");
}

#[test]
fn attempts_of_a_job_are_generations_in_their_order_whenever_they_arrive() {
    use SlotState::{Finished, Live};
    let attempt = |generation, attempt| Slot { job_attempt: Some(attempt), ..slot(1, generation, Finished) };
    let placed = |all: &[Slot], attempt, is_repeat| {
        let Generation { number, is_inserted } =
            slots_with_total(all, 1).generation_of_new(1, Some(attempt), is_repeat);
        (number, is_inserted)
    };
    assert_eq!(placed(&[], 3, false), (0, false));
    assert_eq!(placed(&[attempt(0, 1)], 2, false), (1, false));
    assert_eq!(
        placed(&[attempt(0, 1), attempt(1, 3)], 2, false),
        (1, true),
        "a late one moves the others up"
    );
    assert_eq!(placed(&[attempt(0, 2)], 1, false), (0, true));
    assert_eq!(
        placed(&[attempt(0, 1), attempt(1, 2)], 1, false),
        (0, false),
        "a late leg of the first attempt"
    );
    assert_eq!(placed(&[attempt(0, 1)], 1, true), (1, false), "repeated within one attempt");
    let live = Slot { state: Live, ..attempt(0, 1) };
    assert_eq!(placed(std::slice::from_ref(&live), 1, false), (0, false));
    assert_eq!(placed(&[live], 2, false), (1, false), "a re-run while the first still goes on");
}

#[test]
fn a_further_attempt_of_a_job_finds_its_run_however_late() {
    let first = Slot { job_attempt: Some(1), ..slot(1, 0, SlotState::Finished) };
    let join = |attempt| {
        let slots = Slots { all: std::slice::from_ref(&first), shard_total: Some(2), is_rerun: false };
        let newest =
            Newest { status: RunStatus::Failed, end_reason: None, last_activity_at: Timestamp(0), slots };
        let late = Timestamp(30 * 24 * 60 * 60 * 1000);
        newest.joined_by(Some(1), None, attempt, late, &Patience::default())
    };
    assert_eq!(join(Some(2)), Joining::Rerun);
    assert_eq!(join(Some(1)), Joining::Apart);
    assert_eq!(join(None), Joining::Apart);
}

#[test]
fn a_run_lasts_from_its_first_start_to_its_last_end_and_waits_for_no_rerun() {
    let ran = |index, generation, start, ms| Slot {
        start_time: Timestamp(start),
        duration_ms: Some(ms),
        ..slot(index, generation, SlotState::Finished)
    };
    let first = [ran(1, 0, 0, 100), ran(2, 0, 500, 100)];
    assert_eq!(slots_with_total(&first, 2).duration_ms(), Some(600), "the gap between shards counts");
    let again = [first.as_slice(), &[ran(2, 1, 9_000, 50)]].concat();
    assert_eq!(slots_with_total(&again, 2).duration_ms(), Some(650), "the time until the re-run does not");
    let meanwhile = [first.as_slice(), &[ran(1, 1, 300, 400)]].concat();
    assert_eq!(slots_with_total(&meanwhile, 2).duration_ms(), Some(700));
    let lost = Slot { duration_ms: None, state: SlotState::Lost, ..ran(2, 0, 500, 0) };
    let retried = [ran(1, 0, 0, 100), lost, ran(2, 1, 9_000, 50)];
    assert_eq!(slots_with_total(&retried, 2).duration_ms(), Some(9_050), "a lost shard was waited for");
}
