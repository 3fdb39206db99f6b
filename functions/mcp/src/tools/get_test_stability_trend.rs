//! `get_test_stability_trend`: how steady a test has been lately.

use callboard_auth::routes::Roles;
use callboard_domain::ids::TestCaseId;
use callboard_domain::time::Day;
use callboard_query::projects;
use callboard_query::shapes::RunCounts;
use callboard_query::test_cases::{self, LaneQuery};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_test_stability_trend",
    title: "Stability trend",
    description: "Pass rate, flaky rate and duration of one test over its last 200 executions, \
                  split evenly by count, oldest first.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("testCaseId", "search_test_cases or get_run").also(&["id", "caseId"]),
        Parameter::count("buckets", 5, 50, 20),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(trend(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    test_case_id: TestCaseId,
    buckets: usize,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[schema(value_type = i64)]
    test_case_id: TestCaseId,
    items: Vec<Bucket>,
    next_cursor: Option<String>,
    project_runs: RunCounts,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Bucket {
    #[schema(value_type = String)]
    date: Day,
    pass_rate: Option<f64>,
    flaky_rate: Option<f64>,
    avg_duration: Option<i64>,
    total_runs: i64,
}

async fn trend(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let Input { test_case_id, buckets } = asked.input()?;
    let context = asked.context;
    let (project, test_case_id) = context.kept_test(test_case_id).await?;
    let everywhere = LaneQuery::default();
    let found =
        test_cases::stability_by_count(&context.query, project, test_case_id, &everywhere, buckets).await?;
    let items = found.into_iter().map(|bucket| Bucket {
        date: bucket.date,
        pass_rate: bucket.pass_rate,
        flaky_rate: bucket.flaky_rate,
        avg_duration: bucket.avg_duration,
        total_runs: bucket.total_runs,
    });
    let project_runs = projects::run_counts(&context.query, project).await?;
    answer(&Output { test_case_id, items: items.collect(), next_cursor: None, project_runs })
}
