//! What a model says about this execution, apart from its failure cluster.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_query::diagnoses::{self, Diagnosis, Subject};
use callboard_query::shapes::ExecutionDetail;
use tokio::try_join;

use crate::components::{PatchLine, patch_lines};
use crate::visit::Visit;

/// Versions that are looked at: the one that runs, and the newest that ended.
const VERSIONS: usize = 10;

/// Inputs of `components/execution_diagnosis.html`.
pub(super) struct DiagnosisBlock {
    /// The version that is shown: the newest with an answer, else the newest that ended.
    pub shown: Option<Diagnosis>,
    /// Its patch, line by line.
    pub patch: Vec<PatchLine>,
    /// One that runs.
    pub running: Option<Diagnosis>,
    /// Whether a model can be asked.
    pub has_model: bool,
    /// The text that is handed to an agent.
    pub handover: String,
}

impl DiagnosisBlock {
    /// What is known; `None` where nothing failed.
    pub(super) async fn read(
        visit: &Visit,
        project: Authorized<ProjectId>,
        detail: &ExecutionDetail,
    ) -> callboard_query::Result<Option<Self>> {
        if !detail.item.status.is_failing() && !detail.item.flaky {
            return Ok(None);
        }
        let id = detail.item.id;
        let subject = Subject::Execution(ExecutionId(id));
        let (versions, has_model) = try_join!(
            diagnoses::versions(&visit.ctx, project, subject, &visit.caller, None, VERSIONS),
            diagnoses::is_configured(&visit.ctx),
        )?;
        let (running, ended): (Vec<_>, Vec<_>) =
            versions.items.into_iter().partition(|each| each.status == "running");
        let completed = ended.iter().position(|each| each.status == "completed");
        let shown = ended.into_iter().nth(completed.unwrap_or(0));
        let patch =
            shown.as_ref().and_then(|shown| shown.suggested_fix.as_ref()?.patch.as_deref().map(patch_lines));
        Ok(Some(Self {
            patch: patch.unwrap_or_default(),
            shown,
            running: running.into_iter().next(),
            has_model,
            handover: format!(
                "Use the MCP server at {} to fix the failure of execution {id}: call explain_failure and \
                 get_test_case_context with executionId={id}, change the code, and run the test again.",
                visit.ctx.links.mcp()
            ),
        }))
    }
}
