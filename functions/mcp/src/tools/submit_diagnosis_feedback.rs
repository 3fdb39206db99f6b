//! `submit_diagnosis_feedback`: whether a diagnosis was right.

use callboard_auth::routes::Roles;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, DiagnosisId, ProjectId};
use callboard_query::diagnoses::{self, Subject, Vote};
use callboard_query::{Entity, resolve};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::arguments::ArgumentError;
use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

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
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(rate(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    diagnosis_id: Option<DiagnosisId>,
    cluster_id: Option<ClusterId>,
    feedback: String,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    ok: bool,
    diagnosis_id: i64,
    id: i64,
    feedback: &'static str,
    note: Option<String>,
}

async fn rate(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let Input { diagnosis_id, cluster_id, feedback, note } = asked.input()?;
    let (project, id) = subject(&asked, diagnosis_id, cluster_id).await?;
    let vote = match feedback.as_str() {
        "up" => Vote::Up,
        "down" => Vote::Down,
        _ => Vote::None,
    };
    let context = asked.context;
    let acting = context.acting(TOOL.name).await?;
    let rated = diagnoses::feedback(&context.query, acting, project, id, vote, note).await?;
    answer(&Output {
        ok: true,
        diagnosis_id: rated.id,
        id: rated.id,
        feedback: rated.votes.mine.unwrap_or("none"),
        note: rated.votes.note,
    })
}

/// The diagnosis that is rated, with its project.
async fn subject(
    asked: &ToolCall<'_>,
    diagnosis: Option<DiagnosisId>,
    cluster: Option<ClusterId>,
) -> Result<(Authorized<ProjectId>, DiagnosisId), ToolError> {
    let context = asked.context;
    let found = match cluster {
        Some(cluster) => {
            let project = context.cluster(cluster).await?;
            let newest =
                diagnoses::newest(&context.query, project, Subject::Cluster(cluster), context.identity())
                    .await?;
            newest.map(|newest| (project, newest))
        }
        None => None,
    };
    match (diagnosis, cluster, found) {
        (Some(diagnosis), cluster, found) => {
            let project = resolve::diagnosis(&context.query, context.scope(), diagnosis).await;
            let project = project.map_err(|error| ToolError::about(Entity::Diagnosis, diagnosis, error))?;
            if let (Some(cluster), Some((_, newest))) = (cluster, found)
                && newest.id != diagnosis.get()
            {
                return Err(ToolError::Refused(format!(
                    "Diagnosis {diagnosis} is not the newest one of cluster {cluster}; give one of the two ids."
                )));
            }
            Ok((project, diagnosis))
        }
        (None, _, Some((project, newest))) => Ok((project, DiagnosisId(newest.id))),
        (None, Some(cluster), None) => Err(ToolError::Refused(format!(
            "Cluster {cluster} has no diagnosis to rate. run_cluster_diagnosis makes one."
        ))),
        (None, None, None) => Err(ArgumentError::Missing {
            name: "diagnosisId",
            kind: "integer",
            source_hint: " Get it from get_cluster_diagnosis, or give `clusterId`.".to_owned(),
            got: String::new(),
        }
        .into()),
    }
}
