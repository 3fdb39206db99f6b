//! `/api/subscriptions`: which events go to which channel.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::ids::{ChannelId, ProjectId, SubscriptionId};
use callboard_domain::notifications::{NotificationEvent, QuietHours, TimeOfDay, Weekday};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::Change;
use callboard_query::notifications::{self, Subscription, SubscriptionEdit};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;

/// Branches or environments of one subscription.
const MAX_FILTERS: usize = 50;
const MAX_FILTER_CHARS: usize = 200;

/// A subscription; when it is changed, what is absent stays.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct SubscriptionBody {
    /// Channel that gets the messages; without one, the caller's notifications in the header of the pages.
    channel_id: Option<i64>,
    /// Only this project; null for all.
    project_id: Option<i64>,
    /// Only this test case, and its project.
    test_case_id: Option<i64>,
    /// Only this failure cluster, and its project.
    cluster_id: Option<i64>,
    /// Some of `run.finished`, `run.failed`, `run.failed.default_branch` (a branch went red), `run.recovered`,
    /// `shard.missing`, `cluster.new`, `cluster.regressed`, `cluster.verified`, `quarantine.released`, `test.failed` and
    /// `test.fixed` (of one test case), `test.flaky`, `perf.regression`, `evidence.dropped`, `diagnosis.completed` and
    /// `storage.quota`. Without a channel they can be left out.
    events: Option<Vec<String>>,
    /// Branches, environments, and more that it is limited to.
    filters: Option<FiltersBody>,
    /// `realtime` for each message immediately, `digest` for one message a day or a week.
    mode: Option<String>,
    /// When a digest is sent, `HH:MM`; 08:00 unless said.
    #[schema(example = "08:00")]
    digest_at: Option<String>,
    /// `monday` to `sunday` for a digest once a week; null for every day.
    digest_day: Option<String>,
    /// Time zone of these times, by its IANA name; UTC unless said.
    #[schema(example = "Europe/Berlin")]
    time_zone: Option<String>,
    /// Hours in which nothing is sent; null for none. What comes meanwhile is sent as one message when they end.
    quiet_hours: Option<QuietHoursBody>,
    /// Silent until then; null for not.
    muted_until: Option<String>,
    /// Whether it sends anything.
    active: Option<bool>,
}

/// Hours in which nothing is sent.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct QuietHoursBody {
    /// The first quiet minute, `HH:MM`.
    #[schema(example = "22:00")]
    from: String,
    /// The first minute that is not quiet any more, `HH:MM`; earlier than `from` for hours past midnight.
    #[schema(example = "07:00")]
    to: String,
}

/// What a subscription is about besides its events.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct FiltersBody {
    /// Only these branches; empty or null for all.
    branches: Option<Vec<String>>,
    /// Only these environments; empty or null for all.
    environments: Option<Vec<String>>,
    /// Only the default branch of each project.
    default_branch_only: Option<bool>,
    /// Only runs that ended as one of `passed`, `failed`, `timedout`, `interrupted` and `cancelled`; empty or null for all.
    statuses: Option<Vec<String>>,
    /// Only what is about tests of one of these owners; empty or null for all. Of a run these are its tests that failed,
    /// were flaky or pass again.
    owners: Option<Vec<String>>,
    /// Only what is about tests with one of these tags; empty or null for all.
    tags: Option<Vec<String>>,
    /// Whether it is also about runs that began more than 24 hours before they were stored, such as imported ones.
    include_backfilled: Option<bool>,
    /// Only runs with new failures.
    only_new: Option<bool>,
    /// Least flaky score, 0 to 100, of tests in `test.flaky`; null for any.
    #[schema(example = 95, minimum = 0, maximum = 100)]
    flakiness_threshold: Option<i64>,
    /// Least share by which tests became slower in `perf.regression`, such as 0.5 for half as long again; null for any.
    #[schema(example = 0.5, minimum = 0, maximum = 100)]
    perf_regression_rate: Option<f64>,
}

fn edit_of(fields: &Fields) -> Result<SubscriptionEdit, ApiError> {
    let is_digest = fields.word("mode", &["realtime", "digest"], |word| match word {
        "digest" => Some(true),
        "realtime" => Some(false),
        _ => None,
    })?;
    let filters = fields.object("filters")?.into_value();
    let list = |name: &str| match &filters {
        Some(filters) => filters.lines(name, MAX_FILTERS, MAX_FILTER_CHARS),
        None => Ok(Change::Keep),
    };
    let (branches, environments) = (list("branches")?, list("environments")?);
    let statuses = list("statuses")?;
    require_statuses(statuses.value())?;
    let flag = |name: &str| filters.as_ref().map_or(Ok(None), |filters| filters.flag(name));
    let default_branch_only = flag("defaultBranchOnly")?;
    Ok(SubscriptionEdit {
        channel: fields.id::<ChannelId>("channelId")?.into_value(),
        project: fields.id("projectId")?,
        test_case: fields.id("testCaseId")?.into_value(),
        cluster: fields.id("clusterId")?.into_value(),
        events: events(fields)?,
        branches,
        environments,
        default_branch_only,
        statuses,
        owners: list("owners")?,
        tags: list("tags")?,
        includes_backfilled: flag("includeBackfilled")?,
        only_new: flag("onlyNew")?,
        least_flaky_score: match &filters {
            Some(filters) => filters.whole("flakinessThreshold", 0..=100)?,
            None => Change::Keep,
        },
        least_slower_permille: match &filters {
            Some(filters) => filters.change("perfRegressionRate", RATE, permille)?,
            None => Change::Keep,
        },
        is_digest,
        digest_at: fields.change("digestAt", TIME, read_time)?.into_value(),
        digest_day: fields
            .change("digestDay", "a day from monday to sunday", |value| Weekday::parse(value.as_str()?))?,
        time_zone: fields
            .change("timeZone", "an IANA time zone such as Europe/Berlin", |value| {
                value.as_str()?.parse().ok()
            })?
            .into_value(),
        quiet_hours: quiet_hours(fields)?,
        muted_until: fields.moment("mutedUntil")?,
        active: fields.flag("active")?,
    })
}

/// Statuses of runs that are over.
const STATUSES: [&str; 5] = ["passed", "failed", "timedout", "interrupted", "cancelled"];

fn require_statuses(words: Option<&Vec<String>>) -> Result<(), ApiError> {
    match words.into_iter().flatten().find(|word| !STATUSES.contains(&word.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let expected = STATUSES.join(", ");
            let text = format!("statuses must name some of {expected}; got {unknown:?}.");
            Err(ApiError::invalid_field("statuses", text))
        }
    }
}

const RATE: &str = "a share from 0 to 100, such as 0.5";

fn permille(value: &Value) -> Option<i64> {
    let share = value.as_f64().filter(|share| (0.0..=100.0).contains(share))?;
    #[expect(clippy::cast_possible_truncation, reason = "it is at most 100,000")]
    let permille = (share * 1_000.0).round() as i64;
    Some(permille)
}

const TIME: &str = "a time of day from 00:00 to 23:59";

fn read_time(value: &Value) -> Option<TimeOfDay> {
    TimeOfDay::parse(value.as_str()?)
}

fn quiet_hours(fields: &Fields) -> Result<Change<QuietHours>, ApiError> {
    let hours = match fields.object("quietHours")? {
        Change::Keep => return Ok(Change::Keep),
        Change::Clear => return Ok(Change::Clear),
        Change::Set(hours) => hours,
    };
    hours.require(&["from", "to"])?;
    let time = |name: &str| hours.change(name, TIME, read_time).map(Change::into_value);
    match (time("from")?, time("to")?) {
        (Some(from), Some(to)) if from != to => Ok(Change::Set(QuietHours { from, to })),
        (Some(_), Some(_)) => {
            let text = "quietHours must begin and end at different times; turn the subscription off to send nothing.";
            Err(ApiError::invalid_field("quietHours", text))
        }
        _ => Err(ApiError::missing_fields(&["quietHours"])),
    }
}

fn events(fields: &Fields) -> Result<Option<Vec<NotificationEvent>>, ApiError> {
    let words = NotificationEvent::subscribable();
    let Some(given) = fields.lines("events", words.len(), MAX_FILTER_CHARS)?.into_value() else {
        return Ok(None);
    };
    let read =
        |word: &String| words.contains(&word.as_str()).then(|| NotificationEvent::parse(word)).flatten();
    let unknown = given.iter().find(|word| read(word).is_none());
    if given.is_empty() || unknown.is_some() {
        let expected = words.join(", ");
        let got = unknown.map_or_else(|| "an empty list".to_owned(), |word| format!("{word:?}"));
        return Err(ApiError::invalid_field(
            "events",
            format!("events must name some of {expected}; got {got}."),
        ));
    }
    Ok(Some(given.iter().filter_map(read).collect()))
}

/// Which subscriptions a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubscriptionsParams {
    /// Only those that events of this project may go to.
    #[param(value_type = Option<i64>)]
    project: Option<ProjectId>,
}

impl FromQuery for SubscriptionsParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { project: query.id("project")? })
    }
}

/// Subscriptions of the instance and of the caller, oldest first.
#[utoipa::path(get, path = "/api/subscriptions", tag = "settings", operation_id = "list_subscriptions",
    params(SubscriptionsParams, PageRequest), responses((status = 200, body = Page<Subscription>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(asked): Query<SubscriptionsParams>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Subscription>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListSubscriptions, &asked)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let found = notifications::subscriptions(&ctx, &caller, asked.project, after, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// A subscription was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubscriptionWritten {
    /// Always true.
    success: bool,
    /// The subscription now.
    subscription: Subscription,
}

/// Subscribes a channel to events.
///
/// Without `channelId` the caller is notified in the header of the pages about a project, a test case or a failure
/// cluster; asking for the same again returns the present subscription.
///
/// # Errors
/// 400 `missing_field`, `no_fields`, `invalid_field`; 403 `insufficient_role`, `project_access_denied`; 404
/// `channel_not_found`, `project_not_found`, `test_case_not_found`, `cluster_not_found`; 413 `too_many_items`.
#[utoipa::path(post, path = "/api/subscriptions", tag = "settings", operation_id = "create_subscription",
    request_body = SubscriptionBody,
    responses(
        (status = 201, body = SubscriptionWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`channel_not_found`, `project_not_found`"),
        (status = 413, description = "`too_many_items`: 200 of a person, 500 of the instance")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    let wanted = edit_of(&fields)?;
    if wanted.channel.is_some() || caller.user_id().is_none() {
        fields.require(&["channelId", "events"])?;
    } else {
        fields.require_any(&["projectId", "testCaseId", "clusterId", "events"])?;
    }
    let acting = visit.acting(&caller, state.now());
    let subscription = notifications::create_subscription(&state.context(&site), acting, wanted).await?;
    Ok((StatusCode::CREATED, Json(SubscriptionWritten { success: true, subscription })).into_response())
}

/// Changes a subscription.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`; 404 `subscription_not_found`,
/// `channel_not_found`, `project_not_found`.
#[utoipa::path(patch, path = "/api/subscriptions/{id}", tag = "settings", operation_id = "edit_subscription",
    params(("id" = i64, Path, description = "Subscription")), request_body = SubscriptionBody,
    responses(
        (status = 200, body = SubscriptionWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`subscription_not_found`, `channel_not_found`, `project_not_found`")
    ))]
pub(crate) async fn edit(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<SubscriptionId>,
    fields: Fields,
) -> Result<Json<SubscriptionWritten>, ApiError> {
    fields.require_any(&[
        "channelId",
        "projectId",
        "testCaseId",
        "clusterId",
        "events",
        "filters",
        "mode",
        "digestAt",
        "digestDay",
        "timeZone",
        "quietHours",
        "mutedUntil",
        "active",
    ])?;
    let wanted = edit_of(&fields)?;
    let acting = visit.acting(&caller, state.now());
    let subscription = notifications::edit_subscription(&state.context(&site), acting, id, wanted).await?;
    Ok(Json(SubscriptionWritten { success: true, subscription }))
}

/// Deletes a subscription.
///
/// # Errors
/// 404 `subscription_not_found`.
#[utoipa::path(delete, path = "/api/subscriptions/{id}", tag = "settings", operation_id = "delete_subscription",
    params(("id" = i64, Path, description = "Subscription")),
    responses((status = 200, body = Done), (status = 404, description = "`subscription_not_found`")))]
pub(crate) async fn delete(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<SubscriptionId>,
) -> Result<Json<Done>, ApiError> {
    let acting = visit.acting(&caller, state.now());
    notifications::delete_subscription(&state.context(&site), acting, id).await?;
    Ok(Done::answer())
}
