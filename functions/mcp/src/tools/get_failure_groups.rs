//! `get_failure_groups`: the failures of one run by cause.

use callboard_auth::routes::Roles;
use callboard_domain::ids::RunId;
use callboard_query::clusters::{self, FailureGroup, GroupKey};
use serde::{Deserialize, Serialize};

use crate::budget::Sections;
use crate::error::ToolError;
use crate::parameter::Parameter;
use crate::tool::{Answer, Asked, Group, Hints, Tool, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_failure_groups",
    title: "Failure groups",
    description: "Failures of one run by cause, the largest group first, with some cases of each. isNew: this run was \
                  the first to show it. Failures without a cluster form one last group.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::id("runId", "list_runs or list_recent_activity").also(&["id"]),
        Parameter::page_size(50, 30),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    run_id: RunId,
    page_size: usize,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    items: Vec<Row>,
    next_cursor: Option<String>,
    failed_tests: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster_id: Option<i64>,
    signature: Option<String>,
    title: Option<String>,
    status: Option<&'static str>,
    is_new: bool,
    count: i64,
    worker_correlated: bool,
    cases: Vec<Case>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    execution_id: i64,
    test_case_id: i64,
    title: String,
    file_path: String,
}

async fn list(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let pages = asked.pages();
    let after: Option<GroupKey> = pages.after(input.cursor.as_deref())?;
    let context = asked.context;
    let access = context.run(input.run_id).await?;
    let found =
        clusters::failure_groups(&context.query, access, input.run_id, after, input.page_size).await?;
    let (items, next_cursor) = pages.split(found.groups.map(Row::from))?;
    answer(&Output { items, next_cursor, failed_tests: found.failed_tests })
}

impl From<FailureGroup> for Row {
    fn from(group: FailureGroup) -> Self {
        let case = |case: clusters::GroupCase| Case {
            execution_id: case.execution_id,
            test_case_id: case.test_case_id,
            title: case.title,
            file_path: case.file_path,
        };
        Self {
            cluster_id: group.id,
            signature: group.signature,
            title: group.title,
            status: group.status,
            is_new: group.is_new,
            count: group.count,
            worker_correlated: group.worker_correlated,
            cases: group.cases.into_iter().map(case).collect(),
        }
    }
}
