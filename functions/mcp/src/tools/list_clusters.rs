//! `list_clusters`: the failure clusters of a project.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_query::clusters::{self, ClusterKey, ClusterQuery, ClusterSort, ClusterStatus};
use serde::Deserialize;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::ClusterLine;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "list_clusters",
    title: "List failure clusters",
    description: "Failure clusters of a project, newest first: failures with one cause, how often and in how many \
                  tests they occurred. Without status all of them.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::choice("status", &["open", "resolved", "ignored"], None),
        Parameter::text("owner"),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<ClusterLine>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    status: Option<String>,
    owner: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<ClusterKey> = asked.after()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let query = ClusterQuery {
        statuses: input.status.as_deref().and_then(ClusterStatus::parse).into_iter().collect(),
        owner: input.owner,
        sort: ClusterSort::Id,
        after,
        ..ClusterQuery::default()
    };
    let now = context.state.now();
    let found = clusters::of_project(&context.query, project, &query, now, asked.page_size()).await?;
    asked.page(found.map(ClusterLine::from))
}
