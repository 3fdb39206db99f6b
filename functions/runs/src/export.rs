//! `GET /api/test-runs/{id}/export`: the tests of a run as a file, read and
//! sent in pages, so that its size does not matter.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use callboard_auth::limits::EXPORT;
use callboard_domain::export::ExportFormat;
use callboard_domain::ids::RunId;
use callboard_domain::status::TestStatus;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_platform::config::Platform;
use callboard_query::exports::{ExportHead, ExportWish, Part, RunFile};
use callboard_query::shapes::words::TestStatusWord;
use callboard_query::{QueryError, resolve};
use futures::stream;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa::IntoParams;

const INCLUDED: [&str; 3] = ["attempts", "errors", "evidence"];

callboard_query::vocabularies! {
    /// What comes along.
    IncludedWord => INCLUDED;
    /// The form of a file.
    FormatWord => ExportFormat::WORDS;
}

/// The form of the file, and what is in it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `junit` (XML), `ctrf` (JSON, Common Test Report Format), `csv`, or `ndjson` (one JSON object on each line).
    #[param(value_type = FormatWord, example = "junit", inline)]
    format: ExportFormat,
    /// Comma list or repeated: passed (with flaky), failed, timedout, interrupted, skipped, didnotrun.
    #[param(required = false, value_type = Vec<TestStatusWord>, example = json!(["failed", "timedout"]), inline)]
    status: Vec<TestStatus>,
    /// Comma list or repeated: `attempts`, `errors` (whole instead of their first lines), `evidence` (steps, console,
    /// network and the rest; in `csv` and `ndjson`).
    #[param(required = false, value_type = Vec<IncludedWord>, example = json!(["errors"]), inline)]
    include: Vec<Included>,
}

/// What comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Included {
    /// Every attempt.
    Attempts,
    /// Whole errors.
    Errors,
    /// Everything captured.
    Evidence,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let format = query.word("format", ExportFormat::WORDS, ExportFormat::parse)?;
        let format = format.ok_or_else(|| {
            let words = ExportFormat::WORDS.join(", ");
            ApiError::invalid_query("format", format!("format must be one of {words}."))
        })?;
        let include = query.words("include", &INCLUDED, |word| match word {
            "attempts" => Some(Included::Attempts),
            "errors" => Some(Included::Errors),
            "evidence" => Some(Included::Evidence),
            _ => None,
        })?;
        let status = query.words("status", &TestStatus::ALL.map(TestStatus::as_str), TestStatus::parse)?;
        Ok(Self { format, status, include })
    }
}

/// The tests of a run as a file: one entry for each test, attempts never count
/// as tests. In a table, cells that a spreadsheet would take for a formula
/// begin with an apostrophe.
///
/// # Errors
/// 404 `run_not_found`, 403 `project_access_denied`; 409 `export_too_large`
/// where answers are limited; 429 `rate_limited` after thirty exports in a
/// minute.
#[utoipa::path(get, path = "/api/test-runs/{id}/export", tag = "runs",
    params(("id" = i64, Path, description = "Run"), Params),
    responses((status = 200, content(
        (String = "application/xml"),
        (Object = "application/json"),
        (String = "text/csv"),
        (Object = "application/x-ndjson")
    )), (status = 409, description = "`export_too_large`: `POST /api/exports` makes it as a file")))]
pub(crate) async fn export(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    admit(&state, &caller).await?;
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    let Params { format, status, include } = asked;
    let wish = ExportWish {
        statuses: status,
        attempts: include.contains(&Included::Attempts),
        errors: include.contains(&Included::Errors),
        evidence: include.contains(&Included::Evidence) && format.is_rows(),
    };
    let file = RunFile { ctx, project, run: id, format, wish };
    let head = file.head().await?;
    // The first part is read here, so that a refusal is still an answer of its own.
    let first = file.part(&head, None).await?;
    let headers = [
        (CONTENT_TYPE, format.content_type().to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", file.name())),
    ];
    let config = state.config();
    let body = if config.platform == Platform::Lambda {
        let most = config.max_export_bytes.min(config.max_answer_bytes().unwrap_or(u64::MAX));
        Body::from(whole(&file, &head, first, most).await?)
    } else {
        streamed(file, head, first)
    };
    Ok((headers, body).into_response())
}

/// Counts an export of the caller.
pub(crate) async fn admit(state: &AppState, caller: &Caller) -> Result<(), ApiError> {
    if state.auth_enabled() {
        let subject = caller.user_id().map_or_else(|| caller.credential(), |user| user.to_string());
        state.limits().await?.check(EXPORT, subject.as_bytes(), state.now()).await?;
    }
    Ok(())
}

/// The file as it is read.
fn streamed(file: RunFile, head: ExportHead, first: Part) -> Body {
    let rest = stream::try_unfold((file, head, first.next), |(file, head, next)| async move {
        let Some(after) = next else { return Ok(None) };
        let part = file.part(&head, Some(after)).await.inspect_err(|error| {
            tracing::error!(%error, run = %file.run, "an export was not sent to its end");
        })?;
        Ok::<_, QueryError>(Some((Bytes::from(part.bytes), (file, head, part.next))))
    });
    Body::from_stream(stream::StreamExt::chain(stream::once(async { Ok(Bytes::from(first.bytes)) }), rest))
}

/// The whole file, where an answer cannot be sent as it is read.
async fn whole(file: &RunFile, head: &ExportHead, first: Part, most: u64) -> Result<Bytes, ApiError> {
    let Part { mut bytes, mut next } = first;
    loop {
        if bytes.len() as u64 > most {
            let message = format!(
                "One answer carries at most {most} bytes of an export here; have the file made with POST /api/exports."
            );
            return Err(ApiError::new(StatusCode::CONFLICT, "export_too_large", message));
        }
        let Some(after) = next else { return Ok(bytes.into()) };
        let part = file.part(head, Some(after)).await?;
        bytes.push_str(&part.bytes);
        next = part.next;
    }
}
