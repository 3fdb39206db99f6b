//! `list_failed_cases`: failing executions of a project or of one run.

use std::collections::{BTreeSet, HashMap};

use callboard_auth::routes::Roles;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::executions::{self, ExecutionKey, ExecutionQuery, OutcomeGroup, Sort};
use callboard_query::shapes::{ExecutionItem, RunBrief};
use callboard_query::{clusters, runs};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::arguments::ArgumentError;
use crate::budget::Sections;
use crate::clean::{plain, shortened};
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::{ExecutionLine, RunErrorLine};
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Characters of the line that stands for an error.
const HEADLINE_CHARS: usize = 160;

pub(super) static TOOL: Tool = Tool {
    name: "list_failed_cases",
    title: "List failed executions",
    description: "Failed and timed out executions of a project, newest first, each with its error and run. \
                  With runId only those of that run, and first what made it fail besides its tests (run.statusReason, run.runErrors).",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").required_without("runId").also(&["id", "project"]),
        Parameter::id("runId", "list_runs or list_recent_activity").optional(),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: Option<ProjectId>,
    run_id: Option<RunId>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    /// The run that was asked about; absent for a project.
    run: Option<RunState>,
    items: Vec<Row>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunState {
    #[schema(value_type = String)]
    status: RunStatus,
    /// Why it is not green beyond its failed tests.
    status_reason: Option<String>,
    run_errors: Vec<RunErrorLine>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    execution: ExecutionLine,
    run_id: i64,
    #[schema(value_type = String)]
    run_status: RunStatus,
    #[schema(value_type = String)]
    started_at: Timestamp,
    headline: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    match (input.run_id, input.project_id) {
        (Some(run), project) => of_run(&asked, run, project).await,
        (None, Some(project)) => of_project(&asked, project).await,
        (None, None) => Err(ToolError::fault("neither projectId nor runId was demanded")),
    }
}

async fn of_project(asked: &ToolCall<'_>, project: ProjectId) -> Result<Answer, ToolError> {
    let before: Option<i64> = asked.after()?;
    let access = asked.context.project(project).await?;
    let found = executions::failing(&asked.context.query, access, before, asked.page_size()).await?;
    let causes = causes(asked, access, found.items.iter().map(|(execution, _)| execution)).await?;
    let (items, next_cursor) =
        asked.split(found.map(|(execution, run)| Row::new(execution, &run, &causes)))?;
    answer(&Output { run: None, items, next_cursor })
}

/// The failures of a run, which is of `project` when that is given.
async fn of_run(asked: &ToolCall<'_>, run: RunId, project: Option<ProjectId>) -> Result<Answer, ToolError> {
    let after: Option<ExecutionKey> = asked.after()?;
    let context = asked.context;
    if let Some(project) = project {
        context.project(project).await?;
    }
    let access = context.run(run).await?;
    if let Some(project) = project.filter(|project| *project != access.get()) {
        let expected = format!("a run of project {project}");
        let source_hint = " list_runs gives the runs of a project.".to_owned();
        return Err(
            ArgumentError::Wrong { name: "runId", expected, got: run.to_string(), source_hint }.into()
        );
    }
    let shown = runs::get(&context.query, access, run).await?;
    let outcomes = vec![OutcomeGroup::Failing];
    let query = ExecutionQuery { outcomes, sort: Sort::Newest, after, ..ExecutionQuery::default() };
    let found = executions::list(&context.query, access, run, &query, asked.page_size()).await?;
    let causes = causes(asked, access, found.items.iter()).await?;
    let run_errors = runs::errors(&context.query, access, run).await?;
    let (items, next_cursor) =
        asked.split(found.map(|execution| Row::new(execution, &shown.brief, &causes)))?;
    let state = RunState {
        status: shown.brief.status,
        status_reason: shown.brief.status_reason,
        run_errors: run_errors.into_iter().map(RunErrorLine::from).collect(),
    };
    answer(&Output { run: Some(state), items, next_cursor })
}

/// The causes of some failures, by cluster.
async fn causes(
    asked: &ToolCall<'_>,
    project: Authorized<ProjectId>,
    failures: impl Iterator<Item = &ExecutionItem>,
) -> Result<HashMap<i64, String>, ToolError> {
    let ids: BTreeSet<i64> = failures.filter_map(|failure| failure.cluster_id).collect();
    Ok(clusters::signatures(&asked.context.query, project, ids.into_iter().collect()).await?)
}

/// The first line that says something.
fn headline(error: &str) -> Option<String> {
    let error = plain(error);
    let line = error.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(shortened(line, HEADLINE_CHARS).into_owned())
}

impl Row {
    fn new(execution: ExecutionItem, run: &RunBrief, causes: &HashMap<i64, String>) -> Self {
        // The first line of an error often says no more than that time was up.
        let cause = execution.cluster_id.and_then(|cluster| causes.get(&cluster));
        Self {
            headline: cause.or(execution.error.as_ref()).and_then(|line| headline(line)),
            execution: execution.into(),
            run_id: run.id,
            run_status: run.status,
            started_at: run.start_time,
        }
    }
}
