//! `list_flaky_tests`: the tests of a project that fail by chance.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_query::flakiness::{self, FlakyQuery, FlakyTest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "list_flaky_tests",
    title: "List flaky tests",
    description: "Flaky tests of a project, highest probability first. flakyScore is 100 times the \
                  probability; the counts are its evidence. Tests that broke and were fixed are not listed.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::count("runs", 1, 200, 50),
        Parameter::page_size(50, 10),
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
    title: String,
    file_path: String,
    flaky_score: i64,
    failure_rate: f64,
    run_count: i64,
    fail_count: i64,
    retry_pass_count: i64,
    alternation_count: i64,
    root_cause: Option<String>,
    tags: Vec<String>,
    owner: Option<String>,
    priority: Option<String>,
    impact: i64,
    wasted_duration: Option<i64>,
    avg_failed_duration: Option<i64>,
    url: String,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<(i64, i64)> = asked.after()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let query = FlakyQuery { runs: Some(input.runs), after, ..FlakyQuery::default() };
    let today = context.state.now().day();
    let (found, _) = flakiness::list(&context.query, project, &query, today, asked.page_size()).await?;
    let row = |test: FlakyTest| Row {
        url: context.query.links.test_case(test.test_case_id),
        test_case_id: test.test_case_id,
        title: test.title,
        file_path: test.file_path,
        flaky_score: test.flaky_score,
        failure_rate: test.failure_rate,
        run_count: test.run_count,
        fail_count: test.fail_count,
        retry_pass_count: test.retry_pass_count,
        alternation_count: test.alternation_count,
        root_cause: test.root_cause,
        tags: test.tags,
        owner: test.owner,
        priority: test.priority,
        impact: test.impact,
        wasted_duration: test.knows_durations.then_some(test.wasted_duration),
        avg_failed_duration: test.knows_durations.then_some(test.avg_failed_duration),
    };
    asked.page(found.map(row))
}
