//! `list_projects`: the caller's projects, most recently active first.

use callboard_auth::routes::Roles;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::projects::{self, ProjectKey, Sort};
use callboard_query::shapes::{Project, RunBrief};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::short_commit;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "list_projects",
    title: "List projects",
    description: "Projects you can see with their latest run, most recently active first. Start here to get a projectId.",
    group: Group::Projects,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::page_size(100, 50), Parameter::cursor()],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    project_id: i64,
    id: i64,
    name: String,
    label: Option<String>,
    total_runs: i64,
    kept_runs: i64,
    total_test_cases: i64,
    tags: Vec<String>,
    latest_run: Option<LatestRun>,
    url: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LatestRun {
    run_id: i64,
    #[schema(value_type = String)]
    status: RunStatus,
    /// Why it is not green beyond its failed tests.
    status_reason: Option<String>,
    #[schema(value_type = String)]
    started_at: Timestamp,
    passed: i64,
    failed: i64,
    flaky: i64,
    branch: Option<String>,
    commit: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let after: Option<ProjectKey> = asked.after()?;
    let context = asked.context;
    let all = projects::ProjectFilters::default();
    let found =
        projects::list(&context.query, context.scope(), &all, Sort::Updated, after, asked.page_size())
            .await?;
    asked.page(found.map(Row::from))
}

impl From<Project> for Row {
    fn from(project: Project) -> Self {
        Self {
            project_id: project.reference.id,
            id: project.reference.id,
            name: project.reference.name,
            label: project.reference.label,
            tags: project.tags.into_iter().map(|tag| tag.text).collect(),
            total_runs: project.total_runs,
            kept_runs: project.kept_runs,
            total_test_cases: project.total_test_cases,
            latest_run: project.latest_run.map(LatestRun::from),
            url: project.url,
        }
    }
}

impl From<RunBrief> for LatestRun {
    fn from(run: RunBrief) -> Self {
        Self {
            run_id: run.id,
            status: run.status,
            status_reason: run.status_reason,
            started_at: run.start_time,
            passed: run.totals.passed_tests,
            failed: run.totals.failed_tests,
            flaky: run.totals.flaky_tests,
            branch: run.branch,
            commit: short_commit(run.commit),
        }
    }
}
