//! A run sent as one JSON document.

use axum::Json;
use axum::extract::State;
use callboard_domain::ingest::{
    Caps, Need, RunFields, StoredSubmit, SubmitBody, Warnings, read_stored_submit,
};
use callboard_http::extract::{Caller, JsonPayload, Payload, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_ingest::{Entries, Submission};
use callboard_query::evidence_loss;

use crate::answer::SubmitAnswer;

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
    responses(
        (status = 200, body = SubmitAnswer),
        (status = 400, description = "`invalid_shard`")
    )
)]
pub(crate) async fn submit_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    body: Result<JsonPayload, ApiError>,
) -> Result<Json<SubmitAnswer>, ApiError> {
    let body = body.map_err(|error| match error.code() {
        "body_too_large" => ApiError::run_too_large(state.config().max_submit_bytes),
        _ => error,
    })?;
    let now = state.now();
    let caps = state.config().caps.clone();
    let ((fields, entries, mut warnings), reservation) = body.read(move |body| parse(body, &caps)).await?;
    fields.warn_of_start_ahead(now, &mut warnings);
    let ctx = state.context(&site);
    let name = fields.project_name.clone().unwrap_or_default();
    let description = fields.project_description.as_deref();
    let project =
        callboard_ingest::open_project(&ctx, caller.scope(), &name, description, visit.actor(), now).await?;
    let submission = Submission { fields, entries, held: Some(reservation), ..Submission::default() };
    let submitted = callboard_ingest::submit(&ctx, project, submission, now).await?;
    evidence_loss::report(&ctx, submitted.run, &warnings, now).await?;
    Ok(Json(SubmitAnswer::from_submitted(&submitted, &warnings)))
}

type Read = (RunFields, Entries, Warnings);

fn parse(body: Payload, caps: &Caps) -> Result<Read, ApiError> {
    let (mut fields, entries, found) = match body {
        Payload::Memory(bytes) => {
            let body = SubmitBody::parse(bytes, caps)?;
            let cases = body.test_cases.unwrap_or_default();
            (body.fields, Entries::Parsed(cases.entries), cases.warnings)
        }
        Payload::File(file) => {
            let StoredSubmit { fields, test_cases, warnings } = read_stored_submit(file, caps)?;
            (fields, test_cases.map(Entries::Stored).unwrap_or_default(), warnings)
        }
    };
    let (fields, mut warnings) = RunFields::parse(&mut fields, Need::Submit)?;
    warnings.extend(found);
    Ok((fields, entries, warnings))
}
