//! `list_links`: addresses outside that people hung on a run, an execution or
//! a test case.

use callboard_auth::routes::Roles;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::ids::{ExecutionId, RunId, TestCaseId};
use callboard_query::links::{self, Hook, Link};
use callboard_query::{Entity, executions, scm};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::Page;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Links of one answer.
const MOST: usize = 100;

pub(super) static TOOL: Tool = Tool {
    name: "list_links",
    title: "List links",
    description: "Issues, change requests and pages that people linked to a run, an execution or a test case.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::choice("entityType", &["test_run", "execution", "test_case"], None)
            .spelled(&[
                ("run", "test_run"),
                ("case", "test_case"),
                ("test_runs_case", "execution"),
                ("test_run_case", "execution"),
            ])
            .required(),
        Parameter::id("entityId", "get_run, list_failed_cases or search_test_cases").also(&["id"]),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    entity_type: String,
    entity_id: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    link_id: i64,
    url: String,
    provider: &'static str,
    key: Option<String>,
    title: Option<String>,
    status_text: Option<String>,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let Input { entity_type, entity_id } = asked.input()?;
    let context = asked.context;
    let (target, project) = match LinkTarget::read(&entity_type) {
        Some(LinkTarget::Execution) => {
            let id = ExecutionId(entity_id);
            let project = context.execution(id).await?;
            let found = executions::require(&context.query, project, id).await;
            found.map_err(|error| ToolError::about(Entity::Execution, id, error))?;
            (LinkTarget::Execution, project)
        }
        Some(LinkTarget::TestCase) => (LinkTarget::TestCase, context.test_case(TestCaseId(entity_id)).await?),
        _ => (LinkTarget::Run, context.run(RunId(entity_id)).await?),
    };
    let hook = Hook { target, id: entity_id };
    let mut found = links::list(&context.query, project, hook, None, MOST).await?;
    scm::add_states(&context.query, project, &mut found.items, context.state.now()).await?;
    let row = |link: Link| Row {
        link_id: link.id,
        url: link.url,
        provider: link.provider,
        key: link.key,
        title: link.title,
        status_text: link.status_text,
    };
    answer(&Page { items: found.items.into_iter().map(row).collect(), next_cursor: None })
}
