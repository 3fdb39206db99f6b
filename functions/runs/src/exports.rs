//! `/api/exports`: files that are made by a job, because they are larger than
//! an answer or of more than one run.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_auth::scope::Authorized;
use callboard_domain::export::{ExportFormat, ExportKind};
use callboard_domain::ids::{ClusterId, ExecutionId, ExportId, ProjectId, RunId};
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_http::conditional::tagged_json;
use callboard_http::extract::{Caller, Fields, Path, Visit};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::exports::later::{self, Export, ExportFilter, ExportRows, NewExport};
use callboard_query::{Context, clusters, executions, resolve, runs};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::export::admit;

/// Most words of a list.
const WORDS: usize = 20;

/// What is to be exported.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct ExportBody {
    /// `run`, `project`, `cluster` or `execution`.
    #[schema(example = "project")]
    kind: String,
    /// The id of that.
    id: i64,
    /// `csv` or `ndjson`; of a run also `junit` or `ctrf`.
    #[schema(example = "ndjson")]
    format: String,
    /// What is left out, and what comes along.
    filter: Option<ExportFilterBody>,
}

/// What is left out of an export, and what comes along.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct ExportFilterBody {
    /// Of a project: `executions` (the default) or `runs`.
    rows: Option<String>,
    /// Only tests of these statuses: passed (with flaky), failed, timedout, interrupted, skipped, didnotrun.
    status: Option<Vec<String>>,
    /// `attempts`, `errors` (whole instead of their first lines), `evidence`.
    include: Option<Vec<String>>,
    /// Of a project or a cluster: only runs on this branch.
    branch: Option<String>,
    /// Of a project or a cluster: only runs in this environment.
    environment: Option<String>,
    /// Of a project or a cluster: only runs that started then or later.
    #[schema(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Of a project or a cluster: only runs that started before.
    #[schema(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
}

/// An export.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExportAnswer {
    /// The export.
    export: Export,
}

/// An export was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExportWritten {
    /// Always true.
    success: bool,
    /// The export.
    export: Export,
}

fn filter(fields: &Fields) -> Result<ExportFilter, ApiError> {
    let statuses = fields.lines("status", WORDS, 40)?.into_value().unwrap_or_default();
    if let Some(unknown) = statuses.iter().find(|word| TestStatus::parse(word).is_none()) {
        let words = TestStatus::ALL.map(TestStatus::as_str).join(", ");
        return Err(ApiError::invalid_field(
            "status",
            format!("status may hold {words}, not \"{unknown}\"."),
        ));
    }
    let include = fields.lines("include", WORDS, 40)?.into_value().unwrap_or_default();
    if let Some(unknown) =
        include.iter().find(|word| !["attempts", "errors", "evidence"].contains(&word.as_str()))
    {
        let message = format!("include may hold attempts, errors, evidence, not \"{unknown}\".");
        return Err(ApiError::invalid_field("include", message));
    }
    let rows = fields.word("rows", &["runs", "executions"], |word| match word {
        "runs" => Some(ExportRows::Runs),
        "executions" => Some(ExportRows::Executions),
        _ => None,
    })?;
    let (from, to) = (fields.moment("from")?.into_value(), fields.moment("to")?.into_value());
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(ApiError::invalid_field("from", "from must not be later than to."));
    }
    let includes = |word: &str| include.iter().any(|included| included == word);
    Ok(ExportFilter {
        rows: rows.unwrap_or_default(),
        branch: fields.line("branch", 500)?.into_value(),
        environment: fields.line("environment", 100)?.into_value(),
        from: from.map(Timestamp::millis),
        before: to.map(Timestamp::millis),
        attempts: includes("attempts"),
        errors: includes("errors"),
        evidence: includes("evidence"),
        statuses,
    })
}

fn read(state: &AppState, fields: &Fields) -> Result<NewExport, ApiError> {
    fields.require(&["kind", "id", "format"])?;
    let missing = |name: &'static str| move || ApiError::missing_fields(&[name]);
    let kind = fields.word("kind", ExportKind::WORDS, ExportKind::parse)?.ok_or_else(missing("kind"))?;
    let format =
        fields.word("format", ExportFormat::WORDS, ExportFormat::parse)?.ok_or_else(missing("format"))?;
    if kind != ExportKind::Run && !format.is_rows() {
        return Err(ApiError::invalid_field("format", "Only a run has this format; use csv or ndjson."));
    }
    let filter = match fields.object("filter")?.into_value() {
        Some(fields) => filter(&fields)?,
        None => ExportFilter::default(),
    };
    let target = fields.json("id").and_then(Value::as_i64).filter(|id| *id > 0);
    let target =
        target.ok_or_else(|| ApiError::invalid_field("id", "id must be a positive whole number."))?;
    let origin = state.config().site_url.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(NewExport { kind, target, format, filter, origin })
}

/// The project of what is exported, when it is there and in reach.
async fn resolve(ctx: &Context, caller: &Caller, new: &NewExport) -> Result<Authorized<ProjectId>, ApiError> {
    let (scope, id) = (caller.scope(), new.target);
    Ok(match new.kind {
        ExportKind::Project => resolve::project(ctx, scope, ProjectId(id)).await?,
        ExportKind::Run => {
            let project = resolve::run(ctx, scope, RunId(id)).await?;
            runs::get(ctx, project, RunId(id)).await?;
            project
        }
        ExportKind::Cluster => {
            let project = resolve::cluster(ctx, scope, ClusterId(id)).await?;
            clusters::named(ctx, scope, project, ClusterId(id)).await?;
            project
        }
        ExportKind::Execution => {
            let project = resolve::execution(ctx, scope, ExecutionId(id)).await?;
            executions::require(ctx, project, ExecutionId(id)).await?;
            project
        }
    })
}

/// Has a file made: of a run, of the runs or executions of a project, of a
/// failure cluster, or of one execution. Ask for the export again until it is
/// `ready`; the file is kept for a day.
///
/// # Errors
/// 400 `missing_field`, `invalid_field`; 404 for what is exported; 429
/// `rate_limited` after thirty exports in a minute.
#[utoipa::path(post, path = "/api/exports", tag = "runs", operation_id = "create_export",
    request_body = ExportBody,
    responses(
        (status = 201, body = ExportWritten),
        (status = 400, description = "`missing_field`, `invalid_field`"),
        (status = 404, description = "`run_not_found`, `project_not_found`, `cluster_not_found`, `execution_not_found`")
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    fields: Fields,
) -> Result<Response, ApiError> {
    let new = read(&state, &fields)?;
    let ctx = state.context(&site);
    admit(&state, &caller).await?;
    let project = resolve(&ctx, &caller, &new).await?;
    let export = later::create(&ctx, visit.acting(&caller, state.now()), project, new).await?;
    Ok((StatusCode::CREATED, Json(ExportWritten { success: true, export })).into_response())
}

/// A file that was asked for: how far it is, and where it can be fetched.
///
/// # Errors
/// 404 `export_not_found`, also when its time is over; 403
/// `project_access_denied`.
#[utoipa::path(get, path = "/api/exports/{id}", tag = "runs", operation_id = "get_export",
    params(("id" = i64, Path, description = "Export")),
    responses(
        (status = 200, body = ExportAnswer),
        (status = 304, description = "The client has this state"),
        (status = 404, description = "`export_not_found`")
    ))]
pub(crate) async fn get(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ExportId>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::export(&ctx, caller.scope(), id).await?;
    tagged_json(&headers, &ExportAnswer { export: later::get(&ctx, project, id, state.now()).await? })
}
