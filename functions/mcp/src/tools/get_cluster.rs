//! `get_cluster`: one failure cluster, the tests it affects, and locators that
//! work instead of theirs.

use callboard_auth::routes::Roles;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId};
use callboard_query::failures::{self, HealingSource};
use callboard_query::shapes::{AffectedTestCase, CommonField};
use callboard_query::{QueryError, clusters};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::context::Context;
use crate::diagnosis::Brief;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::shapes::ClusterLine;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Tests whose locators are healed: each reads evidence, and a trace.
const HEALED: usize = 5;

pub(super) static TOOL: Tool = Tool {
    name: "get_cluster",
    title: "Get cluster",
    description: "One failure cluster: what its failures have in common, how often it occurred, its note, the tests it \
                  affects most, and locators that would work instead of theirs.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"])],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(flatten)]
    cluster: ClusterLine,
    note: Option<String>,
    diagnosis: Option<Brief>,
    base_commit: Option<String>,
    project: Project,
    grouped_by: Vec<CommonField>,
    affected_test_cases: Vec<AffectedTestCase>,
    locator_healing: Vec<Healing>,
}

/// A locator of a failing test, and what to write instead.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Healing {
    execution_id: i64,
    test_case_id: i64,
    title: String,
    source: HealingSource,
    failing_locator: Option<String>,
    recommended: Option<String>,
    durable: Option<String>,
    score: Option<u8>,
    alternatives_count: usize,
    healed_in_run_id: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Project {
    project_id: i64,
    name: String,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let cluster_id: ClusterId = asked.argument("clusterId")?;
    let context = asked.context;
    let access = context.cluster(cluster_id).await?;
    let found = clusters::detail(&context.query, access, cluster_id).await?;
    // Only a failure that names an element can have lost it.
    let tests: &[AffectedTestCase] =
        if found.item.selector.is_some() { &found.affected_test_cases } else { &[] };
    let locator_healing = heal(context, access, tests).await;
    answer(&Output {
        note: found.item.brief.note.clone(),
        diagnosis: found.item.brief.diagnosis.clone().map(Brief::from_brief),
        cluster: found.item.into(),
        base_commit: found.base_commit,
        project: Project { project_id: found.project.id, name: found.project.name },
        grouped_by: found.grouped_by,
        affected_test_cases: found.affected_test_cases,
        locator_healing,
    })
}

/// What is known to work in the newest failures of the most affected tests.
async fn heal(context: &Context, project: Authorized<ProjectId>, tests: &[AffectedTestCase]) -> Vec<Healing> {
    let mut healed = Vec::new();
    for test in tests.iter().take(HEALED) {
        let id = ExecutionId(test.execution_id);
        let found = match failures::locator_healing(&context.query, project, id).await {
            Ok(found) if found.source != HealingSource::None => found,
            // Old executions are cleaned up; their clusters stay.
            Ok(_) | Err(QueryError::NotFound { .. }) => continue,
            // The cluster is told without it.
            Err(error) => {
                tracing::warn!(%error, "what would heal a locator could not be told");
                continue;
            }
        };
        let others = [&found.from_prior_success, &found.from_element_match, &found.from_aria_snapshot];
        let alternatives_count = others.iter().map(|locators| locators.len()).sum();
        let failing_locator = found.failing_text().map(str::to_owned);
        let (recommended, durable) =
            found.recommendation.map_or((None, None), |advice| (advice.recommended, advice.durable));
        healed.push(Healing {
            execution_id: test.execution_id,
            test_case_id: test.test_case_id,
            title: test.title.clone(),
            source: found.source,
            failing_locator,
            score: recommended.as_ref().map(|locator| locator.score),
            recommended: recommended.map(|locator| locator.locator),
            durable: durable.map(|locator| locator.locator),
            alternatives_count,
            healed_in_run_id: found.healed_in_run_id,
        });
    }
    healed
}
