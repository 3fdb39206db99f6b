//! `get_cluster_context`: everything stored about a failure cluster as one text
//! to reason about.

use callboard_auth::routes::Roles;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ProjectId};
use callboard_query::diagnoses::{self, ClusterContext, Grounds, PackedSection};
use callboard_query::scm::{self, ClusterRange, ClusterSuspects, SuspectsOf};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::{RESULT_CHARS, Sections};
use crate::clean::quoted;
use crate::diagnosis::Brief;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

pub(super) static TOOL: Tool = Tool {
    name: "get_cluster_context",
    title: "Get cluster evidence",
    description: "What is stored about a failure cluster as one text: error, what its failures share, tests, steps and \
                  console of the newest failure, days, last green run, commits since then with ranked suspects.",
    group: Group::Clusters,
    roles: Roles::ALL,
    hints: Hints::READ_ELSEWHERE,
    parameters: &[
        Parameter::id("clusterId", "list_clusters or get_failure_groups").also(&["id"]),
        Parameter::commit("baseCommit"),
        Parameter::texts_within("selectedCommitShas", 10),
        Parameter::count("maxChars", 2_000, 100_000, 24_000),
    ],
    sections: Sections::NONE,
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(get(asked)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    cluster_id: ClusterId,
    base_commit: Option<String>,
    selected_commit_shas: Vec<String>,
    max_chars: usize,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    cluster_id: i64,
    text: String,
    sections: Vec<PackedSection>,
    token_estimate: usize,
    diagnosis: Option<Brief>,
    coverage: Coverage,
    url: String,
}

/// What the text rests on.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Coverage {
    has_last_green: bool,
    has_commit_range: bool,
    provider: Option<&'static str>,
    commits_count: Option<usize>,
    files_count: Option<usize>,
    examined_commits: Option<usize>,
    base_commit_used: Option<String>,
    already_green: bool,
    source_control_error: Option<String>,
}

async fn get(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let shas = commits(&input.selected_commit_shas)?;
    let project = context.cluster(input.cluster_id).await?;
    let base = input.base_commit.as_deref();
    let grounds = Grounds { sample: None, base_commit: input.base_commit.clone(), commits: shas };
    let ClusterContext { cluster, evidence: mut found } =
        diagnoses::cluster_context(&context.query, project, input.cluster_id, &grounds).await?;
    let range = Commits::read(&asked, project, input.cluster_id, base).await?;
    if let Some(suspects) = range.found.as_deref() {
        found.add_suspects(suspects);
    }
    // Quotes and line breaks take a second character each in JSON.
    let room = if input.max_chars > RESULT_CHARS / 2 { input.max_chars * 4 / 5 } else { input.max_chars };
    let packed = found.packed(room)?;
    let suspects = range.found.as_deref();
    let coverage = Coverage {
        has_last_green: found.coverage.has_last_green,
        has_commit_range: found.coverage.has_commit_range,
        provider: range.provider,
        commits_count: found.coverage.commits_count,
        files_count: suspects.map(|suspects| suspects.files_count),
        examined_commits: suspects.map(|suspects| suspects.examined_commits),
        base_commit_used: found.coverage.base_commit_used,
        already_green: found.coverage.already_green,
        source_control_error: range.problem.clone(),
    };
    let item = cluster.item;
    answer(&Output {
        cluster_id: item.brief.id,
        text: packed.text,
        sections: packed.sections,
        token_estimate: packed.token_estimate,
        diagnosis: item.brief.diagnosis.map(Brief::from_brief),
        coverage,
        url: item.url,
    })
}

/// What the repository says about the time before the cluster.
#[derive(Default)]
struct Commits {
    found: Option<Box<ClusterSuspects>>,
    provider: Option<&'static str>,
    /// Why there is nothing, or not everything.
    problem: Option<String>,
}

impl Commits {
    async fn read(
        asked: &ToolCall<'_>,
        project: Authorized<ProjectId>,
        cluster: ClusterId,
        base: Option<&str>,
    ) -> Result<Self, ToolError> {
        let context = asked.context;
        let (access, now) = (context.state.source_control(), context.state.now());
        let wanted = SuspectsOf { cluster, base };
        match scm::suspects(&context.query, &access, project, wanted, now).await {
            Ok(range) => {
                let (provider, problem, found) = match range {
                    ClusterRange::Suspects(found) => (found.provider, found.problem.clone(), Some(found)),
                    ClusterRange::None(provider, reason) => (provider, Some(reason.to_string()), None),
                };
                Ok(Self { found, provider: Some(provider.as_str()), problem })
            }
            Err(error) => match context.no_source_control(project.get(), error) {
                fault @ ToolError::Fault(_) => Err(fault),
                missing => Ok(Self { problem: Some(missing.to_string()), ..Self::default() }),
            },
        }
    }
}

/// The commits that are asked about, as they are stored.
///
/// # Errors
/// For what names no commit.
fn commits(selected: &[String]) -> Result<Vec<String>, ToolError> {
    let is_commit =
        |sha: &&String| (7..=64).contains(&sha.len()) && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
    match selected.iter().find(|sha| !is_commit(sha)) {
        Some(wrong) => Err(ToolError::Refused(format!(
            "`selectedCommitShas` must hold 7 to 64 hexadecimal digits each, got {}.",
            quoted(wrong)
        ))),
        None => Ok(selected.iter().map(|sha| sha.to_ascii_lowercase()).collect()),
    }
}
