//! `get_cluster_diagnosis`: what a model found out about a failure cluster.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::clusters;
use callboard_query::diagnoses::{self, Subject};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::diagnosis::Whole;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_cluster_diagnosis",
    title: "Get diagnosis",
    description: "The diagnosis of a failure cluster, if there is one: category, root cause, evidence, suggested fix. \
                  diagnosis is null until run_cluster_diagnosis has run.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"])],
    sections: Sections::NONE,
    result: shape,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    cluster_id: i64,
    diagnosis: Option<Whole>,
    base_commit: Option<String>,
    next: [String; 2],
}

/// Shapes have single types, and the diagnosis may be null: it is left out of the shape, which is open.
fn shape() -> Value {
    let mut shape = outputs::schema::<Output>();
    if let Some(fields) = shape["properties"].as_object_mut() {
        fields.remove("diagnosis");
    }
    shape
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let cluster_id: ClusterId = asked.argument("clusterId")?;
    let context = asked.context;
    let project = context.cluster(cluster_id).await?;
    let cluster = clusters::detail(&context.query, project, cluster_id).await?;
    let found =
        diagnoses::newest(&context.query, project, Subject::Cluster(cluster_id), context.identity()).await?;
    let is_missing = found.is_none();
    let output = Output {
        cluster_id: cluster.item.brief.id,
        diagnosis: found.map(Whole::from_diagnosis),
        base_commit: cluster.base_commit,
        next: ["get_fix_plan", "get_cluster_context"]
            .map(|tool| format!("{tool} clusterId={}", cluster.item.brief.id)),
    };
    let answered = answer(&output)?;
    Ok(if is_missing { answered.with_null("diagnosis") } else { answered })
}
