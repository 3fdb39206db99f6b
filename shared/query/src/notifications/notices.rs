//! What domain events mean to subscribers.

use std::collections::BTreeSet;

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ClusterId, DiagnosisId, ProjectId, RunId, TestCaseId};
use callboard_domain::notifications::{Message, NotificationEvent as Event};
use callboard_domain::status::{Outcome, RunStatus};
use callboard_domain::test_state::ExecutionFlags;
use callboard_store::clusters::reads;
use callboard_store::db::Session;
use callboard_store::executions::{self, RunPlace};
use callboard_store::notifications::subscriptions::SubscriptionRow;
use callboard_store::outbox::StoredEvent;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};

use super::message::{self, QuotaFacts};
use crate::{Context, Result};

/// A run that began longer ago than this is back-filled, and nobody is notified, ms.
const SILENT_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// Something that a domain event means to subscribers.
pub(super) struct Notice {
    /// What it is in keys.
    pub(super) topic: String,
    /// The events under which one may have subscribed to it, most specific first.
    events: Vec<Event>,
    subject: Subject,
    run: Option<RunRow>,
    /// Test cases it is about, of those that somebody subscribed to.
    cases: BTreeSet<TestCaseId>,
    /// Whether it is too old to be sent for the first time.
    is_silent: bool,
    /// What channels that were sent it have to be told when it changes.
    pub(super) state: Option<ToldState>,
}

/// Something that may be corrected, and how it is now.
pub(super) struct ToldState {
    /// What it is about.
    pub(super) subject: String,
    /// How it is.
    pub(super) now: String,
    /// Whether this notice is sent only when a channel was told nothing or something else. Otherwise it is a change of
    /// its own, and always sent.
    pub(super) is_repeated: bool,
}

enum Subject {
    Run,
    Cluster { cluster: ClusterId, run: RunId },
    TestCase(TestCaseId),
    Slower { case: TestCaseId, before_ms: i64, after_ms: i64 },
    Dropped { reason: String },
    Diagnosis { diagnosis: DiagnosisId, cluster: ClusterId },
    Quota(QuotaFacts),
}

/// What a state ends with once the end of the run itself was sent.
const RUN_TOLD: &str = " run";

/// How a run ended, as channels remember it.
fn outcome_of(run: &RunRow) -> String {
    format!("{} {}", run.status.as_str(), message::failed_tests(run))
}

/// The outcome of a state, without what else it says.
fn outcome_in(state: &str) -> &str {
    state.strip_suffix(RUN_TOLD).unwrap_or(state)
}

impl ToldState {
    /// What a channel is to remember that remembered something before.
    pub(super) fn after(&self, before: Option<&str>) -> String {
        let keeps = before.is_some_and(|before| before.ends_with(RUN_TOLD)) && !self.now.ends_with(RUN_TOLD);
        if keeps { format!("{}{RUN_TOLD}", self.now) } else { self.now.clone() }
    }
}

/// What an event means: nothing, or one notice or more.
pub(super) async fn notices(
    session: &mut Session,
    project: &ProjectRow,
    stored: &StoredEvent,
    subscriptions: &[SubscriptionRow],
) -> Result<Vec<Notice>> {
    let of_run = match &stored.event {
        DomainEvent::RunEvaluated { run }
        | DomainEvent::BranchWentRed { run }
        | DomainEvent::BranchRecovered { run }
        | DomainEvent::ShardsMissing { run, .. }
        | DomainEvent::ClusterOpened { run, .. }
        | DomainEvent::ClusterReopened { run, .. }
        | DomainEvent::ClusterVerified { run, .. }
        | DomainEvent::TestSlower { run, .. }
        | DomainEvent::EvidenceDropped { run, .. } => *run,
        other => return Ok(without_run(other).into_iter().collect()),
    };
    let Some(run) = runs::get(session, project.id, of_run).await? else { return Ok(Vec::new()) };
    let is_silent = stored.at.millis() - run.start_time.millis() > SILENT_AFTER_MS;
    let cases: BTreeSet<TestCaseId> = subscriptions.iter().filter_map(|one| one.test_case).collect();
    let cluster = |cluster: &ClusterId| Subject::Cluster { cluster: *cluster, run: of_run };
    let (topic, event, subject) = match &stored.event {
        // A run that goes on again is reported when it ends.
        DomainEvent::RunEvaluated { .. } if !run.status.is_final() => return Ok(Vec::new()),
        DomainEvent::RunEvaluated { .. } => {
            let mut found = of_tests(session, &run, &cases, is_silent).await?;
            found.insert(0, ended(run, is_silent));
            return Ok(found);
        }
        DomainEvent::BranchWentRed { .. } => ("red", Event::BranchRed, Subject::Run),
        DomainEvent::BranchRecovered { .. } => ("green", Event::BranchRecovered, Subject::Run),
        DomainEvent::ShardsMissing { .. } => ("shards", Event::ShardMissing, Subject::Run),
        DomainEvent::ClusterOpened { cluster: id, .. } => ("new", Event::ClusterNew, cluster(id)),
        DomainEvent::ClusterReopened { cluster: id, .. } => ("back", Event::ClusterRegressed, cluster(id)),
        DomainEvent::ClusterVerified { cluster: id, .. } => ("fixed", Event::ClusterVerified, cluster(id)),
        DomainEvent::TestSlower { test_case, before_ms, after_ms, .. } => {
            let subject = Subject::Slower { case: *test_case, before_ms: *before_ms, after_ms: *after_ms };
            let mut notice = Notice::new("slower", vec![Event::TestSlower], subject);
            notice.state = Some(ToldState {
                subject: format!("slower:{test_case}:{}", run.lane_id),
                now: rounded(*after_ms),
                is_repeated: true,
            });
            return Ok(vec![Notice { is_silent, run: Some(run), ..notice }]);
        }
        DomainEvent::EvidenceDropped { reason, .. } => {
            ("dropped", Event::EvidenceDropped, Subject::Dropped { reason: reason.clone() })
        }
        _ => return Ok(Vec::new()),
    };
    let mut notice = Notice { is_silent, ..Notice::new(topic, vec![event], subject) };
    match notice.subject {
        Subject::Run => {
            let (subject, now) = (format!("run:{}", run.id), outcome_of(&run));
            notice.state = Some(ToldState { subject, now, is_repeated: false });
        }
        Subject::Cluster { cluster, .. } => {
            for case in cases {
                if reads::of_cluster(session, project.id, cluster, case).await? {
                    notice.cases.insert(case);
                }
            }
        }
        Subject::Dropped { .. } => {
            let (subject, now) = (format!("dropped:{}", run.id), "told".to_owned());
            notice.state = Some(ToldState { subject, now, is_repeated: true });
        }
        _ => {}
    }
    Ok(vec![Notice { run: Some(run), ..notice }])
}

/// A duration to two digits: what is told is not told again for as much.
fn rounded(ms: i64) -> String {
    let scale = 10_i64.pow(ms.max(1).ilog10().saturating_sub(1));
    format!("{}", ms / scale * scale)
}

/// A run ended, or was evaluated again after it had.
fn ended(run: RunRow, is_silent: bool) -> Notice {
    let mut events = vec![Event::RunFailed, Event::RunFinished];
    events.retain(|event| *event != Event::RunFailed || run.status != RunStatus::Passed);
    let now = format!("{}{RUN_TOLD}", outcome_of(&run));
    let state = ToldState { subject: format!("run:{}", run.id), now, is_repeated: true };
    let notice = Notice::new("run", events, Subject::Run);
    Notice { is_silent, state: Some(state), run: Some(run), ..notice }
}

/// Tests that somebody subscribed to and that began to fail in a run, or pass again.
async fn of_tests(
    session: &mut Session,
    run: &RunRow,
    cases: &BTreeSet<TestCaseId>,
    is_silent: bool,
) -> Result<Vec<Notice>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = cases.iter().map(|case| case.get()).collect();
    let mut found = Vec::new();
    let rows = executions::of_batch(
        session,
        RunPlace { project: run.project, run: run.id, day: run.order_at.day(), lane_id: run.lane_id },
        wanted,
    )
    .await?;
    for case in cases {
        let own = || rows.iter().filter(|row| row.test_case == *case);
        let failed = own().any(|row| matches!(row.outcome, Outcome::Failed | Outcome::TimedOut));
        let is_new = own().any(|row| row.flags.contains(ExecutionFlags::NEW_REGRESSION));
        let is_fixed = !failed && own().any(|row| row.flags.contains(ExecutionFlags::FIXED));
        let passes = !failed && own().any(|row| matches!(row.outcome, Outcome::Passed | Outcome::Flaky));
        let (event, now, is_change) = if failed {
            (Event::TestFailed, "failed", is_new)
        } else if passes {
            (Event::TestFixed, "passed", is_fixed)
        } else {
            continue;
        };
        let topic = format!("test{case}");
        let notice = Notice::new(&topic, vec![event], Subject::TestCase(*case));
        let subject = format!("test:{case}:{}", run.id);
        let state = ToldState { subject, now: now.to_owned(), is_repeated: true };
        found.push(Notice {
            cases: BTreeSet::from([*case]),
            // A result that is no change is told only to those who were told another one about this run.
            is_silent: is_silent || !is_change,
            state: Some(state),
            run: Some(run.clone()),
            ..notice
        });
    }
    Ok(found)
}

fn without_run(event: &DomainEvent) -> Option<Notice> {
    match event {
        DomainEvent::QuarantineReleased { test_case } => {
            let subject = Subject::TestCase(*test_case);
            let notice = Notice::new("released", vec![Event::QuarantineReleased], subject);
            Some(Notice { cases: BTreeSet::from([*test_case]), ..notice })
        }
        DomainEvent::DiagnosisCompleted { diagnosis, cluster } => {
            let subject = Subject::Diagnosis { diagnosis: *diagnosis, cluster: *cluster };
            Some(Notice::new("diagnosis", vec![Event::DiagnosisCompleted], subject))
        }
        DomainEvent::StorageQuotaReached { level, used_bytes, quota_bytes } => {
            let facts = QuotaFacts { level: *level, used_bytes: *used_bytes, quota_bytes: *quota_bytes };
            Some(Notice::new("quota", vec![Event::StorageQuota], Subject::Quota(facts)))
        }
        _ => None,
    }
}

impl Notice {
    fn new(topic: &str, events: Vec<Event>, subject: Subject) -> Self {
        Self {
            topic: topic.to_owned(),
            cases: match subject {
                Subject::Slower { case, .. } => BTreeSet::from([case]),
                _ => BTreeSet::new(),
            },
            events,
            subject,
            run: None,
            is_silent: false,
            state: None,
        }
    }

    /// Whether a subscription is about this, whatever its events.
    fn concerns(&self, subscription: &SubscriptionRow, project: &ProjectRow) -> bool {
        let is_own = match (subscription.test_case, subscription.cluster) {
            (Some(case), _) => self.cases.contains(&case),
            (None, Some(cluster)) => self.cluster() == Some(cluster),
            // Results of one test are for those who subscribed to that test.
            (None, None) => !self.events.iter().any(|e| matches!(e, Event::TestFailed | Event::TestFixed)),
        };
        let Some(run) = &self.run else { return is_own };
        let is_among = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        let default = project.default_branch.as_deref().unwrap_or_default();
        is_own
            && is_among(&subscription.branches, &run.branch)
            && is_among(&subscription.environments, &run.environment)
            && (!subscription.default_branch_only || run.branch == default)
    }

    const fn cluster(&self) -> Option<ClusterId> {
        match self.subject {
            Subject::Cluster { cluster, .. } | Subject::Diagnosis { cluster, .. } => Some(cluster),
            _ => None,
        }
    }

    fn is_named(&self, subscription: &SubscriptionRow) -> bool {
        let is_named = |event: &Event| subscription.events.iter().any(|word| word == event.as_str());
        self.events.iter().any(is_named)
    }

    /// Under which event a subscription gets this, given what its channel was told about the same before. A run that
    /// changed is corrected wherever it was told, whatever is subscribed to.
    pub(super) fn event_for(
        &self,
        subscription: &SubscriptionRow,
        project: &ProjectRow,
        before: Option<&str>,
    ) -> Option<Event> {
        if !self.concerns(subscription, project) {
            return None;
        }
        if let (Some(state), Some(before)) = (&self.state, before)
            && state.is_repeated
        {
            match self.subject {
                Subject::Run if outcome_in(before) != outcome_in(&state.now) => {
                    return Some(Event::RunRevised);
                }
                // The same outcome was sent for another reason, such as a branch that went red.
                Subject::Run if !before.ends_with(RUN_TOLD) => {}
                Subject::TestCase(_) if state.now != before => return Some(self.events[0]),
                _ if state.now == before => return None,
                _ => {}
            }
        }
        if self.is_silent || !self.is_named(subscription) {
            return None;
        }
        let is_named = |event: &&Event| subscription.events.iter().any(|word| word == event.as_str());
        self.events.iter().find(is_named).copied()
    }

    /// What to say; `before` is what the channel was told about the same.
    pub(super) async fn message(
        &self,
        ctx: &Context,
        session: &mut Session,
        project: &ProjectRow,
        event: Event,
        before: Option<&str>,
    ) -> Result<Option<Message>> {
        Ok(match (&self.subject, &self.run) {
            (Subject::Run, Some(run)) => {
                // A summary line of a finished run names how it ended; which of its events was asked for does not matter.
                let event = if event == Event::RunFinished { self.events[0] } else { event };
                Some(message::about_run(ctx, session, project, run, event, before).await?)
            }
            (Subject::Cluster { cluster, run }, _) => {
                message::about_cluster(ctx, session, project, *cluster, *run, event).await?
            }
            (Subject::TestCase(case), run) => {
                message::about_test(ctx, session, project, *case, run.as_ref(), event).await?
            }
            (Subject::Slower { case, before_ms, after_ms }, run) => {
                let durations = (*before_ms, *after_ms);
                message::about_slower(ctx, session, project, *case, run.as_ref(), durations).await?
            }
            (Subject::Dropped { reason }, Some(run)) => {
                Some(message::about_dropped(ctx, project, run, reason))
            }
            (Subject::Diagnosis { diagnosis, cluster }, _) => {
                message::about_diagnosis(ctx, session, project, *diagnosis, *cluster).await?
            }
            (Subject::Quota(facts), _) => Some(message::about_quota(ctx, project, *facts)),
            (Subject::Run | Subject::Dropped { .. }, None) => None,
        })
    }
}

/// The id of a project in keys.
pub(super) fn key(project: ProjectId, seq: i64, topic: &str) -> String {
    format!("{project}:{seq}:{topic}")
}
