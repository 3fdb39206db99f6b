//! `get_repo_commits`: commits of a project's repository. The repository is the
//! one an administrator configured, never one that submitted results name.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Asked, Group, Hints, Tool};

pub(super) static TOOL: Tool = Tool {
    name: "get_repo_commits",
    title: "List commits",
    description: "Newest commits of the project's repository, from the source control an administrator configured.",
    group: Group::Scm,
    roles: Roles::ALL,
    hints: Hints::READ_ELSEWHERE,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::branch(),
        Parameter::count("limit", 1, 100, 20),
    ],
    sections: Sections::NONE,
    result: outputs::nothing_yet,
    call: |asked| Box::pin(list(asked)),
};

async fn list(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let project_id: ProjectId = asked.argument("projectId")?;
    asked.context.project(project_id).await?;
    Err(asked.context.no_source_control(project_id))
}
