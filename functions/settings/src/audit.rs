//! `GET /api/audit`: what was done by whom.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use callboard_auth::RouteId;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{Page, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::audit::{self, AuditFilters, AuditItem, AuditKey};
use callboard_query::{Context, QueryError};
use futures::stream;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use utoipa::IntoParams;

const FORMATS: [&str; 2] = ["json", "ndjson"];

callboard_query::vocabularies! {
    /// How entries are sent.
    FormatWord => FORMATS;
}

/// Rows that are read at a time while all are sent.
const STREAMED_AT_ONCE: usize = 500;

/// Which entries are asked for, and in which form.
#[derive(Debug, Serialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct Params {
    /// Only what this account did, by its id.
    #[param(value_type = Option<i64>)]
    actor: Option<UserId>,
    /// Only actions that begin so, such as `user.` or `login.failed`.
    action: Option<String>,
    /// Only in this project.
    #[param(value_type = Option<i64>)]
    project: Option<ProjectId>,
    /// Only done to this kind of thing, such as `user` or `api_key`.
    target_type: Option<String>,
    /// Only done to the thing with this id.
    target_id: Option<i64>,
    /// A date or date-time.
    #[param(value_type = Option<String>)]
    from: Option<Timestamp>,
    /// A date or date-time; a date includes that UTC day.
    #[param(value_type = Option<String>)]
    to: Option<Timestamp>,
    /// `json` (a page, the default) or `ndjson` (all of them, one on each line).
    #[serde(skip)]
    #[param(value_type = Option<FormatWord>, example = "json", inline)]
    format: Format,
}

/// How entries are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// A page.
    #[default]
    Json,
    /// All of them, one on each line.
    Ndjson,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let format = query.word("format", &FORMATS, |word| match word {
            "json" => Some(Format::Json),
            "ndjson" => Some(Format::Ndjson),
            _ => None,
        })?;
        let (from, to) = query.window()?;
        Ok(Self {
            actor: query.id("actor")?,
            action: query.text("action")?,
            project: query.id("project")?,
            target_type: query.text("targetType")?,
            target_id: query.number("targetId", 1..=i64::MAX)?,
            from,
            to,
            format: format.unwrap_or_default(),
        })
    }
}

impl From<Params> for AuditFilters {
    fn from(asked: Params) -> Self {
        Self {
            user: asked.actor,
            action: asked.action,
            project: asked.project,
            target_kind: asked.target_type,
            target_id: asked.target_id,
            from: asked.from,
            to: asked.to,
        }
    }
}

/// What was done by whom, newest first. Entries are kept for 400 days and
/// never change.
///
/// As `ndjson` all entries are sent, behind those of `cursor` when there is
/// one; `limit` does not count then.
#[utoipa::path(get, path = "/api/audit", tag = "settings", params(Params, PageRequest),
    responses((status = 200, content(
        (Page<AuditItem> = "application/json"),
        (AuditItem = "application/x-ndjson")
    ))))]
pub(crate) async fn list(
    State(state): State<AppState>,
    site: Site,
    Query(asked): Query<Params>,
    Query(page): Query<PageRequest>,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::ListAudit, &asked)?;
    let after: Option<AuditKey> = cursors.decode(page.cursor.as_deref())?;
    let ctx = state.context(&site);
    let format = asked.format;
    let filters = AuditFilters::from(asked);
    if format == Format::Json {
        let found = audit::list(&ctx, &filters, after, page.rows()).await?;
        return Ok(Json(cursors.page(found)?).into_response());
    }
    // The first rows are read here, so that a refusal is still an answer of its own.
    let first = part(&ctx, &filters, after).await?;
    let rest = stream::try_unfold(first.next, move |next| {
        let (ctx, filters) = (ctx.clone(), filters.clone());
        async move {
            let Some(after) = next else { return Ok(None) };
            let part = part(&ctx, &filters, Some(after)).await.inspect_err(|error| {
                tracing::error!(%error, "the audit log was not sent to its end");
            })?;
            Ok::<_, QueryError>(Some((part.lines, part.next)))
        }
    });
    let lines = stream::StreamExt::chain(stream::once(async { Ok(first.lines) }), rest);
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

struct Part {
    lines: Bytes,
    next: Option<AuditKey>,
}

async fn part(ctx: &Context, filters: &AuditFilters, after: Option<AuditKey>) -> Result<Part, QueryError> {
    let found = audit::list(ctx, filters, after, STREAMED_AT_ONCE).await?;
    let mut lines = Vec::new();
    for item in &found.items {
        // A Vec takes every byte, and the item is made of what JSON can write.
        if serde_json::to_writer(&mut lines, item).is_ok() {
            lines.push(b'\n');
        }
    }
    Ok(Part { lines: lines.into(), next: found.next })
}
