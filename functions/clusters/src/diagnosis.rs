//! Diagnoses of failure clusters by the configured model.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use callboard_auth::RouteId;
use callboard_auth::limits::DIAGNOSE;
use callboard_domain::diagnosis::MAX_CONTEXT_CHARS;
use callboard_domain::ids::{ClusterId, DiagnosisId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, Path, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::diagnoses::{self, Diagnosis, DiagnosisRequest, Vote};
use callboard_query::{Change, resolve};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// The longest a request waits for an answer, seconds.
const MAX_WAIT_SECONDS: i64 = 20;
/// When to ask again about one that runs, seconds.
const ASK_AGAIN_SECONDS: u32 = 10;
const MAX_NOTE_CHARS: usize = 2_000;

/// What a diagnosis is requested with. Every field is optional.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct DiagnoseBody {
    /// A new answer although there is one, also to the same evidence.
    force: Option<bool>,
    /// What the model should know beside the evidence, at most 4,000 characters.
    additional_context: Option<String>,
    /// How long to wait for the answer, seconds.
    #[schema(minimum = 0, maximum = 20)]
    wait: Option<i64>,
}

/// A diagnosis that was requested.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requested {
    #[serde(flatten)]
    diagnosis: Diagnosis,
    /// When to ask again, seconds; null when the diagnosis has ended.
    retry_after_seconds: Option<u32>,
}

/// A diagnosis, or none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Newest {
    /// The newest version; null while nobody requested one.
    diagnosis: Option<Diagnosis>,
}

/// A diagnosis was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiagnosisWritten {
    /// Always true.
    success: bool,
    /// The diagnosis now.
    diagnosis: Diagnosis,
}

/// Requests a diagnosis of a cluster by the configured model. It is queued once
/// per cluster: while one runs, that one is answered, and so is one with an
/// answer, unless `force` is true or `additionalContext` is given.
///
/// # Errors
/// 400 `invalid_field`; 404 `cluster_not_found`; 429 `rate_limited`; 503
/// `not_configured`.
#[utoipa::path(post, path = "/api/failure-clusters/{id}/diagnose", tag = "clusters", operation_id = "diagnose_cluster",
    params(("id" = i64, Path, description = "Cluster")), request_body = DiagnoseBody,
    responses(
        (status = 200, body = Requested, description = "It has ended; it may have been there before"),
        (status = 202, body = Requested, description = "It is queued or runs"),
        (status = 400, description = "`invalid_field`"),
        (status = 404, description = "`cluster_not_found`"),
        (status = 429, description = "`rate_limited`: more than 30 requests an hour"),
        (status = 503, description = "`not_configured`: `data.setting` is missing")
    ))]
pub(crate) async fn diagnose(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ClusterId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    let force = fields.flag("force")?.unwrap_or_default();
    let note = fields.prose("additionalContext", MAX_CONTEXT_CHARS)?.into_value();
    let wait = fields.whole("wait", 0..=MAX_WAIT_SECONDS)?.into_value().unwrap_or(0);
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    diagnoses::require_configured(&ctx).await?;
    state.limits().await?.check(DIAGNOSE, &caller.credential().into_bytes(), state.now()).await?;
    let acting = visit.acting(&caller, state.now());
    let wanted = DiagnosisRequest { force, note };
    let requested = diagnoses::request(&ctx, acting, project, id, wanted).await?;
    let patience = Duration::from_secs(wait.unsigned_abs());
    let diagnosis = diagnoses::wait_until_done(&ctx, project, requested.id, &caller, patience).await?;
    let is_running = diagnosis.status == "running";
    let status = if is_running { StatusCode::ACCEPTED } else { StatusCode::OK };
    let retry_after_seconds = is_running.then_some(ASK_AGAIN_SECONDS);
    Ok((status, Json(Requested { diagnosis, retry_after_seconds })).into_response())
}

/// The newest version of a cluster's diagnosis, running or ended.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/diagnosis", tag = "clusters", operation_id = "get_cluster_diagnosis",
    params(("id" = i64, Path, description = "Cluster")),
    responses((status = 200, body = Newest), (status = 404, description = "`cluster_not_found`")))]
pub(crate) async fn newest(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
) -> Result<Json<Newest>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    Ok(Json(Newest { diagnosis: diagnoses::latest(&ctx, project, id, &caller).await? }))
}

/// All versions of a cluster's diagnosis, newest first.
///
/// # Errors
/// 404 `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/diagnoses", tag = "clusters", operation_id = "list_cluster_diagnoses",
    params(("id" = i64, Path, description = "Cluster"), PageRequest),
    responses((status = 200, body = Page<Diagnosis>), (status = 404, description = "`cluster_not_found`")))]
pub(crate) async fn versions(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Diagnosis>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ClusterDiagnoses, &id)?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    Ok(Json(cursors.page(diagnoses::versions(&ctx, project, id, &caller, before, page.rows()).await?)?))
}

/// A person's opinion of a diagnosis.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what is read field by field")]
pub(crate) struct FeedbackBody {
    /// `up`, `down`, or null to take the vote back.
    #[schema(example = "up")]
    feedback: Option<String>,
    /// Why, at most 2,000 characters.
    note: Option<String>,
}

/// Rates a version of a diagnosis: one vote per person and version, which may be
/// changed and taken back.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 `diagnosis_not_found`.
#[utoipa::path(patch, path = "/api/failure-diagnoses/{id}/feedback", tag = "clusters", operation_id = "rate_diagnosis",
    params(("id" = i64, Path, description = "Diagnosis")), request_body = FeedbackBody,
    responses(
        (status = 200, body = DiagnosisWritten),
        (status = 400, description = "`no_fields`, `invalid_field`"),
        (status = 404, description = "`diagnosis_not_found`")
    ))]
pub(crate) async fn feedback(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<DiagnosisId>,
    fields: Fields,
) -> Result<Json<DiagnosisWritten>, ApiError> {
    fields.require_any(&["feedback"])?;
    let vote = match fields.text("feedback")? {
        Change::Set(word) => match word.as_str() {
            "up" => Vote::Up,
            "down" => Vote::Down,
            _ => return Err(ApiError::invalid_field("feedback", "feedback must be up, down or null.")),
        },
        Change::Clear | Change::Keep => Vote::None,
    };
    let note = fields.prose("note", MAX_NOTE_CHARS)?.into_value();
    let ctx = state.context(&site);
    let project = resolve::diagnosis(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let diagnosis = diagnoses::feedback(&ctx, acting, project, id, vote, note).await?;
    Ok(Json(DiagnosisWritten { success: true, diagnosis }))
}

/// Cancels a diagnosis that runs. What the model was asked until then is counted.
///
/// # Errors
/// 404 `diagnosis_not_found`; 409 `not_pending` when it has ended.
#[utoipa::path(post, path = "/api/failure-diagnoses/{id}/cancel", tag = "clusters", operation_id = "cancel_diagnosis",
    params(("id" = i64, Path, description = "Diagnosis")),
    responses(
        (status = 200, body = DiagnosisWritten),
        (status = 404, description = "`diagnosis_not_found`"),
        (status = 409, description = "`not_pending`: it has ended")
    ))]
pub(crate) async fn cancel(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<DiagnosisId>,
) -> Result<Json<DiagnosisWritten>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::diagnosis(&ctx, caller.scope(), id).await?;
    let acting = visit.acting(&caller, state.now());
    let diagnosis = diagnoses::cancel(&ctx, acting, project, id).await?;
    Ok(Json(DiagnosisWritten { success: true, diagnosis }))
}
