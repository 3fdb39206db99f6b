//! `get_case_screenshots`: what a page looked like. Images are decoded, scaled
//! and encoded anew; what cannot be is left out, with its reason.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ExecutionId;
use callboard_query::failures;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::images::{self, MAX_IMAGES, MAX_SOURCE_BYTES};
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::Page;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_case_screenshots",
    title: "Get screenshots",
    description: "Screenshots of one execution, the newest first, at most 3. Only names and addresses; with \
                  content=true the images follow, scaled down.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("executionId", "get_run or list_failed_cases").also(&["id"]),
        Parameter::flag("content"),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    execution_id: ExecutionId,
    #[serde(default)]
    content: Option<bool>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    file_id: i64,
    name: String,
    attempt: i64,
    media_type: String,
    width: Option<i32>,
    height: Option<i32>,
    size: i64,
    url: String,
    omitted: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let Input { execution_id, content } = asked.input()?;
    let context = asked.context;
    let project = context.execution(execution_id).await?;
    let files = failures::screenshots(&context.query, project, execution_id, MAX_IMAGES).await?;
    let mut items = Vec::with_capacity(files.len());
    let mut shown = Vec::new();
    for file in files {
        let mut omitted = None;
        if content == Some(true) {
            // Before the file is read: those that wait hold none.
            let turn = images::turn().await;
            match failures::screenshot_bytes(&context.query, project, file.id, MAX_SOURCE_BYTES).await {
                Ok(None) => omitted = Some(images::ImageError::TooLarge.to_string()),
                Ok(Some(bytes)) => match images::fitted(bytes, turn).await {
                    Ok(image) => shown.push(image),
                    Err(error) => omitted = Some(error.to_string()),
                },
                // One that is lost takes no other with it.
                Err(error) => {
                    tracing::warn!(%error, file = file.id, "a screenshot could not be read");
                    omitted = Some("its file cannot be read".to_owned());
                }
            }
        }
        items.push(Row {
            file_id: file.id,
            name: file.name,
            attempt: file.attempt.retry,
            media_type: file.content_type,
            width: file.width,
            height: file.height,
            size: file.size,
            url: file.url,
            omitted,
        });
    }
    Ok(answer(&Page { items, next_cursor: None })?.with_images(shown))
}
