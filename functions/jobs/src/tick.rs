//! `POST /internal/tick`: the schedule asks for what is due to be done.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use callboard_auth::tick::{self, TickKeys};
use callboard_domain::time::Timestamp;
use callboard_http::extract::JsonBytes;
use callboard_http::{ApiError, AppState};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::job::Budget;
use crate::runner::{Summary, run_due};

/// How long jobs are begun when the caller does not say.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(20);
/// Longest budget, milliseconds: gateways wait 30 seconds for an answer.
const MAX_BUDGET_MS: u64 = 25_000;

/// What a tick may be told.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TickRequest {
    /// How long jobs may be begun, milliseconds; those begun are waited for.
    #[schema(example = 20000, maximum = 25000)]
    budget_ms: Option<u64>,
}

/// What a tick did.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ticked {
    /// Jobs taken in hand.
    #[schema(example = 3)]
    claimed: u64,
    /// Jobs that ended well, or got further.
    #[schema(example = 3)]
    done: u64,
    /// Attempts that failed; they are tried again.
    #[schema(example = 0)]
    failed: u64,
    /// When the next job is due, when one is waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>, format = DateTime)]
    next_due_at: Option<Timestamp>,
}

impl From<Summary> for Ticked {
    fn from(summary: Summary) -> Self {
        let Summary { claimed, done, failed, next_due } = summary;
        Self { claimed, done, failed, next_due_at: next_due }
    }
}

/// Does the work that is due. For the schedule only, which signs the time of
/// its call: `X-Tick-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256>`.
///
/// Ticks at the same time share the work. Refused are calls that are not
/// signed with `SERVICE_AUTH_SECRET`, or more than five minutes ago.
#[utoipa::path(
    post,
    path = "/internal/tick",
    tag = "jobs",
    params(("X-Tick-Signature" = String, Header, description = "`t=<unix seconds>,v1=<hex>`")),
    request_body(content = TickRequest),
    responses(
        (status = 200, body = Ticked),
        (status = 401, description = "`invalid_tick_signature`"),
        (status = 503, description = "`not_configured`: SERVICE_AUTH_SECRET is not set")
    )
)]
pub(crate) async fn tick(
    State(state): State<AppState>,
    Extension(keys): Extension<Arc<TickKeys>>,
    headers: HeaderMap,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Json<Ticked>, ApiError> {
    if !keys.is_configured() {
        let message = "Calls of the schedule are signed with SERVICE_AUTH_SECRET, which is not set.";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_configured", message)
            .with_data(json!({ "setting": "SERVICE_AUTH_SECRET" })));
    }
    let signature = headers.get(tick::HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    keys.check(signature, state.now()).map_err(|refused| {
        let message = "The signature is missing, not of this installation, or more than five minutes old.";
        ApiError::new(StatusCode::UNAUTHORIZED, "invalid_tick_signature", message).caused_by(refused)
    })?;
    let budget = budget(&body)?;
    // The work goes on when the caller goes away.
    let summary = tokio::spawn(async move { run_due(&state, Budget::new(budget)).await });
    let summary = summary.await.map_err(|error| ApiError::internal("a tick broke off").caused_by(error))?;
    Ok(Json(summary?.into()))
}

fn budget(body: &[u8]) -> Result<Duration, ApiError> {
    if body.is_empty() {
        return Ok(DEFAULT_BUDGET);
    }
    let request: TickRequest = serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid_json(format!("The body cannot be read: {error}.")))?;
    match request.budget_ms {
        None => Ok(DEFAULT_BUDGET),
        Some(ms @ ..=MAX_BUDGET_MS) => Ok(Duration::from_millis(ms)),
        Some(_) => {
            Err(ApiError::invalid_field("budgetMs", format!("budgetMs must be at most {MAX_BUDGET_MS}.")))
        }
    }
}
