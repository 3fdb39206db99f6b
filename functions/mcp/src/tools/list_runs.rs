//! `list_runs`: runs of a project, newest first.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_query::runs::{self, RunKey, RunQuery};
use serde::Deserialize;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::RunLine;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

const STATUSES: [&str; 8] = {
    let mut words = [""; 8];
    let mut at = 0;
    while at < words.len() {
        words[at] = RunStatus::ALL[at].as_str();
        at += 1;
    }
    words
};

pub(super) static TOOL: Tool = Tool {
    name: "list_runs",
    title: "List runs",
    description: "Runs of one project, newest first, with totals. Filter by branch and status. \
                  failed includes timed out tests, passed includes flaky ones.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::branch(),
        Parameter::choice("status", &STATUSES, None)
            .spelled(&[("initialising", "initializing"), ("canceled", "cancelled")]),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<RunLine>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    branch: Option<String>,
    status: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<RunKey> = asked.after()?;
    let context = asked.context;
    context.project(input.project_id).await?;
    let query = RunQuery {
        projects: vec![input.project_id],
        branches: input.branch.into_iter().collect(),
        statuses: input.status.as_deref().and_then(RunStatus::parse).into_iter().collect(),
        after,
        ..RunQuery::default()
    };
    let runs = runs::list(&context.query, context.scope(), &query, asked.page_size()).await?;
    asked.page(runs.map(RunLine::from))
}
