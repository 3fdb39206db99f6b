//! `submit_diagnosis_feedback`: whether a diagnosis was right.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use serde::Deserialize;

use crate::arguments::ArgumentError;
use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Asked, Group, Hints, Tool};

pub(super) static TOOL: Tool = Tool {
    name: "submit_diagnosis_feedback",
    title: "Rate diagnosis",
    description: "Rates a diagnosis: up, down, or none to clear the vote. Give diagnosisId or clusterId. \
                  Needs the reporter role.",
    group: Group::Triage,
    roles: Roles::REPORTING,
    hints: Hints::WRITE_ONCE,
    parameters: &[
        Parameter::id("diagnosisId", "get_cluster_diagnosis").also(&["id"]).optional(),
        Parameter::id("clusterId", "list_clusters").optional(),
        Parameter::choice("feedback", &["up", "down", "none"], None)
            .spelled(&[("", "none")])
            .required()
            .null_is("none"),
        Parameter::note(),
    ],
    sections: Sections::NONE,
    result: outputs::nothing_yet,
    call: |asked| Box::pin(rate(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    diagnosis_id: Option<i64>,
    cluster_id: Option<ClusterId>,
}

async fn rate(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let Input { diagnosis_id, cluster_id } = asked.input()?;
    match (diagnosis_id, cluster_id) {
        (Some(diagnosis), _) => Err(ToolError::Refused(format!(
            "Diagnosis {diagnosis} not found. get_cluster_diagnosis finds one."
        ))),
        (None, Some(cluster)) => {
            asked.context.cluster(cluster).await?;
            Err(ToolError::Refused(format!(
                "Cluster {cluster} has no diagnosis to rate. run_cluster_diagnosis makes one."
            )))
        }
        (None, None) => Err(ArgumentError::Missing {
            name: "diagnosisId",
            kind: "integer",
            source_hint: " Get it from get_cluster_diagnosis, or give `clusterId`.".to_owned(),
            got: String::new(),
        }
        .into()),
    }
}
