//! `run_cluster_diagnosis`: asks a model why the tests of a cluster fail.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Asked, Group, Hints, Tool};

pub(super) static TOOL: Tool = Tool {
    name: "run_cluster_diagnosis",
    title: "Run diagnosis",
    description: "Asks the configured model why the tests of a cluster fail. Needs the reporter role. \
                  Returns an existing diagnosis unless force=true.",
    group: Group::Triage,
    roles: Roles::REPORTING,
    hints: Hints::WRITE_ELSEWHERE,
    parameters: &[
        Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"]),
        Parameter::flag("force"),
        Parameter::commit("baseCommit"),
    ],
    sections: Sections::NONE,
    result: outputs::nothing_yet,
    call: |asked| Box::pin(run(asked)),
};

async fn run(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let cluster_id: ClusterId = asked.argument("clusterId")?;
    asked.context.cluster(cluster_id).await?;
    Err(ToolError::NotConfigured {
        what: "A model for diagnoses is not configured.".to_owned(),
        page: asked.context.query.links.settings(),
    })
}
