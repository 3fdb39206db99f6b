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

/// Clients that are known by what they sent before: beyond that, all are asked
/// once more.
const MAX_CLIENTS: usize = 4_096;
/// Ids for packs that are taken together: taking them one by one would make every
/// call with evidence change one more row.
const PACK_ID_BATCH: usize = 64;
/// Runs of different places are folded at the same time.
const LOCK_STRIPES: usize = 16;
/// How long nothing must have arrived for a lull: clients that send one batch
/// after the other pause for less.
const IDLE_WINDOW: Duration = Duration::from_millis(20);
/// How long a lull is waited for by what is done for more runs together the longer
/// that is.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long it is waited for by what is done run by run: those who write wait for a
/// part of it at most, and it is done soon all the same.
pub(crate) const SHORT_IDLE_TIMEOUT: Duration = Duration::from_millis(100);

/// The line of a process.
#[derive(Debug, Clone, Default)]
pub struct WriteCoalescer(pub(crate) Arc<WriteQueue>);

#[derive(Default)]
pub(crate) struct WriteQueue {
    /// Whether calls are folded before they are answered.
    pub(crate) at_once: bool,
    waiting: Mutex<Vec<QueuedBatch>>,
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Calls that were kept and are about to be folded, by run.
    soon: Mutex<HashMap<RunId, Arc<PendingFold>>>,
    /// Who called before and was a client, or was made one.
    clients: Mutex<HashSet<Sender>>,
    /// Ids for packs that are taken already, ascending.
    packs: tokio::sync::Mutex<vec::IntoIter<PackId>>,
    folding: [tokio::sync::Mutex<()>; LOCK_STRIPES],
    counting: tokio::sync::Mutex<()>,
    /// Executions that were brought since it was last asked whether too many wait
    /// to be counted.
    brought: Mutex<HashMap<ProjectId, usize>>,
    arriving: Arriving,
}

/// Calls of a run that are about to be folded.
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
    /// Of a process that may be stopped as soon as it has answered: it leaves
    /// nothing for later.
    #[must_use]
    pub fn at_once() -> Self {
        Self(Arc::new(WriteQueue { at_once: true, ..WriteQueue::default() }))
    }

    /// Whether somebody was a client when it called before, or became one here.
    pub(crate) fn is_known_client(&self, sender: Sender) -> bool {
        self.0.clients().contains(&sender)
    }

    /// Notes whether somebody is a client.
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

    /// Notes that results are being taken, until what it answers is dropped.
    pub(crate) fn begin_request(&self) -> InFlightGuard {
        self.0.arriving.begin();
        InFlightGuard(Arc::clone(&self.0))
    }

    /// Waits until no results arrive in this process, but not for long: what can
    /// be done any time should not hold up those who wait for an answer.
    pub(crate) async fn wait_until_idle(&self, patience: Duration) {
        // Whether it came or not, what waits for it is done.
        let _came = tokio::time::timeout(patience, self.0.arriving.wait_until_idle()).await;
    }

    /// Notes executions that somebody brought. Answers with how many came since it
    /// last did, once they are `many`: asking after each call whether too many wait
    /// to be counted costs more than it helps.
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

    /// The turn to count what waits to be counted. Whoever counts locks the same
    /// runs, and who waits for that should not hold a connection meanwhile.
    pub(crate) async fn aggregation_lock(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.counting.lock().await
    }

    /// The turn to fold what waits of a run, for the same reason.
    pub(crate) async fn apply_lock(&self, run: RunId) -> tokio::sync::MutexGuard<'_, ()> {
        let place = usize::try_from(run.get().rem_euclid(LOCK_STRIPES as i64)).unwrap_or_default();
        self.0.folding[place].lock().await
    }
}

/// Results on their way into the database.
#[derive(Default)]
struct Arriving {
    now: AtomicUsize,
    /// How many there were.
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

/// Results that are being taken.
pub(crate) struct InFlightGuard(Arc<WriteQueue>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.arriving.end();
    }
}

/// Somebody in line.
pub(crate) struct QueuedBatch {
    pub(crate) claim: Claim,
    pub(crate) call: StagedRequest,
    pub(crate) told: oneshot::Sender<Result<BatchOutcome>>,
}

/// How a turn went for a call.
pub(crate) enum BatchOutcome {
    /// It is kept.
    Kept(Producer),
    /// It goes alone.
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

    /// The first in line.
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
    /// Tells that it was kept, that it goes alone, which tells what it is refused for, or
    /// why neither can be.
    pub(crate) fn complete(self, kept: Result<Option<Producer>>) {
        let Self { claim, call, told } = self;
        let turn = kept.map(|kept| kept.map_or_else(|| BatchOutcome::alone(claim, call), BatchOutcome::Kept));
        // Who does not wait any more sends it again, or was not interested.
        let _is_awaited = told.send(turn);
    }
}
