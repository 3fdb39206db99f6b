//! Calls that feed runs and wait for the only writer of SQLite, written
//! together: every transaction costs the same ways to its thread and the same
//! pages of its log, whether it takes the results of one call or of eight.
//!
//! A call goes in line and then waits for the turn. Who has it takes everybody
//! in line along, so those who wait find their part written. What is in line is
//! nobody's promise: an answer is given after the commit, a call that is not
//! answered is sent again, and processes that share a database do not need to
//! know of each other's lines.
//!
//! On PostgreSQL calls do not wait for each other, and each has a transaction
//! of its own.
//!
//! Work that nobody waits for asks here for a lull in which no results arrive.

use std::collections::HashSet;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_store::db::Session;
use callboard_store::{Backend, Store, StoreError};
use tokio::sync::{Notify, oneshot};

use super::chunk::Folded;
use super::feeding::Part;
use crate::{Context, Result};

/// Most parts of one transaction: who is written first waits for the last.
const MOST: usize = 8;
/// How long nothing must have arrived for a lull: clients that send one batch
/// after the other pause for less.
const QUIET: Duration = Duration::from_millis(20);
/// How long a lull is waited for.
const PATIENCE: Duration = Duration::from_millis(250);

/// The line of a process.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<Line>);

#[derive(Default)]
struct Line {
    waiting: Mutex<Vec<Waiting>>,
    turn: tokio::sync::Mutex<()>,
    counting: tokio::sync::Mutex<()>,
    arriving: Arriving,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Turns {
    /// Notes that results are being taken, until what it answers is dropped.
    pub(super) fn arrival(&self) -> Arrival {
        self.0.arriving.begin();
        Arrival(Arc::clone(&self.0))
    }

    /// Waits until no results arrive in this process, but not for long: what can
    /// be done any time should not hold up those who wait for an answer.
    pub(super) async fn lull(&self) {
        // Whether it came or not, what waits for it is done.
        let _came = tokio::time::timeout(PATIENCE, self.0.arriving.lull()).await;
    }

    /// The turn to count what waits to be counted. Whoever counts locks the same
    /// runs, and who waits for that should not hold a connection meanwhile.
    pub(super) async fn to_count(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.counting.lock().await
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
pub(super) struct Arrival(Arc<Line>);

impl Drop for Arrival {
    fn drop(&mut self) {
        self.0.arriving.end();
    }
}

/// Somebody in line.
struct Waiting {
    part: Part,
    written: oneshot::Sender<Result<Folded>>,
}

impl Line {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who go together, the first in line among them: a run is changed by
    /// one of them only, so that none reads what another one writes.
    fn take(&self, most: usize) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let mut runs = HashSet::new();
        let (taken, left) = mem::take(&mut *waiting)
            .into_iter()
            .partition(|one| runs.len() < most && runs.insert(one.part.run()));
        *waiting = left;
        taken
    }
}

impl Waiting {
    fn answer(self, result: Result<Folded>) {
        // Who does not wait any more sends it again, or was not interested.
        let _is_awaited = self.written.send(result);
    }
}

/// Writes a part of a call, together with those of others where that saves
/// something.
///
/// # Errors
/// As [`Part::write`]; nothing of the part is written then.
pub(super) async fn write(ctx: &Context, part: Part) -> Result<Folded> {
    if ctx.store.backend() == Backend::Postgres {
        return alone(&ctx.store, &part).await;
    }
    let line = Arc::clone(&ctx.turns.0);
    let (written, mut answer) = oneshot::channel();
    line.waiting().push(Waiting { part, written });
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => {
                return answer.unwrap_or_else(|_| Err(StoreError::Damaged("results were not written").into()));
            }
            turn = line.turn.lock() => {
                let (store, line) = (ctx.store.clone(), Arc::clone(&line));
                // Not given up in the middle when the client of this call goes away: others are in it. What broke
                // off has dropped its answers.
                let _written = tokio::spawn(async move { Box::pin(together(&store, &line)).await }).await;
                drop(turn);
            }
        }
    }
}

/// Writes those in line in one transaction; when one of them fails, each in its
/// own.
async fn together(store: &Store, line: &Line) {
    let session = match store.db().begin().await {
        Ok(session) => session,
        Err(error) => {
            if let Some(first) = line.take(1).pop() {
                first.answer(Err(error.into()));
            }
            return;
        }
    };
    // Whoever came while the writer was busy goes along.
    let mut taken = line.take(MOST);
    match all(session, &taken).await {
        Ok(folded) => taken.into_iter().zip(folded).for_each(|(one, folded)| one.answer(Ok(folded))),
        Err(error) if taken.len() == 1 => {
            if let Some(only) = taken.pop() {
                only.answer(Err(error));
            }
        }
        Err(error) => {
            tracing::debug!(%error, parts = taken.len(), "parts are written one by one");
            for one in taken {
                let result = alone(store, &one.part).await;
                one.answer(result);
            }
        }
    }
}

async fn all(mut session: Session, taken: &[Waiting]) -> Result<Vec<Folded>> {
    read_ahead(&mut session, taken).await?;
    let mut folded = Vec::with_capacity(taken.len());
    for one in taken {
        folded.push(one.part.write(&mut session).await?);
    }
    session.commit().await?;
    Ok(folded)
}

/// What the parts ask first, and what they ask then, each in one way to the
/// database.
async fn read_ahead(session: &mut Session, taken: &[Waiting]) -> Result<()> {
    let first = taken.iter().flat_map(|one| one.part.first_reads()).collect();
    session.read_ahead(first).await?;
    let mut further = Vec::new();
    for one in taken {
        further.extend(one.part.further_reads(session)?);
    }
    Ok(session.read_ahead(further).await?)
}

async fn one(mut session: Session, part: &Part) -> Result<Folded> {
    let folded = part.write(&mut session).await?;
    session.commit().await?;
    Ok(folded)
}

async fn alone(store: &Store, part: &Part) -> Result<Folded> {
    one(store.db().begin().await?, part).await
}
