//! The tab *Diagnosis* of a cluster: what is known without a model, what the
//! model said, and what it would be sent.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_http::ApiError;
use callboard_query::diagnoses::{self, ClusterContext, Diagnosis, Grounds, PackedSection, Subject};
use callboard_query::failures::{self, Detail, Explanation};
use callboard_query::shapes::ClusterDetail;

use crate::components::{PatchLine, patch_lines};
use crate::filters;
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Versions that are listed; REST has the rest.
const VERSIONS: usize = 20;
/// Bytes that a token stands for, times two.
const BYTES_OF_TWO_TOKENS: usize = 7;

/// Inputs of `pages/cluster_diagnosis.html`.
#[derive(Template)]
#[template(path = "pages/cluster_diagnosis.html")]
struct DiagnosisPage {
    shell: Shell,
    cluster: ClusterDetail,
    tab: &'static str,
    /// What is known without a model.
    explanation: Option<Explanation>,
    /// The version that is shown.
    shown: Option<Diagnosis>,
    patch: Vec<PatchLine>,
    /// One that runs.
    running: Option<Diagnosis>,
    versions: Vec<Diagnosis>,
    has_model: bool,
    may_triage: bool,
    is_administrator: bool,
    /// What would be sent.
    sections: Vec<PackedSection>,
    token_estimate: i64,
    prompt: String,
    /// The text that is handed to an agent.
    handover: String,
}

/// The word for a category.
pub(crate) fn category_word(word: &str) -> &'static str {
    match word {
        "app-bug" => "Application bug",
        "test-bug" => "Test bug",
        "flaky-test" => "Flaky test",
        "infrastructure" => "Infrastructure",
        "environment" => "Environment",
        _ => "Unknown cause",
    }
}

/// What a check of a patch came to, in words.
pub(crate) fn patch_word(status: &str) -> &'static str {
    match status {
        "applies" => "Applies to the source",
        "applies-with-offset" => "Applies at another line",
        "stale-file" => "Does not match the source",
        "invalid" => "Not a valid patch",
        _ => "Not checked: the source is not known",
    }
}

/// The tab.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    id: ClusterId,
    cluster: ClusterDetail,
    shell: Shell,
    version: Option<i64>,
) -> Result<Response, ApiError> {
    let versions =
        diagnoses::versions(&visit.ctx, project, Subject::Cluster(id), &visit.caller, None, VERSIONS)
            .await?
            .items;
    let running = versions.iter().find(|each| each.status == "running").cloned();
    let asked = version.and_then(|wanted| versions.iter().find(|each| each.version == wanted));
    let completed = versions.iter().find(|each| each.status == "completed");
    let ended = versions.iter().find(|each| each.status != "running");
    let shown = asked.or(completed).or(ended).cloned();
    let stored = diagnoses::stored(&visit.ctx).await?.settings;
    let grounds = Grounds::default();
    let ClusterContext { evidence: context, .. } =
        diagnoses::cluster_context(&visit.ctx, project, id, &grounds).await?;
    let tokens = usize::try_from(stored.limits.max_input_tokens).unwrap_or_default();
    let packed = context.packed(tokens * BYTES_OF_TWO_TOKENS / 2)?;
    let prompt = diagnoses::prompt(&visit.ctx, project, &packed).await?;
    let explanation = match context.execution {
        Some(execution) => Some(failures::explain(&visit.ctx, project, execution, Detail::Default).await?),
        None => None,
    };
    let patch =
        shown.as_ref().and_then(|shown| shown.suggested_fix.as_ref()?.patch.as_deref().map(patch_lines));
    let name = cluster.item.brief.id;
    let handover = format!(
        "Use the MCP server at {} to fix failure cluster {name}: call get_cluster_context and get_fix_plan with \
         clusterId={name}, change the code, and verify with the command of the plan.",
        visit.ctx.links.mcp()
    );
    answer(&DiagnosisPage {
        tab: "diagnosis",
        shell,
        explanation,
        patch: patch.unwrap_or_default(),
        shown,
        running,
        versions,
        has_model: stored.active_model().is_some(),
        may_triage: visit.caller.may_triage(),
        is_administrator: visit.caller.is_administrator(),
        token_estimate: i64::try_from(packed.token_estimate).unwrap_or_default(),
        sections: packed.sections,
        prompt,
        handover,
        cluster,
    })
}
