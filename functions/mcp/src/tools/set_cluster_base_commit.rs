//! `set_cluster_base_commit`: the commit that changes are compared with.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::clusters;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "set_cluster_base_commit",
    title: "Set base commit",
    description: "Sets the last commit known to be good for a failure cluster, 7 to 64 hexadecimal digits; an empty \
                  text clears it. Needs the reporter role.",
    group: Group::Triage,
    roles: Roles::REPORTING,
    hints: Hints::WRITE_ONCE,
    parameters: &[
        Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"]),
        Parameter::commit("commit").also(&["sha", "baseCommit"]).required().keeping_blank(),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(set(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    cluster_id: ClusterId,
    commit: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    ok: bool,
    cluster_id: i64,
    id: i64,
    base_commit: Option<String>,
}

async fn set(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let access = context.cluster(input.cluster_id).await?;
    let commit = Some(input.commit.to_ascii_lowercase()).filter(|commit| !commit.trim().is_empty());
    let acting = context.acting(TOOL.name).await?;
    let changed =
        clusters::set_base_commit(&context.query, acting, access, input.cluster_id, commit.clone()).await?;
    let id = changed.brief.id;
    answer(&Output { ok: true, cluster_id: id, id, base_commit: commit })
}
