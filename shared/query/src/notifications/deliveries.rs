//! Deliveries: sending, retrying, and the log people read.
//!
//! State `sending` is committed before the call. A process that finds a
//! delivery in that state follows one that ended in the middle of the call:
//! webhooks are sent again under the same delivery id, chats and mails are not,
//! because their recipients cannot tell a repetition.

use callboard_auth::sealed::StoredSecrets;
use callboard_auth::{Denied, Identity};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ChannelId, DeliveryId, UserId};
use callboard_domain::notifications::{ChannelKind, DeliveryState, Message, NotificationEvent};
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::jobs;
use callboard_store::notifications::channels::{self, ChannelRow};
use callboard_store::notifications::deliveries::{self, DeliveryRow, NewDelivery};
use callboard_store::notifications::told;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::channels::{ChannelConfig, opened, owned, require_owner};
use super::dispatch::{SendNotification, dispatch, report_pause};
use super::message::read_message;
use super::recipients::Recipients;
use super::summary::still_allowed;
use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::page::{Slice, fetch};
use crate::{Context, Entity, QueryError, Result};

/// Pauses before the second and later attempts, ms: five attempts over six hours.
const RETRY_AFTER_MS: [i64; 4] = [60_000, 10 * 60_000, 60 * 60_000, 5 * 60 * 60_000];
/// Failed deliveries in a row after which a channel pauses.
const FAILURES_BEFORE_PAUSE: i64 = 20;
/// How long deliveries stay in the log, ms.
const LOG_LIFE_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Deliveries deleted by one statement.
const PURGE_BATCH: i64 = 500;
/// Why a summary is not sent of which nothing is left.
const NOTHING_LEFT: &str = "The recipient has no access to the projects of this summary any more.";
/// Longest error in the log, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// A delivery.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Delivery id.
    pub id: i64,
    /// Event.
    #[schema(example = "run.failed")]
    pub event: &'static str,
    /// First line of the message.
    pub headline: String,
    /// `pending`, `sending`, `sent`, `unknown`, `failed`, `parked` or `skipped`.
    #[schema(example = "sent")]
    pub state: &'static str,
    /// Attempts so far.
    pub attempts: i64,
    /// When it is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<Timestamp>,
    /// Status of the last answer.
    pub response_status: Option<i64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When the event was handled.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When the recipient accepted it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub sent_at: Option<Timestamp>,
}

impl Delivery {
    fn from_row(row: DeliveryRow) -> Self {
        let headline = read_message(&row.payload).map(|message| message.headline).unwrap_or_default();
        Self {
            id: row.id.get(),
            event: row.event.as_str(),
            headline,
            state: row.state.as_str(),
            attempts: row.attempts,
            next_attempt_at: row.next_at,
            response_status: row.response_status,
            error: row.error,
            created_at: row.created_at,
            sent_at: row.sent_at,
        }
    }
}

/// The log of a channel, newest first.
///
/// # Errors
/// [`QueryError::NotFound`] for the channel.
#[boxed]
pub async fn deliveries(
    ctx: &Context,
    caller: &Identity,
    channel: ChannelId,
    state: Option<DeliveryState>,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<Delivery, i64>> {
    let mut session = ctx.store.db().read().await?;
    let missing = || QueryError::not_found(Entity::Channel, channel);
    let owner = channels::get(&mut session, channel).await?.ok_or_else(missing)?.user;
    if !caller.reaches_everything() {
        return Err(Denied::KeyScopeDenied.into());
    }
    require_owner(caller, owner, missing)?;
    let before = before.map(DeliveryId);
    let rows = deliveries::of_channel(&mut session, channel, state, before, fetch(limit)).await?;
    let mut found = Slice::cut(rows, limit, |row: &DeliveryRow| row.id.get());
    // A project may have been taken from the owner of the channel since.
    found.items.retain(|row| is_in_scope(caller, row));
    Ok(found.map(Delivery::from_row))
}

fn is_in_scope(caller: &Identity, row: &DeliveryRow) -> bool {
    row.project.is_none_or(|project| caller.scope().contains(project))
}

/// Queues a test message to a channel.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn send_test(ctx: &Context, acting: Acting<'_>, channel: ChannelId) -> Result<DeliveryId> {
    let mut session = ctx.store.db().begin().await?;
    let row = owned(&mut session, acting, channel).await?;
    let message = Message {
        headline: "Test message from Callboard".to_owned(),
        facts: vec![format!("The channel “{}” works.", row.name)],
        url: ctx.links.settings(),
        ..Message::default()
    };
    let now = acting.now;
    let new = NewDelivery {
        channel,
        project: None,
        event: NotificationEvent::Test,
        dedupe_key: None,
        payload: json!(message).to_string(),
    };
    let id = dispatch(&mut session, &row, &new, now).await?;
    let id = id.ok_or(StoreError::Damaged("the key of a new delivery"))?;
    session.commit().await?;
    Ok(id)
}

async fn enqueue(
    session: &mut Session,
    id: DeliveryId,
    attempt: i64,
    due: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let job = SendNotification { delivery: id };
    jobs::enqueue_at(session, &job.key(attempt), None, &job, due, now).await?;
    Ok(())
}

/// Sends a delivery again that failed, is parked, or may not have arrived.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::DeliveryNotFailed`].
pub async fn retry(ctx: &Context, acting: Acting<'_>, id: DeliveryId) -> Result<Delivery> {
    let now = acting.now;
    let mut session = ctx.store.db().begin().await?;
    let row = deliveries::lock(&mut session, id).await?;
    let missing = || QueryError::not_found(Entity::Delivery, id);
    let mut row = row.ok_or_else(missing)?;
    acting.reaches_everything()?;
    let owner = channels::get(&mut session, row.channel).await?.ok_or_else(missing)?.user;
    require_owner(acting.caller, owner, missing)?;
    if !is_in_scope(acting.caller, &row) {
        return Err(missing());
    }
    if !matches!(row.state, DeliveryState::Failed | DeliveryState::Parked | DeliveryState::Unknown) {
        return Err(AdministrationRule::DeliveryNotFailed.into());
    }
    row.state = DeliveryState::Pending;
    row.next_at = Some(now);
    deliveries::save(&mut session, &row).await?;
    // Attempts go on counting, so the key is new.
    enqueue(&mut session, id, row.attempts.max(1) * 1_000 + now.millis() % 1_000, now, now).await?;
    let detail = json!({ "event": row.event, "delivery": id });
    let target = ("channel", row.channel.get());
    let recorded = acting.record(&mut session, AuditAction::DeliveryRepeated, target, None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(Delivery::from_row(row))
}

/// A delivery whose call is to be made now.
#[derive(Debug)]
pub struct Begun {
    /// Id, the same at every attempt.
    pub id: DeliveryId,
    /// Channel.
    pub channel: ChannelId,
    /// Kind of channel.
    pub kind: ChannelKind,
    /// Whose channel it is.
    pub user: Option<UserId>,
    /// Where to, and with which secret; none for the address of a person.
    pub config: Option<ChannelConfig>,
    /// Event.
    pub event: NotificationEvent,
    /// What to say.
    pub message: Message,
    /// When the event was handled.
    pub at: Timestamp,
}

/// Notes that a delivery is being sent, before it is. `None` when there is
/// nothing to send.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn begin(
    ctx: &Context,
    secrets: &StoredSecrets,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Option<Begun>> {
    let mut session = ctx.store.db().begin().await?;
    let Some(mut row) = deliveries::lock(&mut session, id).await? else { return Ok(None) };
    let Some(channel) = channels::get(&mut session, row.channel).await? else { return Ok(None) };
    let was_cut_off = row.state == DeliveryState::Sending;
    if was_cut_off && !channel.kind.recognises_repeats() {
        row.state = DeliveryState::Unknown;
        row.error =
            Some("The service stopped while it was sending; the message may have arrived.".to_owned());
        row.next_at = None;
        deliveries::save(&mut session, &row).await?;
        session.commit().await?;
        return Ok(None);
    }
    if !was_cut_off && row.state != DeliveryState::Pending {
        return Ok(None);
    }
    // A test message shows whether a paused channel works again.
    if channel.paused_at.is_some() && row.event != NotificationEvent::Test {
        row.state = DeliveryState::Parked;
        row.next_at = None;
        deliveries::save(&mut session, &row).await?;
        session.commit().await?;
        return Ok(None);
    }
    let allowed = Recipients::default().check(ctx, &mut session, &channel, row.project, now).await?;
    let message = match allowed {
        Err(withheld) => Err(withheld.reason()),
        Ok(()) if row.event == NotificationEvent::Summary => {
            still_allowed(ctx, &mut session, &channel, &row, now).await?.ok_or(NOTHING_LEFT)
        }
        Ok(()) => Ok(read_message(&row.payload)?),
    };
    let message = match message {
        Ok(message) => message,
        Err(reason) => {
            row.state = DeliveryState::Skipped;
            row.error = Some(reason.to_owned());
            row.next_at = None;
            deliveries::save(&mut session, &row).await?;
            session.commit().await?;
            return Ok(None);
        }
    };
    let config = match (!channel.kind.is_personal()).then(|| opened(secrets, &channel)).transpose() {
        Ok(config) => config,
        Err(error) => {
            row.attempts += 1;
            let pause = pause_after(row.attempts);
            fail(ctx, &mut session, &mut row, None, error.to_string(), pause, now).await?;
            session.commit().await?;
            return Ok(None);
        }
    };
    row.state = DeliveryState::Sending;
    row.attempts += 1;
    row.next_at = None;
    deliveries::save(&mut session, &row).await?;
    session.commit().await?;
    Ok(Some(Begun {
        id,
        channel: channel.id,
        kind: channel.kind,
        user: channel.user,
        config,
        event: row.event,
        message,
        at: row.created_at,
    }))
}

/// What a recipient answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why it did not arrive; `None` when the recipient accepted it.
    pub error: Option<String>,
    /// When the recipient wants to be asked again at the earliest, ms from now.
    pub retry_after_ms: Option<i64>,
    /// Whether another attempt is pointless.
    pub is_final: bool,
}

/// Notes what became of a delivery that was sent, and queues another attempt
/// when it failed.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn finish(ctx: &Context, id: DeliveryId, outcome: Outcome, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let Some(mut row) = deliveries::lock(&mut session, id).await? else { return Ok(()) };
    let Outcome { status, error, retry_after_ms, is_final } = outcome;
    match error {
        None => {
            row.state = DeliveryState::Sent;
            (row.response_status, row.error, row.sent_at) = (status.map(i64::from), None, Some(now));
            deliveries::save(&mut session, &row).await?;
            if let Some(mut channel) = channels::lock(&mut session, row.channel).await?
                && (channel.failures > 0 || channel.last_error.is_some() || channel.verified_at.is_none())
            {
                (channel.failures, channel.last_error) = (0, None);
                channel.verified_at = channel.verified_at.or(Some(now));
                channels::save(&mut session, &channel).await?;
            }
        }
        Some(error) => {
            let pause = if is_final { None } else { pause_after(row.attempts) };
            fail(ctx, &mut session, &mut row, status, error, pause, now).await?;
            if row.state == DeliveryState::Pending {
                let least = retry_after_ms.unwrap_or_default().clamp(0, RETRY_AFTER_MS[3]);
                let due = row.next_at.map_or(now.millis(), Timestamp::millis).max(now.millis() + least);
                enqueue(&mut session, id, row.attempts, Timestamp(due), now).await?;
            }
        }
    }
    Ok(session.commit().await?)
}

/// How long to wait after some attempts, ms; `None` after the last.
fn pause_after(attempts: i64) -> Option<i64> {
    usize::try_from(attempts - 1).ok().and_then(|made| RETRY_AFTER_MS.get(made)).copied()
}

fn shortened(error: &str) -> String {
    match error.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &error[..end]),
        None => error.to_owned(),
    }
}

/// Writes a failed attempt: another one is due after a pause, or the delivery
/// failed and its channel comes nearer to its own pause.
async fn fail(
    ctx: &Context,
    session: &mut Session,
    row: &mut DeliveryRow,
    status: Option<u16>,
    error: String,
    pause: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    let error = shortened(&error);
    row.state = if pause.is_some() { DeliveryState::Pending } else { DeliveryState::Failed };
    row.next_at = pause.map(|ms| Timestamp(now.millis() + ms));
    row.response_status = status.map(i64::from);
    row.error = Some(error.clone());
    deliveries::save(session, row).await?;
    if let Some(mut channel) = channels::lock(session, row.channel).await? {
        let is_paused_now = note_failure(&mut channel, error, pause.is_none(), now);
        channels::save(session, &channel).await?;
        if is_paused_now {
            report_pause(ctx, session, &channel, now).await?;
        }
    }
    Ok(())
}

/// Counts a failure; returns whether the channel pauses by it.
fn note_failure(channel: &mut ChannelRow, error: String, has_failed: bool, now: Timestamp) -> bool {
    channel.last_error = Some(error);
    channel.failures += i64::from(has_failed);
    let pauses = channel.failures >= FAILURES_BEFORE_PAUSE && channel.paused_at.is_none();
    if pauses {
        channel.paused_at = Some(now);
    }
    pauses
}

/// Deletes old deliveries, a batch; returns whether there may be more.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn purge_deliveries(ctx: &Context, now: Timestamp) -> Result<bool> {
    let mut session = ctx.store.db().begin().await?;
    let before = Timestamp(now.millis() - LOG_LIFE_MS);
    let purged = deliveries::purge(&mut session, before, PURGE_BATCH).await?;
    told::purge(&mut session, before).await?;
    session.commit().await?;
    Ok(purged > 0)
}
