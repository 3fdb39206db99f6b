//! One budget for all request bodies of a process: the memory they take while
//! they are received and applied, and the disk space of those that are too
//! large for memory.
//!
//! Reservations are ordered by age. As much as the oldest one may still need is
//! never given to others, so the oldest always goes on and half-read bodies
//! cannot block each other. The others wait, and are refused after a while.
//!
//! Small bodies have an allowance of their own, so that they do not wait for
//! large ones. What one client holds is capped, so that others find room however
//! slowly it sends: an account or, without one, an address.
//!
//! Applying pending results has an allowance of its own as well: it never waits
//! for bodies that are still being received, nor they for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_domain::ids::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

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
/// One client holds at most this part of each resource.
const CLIENT_PART: u64 = 2;
/// One address that is not recognised holds at most this part of each resource.
const STRANGER_PART: u64 = 4;
/// Received files hold at most this part of the memory; the others go to disk.
const FILES_PART: u64 = 8;
/// The allowance for applying pending results is this part of the memory budget,
/// on top of it.
const APPLY_PART: u64 = 4;
/// Memory that applying a usual batch of pending results takes at most.
pub const APPLY_BYTES: u64 = 8 * MIB;
/// Memory that applying a batch of unusually large pending results takes at most.
pub const APPLY_LARGE_BYTES: u64 = 40 * MIB;
/// What one permit of the allowance for applying stands for, bytes.
const APPLY_UNIT_BYTES: u64 = 1024;
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
    /// Units of the allowance for applying that are free; first come, first served.
    applying: Arc<Semaphore>,
    apply_units: u32,
}

/// Whose reservations are capped together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    key: Vec<u8>,
    part: u64,
}

impl Client {
    /// Everybody who acts for an account.
    #[must_use]
    pub fn account(user: UserId) -> Self {
        Self::new(b"account ", &user.get().to_le_bytes(), CLIENT_PART)
    }

    /// Everybody at one address, where nobody has to sign in.
    #[must_use]
    pub fn address(address: &[u8]) -> Self {
        Self::new(b"address ", address, CLIENT_PART)
    }

    /// Everybody at one address who is not recognised where others are.
    #[must_use]
    pub fn stranger(address: &[u8]) -> Self {
        Self::new(b"stranger ", address, STRANGER_PART)
    }

    fn new(kind: &[u8], name: &[u8], part: u64) -> Self {
        Self { key: [kind, name].concat(), part }
    }
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
    /// What reservations of one client hold together.
    clients: HashMap<Vec<u8>, Amounts>,
    /// Memory that received files hold.
    files: u64,
    next: u64,
    /// By age: the smallest number is the oldest.
    holders: BTreeMap<u64, Holder>,
    /// Those of them that wait.
    waiting: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Holder {
    held: Amounts,
    client: Option<Client>,
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
        let units = ledger.total[MEMORY] / APPLY_PART / APPLY_UNIT_BYTES;
        let apply_units = u32::try_from(units).unwrap_or(u32::MAX).max(1);
        let applying =
            Arc::new(Semaphore::new(usize::try_from(apply_units).unwrap_or(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { patience, ledger: Mutex::new(ledger), applying, apply_units }))
    }

    /// A reservation of nothing yet, younger than all others.
    #[must_use]
    pub fn reserve(&self) -> Reservation {
        self.hold(None)
    }

    /// The same for a client: all its reservations together are capped.
    #[must_use]
    pub fn reserve_for(&self, client: Client) -> Reservation {
        self.hold(Some(client))
    }

    fn hold(&self, client: Option<Client>) -> Reservation {
        let mut ledger = self.lock();
        let ticket = ledger.next;
        ledger.next += 1;
        ledger.holders.insert(ticket, Holder { client, ..Holder::default() });
        Reservation { budget: self.clone(), ticket }
    }

    /// Memory to apply pending results with, at most the whole allowance for that.
    /// Callers are served in the order in which they come. Whoever holds some must
    /// not ask for more.
    pub async fn applying(&self, bytes: u64) -> Applying {
        let units = u32::try_from(bytes.div_ceil(APPLY_UNIT_BYTES)).unwrap_or(u32::MAX);
        let units = units.min(self.0.apply_units);
        // It is never closed.
        Applying { _permit: Arc::clone(&self.0.applying).acquire_many_owned(units).await.ok() }
    }

    /// Memory for a received file, as far as there is any to spare; it never
    /// grows, so nobody waits for it.
    #[must_use]
    pub fn room(&self, bytes: usize) -> Room {
        let wanted = bytes.min(IN_MEMORY_BYTES);
        let mut ledger = self.lock();
        let is_share = ledger.files + wanted as u64 <= ledger.total[MEMORY] / FILES_PART;
        let bytes = if is_share && ledger.fits(None, MEMORY, wanted as u64) { wanted } else { 0 };
        ledger.used[MEMORY] += bytes as u64;
        ledger.files += bytes as u64;
        Room { budget: self.clone(), bytes }
    }

    /// Bytes of a resource that are reserved now.
    #[must_use]
    pub fn used(&self, resource: Resource) -> u64 {
        amount(&self.lock().used, resource)
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a resource; the allowance for small bodies is memory too.
const fn amount(amounts: &Amounts, resource: Resource) -> u64 {
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
            clients: HashMap::new(),
            files: 0,
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
        // The oldest large body always goes on, so its client is not asked.
        let is_capped = at == SMALL || !is_oldest;
        self.used[at].saturating_add(bytes).saturating_add(kept) <= self.total[at]
            && !(is_capped && self.exceeds_share(ticket, at, bytes))
    }

    /// Whether so many more bytes are more than the client of a reservation may
    /// hold. What is kept free for its oldest reservation counts as held.
    fn exceeds_share(&self, ticket: Option<u64>, at: usize, bytes: u64) -> bool {
        let holder = ticket.and_then(|ticket| self.holders.get(&ticket));
        let Some(client) = holder.and_then(|holder| holder.client.as_ref()) else { return false };
        let held = self.clients.get(&client.key).map_or(0, |held| held[at]);
        let oldest = self.holders.first_key_value().map(|(_, oldest)| oldest);
        let kept = oldest.filter(|oldest| oldest.client.as_ref() == Some(client));
        let kept = kept.map_or(0, |oldest| self.most_of_one[at].saturating_sub(oldest.held[at]));
        let share = (self.total[at] / client.part).max(self.most_of_one[at]);
        held.saturating_add(kept).saturating_add(bytes) > share
    }

    fn grant(&mut self, ticket: u64, at: usize, bytes: u64) {
        let Some(holder) = self.holders.get_mut(&ticket) else { return };
        holder.held[at] += bytes;
        self.used[at] += bytes;
        if let Some(client) = &holder.client {
            self.clients.entry(client.key.clone()).or_default()[at] += bytes;
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
        if let Some(client) = &holder.client
            && let Some(held) = self.clients.get_mut(&client.key)
        {
            held[at] -= bytes;
            if *held == [0; 3] {
                self.clients.remove(&client.key);
            }
        }
    }

    /// Grants immediately, or says where it will be told.
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
        let unused = amount(&held, Resource::Memory).saturating_sub(bytes);
        let large = unused.min(held[MEMORY]);
        ledger.give_back(self.ticket, MEMORY, large);
        ledger.give_back(self.ticket, SMALL, unused - large);
        ledger.pass_on();
    }

    /// Bytes reserved of a resource.
    #[must_use]
    pub fn held(&self, resource: Resource) -> u64 {
        self.budget.lock().holders.get(&self.ticket).map_or(0, |holder| amount(&holder.held, resource))
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

/// Memory to apply pending results with, until it is dropped.
#[derive(Debug)]
pub struct Applying {
    _permit: Option<OwnedSemaphorePermit>,
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
        ledger.files -= unused as u64;
        ledger.pass_on();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests;
