//! `set_cluster_status`: what a person, or an agent for one, says of a cluster.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::Change;
use callboard_query::clusters::{self, ClusterStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "set_cluster_status",
    title: "Set cluster status",
    description: "Marks a failure cluster as open, resolved or ignored, with a note of at most 2,000 characters. Omitting note \
                  keeps it, an empty one clears it. Needs the reporter role.",
    group: Group::Triage,
    roles: Roles::REPORTING,
    hints: Hints::WRITE_ONCE,
    parameters: &[
        Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"]),
        Parameter::choice("status", &["open", "resolved", "ignored"], None).required(),
        Parameter::note().also(&["triageNote"]),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(set(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    cluster_id: ClusterId,
    status: String,
    note: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    ok: bool,
    cluster_id: i64,
    id: i64,
    status: &'static str,
    note: Option<String>,
    previous_status: &'static str,
}

async fn set(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let access = context.cluster(input.cluster_id).await?;
    let status = ClusterStatus::parse(&input.status).ok_or_else(|| ToolError::fault("an unknown status"))?;
    let note = match input.note {
        None => Change::Keep,
        Some(note) if note.trim().is_empty() => Change::Clear,
        Some(note) => Change::Set(note),
    };
    let acting = context.acting(TOOL.name).await?;
    let changed =
        clusters::set_status(&context.query, acting, access, input.cluster_id, status, note).await?;
    let brief = changed.cluster.brief;
    answer(&Output {
        ok: true,
        cluster_id: brief.id,
        id: brief.id,
        status: brief.status,
        note: brief.note,
        previous_status: changed.previous.as_str(),
    })
}
