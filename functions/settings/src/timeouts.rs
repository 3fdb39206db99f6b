//! By what it is judged that a timeout could be shorter.

use axum::Json;
use axum::response::Response;
use callboard_domain::timeouts::{TIMEOUT_KEYS, TimeoutOverrides, TimeoutRules};
use callboard_http::ApiError;
use callboard_http::extract::Fields;
use callboard_query::settings::OfInstance;
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{GroupHistory, Written};
use crate::desk::Desk;
use crate::group;

/// By what timeouts are judged. Absent keys stay as they are, null takes back
/// what was set.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read and written key by key")]
pub(crate) struct TimeoutsBody {
    /// Fewest passed runs to judge by.
    #[schema(example = 5, minimum = 1, maximum = 200)]
    min_runs: Option<i64>,
    /// A timeout is oversized from so many times the longest run.
    #[schema(example = 3, minimum = 1, maximum = 100)]
    factor: Option<f64>,
    /// Timeouts below this are left alone, ms.
    #[schema(example = 20_000, minimum = 0, maximum = 86_400_000)]
    floor_ms: Option<i64>,
    /// So many times the 95th percentile is recommended.
    #[schema(example = 2, minimum = 1, maximum = 100)]
    safety: Option<f64>,
    /// The least that is recommended, ms.
    #[schema(example = 5_000, minimum = 0, maximum = 86_400_000)]
    recommended_floor_ms: Option<i64>,
    /// A test that is marked slow is not when its 95th percentile is below this, ms.
    #[schema(rename = "slowStaleP95Ms", example = 10_000, minimum = 0, maximum = 86_400_000)]
    slow_stale_p95_ms: Option<i64>,
}

/// By what timeouts are judged in all projects.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimeoutsAnswer {
    /// What holds.
    #[schema(value_type = TimeoutsBody)]
    settings: TimeoutOverrides,
    /// What would hold if nothing was set.
    #[schema(value_type = TimeoutsBody)]
    defaults: TimeoutOverrides,
    #[serde(flatten)]
    history: GroupHistory,
}

impl From<OfInstance<TimeoutOverrides>> for TimeoutsAnswer {
    fn from(found: OfInstance<TimeoutOverrides>) -> Self {
        let defaults = TimeoutRules::default();
        Self {
            settings: TimeoutOverrides::all_of(&found.set.over(&defaults)),
            defaults: TimeoutOverrides::all_of(&defaults),
            history: GroupHistory::new(found.updated_at, found.updated_by),
        }
    }
}

/// By what it is judged that a timeout could be shorter.
#[utoipa::path(get, path = "/api/settings/timeout-hygiene", tag = "settings", operation_id = "timeout_settings",
    responses((status = 200, body = TimeoutsAnswer), (status = 304, description = "The client has this state")))]
pub(crate) async fn get(desk: Desk, headers: HeaderMap) -> Result<Response, ApiError> {
    group::get::<TimeoutOverrides, TimeoutsAnswer>(&desk, &headers).await
}

/// Changes by what timeouts are judged; lists follow immediately. What is absent
/// stays, null is the default.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`.
#[utoipa::path(method(patch, put), path = "/api/settings/timeout-hygiene", tag = "settings",
    operation_id = "edit_timeout_settings", request_body = TimeoutsBody,
    responses(
        (status = 200, body = Written<TimeoutsAnswer>),
        (status = 400, description = "`no_fields`, `invalid_field`")
    ))]
pub(crate) async fn edit(desk: Desk, fields: Fields) -> Result<Json<Written<TimeoutsAnswer>>, ApiError> {
    group::edit::<TimeoutOverrides, TimeoutsAnswer>(&desk, &fields, &TIMEOUT_KEYS).await
}
