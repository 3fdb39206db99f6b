//! `get_project_test_catalog`: the tests of a project, last run first.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_query::shapes::TestCaseItem;
use callboard_query::test_cases::{self, CatalogueQuery};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_project_test_catalog",
    title: "Test catalog",
    description: "All tests of a project with counts and last result, most recently run first. \
                  Filter by query, tags (all of them), owner, priority.",
    group: Group::Projects,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::query().also(&["search"]),
        Parameter::texts("tags"),
        Parameter::text("owner"),
        Parameter::choice("priority", &["critical", "high", "medium", "low"], None),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
        Parameter::unadvertised_count("offset", 0, 10_000),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    query: Option<String>,
    tags: Vec<String>,
    owner: Option<String>,
    priority: Option<String>,
    offset: Option<usize>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    total: i64,
    items: Vec<Row>,
    next_cursor: Option<String>,
    offset: Option<usize>,
    next_offset: Option<usize>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    test_case_id: i64,
    id: i64,
    title: String,
    file_path: String,
    total_runs: i64,
    passed: i64,
    failed: i64,
    flaky: i64,
    #[schema(value_type = Option<String>)]
    last_status: Option<TestStatus>,
    #[schema(value_type = Option<String>)]
    last_run_at: Option<Timestamp>,
    tags: Vec<String>,
    owner: Option<String>,
    priority: Option<String>,
    avg_duration: Option<i64>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after = asked.after()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let query = CatalogueQuery {
        text: input.query,
        tags: input.tags.iter().map(|tag| tag.trim_start_matches('@').to_owned()).collect(),
        owner: input.owner,
        priority: input.priority,
        after,
        ..CatalogueQuery::default()
    };
    let total = test_cases::count(&context.query, project, &query).await?;
    let offset = input.offset.unwrap_or(0);
    let found = test_cases::list_from(&context.query, project, query, offset, asked.page_size()).await?;
    let next_offset = input.offset.and(found.next.as_ref()).map(|_| offset + found.items.len());
    let (items, next_cursor) = asked.split(found.map(Row::from))?;
    answer(&Output { total, items, next_cursor, offset: input.offset, next_offset })
}

impl From<TestCaseItem> for Row {
    fn from(item: TestCaseItem) -> Self {
        Self {
            test_case_id: item.id,
            id: item.id,
            title: item.title,
            file_path: item.file_path,
            total_runs: item.total_runs,
            passed: item.passed,
            failed: item.failed,
            flaky: item.flaky,
            last_status: item.last_status,
            last_run_at: item.last_run_at,
            tags: item.tags,
            owner: item.owner,
            priority: item.priority,
            avg_duration: item.avg_duration,
        }
    }
}
