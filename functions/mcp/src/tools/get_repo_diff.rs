//! `get_repo_diff`: what a commit changed. What is no commit is refused before
//! anything is asked elsewhere.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_query::scm::{self, DiffFile, DiffParams, RepositoryCommit};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Characters of a patch, and of the patch of a file that is asked for by itself.
const PATCH_CHARS: usize = 4_000;
const PATCH_CHARS_OF_ONE: usize = 30_000;
/// Bytes of the files of a page, below what a result may have.
const PAGE_BYTES: usize = 36_000;

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
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    sha: String,
    file: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    commit: RepositoryCommit,
    items: Vec<DiffFile>,
    patches_omitted: usize,
    files_cut: bool,
    next_cursor: Option<String>,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let Input { project_id, sha, file } = asked.input()?;
    let after: Option<usize> = asked.after()?;
    let context = asked.context;
    let project = context.project(project_id).await?;
    let (access, now) = (context.state.source_control(), context.state.now());
    let patch_chars = if file.is_some() { PATCH_CHARS_OF_ONE } else { PATCH_CHARS };
    let params = DiffParams { sha, file, after, patch_chars, page_bytes: PAGE_BYTES };
    let found = scm::commit_diff(&context.query, &access, project, &params, now).await;
    let found = found.map_err(|error| context.no_source_control(project_id, error))?;
    let (items, next_cursor) = asked.split(found.files)?;
    answer(&Output {
        commit: found.commit,
        items,
        patches_omitted: found.patches_omitted,
        files_cut: found.is_cut,
        next_cursor,
    })
}
