//! `get_performance_trend`: how long the newest full runs of a project took.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::performance::{self, DurationsQuery, RunDuration};
use callboard_query::projects;
use callboard_query::shapes::RunCounts;
use callboard_query::test_cases::LaneQuery;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Questions until it is said that there are no more full runs.
const QUESTIONS: usize = 4;

pub(super) static TOOL: Tool = Tool {
    name: "get_performance_trend",
    title: "Performance trend",
    description: "Durations of the newest full runs of a project (ms), oldest first: the run, the mean and the \
                  90th percentile of its tests.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::count("limit", 1, 100, 30),
        Parameter::branch(),
    ],
    sections: Sections { optional: &[], chronological: &["items"] },
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(trend(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    limit: usize,
    branch: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    items: Vec<Row>,
    next_cursor: Option<String>,
    project_runs: RunCounts,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    run_id: i64,
    #[schema(value_type = String)]
    started_at: Timestamp,
    duration: Option<i64>,
    avg_test_duration: Option<i64>,
    p50_test_duration: Option<i64>,
    p90_test_duration: Option<i64>,
    p95_test_duration: Option<i64>,
    #[schema(value_type = String)]
    status: RunStatus,
    total_tests: i64,
    commit: Option<String>,
    branch: Option<String>,
    is_full_run: bool,
}

impl From<RunDuration> for Row {
    fn from(run: RunDuration) -> Self {
        Self {
            run_id: run.run_id,
            started_at: run.start_time,
            duration: run.duration,
            avg_test_duration: run.avg_test_duration,
            p50_test_duration: run.p50_test_duration,
            p90_test_duration: run.p90_test_duration,
            p95_test_duration: run.p95_test_duration,
            status: run.status,
            total_tests: run.total_tests,
            commit: run.commit.map(|commit| commit.chars().take(8).collect()),
            branch: run.branch,
            is_full_run: run.is_full_run,
        }
    }
}

async fn trend(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let mut query = DurationsQuery {
        lane: LaneQuery { branch: input.branch, environment: None },
        full_runs: Some(true),
        ..DurationsQuery::default()
    };
    let mut items: Vec<Row> = Vec::new();
    // One question looks at so many runs at most: among many partial ones there may be none that is full.
    for _ in 0..QUESTIONS {
        let most = input.limit - items.len();
        let found = performance::of_runs(&context.query, context.scope(), project, &query, most).await?;
        let older = found.items.into_iter().map(Row::from);
        items = older.chain(items).collect();
        match found.next {
            Some(next) if items.len() < input.limit => query.after = Some(next),
            _ => break,
        }
    }
    let project_runs = projects::run_counts(&context.query, project).await?;
    answer(&Output { items, next_cursor: None, project_runs })
}
