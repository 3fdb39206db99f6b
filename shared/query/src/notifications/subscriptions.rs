//! Subscriptions: which events go to which channel.

use callboard_auth::{Denied, Identity, scope::Authorized};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ChannelId, ClusterId, ProjectId, SubscriptionId, TestCaseId, UserId};
use callboard_domain::notifications::{
    ChannelKind, Digest, NotificationEvent, QuietHours, Schedule, TimeOfDay, TimeZone, Weekday,
};
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::boxed;
use callboard_store::notifications::held;
use callboard_store::notifications::subscriptions::{self, SubscriptionFilter, SubscriptionRow};
use callboard_store::projects;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::channels::{self, require_owner};
use crate::accounts::Acting;
use crate::page::{Slice, fetch};
use crate::test_cases::bare_tag;
use crate::{Change, Context, Entity, QueryError, Result, resolve};

/// Subscriptions of one person.
const MAX_OF_PERSON: i64 = 200;
/// Subscriptions of the instance.
const MAX_OF_INSTANCE: i64 = 500;
/// When digests are sent unless a subscription says otherwise.
const DEFAULT_DIGEST: TimeOfDay = TimeOfDay::EIGHT;

/// What a subscription is about besides its events.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilters {
    /// Only these branches; empty for all.
    pub branches: Vec<String>,
    /// Only these environments; empty for all.
    pub environments: Vec<String>,
    /// Only the default branch of each project.
    pub default_branch_only: bool,
    /// Only runs that ended with one of these statuses; empty for all.
    #[schema(example = json!(["failed", "timedout"]))]
    pub statuses: Vec<String>,
    /// Only what is about tests of one of these owners; empty for all.
    pub owners: Vec<String>,
    /// Only what is about tests with one of these tags, without `@`; empty for all.
    pub tags: Vec<String>,
    /// Whether it is also about runs that began more than 24 hours before they were stored, such as imported ones.
    pub include_backfilled: bool,
    /// Only runs with new failures.
    pub only_new: bool,
    /// Least flaky score, 0 to 100, of tests in `test.flaky`; null for any.
    #[schema(example = 95)]
    pub flakiness_threshold: Option<i64>,
    /// Least share by which tests became slower in `perf.regression`, such as 0.5 for half as long again; null for any.
    #[schema(example = 0.5)]
    pub perf_regression_rate: Option<f64>,
}

/// Hours in which nothing is sent; what comes meanwhile is sent as one message when they end.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QuietHoursShape {
    /// The first quiet minute, `HH:MM`.
    #[schema(example = "22:00")]
    pub from: String,
    /// The first minute that is not quiet any more, `HH:MM`; earlier than `from` for hours past midnight.
    #[schema(example = "07:00")]
    pub to: String,
}

/// A subscription.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// Subscription id.
    pub id: i64,
    /// Channel that gets the messages.
    pub channel_id: i64,
    /// Whether it belongs to the instance; otherwise to the caller.
    pub is_global: bool,
    /// Only this project; null for all.
    pub project_id: Option<i64>,
    /// Only this test case of the project.
    pub test_case_id: Option<i64>,
    /// Only this failure cluster of the project.
    pub cluster_id: Option<i64>,
    /// Events.
    #[schema(example = json!(["run.failed.default_branch", "run.recovered"]))]
    pub events: Vec<String>,
    /// Branches and environments.
    pub filters: SubscriptionFilters,
    /// `realtime`: a message follows its event immediately. `digest`: the messages since the last digest come as one.
    #[schema(example = "realtime")]
    pub mode: &'static str,
    /// When the digest is sent, `HH:MM`; null for `realtime`.
    #[schema(example = "08:00")]
    pub digest_at: Option<String>,
    /// `monday` to `sunday` for a digest once a week; null for one every day.
    #[schema(value_type = Option<String>)]
    pub digest_day: Option<Weekday>,
    /// Time zone of these times, by its IANA name.
    #[schema(example = "Europe/Berlin")]
    pub time_zone: &'static str,
    /// Hours in which nothing is sent.
    pub quiet_hours: Option<QuietHoursShape>,
    /// Silent until then.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub muted_until: Option<Timestamp>,
    /// Whether it sends anything.
    pub active: bool,
    /// Creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl Subscription {
    fn from_row(row: SubscriptionRow) -> Self {
        let Schedule { zone, digest, quiet } = row.schedule;
        Self {
            id: row.id.get(),
            channel_id: row.channel.get(),
            is_global: row.user.is_none(),
            project_id: row.project.map(ProjectId::get),
            test_case_id: row.test_case.map(TestCaseId::get),
            cluster_id: row.cluster.map(ClusterId::get),
            events: row.events,
            filters: SubscriptionFilters {
                branches: row.branches,
                environments: row.environments,
                default_branch_only: row.default_branch_only,
                statuses: row.statuses,
                owners: row.owners,
                tags: row.tags,
                include_backfilled: row.includes_backfilled,
                only_new: row.only_new,
                flakiness_threshold: row.least_flaky_score,
                perf_regression_rate: row.least_slower_permille.map(share_of),
            },
            mode: if digest.is_some() { "digest" } else { "realtime" },
            digest_at: digest.map(|digest| digest.at.to_text()),
            digest_day: digest.and_then(|digest| digest.day),
            time_zone: zone.name(),
            quiet_hours: quiet
                .map(|quiet| QuietHoursShape { from: quiet.from.to_text(), to: quiet.to.to_text() }),
            muted_until: row.muted_until,
            active: row.is_active,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Thousandths as a share.
fn share_of(permille: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it is at most 100,000")]
    let permille = permille as f64;
    permille / 1_000.0
}

/// Changes of a subscription; what is `None` or kept stays.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionEdit {
    /// Channel that gets the messages.
    pub channel: Option<ChannelId>,
    /// Only this project; cleared for all. Both forget a test case and a cluster.
    pub project: Change<ProjectId>,
    /// Only this test case, and its project.
    pub test_case: Option<TestCaseId>,
    /// Only this failure cluster, and its project.
    pub cluster: Option<ClusterId>,
    /// Events.
    pub events: Option<Vec<NotificationEvent>>,
    /// Only these branches.
    pub branches: Change<Vec<String>>,
    /// Only these environments.
    pub environments: Change<Vec<String>>,
    /// Only the default branch of each project.
    pub default_branch_only: Option<bool>,
    /// Only these statuses of runs.
    pub statuses: Change<Vec<String>>,
    /// Only tests of these owners.
    pub owners: Change<Vec<String>>,
    /// Only tests with these tags.
    pub tags: Change<Vec<String>>,
    /// Whether it is also about runs that began long ago.
    pub includes_backfilled: Option<bool>,
    /// Only runs with new failures.
    pub only_new: Option<bool>,
    /// Least flaky score.
    pub least_flaky_score: Change<i64>,
    /// Least share by which a test became slower, in thousandths.
    pub least_slower_permille: Change<i64>,
    /// Whether messages are put together.
    pub is_digest: Option<bool>,
    /// When a digest is sent.
    pub digest_at: Option<TimeOfDay>,
    /// On which day of the week; cleared for every day.
    pub digest_day: Change<Weekday>,
    /// Time zone of these times.
    pub time_zone: Option<TimeZone>,
    /// Hours in which nothing is sent.
    pub quiet_hours: Change<QuietHours>,
    /// Silent until then.
    pub muted_until: Change<Timestamp>,
    /// Whether it sends anything.
    pub active: Option<bool>,
}

impl SubscriptionEdit {
    /// When messages are sent after this change. What says when a digest is sent makes it one.
    fn schedule(&self, before: Schedule) -> Schedule {
        let names_a_time = self.digest_at.is_some() || self.digest_day.value().is_some();
        let is_digest = self.is_digest.unwrap_or(before.digest.is_some() || names_a_time);
        let digest = is_digest.then(|| {
            let old = before.digest.unwrap_or(Digest { at: DEFAULT_DIGEST, day: None });
            let at = self.digest_at.unwrap_or(old.at);
            Digest { at, day: self.digest_day.clone().applied_to(old.day) }
        });
        Schedule {
            zone: self.time_zone.unwrap_or(before.zone),
            digest,
            quiet: self.quiet_hours.clone().applied_to(before.quiet),
        }
    }

    /// Finds the project of what a subscription is about, within the scope of the caller.
    async fn resolved(mut self, ctx: &Context, acting: Acting<'_>) -> Result<Self> {
        let scope = acting.caller.scope();
        if let Some(case) = self.test_case {
            let project = resolve::test_case(ctx, scope, case).await?;
            self.test_case = Some(resolve::kept_test(ctx, project, case).await?);
            self.project = Change::Set(project.get());
        } else if let Some(cluster) = self.cluster {
            self.project = Change::Set(resolve::cluster(ctx, scope, cluster).await?.get());
        } else if let Some(project) = self.project.value() {
            resolve::project(ctx, scope, *project).await?;
        }
        Ok(self)
    }

    async fn apply(self, session: &mut Session, acting: Acting<'_>, row: &mut SubscriptionRow) -> Result<()> {
        row.schedule = self.schedule(row.schedule);
        if let Some(channel) = self.channel {
            let channel = channels::owned(session, acting, channel).await?;
            if channel.user != row.user {
                return Err(Denied::InsufficientRole.into());
            }
            row.channel = channel.id;
        }
        if let Some(project) = self.project.value()
            && projects::get(session, *project).await?.is_none()
        {
            return Err(QueryError::not_found(Entity::Project, *project));
        }
        let is_other_project = !self.project.is_keep() && self.project.value().copied() != row.project;
        if is_other_project || self.test_case.is_some() || self.cluster.is_some() {
            (row.test_case, row.cluster) = (self.test_case, self.cluster);
        }
        row.project = self.project.applied_to(row.project);
        if let Some(events) = self.events {
            row.events = events.into_iter().map(|event| event.as_str().to_owned()).collect();
        }
        let tags = self.tags.map(|tags| tags.iter().map(|tag| bare_tag(tag)).collect());
        for (list, change) in [
            (&mut row.branches, self.branches),
            (&mut row.environments, self.environments),
            (&mut row.statuses, self.statuses),
            (&mut row.owners, self.owners),
            (&mut row.tags, tags),
        ] {
            *list = change.applied_to(Some(std::mem::take(list))).unwrap_or_default();
        }
        row.only_new = self.only_new.unwrap_or(row.only_new);
        row.least_flaky_score = self.least_flaky_score.applied_to(row.least_flaky_score);
        row.least_slower_permille = self.least_slower_permille.applied_to(row.least_slower_permille);
        row.includes_backfilled = self.includes_backfilled.unwrap_or(row.includes_backfilled);
        row.default_branch_only = self.default_branch_only.unwrap_or(row.default_branch_only);
        row.muted_until = self.muted_until.applied_to(row.muted_until);
        row.is_active = self.active.unwrap_or(row.is_active);
        Ok(())
    }
}

/// Subscriptions of the instance and of the caller about projects in scope, oldest first; with a project, those its
/// events may go to.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn subscriptions(
    ctx: &Context,
    caller: &Identity,
    project: Option<ProjectId>,
    after: Option<i64>,
    limit: usize,
) -> Result<Slice<Subscription, i64>> {
    let mut session = ctx.store.db().read().await?;
    let after = after.map(SubscriptionId);
    let scope = caller.scope().projects();
    let wanted = SubscriptionFilter {
        user: caller.user_id(),
        project,
        scope: scope.map(|projects| projects.into_iter().map(ProjectId::get).collect()),
    };
    let rows = subscriptions::list(&mut session, &wanted, after, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row: &SubscriptionRow| row.id.get()).map(Subscription::from_row))
}

/// One subscription that somebody may change.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Denied`].
#[boxed]
pub async fn subscription(ctx: &Context, caller: &Identity, id: SubscriptionId) -> Result<Subscription> {
    let missing = || QueryError::not_found(Entity::Subscription, id);
    let row = subscriptions::get(&mut ctx.store.db().read().await?, id).await?.ok_or_else(missing)?;
    require_owner(caller, row.user, missing)?;
    Ok(Subscription::from_row(row))
}

/// What a button for notifications is about.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Project.
    pub project: Authorized<ProjectId>,
    /// A test case of it.
    pub test_case: Option<TestCaseId>,
    /// A failure cluster of it.
    pub cluster: Option<ClusterId>,
}

/// The subscription of a person to something, in the header of the pages.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn watching(ctx: &Context, user: UserId, watched: Watched) -> Result<Option<SubscriptionId>> {
    let mut session = ctx.store.db().read().await?;
    let Watched { project, test_case, cluster } = watched;
    let row = subscriptions::of_scope(&mut session, user, project.get(), test_case, cluster).await?;
    Ok(row.filter(|row| row.is_active).map(|row| row.id))
}

/// What somebody is sent who only says what about.
const fn default_events(row: &SubscriptionRow) -> &'static [NotificationEvent] {
    use NotificationEvent as Event;
    match (row.test_case, row.cluster) {
        (Some(_), _) => &[
            Event::TestFailed,
            Event::TestFixed,
            Event::TestFlaky,
            Event::TestSlower,
            Event::QuarantineReleased,
        ],
        (None, Some(_)) => &[Event::ClusterRegressed, Event::ClusterVerified, Event::DiagnosisCompleted],
        (None, None) => {
            &[Event::BranchRed, Event::BranchRecovered, Event::ClusterNew, Event::ClusterRegressed]
        }
    }
}

/// Creates a subscription for the channel of `wanted`; without one, for the caller's notifications in the header of the
/// pages, where each thing is subscribed to once.
///
/// # Errors
/// [`QueryError::NotFound`] for the channel or what it is about; [`QueryError::Denied`]; [`QueryError::TooMany`].
pub async fn create_subscription(
    ctx: &Context,
    acting: Acting<'_>,
    wanted: SubscriptionEdit,
) -> Result<Subscription> {
    acting.reaches_everything()?;
    let wanted = wanted.resolved(ctx, acting).await?;
    let mut session = ctx.store.db().begin().await?;
    let channel = match (wanted.channel, acting.caller.user_id()) {
        (Some(channel), _) => channels::owned(&mut session, acting, channel).await?,
        (None, Some(user)) => {
            let own = channels::own_channel(&mut session, user, ChannelKind::Browser, acting.now).await?;
            // Locked, so that two clicks make one subscription.
            channels::owned(&mut session, acting, own.id).await?
        }
        (None, None) => return Err(Denied::AuthenticationRequired.into()),
    };
    if let (None, Some(user), Some(project)) = (wanted.channel, channel.user, wanted.project.value()) {
        let known =
            subscriptions::of_scope(&mut session, user, *project, wanted.test_case, wanted.cluster).await?;
        if let Some(mut known) = known {
            known.is_active = true;
            known.updated_at = acting.now;
            subscriptions::save(&mut session, &known).await?;
            session.commit().await?;
            return Ok(Subscription::from_row(known));
        }
    }
    let most = if channel.user.is_some() { MAX_OF_PERSON } else { MAX_OF_INSTANCE };
    if subscriptions::count(&mut session, channel.user, most).await? >= most {
        let what =
            if channel.user.is_some() { "Your list of subscriptions" } else { "The list of subscriptions" };
        return Err(QueryError::TooMany { what, limit: usize::try_from(most).unwrap_or_default() });
    }
    let mut row = SubscriptionRow {
        id: subscriptions::new_id(&mut session).await?,
        channel: channel.id,
        user: channel.user,
        project: None,
        test_case: None,
        cluster: None,
        events: Vec::new(),
        branches: Vec::new(),
        environments: Vec::new(),
        default_branch_only: false,
        statuses: Vec::new(),
        owners: Vec::new(),
        tags: Vec::new(),
        includes_backfilled: false,
        only_new: false,
        least_flaky_score: None,
        least_slower_permille: None,
        schedule: Schedule::AT_ONCE,
        muted_until: None,
        is_active: true,
        created_at: acting.now,
        updated_at: acting.now,
    };
    wanted.apply(&mut session, acting, &mut row).await?;
    if row.events.is_empty() {
        row.events = default_events(&row).iter().map(|event| event.as_str().to_owned()).collect();
    }
    subscriptions::insert(&mut session, &row).await?;
    record(session, acting, AuditAction::SubscriptionCreated, &row).await?;
    Ok(Subscription::from_row(row))
}

/// Changes a subscription.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Denied`].
pub async fn edit_subscription(
    ctx: &Context,
    acting: Acting<'_>,
    id: SubscriptionId,
    wanted: SubscriptionEdit,
) -> Result<Subscription> {
    let wanted = wanted.resolved(ctx, acting).await?;
    let mut session = ctx.store.db().begin().await?;
    let mut row = required(&mut session, acting, id).await?;
    wanted.apply(&mut session, acting, &mut row).await?;
    row.updated_at = acting.now;
    subscriptions::save(&mut session, &row).await?;
    if !row.is_active {
        held::delete_of_subscription(&mut session, id).await?;
    }
    record(session, acting, AuditAction::SubscriptionChanged, &row).await?;
    Ok(Subscription::from_row(row))
}

/// Deletes a subscription.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Denied`].
pub async fn delete_subscription(ctx: &Context, acting: Acting<'_>, id: SubscriptionId) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = required(&mut session, acting, id).await?;
    subscriptions::delete(&mut session, id).await?;
    held::delete_of_subscription(&mut session, id).await?;
    record(session, acting, AuditAction::SubscriptionDeleted, &row).await
}

/// A subscription that somebody may change, locked.
async fn required(session: &mut Session, acting: Acting<'_>, id: SubscriptionId) -> Result<SubscriptionRow> {
    acting.reaches_everything()?;
    let missing = || QueryError::not_found(Entity::Subscription, id);
    let row = subscriptions::lock(session, id).await?.ok_or_else(missing)?;
    require_owner(acting.caller, row.user, missing)?;
    Ok(row)
}

async fn record(
    mut session: Session,
    acting: Acting<'_>,
    action: AuditAction,
    row: &SubscriptionRow,
) -> Result<()> {
    let detail = json!({ "channelId": row.channel, "events": row.events });
    let target = ("subscription", row.id.get());
    let recorded = acting.record(&mut session, action, target, row.project, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
