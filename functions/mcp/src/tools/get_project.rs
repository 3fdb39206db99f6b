//! `get_project`: one project and its runs.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_query::projects;
use callboard_query::runs::{self, RunKey, RunQuery};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::parameter::Parameter;
use crate::shapes::RunLine;
use crate::tool::{Asked, Group, Hints, Tool, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_project",
    title: "Get project",
    description: "One project: description, default branch, and its runs, newest first.",
    group: Group::Projects,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    page_size: usize,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    project_id: i64,
    id: i64,
    name: String,
    description: Option<String>,
    default_branch: Option<String>,
    url: String,
    runs: Vec<RunLine>,
    next_cursor: Option<String>,
}

async fn get(asked: Asked<'_>) -> Result<Value, ToolError> {
    let input: Input = asked.input()?;
    let pages = asked.pages();
    let after: Option<RunKey> = pages.after(input.cursor.as_deref())?;
    let context = asked.context;
    let access = context.project(input.project_id).await?;
    let project = projects::get(&context.query, access).await?;
    let query = RunQuery { projects: vec![input.project_id], after, ..RunQuery::default() };
    let runs = runs::list(&context.query, context.scope(), &query, input.page_size).await?;
    let (runs, next_cursor) = pages.split(runs.map(RunLine::from))?;
    answer(&Output {
        project_id: project.reference.id,
        id: project.reference.id,
        name: project.reference.name,
        description: project.description,
        default_branch: project.default_branch,
        url: project.url,
        runs,
        next_cursor,
    })
}
