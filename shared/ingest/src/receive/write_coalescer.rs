//! Coalescing writes: requests that wait for the only writer of their file on SQLite
//! are staged together.
//!
//! A transaction costs the same round trips to its thread and the same pages of the
//! write-ahead log, whether it stages one request or eight. A request is queued and
//! waits for the writer lock. The request that gets the lock stages the whole queue in
//! one transaction, which also checks that the senders are still clients. Only small
//! requests of clients that were authenticated here before are queued, so nobody else
//! holds up the writer. PostgreSQL stages each request by itself: its requests do not
//! wait for each other.
//!
//! [`FOLD_DELAY`] after a request was staged, it is applied to its run together with
//! everything staged meanwhile. Both only save work: a request is acknowledged after
//! the commit, and other processes apply what this one does not.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_store::{Backend, StoreError};
use tokio::sync::oneshot;

use crate::aggregate::aggregation;
use crate::apply::pending;
use crate::stage::inbox;
use crate::stage::run_token::{Claim, Producer};
use crate::stage::staged_request::StagedRequest;
use crate::stage::write_queue::{BatchOutcome, QueuedBatch, WriteQueue};
use crate::{Context, Result};

/// Most requests of one transaction: the first one waits for the last.
const MAX_BATCH: usize = 16;
/// How long staged requests of a run wait to be applied together: more of them cost
/// less each, and dashboards poll twice a second only.
const FOLD_DELAY: Duration = Duration::from_millis(250);
/// Staged requests of a run that are applied without further delay.
const FOLD_THRESHOLD: usize = 64;
/// Staged requests of a run beyond which a request is answered only after they are
/// applied: this slows the client down.
const BACKPRESSURE_THRESHOLD: usize = 256;
/// Most bytes of a request that is one message to PostgreSQL.
const MESSAGE_BYTES: usize = 7_000;

/// Applies staged requests of a run soon; immediately when too many of them wait. Errors
/// are logged: the requests stay staged, and another process applies them.
pub(crate) async fn apply_soon(ctx: &Context, project: ProjectId, run: RunId) {
    if ctx.write_coalescer.0.at_once || schedule_apply(ctx, project, run) {
        apply_and_aggregate(ctx, project, run).await;
    }
}

async fn apply_and_aggregate(ctx: &Context, project: ProjectId, run: RunId) {
    match pending::apply_pending_once(ctx, project, run).await {
        Ok(true) => aggregation::count_next(ctx, project).await,
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, %run, "pending results could not be applied to their run"),
    }
}

/// Schedules applying for a staged request; whether too many of its run wait.
fn schedule_apply(ctx: &Context, project: ProjectId, run: RunId) -> bool {
    let queue = &ctx.write_coalescer.0;
    let soon = match queue.soon().entry(run) {
        Entry::Occupied(known) => {
            let calls = known.get().calls.fetch_add(1, Ordering::Relaxed) + 1;
            if calls >= FOLD_THRESHOLD {
                known.get().are_many.notify_one();
            }
            return calls > BACKPRESSURE_THRESHOLD;
        }
        Entry::Vacant(place) => Arc::clone(place.insert(Arc::default())),
    };
    let (queue, ctx) = (Arc::clone(queue), ctx.clone());
    tokio::spawn(async move {
        loop {
            // Woken by the number of requests, or by the delay.
            let _are_many = tokio::time::timeout(FOLD_DELAY, soon.are_many.notified()).await;
            soon.calls.store(0, Ordering::Relaxed);
            apply_and_aggregate(&ctx, project, run).await;
            let mut all = queue.soon();
            if soon.calls.load(Ordering::Relaxed) == 0 {
                all.remove(&run);
                return;
            }
        }
    });
    false
}

/// Stages a request, when its sender turns out to be a client of its run; on SQLite
/// together with other requests.
///
/// # Errors
/// Why the sender is refused; [`crate::QueryError::Store`], and nothing is staged then.
pub(crate) async fn stage(ctx: &Context, claim: Claim, mut call: StagedRequest) -> Result<Producer> {
    let turn = match ctx.store.backend() {
        Backend::Sqlite => {
            if call.has_pack() {
                call.pack = Some(ctx.write_coalescer.pack_id(&ctx.store).await?);
            }
            enqueue(ctx, claim, call).await?
        }
        // Large messages to a server wait for the acknowledgement of their first part.
        Backend::Postgres if call.bytes() > MESSAGE_BYTES => BatchOutcome::alone(claim, call),
        Backend::Postgres => {
            let session = ctx.store.db().intake().await?;
            let producer = inbox::stage_for_clients(session, &[(&claim, &call)]).await?;
            producer
                .into_iter()
                .flatten()
                .next()
                .map_or_else(|| BatchOutcome::alone(claim, call), BatchOutcome::Kept)
        }
    };
    match turn {
        BatchOutcome::Kept(producer) => Ok(producer),
        BatchOutcome::Alone(one) => {
            let (claim, call) = *one;
            inbox::stage_prepared(&ctx.store, &claim, call).await
        }
    }
}

/// Queues a request and waits for its outcome.
async fn enqueue(ctx: &Context, claim: Claim, call: StagedRequest) -> Result<BatchOutcome> {
    let queue = Arc::clone(&ctx.write_coalescer.0);
    let (told, mut turn) = oneshot::channel();
    queue.waiting().push(QueuedBatch { claim, call, told });
    loop {
        tokio::select! {
            biased;
            had = &mut turn => {
                return had.unwrap_or_else(|_| Err(StoreError::Damaged("results were not written").into()));
            }
            turn = queue.turn.lock() => {
                let (ctx, queue) = (ctx.clone(), Arc::clone(&queue));
                // A task of its own: it must go on when the client of this request goes away, as others are in it. A
                // panic drops its answers.
                let _flushed = tokio::spawn(async move { Box::pin(flush_batch(&ctx, &queue)).await }).await;
                drop(turn);
            }
        }
    }
}

/// Stages queued requests in one transaction. Those that cannot be staged there, and
/// those whose sender is not seen to be a client, are left to be staged on their own.
async fn flush_batch(ctx: &Context, queue: &WriteQueue) {
    let session = match ctx.store.db().intake().await {
        Ok(session) => session,
        Err(error) => {
            if let Some(first) = queue.take(1).pop() {
                first.complete(Err(error.into()));
            }
            return;
        }
    };
    // Requests that came while the writer was busy are part of the batch.
    let taken = queue.take(MAX_BATCH);
    let calls: Vec<(&Claim, &StagedRequest)> = taken.iter().map(|one| (&one.claim, &one.call)).collect();
    match inbox::stage_for_clients(session, &calls).await {
        Ok(producer) => {
            taken.into_iter().zip(producer).for_each(|(one, producer)| one.complete(Ok(producer)))
        }
        Err(error) => {
            tracing::debug!(%error, calls = taken.len(), "requests are staged one by one");
            taken.into_iter().for_each(|one| one.complete(Ok(None)));
        }
    }
}
