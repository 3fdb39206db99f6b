//! The budget under load, without a request around it.

use futures::FutureExt as _;

use super::*;

const IMPATIENT: Duration = Duration::ZERO;

fn smallest() -> MemoryBudget {
    MemoryBudget::new(MIN_MEMORY_BYTES)
}

async fn holding(budget: &MemoryBudget, bytes: u64) -> Reservation {
    let mut reservation = budget.reserve();
    reservation.grow(Resource::Memory, bytes).await.expect("room");
    reservation
}

#[tokio::test]
async fn only_the_oldest_grows_when_memory_is_short_and_always_can() {
    let budget = smallest();
    let mut oldest = holding(&budget, MIB).await;
    let mut second = holding(&budget, MIB).await;
    let mut third = holding(&budget, MIB).await;
    // 47 MiB are the oldest's to come, so 14 of the other 17 are left.
    let _fourth = holding(&budget, 14 * MIB).await;
    let mut third_grows = Box::pin(third.grow(Resource::Memory, 8 * MIB));
    assert!(third_grows.as_mut().now_or_never().is_none());
    let mut second_grows = Box::pin(second.grow(Resource::Memory, 8 * MIB));
    assert!(second_grows.as_mut().now_or_never().is_none());
    oldest.grow(Resource::Memory, 47 * MIB).now_or_never().expect("at once").expect("room");
    drop(oldest);
    // What it held is now the second one's to come.
    assert_eq!(second_grows.now_or_never(), Some(Ok(())));
    assert!(third_grows.as_mut().now_or_never().is_none());
    drop(second);
    assert_eq!(third_grows.now_or_never(), Some(Ok(())));
}

#[tokio::test]
async fn a_reservation_that_finds_no_room_in_time_is_refused_and_gives_back_what_it_held() {
    let budget = smallest().with_patience(IMPATIENT);
    let oldest = holding(&budget, MAX_MEMORY_OF_ONE).await;
    let mut other = holding(&budget, 10 * MIB).await;
    assert_eq!(other.grow(Resource::Memory, 7 * MIB).await, Err(BudgetExhausted));
    assert_eq!(other.grow(Resource::Memory, 6 * MIB).await, Ok(()));
    drop((oldest, other));
    assert_eq!(budget.used(Resource::Memory), 0);
}

#[tokio::test]
async fn disk_space_is_bounded_in_the_same_order_of_age() {
    let budget = smallest().with_patience(IMPATIENT);
    let mut oldest = budget.reserve();
    let mut other = budget.reserve();
    assert_eq!(other.grow(Resource::Disk, 3 * MIN_MEMORY_BYTES).await, Ok(()));
    assert_eq!(other.grow(Resource::Disk, 1).await, Err(BudgetExhausted));
    assert_eq!(oldest.grow(Resource::Disk, MIN_MEMORY_BYTES).await, Ok(()));
}

#[tokio::test]
async fn small_bodies_wait_for_no_large_one_until_their_allowance_is_used_up() {
    let budget = smallest().with_patience(IMPATIENT);
    let oldest = holding(&budget, MAX_MEMORY_OF_ONE).await;
    let large = holding(&budget, MIN_MEMORY_BYTES - MAX_MEMORY_OF_ONE).await;
    let mut small = Vec::new();
    for _ in 0..MIN_MEMORY_BYTES / SMALL_PART / SMALL_BYTES {
        small.push(holding(&budget, SMALL_BYTES).await);
    }
    let mut late = budget.reserve();
    assert_eq!(late.grow(Resource::Memory, SMALL_BYTES).await, Err(BudgetExhausted));
    // One that grows beyond it waits as a large one, and keeps what it has meanwhile.
    let mut grown = small.pop().expect("a small one");
    assert_eq!(grown.grow(Resource::Memory, 1).await, Err(BudgetExhausted));
    assert_eq!(grown.held(Resource::Memory), SMALL_BYTES);
    drop(large);
    assert_eq!(grown.grow(Resource::Memory, 1).await, Ok(()));
    assert_eq!(grown.held(Resource::Memory), SMALL_BYTES + 1);
    // By that its place in the allowance is free.
    assert_eq!(late.grow(Resource::Memory, SMALL_BYTES).await, Ok(()));
    grown.shrink_to(1);
    drop((oldest, small, late));
    assert_eq!(budget.used(Resource::Memory), 1);
    drop(grown);
    assert_eq!(budget.used(Resource::Memory), 0);
}

#[tokio::test]
async fn an_address_that_is_not_recognised_holds_a_part_unless_it_has_the_oldest() {
    let budget = MemoryBudget::default().with_patience(IMPATIENT);
    let oldest = holding(&budget, MIB).await;
    let part = DEFAULT_MEMORY_BYTES / STRANGER_PART;
    let mut one = budget.reserve_for(Client::stranger(&[1]));
    assert_eq!(one.grow(Resource::Memory, part - 8 * MIB).await, Ok(()));
    let mut same = budget.reserve_for(Client::stranger(&[1]));
    assert_eq!(same.grow(Resource::Memory, 9 * MIB).await, Err(BudgetExhausted));
    assert_eq!(same.grow(Resource::Memory, 8 * MIB).await, Ok(()));
    let mut other = budget.reserve_for(Client::stranger(&[2]));
    assert_eq!(other.grow(Resource::Memory, 9 * MIB).await, Ok(()));
    assert_eq!(budget.reserve().grow(Resource::Memory, 9 * MIB).await, Ok(()));
    drop(oldest);
    assert_eq!(one.grow(Resource::Memory, MIB).await, Ok(()));
    assert_eq!(same.grow(Resource::Memory, 1).await, Err(BudgetExhausted));
    let allowance = DEFAULT_MEMORY_BYTES / SMALL_PART / STRANGER_PART;
    let mut small: Vec<Reservation> = Vec::new();
    for _ in 0..allowance / SMALL_BYTES {
        let mut reservation = budget.reserve_for(Client::stranger(&[1]));
        assert_eq!(reservation.grow(Resource::Memory, SMALL_BYTES).await, Ok(()));
        small.push(reservation);
    }
    let mut more = budget.reserve_for(Client::stranger(&[1]));
    assert_eq!(more.grow(Resource::Memory, SMALL_BYTES).await, Err(BudgetExhausted));
    drop((one, same, other, small, more));
    assert_eq!(budget.used(Resource::Memory), 0);
    assert!(budget.lock().clients.is_empty());
}

#[tokio::test]
async fn one_client_leaves_room_for_another_however_much_it_holds() {
    for bytes in [DEFAULT_MEMORY_BYTES, MIN_MEMORY_BYTES] {
        let budget = MemoryBudget::new(bytes).with_patience(IMPATIENT);
        let one = || budget.reserve_for(Client::account(UserId(1)));
        let mut held = Vec::new();
        loop {
            let mut reservation = one();
            if reservation.grow(Resource::Memory, MIB).await.is_err() {
                break;
            }
            held.push(reservation);
        }
        let mut other = budget.reserve_for(Client::account(UserId(2)));
        let left = bytes - (bytes / CLIENT_PART).max(MAX_MEMORY_OF_ONE);
        assert_eq!(other.grow(Resource::Memory, left).await, Ok(()), "of {bytes}");
        // The client that holds its share is served again once it gave something back.
        assert_eq!(one().grow(Resource::Memory, MIB).await, Err(BudgetExhausted));
        if held.len() > 1 {
            held.pop();
            assert_eq!(one().grow(Resource::Memory, MIB).await, Ok(()));
        }
        assert_eq!(held[0].grow(Resource::Memory, MAX_MEMORY_OF_ONE - MIB).await, Ok(()));
    }
}

#[tokio::test]
async fn applying_waits_for_its_turn_and_for_no_body() {
    let budget = smallest();
    let _body = holding(&budget, MIN_MEMORY_BYTES).await;
    let allowance = MIN_MEMORY_BYTES / APPLY_PART;
    let first = budget.applying(APPLY_BYTES).await;
    let mut large = Box::pin(budget.applying(APPLY_LARGE_BYTES));
    assert!(large.as_mut().now_or_never().is_none());
    // What would fit comes after what came before it.
    let mut late = Box::pin(budget.applying(allowance - APPLY_BYTES));
    assert!(late.as_mut().now_or_never().is_none());
    drop(first);
    let large = large.now_or_never().expect("all of the allowance");
    assert!(late.as_mut().now_or_never().is_none());
    drop(large);
    assert!(late.now_or_never().is_some());
}

#[test]
fn files_get_what_no_body_may_need() {
    let budget = smallest();
    let mut rooms: Vec<Room> = Vec::new();
    while let Some(room) = Some(budget.room(IN_MEMORY_BYTES)).filter(|room| room.bytes() > 0) {
        rooms.push(room);
    }
    assert_eq!(rooms.len() as u64, MIN_MEMORY_BYTES / FILES_PART / MIB);
    rooms[0].shrink(IN_MEMORY_BYTES - 100);
    assert_eq!(budget.room(IN_MEMORY_BYTES).bytes(), 0);
    assert_eq!(budget.room(100).bytes(), 100);
    rooms.clear();
    assert_eq!(budget.used(Resource::Memory), 0);
}
