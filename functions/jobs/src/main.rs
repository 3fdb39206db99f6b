//! The function `jobs` on its own. It does what is due when it is called over
//! HTTP, and when the platform's scheduler invokes it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use callboard_fn_jobs::{Budget, DEFAULT_BUDGET, Ticked, router, run_due};
use callboard_http::AppState;
use callboard_store::StoreError;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_scheduled_function("jobs", router, scheduled).await
}

async fn scheduled(state: AppState) -> Result<Response, StoreError> {
    let summary = run_due(&state, Budget::new(DEFAULT_BUDGET)).await?;
    Ok(Json(Ticked::from(summary)).into_response())
}
