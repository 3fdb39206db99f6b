//! `get_project`: one project and its runs.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_query::projects;
use callboard_query::runs::{self, RunKey, RunQuery};
use callboard_query::scm;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::RunLine;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

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
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    project_id: i64,
    id: i64,
    name: String,
    label: Option<String>,
    description: Option<String>,
    default_branch: Option<String>,
    repository: Option<Repository>,
    has_source_control: bool,
    tags: Vec<String>,
    url: String,
    total_runs: i64,
    kept_runs: i64,
    runs: Vec<RunLine>,
    next_cursor: Option<String>,
}

/// The repository an administrator named. Its token never leaves the service.
#[derive(Serialize, ToSchema)]
struct Repository {
    provider: Option<String>,
    name: String,
}

impl Repository {
    /// What an address such as `https://github.com/acme/shop.git` names.
    fn from_url(url: &str, provider: Option<String>) -> Self {
        let path = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = path.split_once('/').map_or(path, |(_, path)| path);
        Self { provider, name: path.trim_end_matches('/').trim_end_matches(".git").to_owned() }
    }
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let project_id: ProjectId = asked.argument("projectId")?;
    let after: Option<RunKey> = asked.after()?;
    let context = asked.context;
    let access = context.project(project_id).await?;
    let project = projects::get(&context.query, access).await?;
    let query = RunQuery { projects: vec![project_id], after, ..RunQuery::default() };
    let runs = runs::list(&context.query, context.scope(), &query, asked.page_size()).await?;
    let (runs, next_cursor) = asked.split(runs.map(RunLine::from))?;
    answer(&Output {
        project_id: project.reference.id,
        id: project.reference.id,
        name: project.reference.name,
        label: project.reference.label,
        description: project.description,
        default_branch: project.default_branch,
        repository: project
            .repository_url
            .as_deref()
            .map(|url| Repository::from_url(url, project.repository_provider)),
        has_source_control: scm::has_repository(&context.query, access).await?,
        tags: project.tags.into_iter().map(|tag| tag.text).collect(),
        url: project.url,
        total_runs: project.total_runs,
        kept_runs: project.kept_runs,
        runs,
        next_cursor,
    })
}
