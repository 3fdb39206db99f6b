//! `search`: projects, runs and tests by their words.

use callboard_auth::routes::Roles;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_query::search::{self, FoundCase, FoundRun, Group as Kind};
use callboard_query::shapes::ProjectRef;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Most of each kind.
const LISTED: usize = 5;

pub(super) static TOOL: Tool = Tool {
    name: "search",
    title: "Search",
    description: "Find projects, runs and test cases of all projects you can see by words of their names, titles, \
                  paths, labels and branches, by id, or by a commit. At most 5 of each, best first.",
    group: Group::Projects,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::query().required()],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(find(asked)),
};

#[derive(Serialize, ToSchema)]
struct Output {
    projects: Vec<Project>,
    runs: Vec<Run>,
    cases: Vec<Case>,
    hint: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Project {
    project_id: i64,
    id: i64,
    name: String,
    label: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Run {
    run_id: i64,
    id: i64,
    label: Option<String>,
    #[schema(value_type = String)]
    status: RunStatus,
    project_id: i64,
    project_name: String,
    #[schema(value_type = String)]
    started_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Case {
    test_case_id: i64,
    title: String,
    file_path: String,
    project_id: i64,
    project_name: String,
}

impl From<ProjectRef> for Project {
    fn from(found: ProjectRef) -> Self {
        Self { project_id: found.id, id: found.id, name: found.name, label: found.label }
    }
}

impl From<FoundRun> for Run {
    fn from(found: FoundRun) -> Self {
        Self {
            run_id: found.id,
            id: found.id,
            label: found.label,
            status: found.status,
            project_id: found.project.id,
            project_name: found.project.name,
            started_at: found.start_time,
        }
    }
}

impl From<FoundCase> for Case {
    fn from(found: FoundCase) -> Self {
        Self {
            test_case_id: found.id,
            title: found.title,
            file_path: found.file_path,
            project_id: found.project.id,
            project_name: found.project.name,
        }
    }
}

async fn find(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let query: String = asked.argument("query")?;
    let context = asked.context;
    let kinds = [Kind::Projects, Kind::Runs, Kind::Cases];
    let now = context.state.now();
    let found = search::search(&context.query, context.scope(), &query, &kinds, LISTED, now).await?;
    answer(&Output {
        projects: found.projects.into_iter().map(Project::from).collect(),
        runs: found.runs.into_iter().map(Run::from).collect(),
        cases: found.cases.into_iter().map(Case::from).collect(),
        hint: found.hint,
    })
}
