//! Coalescing writes: requests that wait for the only writer of their file on SQLite
//! are staged together.
//!
//! Every transaction costs the same ways to its thread and the same pages of its log,
//! whether it stages one request or eight. A request is queued and waits for the
//! writer. Whoever gets it takes the whole queue along, so those who wait find their
//! request staged. Whether their senders are still clients is asked in the same
//! transaction: nothing is written for those who are not. Only those are queued
//! who are known to be clients here, and bring little: nobody else holds
//! up the writer. On PostgreSQL requests do not wait for each other, and each is asked
//! for and staged by itself.
//!
//! Some time after a request was staged, it is applied to its run with all that came
//! meanwhile. Neither is anything but a way to save work: what is queued is
//! nobody's promise, as an answer is given after the commit, and what is staged is
//! applied by others when this process does not come to it.

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

/// Most calls of one transaction: who is written first waits for the last.
const MAX_BATCH: usize = 16;
/// How long calls of a run wait to be folded together: the more of them the less each
/// costs, and who looks on looks twice a second only.
const FOLD_DELAY: Duration = Duration::from_millis(250);
/// So many calls of a run are folded at once.
const FOLD_THRESHOLD: usize = 64;
/// With so many that wait, those who bring more wait for them to be folded: a
/// client cannot send for ever what nobody has time for.
const BACKPRESSURE_THRESHOLD: usize = 256;
/// Most bytes of a call that is one message to PostgreSQL.
const MESSAGE_BYTES: usize = 7_000;

/// Has what was staged applied in time. What fails here is logged: it is staged, and
/// others apply it.
pub(crate) async fn apply_soon(ctx: &Context, project: ProjectId, run: RunId) {
    if ctx.write_coalescer.0.at_once || schedule_apply(ctx, project, run) {
        apply_and_aggregate(ctx, project, run).await;
    }
}

async fn apply_and_aggregate(ctx: &Context, project: ProjectId, run: RunId) {
    match pending::apply_pending_once(ctx, project, run).await {
        Ok(true) => aggregation::count_next(ctx, project).await,
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, %run, "results that wait could not be worked into their run"),
    }
}

/// Counts a call of a run that is folded later; whether too many wait.
fn schedule_apply(ctx: &Context, project: ProjectId, run: RunId) -> bool {
    let line = &ctx.write_coalescer.0;
    let soon = match line.soon().entry(run) {
        Entry::Occupied(known) => {
            let calls = known.get().calls.fetch_add(1, Ordering::Relaxed) + 1;
            if calls >= FOLD_THRESHOLD {
                known.get().are_many.notify_one();
            }
            return calls > BACKPRESSURE_THRESHOLD;
        }
        Entry::Vacant(place) => Arc::clone(place.insert(Arc::default())),
    };
    let (line, ctx) = (Arc::clone(line), ctx.clone());
    tokio::spawn(async move {
        loop {
            // Whether they are many or it is time.
            let _are_many = tokio::time::timeout(FOLD_DELAY, soon.are_many.notified()).await;
            soon.calls.store(0, Ordering::Relaxed);
            apply_and_aggregate(&ctx, project, run).await;
            let mut all = line.soon();
            if soon.calls.load(Ordering::Relaxed) == 0 {
                all.remove(&run);
                return;
            }
        }
    });
    false
}

/// Keeps a call that is ready, when its sender turns out to be a client of its run;
/// on SQLite together with those of others.
///
/// # Errors
/// What the sender is refused with; [`crate::QueryError::Store`], and the call is
/// not kept then.
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
            let fed = inbox::stage_for_clients(session, &[(&claim, &call)]).await?;
            fed.into_iter()
                .flatten()
                .next()
                .map_or_else(|| BatchOutcome::alone(claim, call), BatchOutcome::Kept)
        }
    };
    match turn {
        BatchOutcome::Kept(fed) => Ok(fed),
        BatchOutcome::Alone(one) => {
            let (claim, call) = *one;
            inbox::stage_prepared(&ctx.store, &claim, call).await
        }
    }
}

/// Goes in line with a call until it had its turn.
async fn enqueue(ctx: &Context, claim: Claim, call: StagedRequest) -> Result<BatchOutcome> {
    let line = Arc::clone(&ctx.write_coalescer.0);
    let (told, mut turn) = oneshot::channel();
    line.waiting().push(QueuedBatch { claim, call, told });
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
                let _kept = tokio::spawn(async move { Box::pin(flush_batch(&ctx, &line)).await }).await;
                drop(turn);
            }
        }
    }
}

/// Keeps those in line in one transaction. Who cannot be kept there, or is not
/// seen to be a client, is left to go alone.
async fn flush_batch(ctx: &Context, line: &WriteQueue) {
    let session = match ctx.store.db().intake().await {
        Ok(session) => session,
        Err(error) => {
            if let Some(first) = line.take(1).pop() {
                first.complete(Err(error.into()));
            }
            return;
        }
    };
    // Whoever came while the writer was busy goes along.
    let taken = line.take(MAX_BATCH);
    let calls: Vec<(&Claim, &StagedRequest)> = taken.iter().map(|one| (&one.claim, &one.call)).collect();
    match inbox::stage_for_clients(session, &calls).await {
        Ok(fed) => taken.into_iter().zip(fed).for_each(|(one, fed)| one.complete(Ok(fed))),
        Err(error) => {
            tracing::debug!(%error, calls = taken.len(), "calls are kept one by one");
            taken.into_iter().for_each(|one| one.complete(Ok(None)));
        }
    }
}
