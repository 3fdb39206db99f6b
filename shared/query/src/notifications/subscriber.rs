//! Turns domain events into deliveries.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use callboard_domain::events::DomainEvent;
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
use super::notices::{Material, Notice, follow_joins, key, run_of, run_subject};
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
    let mut subscriptions = subscriptions::active_for(session, project, now).await?;
    let mut memory = Memory::read(session, project, events).await?;
    let Some(project) = projects::get(session, project).await? else { return Ok(()) };
    let channels = channels_of(ctx, session, &subscriptions, project.id, now).await?;
    subscriptions.retain(|one| channels.contains_key(&one.channel));
    follow_joins(session, project.id, &mut subscriptions).await?;
    let material = Material::read(session, project.id, events, &subscriptions).await?;
    for stored in events {
        let observed = memory.observed(&stored.event).map(str::to_owned);
        if !subscriptions.is_empty() {
            for notice in material.notices(session, &project, stored, observed.as_deref()).await? {
                let scene =
                    Scene { ctx, project: &project, channels: &channels, subscriptions: &subscriptions };
                scene.tell(session, &mut memory, &notice, stored.seq, now).await?;
            }
        }
        // What is evaluated again may not have been reported as ended yet.
        if let DomainEvent::RunEvaluated { run, again } = &stored.event
            && let Some(outcome) = material.outcome(&stored.event)
            && (!again || observed.is_some())
        {
            memory.note(session, run_subject(*run), told::OBSERVED, outcome, now).await?;
        }
    }
    Ok(())
}

/// What channels were told about subjects, and how these were when they were last looked at.
struct Memory {
    project: ProjectId,
    /// By subject; those that are missing were not read yet.
    known: HashMap<String, HashMap<ChannelId, String>>,
}

impl Memory {
    /// What is known about the runs of some events.
    async fn read(session: &mut Session, project: ProjectId, events: &[StoredEvent]) -> Result<Self> {
        let runs: BTreeSet<_> = events.iter().filter_map(|stored| run_of(&stored.event)).collect();
        let mut memory = Self { project, known: HashMap::new() };
        memory.learn(session, runs.into_iter().map(run_subject).collect()).await?;
        Ok(memory)
    }

    async fn learn(&mut self, session: &mut Session, subjects: Vec<String>) -> Result<()> {
        if subjects.is_empty() {
            return Ok(());
        }
        for subject in &subjects {
            self.known.insert(subject.clone(), HashMap::new());
        }
        for (subject, channel, state) in told::of_subjects(session, self.project, subjects).await? {
            self.known.entry(subject).or_default().insert(channel, state);
        }
        Ok(())
    }

    /// What channels were told about a subject.
    async fn states(&mut self, session: &mut Session, subject: &str) -> Result<HashMap<ChannelId, String>> {
        if !self.known.contains_key(subject) {
            self.learn(session, vec![subject.to_owned()]).await?;
        }
        Ok(self.known.get(subject).cloned().unwrap_or_default())
    }

    /// How the run of an event was when it was last looked at.
    fn observed(&self, event: &DomainEvent) -> Option<&str> {
        let of_run = self.known.get(&run_subject(run_of(event)?))?;
        of_run.get(&told::OBSERVED).map(String::as_str)
    }

    async fn note(
        &mut self,
        session: &mut Session,
        subject: String,
        channel: ChannelId,
        state: String,
        now: Timestamp,
    ) -> Result<()> {
        let known = self.known.entry(subject.clone()).or_default();
        if known.get(&channel) != Some(&state) {
            told::note(session, self.project, &subject, channel, &state, now).await?;
            known.insert(channel, state);
        }
        Ok(())
    }
}

/// What messages about a project are made with.
struct Scene<'s> {
    ctx: &'s Context,
    project: &'s ProjectRow,
    channels: &'s HashMap<ChannelId, ChannelRow>,
    subscriptions: &'s [SubscriptionRow],
}

impl Scene<'_> {
    /// Queues a notice for every channel that subscribed to it, and stores the reported state.
    async fn tell(
        &self,
        session: &mut Session,
        memory: &mut Memory,
        notice: &Notice,
        seq: i64,
        now: Timestamp,
    ) -> Result<()> {
        let told = match &notice.state {
            Some(state) => memory.states(session, &state.subject).await?,
            None => HashMap::new(),
        };
        // Channels that were told the same before get the same message.
        let mut made: HashMap<(&'static str, Option<&str>), Option<Message>> = HashMap::new();
        for wanting in wanting(self.subscriptions, notice, self.project, &told, now) {
            let Some(channel) = self.channels.get(&wanting.subscription.channel) else { continue };
            let before = told.get(&channel.id).map(String::as_str);
            let message = match made.entry((wanting.event.as_str(), before)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => {
                    let message =
                        notice.message(self.ctx, session, self.project, wanting.event, before).await?;
                    place.insert(message).clone()
                }
            };
            let Some(message) = message else { continue };
            let outgoing = Outgoing {
                project: Some(self.project.id),
                key: format!("{}:{}", key(self.project.id, seq, &notice.topic), channel.id),
                channel,
                wanting,
                message,
            };
            outgoing.send_or_hold(session, now).await?;
            if let Some(state) = &notice.state {
                let after = state.after(before);
                memory.note(session, state.subject.clone(), channel.id, after, now).await?;
            }
        }
        Ok(())
    }
}

/// Sends what is about the instance as a whole to those who subscribed to all projects: channels of the instance, at the
/// times of their subscriptions.
pub(super) async fn queue_for_instance(
    session: &mut Session,
    event: Event,
    dedupe_key: &str,
    message: &Message,
    now: Timestamp,
) -> Result<()> {
    let subscriptions = subscriptions::active_for(session, ProjectId(0), now).await?;
    let is_wanted = |one: &&SubscriptionRow| {
        one.user.is_none()
            && one.owners.is_empty()
            && one.tags.is_empty()
            && one.events.iter().any(|word| word == event.as_str())
    };
    let wanting = subscriptions.iter().filter(is_wanted);
    let wanting =
        wanting.map(|subscription| Wanting { subscription, event, due: subscription.schedule.due(now) });
    let wanting = one_of_each_channel(wanting.collect());
    let ids = wanting.iter().map(|one| one.subscription.channel.get()).collect();
    let channels = channels::get_many(session, ids).await?;
    for wanting in wanting {
        let channel = channels.iter().find(|channel| channel.id == wanting.subscription.channel);
        let Some(channel) = channel else { continue };
        let key = format!("{dedupe_key}:{}", channel.id);
        let outgoing = Outgoing { project: None, key, channel, wanting, message: message.clone() };
        outgoing.send_or_hold(session, now).await?;
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
    let ids: BTreeSet<i64> = subscriptions.iter().map(|one| one.channel.get()).collect();
    let mut recipients = Recipients::default();
    let mut found = HashMap::new();
    if ids.is_empty() {
        return Ok(found);
    }
    for channel in channels::get_many(session, ids.into_iter().collect()).await? {
        if recipients.check(ctx, session, &channel, Some(project), now).await?.is_ok() {
            found.insert(channel.id, channel);
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
    one_of_each_channel(subscriptions.iter().filter_map(wanted).collect())
}

fn one_of_each_channel(mut wanting: Vec<Wanting<'_>>) -> Vec<Wanting<'_>> {
    // Sorted by the moment, immediate ones first; the sort keeps the order of equal ones.
    wanting.sort_by_key(|one| one.due);
    let mut seen = BTreeSet::new();
    wanting.retain(|one| seen.insert(one.subscription.channel));
    wanting
}

/// A message for a channel.
struct Outgoing<'s> {
    /// `None` for what is about the instance.
    project: Option<ProjectId>,
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
        let new = NewDelivery { channel: channel.id, project, event, dedupe_key, payload };
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
