//! `get_failure_groups`: the failures of one run by cause.

use callboard_auth::routes::Roles;
use callboard_domain::ids::RunId;
use callboard_domain::status::RunStatus;
use callboard_query::clusters::{self, FailureGroup, GroupKey};
use callboard_query::runs;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::RunErrorLine;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_failure_groups",
    title: "Failure groups",
    description: "Failures of one run by cause, the largest group first, with some cases of each; flaky ones passed at a \
                  later attempt. isNew: this run was the first to show it. Failures without a cluster form one last group. \
                  statusReason and runErrors: what made the run fail besides its tests.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("runId", "list_runs or list_recent_activity").also(&["id"]),
        Parameter::page_size(50, 30),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[schema(value_type = String)]
    run_status: RunStatus,
    /// Why the run is not green beyond its failed tests.
    status_reason: Option<String>,
    run_errors: Vec<RunErrorLine>,
    items: Vec<Row>,
    next_cursor: Option<String>,
    failed_tests: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster_id: Option<i64>,
    signature: Option<String>,
    title: Option<String>,
    status: Option<&'static str>,
    is_new: bool,
    count: i64,
    /// Of these, failed in the end: over all groups they add up to failedTests.
    failed_count: i64,
    /// Of these, passed at a later attempt.
    flaky_count: i64,
    worker_correlated: bool,
    cases: Vec<Case>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Case {
    execution_id: i64,
    test_case_id: i64,
    title: String,
    file_path: String,
    browser: String,
    /// Passed at a later attempt.
    flaky: bool,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let run_id: RunId = asked.argument("runId")?;
    let after: Option<GroupKey> = asked.after()?;
    let context = asked.context;
    let access = context.run(run_id).await?;
    let found = clusters::failure_groups(&context.query, access, run_id, after, asked.page_size()).await?;
    let (items, next_cursor) = asked.split(found.groups.map(Row::from))?;
    let run = runs::get(&context.query, access, run_id).await?.brief;
    let run_errors = runs::errors(&context.query, access, run_id).await?;
    answer(&Output {
        run_status: run.status,
        status_reason: run.status_reason,
        run_errors: run_errors.into_iter().map(RunErrorLine::from).collect(),
        items,
        next_cursor,
        failed_tests: found.failed_tests,
    })
}

impl From<FailureGroup> for Row {
    fn from(group: FailureGroup) -> Self {
        let case = |case: clusters::GroupCase| Case {
            execution_id: case.execution_id,
            test_case_id: case.test_case_id,
            title: case.title,
            file_path: case.file_path,
            browser: case.browser_project,
            flaky: case.flaky,
        };
        Self {
            cluster_id: group.id,
            signature: group.signature,
            title: group.title,
            status: group.status,
            is_new: group.is_new,
            count: group.count,
            failed_count: group.failed_count,
            flaky_count: group.flaky_count,
            worker_correlated: group.worker_correlated,
            cases: group.cases.into_iter().map(case).collect(),
        }
    }
}
