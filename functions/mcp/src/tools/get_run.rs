//! `get_run`: one run with its executions, failures first to mind.

use callboard_auth::routes::Roles;
use callboard_domain::ids::RunId;
use callboard_query::executions::{self, ExecutionKey, ExecutionQuery, OutcomeGroup, Sort};
use callboard_query::runs;
use callboard_query::shapes::ExecutionItem;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::{ExecutionLine, RunAttemptLine, RunErrorLine, RunLine};
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_run",
    title: "Get run",
    description: "One run: status, errors outside tests (statusReason, runErrors), totals (passed includes flaky; \
                  repetitions counts every --repeat-each), its attempts when CI re-ran it, and its failed executions. \
                  statusFilter=flaky or all shows others. Gives executionIds for get_test_run_case.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("runId", "list_runs or list_recent_activity").also(&["id"]),
        Parameter::choice("statusFilter", &["failed", "flaky", "all"], Some("failed"))
            .also(&["filter", "status"]),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    run_id: RunId,
    status_filter: Filter,
}

#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Filter {
    Failed,
    Flaky,
    All,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(flatten)]
    run: RunLine,
    /// How often its tests ran, each repetition of `--repeat-each` counted, as Playwright counts; total counts tests.
    repetitions: i64,
    run_errors: Vec<RunErrorLine>,
    /// The run after each of its attempts, when it was re-run: its totals above are those after the last one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    attempts: Vec<RunAttemptLine>,
    project_name: String,
    playwright_version: Option<String>,
    reporter_version: Option<String>,
    filter: Filter,
    cases: Vec<Case>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Case {
    #[serde(flatten)]
    execution: ExecutionLine,
    worker: Option<i64>,
    line: Option<i64>,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<ExecutionKey> = asked.after()?;
    let context = asked.context;
    let project = context.run(input.run_id).await?;
    let run = runs::get(&context.query, project, input.run_id).await?;
    let run_errors = runs::errors(&context.query, project, input.run_id).await?;
    let attempts = runs::attempts(&context.query, project, input.run_id).await?;
    let outcomes = match input.status_filter {
        Filter::Failed => vec![OutcomeGroup::Failing],
        Filter::Flaky => vec![OutcomeGroup::Flaky],
        Filter::All => Vec::new(),
    };
    let query = ExecutionQuery { outcomes, sort: Sort::Newest, after, ..ExecutionQuery::default() };
    let cases = executions::list(&context.query, project, input.run_id, &query, asked.page_size()).await?;
    let (cases, next_cursor) = asked.split(cases.map(Case::from))?;
    answer(&Output {
        project_name: run.project_name.clone(),
        playwright_version: run.playwright_version.clone(),
        reporter_version: run.reporter_version.clone(),
        repetitions: run.repetitions,
        run: run.into(),
        run_errors: run_errors.into_iter().map(RunErrorLine::from).collect(),
        attempts: attempts.into_iter().map(RunAttemptLine::from).collect(),
        filter: input.status_filter,
        cases,
        next_cursor,
    })
}

impl From<ExecutionItem> for Case {
    fn from(item: ExecutionItem) -> Self {
        Self { worker: item.worker_index, line: item.line, execution: item.into() }
    }
}
