//! `list_case_traces`: where the traces of an execution can be fetched.
//! Trace bytes are never part of a result.

use callboard_auth::routes::Roles;
use callboard_domain::ids::{ExecutionId, FileId};
use callboard_query::{executions, files};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::Page;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// How long a download address works.
const LIFETIME_SECONDS: i64 = 900;

pub(super) static TOOL: Tool = Tool {
    name: "list_case_traces",
    title: "List traces",
    description: "Playwright traces of one execution: a download URL that works without headers for 15 minutes, \
                  the command that opens it, and a page on which a person looks at it for as long.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("executionId", "get_run or list_failed_cases").also(&["id"])],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    file_id: i64,
    name: String,
    attempt: i64,
    size: i64,
    download_url: String,
    expires_in_seconds: i64,
    auth_required: bool,
    command: String,
    viewer_url: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let execution_id: ExecutionId = asked.argument("executionId")?;
    let context = asked.context;
    let project = context.execution(execution_id).await?;
    let traces = executions::traces(&context.query, project, execution_id).await?;
    let sandbox = context.state.sandbox();
    let grants = context.state.grants().await.map_err(ToolError::fault)?;
    let mut items = Vec::with_capacity(traces.len());
    for trace in traces {
        let file = trace.file;
        let served = files::by_id(&context.query, context.scope(), FileId(file.id)).await?;
        let grant = grants
            .seal(
                project,
                &served.grant_target,
                context.link_holder(),
                &sandbox.audience(&context.site),
                context.state.now(),
                LIFETIME_SECONDS * 1000,
            )
            .map_err(ToolError::fault)?;
        let download_url = sandbox.file_url(&context.site, &grant, &served.granted_path);
        items.push(Row {
            file_id: file.id,
            name: file.name,
            attempt: file.attempt.retry,
            size: file.size,
            command: format!("npx playwright show-trace \"{download_url}\""),
            viewer_url: context.state.viewer_url(&context.site, &download_url),
            download_url,
            expires_in_seconds: LIFETIME_SECONDS,
            auth_required: false,
        });
    }
    answer(&Page { items, next_cursor: None })
}
