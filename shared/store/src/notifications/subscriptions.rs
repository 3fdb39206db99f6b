//! Subscriptions: which events of which projects go to which channel.

use callboard_domain::ids::{ChannelId, ClusterId, ProjectId, SubscriptionId, TestCaseId, UserId};
use callboard_domain::notifications::{Digest, QuietHours, Schedule, TimeOfDay, Weekday};
use callboard_domain::time::Timestamp;

use crate::db::{Filter, Reader, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRow {
    /// Id.
    pub id: SubscriptionId,
    /// Channel that gets the messages.
    pub channel: ChannelId,
    /// Whose it is; `None` belongs to the instance.
    pub user: Option<UserId>,
    /// Only this project; `None` for all.
    pub project: Option<ProjectId>,
    /// Only this test case of the project.
    pub test_case: Option<TestCaseId>,
    /// Only this failure cluster of the project.
    pub cluster: Option<ClusterId>,
    /// Words of events.
    pub events: Vec<String>,
    /// Only these branches; empty for all.
    pub branches: Vec<String>,
    /// Only these environments; empty for all.
    pub environments: Vec<String>,
    /// Only the default branch of each project.
    pub default_branch_only: bool,
    /// Only runs that ended with one of these statuses; empty for all.
    pub statuses: Vec<String>,
    /// Only what is about tests of one of these owners; empty for all.
    pub owners: Vec<String>,
    /// Only what is about tests with one of these tags; empty for all.
    pub tags: Vec<String>,
    /// Whether it is also about runs that began long ago, such as imported ones.
    pub includes_backfilled: bool,
    /// Only runs with new failures.
    pub only_new: bool,
    /// Least flaky score of a test that became flaky.
    pub least_flaky_score: Option<i64>,
    /// Least share by which a test became slower, in thousandths.
    pub least_slower_permille: Option<i64>,
    /// When messages are sent.
    pub schedule: Schedule,
    /// Silent until then.
    pub muted_until: Option<Timestamp>,
    /// Whether it sends anything.
    pub is_active: bool,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT s.id, s.channel_id, s.user_id, s.project_id, s.test_case_id, s.cluster_id, s.events, s.branches, s.environments, s.default_branch_only, \
             s.statuses, s.owners, s.tags, s.includes_backfilled, s.only_new, s.least_flaky_score, \
             s.least_slower_permille, s.digest_minute, s.digest_weekday, s.time_zone, s.quiet_from, s.quiet_to, s.muted_until, s.is_active, \
             s.created_at, s.updated_at FROM subscriptions s ",
            $tail
        )
    };
}

statements! {
    /// A new subscription.
    INSERT = "INSERT INTO subscriptions (id, channel_id, project_id, events, branches, environments, default_branch_only, \
        digest_minute, digest_weekday, time_zone, quiet_from, quiet_to, muted_until, is_active, user_id, test_case_id, cluster_id, \
        created_at, updated_at, statuses, owners, tags, includes_backfilled, only_new, least_flaky_score, least_slower_permille) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $19, $20, $21, $22, $23, $24, $25)";
    /// One subscription. PK
    BY_ID = select!("WHERE s.id = $1");
    /// One subscription, locked. PK
    LOCK = select!("WHERE s.id = $1 for_update()");
    /// What a person asked for about one thing, in the header of the pages; about a test also under the id of one that was
    /// joined with it. ix: subscriptions_of_user, PK
    OF_SCOPE = select!("JOIN channels c ON c.id = s.channel_id LEFT JOIN test_cases k ON k.project_id = s.project_id AND k.id = s.test_case_id \
        WHERE s.user_id = $1 AND s.project_id = $2 AND COALESCE(k.joined_to, s.test_case_id, 0) = $3 AND COALESCE(s.cluster_id, 0) = $4 \
        AND c.kind = 'browser' ORDER BY s.id LIMIT 1");
    /// How many the instance has, up to a number. ix: subscriptions_of_user
    COUNT_OF_INSTANCE = "SELECT COUNT(*) FROM (SELECT 1 FROM subscriptions WHERE user_id IS NULL LIMIT $1) s";
    /// How many a person has, up to a number. ix: subscriptions_of_user
    COUNT_OF_USER = "SELECT COUNT(*) FROM (SELECT 1 FROM subscriptions WHERE user_id = $1 LIMIT $2) s";
    /// Active subscriptions that a project's events may go to, whose channel is not paused. ix: subscriptions_of_project
    ACTIVE_FOR = select!("JOIN channels c ON c.id = s.channel_id WHERE (s.project_id = $1 OR s.project_id IS NULL) AND s.is_active = 1 \
        AND (s.muted_until IS NULL OR s.muted_until <= $2) AND c.paused_at IS NULL ORDER BY s.id");
    /// Changes a subscription. PK
    SAVE = "UPDATE subscriptions SET channel_id = $2, project_id = $3, events = $4, branches = $5, environments = $6, \
        default_branch_only = $7, digest_minute = $8, digest_weekday = $9, time_zone = $10, quiet_from = $11, quiet_to = $12, \
        muted_until = $13, is_active = $14, user_id = $15, test_case_id = $16, cluster_id = $17, updated_at = $18, \
        statuses = $19, owners = $20, tags = $21, includes_backfilled = $22, only_new = $23, least_flaky_score = $24, \
        least_slower_permille = $25 WHERE id = $1";
    /// Removes a subscription. PK
    DELETE = "DELETE FROM subscriptions WHERE id = $1";
}

fn list_of(json: &str) -> Result<Vec<String>> {
    serde_json::from_str(json).map_err(|_| StoreError::Damaged("a list of a subscription"))
}

fn json_of(list: &[String]) -> String {
    serde_json::json!(list).to_string()
}

fn read(row: &Row) -> Result<SubscriptionRow> {
    let mut r = row.reader();
    Ok(SubscriptionRow {
        id: SubscriptionId(r.int()?),
        channel: ChannelId(r.int()?),
        user: r.opt_int()?.map(UserId),
        project: r.opt_int()?.map(ProjectId),
        test_case: r.opt_int()?.map(TestCaseId),
        cluster: r.opt_int()?.map(ClusterId),
        events: list_of(&r.text()?)?,
        branches: list_of(&r.text()?)?,
        environments: list_of(&r.text()?)?,
        default_branch_only: r.flag()?,
        statuses: list_of(&r.text()?)?,
        owners: list_of(&r.text()?)?,
        tags: list_of(&r.text()?)?,
        includes_backfilled: r.flag()?,
        only_new: r.flag()?,
        least_flaky_score: r.opt_int()?,
        least_slower_permille: r.opt_int()?,
        schedule: read_schedule(&mut r)?,
        muted_until: r.opt_time()?,
        is_active: r.flag()?,
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

fn read_schedule(r: &mut Reader<'_>) -> Result<Schedule> {
    let damaged = || StoreError::Damaged("the schedule of a subscription");
    let time = |minutes: i64| TimeOfDay::from_minutes(minutes).ok_or_else(damaged);
    let (minute, weekday) = (r.opt_int()?, r.opt_int()?);
    let zone = r.text()?.parse().map_err(|_| damaged())?;
    let (from, to) = (r.opt_int()?, r.opt_int()?);
    let day = weekday.map(|number| Weekday::from_number(number).ok_or_else(damaged)).transpose()?;
    let digest = minute.map(|minute| Ok::<_, StoreError>(Digest { at: time(minute)?, day })).transpose()?;
    let quiet = match from.zip(to) {
        Some((from, to)) => Some(QuietHours { from: time(from)?, to: time(to)? }),
        None => None,
    };
    Ok(Schedule { zone, digest, quiet })
}

/// Takes the id of a new subscription.
///
/// # Errors
/// [`StoreError`].
pub async fn new_id(session: &mut Session) -> Result<SubscriptionId> {
    Ok(SubscriptionId(ids::allocate_one(session, Kind::Subscription).await?))
}

/// Stores a new subscription.
///
/// # Errors
/// [`StoreError`].
pub async fn insert(session: &mut Session, row: &SubscriptionRow) -> Result<()> {
    session.execute(&INSERT, written(row, row.created_at)).await?;
    Ok(())
}

fn written(row: &SubscriptionRow, at: Timestamp) -> crate::db::Args {
    let Schedule { zone, digest, quiet } = row.schedule;
    args![
        row.id,
        row.channel,
        row.project,
        json_of(&row.events),
        json_of(&row.branches),
        json_of(&row.environments),
        row.default_branch_only,
        digest.map(|digest| digest.at.minutes()),
        digest.and_then(|digest| digest.day).map(Weekday::number),
        zone.name(),
        quiet.map(|quiet| quiet.from.minutes()),
        quiet.map(|quiet| quiet.to.minutes()),
        row.muted_until,
        row.is_active,
        row.user,
        row.test_case.map(TestCaseId::get),
        row.cluster.map(ClusterId::get),
        at,
        json_of(&row.statuses),
        json_of(&row.owners),
        json_of(&row.tags),
        row.includes_backfilled,
        row.only_new,
        row.least_flaky_score,
        row.least_slower_permille
    ]
}

/// One subscription.
///
/// # Errors
/// [`StoreError`].
pub async fn get(session: &mut Session, id: SubscriptionId) -> Result<Option<SubscriptionRow>> {
    session.first(&BY_ID, args![id]).await?.as_ref().map(read).transpose()
}

/// One subscription, locked until the transaction ends.
///
/// # Errors
/// [`StoreError`].
pub async fn lock(session: &mut Session, id: SubscriptionId) -> Result<Option<SubscriptionRow>> {
    session.first(&LOCK, args![id]).await?.as_ref().map(read).transpose()
}

/// Which subscriptions a list shows.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionFilter {
    /// Besides those of the instance those of this person.
    pub user: Option<UserId>,
    /// Only those that events of this project may go to.
    pub project: Option<ProjectId>,
    /// Only those of all projects and of these.
    pub scope: Option<Vec<i64>>,
}

/// Subscriptions by id, after one of them. PK
///
/// # Errors
/// [`StoreError`].
pub async fn list(
    session: &mut Session,
    wanted: &SubscriptionFilter,
    after: Option<SubscriptionId>,
    limit: i64,
) -> Result<Vec<SubscriptionRow>> {
    let filter = list_filter(session.backend(), wanted, after, limit);
    session.list(filter).await?.iter().map(read).collect()
}

fn list_filter(
    backend: crate::Backend,
    wanted: &SubscriptionFilter,
    after: Option<SubscriptionId>,
    limit: i64,
) -> Filter {
    let after = after.map_or(0, SubscriptionId::get);
    // No account has the id 0.
    let user = wanted.user.map_or(0, UserId::get);
    let base = select!("WHERE s.id > $1 AND (s.user_id = $2 OR s.user_id IS NULL)");
    Filter::new(backend, base, args![after, user])
        .and_if("(s.project_id = ? OR s.project_id IS NULL)", wanted.project)
        .and_if("(s.project_id IS NULL OR s.project_id in_ints(?))", wanted.scope.clone())
        .end("ORDER BY s.id LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: crate::Backend) -> Vec<Filter> {
    let all = SubscriptionFilter { user: Some(UserId(1)), project: Some(ProjectId(1)), scope: Some(vec![1]) };
    vec![list_filter(backend, &SubscriptionFilter::default(), None, 1), list_filter(backend, &all, None, 1)]
}

/// What a person asked for about a project, a test case or a cluster, in the header of the pages.
///
/// # Errors
/// [`StoreError`].
pub async fn of_scope(
    session: &mut Session,
    user: UserId,
    project: ProjectId,
    test_case: Option<TestCaseId>,
    cluster: Option<ClusterId>,
) -> Result<Option<SubscriptionRow>> {
    let (case, cluster) = (test_case.map_or(0, TestCaseId::get), cluster.map_or(0, ClusterId::get));
    let row = session.first(&OF_SCOPE, args![user, project, case, cluster]).await?;
    row.as_ref().map(read).transpose()
}

/// How many subscriptions a person has, or the instance, up to `most`.
///
/// # Errors
/// [`StoreError`].
pub async fn count(session: &mut Session, user: Option<UserId>, most: i64) -> Result<i64> {
    let row = match user {
        Some(user) => session.one(&COUNT_OF_USER, args![user, most]).await?,
        None => session.one(&COUNT_OF_INSTANCE, args![most]).await?,
    };
    row.reader().int()
}

/// Subscriptions that send something for events of a project now.
///
/// # Errors
/// [`StoreError`].
pub async fn active_for(
    session: &mut Session,
    project: ProjectId,
    now: Timestamp,
) -> Result<Vec<SubscriptionRow>> {
    session.all(&ACTIVE_FOR, args![project, now]).await?.iter().map(read).collect()
}

/// Writes a subscription that was read with [`lock`].
///
/// # Errors
/// [`StoreError`].
pub async fn save(session: &mut Session, row: &SubscriptionRow) -> Result<()> {
    session.execute(&SAVE, written(row, row.updated_at)).await?;
    Ok(())
}

/// Deletes a subscription.
///
/// # Errors
/// [`StoreError`].
pub async fn delete(session: &mut Session, id: SubscriptionId) -> Result<()> {
    session.execute(&DELETE, args![id]).await?;
    Ok(())
}
