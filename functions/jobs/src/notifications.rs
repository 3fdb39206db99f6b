//! Sends notifications.

use callboard_domain::notifications::ChannelKind;
use callboard_integrations::{Failure, Notification, send};
use callboard_query::notifications::{self, Outcome as Answer, SendNotification};
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// Sends one delivery. Its next attempt, if it needs one, is another job.
pub(crate) async fn send_notification(
    ctx: JobContext,
    job: SendNotification,
) -> Result<Outcome<SendNotification>, JobError> {
    let background = ctx.state().background();
    let secrets = ctx.state().stored_secrets();
    let Some(begun) = notifications::begin(&background, secrets, job.delivery, ctx.now()).await? else {
        return Ok(Outcome::Done);
    };
    let config = ctx.state().config();
    // The setting or the account may have changed since the channel was created.
    if begun.kind == ChannelKind::Email
        && config.mail.as_ref().is_some_and(|mail| !mail.allows(&begun.config.address))
        && !notifications::is_confirmed_address(&background, &begun.config.address).await?
    {
        let error = "The address is no longer a confirmed one of an account, and SERVICE_MAIL_ALLOW does not name it.";
        let answer =
            Answer { status: None, error: Some(error.to_owned()), retry_after_ms: None, is_final: true };
        notifications::finish(&background, begun.id, answer, ctx.now()).await?;
        return Ok(Outcome::Done);
    }
    let unsubscribe = match begun.kind {
        ChannelKind::Email => {
            Some(notifications::unsubscribe_token(secrets, begun.channel, &begun.config.address)?)
        }
        _ => None,
    };
    let sent = Notification {
        kind: begun.kind,
        address: &begun.config.address,
        secret: begun.config.secret.as_deref(),
        unsubscribe: unsubscribe.as_deref(),
        delivery: begun.id.get(),
        event: begun.event.as_str(),
        at: begun.at,
        message: &begun.message,
    };
    let answer = match send(config, &sent, ctx.now()).await {
        Ok(status) => Answer { status, error: None, retry_after_ms: None, is_final: true },
        Err(Failure { status, reason, retry_after_ms, is_final }) => {
            tracing::info!(delivery = begun.id.get(), status, reason, "a notification did not arrive");
            Answer { status, error: Some(reason), retry_after_ms, is_final }
        }
    };
    notifications::finish(&background, begun.id, answer, ctx.now()).await?;
    Ok(Outcome::Done)
}

/// What waited for its time is sent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SendHeldNotifications {}

impl Payload for SendHeldNotifications {
    const KIND: &'static str = "send_held_notifications";
}

/// Queues the digests and summaries that are due.
pub(crate) async fn send_held_notifications(
    ctx: JobContext,
    job: SendHeldNotifications,
) -> Result<Outcome<SendHeldNotifications>, JobError> {
    while ctx.has_time() {
        if !notifications::send_held(&ctx.state().background(), ctx.now()).await? {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}

/// Old deliveries are deleted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgeDeliveries {}

impl Payload for PurgeDeliveries {
    const KIND: &'static str = "purge_deliveries";
}

/// Deletes deliveries that nobody will look up any more.
pub(crate) async fn purge_deliveries(
    ctx: JobContext,
    job: PurgeDeliveries,
) -> Result<Outcome<PurgeDeliveries>, JobError> {
    while ctx.has_time() {
        if !notifications::purge_deliveries(&ctx.state().background(), ctx.now()).await? {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}
