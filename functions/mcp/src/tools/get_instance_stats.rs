//! `get_instance_stats`: counts over the whole installation.

use callboard_auth::Role;
use callboard_auth::routes::Roles;
use callboard_query::storage;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_instance_stats",
    title: "Instance statistics",
    description: "How many projects, runs, test cases and executions this installation holds. Administrators only.",
    group: Group::Projects,
    roles: Roles::new(&[Role::Administrator]),
    hints: Hints::READ,
    parameters: &[],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    total_projects: i64,
    total_runs: i64,
    kept_runs: i64,
    total_test_cases: i64,
    total_executions: i64,
    total_files: i64,
    total_file_size: i64,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let stats = storage::instance_stats(&asked.context.query).await?;
    answer(&Output {
        total_projects: stats.total_projects,
        total_runs: stats.total_runs,
        kept_runs: stats.kept_runs,
        total_test_cases: stats.total_test_cases,
        total_executions: stats.total_executions,
        total_files: stats.total_files,
        total_file_size: stats.total_file_size,
    })
}
