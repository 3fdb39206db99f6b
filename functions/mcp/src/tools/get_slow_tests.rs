//! `get_slow_tests`: the tests of a project that take longest.

use callboard_auth::routes::Roles;
use callboard_domain::durations::Trend;
use callboard_domain::ids::ProjectId;
use callboard_query::performance::{self, NewestQuery, SlowTest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "get_slow_tests",
    title: "Slow tests",
    description: "Slowest tests of a project by the mean of their newest passed runs (ms), with the trend: \
                  newer half against older half, 10 % or more.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::count("runs", 1, 100, 50),
        Parameter::page_size(50, 20),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    runs: usize,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    test_case_id: i64,
    id: i64,
    title: String,
    file_path: String,
    avg_duration: i64,
    max_duration: i64,
    min_duration: i64,
    run_count: i64,
    #[schema(value_type = String)]
    trend: Trend,
    latest_duration: i64,
}

impl From<SlowTest> for Row {
    fn from(test: SlowTest) -> Self {
        Self {
            test_case_id: test.test_case_id,
            id: test.test_case_id,
            title: test.title,
            file_path: test.file_path,
            avg_duration: test.avg_duration,
            max_duration: test.max_duration,
            min_duration: test.min_duration,
            run_count: test.run_count,
            trend: test.trend,
            latest_duration: test.latest_duration,
        }
    }
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<(i64, i64)> = asked.after()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let query = NewestQuery { runs: input.runs, ..NewestQuery::default() };
    let found = performance::slow_tests(&context.query, project, &query, after, asked.page_size()).await?;
    asked.page(found.map(Row::from))
}
