//! `get_instance_stats`: counts over the whole installation.

use callboard_auth::Role;
use callboard_auth::routes::Roles;
use callboard_query::projects;
use serde::Serialize;
use serde_json::Value;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::tool::{Asked, Group, Hints, Tool, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_instance_stats",
    title: "Instance statistics",
    description: "How many projects, runs, test cases and executions this installation holds. Administrators only.",
    group: Group::Projects,
    roles: Roles::of(&[Role::Administrator]),
    hints: Hints::READ,
    parameters: &[],
    sections: Sections::NONE,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    total_projects: i64,
    total_runs: i64,
    total_test_cases: i64,
    total_executions: i64,
}

async fn get(asked: Asked<'_>) -> Result<Value, ToolError> {
    let totals = projects::instance_totals(&asked.context.query).await?;
    answer(&Output {
        total_projects: totals.projects,
        total_runs: totals.runs,
        total_test_cases: totals.test_cases,
        total_executions: totals.executions,
    })
}
