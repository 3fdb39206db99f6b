//! `list_tags`: the words projects are grouped by.

use callboard_auth::routes::Roles;
use callboard_query::shapes::Tag;
use callboard_query::tags::{self, TagKey};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

/// Tags of one answer. Hardly any installation has more, so that there are
/// further ones is told by a cursor, and not in the list of tools.
const MOST: usize = 200;

pub(super) static TOOL: Tool = Tool {
    name: "list_tags",
    title: "List tags",
    description: "Tags that group projects, alphabetical. They belong to the whole installation and name no project.",
    group: Group::Projects,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::cursor().unadvertised()],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    tag_id: i64,
    text: String,
    color: &'static str,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let after: Option<TagKey> = asked.after()?;
    let found = tags::list(&asked.context.query, None, after, MOST).await?;
    asked.page(found.map(|Tag { id, text, color, .. }| Row { tag_id: id, text, color }))
}
