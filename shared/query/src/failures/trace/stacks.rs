//! The action a test failed in, and where it was called.

use std::collections::BTreeMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::secrets::masked;
use callboard_domain::text::cut;
use callboard_domain::time::Timestamp;
use callboard_playwright::trace::{FailingAction, Frame, source_name};
use callboard_store::boxed;
use serde::Serialize;
use utoipa::ToSchema;

use super::{TraceStatus, failing_of, moment, open, rounded, warning_of};
use crate::{Context, Result};

/// Frames of a stack.
const MAX_FRAMES: usize = 50;
/// Files whose source is shown.
const MAX_SOURCES: usize = 5;
/// Largest source file, bytes.
const MAX_SOURCE_BYTES: u64 = 1 << 20;
/// Lines of source before and after a frame.
const SOURCE_LINES: usize = 12;
const MAX_LINE_CHARS: usize = 500;

/// The action that failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingStep {
    /// What the runner calls it.
    #[schema(example = "locator.click")]
    pub title: String,
    /// Last word of its API.
    #[schema(example = "click")]
    pub api: Option<String>,
    /// Locator as written in the test.
    #[schema(example = "getByRole('button', { name: 'Log in' })")]
    pub locator: Option<String>,
    /// Steps the test named around it, outermost first.
    pub steps: Vec<String>,
    /// Its error with the call log, without colours.
    pub error: Option<String>,
    /// When it began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// How long it took, ms.
    pub duration: Option<i64>,
}

impl FailingStep {
    fn from_action(failing: &FailingAction<'_>) -> Self {
        let action = failing.action;
        Self {
            title: action.title.clone(),
            api: action.api.clone(),
            locator: failing.locator().map(|locator| masked(&locator).into_owned()),
            steps: failing.steps.iter().map(|&step| step.to_owned()).collect(),
            error: (!failing.message.is_empty()).then(|| masked(failing.message).into_owned()),
            started_at: moment(action.start),
            duration: action.end.map(|end| rounded(end - action.start)),
        }
    }
}

/// A line of source.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SourceLine {
    /// Number, from 1.
    pub line: usize,
    /// Text, at most 500 characters.
    pub text: String,
}

/// A place in the sources.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackFrame {
    /// File as the runner named it.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
    /// Function; null at the top level.
    pub function: Option<String>,
    /// Lines around it, as far as the trace has them.
    pub source: Vec<SourceLine>,
}

/// Where a test failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceStacks {
    /// Whether the trace had an answer.
    pub status: TraceStatus,
    /// Format of the trace.
    pub version: Option<u32>,
    /// `newer-format` when the format is newer than any that was seen.
    pub warning: Option<&'static str>,
    /// The action that failed.
    pub action: Option<FailingStep>,
    /// Its stack, innermost first, at most 50.
    pub frames: Vec<StackFrame>,
}

impl TraceStacks {
    const fn without(status: TraceStatus) -> Self {
        Self { status, version: None, warning: None, action: None, frames: Vec::new() }
    }
}

/// Which action failed, and where it was called.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn trace_stacks(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<TraceStacks> {
    let opened = match open(ctx, project, id, attempt).await? {
        Ok(opened) => opened,
        Err(status) => return Ok(TraceStacks::without(status)),
    };
    let trace = match opened.parse(false, false).await? {
        Ok(trace) => trace,
        Err(status) => return Ok(TraceStacks::without(status)),
    };
    let Some(failing) = failing_of(&trace) else {
        let status = TraceStatus::NoData;
        return Ok(TraceStacks { version: Some(trace.version), ..TraceStacks::without(status) });
    };
    let frames: Vec<&Frame> = failing.frames().iter().take(MAX_FRAMES).collect();
    let mut sources: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for frame in &frames {
        if sources.len() == MAX_SOURCES || sources.contains_key(frame.file.as_str()) {
            continue;
        }
        let Some(name) = source_name(&opened.archive, &frame.file) else { continue };
        if let Ok(bytes) = opened.entry(&name, MAX_SOURCE_BYTES).await? {
            let text = String::from_utf8_lossy(&bytes);
            sources.insert(&frame.file, text.lines().map(str::to_owned).collect());
        }
    }
    let frames = frames
        .iter()
        .map(|frame| StackFrame {
            file: frame.file.clone(),
            line: frame.line,
            column: frame.column,
            function: (!frame.function.is_empty()).then(|| frame.function.clone()),
            source: sources
                .get(frame.file.as_str())
                .map(|lines| around(lines, frame.line))
                .unwrap_or_default(),
        })
        .collect();
    Ok(TraceStacks {
        status: TraceStatus::Ok,
        version: Some(trace.version),
        warning: warning_of(&trace),
        action: Some(FailingStep::from_action(&failing)),
        frames,
    })
}

fn around(lines: &[String], line: u32) -> Vec<SourceLine> {
    let at = usize::try_from(line).unwrap_or(usize::MAX);
    let first = at.saturating_sub(SOURCE_LINES).max(1);
    let shown = lines
        .iter()
        .enumerate()
        .skip(first - 1)
        .take_while(|(index, _)| *index < at.saturating_add(SOURCE_LINES));
    shown
        .map(|(index, text)| SourceLine {
            line: index + 1,
            text: cut(masked(text).into_owned(), MAX_LINE_CHARS),
        })
        .collect()
}
