//! Why an execution failed: what it says itself, what changed since its test
//! passed, and where to look next.

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::scope::Authorized;
use callboard_domain::evidence::{ConsoleEntry, Evidence, NetworkRequest, Step};
use callboard_domain::explain::{Facts, Headline, Verdict, first_divergence, headline, judge, received};
use callboard_domain::flakiness::{Window, assess, regression_probability};
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::text::cut;
use callboard_store::clusters::{self, ClusterRow, ClusterStatus};
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow};
use callboard_store::rollups;
use serde::Serialize;
use utoipa::ToSchema;

use super::environment::{compare, label};
use super::healing::{HealingSource, LocatorHealing, of_subject};
use super::subject::{Subject, evidence_of};
use crate::{Context, Result};

/// Failing executions of a run that are looked at for what they share.
const MAX_FAILING: i64 = 200;
/// Failures from which gathering in one browser is no chance.
const MIN_GATHERED: usize = 5;
const MAX_VALUE_CHARS: usize = 400;
/// From this factor on a longer duration is told, and only from a second on.
const SLOWER: i64 = 2;
const MIN_SLOW_MS: i64 = 1_000;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// The three most telling changes.
    Summary,
    /// The eight most telling.
    #[default]
    Default,
    /// All that are known, at most thirty.
    Full,
}

impl Detail {
    /// The words of the parameter.
    pub const WORDS: &'static [&'static str] = &["summary", "default", "full"];

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "summary" => Some(Self::Summary),
            "default" => Some(Self::Default),
            "full" => Some(Self::Full),
            _ => None,
        }
    }

    const fn changes(self) -> usize {
        match self {
            Self::Summary => 3,
            Self::Default => 8,
            Self::Full => 30,
        }
    }
}

/// Kinds of changes, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The first step that is another one.
    Step,
    /// What an assertion got.
    ReceivedValue,
    /// A request that failed and did not before.
    FailedRequest,
    /// An error of the page or its console that was not there before.
    PageError,
    /// A property of the environment.
    Environment,
    /// The failing line of the test.
    SourceLine,
    /// How long it took.
    Duration,
}

/// Something that is not what it was when the test passed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChangeSince {
    /// What kind of change.
    pub kind: ChangeKind,
    /// What changed.
    pub label: String,
    /// When it passed.
    pub before: Option<String>,
    /// When it failed.
    pub after: Option<String>,
    /// The field of the evidence this rests on.
    #[schema(example = "networkRequests")]
    pub evidence: &'static str,
}

/// The step that failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedStep {
    /// Title.
    #[schema(example = "locator.click(getByRole('button', { name: 'Pay' }))")]
    pub title: String,
    /// Where it stands.
    pub location: Option<String>,
    /// How long it took, ms.
    pub duration: i64,
}

/// The line that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedLine {
    /// File.
    pub file_path: String,
    /// Number.
    pub line: u32,
    /// Text.
    pub text: String,
}

/// The last pass before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastPassed {
    /// The execution.
    pub execution_id: i64,
    /// Its run.
    pub run_id: i64,
    /// Commit of that run.
    pub commit: Option<String>,
}

/// The cluster of the failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedCluster {
    /// Cluster.
    pub id: i64,
    /// One line that names it.
    pub signature: String,
    /// open, resolved or ignored.
    pub status: &'static str,
    /// Failing executions.
    pub occurrences: i64,
    /// Whether this run showed it first.
    pub is_new: bool,
}

/// What a healed locator looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExplainedHealing {
    /// Where it comes from.
    pub source: HealingSource,
    /// The locator.
    pub locator: String,
    /// Method.
    pub method: String,
    /// How likely it is right, 0 to 100.
    pub score: u8,
}

/// Why an execution failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// One line that says it; null for an execution that did not fail.
    pub headline: Option<String>,
    /// outage, locator-drift, environment, known-cluster, app-error,
    /// likely-flake, likely-regression, test-bug or unknown.
    #[schema(example = "likely-regression")]
    pub verdict: &'static str,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// The next best, when the verdict follows from something known.
    pub also: Option<&'static str>,
    /// The step that failed.
    pub failing_step: Option<ExplainedStep>,
    /// The line that failed.
    pub source_line: Option<ExplainedLine>,
    /// What is not what it was, the most telling first.
    pub changed: Vec<ChangeSince>,
    /// The last pass before.
    pub last_passed: Option<LastPassed>,
    /// The cluster of the failure.
    pub cluster: Option<ExplainedCluster>,
    /// A locator that works.
    pub healing: Option<ExplainedHealing>,
    /// Names of tools and ids: where to look next.
    #[schema(example = json!(["get_locator_healing executionId=5"]))]
    pub next: Vec<String>,
}

/// Explains an execution from what is stored. No model is asked.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn explain(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    detail: Detail,
) -> Result<Explanation> {
    let subject = Subject::read(ctx, project, id).await?;
    let last = subject.last_passed(ctx).await?;
    let last_passed = last.as_ref().map(|(row, run)| LastPassed {
        execution_id: row.id.get(),
        run_id: run.id.get(),
        commit: run.commit_sha.clone(),
    });
    if !subject.has_failed() {
        return Ok(Explanation {
            headline: None,
            verdict: Verdict::Unknown.as_str(),
            confidence: 0.0,
            also: None,
            failing_step: None,
            source_line: None,
            changed: Vec::new(),
            last_passed,
            cluster: None,
            healing: None,
            next: vec![format!("get_test_case testCaseId={}", subject.case.id)],
        });
    }
    let healing = of_subject(ctx, project, &subject).await?;
    let passed = match &last {
        Some((row, _)) => Some(evidence_of(ctx, row).await?),
        None => None,
    };
    let mut changed = changes(&subject.evidence, passed.as_ref());
    if let (Some((row, _)), error) = (&last, subject.error()) {
        changed.extend(error.as_deref().and_then(received_value));
        changed.extend(slower(&subject.row, row));
    }
    let mut environment_changes = 0;
    if let (Some((row, run)), Some(passed)) = (&last, &passed) {
        let found = compare(ctx, &subject, (row, run, passed)).await?;
        let telling = found.into_iter().filter(|found| !found.informational);
        for found in telling {
            environment_changes += 1;
            changed.push(ChangeSince {
                kind: ChangeKind::Environment,
                label: label(&found.key),
                before: found.baseline,
                after: found.failing,
                evidence: "environment",
            });
        }
    }
    let source_line = source_line(&healing);
    let source_change =
        source_line.as_ref().zip(passed.as_ref()).and_then(|(line, passed)| source_changed(line, passed));
    let test_changed = source_change.is_some();
    changed.extend(source_change);
    changed.sort_by_key(|change| change.kind);
    let has_new_error = changed.iter().any(|change| match change.kind {
        ChangeKind::PageError => true,
        ChangeKind::FailedRequest => change.after.as_deref().is_some_and(|status| status.starts_with('5')),
        _ => false,
    });

    let mut session = ctx.store.db().read().await?;
    let cluster = cluster_of(&mut session, &subject).await?;
    let (regression, flaky) = history(&mut session, &subject).await?;
    let concentrates = concentrates(&mut session, &subject).await?;
    drop(session);
    let healed = healing.recommended().map(|locator| f64::from(locator.score) / 100.0);
    let judgement = judge(&Facts {
        is_mass_failure: subject.run.is_mass_failure,
        healed,
        is_known: cluster.as_ref().is_some_and(|cluster| {
            cluster.status == ClusterStatus::Open && cluster.first_run < subject.run.id
        }),
        // What never passed did not stop working.
        regression: regression.filter(|_| last.is_some()),
        flaky,
        has_new_error,
        concentrates,
        environment_changes,
        test_changed,
    });
    changed.truncate(detail.changes());
    Ok(Explanation {
        headline: line(&subject, &healing, last_passed.as_ref()),
        verdict: judgement.verdict.as_str(),
        confidence: (judgement.confidence * 10_000.0).round() / 10_000.0,
        also: judgement.second.map(Verdict::as_str),
        failing_step: failing_step(&subject.evidence.steps),
        next: next(&subject, &healing, cluster.as_ref(), last_passed.as_ref()),
        source_line,
        changed,
        last_passed,
        cluster: cluster.map(|cluster| ExplainedCluster {
            id: cluster.id.get(),
            signature: cluster.signature,
            status: cluster.status.as_str(),
            occurrences: cluster.occurrences,
            is_new: cluster.first_run == subject.run.id,
        }),
        healing: healing.recommended().map(|locator| ExplainedHealing {
            source: healing.source,
            locator: locator.locator.clone(),
            method: locator.method.clone(),
            score: locator.score,
        }),
    })
}

fn line(subject: &Subject, healing: &LocatorHealing, last: Option<&LastPassed>) -> Option<String> {
    let error = subject.error()?;
    let signature = subject.signature()?;
    let broken = subject.evidence.network_requests.iter().find(|request| has_failed(request));
    let named = broken.map(|request| (request_name(request), request.status));
    let was_recorded = !subject.evidence.network_requests.is_empty();
    Some(headline(&Headline {
        signature: &signature,
        error: &error,
        locator: healing.failing_text.as_deref(),
        last_passed_run: last.map(|last| last.run_id),
        failed_request: was_recorded.then(|| named.as_ref().map(|(name, status)| (name.as_str(), *status))),
    }))
}

/// The deepest step that failed: the list is depth first.
fn failing_step(steps: &[Step]) -> Option<ExplainedStep> {
    let step = steps.iter().rfind(|step| step.failed)?;
    Some(ExplainedStep {
        title: step.title.clone(),
        location: step.location.clone(),
        duration: step.duration,
    })
}

fn source_line(healing: &LocatorHealing) -> Option<ExplainedLine> {
    let line = healing.source_line.as_ref()?;
    let location = healing.location.as_deref()?;
    let file_path = callboard_domain::ingest::Location::parse(location).path;
    Some(ExplainedLine { file_path, line: line.line, text: cut(line.text.clone(), MAX_VALUE_CHARS) })
}

/// Steps, requests and page errors that the last pass did not have.
fn changes(failing: &Evidence, passed: Option<&Evidence>) -> Vec<ChangeSince> {
    let Some(passed) = passed else { return Vec::new() };
    let mut found = Vec::new();
    let (now, then) = (titles(&failing.steps), titles(&passed.steps));
    if let Some(divergence) = first_divergence(&now, &then) {
        found.push(ChangeSince {
            kind: ChangeKind::Step,
            label: "First step that differs".to_owned(),
            before: divergence.passed.map(|at| short(then[at])),
            after: divergence.failing.map(|at| short(now[at])),
            evidence: "steps",
        });
    }
    let before: BTreeMap<(&str, &str), i64> = passed
        .network_requests
        .iter()
        .map(|request| ((request.method.as_str(), request.normalized_url.as_str()), request.status))
        .collect();
    let mut told = BTreeSet::new();
    for request in failing.network_requests.iter().filter(|request| has_failed(request)) {
        let key = (request.method.as_str(), request.normalized_url.as_str());
        let then = before.get(&key).copied();
        if then == Some(request.status) || !told.insert(key) {
            continue;
        }
        found.push(ChangeSince {
            kind: ChangeKind::FailedRequest,
            label: request_name(request),
            before: then.map(status_text),
            after: Some(status_text(request.status)),
            evidence: "networkRequests",
        });
    }
    let is_error = |entry: &&ConsoleEntry| matches!(entry.kind.as_str(), "pageerror" | "error");
    let known: BTreeSet<String> =
        passed.console_logs.iter().filter(is_error).map(|entry| without_digits(&entry.text)).collect();
    let mut told = BTreeSet::new();
    for entry in failing.console_logs.iter().filter(is_error) {
        let text = without_digits(&entry.text);
        if !known.contains(&text) && told.insert(text) {
            found.push(ChangeSince {
                kind: ChangeKind::PageError,
                label: if entry.kind == "pageerror" { "Uncaught error" } else { "Console error" }.to_owned(),
                before: None,
                after: Some(short(&entry.text)),
                evidence: "consoleLogs",
            });
        }
    }
    found
}

fn titles(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.title.as_str()).collect()
}

fn has_failed(request: &NetworkRequest) -> bool {
    request.status == 0 || request.status >= 400
}

fn request_name(request: &NetworkRequest) -> String {
    short(&format!("{} {}", request.method, request.normalized_url))
}

fn status_text(status: i64) -> String {
    if status == 0 { "no response".to_owned() } else { status.to_string() }
}

fn short(text: &str) -> String {
    let masked = callboard_domain::trace::mask::masked(text).into_owned();
    cut(masked, MAX_VALUE_CHARS)
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|char| !char.is_ascii_digit()).collect()
}

fn received_value(error: &str) -> Option<ChangeSince> {
    let (expected, received) = received(error)?;
    Some(ChangeSince {
        kind: ChangeKind::ReceivedValue,
        label: match expected {
            Some(expected) => format!("Expected {expected}"),
            None => "Received value".to_owned(),
        },
        before: None,
        after: Some(received),
        evidence: "error",
    })
}

fn slower(failing: &ExecutionRow, passed: &ExecutionRow) -> Option<ChangeSince> {
    let (now, then) = (failing.duration_ms, passed.duration_ms);
    (now >= MIN_SLOW_MS && then > 0 && now >= SLOWER * then).then(|| ChangeSince {
        kind: ChangeKind::Duration,
        label: "Duration".to_owned(),
        before: Some(format!("{then} ms")),
        after: Some(format!("{now} ms")),
        evidence: "duration",
    })
}

/// The same line as it was when the test passed, when it was another one.
fn source_changed(line: &ExplainedLine, passed: &Evidence) -> Option<ChangeSince> {
    let source = passed.test_source.as_deref()?;
    let lines = callboard_domain::healing::rewrite::numbered_lines(source);
    // Moved lines are no change of the line.
    if lines.is_empty() || lines.iter().any(|(_, text)| text.trim() == line.text.trim()) {
        return None;
    }
    let (_, before) = lines.iter().find(|(number, _)| *number == line.line)?;
    Some(ChangeSince {
        kind: ChangeKind::SourceLine,
        label: format!("{}:{}", line.file_path, line.line),
        before: Some(short(before.trim())),
        after: Some(short(line.text.trim())),
        evidence: "testSource",
    })
}

async fn cluster_of(session: &mut Session, subject: &Subject) -> Result<Option<ClusterRow>> {
    let Some(id) = subject.row.cluster else { return Ok(None) };
    let cluster = clusters::get(session, subject.row.project, id).await?;
    Ok(match cluster {
        Some(ClusterRow { merged_into: Some(into), .. }) => {
            clusters::get(session, subject.row.project, into).await?
        }
        found => found,
    })
}

/// How probably the failure is a regression, and the test flaky. The history
/// speaks for the newest execution only; of older ones nothing is said.
async fn history(session: &mut Session, subject: &Subject) -> Result<(Option<f64>, Option<f64>)> {
    let state =
        rollups::state(session, subject.row.project, subject.row.lane_id, subject.row.test_case).await?;
    let Some(state) = state else { return Ok((None, None)) };
    let window = Window::standard(true);
    let is_newest = state.identified().next_back().is_some_and(|(_, newest, _)| newest == subject.row.id);
    let regression =
        is_newest.then(|| regression_probability(state.recent(), subject.row.browser_id, window)).flatten();
    Ok((regression, assess(state.recent(), window).map(|found| found.posterior.probability)))
}

/// Whether all failures of a run with several browser projects are of one:
/// at least five, so that chance would do it once in a hundred runs at most.
async fn concentrates(session: &mut Session, subject: &Subject) -> Result<bool> {
    if subject.run.browsers.len() < 2 || subject.run.totals.failed_tests < 5 {
        return Ok(false);
    }
    let filter = ExecutionFilter { outcomes: Some(vec![1, 2]), ..ExecutionFilter::default() };
    let order = ExecutionOrder::Trouble(None);
    let failing =
        executions::list(session, subject.row.project, subject.run.id, &filter, &order, MAX_FAILING).await?;
    let browsers: BTreeSet<i64> = failing.iter().map(|row| row.browser_id).collect();
    let shares = u32::try_from(subject.run.browsers.len()).unwrap_or(u32::MAX);
    let by_chance = f64::from(shares).powi(1 - i32::try_from(failing.len()).unwrap_or(i32::MAX));
    Ok(failing.len() >= MIN_GATHERED && browsers.len() == 1 && by_chance < 0.01)
}

/// Tool names and ids only: nothing a test can write into.
fn next(
    subject: &Subject,
    healing: &LocatorHealing,
    cluster: Option<&ClusterRow>,
    last: Option<&LastPassed>,
) -> Vec<String> {
    let id = subject.row.id;
    let mut next = Vec::new();
    if healing.source != HealingSource::None {
        next.push(format!("get_locator_healing executionId={id}"));
    }
    if let Some(cluster) = cluster {
        next.push(format!("get_fix_plan clusterId={}", cluster.id));
    }
    if subject.row.files > 0 {
        next.push(format!("get_case_screenshots executionId={id}"));
    }
    if subject.row.traces > 0 {
        next.push(format!("list_case_traces executionId={id}"));
    }
    if let Some(last) = last {
        next.push(format!("get_test_run_case executionId={}", last.execution_id));
    }
    next.truncate(3);
    next
}
