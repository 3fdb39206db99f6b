//! `GET /api/failure-clusters/{id}/context` and `GET /api/test-run-cases/{id}/diagnosis-context`: the evidence of a
//! cluster or an execution as one text, as the model gets it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId};
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::diagnoses::{self, Coverage, EvidenceContext, Grounds, PackedSection};
use callboard_query::{Context, resolve};
use http::header::CONTENT_TYPE;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

const DEFAULT_CHARS: i64 = 24_000;
pub(crate) const MAX_SHAS: usize = 10;

/// The form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Prompt,
}

/// What the text is to hold.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct ContextParams {
    /// `json`, or `prompt` for a plain text with instructions, to be given to any assistant.
    #[param(value_type = Option<String>, example = "json")]
    format: Option<Format>,
    /// The commit that changes count from.
    base_commit: Option<String>,
    /// Commits to say something about, repeatable, at most 10.
    #[param(required = false)]
    selected_commit_shas: Vec<String>,
    /// Most characters of the evidence; 2,000 to 100,000.
    #[param(minimum = 2_000, maximum = 100_000, example = 24_000)]
    max_chars: Option<i64>,
}

/// Whether a text is the hash of a commit, or its beginning.
pub(crate) fn is_commit(sha: &str) -> bool {
    (7..=64).contains(&sha.len()) && sha.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn commit(name: &str, sha: &str) -> Result<String, ApiError> {
    let wrong = || ApiError::invalid_query(name, format!("{name} must have 7 to 64 hexadecimal digits."));
    if is_commit(sha) { Ok(sha.to_ascii_lowercase()) } else { Err(wrong()) }
}

impl FromQuery for ContextParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let shas = query.repeated("selectedCommitShas");
        if shas.len() > MAX_SHAS {
            let message = format!("selectedCommitShas may be given at most {MAX_SHAS} times.");
            return Err(ApiError::invalid_query("selectedCommitShas", message));
        }
        let base = query.exact("baseCommit")?;
        Ok(Self {
            format: query.one_of("format", &[("json", Format::Json), ("prompt", Format::Prompt)])?,
            base_commit: base.map(|sha| commit("baseCommit", &sha)).transpose()?,
            selected_commit_shas: shas
                .iter()
                .map(|sha| commit("selectedCommitShas", sha))
                .collect::<Result<_, _>>()?,
            max_chars: query.number("maxChars", 2_000..=100_000)?,
        })
    }
}

/// Evidence as one text.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextAnswer {
    /// The text. Everything between its fences comes from the code under test.
    text: String,
    /// Its sections, the most telling first.
    sections: Vec<PackedSection>,
    /// What it rests on.
    coverage: Coverage,
    /// Estimated tokens.
    token_estimate: usize,
}

/// The evidence of a failure cluster as one text, within a number of characters:
/// what a model is sent, with secrets masked. Only what is stored is read.
///
/// # Errors
/// 400 `invalid_query`; 404 `cluster_not_found`.
#[utoipa::path(get, path = "/api/failure-clusters/{id}/context", tag = "clusters", operation_id = "get_cluster_context",
    params(("id" = i64, Path, description = "Cluster"), ContextParams),
    responses(
        (status = 200, content((ContextAnswer = "application/json"), (String = "text/plain"))),
        (status = 400, description = "`invalid_query`"),
        (status = 404, description = "`cluster_not_found`")
    ))]
pub(crate) async fn context(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ClusterId>,
    Query(params): Query<ContextParams>,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::cluster(&ctx, caller.scope(), id).await?;
    let found = diagnoses::cluster_context(&ctx, project, id, &params.grounds()).await?;
    answer(&ctx, project, found.evidence, &params).await
}

/// The evidence of one failed execution as one text, within a number of characters:
/// what a model is sent, with secrets masked. Only what is stored is read.
///
/// # Errors
/// 400 `invalid_query`; 404 `execution_not_found`.
#[utoipa::path(get, path = "/api/test-run-cases/{id}/diagnosis-context", tag = "clusters",
    operation_id = "get_execution_diagnosis_context",
    params(("id" = i64, Path, description = "Execution"), ContextParams),
    responses(
        (status = 200, content((ContextAnswer = "application/json"), (String = "text/plain"))),
        (status = 400, description = "`invalid_query`"),
        (status = 404, description = "`execution_not_found`")
    ))]
pub(crate) async fn of_execution(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExecutionId>,
    Query(params): Query<ContextParams>,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::execution(&ctx, caller.scope(), id).await?;
    let found = diagnoses::execution_context(&ctx, project, id, &params.grounds()).await?;
    answer(&ctx, project, found, &params).await
}

impl ContextParams {
    fn grounds(&self) -> Grounds {
        let (base_commit, commits) = (self.base_commit.clone(), self.selected_commit_shas.clone());
        Grounds { sample: None, base_commit, commits }
    }
}

async fn answer(
    ctx: &Context,
    project: Authorized<ProjectId>,
    found: EvidenceContext,
    params: &ContextParams,
) -> Result<Response, ApiError> {
    let max = usize::try_from(params.max_chars.unwrap_or(DEFAULT_CHARS)).unwrap_or_default();
    let packed = found.packed(max)?;
    if params.format == Some(Format::Prompt) {
        let text = diagnoses::prompt(ctx, project, &packed).await?;
        return Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response());
    }
    Ok(Json(ContextAnswer {
        text: packed.text,
        sections: packed.sections,
        coverage: found.coverage,
        token_estimate: packed.token_estimate,
    })
    .into_response())
}
