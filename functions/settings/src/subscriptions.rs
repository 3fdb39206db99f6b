//! `/api/subscriptions`: which events go to which channel.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::RouteId;
use callboard_domain::ids::{ChannelId, ProjectId, SubscriptionId};
use callboard_domain::notifications::NotificationEvent;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::Change;
use callboard_query::notifications::{self, Subscription, SubscriptionEdit};
use http::StatusCode;
use serde::Serialize;
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
    /// Channel that gets the messages.
    channel_id: Option<i64>,
    /// Only this project; null for all.
    project_id: Option<i64>,
    /// Some of `run.finished`, `run.failed`, `run.failed.default_branch` (a branch went red), `run.recovered`,
    /// `shard.missing`, `cluster.new`, `cluster.regressed`, `cluster.verified` and `quarantine.released`.
    events: Option<Vec<String>>,
    /// Branches and environments.
    filters: Option<FiltersBody>,
    /// Only `realtime`.
    mode: Option<String>,
    /// Silent until then; null for not.
    muted_until: Option<String>,
    /// Whether it sends anything.
    active: Option<bool>,
}

/// Which branches and environments a subscription is about.
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
}

fn edit_of(fields: &Fields) -> Result<SubscriptionEdit, ApiError> {
    fields.word("mode", &["realtime"], |word| (word == "realtime").then_some(()))?;
    let filters = fields.object("filters")?.into_value();
    let list = |name: &str| match &filters {
        Some(filters) => filters.lines(name, MAX_FILTERS, MAX_FILTER_CHARS),
        None => Ok(Change::Keep),
    };
    let (branches, environments) = (list("branches")?, list("environments")?);
    let default_branch_only = match &filters {
        Some(filters) => filters.flag("defaultBranchOnly")?,
        None => None,
    };
    Ok(SubscriptionEdit {
        channel: fields.id::<ChannelId>("channelId")?.into_value(),
        project: fields.id("projectId")?,
        events: events(fields)?,
        branches,
        environments,
        default_branch_only,
        muted_until: fields.moment("mutedUntil")?,
        active: fields.flag("active")?,
    })
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

/// Subscriptions, oldest first.
#[utoipa::path(get, path = "/api/subscriptions", tag = "settings", operation_id = "list_subscriptions",
    params(SubscriptionsParams, PageRequest), responses((status = 200, body = Page<Subscription>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    Query(asked): Query<SubscriptionsParams>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Subscription>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListSubscriptions, &asked)?;
    let after = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    Ok(Json(cursors.page(notifications::subscriptions(&ctx, asked.project, after, page.rows()).await?)?))
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
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `channel_not_found`,
/// `project_not_found`.
#[utoipa::path(post, path = "/api/subscriptions", tag = "settings", operation_id = "create_subscription",
    request_body = SubscriptionBody,
    responses(
        (status = 201, body = SubscriptionWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`channel_not_found`, `project_not_found`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.require(&["channelId", "events"])?;
    let wanted = edit_of(&fields)?;
    let channel = wanted.channel.ok_or_else(|| ApiError::missing_fields(&["channelId"]))?;
    let acting = visit.acting(&caller, state.now());
    let subscription =
        notifications::create_subscription(&state.context(&site), acting, channel, wanted).await?;
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
    fields.require_any(&["channelId", "projectId", "events", "filters", "mutedUntil", "active"])?;
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
