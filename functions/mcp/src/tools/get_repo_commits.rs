//! `get_repo_commits`: commits of a project's repository. The repository is the
//! one an administrator configured, never one that submitted results name.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_query::scm::{self, CommitsParams, PageToken, RepositoryCommit, is_branch, is_sha};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::arguments::ArgumentError;
use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

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
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    branch: Option<String>,
    limit: u32,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    items: Vec<RepositoryCommit>,
    next_cursor: Option<String>,
    repository: String,
    branch: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let Input { project_id, branch, limit } = asked.input()?;
    if branch.as_deref().is_some_and(|name| !is_branch(name)) {
        return Err(ToolError::Refused("`branch` must be a name that git allows for a branch.".to_owned()));
    }
    let after: Option<PageToken> = asked.after()?;
    if after.as_ref().is_some_and(|token| !is_sha(&token.head)) {
        return Err(ArgumentError::Cursor.into());
    }
    let context = asked.context;
    let project = context.project(project_id).await?;
    let (access, now) = (context.state.source_control(), context.state.now());
    let params = CommitsParams { branch, base: None, limit, after };
    let found = scm::commits(&context.query, &access, project, params, now).await;
    let found = found.map_err(|error| context.no_source_control(project_id, error))?;
    let (items, next_cursor) = asked.split(found.commits)?;
    answer(&Output { items, next_cursor, repository: found.repository, branch: found.branch })
}
