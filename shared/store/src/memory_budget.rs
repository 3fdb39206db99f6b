//! One budget for all request bodies of a process: the memory they take while
//! they are received and applied, and the disk space of those that are too
//! large for memory.
//!
//! Reservations are ordered by age. As much as the oldest one may still need is
//! never given to others, so the oldest always goes on and half-read bodies
//! cannot block each other. The others wait, and are refused after a while.
//!
//! Small bodies have an allowance of their own, so that they do not wait for
//! large ones. What callers hold who are not recognised is capped per address.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

const MIB: u64 = 1024 * 1024;
/// The budget when none is configured, bytes.
pub const DEFAULT_MEMORY_BYTES: u64 = 256 * MIB;
/// The smallest budget: less would admit one body at a time.
pub const MIN_MEMORY_BYTES: u64 = 64 * MIB;
/// Most memory of one reservation that is always granted in the end, bytes.
pub const MAX_MEMORY_OF_ONE: u64 = 48 * MIB;
/// Disk space, as a multiple of the memory budget. One body takes at most as
/// much as the memory budget.
const DISK_FACTOR: u64 = 4;
/// A body of at most so many bytes does not wait for large ones.
pub const SMALL_BODY_BYTES: u64 = 64 * 1024;
/// Memory of one reservation that comes out of the allowance for small bodies:
/// such a body with half of it to spare, and three times as much to parse it.
pub const SMALL_BYTES: u64 = 5 * SMALL_BODY_BYTES;
/// The allowance for small bodies is this part of the memory budget, on top of it.
const SMALL_PART: u64 = 4;
/// One address that is not recognised holds at most this part of each resource.
const ADDRESS_PART: u64 = 4;
/// Most bytes of a received file that are worth keeping in memory.
pub const IN_MEMORY_BYTES: usize = 1024 * 1024;
/// How long a reservation waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Memory of the process.
    Memory,
    /// Space for temporary files.
    Disk,
}

/// Others hold the budget, and it took too long until they gave it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the budget for request bodies is used up")]
pub struct BudgetExhausted;

/// The budget of a process. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    patience: Duration,
    ledger: Mutex<Ledger>,
}

/// Bytes of each resource, and of the allowance for small bodies.
type Amounts = [u64; 3];

const MEMORY: usize = Resource::Memory as usize;
/// Where the allowance for small bodies is counted.
const SMALL: usize = 2;

#[derive(Debug)]
struct Ledger {
    total: Amounts,
    most_of_one: Amounts,
    used: Amounts,
    /// What reservations of one address hold together.
    addresses: HashMap<Vec<u8>, Amounts>,
    next: u64,
    /// By age: the smallest number is the oldest.
    holders: BTreeMap<u64, Holder>,
    /// Those of them that wait.
    waiting: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Holder {
    held: Amounts,
    /// Set when the caller is not recognised.
    address: Option<Vec<u8>>,
    request: Option<Request>,
}

#[derive(Debug)]
struct Request {
    at: usize,
    bytes: u64,
    granted: oneshot::Sender<()>,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(DEFAULT_MEMORY_BYTES)
    }
}

impl MemoryBudget {
    /// A budget of so many bytes of memory.
    #[must_use]
    pub fn new(memory_bytes: u64) -> Self {
        Self::with(Ledger::new(memory_bytes), PATIENCE)
    }

    /// The same budget, whose reservations wait only so long.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        let memory_bytes = self.lock().total[MEMORY];
        Self::with(Ledger::new(memory_bytes), patience)
    }

    fn with(ledger: Ledger, patience: Duration) -> Self {
        Self(Arc::new(Shared { patience, ledger: Mutex::new(ledger) }))
    }

    /// A reservation of nothing yet, younger than all others.
    #[must_use]
    pub fn reserve(&self) -> Reservation {
        self.hold(None)
    }

    /// The same for a caller who is not recognised: all reservations of such an
    /// address together are capped.
    #[must_use]
    pub fn reserve_for(&self, address: Vec<u8>) -> Reservation {
        self.hold(Some(address))
    }

    fn hold(&self, address: Option<Vec<u8>>) -> Reservation {
        let mut ledger = self.lock();
        let ticket = ledger.next;
        ledger.next += 1;
        ledger.holders.insert(ticket, Holder { address, ..Holder::default() });
        Reservation { budget: self.clone(), ticket }
    }

    /// Memory for a received file, as far as there is any to spare; it never
    /// grows, so nobody waits for it.
    #[must_use]
    pub fn room(&self, bytes: usize) -> Room {
        let wanted = bytes.min(IN_MEMORY_BYTES);
        let mut ledger = self.lock();
        let bytes = if ledger.fits(None, MEMORY, wanted as u64) { wanted } else { 0 };
        ledger.used[MEMORY] += bytes as u64;
        Room { budget: self.clone(), bytes }
    }

    /// Bytes of a resource that are reserved now.
    #[must_use]
    pub fn used(&self, resource: Resource) -> u64 {
        of(&self.lock().used, resource)
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a resource; the allowance for small bodies is memory too.
const fn of(amounts: &Amounts, resource: Resource) -> u64 {
    match resource {
        Resource::Memory => amounts[MEMORY] + amounts[SMALL],
        Resource::Disk => amounts[Resource::Disk as usize],
    }
}

impl Ledger {
    fn new(memory_bytes: u64) -> Self {
        Self {
            total: [memory_bytes, memory_bytes.saturating_mul(DISK_FACTOR), memory_bytes / SMALL_PART],
            most_of_one: [MAX_MEMORY_OF_ONE.min(memory_bytes), memory_bytes, 0],
            used: [0; 3],
            addresses: HashMap::new(),
            next: 0,
            holders: BTreeMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// Whether so many bytes may be granted: what the oldest reservation, or
    /// one that is yet to come, may need stays free.
    fn fits(&self, ticket: Option<u64>, at: usize, bytes: u64) -> bool {
        let oldest = self.holders.first_key_value();
        let is_oldest = oldest.is_some_and(|(oldest, _)| Some(*oldest) == ticket);
        let kept = match oldest {
            Some(_) if is_oldest => 0,
            Some((_, oldest)) => self.most_of_one[at].saturating_sub(oldest.held[at]),
            None => self.most_of_one[at],
        };
        // The oldest large body always goes on, so its address is not asked.
        let is_capped = at == SMALL || !is_oldest;
        self.used[at].saturating_add(bytes).saturating_add(kept) <= self.total[at]
            && !(is_capped && self.exceeds_cap(ticket, at, bytes))
    }

    /// Whether so many more bytes are more than the address of a reservation may hold.
    fn exceeds_cap(&self, ticket: Option<u64>, at: usize, bytes: u64) -> bool {
        let holder = ticket.and_then(|ticket| self.holders.get(&ticket));
        let Some(address) = holder.and_then(|holder| holder.address.as_ref()) else { return false };
        let held = self.addresses.get(address).map_or(0, |held| held[at]);
        let cap = (self.total[at] / ADDRESS_PART).max(self.most_of_one[at]);
        held.saturating_add(bytes) > cap
    }

    fn grant(&mut self, ticket: u64, at: usize, bytes: u64) {
        let Some(holder) = self.holders.get_mut(&ticket) else { return };
        holder.held[at] += bytes;
        self.used[at] += bytes;
        if let Some(address) = &holder.address {
            self.addresses.entry(address.clone()).or_default()[at] += bytes;
        }
        if at == MEMORY {
            // The request included what was small until now.
            let small = holder.held[SMALL];
            self.give_back(ticket, SMALL, small);
        }
    }

    fn give_back(&mut self, ticket: u64, at: usize, bytes: u64) {
        let Some(holder) = self.holders.get_mut(&ticket) else { return };
        holder.held[at] -= bytes;
        self.used[at] -= bytes;
        if let Some(address) = &holder.address
            && let Some(held) = self.addresses.get_mut(address)
        {
            held[at] -= bytes;
            if *held == [0; 3] {
                self.addresses.remove(address);
            }
        }
    }

    /// Grants at once, or says where it will be told.
    fn request(&mut self, ticket: u64, resource: Resource, bytes: u64) -> Option<oneshot::Receiver<()>> {
        let held = self.holders.get(&ticket).map_or([0; 3], |holder| holder.held);
        let (at, mut bytes) = (resource as usize, bytes);
        if at == MEMORY && held[MEMORY] == 0 {
            if held[SMALL] + bytes <= SMALL_BYTES && self.fits(Some(ticket), SMALL, bytes) {
                self.grant(ticket, SMALL, bytes);
                return None;
            }
            // It becomes a large one, with what it has.
            bytes += held[SMALL];
        }
        if self.fits(Some(ticket), at, bytes) {
            self.grant(ticket, at, bytes);
            return None;
        }
        let (granted, told) = oneshot::channel();
        if let Some(holder) = self.holders.get_mut(&ticket) {
            holder.request = Some(Request { at, bytes, granted });
            self.waiting.insert(ticket);
        }
        Some(told)
    }

    /// Takes a request back; false when it was granted meanwhile.
    fn withdraw(&mut self, ticket: u64) -> bool {
        self.waiting.remove(&ticket);
        self.holders.get_mut(&ticket).is_some_and(|holder| holder.request.take().is_some())
    }

    /// Grants what fits now, to the oldest first.
    fn pass_on(&mut self) {
        for ticket in self.waiting.clone() {
            let wanted = self.holders.get(&ticket).and_then(|holder| holder.request.as_ref());
            let Some((at, bytes)) = wanted.map(|request| (request.at, request.bytes)) else {
                continue;
            };
            if self.fits(Some(ticket), at, bytes) {
                self.grant(ticket, at, bytes);
                self.waiting.remove(&ticket);
                let request = self.holders.get_mut(&ticket).and_then(|holder| holder.request.take());
                // One that has left gives it back when its reservation is dropped.
                let _ = request.map(|request| request.granted.send(()));
            }
        }
    }
}

/// What one request holds of the budget, until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    ticket: u64,
}

impl Reservation {
    /// Reserves further bytes, after waiting for them if need be.
    ///
    /// # Errors
    /// [`BudgetExhausted`] when the wait takes too long.
    pub async fn grow(&mut self, resource: Resource, bytes: u64) -> Result<(), BudgetExhausted> {
        let told = self.budget.lock().request(self.ticket, resource, bytes);
        let Some(told) = told else { return Ok(()) };
        match tokio::time::timeout(self.budget.0.patience, told).await {
            Ok(Ok(())) => Ok(()),
            _ if self.budget.lock().withdraw(self.ticket) => Err(BudgetExhausted),
            _ => Ok(()),
        }
    }

    /// Reserves up to `bytes` of memory in all, which counts what is reserved.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub async fn grow_to(&mut self, bytes: u64) -> Result<(), BudgetExhausted> {
        let missing = bytes.saturating_sub(self.held(Resource::Memory));
        if missing == 0 { Ok(()) } else { self.grow(Resource::Memory, missing).await }
    }

    /// Gives back all memory but so many bytes.
    pub fn shrink_to(&mut self, bytes: u64) {
        let mut ledger = self.budget.lock();
        let Some(holder) = ledger.holders.get(&self.ticket) else { return };
        let held = holder.held;
        let unused = of(&held, Resource::Memory).saturating_sub(bytes);
        let large = unused.min(held[MEMORY]);
        ledger.give_back(self.ticket, MEMORY, large);
        ledger.give_back(self.ticket, SMALL, unused - large);
        ledger.pass_on();
    }

    /// Bytes reserved of a resource.
    #[must_use]
    pub fn held(&self, resource: Resource) -> u64 {
        self.budget.lock().holders.get(&self.ticket).map_or(0, |holder| of(&holder.held, resource))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut ledger = self.budget.lock();
        ledger.waiting.remove(&self.ticket);
        let held = ledger.holders.get(&self.ticket).map_or([0; 3], |holder| holder.held);
        for (at, held) in held.into_iter().enumerate() {
            ledger.give_back(self.ticket, at, held);
        }
        ledger.holders.remove(&self.ticket);
        ledger.pass_on();
    }
}

/// Memory that one received file may take, until it is dropped.
#[derive(Debug)]
pub struct Room {
    budget: MemoryBudget,
    bytes: usize,
}

impl Room {
    /// How many bytes fit.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back all but so many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let unused = self.bytes.saturating_sub(bytes);
        self.bytes -= unused;
        let mut ledger = self.budget.lock();
        ledger.used[MEMORY] -= unused as u64;
        ledger.pass_on();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
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
        let part = DEFAULT_MEMORY_BYTES / ADDRESS_PART;
        let mut one = budget.reserve_for(vec![1]);
        assert_eq!(one.grow(Resource::Memory, part - 8 * MIB).await, Ok(()));
        let mut same = budget.reserve_for(vec![1]);
        assert_eq!(same.grow(Resource::Memory, 9 * MIB).await, Err(BudgetExhausted));
        assert_eq!(same.grow(Resource::Memory, 8 * MIB).await, Ok(()));
        let mut other = budget.reserve_for(vec![2]);
        assert_eq!(other.grow(Resource::Memory, 9 * MIB).await, Ok(()));
        assert_eq!(budget.reserve().grow(Resource::Memory, 9 * MIB).await, Ok(()));
        drop(oldest);
        assert_eq!(one.grow(Resource::Memory, MIB).await, Ok(()));
        assert_eq!(same.grow(Resource::Memory, 1).await, Err(BudgetExhausted));
        let allowance = DEFAULT_MEMORY_BYTES / SMALL_PART / ADDRESS_PART;
        let mut small: Vec<Reservation> = Vec::new();
        for _ in 0..allowance / SMALL_BYTES {
            let mut reservation = budget.reserve_for(vec![1]);
            assert_eq!(reservation.grow(Resource::Memory, SMALL_BYTES).await, Ok(()));
            small.push(reservation);
        }
        let mut more = budget.reserve_for(vec![1]);
        assert_eq!(more.grow(Resource::Memory, SMALL_BYTES).await, Err(BudgetExhausted));
        drop((one, same, other, small, more));
        assert_eq!(budget.used(Resource::Memory), 0);
        assert!(budget.lock().addresses.is_empty());
    }

    #[test]
    fn files_get_what_no_body_may_need() {
        let budget = smallest();
        let mut rooms: Vec<Room> = Vec::new();
        while let Some(room) = Some(budget.room(IN_MEMORY_BYTES)).filter(|room| room.bytes() > 0) {
            rooms.push(room);
        }
        assert_eq!(rooms.len() as u64, (MIN_MEMORY_BYTES - MAX_MEMORY_OF_ONE) / MIB);
        rooms[0].shrink(IN_MEMORY_BYTES - 100);
        assert_eq!(budget.room(IN_MEMORY_BYTES).bytes(), 0);
        assert_eq!(budget.room(100).bytes(), 100);
        rooms.clear();
        assert_eq!(budget.used(Resource::Memory), 0);
    }
}
