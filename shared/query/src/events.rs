//! Delivery of domain events: every subscriber handles the events of a project
//! in one order, each event once.
//!
//! A subscriber turns events into rows and jobs in the transaction that moves
//! its cursor, so a process that dies in between changes nothing. Calls to
//! other systems belong into those jobs. To add a subscriber, add it to
//! `SUBSCRIBERS`; in a project that has events already it begins with those
//! that are still stored.

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::jobs::{self, Payload};
use callboard_store::outbox::{self, StoredEvent};
use callboard_store::runs;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Context, QueryError, Result, diagnoses, feedback, notifications};

/// Events that a subscriber handles in one transaction.
const BATCH: i64 = 100;
/// How long events are stored, ms. A subscriber that fails for longer misses them.
const LIFE_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// Events deleted by one statement.
const PURGE_BATCH: i64 = 500;
/// Projects whose deliveries are resumed by one pass.
const RESUMED_PROJECTS: i64 = 1_000;

/// A part of the service that acts upon domain events.
struct Subscriber {
    /// Its name in `event_cursors`. It never changes.
    name: &'static str,
    handle: Handler,
}

/// Turns events of a project into rows and jobs, within the given transaction.
type Handler = for<'a> fn(
    &'a Context,
    &'a mut Session,
    ProjectId,
    &'a [StoredEvent],
    Timestamp,
) -> BoxFuture<'a, Result<()>>;

static SUBSCRIBERS: &[Subscriber] = &[
    Subscriber {
        name: "notifications",
        handle: |ctx, session, project, events, now| {
            notifications::queue_deliveries(ctx, session, project, events, now).boxed()
        },
    },
    Subscriber {
        name: "diagnoses",
        handle: |_, session, project, events, now| {
            diagnoses::diagnose_new_clusters(session, project, events, now).boxed()
        },
    },
    Subscriber {
        name: "request-feedback",
        handle: |_, session, project, events, now| {
            feedback::queue_feedback(session, project, events, now).boxed()
        },
    },
];

/// The new events of a project are to be delivered.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DeliverEvents {
    /// Project.
    pub project: ProjectId,
}

impl Payload for DeliverEvents {
    const KIND: &'static str = "deliver_events";
}

/// Stores events in the caller's transaction, and queues their delivery.
pub(crate) async fn emit(
    session: &mut Session,
    project: ProjectId,
    events: &[DomainEvent],
    now: Timestamp,
) -> Result<()> {
    outbox::append(session, project, events, now).await?;
    // An equal key means that the same millisecond queued a delivery; what that one misses, the next pass over all
    // projects delivers.
    let key = format!("events:{project}:{}", now.millis());
    jobs::enqueue(session, &key, Some(project), &DeliverEvents { project }, now).await?;
    Ok(())
}

/// Emits that a run is checked and compared, after it ended or `again`. A run that goes on is not.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn run_evaluated(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    again: bool,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = runs::get(&mut session, project, run).await?;
    if row.is_none_or(|row| !row.status.is_final()) {
        return Ok(());
    }
    outbox::append(&mut session, project, &[DomainEvent::RunEvaluated { run, again }], now).await?;
    Ok(session.commit().await?)
}

/// Delivers the events of a project to every subscriber. One that fails holds
/// up only itself.
///
/// # Errors
/// The first error of a subscriber, after all others had their turn.
#[boxed]
pub async fn deliver(ctx: &Context, project: ProjectId, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    outbox::sequence(&mut session, project).await?;
    session.commit().await?;
    let mut result = Ok(());
    for subscriber in SUBSCRIBERS {
        if let Err(error) = deliver_to(ctx, subscriber, project, now).await {
            tracing::warn!(subscriber = subscriber.name, %project, %error, "domain events could not be handled");
            result = result.and(Err(error));
        }
    }
    result
}

async fn deliver_to(
    ctx: &Context,
    subscriber: &Subscriber,
    project: ProjectId,
    now: Timestamp,
) -> Result<()> {
    loop {
        let mut session = ctx.store.db().begin().await?;
        let events = outbox::next(&mut session, project, subscriber.name, BATCH).await?;
        let Some(last) = events.last() else {
            session.commit().await?;
            return Ok(());
        };
        (subscriber.handle)(ctx, &mut session, project, &events, now).await?;
        outbox::set_cursor(&mut session, project, subscriber.name, last.seq).await?;
        session.commit().await?;
    }
}

/// Delivers what earlier deliveries left: events whose job was lost or failed.
///
/// # Errors
/// The first error, after all other projects.
#[boxed]
pub async fn resume(ctx: &Context, now: Timestamp) -> Result<()> {
    let waiting = outbox::waiting(&mut ctx.store.db().read().await?, RESUMED_PROJECTS).await?;
    let mut result = Ok(());
    for project in waiting {
        result = result.and(deliver(ctx, project, now).await);
    }
    result
}

/// Deletes old events, a batch; returns whether there may be more.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn purge(ctx: &Context, now: Timestamp) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let before = Timestamp(now.millis() - LIFE_MS);
    let purged = outbox::purge(&mut session, before, PURGE_BATCH).await.map_err(QueryError::from)?;
    session.commit().await?;
    Ok(purged > 0)
}
