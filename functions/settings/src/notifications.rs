//! `/api/notifications`: the notifications of a person in the header of the pages.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::DeliveryId;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::notifications::{self, InboxItem};
use callboard_query::page::Slice;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Done;

/// The largest id.
const MAX_ID: i64 = (1 << 53) - 1;

/// Which notifications a list shows.
#[derive(Debug, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NotificationsParams {
    /// Only unread ones.
    #[param(required = false)]
    unread: bool,
}

impl FromQuery for NotificationsParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { unread: query.flag("unread")?.unwrap_or_default() })
    }
}

/// Notifications of the caller, newest first; they are kept for 30 days. Of projects that the caller does not reach any
/// more nothing is shown.
#[utoipa::path(get, path = "/api/notifications", tag = "settings", operation_id = "list_notifications",
    params(NotificationsParams, PageRequest), responses((status = 200, body = Page<InboxItem>)))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Query(params): Query<NotificationsParams>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<InboxItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ListNotifications, &params)?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let found = match caller.user_id() {
        Some(user) => {
            let (ctx, scope) = (state.context(&site), caller.scope());
            notifications::inbox(&ctx, user, scope, params.unread, before, page.rows()).await?
        }
        None => Slice::default(),
    };
    Ok(Json(cursors.page(found)?))
}

/// Which notifications were read.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes the body, which is read field by field")]
pub(crate) struct ReadBody {
    /// The newest notification that the caller has seen; it and all before it are read.
    up_to: i64,
}

/// Notifications are marked as read.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotificationsRead {
    /// Always true.
    success: bool,
    /// How many were unread.
    count: u64,
}

/// Marks the notifications of the caller as read, up to one of them.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`.
#[utoipa::path(post, path = "/api/notifications/read", tag = "settings", operation_id = "read_notifications",
    request_body = ReadBody,
    responses((status = 200, body = NotificationsRead), (status = 400, description = "`missing_field`, `invalid_field`")))]
pub(crate) async fn read_all(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    fields: Fields,
) -> Result<Json<NotificationsRead>, ApiError> {
    fields.require(&["upTo"])?;
    let up_to = fields.whole("upTo", 0..=MAX_ID)?.into_value();
    let up_to = DeliveryId(up_to.ok_or_else(|| ApiError::missing_fields(&["upTo"]))?);
    let count = match caller.user_id() {
        Some(user) => {
            let ctx = state.context(&site);
            notifications::mark_read_up_to(&ctx, user, caller.scope(), up_to, state.now()).await?
        }
        None => 0,
    };
    Ok(Json(NotificationsRead { success: true, count }))
}

/// Marks a notification of the caller as read.
///
/// # Errors
/// 404 `notification_not_found`.
#[utoipa::path(post, path = "/api/notifications/{id}/read", tag = "settings", operation_id = "read_notification",
    params(("id" = i64, Path, description = "Notification")),
    responses((status = 200, body = Done), (status = 404, description = "`notification_not_found`")))]
pub(crate) async fn read(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<DeliveryId>,
) -> Result<Json<Done>, ApiError> {
    // Without an account there is no notification of this id either.
    let user = caller.user_id().unwrap_or(callboard_domain::ids::UserId(0));
    notifications::mark_read(&state.context(&site), user, caller.scope(), id, state.now()).await?;
    Ok(Done::answer())
}
