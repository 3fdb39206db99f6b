//! `get_test_case`: one test across runs, with its newest executions.

use callboard_auth::routes::Roles;
use callboard_domain::ids::TestCaseId;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::{ClusterBrief, ExecutionWithRun, TestCaseItem};
use callboard_query::test_cases::{self, HistoryQuery, LaneQuery};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::{Page, short_error};
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_test_case",
    title: "Get test case",
    description: "One test across all runs: counts, pass rate, owner, tags, and its executions, newest first. \
                  Gives executionIds for get_test_run_case.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("testCaseId", "search_test_cases or get_run").also(&["id", "caseId"]),
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
    test_case_id: i64,
    id: i64,
    title: String,
    file_path: String,
    describe_path: Vec<String>,
    project: Project,
    tags: Vec<String>,
    owner: Option<String>,
    priority: Option<String>,
    stats: Stats,
    clusters: Vec<Cluster>,
    recent_executions: Page<Row>,
    url: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Project {
    project_id: i64,
    name: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Stats {
    total_runs: i64,
    passed: i64,
    failed: i64,
    flaky: i64,
    skipped: i64,
    recent_flaky: i64,
    avg_duration: Option<i64>,
    pass_rate: Option<f64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    execution_id: i64,
    run_id: i64,
    #[schema(value_type = String)]
    status: TestStatus,
    flaky: bool,
    duration: i64,
    retries: i64,
    error: Option<String>,
    /// Why its author skipped it.
    skip_reason: Option<String>,
    #[schema(value_type = String)]
    started_at: Timestamp,
    branch: Option<String>,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let test_case_id: TestCaseId = asked.argument("testCaseId")?;
    let after: Option<(i64, i64)> = asked.after()?;
    let context = asked.context;
    let (project, test_case_id) = context.kept_test(test_case_id).await?;
    let everywhere = LaneQuery::default();
    let detail = test_cases::detail(&context.query, project, test_case_id, &everywhere).await?;
    let query = HistoryQuery { after, ..HistoryQuery::default() };
    let recent =
        test_cases::history(&context.query, project, test_case_id, &query, asked.page_size()).await?;
    let (items, next_cursor) = asked.split(recent.map(Row::from))?;
    let item = detail.item;
    answer(&Output {
        test_case_id: item.id,
        id: item.id,
        stats: Stats::from_item(&item),
        title: item.title,
        file_path: item.file_path,
        describe_path: item.suite_path,
        project: Project { project_id: detail.project.id, name: detail.project.name },
        tags: item.tags,
        owner: item.owner,
        priority: item.priority,
        clusters: detail.clusters.into_iter().map(|cluster| Cluster::from_brief(cluster.brief)).collect(),
        recent_executions: Page { items, next_cursor },
        url: context.query.links.test_case(item.id),
    })
}

/// A failure cluster the test failed for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    cluster_id: i64,
    error_type: &'static str,
    status: &'static str,
    occurrences: i64,
}

impl Cluster {
    fn from_brief(brief: ClusterBrief) -> Self {
        Self {
            cluster_id: brief.id,
            error_type: brief.error_type,
            status: brief.status,
            occurrences: brief.occurrences,
        }
    }
}

impl Stats {
    fn from_item(item: &TestCaseItem) -> Self {
        Self {
            total_runs: item.total_runs,
            passed: item.passed,
            failed: item.failed,
            flaky: item.flaky,
            skipped: item.skipped,
            recent_flaky: item.recent_flaky,
            avg_duration: item.avg_duration,
            pass_rate: item.pass_rate,
        }
    }
}

impl From<ExecutionWithRun> for Row {
    fn from(found: ExecutionWithRun) -> Self {
        let execution = found.execution;
        Self {
            execution_id: execution.id,
            run_id: execution.run_id,
            status: execution.status,
            flaky: execution.flaky,
            duration: execution.duration,
            retries: execution.retries,
            error: short_error(execution.error),
            skip_reason: execution.skip_reason,
            started_at: execution.started_at.unwrap_or(found.run.start_time),
            branch: found.run.branch,
        }
    }
}
