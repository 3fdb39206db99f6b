//! Sends notifications.

use callboard_domain::notifications::ChannelKind;
use callboard_integrations::{Failure, Notification, send};
use callboard_query::notifications::{self, ChannelConfig, Outcome as Answer, SendNotification};
use callboard_query::storage_quota;
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
    let config = ctx.state().mail_config().await?;
    let final_failure = |error: &str| Answer {
        status: None,
        error: Some(error.to_owned()),
        retry_after_ms: None,
        is_final: true,
    };
    let channel = match (begun.config, begun.user) {
        (Some(config), _) => config,
        (None, Some(user)) => match notifications::confirmed_address(&background, user).await? {
            Some(address) => ChannelConfig::from_address(address),
            None => {
                let answer = final_failure("The account has no confirmed email address.");
                notifications::finish(&background, begun.id, answer, ctx.now()).await?;
                return Ok(Outcome::Done);
            }
        },
        (None, None) => return Ok(Outcome::Done),
    };
    let address = channel.address.as_str();
    // The setting or the account may have changed since the channel was created.
    if begun.kind == ChannelKind::Email
        && !config.mails_to(address)
        && !notifications::is_confirmed_address(&background, address).await?
    {
        let answer = final_failure(
            "The address is no longer a confirmed one of an account, and SERVICE_MAIL_ALLOW does not name it.",
        );
        notifications::finish(&background, begun.id, answer, ctx.now()).await?;
        return Ok(Outcome::Done);
    }
    let unsubscribe = match begun.kind {
        ChannelKind::Email => Some(notifications::unsubscribe_token(secrets, begun.channel, address)?),
        // Needs no key to be set up, so there may be none.
        ChannelKind::PersonalEmail => notifications::unsubscribe_token(secrets, begun.channel, address).ok(),
        _ => None,
    };
    let sent = Notification {
        kind: begun.kind,
        address,
        secrets: &channel.signing_secrets(ctx.now()),
        bot_token: channel.bot_token.as_deref(),
        unsubscribe: unsubscribe.as_deref(),
        delivery: begun.id.get(),
        event: begun.event.as_str(),
        at: begun.at,
        message: &begun.message,
    };
    let answer = match send(&config, &sent, ctx.now()).await {
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

/// Storage is compared with its quotas.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CheckQuotas {}

impl Payload for CheckQuotas {
    const KIND: &'static str = "check_quotas";
}

/// Reports which projects reached another share of their storage quota, and whether the instance did.
pub(crate) async fn check_quotas(ctx: JobContext, _: CheckQuotas) -> Result<Outcome<CheckQuotas>, JobError> {
    storage_quota::check(&ctx.state().background(), ctx.now()).await?;
    Ok(Outcome::Done)
}
