//! `get_cluster_context`: everything stored about a failure cluster as one text
//! to reason about.

use callboard_auth::routes::Roles;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId};
use callboard_query::baseline::Baseline;
use callboard_query::runs::{self, RunQuery};
use callboard_query::scm::{self, ClusterRange, ClusterSuspects, RepositoryCommit, SuspectsOf};
use callboard_query::shapes::{AffectedTestCase, ClusterDetail};
use callboard_query::{QueryError, clusters, failures};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::{RESULT_CHARS, Sections};
use crate::clean::quoted;
use crate::error::ToolError;
use crate::evidence_text::{Outline, Section, compose, console, steps};
use crate::outputs;
use crate::parameter::Parameter;
use crate::suspects::{commit_line, file_line};
use crate::tool::{Answer, Asked, Group, Hints, Tool, answer};

/// Characters of the sample error, so that it leaves room for what explains it.
const SAMPLE_CHARS: usize = 6_000;

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
    result: outputs::of::<Output>,
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
    sections: Vec<Outline>,
    token_estimate: usize,
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

async fn get(asked: Asked<'_>) -> Result<Answer, ToolError> {
    let input: Input = asked.input()?;
    let context = asked.context;
    let shas = commits(&input.selected_commit_shas)?;
    let project = context.cluster(input.cluster_id).await?;
    let cluster = clusters::detail(&context.query, project, input.cluster_id).await?;
    // What lies between green and the first failure broke it; later green runs say nothing of that.
    let first_run = match runs::detail(&context.query, project, RunId(cluster.item.first_seen_run_id)).await {
        Ok(run) => Some(run),
        // Old runs are cleaned up; their clusters stay.
        Err(QueryError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let evidence = newest_failure(&asked, project, &cluster.affected_test_cases).await?;
    let baseline = first_run.as_ref().and_then(|run| run.baseline.as_ref());
    let first_commit = first_run.as_ref().and_then(|run| run.item.brief.commit.as_deref());
    let selected = selected_commits(&asked, project, &shas).await?;
    let range = Commits::read(&asked, project, input.cluster_id, input.base_commit.as_deref()).await?;
    let found = range.found.as_deref();
    let selected_count = (!shas.is_empty()).then_some(selected.len());
    let coverage = Coverage {
        has_last_green: baseline.is_some(),
        has_commit_range: found.is_some(),
        provider: range.provider,
        commits_count: found.map(|found| found.items.len()).or(selected_count),
        files_count: found.map(|found| found.files_count),
        examined_commits: found.map(|found| found.examined_commits),
        base_commit_used: found
            .map(|found| found.base.clone())
            .or(input.base_commit)
            .or_else(|| cluster.base_commit.clone())
            .or_else(|| baseline.and_then(|baseline| baseline.commit.clone())),
        already_green: cluster.item.fix_landed_run_id.is_some(),
        source_control_error: range.problem.clone(),
    };
    let mut sections = sections(&cluster, first_commit, baseline, evidence);
    sections.insert(1, Section::list("commits", "Selected commits", selected));
    sections.splice(4..4, range.sections());
    // Quotes and line breaks take a second character each in JSON.
    let room = if input.max_chars > RESULT_CHARS / 2 { input.max_chars * 4 / 5 } else { input.max_chars };
    let composed = compose(sections, room);
    answer(&Output {
        cluster_id: cluster.item.brief.id,
        text: composed.text,
        sections: composed.sections,
        token_estimate: composed.token_estimate,
        coverage,
        url: cluster.item.url,
    })
}

/// Characters of the list of commits, which is the longest of the sections and
/// tells least.
const COMMITS_CHARS: usize = 4_000;

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
        asked: &Asked<'_>,
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

    fn sections(&self) -> Vec<Section> {
        let Some(found) = &self.found else { return Vec::new() };
        let commits = found.commits.iter().filter(|suspect| !suspect.reasons.is_empty()).map(commit_line);
        let files = found.files.iter().map(file_line);
        let line = |commit: &RepositoryCommit| {
            format!("{} by {}: {}", commit.short_sha, commit.author, commit.subject())
        };
        vec![
            Section::list("suspectCommits", "Suspicious commits, the most probable first", commits.collect()),
            Section::list(
                "suspectFiles",
                "Suspicious files, with what ties them to the failure",
                files.collect(),
            ),
            Section::list(
                "range",
                "Commits since the last green run, newest first",
                found.items.iter().map(line).collect(),
            )
            .at_most(COMMITS_CHARS),
        ]
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

/// What the newest run of each selected commit says of it. Only what runs
/// brought along is known of commits.
async fn selected_commits(
    asked: &Asked<'_>,
    project: Authorized<ProjectId>,
    shas: &[String],
) -> Result<Vec<String>, ToolError> {
    let context = asked.context;
    let mut told = Vec::with_capacity(shas.len());
    for sha in shas {
        let query = RunQuery {
            projects: vec![project.get()],
            commit_prefix: Some(sha.clone()),
            ..RunQuery::default()
        };
        let found = runs::list(&context.query, context.scope(), &query, 1).await?;
        told.extend(found.items.into_iter().map(|run| {
            let message = run.commit_message.as_deref().unwrap_or("no message");
            let author = run.author.as_deref().unwrap_or("unknown author");
            let status = run.brief.status.as_str();
            format!("{sha} by {author}: {message} (run {}, {status})", run.brief.id)
        }));
    }
    Ok(told)
}

fn sections(
    cluster: &ClusterDetail,
    first_commit: Option<&str>,
    baseline: Option<&Baseline>,
    evidence: Vec<Section>,
) -> Vec<Section> {
    let item = &cluster.item;
    let mut facts = vec![
        format!("title: {}", item.brief.title.as_deref().unwrap_or(&item.brief.signature)),
        format!("signature: {}", item.brief.signature),
        format!("error type: {}", item.brief.error_type),
        format!("status: {}", item.brief.status),
        format!("occurrences: {} in {} tests", item.brief.occurrences, item.brief.affected_tests),
        format!(
            "first seen: run {} at {}, {}",
            item.first_seen_run_id,
            item.first_seen_at.to_iso(),
            first_commit.unwrap_or("unknown commit")
        ),
        format!(
            "last seen: run {} at {}, {}",
            item.last_seen_run_id,
            item.last_seen_at.to_iso(),
            item.last_seen_status
        ),
    ];
    facts.extend(item.selector.iter().map(|selector| format!("element: {selector}")));
    facts.extend(item.fix_verification.iter().map(|word| format!("repair: {word}")));
    if !cluster.branches.is_empty() {
        facts.push(format!("branches: {}", cluster.branches.join(", ")));
    }
    let shared =
        cluster.grouped_by.iter().map(|common| format!("{}: {}", common.field, common.value)).collect();
    let tests = cluster.affected_test_cases.iter().map(|test| {
        format!(
            "{} × {} › {} (testCaseId {}, last executionId {})",
            test.run_count, test.file_path, test.title, test.test_case_id, test.execution_id
        )
    });
    let green = baseline.into_iter().map(|baseline| {
        let commit = baseline.commit.as_deref().unwrap_or("unknown commit");
        let branch = baseline.branch.as_deref().unwrap_or("no branch");
        format!("run {} at {}, {commit} on {branch}", baseline.run_id, baseline.start_time.to_iso())
    });
    let days = cluster.trend.iter().map(|day| format!("{}: {}", day.day.to_iso(), day.occurrences));
    let mut sections = vec![
        Section::list("cluster", "Cluster", facts),
        Section::text("sampleError", "Sample error", item.sample_error.clone().unwrap_or_default())
            .at_most(SAMPLE_CHARS),
        Section::list("common", "What its failures share", shared),
        Section::list("tests", "Affected tests", tests.collect()),
    ];
    sections.extend(evidence);
    sections.push(Section::list("lastGreen", "Last green run before the first failure", green.collect()));
    sections.push(Section::list("trend", "Failures by day", days.collect()));
    sections
}

/// Steps and console of the newest failure that is stored; of a flaky one, those
/// of the attempt that failed.
async fn newest_failure(
    asked: &Asked<'_>,
    project: Authorized<ProjectId>,
    tests: &[AffectedTestCase],
) -> Result<Vec<Section>, ToolError> {
    let mut newest: Vec<i64> = tests.iter().map(|test| test.execution_id).collect();
    newest.sort_unstable_by(|one, other| other.cmp(one));
    for execution in newest {
        let id = ExecutionId(execution);
        match failures::failure_record(&asked.context.query, project, id).await {
            Ok(record) => {
                return Ok(vec![
                    Section::last_of("steps", "Steps of the newest failure", steps(&record.evidence)),
                    Section::last_of("console", "Console of the newest failure", console(&record.evidence)),
                ]);
            }
            // Old executions are cleaned up; their clusters stay.
            Err(QueryError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Vec::new())
}
