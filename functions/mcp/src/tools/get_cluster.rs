//! `get_cluster`: one failure cluster and the tests it affects.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::clusters;
use callboard_query::shapes::AffectedTestCase;
use serde::{Deserialize, Serialize};

use crate::budget::Sections;
use crate::error::ToolError;
use crate::parameter::Parameter;
use crate::shapes::ClusterLine;
use crate::tool::{Answer, Asked, Group, Hints, Tool, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_cluster",
    title: "Get cluster",
    description: "One failure cluster: what its failures have in common, how often it occurred, its note, and the \
                  tests it affects most.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"])],
    sections: Sections::NONE,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    cluster_id: ClusterId,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(flatten)]
    cluster: ClusterLine,
    note: Option<String>,
    base_commit: Option<String>,
    project: Project,
    affected_test_cases: Vec<AffectedTestCase>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    project_id: i64,
    name: String,
}

async fn get(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let access = context.cluster(input.cluster_id).await?;
    let found = clusters::detail(&context.query, access, input.cluster_id).await?;
    answer(&Output {
        note: found.item.brief.note.clone(),
        cluster: found.item.into(),
        base_commit: found.base_commit,
        project: Project { project_id: found.project.id, name: found.project.name },
        affected_test_cases: found.affected_test_cases,
    })
}
