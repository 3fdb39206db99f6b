//! Diagnoses of failure clusters and executions by the configured model.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use callboard_auth::RouteId;
use callboard_auth::limits::DIAGNOSE;
use callboard_auth::scope::Authorized;
use callboard_domain::diagnosis::MAX_CONTEXT_CHARS;
use callboard_domain::ids::{ClusterId, DiagnosisId, ExecutionId, ProjectId};
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, Fields, Path, Query, Visit};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::diagnoses::{self, Diagnosis, DiagnosisRequest, Grounds, Subject, Vote};
use callboard_query::{Change, Context, resolve};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::{MAX_SHAS, is_commit};

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
    /// The commit that changes count from, 7 to 64 hexadecimal digits.
    #[schema(example = "0a1b2c3d")]
    base_commit: Option<String>,
    /// Commits to say something about, at most 10.
    selected_commit_shas: Option<Vec<String>>,
    /// The execution of the cluster whose evidence is sent, instead of its newest failure. Not for an execution.
    execution_id: Option<i64>,
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

fn commit(field: &str, sha: String) -> Result<String, ApiError> {
    let wrong = || ApiError::invalid_field(field, format!("{field} must have 7 to 64 hexadecimal digits."));
    if is_commit(&sha) { Ok(sha.to_ascii_lowercase()) } else { Err(wrong()) }
}

/// What a body asks for, and how long it waits.
fn read(fields: &Fields) -> Result<(DiagnosisRequest, Duration), ApiError> {
    let base = fields.text("baseCommit")?.into_value();
    let shas = fields.lines("selectedCommitShas", MAX_SHAS, 64)?.into_value().unwrap_or_default();
    let grounds = Grounds {
        sample: fields.id("executionId")?.into_value(),
        base_commit: base.map(|sha| commit("baseCommit", sha)).transpose()?,
        commits: shas.into_iter().map(|sha| commit("selectedCommitShas", sha)).collect::<Result<_, _>>()?,
    };
    let force = fields.flag("force")?.unwrap_or_default();
    let note = fields.prose("additionalContext", MAX_CONTEXT_CHARS)?.into_value();
    let wait = fields.whole("wait", 0..=MAX_WAIT_SECONDS)?.into_value().unwrap_or(0);
    Ok((DiagnosisRequest { force, note, grounds }, Duration::from_secs(wait.unsigned_abs())))
}

/// A request of a caller.
struct Call<'c> {
    state: &'c AppState,
    ctx: &'c Context,
    caller: &'c Caller,
    visit: &'c Visit,
}

impl Call<'_> {
    async fn diagnose(
        &self,
        project: Authorized<ProjectId>,
        subject: Subject,
        (wanted, patience): (DiagnosisRequest, Duration),
    ) -> Result<Response, ApiError> {
        let Self { state, ctx, caller, visit } = self;
        diagnoses::require_configured(ctx).await?;
        state.limits().await?.check(DIAGNOSE, &caller.credential().into_bytes(), state.now()).await?;
        let acting = visit.acting(caller, state.now());
        let requested = diagnoses::request(ctx, acting, project, subject, wanted).await?;
        let diagnosis = diagnoses::wait_until_done(ctx, project, requested.id, caller, patience).await?;
        let is_running = diagnosis.status == "running";
        let status = if is_running { StatusCode::ACCEPTED } else { StatusCode::OK };
        let retry_after_seconds = is_running.then_some(ASK_AGAIN_SECONDS);
        Ok((status, Json(Requested { diagnosis, retry_after_seconds })).into_response())
    }
}

/// Requests a diagnosis of a cluster by the configured model. It is queued once
/// per cluster: while one runs, that one is answered, and so is one with an
/// answer, unless `force` is true, or context, commits or an execution are given.
///
/// # Errors
/// 400 `invalid_field`; 404 `cluster_not_found`, `execution_not_found`; 429 `rate_limited`; 503
/// `not_configured`.
#[utoipa::path(post, path = "/api/failure-clusters/{id}/diagnose", tag = "clusters", operation_id = "diagnose_cluster",
    params(("id" = i64, Path, description = "Cluster")), request_body = DiagnoseBody,
    responses(
        (status = 200, body = Requested, description = "It has ended; it may have been there before"),
        (status = 202, body = Requested, description = "It is queued or runs"),
        (status = 400, description = "`invalid_field`"),
        (status = 404, description = "`cluster_not_found`, `execution_not_found`: the execution is none of the cluster"),
        (status = 413, description = "`too_many_items`"),
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
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let wanted = read(&fields)?;
    let call = Call { state: &state, ctx: &ctx, caller: &caller, visit: &visit };
    call.diagnose(project, Subject::Cluster(id), wanted).await
}

/// Requests a diagnosis of one failed execution by the configured model. It is
/// queued once per execution, as that of a cluster; versions of both are apart.
///
/// # Errors
/// 400 `invalid_field`; 404 `execution_not_found`; 409 `not_failed`; 429
/// `rate_limited`; 503 `not_configured`.
#[utoipa::path(post, path = "/api/test-run-cases/{id}/diagnose", tag = "clusters", operation_id = "diagnose_execution",
    params(("id" = i64, Path, description = "Execution")), request_body = DiagnoseBody,
    responses(
        (status = 200, body = Requested, description = "It has ended; it may have been there before"),
        (status = 202, body = Requested, description = "It is queued or runs"),
        (status = 400, description = "`invalid_field`"),
        (status = 404, description = "`execution_not_found`"),
        (status = 409, description = "`not_failed`: there is nothing to diagnose"),
        (status = 413, description = "`too_many_items`"),
        (status = 429, description = "`rate_limited`: more than 30 requests an hour"),
        (status = 503, description = "`not_configured`: `data.setting` is missing")
    ))]
pub(crate) async fn diagnose_execution(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ExecutionId>,
    fields: Fields,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let (mut wanted, patience) = read(&fields)?;
    wanted.grounds.sample = None;
    let call = Call { state: &state, ctx: &ctx, caller: &caller, visit: &visit };
    call.diagnose(project, Subject::Execution(id), (wanted, patience)).await
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
    let diagnosis = diagnoses::latest(&ctx, project, Subject::Cluster(id), &caller).await?;
    Ok(Json(Newest { diagnosis }))
}

/// The newest version of an execution's own diagnosis, running or ended. What is
/// said of its failure cluster is found at the cluster.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/diagnosis", tag = "clusters",
    operation_id = "get_execution_diagnosis", params(("id" = i64, Path, description = "Execution")),
    responses((status = 200, body = Newest), (status = 404, description = "`execution_not_found`")))]
pub(crate) async fn newest_of_execution(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
) -> Result<Json<Newest>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let diagnosis = diagnoses::latest(&ctx, project, Subject::Execution(id), &caller).await?;
    Ok(Json(Newest { diagnosis }))
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
    let subject = Subject::Cluster(id);
    let found = diagnoses::versions(&ctx, project, subject, &caller, before, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
}

/// All versions of an execution's own diagnosis, newest first.
///
/// # Errors
/// 404 `execution_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/diagnoses", tag = "clusters",
    operation_id = "list_execution_diagnoses", params(("id" = i64, Path, description = "Execution"), PageRequest),
    responses((status = 200, body = Page<Diagnosis>), (status = 404, description = "`execution_not_found`")))]
pub(crate) async fn versions_of_execution(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(page): Query<PageRequest>,
) -> Result<Json<Page<Diagnosis>>, ApiError> {
    let cursors = CursorScope::new(RouteId::ExecutionDiagnoses, &id)?;
    let before = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let subject = Subject::Execution(id);
    let found = diagnoses::versions(&ctx, project, subject, &caller, before, page.rows()).await?;
    Ok(Json(cursors.page(found)?))
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
