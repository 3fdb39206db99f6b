//! The page a test failed on, as its trace has it.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::secrets::masked;
use callboard_playwright::healing::aria;
use callboard_playwright::trace::dom::Document;
use callboard_playwright::trace::{ParseError, Trace};
use callboard_store::StoreError;
use callboard_store::boxed;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Opened, TraceStatus, failing_of, open, open_of, told};
use crate::failures::subject::Subject;
use crate::{Context, Result};

/// Largest accessibility snapshot, bytes.
const MAX_ARIA_BYTES: u64 = 1 << 20;

/// How a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dom {
    /// As HTML.
    #[default]
    Dom,
    /// As the accessibility tree.
    Aria,
}

impl Dom {
    /// The words of the parameter.
    pub const WORDS: &'static [&'static str] = &["dom", "aria"];

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "dom" => Some(Self::Dom),
            "aria" => Some(Self::Aria),
            _ => None,
        }
    }
}

/// The page a test failed on.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomSnapshot {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// How the page is shown.
    pub source: Dom,
    /// Address of the page, secrets masked.
    pub url: Option<String>,
    /// The page without scripts, handlers and secrets, at most 1,500,000
    /// characters. Show it in a sandbox.
    pub html: Option<String>,
    /// The accessibility tree.
    pub aria: Option<String>,
}

/// The page a test failed on, as its trace has it.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn dom_snapshot(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
    source: Dom,
) -> Result<DomSnapshot> {
    let without = |status| DomSnapshot { status, source, url: None, html: None, aria: None };
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) if source == Dom::Aria => {
            let aria = Subject::read(ctx, project, id).await?.evidence.aria_snapshot;
            return Ok(aria.map_or_else(
                || without(status),
                |aria| DomSnapshot { aria: Some(aria), ..without(TraceStatus::Ok) },
            ));
        }
        Err(status) => return Ok(without(status)),
    };
    let trace = match opened.parse(false, source == Dom::Dom).await? {
        Ok(trace) => trace,
        Err(status) => return Ok(without(status)),
    };
    if source == Dom::Aria {
        let aria = match aria_of(&opened, &trace).await? {
            Some(aria) => Some(aria),
            None => Subject::read(ctx, project, id).await?.evidence.aria_snapshot,
        };
        let status = if aria.is_some() { TraceStatus::Ok } else { TraceStatus::NoData };
        return Ok(DomSnapshot { aria: aria.map(|aria| masked(&aria).into_owned()), ..without(status) });
    }
    let written = tokio::task::spawn_blocking(move || {
        let document = trace.document(failing_of(&trace).map(|failing| failing.action))?;
        Ok::<_, ParseError>(document.map(|document| (document.html(), document.url)))
    });
    let written = written.await.map_err(|_| StoreError::Damaged("a trace that cannot be read"))?;
    Ok(match told(written.map_err(ParseError::widen))? {
        Ok(Some((html, url))) => DomSnapshot { url: Some(url), html: Some(html), ..without(TraceStatus::Ok) },
        Ok(None) => without(TraceStatus::NoData),
        Err(status) => without(status),
    })
}

/// The accessibility tree a trace holds: its own event, else what the runner
/// wrote about the error.
async fn aria_of(opened: &Opened, trace: &Trace) -> Result<Option<String>> {
    if let Some(aria) = &trace.aria {
        return Ok(Some(aria.clone()));
    }
    let Some(entry) = trace.error_context() else { return Ok(None) };
    let Ok(bytes) = opened.entry(entry, MAX_ARIA_BYTES).await? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    Ok(aria::of_error_context(&text).map(str::to_owned))
}

/// The document of the page a test failed on, with the attribute that holds
/// test ids; nothing when the trace cannot tell.
pub(in crate::failures) async fn failing_document(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: &Subject,
) -> Result<Option<(Document, String)>> {
    let Ok(opened) = open_of(ctx, project, subject).await? else { return Ok(None) };
    let Ok(trace) = opened.parse(false, true).await? else { return Ok(None) };
    let found = tokio::task::spawn_blocking(move || {
        let document = trace.document(failing_of(&trace).map(|failing| failing.action));
        document.ok().flatten().map(|document| (document, trace.test_id_attribute.clone()))
    });
    Ok(found.await.map_err(|_| StoreError::Damaged("a trace that cannot be read"))?)
}

/// The accessibility tree of the page a test failed on, from its trace.
pub(in crate::failures) async fn failing_aria(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: &Subject,
) -> Result<Option<String>> {
    let Ok(opened) = open_of(ctx, project, subject).await? else { return Ok(None) };
    let Ok(trace) = opened.parse(false, false).await? else { return Ok(None) };
    aria_of(&opened, &trace).await
}
