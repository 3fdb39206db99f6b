//! From set-up to running.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use callboard_domain::ids::RunId;
use callboard_domain::ingest::Need;
use callboard_http::extract::{JsonBytes, Path};
use callboard_http::{ApiError, AppState, Site, TellsSecret};

use crate::answer::StartAnswer;
use crate::body;

/// The global set-up of a run is over, its tests begin.
#[utoipa::path(
    post,
    path = "/api/test-runs/{id}/begin",
    tag = "live",
    params(("id" = i64, Path, description = "Run")),
    request_body(content = Object, description = "setupToken is required",
        example = json!({ "setupToken": "<64 hex>", "totalTests": 120 })),
    responses(
        (status = 200, body = StartAnswer),
        (status = 409, description = "`begin_not_possible`: start the run instead")
    )
)]
pub(crate) async fn begin_run(
    State(state): State<AppState>,
    site: Site,
    Path(run): Path<RunId>,
    bytes: JsonBytes,
) -> Result<Response, ApiError> {
    let read = |bytes| body::token_and_fields(bytes, "setupToken", Need::Begin);
    let ((token, fields, found), _reservation) = bytes.read(read).await?;
    let ctx = state.context(&site);
    let ticket = callboard_ingest::begin(&ctx, run, token.as_deref(), &fields, state.now()).await?;
    Ok(TellsSecret.mark(Json(StartAnswer::new(ticket, &found, state.config()))))
}
