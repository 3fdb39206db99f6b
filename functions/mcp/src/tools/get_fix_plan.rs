//! `get_fix_plan`: what to change, and how to see that it helped.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::failures::{self, FixPlan, Ownership, Verify};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::diagnosis::Planned;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::suspects::{self, Suspects};
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_fix_plan",
    title: "Get fix plan",
    description: "What to do about a failure cluster: edits that heal its locators as unified diffs, the failing \
                  tests, their owner, and the command that verifies the fix.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"])],
    sections: Sections { optional: &[], chronological: &[] },
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(plan(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    cluster: Cluster,
    diagnosis: Option<Planned>,
    edits: Vec<Edit>,
    /// Edits that are known.
    edits_count: usize,
    /// Those of them that are not listed.
    edits_omitted: usize,
    /// Failing tests whose locator was not looked at.
    unexamined_tests: usize,
    failing_tests: Vec<Test>,
    /// Failing tests that are known, once for each browser project.
    failing_tests_count: usize,
    /// Those of them that are not listed.
    failing_tests_omitted: usize,
    ownership: Ownership,
    verify: Verify,
    /// Commits and files that may be the cause; null until get_cluster_context or a page asked for them.
    suspects: Option<Suspects>,
    /// Where healing offers locators without being sure of one.
    next: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    cluster_id: i64,
    title: Option<String>,
    signature: String,
    error_type: &'static str,
    status: &'static str,
    occurrences: i64,
    fix_verification: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Edit {
    target: String,
    current_line: Option<String>,
    failing_locator: Option<String>,
    suggested_locator: Option<String>,
    score: Option<u8>,
    unified_diff: Option<String>,
    execution_id: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Test {
    test_case_id: i64,
    title: String,
    target: String,
    browser_project: Option<String>,
    execution_id: i64,
}

async fn plan(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let cluster_id: ClusterId = asked.argument("clusterId")?;
    let context = asked.context;
    let project = context.cluster(cluster_id).await?;
    let plan = failures::fix_plan(&context.query, project, cluster_id).await?;
    let suspects = suspects::stored(context, project, ClusterId(plan.cluster.id)).await?;
    answer(&Output::new(plan, suspects))
}

fn target(file: &str, line: Option<i64>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

impl Output {
    fn new(plan: FixPlan, suspects: Option<Suspects>) -> Self {
        Self {
            suspects,
            cluster: Cluster {
                cluster_id: plan.cluster.id,
                title: plan.cluster.title,
                signature: plan.cluster.signature,
                error_type: plan.cluster.error_type,
                status: plan.cluster.status,
                occurrences: plan.cluster.occurrences,
                fix_verification: plan.cluster.fix_verification,
            },
            diagnosis: plan.diagnosis.map(Planned::from_diagnosis),
            edits: plan
                .edits
                .into_iter()
                .map(|edit| Edit {
                    target: target(&edit.file_path, edit.line.map(i64::from)),
                    current_line: edit.current_line,
                    failing_locator: edit.failing_locator,
                    suggested_locator: edit.suggested_locator,
                    score: edit.score,
                    unified_diff: edit.unified_diff,
                    execution_id: edit.execution_id,
                })
                .collect(),
            failing_tests: plan
                .failing_tests
                .into_iter()
                .map(|test| Test {
                    test_case_id: test.test_case_id,
                    target: target(&test.file_path, test.line),
                    title: test.title,
                    browser_project: test.browser_project,
                    execution_id: test.execution_id,
                })
                .collect(),
            edits_count: plan.edits_count,
            edits_omitted: plan.edits_omitted,
            unexamined_tests: plan.unexamined_tests,
            failing_tests_count: plan.failing_tests_count,
            failing_tests_omitted: plan.failing_tests_omitted,
            ownership: plan.ownership,
            verify: plan.verify,
            next: plan.next,
        }
    }
}
