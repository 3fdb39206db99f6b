//! `get_repo_diff`: what a commit changed. What is no commit is refused before
//! anything is asked elsewhere.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Asked, Group, Hints, Tool};

pub(super) static TOOL: Tool = Tool {
    name: "get_repo_diff",
    title: "Get commit diff",
    description: "Files a commit changed, with their patches; file narrows it to one with its whole patch.",
    group: Group::Scm,
    roles: Roles::ALL,
    hints: Hints::READ_ELSEWHERE,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::commit("sha").also(&["commit"]).required(),
        Parameter::text("file"),
    ],
    sections: Sections::NONE,
    result: outputs::nothing_yet,
    call: |asked| Box::pin(get(asked)),
};

async fn get(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let project_id: ProjectId = asked.argument("projectId")?;
    asked.context.project(project_id).await?;
    Err(asked.context.no_source_control(project_id))
}
