//! Turns domain events into deliveries.

use std::collections::BTreeSet;

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ChannelId, ClusterId, ProjectId, RunId, TestCaseId};
use callboard_domain::notifications::{Message, NotificationEvent as Event};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::jobs;
use callboard_store::notifications::channels;
use callboard_store::notifications::deliveries::{self, NewDelivery};
use callboard_store::notifications::held::{self, HeldRow};
use callboard_store::notifications::subscriptions::{self, SubscriptionRow};
use callboard_store::outbox::StoredEvent;
use callboard_store::projects::{self, ProjectRow};
use callboard_store::runs::{self, RunRow};
use serde_json::json;

use super::deliveries::SendNotification;
use super::message;
use crate::{Context, Result};

const HOUR_MS: i64 = 60 * 60 * 1000;
/// A run that began longer ago than this is back-filled, and nobody is notified, ms.
const SILENT_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

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
    for stored in events {
        for notice in notices(session, &project, stored).await? {
            let wanting = wanting(&subscriptions, &notice, &project, now);
            if wanting.is_empty() {
                continue;
            }
            let Some(message) = notice.message(ctx, session, &project).await? else { continue };
            let payload = json!(message).to_string();
            for (subscription, due) in wanting {
                let channel = subscription.channel;
                let due = match due {
                    Some(due) => Some(due),
                    None => due_by_limit(session, channel, now).await?,
                };
                let event = notice.event_for(subscription);
                let dedupe_key = format!("{}:{}:{}:{channel}", project.id, stored.seq, notice.topic);
                if let Some(due_at) = due {
                    let row = HeldRow {
                        dedupe_key,
                        channel,
                        subscription: subscription.id,
                        project: project.id,
                        event,
                        payload: payload.clone(),
                        due_at,
                        created_at: now,
                    };
                    held::insert(session, &row).await?;
                    continue;
                }
                let new = NewDelivery {
                    channel,
                    project: Some(project.id),
                    event,
                    dedupe_key: Some(dedupe_key),
                    payload: payload.clone(),
                };
                if let Some(id) = deliveries::insert(session, &new, now).await? {
                    let job = SendNotification { delivery: id };
                    jobs::enqueue(session, &job.key(0), Some(project.id), &job, now).await?;
                }
            }
        }
    }
    Ok(())
}

/// The subscriptions that want a notice, one of each channel, with the moment their schedules name. Of several, the
/// one whose message arrives first: a channel gets no message twice.
fn wanting<'s>(
    subscriptions: &'s [SubscriptionRow],
    notice: &Notice,
    project: &ProjectRow,
    now: Timestamp,
) -> Vec<(&'s SubscriptionRow, Option<Timestamp>)> {
    let wanted = subscriptions.iter().filter(|one| notice.is_wanted(one, project));
    let mut wanting: Vec<_> = wanted.map(|one| (one, one.schedule.due(now))).collect();
    // Sorted by the moment, at once first; the sort keeps the order of equal ones.
    wanting.sort_by_key(|(_, due)| *due);
    let mut seen = BTreeSet::new();
    wanting.retain(|(one, _)| seen.insert(one.channel));
    wanting
}

/// When the next message of a channel is sent that has sent enough in the last hour; `None` for now.
async fn due_by_limit(
    session: &mut Session,
    channel: ChannelId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let Some(row) = channels::get(session, channel).await? else { return Ok(None) };
    let oldest = deliveries::made_before_newest(session, channel, row.hourly_limit - 1).await?;
    let free = oldest.map(|at| Timestamp(at.millis() + HOUR_MS));
    Ok(free.filter(|free| *free > now))
}

/// Something that a domain event means to subscribers.
struct Notice {
    /// What it is in keys.
    topic: &'static str,
    /// The events under which one may have subscribed to it, most specific first.
    events: Vec<Event>,
    subject: Subject,
    run: Option<RunRow>,
}

enum Subject {
    Run,
    Cluster { cluster: ClusterId, run: RunId },
    TestCase(TestCaseId),
}

async fn notices(session: &mut Session, project: &ProjectRow, stored: &StoredEvent) -> Result<Vec<Notice>> {
    let (topic, events, subject, run) = match &stored.event {
        DomainEvent::RunEvaluated { run } => {
            ("run", vec![Event::RunFailed, Event::RunFinished], Subject::Run, *run)
        }
        DomainEvent::BranchWentRed { run } => ("red", vec![Event::BranchRed], Subject::Run, *run),
        DomainEvent::BranchRecovered { run } => ("green", vec![Event::BranchRecovered], Subject::Run, *run),
        DomainEvent::ShardsMissing { run, .. } => ("shards", vec![Event::ShardMissing], Subject::Run, *run),
        DomainEvent::ClusterOpened { cluster, run } => {
            ("new", vec![Event::ClusterNew], Subject::Cluster { cluster: *cluster, run: *run }, *run)
        }
        DomainEvent::ClusterReopened { cluster, run } => {
            ("back", vec![Event::ClusterRegressed], Subject::Cluster { cluster: *cluster, run: *run }, *run)
        }
        DomainEvent::ClusterVerified { cluster, run } => {
            ("fixed", vec![Event::ClusterVerified], Subject::Cluster { cluster: *cluster, run: *run }, *run)
        }
        DomainEvent::QuarantineReleased { test_case } => {
            let (events, subject) = (vec![Event::QuarantineReleased], Subject::TestCase(*test_case));
            return Ok(vec![Notice { topic: "released", events, subject, run: None }]);
        }
        DomainEvent::RunStarted { .. }
        | DomainEvent::RunFinished { .. }
        | DomainEvent::RunReopened { .. }
        | DomainEvent::RunRevised { .. } => return Ok(Vec::new()),
    };
    let Some(row) = runs::get(session, project.id, run).await? else { return Ok(Vec::new()) };
    if stored.at.millis() - row.start_time.millis() > SILENT_AFTER_MS {
        return Ok(Vec::new());
    }
    let events =
        events.into_iter().filter(|event| *event != Event::RunFailed || row.status != RunStatus::Passed);
    Ok(vec![Notice { topic, events: events.collect(), subject, run: Some(row) }])
}

impl Notice {
    fn is_wanted(&self, subscription: &SubscriptionRow, project: &ProjectRow) -> bool {
        let is_named = |event: &Event| subscription.events.iter().any(|word| word == event.as_str());
        if !self.events.iter().any(is_named) {
            return false;
        }
        let Some(run) = &self.run else { return true };
        let is_among = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        let default = project.default_branch.as_deref().unwrap_or_default();
        is_among(&subscription.branches, &run.branch)
            && is_among(&subscription.environments, &run.environment)
            && (!subscription.default_branch_only || run.branch == default)
    }

    /// The event that a subscription asked for.
    fn event_for(&self, subscription: &SubscriptionRow) -> Event {
        let is_named = |event: &&Event| subscription.events.iter().any(|word| word == event.as_str());
        self.events.iter().find(is_named).copied().unwrap_or(self.events[0])
    }

    async fn message(
        &self,
        ctx: &Context,
        session: &mut Session,
        project: &ProjectRow,
    ) -> Result<Option<Message>> {
        let event = self.events[0];
        match (&self.subject, &self.run) {
            (Subject::Run, Some(run)) => {
                Ok(Some(message::about_run(ctx, session, project, run, event).await?))
            }
            (Subject::Run, None) => Ok(None),
            (Subject::Cluster { cluster, run }, _) => {
                message::about_cluster(ctx, session, project, *cluster, *run, event).await
            }
            (Subject::TestCase(case), _) => message::about_release(ctx, session, project, *case).await,
        }
    }
}
