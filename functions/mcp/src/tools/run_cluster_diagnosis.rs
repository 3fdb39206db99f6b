//! `run_cluster_diagnosis`: asks a model why the tests of a cluster fail.

use std::time::Duration;

use callboard_auth::limits::DIAGNOSE;
use callboard_auth::routes::Roles;
use callboard_domain::ids::ClusterId;
use callboard_query::clusters;
use callboard_query::diagnoses::{self, Diagnosis, DiagnosisError, DiagnosisRequest, Grounds, Subject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::diagnosis::Fix;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// How long a call waits for the answer.
const PATIENCE: Duration = Duration::from_secs(18);
/// When to call again about one that runs, seconds.
const CALL_AGAIN_SECONDS: u32 = 10;

pub(super) static TOOL: Tool = Tool {
    name: "run_cluster_diagnosis",
    title: "Run diagnosis",
    description: "Asks the configured model why the tests of a cluster fail. Needs the reporter role. \
                  Returns an existing diagnosis unless force=true. While it runs, status is running: call again later.",
    group: Group::Triage,
    roles: Roles::REPORTING,
    hints: Hints::WRITE_ELSEWHERE,
    parameters: &[
        Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"]),
        Parameter::flag("force"),
        Parameter::commit("baseCommit"),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(run(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    cluster_id: ClusterId,
    #[serde(default)]
    force: Option<bool>,
    #[serde(default)]
    base_commit: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    cluster_id: i64,
    diagnosis_id: i64,
    status: &'static str,
    category: Option<String>,
    confidence: Option<&'static str>,
    summary: Option<String>,
    root_cause: Option<String>,
    suggested_fix: Option<Fix>,
    error: Option<String>,
    retry_after_seconds: Option<u32>,
}

async fn run(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let project = context.cluster(input.cluster_id).await?;
    let fail = |error: DiagnosisError| context.no_model(error);
    diagnoses::require_configured(&context.query).await.map_err(fail)?;
    let limits = context.state.limits().await.map_err(ToolError::fault)?;
    let caller = context.identity().credential().into_bytes();
    limits.check(DIAGNOSE, &caller, context.state.now()).await?;
    let acting = context.acting(TOOL.name).await?;
    if let Some(commit) = input.base_commit.map(|commit| commit.to_ascii_lowercase()) {
        clusters::set_base_commit(&context.query, acting, project, input.cluster_id, Some(commit)).await?;
    }
    let force = input.force.unwrap_or_default();
    let wanted = DiagnosisRequest { force, note: None, grounds: Grounds::default() };
    let subject = Subject::Cluster(input.cluster_id);
    let requested = diagnoses::request(&context.query, acting, project, subject, wanted).await;
    let requested = requested.map_err(fail)?;
    let found =
        diagnoses::wait_until_done(&context.query, project, requested.id, context.identity(), PATIENCE)
            .await?;
    answer(&Output::from_diagnosis(input.cluster_id, found))
}

impl Output {
    fn from_diagnosis(asked: ClusterId, found: Diagnosis) -> Self {
        Self {
            cluster_id: found.cluster_id.unwrap_or(asked.get()),
            diagnosis_id: found.id,
            status: found.status,
            category: found.category,
            confidence: found.confidence,
            summary: found.summary,
            root_cause: found.root_cause,
            suggested_fix: found.suggested_fix.map(Fix::from_fix),
            error: found.error,
            retry_after_seconds: (found.status == "running").then_some(CALL_AGAIN_SECONDS),
        }
    }
}
