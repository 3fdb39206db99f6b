//! `list_open_clusters`: the clusters that fail most, across projects.

use callboard_auth::routes::Roles;
use callboard_domain::time::Timestamp;
use callboard_query::clusters::{self, ClusterKey, ClusterQuery, ClusterSort, ClusterStatus};
use callboard_query::shapes::ClusterWithProject;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::clean::shortened;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall};

/// Characters of a sample error.
const SAMPLE_CHARS: usize = 300;

pub(super) static TOOL: Tool = Tool {
    name: "list_open_clusters",
    title: "Top open clusters",
    description: "Failure clusters of all projects you see, those that occurred most often first. Without status the \
                  open ones.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[
        Parameter::choice("status", &["open", "resolved", "ignored"], Some("open")),
        Parameter::text("owner"),
        Parameter::page_size(50, 10),
        Parameter::cursor(),
    ],
    sections: Sections::NONE,
    result: outputs::page_of::<Row>,
    call: |asked| Box::pin(list(asked)),
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster_id: i64,
    id: i64,
    project_id: i64,
    project_name: String,
    signature: String,
    title: Option<String>,
    error_type: &'static str,
    status: &'static str,
    occurrences: i64,
    last_seen_run_id: i64,
    #[schema(value_type = String)]
    last_seen_at: Timestamp,
    sample_error: Option<String>,
    url: String,
}

async fn list(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let status: String = asked.argument("status")?;
    let after: Option<ClusterKey> = asked.after()?;
    let context = asked.context;
    let query = ClusterQuery {
        statuses: ClusterStatus::parse(&status).into_iter().collect(),
        owner: asked.argument("owner")?,
        sort: ClusterSort::Occurrences,
        after,
        ..ClusterQuery::default()
    };
    let now = context.state.now();
    let found = clusters::list(&context.query, context.scope(), &query, now, asked.page_size()).await?;
    asked.page(found.map(Row::from))
}

impl From<ClusterWithProject> for Row {
    fn from(ClusterWithProject { cluster, project }: ClusterWithProject) -> Self {
        let brief = cluster.brief;
        Self {
            cluster_id: brief.id,
            id: brief.id,
            project_id: project.id,
            project_name: project.name,
            signature: brief.signature,
            title: brief.title,
            error_type: brief.error_type,
            status: brief.status,
            occurrences: brief.occurrences,
            last_seen_run_id: cluster.last_seen_run_id,
            last_seen_at: cluster.last_seen_at,
            sample_error: cluster.sample_error.map(|sample| shortened(&sample, SAMPLE_CHARS).into_owned()),
            url: cluster.url,
        }
    }
}
