//! `get_spec_health`: how steady the folders of a project's tests are.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Day;
use callboard_query::performance::{self, SpecHealth, SpecQuery, SpecSort};
use callboard_query::test_cases::LaneQuery;
use serde::Deserialize;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "get_spec_health",
    title: "Spec health",
    description: "Pass rate, flaky rate and duration of each folder of tests (first two path segments) over \
                  the last days, by name.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::count("days", 1, 90, 30),
        Parameter::page_size(100, 50),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<SpecHealth>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    days: i64,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<(i64, String)> = asked.after()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let today = context.state.now().day();
    let query = SpecQuery {
        lane: LaneQuery::default(),
        days: (Day(today.0 - input.days + 1), today),
        folder: None,
        sort: SpecSort::Prefix,
    };
    let (found, _) =
        performance::spec_health(&context.query, project, &query, after, asked.page_size()).await?;
    asked.page(found)
}
