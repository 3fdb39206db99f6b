//! The evidence of a failure cluster or an execution, collected and packed: what a model is
//! sent, what `GET …/context` and MCP answer, and what the page shows.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId};
use callboard_store::diagnoses::Grounds;
use callboard_store::{StoreError, boxed};
use serde::Serialize;
use utoipa::ToSchema;

use super::packing::{Packed, Section, pack};
use crate::baseline::Baseline;
use crate::failures::{
    self, ChangeSince, Detail, EvidenceLine, Explanation, FailureRecord, console_lines, page_lines,
    request_lines, source_text, step_lines,
};
use crate::runs::{self, RunQuery};
use crate::scm::{ClusterSuspects, SuspectCommitItem, SuspectFileItem};
use crate::shapes::{AffectedTestCase, ClusterDetail};
use crate::{Context, QueryError, Result, clusters};

/// Tests of a cluster that are listed.
const MAX_TESTS: usize = 10;
/// Commits that are looked up among the runs.
const MAX_COMMITS: usize = 10;

/// What the text rests on.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Whether a green run came before the first failure.
    pub has_last_green: bool,
    /// Whether commits between green and red are in the text.
    pub has_commit_range: bool,
    /// Commits in the text; null when none were asked for or found.
    pub commits_count: Option<usize>,
    /// The commit that changes count from.
    pub base_commit_used: Option<String>,
    /// Whether the tests pass again.
    pub already_green: bool,
    /// Whether a failing execution with evidence is still stored.
    pub has_evidence: bool,
}

/// The evidence of a cluster, with the cluster.
#[derive(Debug, Clone)]
pub struct ClusterContext {
    /// The cluster.
    pub cluster: ClusterDetail,
    /// Its evidence.
    pub evidence: EvidenceContext,
}

/// Evidence as sections, by rank.
#[derive(Debug, Clone)]
pub struct EvidenceContext {
    /// What it rests on.
    pub coverage: Coverage,
    /// The execution whose evidence is shown.
    pub execution: Option<ExecutionId>,
    /// The cluster it counts for.
    pub cluster: Option<ClusterId>,
    /// The run whose commit the sources belong to.
    pub run: RunId,
    /// Sections by rank.
    sections: Vec<Section>,
    /// Source of the test, by its path: what a patch is checked against.
    pub sources: Vec<(String, String)>,
}

impl EvidenceContext {
    /// Adds the commits since the last green run and what is suspicious among them,
    /// behind the sections that explain the failure.
    pub fn add_suspects(&mut self, found: &ClusterSuspects) {
        self.coverage.has_commit_range = true;
        self.coverage.commits_count = Some(found.items.len());
        self.coverage.base_commit_used = Some(found.base.clone());
        let commits = found.commits.iter().filter(|suspect| !suspect.reasons.is_empty());
        let commits = commits.map(SuspectCommitItem::line).collect();
        let files = found.files.iter().map(SuspectFileItem::line).collect();
        let range = found
            .items
            .iter()
            .map(|commit| format!("{} by {}: {}", commit.short_sha, commit.author, commit.subject()));
        let at = self.sections.len().min(4);
        let sections = [
            Section::list("suspectCommits", "Suspicious commits, the most probable first", commits, 10),
            Section::list("suspectFiles", "Suspicious files, with what ties them to the failure", files, 10),
            Section::list(
                "commitRange",
                "Commits since the last green run, newest first",
                range.collect(),
                10,
            )
            .stable(),
        ];
        self.sections.splice(at..at, sections);
    }

    /// Packs the sections into at most `max_bytes` bytes.
    ///
    /// # Errors
    /// [`QueryError::Store`] when the system gives no random bytes.
    pub fn packed(&self, max_bytes: usize) -> Result<Packed> {
        let mut nonce = [0_u8; 8];
        getrandom::fill(&mut nonce).map_err(|_| StoreError::Damaged("the system gives no random bytes"))?;
        Ok(pack(self.sections.clone(), max_bytes, &hex::encode(nonce)))
    }
}

/// Collects the evidence of a cluster from what is stored.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn cluster_context(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ClusterId,
    grounds: &Grounds,
) -> Result<ClusterContext> {
    let (base_commit, selected) = (grounds.base_commit.as_deref(), grounds.commits.as_slice());
    let cluster = clusters::detail(ctx, project, id).await?;
    // What lies between green and the first failure broke it; later green runs say nothing of that.
    let first_run = optional(runs::detail(ctx, project, RunId(cluster.item.first_seen_run_id)).await)?;
    let baseline = first_run.as_ref().and_then(|run| run.baseline.as_ref());
    let first_commit = first_run.as_ref().and_then(|run| run.item.brief.commit.as_deref());
    let failure = match grounds.sample {
        Some(sample) => failure_of(ctx, project, sample).await?,
        None => newest_failure(ctx, project, &cluster.affected_test_cases).await?,
    };
    let commits = commits(ctx, project, selected).await?;
    let coverage = Coverage {
        has_last_green: baseline.is_some(),
        has_commit_range: false,
        commits_count: (!selected.is_empty()).then_some(commits.len()),
        base_commit_used: base_commit
            .map(str::to_owned)
            .or_else(|| cluster.base_commit.clone())
            .or_else(|| baseline.and_then(|baseline| baseline.commit.clone())),
        already_green: cluster.item.fix_landed_run_id.is_some(),
        has_evidence: failure.is_some(),
    };
    let mut sections = vec![Section::list("cluster", "Cluster", facts(&cluster, first_commit), 15).own()];
    if let Some(Failure { explanation, .. }) = &failure {
        let lines = explained(explanation);
        sections.push(Section::list("explanation", "What is known without a model", lines, 15).own());
    }
    let error = failure.as_ref().and_then(|failure| failure.record.error.clone());
    let error = error.or_else(|| cluster.item.sample_error.clone()).unwrap_or_default();
    sections.push(Section::ends("sampleError", "Sample error", &error, 25).stable());
    sections.push(Section::list("commits", "Selected commits", commits, 10).stable());
    if let Some(failure) = &failure {
        sections.extend(evidence(failure));
    }
    let shared = cluster.grouped_by.iter().map(|common| format!("{}: {}", common.field, common.value));
    sections.push(Section::list("common", "What its failures share", shared.collect(), 5).stable());
    sections.push(Section::list("tests", "Affected tests", tests(&cluster), 10).own());
    if let Some(failure) = &failure {
        sections.extend(output(failure));
    }
    let green = baseline.map(last_green).into_iter().collect();
    sections.push(Section::list("lastGreen", "Last green run before the first failure", green, 5).own());
    let days = cluster.trend.iter().map(|day| format!("{}: {}", day.day.to_iso(), day.occurrences));
    sections.push(Section::list("trend", "Failures by day", days.collect(), 5).own());
    let sources = failure.as_ref().map(Failure::sources).unwrap_or_default();
    let execution = failure.map(|failure| failure.id);
    let run = execution.map_or(RunId(cluster.item.last_seen_run_id), ExecutionId::run);
    let of = Some(ClusterId(cluster.item.brief.id));
    let evidence = EvidenceContext { coverage, execution, cluster: of, run, sections, sources };
    Ok(ClusterContext { cluster, evidence })
}

/// Collects the evidence of one execution from what is stored, with what is known of its cluster.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn execution_context(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    grounds: &Grounds,
) -> Result<EvidenceContext> {
    let record = failures::failure_record(ctx, project, id).await?;
    let own = vec![
        format!("test: {} › {}", record.file_path, record.title),
        format!("status: {}, run {}", record.status.as_str(), id.run()),
    ];
    let own = Section::list("execution", "Execution", own, 5).own();
    if let Some(cluster) = &record.cluster {
        let grounds = Grounds { sample: Some(id), ..grounds.clone() };
        let mut found = cluster_context(ctx, project, ClusterId(cluster.id), &grounds).await?.evidence;
        found.sections.insert(0, own);
        return Ok(found);
    }
    let run = optional(runs::detail(ctx, project, id.run()).await)?;
    let baseline = run.as_ref().and_then(|run| run.baseline.as_ref());
    let commits = commits(ctx, project, &grounds.commits).await?;
    let coverage = Coverage {
        has_last_green: baseline.is_some(),
        has_commit_range: false,
        commits_count: (!grounds.commits.is_empty()).then_some(commits.len()),
        base_commit_used: grounds
            .base_commit
            .clone()
            .or_else(|| baseline.and_then(|green| green.commit.clone())),
        already_green: false,
        has_evidence: true,
    };
    let explanation = failures::explain(ctx, project, id, Detail::Full).await?;
    let error = record.error.clone().unwrap_or_default();
    let failure = Failure { id, file: record.file_path.clone(), record, explanation };
    let mut sections = vec![
        own,
        Section::list("explanation", "What is known without a model", explained(&failure.explanation), 15)
            .own(),
        Section::ends("sampleError", "Error", &error, 25).stable(),
        Section::list("commits", "Selected commits", commits, 10).stable(),
    ];
    sections.extend(evidence(&failure));
    sections.extend(output(&failure));
    let green = baseline.map(last_green).into_iter().collect();
    sections.push(Section::list("lastGreen", "Last green run before the failure", green, 5).own());
    let sources = failure.sources();
    Ok(EvidenceContext { coverage, execution: Some(id), cluster: None, run: id.run(), sections, sources })
}

/// Old runs and executions are cleaned up; their clusters stay.
fn optional<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(QueryError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The newest failure of a cluster that is stored.
struct Failure {
    id: ExecutionId,
    file: String,
    record: FailureRecord,
    explanation: Explanation,
}

impl Failure {
    fn sources(&self) -> Vec<(String, String)> {
        let source = self.record.evidence.test_source.clone();
        source.map(|source| (self.file.clone(), source)).into_iter().collect()
    }
}

async fn newest_failure(
    ctx: &Context,
    project: Authorized<ProjectId>,
    tests: &[AffectedTestCase],
) -> Result<Option<Failure>> {
    let mut newest: Vec<&AffectedTestCase> = tests.iter().collect();
    newest.sort_unstable_by_key(|test| std::cmp::Reverse(test.execution_id));
    for test in newest {
        let failure = failure_of(ctx, project, ExecutionId(test.execution_id)).await?;
        if failure.is_some() {
            return Ok(failure);
        }
    }
    Ok(None)
}

/// An execution, when it is still stored.
async fn failure_of(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<Option<Failure>> {
    let record = optional(failures::failure_record(ctx, project, id).await)?;
    let Some(record) = record else { return Ok(None) };
    let explanation = optional(failures::explain(ctx, project, id, Detail::Full).await)?;
    let failure = |explanation| Failure { id, file: record.file_path.clone(), record, explanation };
    Ok(explanation.map(failure))
}

/// What the newest run of each selected commit says of it. Only what runs
/// brought along is known of commits.
async fn commits(ctx: &Context, project: Authorized<ProjectId>, shas: &[String]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for sha in shas.iter().take(MAX_COMMITS) {
        let query = RunQuery {
            projects: vec![project.get()],
            commit_prefix: Some(sha.clone()),
            ..RunQuery::default()
        };
        let found = runs::list_of(ctx, project, &query, 1).await?;
        lines.extend(found.items.into_iter().map(|run| {
            let message = run.commit_message.as_deref().unwrap_or("no message");
            let author = run.author.as_deref().unwrap_or("unknown author");
            let status = run.brief.status.as_str();
            format!("{sha} by {author}: {message} (run {}, {status})", run.brief.id)
        }));
    }
    Ok(lines)
}

fn facts(cluster: &ClusterDetail, first_commit: Option<&str>) -> Vec<String> {
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
    facts.extend(item.brief.note.iter().map(|note| format!("note of the team: {note}")));
    if !cluster.branches.is_empty() {
        facts.push(format!("branches: {}", cluster.branches.join(", ")));
    }
    facts
}

/// What this service found out by itself.
fn explained(found: &Explanation) -> Vec<String> {
    let mut lines: Vec<String> = found.headline.iter().map(|line| format!("headline: {line}")).collect();
    lines.push(format!("verdict: {} ({:.0}%)", found.verdict, found.confidence * 100.0));
    lines.extend(found.also.map(|also| format!("otherwise: {also}")));
    lines.extend(found.failing_step.iter().map(|step| {
        let place = step.location.as_deref().map(|place| format!(" at {place}")).unwrap_or_default();
        format!("failing step: {}{place}, {} ms", step.title, step.duration)
    }));
    lines.extend(
        found
            .source_line
            .iter()
            .map(|line| format!("failing line: {}:{}: {}", line.file_path, line.line, line.text.trim())),
    );
    lines.extend(found.last_passed.iter().map(|last| {
        let commit = last.commit.as_deref().unwrap_or("unknown commit");
        let branch = last.branch.as_deref().unwrap_or("no branch");
        format!("last passed: run {}, {commit} on {branch}", last.run_id)
    }));
    lines.extend(found.healing.iter().map(|healing| {
        format!("a locator that matches the page now: {} ({}%)", healing.locator, healing.score)
    }));
    lines
}

fn change(change: &ChangeSince) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{}: before {} | now {}", change.label, side(&change.before), side(&change.after))
}

fn log(lines: Vec<EvidenceLine>) -> Vec<(String, bool)> {
    lines.into_iter().map(|line| (line.text, line.has_failed)).collect()
}

/// What explains the failure, by rank.
fn evidence(failure: &Failure) -> Vec<Section> {
    let evidence = &failure.record.evidence;
    let changed: Vec<String> = failure.explanation.changed.iter().map(change).collect();
    let aria = evidence.aria_snapshot.as_deref().unwrap_or_default();
    vec![
        Section::list("changed", "Changes since the last pass", changed, 15).stable(),
        Section::text("source", "Source around the failure", &source_text(evidence), 20).stable(),
        Section::log("steps", "Steps of the newest failure", log(step_lines(evidence)), 15),
        Section::log("requests", "Requests, the failed ones last", log(request_lines(evidence)), 10),
        Section::log("console", "Console of the newest failure", log(console_lines(evidence)), 10),
        Section::text("aria", "Accessibility tree at the failure", aria, 20),
    ]
}

/// What rarely explains a failure.
fn output(failure: &Failure) -> Vec<Section> {
    let evidence = &failure.record.evidence;
    let attempts = failure.record.attempts.iter().map(|attempt| {
        let (retry, status) = (attempt.retry, attempt.status.as_str());
        format!("retry {retry}: {status}, {} ms", attempt.duration)
    });
    vec![
        Section::list("attempts", "Attempts of the newest failure", attempts.collect(), 5),
        Section::text(
            "stderr",
            "Standard error of the test",
            evidence.stderr.as_deref().unwrap_or_default(),
            8,
        ),
        Section::text(
            "stdout",
            "Standard output of the test",
            evidence.stdout.as_deref().unwrap_or_default(),
            5,
        ),
        Section::list("page", "Page", page_lines(evidence), 5),
    ]
}

fn tests(cluster: &ClusterDetail) -> Vec<String> {
    let tests = cluster.affected_test_cases.iter().take(MAX_TESTS).map(|test| {
        format!(
            "{} × {} › {} (testCaseId {}, last executionId {})",
            test.run_count, test.file_path, test.title, test.test_case_id, test.execution_id
        )
    });
    tests.collect()
}

fn last_green(baseline: &Baseline) -> String {
    let commit = baseline.commit.as_deref().unwrap_or("unknown commit");
    let branch = baseline.branch.as_deref().unwrap_or("no branch");
    format!("run {} at {}, {commit} on {branch}", baseline.run_id, baseline.start_time.to_iso())
}
