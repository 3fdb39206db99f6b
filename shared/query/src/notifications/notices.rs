//! What domain events mean to subscribers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::events::DomainEvent;
use callboard_domain::ids::{ClusterId, DiagnosisId, ProjectId, RunId, TestCaseId};
use callboard_domain::notifications::{Message, NotificationEvent as Event};
use callboard_domain::status::{Outcome, RunStatus};
use callboard_domain::test_state::ExecutionFlags;
use callboard_store::clusters::reads;
use callboard_store::db::Session;
use callboard_store::executions::{self, RunPlace};
use callboard_store::notifications::concerned::{self, Concerned};
use callboard_store::notifications::subscriptions::SubscriptionRow;
use callboard_store::outbox::StoredEvent;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};
use callboard_store::test_cases::carrying;

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
    /// Whether it is sent to nobody for the first time.
    is_silent: bool,
    /// Whether its run is back-filled: it is sent to those who asked for such runs.
    is_backfilled: bool,
    /// Owners and tags of its tests, of those that subscriptions name.
    labels: Labels,
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
    Flaky { case: TestCaseId, score: i64 },
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

/// What the notices of some events are made of, read once for all of them.
pub(super) struct Material {
    runs: HashMap<RunId, RunRow>,
    /// Tests that somebody subscribed to, by the failure clusters they failed for.
    tests_of_clusters: BTreeMap<ClusterId, BTreeSet<TestCaseId>>,
    watched: BTreeSet<TestCaseId>,
    /// Owners and tags that subscriptions name.
    named: Labels,
}

/// Owners and tags of tests.
#[derive(Debug, Clone, Default)]
pub(super) struct Labels {
    owners: BTreeSet<String>,
    tags: BTreeSet<String>,
}

impl Labels {
    fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.tags.is_empty()
    }
}

/// The run an event is about.
pub(super) const fn run_of(event: &DomainEvent) -> Option<RunId> {
    match event {
        DomainEvent::RunEvaluated { run, .. }
        | DomainEvent::BranchWentRed { run }
        | DomainEvent::BranchRecovered { run }
        | DomainEvent::ShardsMissing { run, .. }
        | DomainEvent::ClusterOpened { run, .. }
        | DomainEvent::ClusterReopened { run, .. }
        | DomainEvent::ClusterVerified { run, .. }
        | DomainEvent::TestSlower { run, .. }
        | DomainEvent::TestFlaky { run, .. }
        | DomainEvent::EvidenceDropped { run, .. } => Some(*run),
        _ => None,
    }
}

const fn cluster_of(event: &DomainEvent) -> Option<ClusterId> {
    match event {
        DomainEvent::ClusterOpened { cluster, .. }
        | DomainEvent::ClusterReopened { cluster, .. }
        | DomainEvent::ClusterVerified { cluster, .. } => Some(*cluster),
        _ => None,
    }
}

/// What a channel remembers a run by.
pub(super) fn run_subject(run: RunId) -> String {
    format!("run:{run}")
}

/// Lets subscriptions to tests that were joined with another one be about that one.
pub(super) async fn follow_joins(
    session: &mut Session,
    project: ProjectId,
    subscriptions: &mut [SubscriptionRow],
) -> Result<()> {
    let cases: Vec<i64> = subscriptions.iter().filter_map(|one| one.test_case).map(TestCaseId::get).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let joined = carrying::joined_to(session, project, cases).await?;
    for subscription in subscriptions {
        let kept = subscription.test_case.and_then(|case| joined.get(&case).copied());
        subscription.test_case = kept.or(subscription.test_case);
    }
    Ok(())
}

impl Material {
    pub(super) async fn read(
        session: &mut Session,
        project: ProjectId,
        events: &[StoredEvent],
        subscriptions: &[SubscriptionRow],
    ) -> Result<Self> {
        let runs: BTreeSet<RunId> = events.iter().filter_map(|stored| run_of(&stored.event)).collect();
        let runs = runs.iter().map(|run| run.get()).collect::<Vec<_>>();
        let rows = if runs.is_empty() { Vec::new() } else { runs::get_many(session, project, runs).await? };
        let watched: BTreeSet<TestCaseId> = subscriptions.iter().filter_map(|one| one.test_case).collect();
        let clusters: BTreeSet<ClusterId> =
            events.iter().filter_map(|stored| cluster_of(&stored.event)).collect();
        let mut tests_of_clusters: BTreeMap<ClusterId, BTreeSet<TestCaseId>> = BTreeMap::new();
        if !watched.is_empty() && !clusters.is_empty() {
            let clusters = clusters.iter().map(|cluster| cluster.get()).collect();
            let tests = watched.iter().map(|case| case.get()).collect();
            for (cluster, case) in reads::tests_among(session, project, clusters, tests).await? {
                tests_of_clusters.entry(cluster).or_default().insert(case);
            }
        }
        let named = Labels {
            owners: subscriptions.iter().flat_map(|one| one.owners.iter().cloned()).collect(),
            tags: subscriptions.iter().flat_map(|one| one.tags.iter().cloned()).collect(),
        };
        Ok(Self {
            runs: rows.into_iter().map(|run| (run.id, run)).collect(),
            tests_of_clusters,
            watched,
            named,
        })
    }

    /// How the run of an event is, once it is over.
    pub(super) fn outcome(&self, event: &DomainEvent) -> Option<String> {
        self.runs.get(&run_of(event)?).filter(|run| run.status.is_final()).map(outcome_of)
    }

    /// What an event means: nothing, or one notice or more. `observed` is how its run was when it was last looked at.
    pub(super) async fn notices(
        &self,
        session: &mut Session,
        project: &ProjectRow,
        stored: &StoredEvent,
        observed: Option<&str>,
    ) -> Result<Vec<Notice>> {
        let mut notices = match run_of(&stored.event) {
            None => without_run(&stored.event).into_iter().collect(),
            Some(run) => match self.runs.get(&run) {
                Some(run) => self.of_run(session, stored, run, observed).await?,
                None => Vec::new(),
            },
        };
        for notice in &mut notices {
            notice.labels = self.labels(session, project.id, notice).await?;
        }
        Ok(notices)
    }

    async fn of_run(
        &self,
        session: &mut Session,
        stored: &StoredEvent,
        run: &RunRow,
        observed: Option<&str>,
    ) -> Result<Vec<Notice>> {
        let is_backfilled = stored.at.millis() - run.start_time.millis() > SILENT_AFTER_MS;
        let cluster = |cluster: &ClusterId| Subject::Cluster { cluster: *cluster, run: run.id };
        let (topic, event, subject) = match &stored.event {
            // A run that goes on again is reported when it ends.
            DomainEvent::RunEvaluated { .. } if !run.status.is_final() => return Ok(Vec::new()),
            DomainEvent::RunEvaluated { again, .. } => {
                let now = outcome_of(run);
                let is_changed = observed.is_some_and(|observed| observed != now);
                // A correction is for those who were sent something about the run; who was sent nothing learns of an
                // outcome only when it is new.
                let is_old = *again && !is_changed;
                let mut found = of_tests(session, run, &self.watched, is_old).await?;
                found.insert(0, ended(run.clone(), is_old || observed.is_some() && !is_changed));
                for notice in &mut found {
                    notice.is_backfilled = is_backfilled;
                }
                return Ok(found);
            }
            DomainEvent::BranchWentRed { .. } => ("red", Event::BranchRed, Subject::Run),
            DomainEvent::BranchRecovered { .. } => ("green", Event::BranchRecovered, Subject::Run),
            DomainEvent::ShardsMissing { .. } => ("shards", Event::ShardMissing, Subject::Run),
            DomainEvent::ClusterOpened { cluster: id, .. } => ("new", Event::ClusterNew, cluster(id)),
            DomainEvent::ClusterReopened { cluster: id, .. } => {
                ("back", Event::ClusterRegressed, cluster(id))
            }
            DomainEvent::ClusterVerified { cluster: id, .. } => {
                ("fixed", Event::ClusterVerified, cluster(id))
            }
            DomainEvent::TestSlower { test_case, before_ms, after_ms, .. } => (
                "slower",
                Event::TestSlower,
                Subject::Slower { case: *test_case, before_ms: *before_ms, after_ms: *after_ms },
            ),
            DomainEvent::TestFlaky { test_case, score, .. } => {
                ("flaky", Event::TestFlaky, Subject::Flaky { case: *test_case, score: *score })
            }
            DomainEvent::EvidenceDropped { reason, .. } => {
                ("dropped", Event::EvidenceDropped, Subject::Dropped { reason: reason.clone() })
            }
            _ => return Ok(Vec::new()),
        };
        let mut notice = Notice { is_backfilled, ..Notice::new(topic, vec![event], subject) };
        match notice.subject {
            Subject::Run => {
                let now = outcome_of(run);
                notice.state = Some(ToldState { subject: run_subject(run.id), now, is_repeated: false });
            }
            Subject::Cluster { cluster, .. } => {
                notice.cases = self.tests_of_clusters.get(&cluster).cloned().unwrap_or_default();
            }
            Subject::Dropped { .. } => {
                let (subject, now) = (format!("dropped:{}", run.id), "told".to_owned());
                notice.state = Some(ToldState { subject, now, is_repeated: true });
            }
            Subject::Slower { case, after_ms, .. } => {
                let (subject, now) = (format!("slower:{case}:{}", run.lane_id), rounded(after_ms));
                notice.state = Some(ToldState { subject, now, is_repeated: true });
            }
            // The same run may be evaluated several times.
            Subject::Flaky { case, .. } => {
                let (subject, now) = (format!("flaky:{case}"), run.id.to_string());
                notice.state = Some(ToldState { subject, now, is_repeated: true });
            }
            _ => {}
        }
        Ok(vec![Notice { run: Some(run.clone()), ..notice }])
    }

    /// Owners and tags of the tests of a notice, of those that subscriptions name.
    async fn labels(&self, session: &mut Session, project: ProjectId, notice: &Notice) -> Result<Labels> {
        let concerned = match (&notice.subject, &notice.run) {
            (Subject::Run, Some(run)) => Concerned::Run(run.id),
            (Subject::TestCase(case) | Subject::Slower { case, .. } | Subject::Flaky { case, .. }, _) => {
                Concerned::Test(*case)
            }
            (Subject::Cluster { cluster, .. } | Subject::Diagnosis { cluster, .. }, _) => {
                Concerned::Cluster(*cluster)
            }
            _ => return Ok(Labels::default()),
        };
        if self.named.is_empty() {
            return Ok(Labels::default());
        }
        let named = |words: &BTreeSet<String>| words.iter().cloned().collect::<Vec<_>>();
        let mut labels = Labels::default();
        if !self.named.owners.is_empty() {
            labels.owners = concerned::owners(session, project, concerned, named(&self.named.owners)).await?;
        }
        if !self.named.tags.is_empty() {
            labels.tags = concerned::tags(session, project, concerned, named(&self.named.tags)).await?;
        }
        Ok(labels)
    }
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
    let state = ToldState { subject: run_subject(run.id), now, is_repeated: true };
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
                Subject::Slower { case, .. } | Subject::Flaky { case, .. } => BTreeSet::from([case]),
                _ => BTreeSet::new(),
            },
            events,
            subject,
            run: None,
            is_silent: false,
            is_backfilled: false,
            labels: Labels::default(),
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
        let is_any_of = |list: &[String], labels: &BTreeSet<String>| {
            list.is_empty() || list.iter().any(|label| labels.contains(label))
        };
        if !is_own
            || !is_any_of(&subscription.owners, &self.labels.owners)
            || !is_any_of(&subscription.tags, &self.labels.tags)
        {
            return false;
        }
        let Some(run) = &self.run else { return true };
        let is_among = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        let default = project.default_branch.as_deref().unwrap_or_default();
        is_among(&subscription.branches, &run.branch)
            && is_among(&subscription.environments, &run.environment)
            && (!subscription.default_branch_only || run.branch == default)
    }

    /// Whether it is large enough for a subscription. Corrections are sent whatever their size.
    fn is_notable(&self, subscription: &SubscriptionRow) -> bool {
        match (&self.subject, &self.run) {
            (Subject::Run, Some(run)) if subscription.only_new => {
                run.compared.as_ref().is_some_and(|compared| compared.new_regressions > 0)
                    || run.new_clusters.is_some_and(|new| new > 0)
            }
            (Subject::Flaky { score, .. }, _) => {
                subscription.least_flaky_score.is_none_or(|least| *score >= least)
            }
            (Subject::Slower { before_ms, after_ms, .. }, _) => {
                subscription.least_slower_permille.is_none_or(|least| {
                    (after_ms - before_ms).saturating_mul(1_000) >= before_ms.saturating_mul(least)
                })
            }
            _ => true,
        }
    }

    /// Whether its run has a status of the subscription. Corrections are sent whatever the status.
    fn has_wanted_status(&self, subscription: &SubscriptionRow) -> bool {
        let status = self.run.as_ref().map(|run| run.status.as_str());
        status.is_none_or(|status| {
            subscription.statuses.is_empty() || subscription.statuses.iter().any(|word| word == status)
        })
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
        let is_too_old = self.is_backfilled && !subscription.includes_backfilled;
        if self.is_silent
            || is_too_old
            || !self.is_named(subscription)
            || !self.has_wanted_status(subscription)
            || !self.is_notable(subscription)
        {
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
            (Subject::Flaky { case, score }, run) => {
                message::about_flaky(ctx, session, project, *case, run.as_ref(), *score).await?
            }
            (Subject::Dropped { reason }, Some(run)) => {
                Some(message::about_dropped(ctx, project, run, reason))
            }
            (Subject::Diagnosis { diagnosis, cluster }, _) => {
                message::about_diagnosis(ctx, session, project, *diagnosis, *cluster).await?
            }
            (Subject::Quota(facts), _) => Some(message::about_quota(ctx, project, *facts)),
            (Subject::Run | Subject::Dropped { .. }, None) => None,
        }
        .map(Message::fitted))
    }
}

/// The id of a project in keys.
pub(super) fn key(project: ProjectId, seq: i64, topic: &str) -> String {
    format!("{project}:{seq}:{topic}")
}
