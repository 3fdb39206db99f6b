//! The write queue of a process: what its requests that stream results to runs
//! share. It holds nothing that correctness needs. `receive::write_coalescer`
//! works it off.
//!
//! Work that nobody waits for asks here until no results arrive.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, vec};

use callboard_domain::ids::{PackId, ProjectId, RunId};
use callboard_store::{Store, StoreError, evidence};
use tokio::sync::{Notify, oneshot};

use crate::Result;
use crate::stage::run_token::{Claim, Producer, Sender};
use crate::stage::staged_request::StagedRequest;

/// Clients that are remembered; beyond that, all are forgotten and checked again.
const MAX_CLIENTS: usize = 4_096;
/// Pack ids that are allocated together: allocating one by one would make every
/// request with evidence write one more row.
const PACK_ID_BATCH: usize = 64;
/// Locks for applying: runs with different locks are applied concurrently.
const LOCK_STRIPES: usize = 16;
/// How long no request must have arrived for the process to be idle: clients that
/// send one batch after the other pause for less.
const IDLE_WINDOW: Duration = Duration::from_millis(20);
/// How long work that grows cheaper with more runs waits for the process to be idle.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long work on a single run waits for it: a writer waits for a part of this at
/// most.
pub(crate) const SHORT_IDLE_TIMEOUT: Duration = Duration::from_millis(100);

/// Coalesces the writes of the requests of one process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct WriteCoalescer(pub(crate) Arc<WriteQueue>);

/// The state of a [`WriteCoalescer`].
#[derive(Default)]
pub(crate) struct WriteQueue {
    /// Whether requests are applied before they are answered.
    pub(crate) at_once: bool,
    waiting: Mutex<Vec<QueuedBatch>>,
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Staged requests that are about to be applied, by run.
    soon: Mutex<HashMap<RunId, Arc<PendingFold>>>,
    /// Senders that were authenticated here before.
    clients: Mutex<HashSet<Sender>>,
    /// Allocated ids for packs, ascending.
    packs: tokio::sync::Mutex<vec::IntoIter<PackId>>,
    folding: [tokio::sync::Mutex<()>; LOCK_STRIPES],
    counting: tokio::sync::Mutex<()>,
    /// Executions received since the aggregation backlog was last checked.
    brought: Mutex<HashMap<ProjectId, usize>>,
    arriving: Arriving,
}

/// Staged requests of a run that are about to be applied.
#[derive(Default)]
pub(crate) struct PendingFold {
    pub(crate) calls: AtomicUsize,
    pub(crate) are_many: Notify,
}

impl std::fmt::Debug for WriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteQueue").finish_non_exhaustive()
    }
}

impl WriteCoalescer {
    /// For a process that may be stopped as soon as it has answered: it applies every
    /// request before it answers.
    #[must_use]
    pub fn at_once() -> Self {
        Self(Arc::new(WriteQueue { at_once: true, ..WriteQueue::default() }))
    }

    /// Whether a sender was authenticated here before.
    pub(crate) fn is_known_client(&self, sender: Sender) -> bool {
        self.0.clients().contains(&sender)
    }

    /// Remembers, or forgets, that a sender is a client.
    pub(crate) fn remember_client(&self, sender: Sender, is_client: bool) {
        let mut clients = self.0.clients();
        if !is_client {
            clients.remove(&sender);
            return;
        }
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        clients.insert(sender);
    }

    /// Marks the process as busy until the guard is dropped.
    pub(crate) fn begin_request(&self) -> InFlightGuard {
        self.0.arriving.begin();
        InFlightGuard(Arc::clone(&self.0))
    }

    /// Waits until no results arrive in this process, at most for a time: background
    /// work should not delay requests.
    pub(crate) async fn wait_until_idle(&self, patience: Duration) {
        // Idle or not, the work is done now.
        let _is_idle = tokio::time::timeout(patience, self.0.arriving.wait_until_idle()).await;
    }

    /// Adds received executions. Returns their sum since it last returned one, as soon
    /// as that is `many`: checking the aggregation backlog after each request costs more
    /// than it helps.
    pub(crate) fn add_received(&self, project: ProjectId, executions: usize, many: usize) -> Option<usize> {
        if self.0.at_once {
            return Some(executions);
        }
        let mut brought = self.0.brought.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = brought.entry(project).or_default();
        *sum += executions;
        if *sum < many { None } else { brought.remove(&project) }
    }

    /// An id for a pack of evidence, higher than those before: of an attempt that is
    /// sent again the first evidence stays, which is that of the lowest.
    pub(crate) async fn pack_id(&self, store: &Store) -> Result<PackId> {
        let mut taken = self.0.packs.lock().await;
        if let Some(id) = taken.next() {
            return Ok(id);
        }
        let mut session = store.db().begin().await?;
        let ids = evidence::take_ids(&mut session, PACK_ID_BATCH).await?;
        session.commit().await?;
        *taken = ids.into_iter();
        Ok(taken.next().ok_or(StoreError::Damaged("a sequence gave no id"))?)
    }

    /// Serialises aggregation in this process: it locks the same runs, and waiting for
    /// those locks should not hold a connection.
    pub(crate) async fn aggregation_lock(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.counting.lock().await
    }

    /// Serialises applying the pending results of a run, for the same reason.
    pub(crate) async fn apply_lock(&self, run: RunId) -> tokio::sync::MutexGuard<'_, ()> {
        let place = usize::try_from(run.get().rem_euclid(LOCK_STRIPES as i64)).unwrap_or_default();
        self.0.folding[place].lock().await
    }
}

/// Counts requests that are being processed.
#[derive(Default)]
struct Arriving {
    now: AtomicUsize,
    /// Since the process started.
    ever: AtomicUsize,
    over: Notify,
}

impl Arriving {
    fn begin(&self) {
        self.now.fetch_add(1, Ordering::Relaxed);
        self.ever.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) {
        if self.now.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.over.notify_waiters();
        }
    }

    async fn wait_until_idle(&self) {
        loop {
            let over = self.over.notified();
            let before = self.ever.load(Ordering::Relaxed);
            if self.now.load(Ordering::Relaxed) > 0 {
                over.await;
                continue;
            }
            if before == 0 {
                return;
            }
            tokio::time::sleep(IDLE_WINDOW).await;
            if self.ever.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// Keeps the process busy until it is dropped.
pub(crate) struct InFlightGuard(Arc<WriteQueue>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.arriving.end();
    }
}

/// A request that waits for the writer.
pub(crate) struct QueuedBatch {
    pub(crate) claim: Claim,
    pub(crate) call: StagedRequest,
    pub(crate) told: oneshot::Sender<Result<BatchOutcome>>,
}

/// What became of a queued request.
pub(crate) enum BatchOutcome {
    /// It is staged.
    Kept(Producer),
    /// It has to be staged on its own, which also says why it is refused.
    Alone(Box<(Claim, StagedRequest)>),
}

impl WriteQueue {
    pub(crate) fn waiting(&self) -> MutexGuard<'_, Vec<QueuedBatch>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clients(&self) -> MutexGuard<'_, HashSet<Sender>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn soon(&self) -> MutexGuard<'_, HashMap<RunId, Arc<PendingFold>>> {
        self.soon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `most` requests from the front.
    pub(crate) fn take(&self, most: usize) -> Vec<QueuedBatch> {
        let mut waiting = self.waiting();
        let most = most.min(waiting.len());
        let later = waiting.split_off(most);
        mem::replace(&mut *waiting, later)
    }
}

impl BatchOutcome {
    pub(crate) fn alone(claim: Claim, call: StagedRequest) -> Self {
        Self::Alone(Box::new((claim, call)))
    }
}

impl QueuedBatch {
    /// Reports the outcome to the waiting request; `None` when it has to be staged on
    /// its own.
    pub(crate) fn complete(self, kept: Result<Option<Producer>>) {
        let Self { claim, call, told } = self;
        let turn = kept.map(|kept| kept.map_or_else(|| BatchOutcome::alone(claim, call), BatchOutcome::Kept));
        // A client that has gone away sends it again.
        let _is_awaited = told.send(turn);
    }
}
