//! `GET /api/test-runs/{id}/export`: the tests of a run as a file, read and
//! sent in pages, so that its size does not matter.

mod csv;
mod ctrf;
mod junit;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use callboard_auth::limits::EXPORT;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::TestStatus;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::exports::{self, ExportHead, ExportWish, ExportedTest};
use callboard_query::{Context, QueryError, resolve};
use futures::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa::IntoParams;

/// The form of the file, and what is in it.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// `junit` (XML), `ctrf` (JSON, Common Test Report Format), `csv`, or `ndjson` (one JSON object on each line).
    #[param(value_type = String, example = "junit")]
    format: Format,
    /// Comma list or repeated: passed (with flaky), failed, timedout, interrupted, skipped, didnotrun.
    #[param(required = false, value_type = Vec<String>, example = json!(["failed", "timedout"]))]
    status: Vec<TestStatus>,
    /// Comma list or repeated: `attempts`, `errors` (whole instead of their first lines), `evidence` (steps, console,
    /// network and the rest; in `csv` and `ndjson`).
    #[param(required = false, value_type = Vec<String>, example = json!(["errors"]))]
    include: Vec<Included>,
}

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JUnit XML.
    Junit,
    /// Common Test Report Format.
    Ctrf,
    /// A table.
    Csv,
    /// One JSON object on each line.
    Ndjson,
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

impl Format {
    const WORDS: [&'static str; 4] = ["junit", "ctrf", "csv", "ndjson"];

    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "junit" => Self::Junit,
            "ctrf" => Self::Ctrf,
            "csv" => Self::Csv,
            "ndjson" => Self::Ndjson,
            _ => return None,
        })
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Junit => "xml",
            Self::Ctrf => "json",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Junit => "application/xml",
            Self::Ctrf => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    fn head(self, head: &ExportHead, wish: &ExportWish) -> String {
        match self {
            Self::Junit => junit::head(head),
            Self::Ctrf => ctrf::head(head),
            Self::Csv => csv::head(wish),
            Self::Ndjson => String::new(),
        }
    }

    fn test(self, test: &ExportedTest, is_first: bool, wish: &ExportWish) -> String {
        match self {
            Self::Junit => junit::test(test),
            Self::Ctrf => ctrf::test(test, is_first),
            Self::Csv => csv::row(test, wish),
            Self::Ndjson => serde_json::to_string(test).map(|line| line + "\n").unwrap_or_default(),
        }
    }

    fn tail(self, head: &ExportHead) -> String {
        match self {
            Self::Junit => junit::TAIL.to_owned(),
            Self::Ctrf => ctrf::tail(head),
            Self::Csv | Self::Ndjson => String::new(),
        }
    }
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let format = query.word("format", &Format::WORDS, Format::parse)?;
        let format = format.ok_or_else(|| {
            ApiError::invalid_query("format", format!("format must be one of {}.", Format::WORDS.join(", ")))
        })?;
        let include = query.words("include", &["attempts", "errors", "evidence"], |word| match word {
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
/// 404 `run_not_found`, 403 `project_access_denied`, 429 `rate_limited` after
/// thirty exports in a minute.
#[utoipa::path(get, path = "/api/test-runs/{id}/export", tag = "runs",
    params(("id" = i64, Path, description = "Run"), Asked),
    responses((status = 200, content(
        (String = "application/xml"),
        (Object = "application/json"),
        (String = "text/csv"),
        (Object = "application/x-ndjson")
    ))))]
pub(crate) async fn export(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    if state.auth_enabled() {
        let subject = caller.user_id().map_or_else(|| caller.credential(), |user| user.to_string());
        state.limits().await?.check(EXPORT, subject.as_bytes(), state.now()).await?;
    }
    let Asked { format, status, include } = asked;
    let wish = ExportWish {
        statuses: status,
        attempts: include.contains(&Included::Attempts),
        errors: include.contains(&Included::Errors),
        evidence: include.contains(&Included::Evidence) && matches!(format, Format::Csv | Format::Ndjson),
    };
    let file = Exported { ctx, project, run: id, format, wish };
    let head = exports::head(&file.ctx, project, id, &file.wish).await?;
    // The first part is read here, so that a refusal is still an answer of its own.
    let first = file.part(&head, None).await?;
    let rest = stream::try_unfold((file, head, first.next), |(file, head, next)| async move {
        let Some(after) = next else { return Ok(None) };
        let part = file.part(&head, Some(after)).await.inspect_err(|error| {
            tracing::error!(%error, run = %file.run, "an export was not sent to its end");
        })?;
        Ok::<_, QueryError>(Some((part.bytes, (file, head, part.next))))
    });
    let parts = stream::StreamExt::chain(stream::once(async { Ok(first.bytes) }), rest);
    let name = format!("attachment; filename=\"callboard-run-{id}.{}\"", format.extension());
    let headers = [(CONTENT_TYPE, format.content_type().to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(parts)).into_response())
}

struct Exported {
    ctx: Context,
    project: Authorized<ProjectId>,
    run: RunId,
    format: Format,
    wish: ExportWish,
}

struct Part {
    bytes: Bytes,
    next: Option<i64>,
}

impl Exported {
    /// A page of the file: its beginning on the first, its end on the last.
    async fn part(&self, head: &ExportHead, after: Option<i64>) -> Result<Part, QueryError> {
        let page = exports::page(&self.ctx, self.project, self.run, &self.wish, after).await?;
        let mut text = if after.is_none() { self.format.head(head, &self.wish) } else { String::new() };
        for (at, test) in page.items.iter().enumerate() {
            text.push_str(&self.format.test(test, after.is_none() && at == 0, &self.wish));
        }
        if page.next.is_none() {
            text.push_str(&self.format.tail(head));
        }
        Ok(Part { bytes: text.into(), next: page.next })
    }
}
