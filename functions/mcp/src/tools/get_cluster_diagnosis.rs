//! `get_cluster_diagnosis`: what a model found out about a failure cluster.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::clusters;
use serde::{Deserialize, Serialize};

use crate::budget::Sections;
use crate::error::ToolError;
use crate::parameter::Parameter;
use crate::tool::{Answer, Asked, Group, Hints, Tool, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_cluster_diagnosis",
    title: "Get diagnosis",
    description: "The diagnosis of a failure cluster, if there is one: category, root cause, evidence, suggested fix. \
                  diagnosis is null until run_cluster_diagnosis made one.",
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
    cluster_id: i64,
    base_commit: Option<String>,
    next: [String; 2],
}

async fn get(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let Input { cluster_id } = asked.input()?;
    let context = asked.context;
    let project = context.cluster(cluster_id).await?;
    let cluster = clusters::detail(&context.query, project, cluster_id).await?;
    let output = Output {
        cluster_id: cluster.item.brief.id,
        base_commit: cluster.base_commit,
        next: ["get_fix_plan", "run_cluster_diagnosis"]
            .map(|tool| format!("{tool} clusterId={}", cluster.item.brief.id)),
    };
    Ok(answer(&output)?.with_null("diagnosis"))
}
