//! A run sent as one JSON document.

use axum::Json;
use axum::extract::State;
use callboard_domain::ingest::{BodyError, Caps, Need, RunFields, SubmitBody, Warnings};
use callboard_http::extract::{Caller, JsonBytes, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::ingest::{self, Submission};

use crate::answer::SubmitAnswer;
use crate::room::room_for;

/// Stores a run with its test cases.
///
/// Every test case is one attempt; attempts of one test become one execution.
/// The totals sent are not counted, they come from the test cases. The same
/// submission again (same `clientRunId`, or `instanceId` with `startTime`)
/// finds its run and changes nothing.
#[utoipa::path(
    post,
    path = "/api/test-runs/submit",
    tag = "submit",
    request_body(
        content = Object,
        description = "projectName, status and startTime are required; testCases is a list of attempts",
        example = json!({
            "projectName": "shop", "status": "failed", "startTime": "2026-01-01T10:00:00.000Z", "duration": 5000,
            "totalTests": 1, "passedTests": 0, "failedTests": 1, "skippedTests": 0,
            "testCases": [{
                "title": "pays", "status": "failed", "duration": 2100,
                "location": "tests/pay.spec.ts:9:5", "error": "Error: expected 200", "retries": 0
            }]
        })
    ),
    responses((status = 200, body = SubmitAnswer))
)]
pub(crate) async fn submit_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    body: JsonBytes,
) -> Result<Json<SubmitAnswer>, ApiError> {
    let _room = room_for(body.0.len()).await;
    let now = state.now();
    let caps = state.config().caps.clone();
    let (fields, cases, warnings) = body.read(move |bytes| parse(bytes, &caps)).await?;
    let ctx = state.context(&site);
    let name = fields.project_name.clone().unwrap_or_default();
    let description = fields.project_description.as_deref();
    let project = ingest::open_project(&ctx, caller.scope(), &name, description, visit.actor(), now).await?;
    let submission = Submission { fields, entries: cases, ..Submission::default() };
    let submitted = ingest::submit(&ctx, project, submission, now).await?;
    Ok(Json(SubmitAnswer::of(&submitted, &warnings)))
}

type Read = (RunFields, Vec<callboard_domain::ingest::TestCaseEntry>, Warnings);

fn parse(body: Vec<u8>, caps: &Caps) -> Result<Read, ApiError> {
    let mut body = SubmitBody::parse(body, caps).map_err(|error| body_error(&error))?;
    let (fields, mut warnings) = RunFields::parse(&mut body.fields, Need::Submit)?;
    let cases = body.test_cases.unwrap_or_default();
    warnings.extend(cases.warnings);
    Ok((fields, cases.entries, warnings))
}

/// An unreadable body as the client is told about it.
pub(crate) fn body_error(error: &BodyError) -> ApiError {
    match error {
        BodyError::TooMany { limit } => ApiError::too_many_items("testCases", *limit as u64),
        BodyError::NotAList => ApiError::invalid_field("testCases", error.to_string()),
        error => ApiError::bad_request(error.code(), error.to_string()),
    }
}
