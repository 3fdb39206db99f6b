//! Feeding a run: events, signs of life, the end. Every call is a client of
//! one slot, recognised by its token; a run that was taken for over goes on.

use std::collections::HashMap;

use callboard_domain::ids::RunId;
use callboard_domain::ingest::{BodyError, EventsBody, RunFields, StoredEvents, TestCaseEntry, Warnings};
use callboard_domain::run_life::SlotState;
use callboard_domain::status::{RunStatus, TestStatus};
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::boxed;
use callboard_store::runs::tokens::TokenKind;
use callboard_store::runs::{self, slots};
use sha2::{Digest as _, Sha256};

use crate::aggregate::aggregation;
use crate::apply::batch_prefetch::{PendingBatch, PreparedBatch};
use crate::apply::pending;
use crate::receive::write_coalescer;
use crate::resolve::run_metadata::{self, Plan};
use crate::stage::inbox;
use crate::stage::run_token::{self, Bearer, Claim, Producer, Sender};
use crate::stage::staged_request::StagedRequest;
use crate::stage::stored_entries::unreadable;
use crate::transaction::run_events;
use crate::transaction::run_transaction::{ACTIVITY_STEP_MS, LockedRun};
use crate::{Context, QueryError, Result};
use callboard_core::retry::repeated;

/// What the end of a run stands for among the executions that were brought, by
/// which it is asked whether too many wait in its project.
const LEFT_AT_THE_END: usize = 1_000;
/// Most bytes of a call that is made ready before its sender is recognised again:
/// what takes longer is not begun for those who are no clients any more.
const SMALL_BYTES: usize = 64 * 1024;

/// What became of the events of a call.
#[derive(Debug)]
pub struct EventsTaken {
    /// Events that count, those that were known included.
    pub processed: usize,
    /// Attempts nobody knew of.
    pub inserted: usize,
    /// Events that were left out.
    pub ignored: usize,
    /// Why.
    pub warnings: Warnings,
}

/// Takes the events of a running client. Sending them again changes nothing.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], [`QueryError::Life`].
#[boxed]
pub async fn events(ctx: &Context, run: RunId, body: EventsBody, now: Timestamp) -> Result<EventsTaken> {
    let EventsBody { size, stream_token, begun, steps, completes, processed, ignored } = body;
    let entries = completes.entries;
    let claim = Claim::new(run, stream_token.as_deref(), keys_of(&entries), now)?;
    let passing =
        begun.iter().map(run_events::test_begun).chain(steps.iter().map(run_events::step)).collect();
    let sender = claim.sender();
    let kept = if size <= SMALL_BYTES && ctx.write_coalescer.is_known_client(sender) {
        let call = StagedRequest::small(&ctx.store, passing, entries, claim.keys.clone())?;
        write_coalescer::stage(ctx, claim, call).await
    } else {
        inbox::stage_after_check(&ctx.store, &claim, passing, entries).await
    };
    let inserted = apply_kept(ctx, run, sender, kept).await?;
    Ok(EventsTaken { processed, inserted, ignored, warnings: completes.warnings })
}

/// [`events`] of a body that is too large for memory.
///
/// # Errors
/// As [`events`].
#[boxed]
pub async fn stored_events(
    ctx: &Context,
    run: RunId,
    body: StoredEvents,
    now: Timestamp,
) -> Result<EventsTaken> {
    let StoredEvents { events, completes: mut cases } = body;
    let EventsBody { stream_token, begun, steps, completes, processed, ignored, .. } = events;
    let named = tokio::task::spawn_blocking(move || {
        let mut keys = Keys::with_capacity(cases.len());
        let named = (0..cases.len()).map(|position| Ok(keys.next(&cases.read(position)?)));
        let named: Result<Vec<i64>, BodyError> = named.collect();
        named.map(|named| (cases, named))
    });
    let named = named.await.map_err(|_| StoreError::Damaged("results could not be read"))?;
    let (cases, keys) = named.map_err(unreadable)?;
    let claim = Claim::new(run, stream_token.as_deref(), keys, now)?;
    let passing =
        begun.iter().map(run_events::test_begun).chain(steps.iter().map(run_events::step)).collect();
    let kept = inbox::stage_stored(&ctx.store, &claim, passing, cases).await;
    let inserted = apply_kept(ctx, run, claim.sender(), kept).await?;
    Ok(EventsTaken { processed, inserted, ignored, warnings: completes.warnings })
}

/// Has what was kept applied to the run; answers how many attempts nobody knew of.
async fn apply_kept(ctx: &Context, run: RunId, sender: Sender, kept: Result<Producer>) -> Result<usize> {
    ctx.write_coalescer.remember_client(sender, kept.is_ok());
    let Producer { project, goes_on, inserted, .. } = kept?;
    let _arrival = ctx.write_coalescer.begin_request();
    if goes_on {
        write_coalescer::apply_soon(ctx, project, run).await;
    } else {
        // The answer says that the run goes on again.
        pending::apply_pending_for_run(ctx, project, run).await?;
    }
    Ok(inserted)
}

/// Names of the attempts of a request within their run: the same when they are
/// sent again. Attempts that one request does not tell apart are repetitions.
fn keys_of(entries: &[TestCaseEntry]) -> Vec<i64> {
    let mut keys = Keys::with_capacity(entries.len());
    entries.iter().map(|entry| keys.next(entry)).collect()
}

/// How often each name was given.
struct Keys(HashMap<i64, u32>);

impl Keys {
    fn with_capacity(entries: usize) -> Self {
        Self(HashMap::with_capacity(entries))
    }

    fn next(&mut self, entry: &TestCaseEntry) -> i64 {
        let key = key_of(entry, 0);
        let times = self.0.entry(key).or_insert(0);
        let of_these = if entry.started_at.is_none() { *times } else { 0 };
        *times += 1;
        if of_these == 0 { key } else { key_of(entry, of_these) }
    }
}

fn key_of(entry: &TestCaseEntry, repetition: u32) -> i64 {
    let mut hash = Sha256::new();
    hash.update(entry.identity);
    hash.update(entry.browser_project.as_bytes());
    hash.update([0, u8::from(entry.status == TestStatus::DidNotRun)]);
    hash.update(entry.retry.to_le_bytes());
    hash.update(entry.repeat_each_index.map_or(-1, i64::from).to_le_bytes());
    hash.update(entry.started_at.map_or(i64::MIN, Timestamp::millis).to_le_bytes());
    hash.update(repetition.to_le_bytes());
    // Repetitions without an index may begin in the same millisecond.
    if let (Some(_), None, Some(worker)) = (entry.started_at, entry.repeat_each_index, entry.worker_index) {
        hash.update(worker.to_le_bytes());
    }
    let bytes = hash.finalize();
    bytes.first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
}

/// A sign of life; answers where the run stands.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], [`QueryError::Life`].
#[boxed]
pub async fn heartbeat(ctx: &Context, run: RunId, token: Option<&str>, now: Timestamp) -> Result<RunStatus> {
    let bearer = run_token::recognise(&ctx.store, run, token, TokenKind::Stream, now).await?;
    let Bearer { project, slot, .. } = bearer;
    let mut session = ctx.store.db().read().await?;
    let row = runs::get(&mut session, project, run).await?;
    let own = slots::of_run(&mut session, project, run).await?.into_iter().find(|row| row.id == slot);
    drop(session);
    if let (Some(row), Some(own)) = (row, own)
        && matches!(row.status, RunStatus::Running | RunStatus::Finalizing)
        && matches!(own.slot.state, SlotState::Live | SlotState::Finished)
    {
        if aggregation::has_waited(&row, now) {
            aggregation::count_next(ctx, project).await;
        }
        if own.slot.last_activity_at.millis() + ACTIVITY_STEP_MS <= now.millis() {
            let mut session = ctx.store.db().begin().await?;
            runs::touch(&mut session, project, run, now).await?;
            slots::touch(&mut session, project, slot, now).await?;
            session.commit().await?;
        }
        return Ok(row.status);
    }
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    locked.resume_client(slot, now)?;
    locked.recompute_status(now, None, &ctx.patience);
    Ok(locked.close(session, now).await?.status)
}

/// A client is done. Answers where the run stands now: going on while other
/// shards do, waiting for files, or over.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Token`], [`QueryError::Life`].
#[boxed]
pub async fn finish(
    ctx: &Context,
    run: RunId,
    token: Option<&str>,
    fields: &RunFields,
    now: Timestamp,
) -> Result<RunStatus> {
    let bearer = run_token::recognise(&ctx.store, run, token, TokenKind::Stream, now).await?;
    let status = match finish_with_the_last(ctx, run, bearer, fields, now).await {
        Ok(Some(status)) => status,
        Err(QueryError::Store(error)) if error.is_unavailable() && !error.is_conflict() => {
            return Err(error.into());
        }
        apart => {
            // What is wrong is told by the step it is wrong with.
            if let Err(error) = apart {
                tracing::debug!(%error, %run, "a client's end and its last results are worked in apart");
            }
            pending::apply_pending_for_run(ctx, bearer.project, run).await?;
            finish_alone(ctx, run, bearer, fields, now).await?
        }
    };
    aggregation::keep_up(ctx, bearer.project, LEFT_AT_THE_END).await;
    Ok(status)
}

/// Ends a slot together with its last results, which mostly still wait: that is
/// one transaction instead of two. `None` when more waits than fits, or somebody
/// else is at it.
async fn finish_with_the_last(
    ctx: &Context,
    run: RunId,
    bearer: Bearer,
    fields: &RunFields,
    now: Timestamp,
) -> Result<Option<RunStatus>> {
    let _turn = ctx.write_coalescer.apply_lock(run).await;
    let last = match PendingBatch::load(ctx, bearer.project, run, pending::MAX_ROWS, &mut None).await? {
        PendingBatch::Empty => None,
        PendingBatch::Found(found) if found.is_all() => Some(found.prepare(ctx).await?),
        PendingBatch::Found(_) | PendingBatch::Orphaned => return Ok(None),
    };
    finish_once(ctx, run, bearer, fields, last, now).await
}

/// Ends a slot whose results are worked in.
async fn finish_alone(
    ctx: &Context,
    run: RunId,
    bearer: Bearer,
    fields: &RunFields,
    now: Timestamp,
) -> Result<RunStatus> {
    let done = repeated(|| finish_once(ctx, run, bearer, fields, None, now)).await?;
    done.ok_or_else(|| StoreError::Damaged("a client's end without results that was told to wait").into())
}

/// Ends a slot, with its last results if they were not worked in before. `None`,
/// and nothing was done, when somebody else has worked some of those in meanwhile.
async fn finish_once(
    ctx: &Context,
    run: RunId,
    bearer: Bearer,
    fields: &RunFields,
    last: Option<PreparedBatch>,
    now: Timestamp,
) -> Result<Option<RunStatus>> {
    let Bearer { project, slot, .. } = bearer;
    let mut session = ctx.store.db().begin().await?;
    let mut locked = LockedRun::lock(&mut session, project, run).await?;
    let has_last = last.is_some();
    if let Some(last) = last
        && !last.fold(ctx, &mut session, &mut locked).await?
    {
        return Ok(None);
    }
    let is_over = locked.slot(slot)?.slot.state == SlotState::Finished;
    if is_over && !has_last {
        return Ok(Some(locked.run.status));
    }
    if !is_over {
        locked.resume_client(slot, now)?;
        let started = locked.slot(slot)?.slot.start_time.millis();
        let duration = fields.duration_ms.unwrap_or_else(|| (now.millis() - started).max(0));
        locked.finish_slot(slot, fields.status, Some(duration), fields.has_pending_uploads, now)?;
        run_metadata::describe(&mut session, &mut locked, slot, fields, Plan::Told, None, now).await?;
        locked.note(run_events::run_progress(&locked.run));
        locked.recompute_status(now, None, &ctx.patience);
    }
    let status = locked.close(session, now).await?.status;
    if has_last {
        pending::clear(ctx, project, run).await;
    }
    Ok(Some(status))
}
