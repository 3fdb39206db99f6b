//! The end of a client of a run.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_domain::ingest::Need;
use callboard_domain::status::RunStatus;
use callboard_http::extract::{JsonBytes, Path};
use callboard_http::ingest_warnings::{WarningView, warnings};
use callboard_http::{ApiError, AppState, Site};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body;

/// Where a run stands after one of its clients is done.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FinishAnswer {
    /// Always true.
    success: bool,
    /// The run.
    #[schema(example = 42)]
    test_run_id: i64,
    /// The run, under the name other calls use.
    #[schema(example = 42)]
    run_id: i64,
    /// `running` while other shards are, `finalizing` while files are to
    /// follow, else how the run ended.
    #[schema(value_type = String, example = "passed")]
    status: RunStatus,
    /// Page of the run.
    run_url: String,
    /// What was read leniently, at most 20 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warnings: Option<Vec<WarningView>>,
}

/// A client of a run is done.
///
/// Counters sent along are ignored: totals come from the events. Finishing
/// again changes nothing.
#[utoipa::path(
    post,
    path = "/api/test-runs/{id}/finish",
    tag = "live",
    params(("id" = i64, Path, description = "Run")),
    request_body(content = Object, description = "streamToken is required; status defaults to failed, and one that is unknown to what the tests say",
        example = json!({ "streamToken": "<64 hex>", "status": "passed", "duration": 5000, "hasPendingUploads": true })),
    responses(
        (status = 200, body = FinishAnswer),
        (status = 409, description = "`run_cancelled`")
    )
)]
pub(crate) async fn finish_run(
    State(state): State<AppState>,
    site: Site,
    Path(run): Path<RunId>,
    bytes: JsonBytes,
) -> Result<Json<FinishAnswer>, ApiError> {
    let read = |bytes| body::token_and_fields(bytes, "streamToken", Need::Finish);
    let ((token, fields, found), _reservation) = bytes.read(read).await?;
    let ctx = state.context(&site);
    let status = callboard_ingest::finish(&ctx, run, token.as_deref(), &fields, state.now()).await?;
    Ok(Json(FinishAnswer {
        success: true,
        test_run_id: run.get(),
        run_id: run.get(),
        status,
        run_url: ctx.links.run(run.get()),
        warnings: warnings(&found),
    }))
}
