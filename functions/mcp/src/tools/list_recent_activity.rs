//! `list_recent_activity`: the newest runs of all projects the caller sees.

use callboard_auth::routes::Roles;
use callboard_query::runs::{self, RunKey, RunQuery};
use callboard_query::shapes::RunItem;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::RunLine;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "list_recent_activity",
    title: "Recent activity",
    description: "The newest runs across all projects you can see. Start here for: what broke?",
    group: Group::Projects,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::page_size(50, 10), Parameter::cursor()],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    run: RunLine,
    project_name: String,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let after: Option<RunKey> = asked.after()?;
    let context = asked.context;
    let query = RunQuery { after, ..RunQuery::default() };
    let runs = runs::list(&context.query, context.scope(), &query, asked.page_size()).await?;
    asked.page(runs.map(Row::from))
}

impl From<RunItem> for Row {
    fn from(run: RunItem) -> Self {
        Self { project_name: run.project_name.clone(), run: run.into() }
    }
}
