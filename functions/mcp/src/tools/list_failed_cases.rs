//! `list_failed_cases`: failing executions of a project or of one run.

use callboard_auth::routes::Roles;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::executions::{self, ExecutionKey, ExecutionQuery, OutcomeGroup, Sort};
use callboard_query::runs;
use callboard_query::shapes::{ExecutionItem, RunBrief};
use serde::{Deserialize, Serialize};

use crate::arguments::ArgumentError;
use crate::budget::Sections;
use crate::clean::{plain, shortened};
use crate::error::ToolError;
use crate::parameter::Parameter;
use crate::shapes::{ExecutionLine, Page};
use crate::tool::{Answer, Asked, Group, Hints, Tool, answer};

/// Characters of the line that stands for an error.
const HEADLINE_CHARS: usize = 160;

pub(super) static TOOL: Tool = Tool {
    name: "list_failed_cases",
    title: "List failed executions",
    description: "Failed and timed out executions of a project, newest first, each with its error and run. \
                  With runId only those of that run.",
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
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: Option<ProjectId>,
    run_id: Option<RunId>,
    page_size: usize,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    execution: ExecutionLine,
    run_id: i64,
    run_status: RunStatus,
    started_at: Timestamp,
    headline: Option<String>,
}

async fn list(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let page = match (input.run_id, input.project_id) {
        (Some(run), _) => of_run(&asked, &input, run).await?,
        (None, Some(project)) => of_project(&asked, &input, project).await?,
        (None, None) => return Err(ToolError::fault("neither projectId nor runId was demanded")),
    };
    answer(&page)
}

async fn of_project(asked: &Asked<'_>, input: &Input, project: ProjectId) -> Result<Page<Row>, ToolError> {
    let pages = asked.pages();
    let before: Option<i64> = pages.after(input.cursor.as_deref())?;
    let access = asked.context.project(project).await?;
    let found = executions::failing(&asked.context.query, access, before, input.page_size).await?;
    let (items, next_cursor) = pages.split(found.map(|(execution, run)| Row::of(execution, &run)))?;
    Ok(Page { items, next_cursor })
}

async fn of_run(asked: &Asked<'_>, input: &Input, run: RunId) -> Result<Page<Row>, ToolError> {
    let pages = asked.pages();
    let after: Option<ExecutionKey> = pages.after(input.cursor.as_deref())?;
    let context = asked.context;
    if let Some(project) = input.project_id {
        context.project(project).await?;
    }
    let access = context.run(run).await?;
    if let Some(project) = input.project_id.filter(|project| *project != access.get()) {
        let expected = format!("a run of project {project}");
        return Err(ArgumentError::Wrong { name: "runId", expected, got: run.to_string() }.into());
    }
    let shown = runs::get(&context.query, access, run).await?;
    let outcomes = vec![OutcomeGroup::Failing];
    let query = ExecutionQuery { outcomes, sort: Sort::Newest, after, ..ExecutionQuery::default() };
    let found = executions::list(&context.query, access, run, &query, input.page_size).await?;
    let (items, next_cursor) = pages.split(found.map(|execution| Row::of(execution, &shown.brief)))?;
    Ok(Page { items, next_cursor })
}

/// The first line that says something of an error.
fn headline(error: &str) -> Option<String> {
    let error = plain(error);
    let line = error.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(shortened(line, HEADLINE_CHARS).into_owned())
}

impl Row {
    fn of(execution: ExecutionItem, run: &RunBrief) -> Self {
        Self {
            headline: execution.error.as_deref().and_then(headline),
            execution: execution.into(),
            run_id: run.id,
            run_status: run.status,
            started_at: run.start_time,
        }
    }
}
