//! `search_test_cases`: tests of a project by words of their title or path.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_query::page::Slice;
use callboard_query::shapes::TestCaseItem;
use callboard_query::test_cases::{self, CatalogueKey, CatalogueQuery, Sort};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

pub(super) static TOOL: Tool = Tool {
    name: "search_test_cases",
    title: "Search test cases",
    description: "Test cases of a project whose title, describe titles or file path contain the query. \
                  Gives testCaseIds for get_test_case.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("projectId", "list_projects").also(&["id", "project"]),
        Parameter::query().required(),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(search(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    project_id: ProjectId,
    query: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    test_case_id: i64,
    id: i64,
    title: String,
    file_path: String,
    #[schema(value_type = Option<String>)]
    last_status: Option<TestStatus>,
    #[schema(value_type = Option<String>)]
    last_run_at: Option<Timestamp>,
    total_runs: i64,
}

async fn search(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let after: Option<CatalogueKey> = asked.after()?;
    let context = asked.context;
    let project = context.project(input.project_id).await?;
    let text = input.query.trim();
    let found = if text.is_empty() {
        Slice { items: Vec::new(), next: None }
    } else {
        let query = CatalogueQuery {
            text: Some(text.to_owned()),
            sort: Sort::Newest,
            after,
            ..CatalogueQuery::default()
        };
        test_cases::list(&context.query, project, &query, asked.page_size()).await?
    };
    asked.page(found.map(Row::from))
}

impl From<TestCaseItem> for Row {
    fn from(item: TestCaseItem) -> Self {
        Self {
            test_case_id: item.id,
            id: item.id,
            title: item.title,
            file_path: item.file_path,
            last_status: item.last_status,
            last_run_at: item.last_run_at,
            total_runs: item.total_runs,
        }
    }
}
