//! Turns domain events into deliveries.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::ids::{ChannelId, ProjectId};
use callboard_domain::notifications::{Message, NotificationEvent as Event};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::notifications::channels::{self, ChannelRow};
use callboard_store::notifications::deliveries::{self, NewDelivery};
use callboard_store::notifications::held::{self, HeldRow};
use callboard_store::notifications::subscriptions::{self, SubscriptionRow};
use callboard_store::notifications::told;
use callboard_store::outbox::StoredEvent;
use callboard_store::projects::{self, ProjectRow};
use serde_json::json;

use super::dispatch::dispatch;
use super::notices::{Notice, key, notices};
use super::recipients::Recipients;
use crate::{Context, Result};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// Stores the deliveries of some events of a project, and queues their sending.
pub(crate) async fn queue_deliveries(
    ctx: &Context,
    session: &mut Session,
    project: ProjectId,
    events: &[StoredEvent],
    now: Timestamp,
) -> Result<()> {
    let subscriptions = subscriptions::active_for(session, project, now).await?;
    if subscriptions.is_empty() {
        return Ok(());
    }
    let Some(project) = projects::get(session, project).await? else { return Ok(()) };
    let channels = channels_of(ctx, session, &subscriptions, project.id, now).await?;
    let subscriptions: Vec<SubscriptionRow> =
        subscriptions.into_iter().filter(|one| channels.contains_key(&one.channel)).collect();
    for stored in events {
        for notice in notices(session, &project, stored, &subscriptions).await? {
            let told = match &notice.state {
                Some(state) => told::of_subject(session, project.id, &state.subject).await?,
                None => Vec::new(),
            };
            let told: HashMap<ChannelId, String> = told.into_iter().collect();
            for wanting in wanting(&subscriptions, &notice, &project, &told, now) {
                let Some(channel) = channels.get(&wanting.subscription.channel) else { continue };
                let before = told.get(&channel.id).map(String::as_str);
                let message = notice.message(ctx, session, &project, wanting.event, before).await?;
                let Some(message) = message else { continue };
                let outgoing = Outgoing {
                    project: project.id,
                    key: format!("{}:{}", key(project.id, stored.seq, &notice.topic), channel.id),
                    channel,
                    wanting,
                    message,
                };
                outgoing.send_or_hold(session, now).await?;
                if let Some(state) = &notice.state {
                    let after = state.after(before);
                    told::note(session, project.id, &state.subject, channel.id, &after, now).await?;
                }
            }
        }
    }
    Ok(())
}

/// Sends what is about the instance as a whole to those who subscribed to all projects: channels of the instance.
pub(super) async fn queue_for_instance(
    session: &mut Session,
    event: Event,
    dedupe_key: &str,
    message: &Message,
    now: Timestamp,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    for subscription in subscriptions::active_for(session, ProjectId(0), now).await? {
        let is_named = subscription.events.iter().any(|word| word == event.as_str());
        if subscription.user.is_some() || !is_named || !seen.insert(subscription.channel) {
            continue;
        }
        let Some(channel) = channels::get(session, subscription.channel).await? else { continue };
        let new = NewDelivery {
            channel: channel.id,
            project: None,
            event,
            dedupe_key: Some(format!("{dedupe_key}:{}", channel.id)),
            payload: json!(message).to_string(),
        };
        dispatch(session, &channel, &new, now).await?;
    }
    Ok(())
}

/// The channels of subscriptions that may be sent what is about a project.
async fn channels_of(
    ctx: &Context,
    session: &mut Session,
    subscriptions: &[SubscriptionRow],
    project: ProjectId,
    now: Timestamp,
) -> Result<HashMap<ChannelId, ChannelRow>> {
    let ids: BTreeSet<ChannelId> = subscriptions.iter().map(|one| one.channel).collect();
    let mut recipients = Recipients::default();
    let mut found = HashMap::new();
    for id in ids {
        let Some(channel) = channels::get(session, id).await? else { continue };
        if recipients.check(ctx, session, &channel, Some(project), now).await?.is_ok() {
            found.insert(id, channel);
        }
    }
    Ok(found)
}

/// A subscription that gets a notice.
struct Wanting<'s> {
    subscription: &'s SubscriptionRow,
    event: Event,
    /// The moment its schedule names; `None` for now.
    due: Option<Timestamp>,
}

/// The subscriptions that get a notice, one of each channel. Of several, the one whose message arrives first: a channel
/// gets no message twice.
fn wanting<'s>(
    subscriptions: &'s [SubscriptionRow],
    notice: &Notice,
    project: &ProjectRow,
    told: &HashMap<ChannelId, String>,
    now: Timestamp,
) -> Vec<Wanting<'s>> {
    let wanted = |subscription: &'s SubscriptionRow| {
        let before = told.get(&subscription.channel).map(String::as_str);
        let event = notice.event_for(subscription, project, before)?;
        Some(Wanting { subscription, event, due: subscription.schedule.due(now) })
    };
    let mut wanting: Vec<_> = subscriptions.iter().filter_map(wanted).collect();
    // Sorted by the moment, immediate ones first; the sort keeps the order of equal ones.
    wanting.sort_by_key(|one| one.due);
    let mut seen = BTreeSet::new();
    wanting.retain(|one| seen.insert(one.subscription.channel));
    wanting
}

/// A message for a channel.
struct Outgoing<'s> {
    project: ProjectId,
    key: String,
    channel: &'s ChannelRow,
    wanting: Wanting<'s>,
    message: Message,
}

impl Outgoing<'_> {
    /// Sends it, or holds it back until its time comes.
    async fn send_or_hold(self, session: &mut Session, now: Timestamp) -> Result<()> {
        let Self { project, key, channel, wanting, message } = self;
        let Wanting { subscription, event, due } = wanting;
        let payload = json!(message).to_string();
        let due = match due {
            Some(due) => Some(due),
            None => due_by_limit(session, channel, now).await?,
        };
        if let Some(due_at) = due {
            let row = HeldRow {
                dedupe_key: key,
                channel: channel.id,
                subscription: subscription.id,
                project,
                event,
                payload,
                due_at,
                created_at: now,
            };
            held::insert(session, &row).await?;
            return Ok(());
        }
        let dedupe_key = Some(key);
        let new = NewDelivery { channel: channel.id, project: Some(project), event, dedupe_key, payload };
        dispatch(session, channel, &new, now).await?;
        Ok(())
    }
}

/// When the next message of a channel is sent that has sent enough in the last hour; `None` for now.
async fn due_by_limit(
    session: &mut Session,
    channel: &ChannelRow,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let oldest = deliveries::made_before_newest(session, channel.id, channel.hourly_limit - 1).await?;
    let free = oldest.map(|at| Timestamp(at.millis() + HOUR_MS));
    Ok(free.filter(|free| *free > now))
}
