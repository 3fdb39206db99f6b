//! What the calls of one process that feed runs share.
//!
//! Calls that wait for the only writer of their file on SQLite are kept together: every
//! transaction costs the same ways to its thread and the same pages of its log,
//! whether it keeps one call or eight. A call goes in line and then waits for the
//! turn. Who has it takes everybody in line along, so those who wait find their
//! call kept. Whether their senders are still clients is asked in the same
//! transaction: nothing is written for those who are not. Only those go in line
//! who are known to be clients here, and bring little: nobody else holds
//! up the writer. On PostgreSQL calls do not wait for each other, and each is asked
//! for and kept by itself.
//!
//! Some time after a call was kept, it is folded into its run with all that came
//! meanwhile. Neither is anything but a way to save work: what is in line is
//! nobody's promise, as an answer is given after the commit, and what is kept is
//! folded by others when this process does not come to it.
//!
//! Work that nobody waits for asks here for a lull in which no results arrive.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, vec};

use callboard_domain::ids::{PackId, ProjectId, RunId};
use callboard_store::{Backend, StoreError, evidence};
use tokio::sync::{Notify, oneshot};

use crate::aggregate::aggregation;
use crate::stage::inbox::{self, Call};
use crate::stage::run_token::{Claim, Fed, Sender};
use crate::{Context, Result};

/// Most calls of one transaction: who is written first waits for the last.
const MOST: usize = 16;
/// How long calls of a run wait to be folded together: the more of them the less each
/// costs, and who looks on looks twice a second only.
const TOGETHER: Duration = Duration::from_millis(250);
/// So many calls of a run are folded at once.
const MANY: usize = 64;
/// With so many that wait, those who bring more wait for them to be folded: a
/// client cannot send for ever what nobody has time for.
const TOO_MANY: usize = 256;
/// Clients that are known by what they sent before: beyond that, all are asked
/// once more.
const MOST_CLIENTS: usize = 4_096;
/// Most bytes of a call that is one message to PostgreSQL.
const MESSAGE_BYTES: usize = 7_000;
/// Ids for packs that are taken together: taking them one by one would make every
/// call with evidence change one more row.
const PACKS_TOGETHER: usize = 64;
/// Runs of different places are folded at the same time.
const PLACES: usize = 16;
/// How long nothing must have arrived for a lull: clients that send one batch
/// after the other pause for less.
const QUIET: Duration = Duration::from_millis(20);
/// How long a lull is waited for by what is done for more runs together the longer
/// that is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How long it is waited for by what is done run by run: those who write wait for a
/// part of it at most, and it is done soon all the same.
pub(crate) const SHORT_PATIENCE: Duration = Duration::from_millis(100);

/// The line of a process.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<Line>);

#[derive(Default)]
struct Line {
    /// Whether calls are folded before they are answered.
    at_once: bool,
    waiting: Mutex<Vec<Waiting>>,
    turn: tokio::sync::Mutex<()>,
    /// Calls that were kept and are about to be folded, by run.
    soon: Mutex<HashMap<RunId, Arc<Soon>>>,
    /// Who called before and was a client, or was made one.
    clients: Mutex<HashSet<Sender>>,
    /// Ids for packs that are taken already, ascending.
    packs: tokio::sync::Mutex<vec::IntoIter<PackId>>,
    folding: [tokio::sync::Mutex<()>; PLACES],
    counting: tokio::sync::Mutex<()>,
    /// Executions that were brought since it was last asked whether too many wait
    /// to be counted.
    brought: Mutex<HashMap<ProjectId, usize>>,
    arriving: Arriving,
}

/// Calls of a run that are about to be folded.
#[derive(Default)]
struct Soon {
    calls: AtomicUsize,
    are_many: Notify,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Turns {
    /// Of a process that may be stopped as soon as it has answered: it leaves
    /// nothing for later.
    #[must_use]
    pub fn at_once() -> Self {
        Self(Arc::new(Line { at_once: true, ..Line::default() }))
    }

    /// Whether somebody was a client when it called before, or became one here.
    pub(crate) fn knows(&self, sender: Sender) -> bool {
        self.0.clients().contains(&sender)
    }

    /// Notes whether somebody is a client.
    pub(crate) fn note(&self, sender: Sender, is_client: bool) {
        let mut clients = self.0.clients();
        if !is_client {
            clients.remove(&sender);
            return;
        }
        if clients.len() >= MOST_CLIENTS {
            clients.clear();
        }
        clients.insert(sender);
    }

    /// Notes that results are being taken, until what it answers is dropped.
    pub(crate) fn arrival(&self) -> Arrival {
        self.0.arriving.begin();
        Arrival(Arc::clone(&self.0))
    }

    /// Waits until no results arrive in this process, but not for long: what can
    /// be done any time should not hold up those who wait for an answer.
    pub(crate) async fn lull(&self, patience: Duration) {
        // Whether it came or not, what waits for it is done.
        let _came = tokio::time::timeout(patience, self.0.arriving.lull()).await;
    }

    /// Notes executions that somebody brought. Answers with how many came since it
    /// last did, once they are `many`: asking after each call whether too many wait
    /// to be counted costs more than it helps.
    pub(crate) fn brought(&self, project: ProjectId, executions: usize, many: usize) -> Option<usize> {
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
    pub(crate) async fn pack_id(&self, ctx: &Context) -> Result<PackId> {
        let mut taken = self.0.packs.lock().await;
        if let Some(id) = taken.next() {
            return Ok(id);
        }
        let mut session = ctx.store.db().begin().await?;
        let ids = evidence::take_ids(&mut session, PACKS_TOGETHER).await?;
        session.commit().await?;
        *taken = ids.into_iter();
        Ok(taken.next().ok_or(StoreError::Damaged("a sequence gave no id"))?)
    }

    /// The turn to count what waits to be counted. Whoever counts locks the same
    /// runs, and who waits for that should not hold a connection meanwhile.
    pub(crate) async fn to_count(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.counting.lock().await
    }

    /// The turn to fold what waits of a run, for the same reason.
    pub(crate) async fn to_fold(&self, run: RunId) -> tokio::sync::MutexGuard<'_, ()> {
        let place = usize::try_from(run.get().rem_euclid(PLACES as i64)).unwrap_or_default();
        self.0.folding[place].lock().await
    }

    /// Has a call that was kept folded in time. What fails here is logged: the call
    /// is kept, and others fold it.
    pub(crate) async fn fold_soon(&self, ctx: &Context, project: ProjectId, run: RunId) {
        if self.0.at_once || self.0.note_kept(ctx, project, run) {
            fold(ctx, project, run).await;
        }
    }
}

async fn fold(ctx: &Context, project: ProjectId, run: RunId) {
    match inbox::fold_once(ctx, project, run).await {
        Ok(true) => aggregation::count_next(ctx, project).await,
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, %run, "results that wait could not be worked into their run"),
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

    async fn lull(&self) {
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
            tokio::time::sleep(QUIET).await;
            if self.ever.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// Results that are being taken.
pub(crate) struct Arrival(Arc<Line>);

impl Drop for Arrival {
    fn drop(&mut self) {
        self.0.arriving.end();
    }
}

/// Somebody in line.
struct Waiting {
    claim: Claim,
    call: Call,
    told: oneshot::Sender<Result<Turn>>,
}

/// How a turn went for a call.
enum Turn {
    /// It is kept.
    Kept(Fed),
    /// It goes alone.
    Alone(Box<(Claim, Call)>),
}

impl Line {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clients(&self) -> MutexGuard<'_, HashSet<Sender>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn soon(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Soon>>> {
        self.soon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first in line.
    fn take(&self, most: usize) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let most = most.min(waiting.len());
        let later = waiting.split_off(most);
        mem::replace(&mut *waiting, later)
    }

    /// Counts a call of a run that is folded later; whether too many wait.
    fn note_kept(self: &Arc<Self>, ctx: &Context, project: ProjectId, run: RunId) -> bool {
        let soon = match self.soon().entry(run) {
            Entry::Occupied(known) => {
                let calls = known.get().calls.fetch_add(1, Ordering::Relaxed) + 1;
                if calls >= MANY {
                    known.get().are_many.notify_one();
                }
                return calls > TOO_MANY;
            }
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::default())),
        };
        let (line, ctx) = (Arc::clone(self), ctx.clone());
        tokio::spawn(async move {
            loop {
                // Whether they are many or it is time.
                let _are_many = tokio::time::timeout(TOGETHER, soon.are_many.notified()).await;
                soon.calls.store(0, Ordering::Relaxed);
                fold(&ctx, project, run).await;
                let mut all = line.soon();
                if soon.calls.load(Ordering::Relaxed) == 0 {
                    all.remove(&run);
                    return;
                }
            }
        });
        false
    }
}

impl Turn {
    fn alone(claim: Claim, call: Call) -> Self {
        Self::Alone(Box::new((claim, call)))
    }
}

impl Waiting {
    /// Tells that it was kept, that it goes alone, which tells what it is refused for, or
    /// why neither can be.
    fn tell(self, kept: Result<Option<Fed>>) {
        let Self { claim, call, told } = self;
        let turn = kept.map(|kept| kept.map_or_else(|| Turn::alone(claim, call), Turn::Kept));
        // Who does not wait any more sends it again, or was not interested.
        let _is_awaited = told.send(turn);
    }
}

/// Keeps a call that is ready, when its sender turns out to be a client of its run;
/// on SQLite together with those of others.
///
/// # Errors
/// What the sender is refused with; [`crate::QueryError::Store`], and the call is
/// not kept then.
pub(crate) async fn keep(ctx: &Context, claim: Claim, mut call: Call) -> Result<Fed> {
    let turn = match ctx.store.backend() {
        Backend::Sqlite => {
            call.take_pack(ctx).await?;
            in_line(ctx, claim, call).await?
        }
        // Large messages to a server wait for the acknowledgement of their first part.
        Backend::Postgres if call.bytes() > MESSAGE_BYTES => Turn::alone(claim, call),
        Backend::Postgres => {
            let session = ctx.store.db().intake().await?;
            let fed = inbox::keep_of_clients(session, &[(&claim, &call)]).await?;
            fed.into_iter().flatten().next().map_or_else(|| Turn::alone(claim, call), Turn::Kept)
        }
    };
    match turn {
        Turn::Kept(fed) => Ok(fed),
        Turn::Alone(one) => {
            let (claim, call) = *one;
            inbox::keep_ready(ctx, &claim, call).await
        }
    }
}

/// Goes in line with a call until it had its turn.
async fn in_line(ctx: &Context, claim: Claim, call: Call) -> Result<Turn> {
    let line = Arc::clone(&ctx.turns.0);
    let (told, mut turn) = oneshot::channel();
    line.waiting().push(Waiting { claim, call, told });
    loop {
        tokio::select! {
            biased;
            had = &mut turn => {
                return had.unwrap_or_else(|_| Err(StoreError::Damaged("results were not written").into()));
            }
            turn = line.turn.lock() => {
                let (ctx, line) = (ctx.clone(), Arc::clone(&line));
                // Not given up in the middle when the client of this call goes away: others are in it. What broke
                // off has dropped its answers.
                let _kept = tokio::spawn(async move { Box::pin(together(&ctx, &line)).await }).await;
                drop(turn);
            }
        }
    }
}

/// Keeps those in line in one transaction. Who cannot be kept there, or is not
/// seen to be a client, is left to go alone.
async fn together(ctx: &Context, line: &Line) {
    let session = match ctx.store.db().intake().await {
        Ok(session) => session,
        Err(error) => {
            if let Some(first) = line.take(1).pop() {
                first.tell(Err(error.into()));
            }
            return;
        }
    };
    // Whoever came while the writer was busy goes along.
    let taken = line.take(MOST);
    let calls: Vec<(&Claim, &Call)> = taken.iter().map(|one| (&one.claim, &one.call)).collect();
    match inbox::keep_of_clients(session, &calls).await {
        Ok(fed) => taken.into_iter().zip(fed).for_each(|(one, fed)| one.tell(Ok(fed))),
        Err(error) => {
            tracing::debug!(%error, calls = taken.len(), "calls are kept one by one");
            taken.into_iter().for_each(|one| one.tell(Ok(None)));
        }
    }
}
