//! `/test-run-cases/{id}`: one execution, diagnosis first.

mod culprit;
mod diagnosis;
mod evidence;
mod keeping;
mod pictures;
mod steps;
mod trace;
mod why;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::annotations::LinkTarget;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, TestCaseId};
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_query::diagnoses::{self, Diagnosis, Subject};
use callboard_query::executions::{self, Parts, WantedAttempt};
use callboard_query::failures::{self, Detail};
use callboard_query::links::Hook;
use callboard_query::resolve;
use callboard_query::shapes::{AttemptView, ExecutionDetail, ExecutionWithRun, FileItem, browser_label};
use callboard_query::test_cases::{self, HistoryQuery, Neighbours};
use tokio::try_join;

use crate::address::MAX_ID;
use crate::components::{LinkPanel, Strip};
use crate::filters;
use crate::outcome::{Tone, Toned};
use crate::shell::Shell;
use crate::visit::{Visit, answer};

/// Executions of the same test the strip shows.
const HISTORY: usize = 30;
/// Most attempts an address can name.
const MAX_ATTEMPT: i64 = 10_000;

/// Pictures of the last pass that are shown beside those of a failure.
const PASSED_PICTURES: usize = 2;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    attempt: WantedAttempt,
    /// Whether the page tells what the trace of the attempt holds.
    tells: bool,
    /// The trace that is open inside of the page.
    trace: Option<i64>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let attempt =
            WantedAttempt { retry: index(query, "retry")?, repetition: index(query, "repetition")? };
        let tells = query.one_of("evidence", &[("trace", true)])?;
        let trace = query.number(trace::PARAMETER, 1..=MAX_ID)?;
        Ok(Self { attempt, tells: tells.unwrap_or(false), trace })
    }
}

fn index(query: &QueryReader, name: &str) -> Result<Option<u32>, ApiError> {
    Ok(query.number(name, 0..=MAX_ATTEMPT)?.and_then(|index| u32::try_from(index).ok()))
}

/// One attempt, and the address at which its evidence is shown.
struct AttemptLink {
    attempt: AttemptView,
    href: String,
    is_shown: bool,
}

/// Inputs of `pages/execution.html`.
#[derive(Template)]
#[template(path = "pages/execution.html")]
struct ExecutionPage {
    shell: Shell,
    tone: Tone,
    verdict: Option<String>,
    why: Option<why::Why>,
    /// What a model says about it; `None` where nothing failed.
    diagnosis: Option<diagnosis::DiagnosisBlock>,
    /// Which commit turned it red; `None` where nothing failed, and without a repository.
    culprit: Option<culprit::CulpritBlock>,
    browser: Option<String>,
    /// Arguments of `playwright test`, which lines do not break.
    command: Vec<String>,
    attempts: Vec<AttemptLink>,
    evidence: Evidence,
    source: Vec<evidence::SourceLine>,
    frames: Vec<evidence::Frame>,
    steps: Vec<steps::StepRow>,
    console: Vec<evidence::ConsoleRow>,
    /// What its author noted about the test.
    notes: Vec<evidence::Note>,
    comparisons: Vec<pictures::Comparison>,
    /// The run the test last passed in, with its pictures.
    passed_pictures: Option<(i64, Vec<FileItem>)>,
    screenshots: Vec<FileItem>,
    videos: Vec<FileItem>,
    others: Vec<FileItem>,
    traces: trace::Traces,
    links: LinkPanel,
    neighbours: Neighbours,
    history: Strip,
    history_count: usize,
    /// How long what it left behind is kept.
    keeping: keeping::Keeping,
    /// Whether the reader may keep its run for good.
    may_keep: bool,
    detail: ExecutionDetail,
}

/// One execution.
pub(crate) async fn execution(
    State(state): State<AppState>,
    visit: Visit,
    Path(id): Path<ExecutionId>,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    let project = resolve::execution(&visit.ctx, visit.scope(), id).await?;
    let (mut detail, shown) = detail(&visit, project, id, asked.attempt).await?;
    let case = TestCaseId(detail.item.test_case_id);
    let browser = Some(detail.item.browser_project.clone()).filter(|browser| !browser.is_empty());
    let lane = HistoryQuery { browser, ..HistoryQuery::default() };
    let (told, why) = try_join!(
        Box::pin(async {
            let history = test_cases::history(&visit.ctx, project, case, &lane, HISTORY).await?.items;
            let beside = neighbours(&visit, project, id, lane.browser.as_deref(), &history).await?;
            Ok::<_, ApiError>((history, beside))
        }),
        Box::pin(why(&visit, project, &detail)),
    )?;
    let (mut history, neighbours) = told;
    history.reverse();
    let passed_pictures = passed_pictures(&visit, project, &detail, why.as_ref()).await?;
    let hook = Hook { target: LinkTarget::Execution, id: id.get() };
    let links = LinkPanel::load(&visit, &state, project, hook).await?;
    let shell = Shell::in_project(&visit, &detail.project, &detail.item.title)
        .await?
        .under(format!("Run {}", detail.run.id), format!("/test-runs/{}", detail.run.id))
        .here(&detail.item.title);
    let keeping = keeping::Keeping::from_detail(&detail, visit.now);
    let culprit = Box::pin(culprit::CulpritBlock::read(&visit, &state, project, &detail)).await?;
    let diagnosis = Box::pin(diagnosis::DiagnosisBlock::read(&visit, project, &detail)).await?;
    let traces = std::mem::take(&mut detail.traces);
    let mut traces = trace::Traces::new(&state, &visit, traces);
    if let Some(file) = asked.trace {
        traces.open(&state, &visit, file).await?;
    }
    if asked.tells && !traces.files.is_empty() {
        let has_aria = detail.evidence.as_ref().is_some_and(|evidence| evidence["ariaSnapshot"].is_string());
        let retry = shown.map(|(retry, _)| retry);
        traces.told = Some(trace::Told::by(&visit, project, id, retry, has_aria).await?);
    }
    let may_keep = visit.caller.may_triage();
    let beside = Beside { passed_pictures, links, neighbours, traces, keeping, may_keep };
    answer(&ExecutionPage {
        why,
        diagnosis,
        culprit,
        ..ExecutionPage::new(shell, detail, shown, &history, beside)
    })
}

/// Why the execution failed, if it did.
async fn why(
    visit: &Visit,
    project: Authorized<ProjectId>,
    detail: &ExecutionDetail,
) -> Result<Option<why::Why>, ApiError> {
    if !detail.item.status.is_failing() && !detail.item.flaky {
        return Ok(None);
    }
    let id = ExecutionId(detail.item.id);
    let (explanation, healing, diagnosis) = try_join!(
        failures::explain(&visit.ctx, project, id, Detail::Default),
        failures::locator_healing(&visit.ctx, project, id),
        of_cluster(visit, project, detail),
    )?;
    Ok(why::Why::new(explanation, healing, diagnosis))
}

/// What a model says about the failure cluster of the execution.
async fn of_cluster(
    visit: &Visit,
    project: Authorized<ProjectId>,
    detail: &ExecutionDetail,
) -> callboard_query::Result<Option<Diagnosis>> {
    let Some(cluster) = &detail.item.cluster_id else { return Ok(None) };
    let subject = Subject::Cluster(ClusterId(*cluster));
    diagnoses::newest(&visit.ctx, project, subject, &visit.caller).await
}

/// What the page shows besides the execution itself.
struct Beside {
    passed_pictures: Option<(i64, Vec<FileItem>)>,
    links: LinkPanel,
    neighbours: Neighbours,
    traces: trace::Traces,
    keeping: keeping::Keeping,
    may_keep: bool,
}

/// The results of the same test, in the same browser project, right before
/// and after an execution; `newest` is the head of its history.
async fn neighbours(
    visit: &Visit,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    browser: Option<&str>,
    newest: &[ExecutionWithRun],
) -> Result<Neighbours, ApiError> {
    let known = |at: usize| newest.get(at).map(|each| each.execution.id);
    let at = newest.iter().position(|each| each.execution.id == id.get());
    if let Some(at) = at
        && let Some(earlier) = known(at + 1)
    {
        return Ok(Neighbours { earlier: Some(earlier), later: at.checked_sub(1).and_then(known) });
    }
    Ok(test_cases::neighbours(&visit.ctx, project, id, browser).await?)
}

/// What the page looked like when the test last passed, where both results
/// left pictures.
async fn passed_pictures(
    visit: &Visit,
    project: Authorized<ProjectId>,
    detail: &ExecutionDetail,
    why: Option<&why::Why>,
) -> Result<Option<(i64, Vec<FileItem>)>, ApiError> {
    let has_own = detail.attachments.iter().any(|file| file.kind == "screenshot");
    let last = why.and_then(|why| why.explanation.last_passed.as_ref()).filter(|_| has_own);
    let Some(last) = last else { return Ok(None) };
    let id = ExecutionId(last.execution_id);
    let found = failures::screenshots(&visit.ctx, project, id, PASSED_PICTURES).await?;
    Ok((!found.is_empty()).then_some((last.run_id, found)))
}

impl ExecutionPage {
    /// Sorts what is known by where the page shows it; `history` is oldest
    /// first.
    fn new(
        shell: Shell,
        mut detail: ExecutionDetail,
        shown: Option<(u32, u32)>,
        history: &[ExecutionWithRun],
        beside: Beside,
    ) -> Self {
        // Kept evidence has the shape it was written with; what cannot be read is as if it were not there.
        let evidence: Evidence =
            detail.evidence.take().and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
        let mut files = std::mem::take(&mut detail.attachments);
        let comparisons = pictures::comparisons(&mut files);
        let (screenshots, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.kind == "screenshot");
        let (videos, others) = others.into_iter().partition(|file| file.kind == "video");
        Self {
            tone: detail.item.tone(),
            verdict: verdict(&detail),
            why: None,
            diagnosis: None,
            culprit: None,
            browser: browser_label(&detail.item).map(|label| evidence::once(&label)),
            command: evidence::arguments_of(&detail.item),
            attempts: links(&detail, shown),
            source: evidence::source_lines(evidence.test_source.as_deref().unwrap_or_default()),
            frames: evidence::frames(&evidence),
            steps: steps::rows(&evidence.steps),
            console: evidence::console(&evidence.console_logs),
            notes: evidence::notes(&detail),
            evidence,
            comparisons,
            passed_pictures: beside.passed_pictures,
            screenshots,
            videos,
            others,
            traces: beside.traces,
            links: beside.links,
            neighbours: beside.neighbours,
            keeping: beside.keeping,
            may_keep: beside.may_keep,
            history: Strip::of_executions(history, ExecutionId(detail.item.id), shell.now),
            history_count: history.len(),
            shell,
            detail,
        }
    }

    /// Whether a model is asked about it.
    fn is_diagnosing(&self) -> bool {
        self.diagnosis.as_ref().is_some_and(|found| found.running.is_some())
    }

    /// Whether its culprit is being searched for.
    fn is_searching(&self) -> bool {
        self.culprit.as_ref().is_some_and(culprit::CulpritBlock::is_running)
    }

    /// Whether the execution left something to look at that is gone by now.
    fn is_gone(&self) -> bool {
        let counts = &self.detail.item.counts;
        let has_evidence = self.detail.attempts.iter().any(|attempt| attempt.has_evidence);
        !has_evidence
            && counts.steps + counts.console + counts.network + counts.traces + counts.attachments > 0
    }

    /// Whether the attempt left nothing to look at.
    fn is_bare(&self) -> bool {
        let files = [&self.screenshots, &self.videos, &self.others];
        self.detail.item.error.is_none()
            && self.steps.is_empty()
            && self.console.is_empty()
            && self.source.is_empty()
            && self.comparisons.is_empty()
            && self.traces.files.is_empty()
            && files.iter().all(|files| files.is_empty())
            && self.evidence.network_requests.is_empty()
            && self.detail.item.web_vitals.is_none()
            && self.evidence.page_state.is_none()
            && self.evidence.aria_snapshot.is_none()
            && self.evidence.stdout.is_none()
            && self.evidence.stderr.is_none()
    }
}

/// The execution with the evidence of the attempt people came for: the one
/// asked for, else the deciding one, else, for a flaky test, the failed one.
async fn detail(
    visit: &Visit,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    wanted: WantedAttempt,
) -> Result<(ExecutionDetail, Option<(u32, u32)>), ApiError> {
    let detail = executions::detail(&visit.ctx, project, id, &Parts::All, wanted).await?;
    let is_asked = wanted.retry.is_some() || wanted.repetition.is_some();
    let shown = detail.attempts.iter().find(|attempt| {
        if is_asked {
            wanted.retry.is_none_or(|retry| retry == attempt.retry)
                && wanted.repetition.is_none_or(|repetition| repetition == attempt.repetition)
        } else {
            attempt.deciding
        }
    });
    let shown = shown.map(|attempt| (attempt.retry, attempt.repetition));
    let failed = detail.failed_attempt_of_flaky().map(|attempt| (attempt.retry, attempt.repetition));
    match failed {
        Some((retry, repetition)) if !is_asked => {
            let wanted = WantedAttempt { retry: Some(retry), repetition: Some(repetition) };
            let detail = executions::detail(&visit.ctx, project, id, &Parts::All, wanted).await?;
            Ok((detail, Some((retry, repetition))))
        }
        _ => Ok((detail, shown)),
    }
}

fn links(detail: &ExecutionDetail, shown: Option<(u32, u32)>) -> Vec<AttemptLink> {
    let link = |attempt: &AttemptView| AttemptLink {
        href: format!(
            "/test-run-cases/{}?retry={}&repetition={}",
            detail.item.id, attempt.retry, attempt.repetition
        ),
        is_shown: shown == Some((attempt.retry, attempt.repetition)),
        attempt: attempt.clone(),
    };
    detail.attempts.iter().map(link).collect()
}

/// What is known about this result beyond itself, in one sentence.
fn verdict(detail: &ExecutionDetail) -> Option<String> {
    let (item, run) = (&detail.item, &detail.run);
    let on = run.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let place = run.environment.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    let is_known = detail.cluster.as_ref().is_some_and(|cluster| !cluster.is_new);
    let elsewhere = if is_known { " Its cause is a known failure." } else { "" };
    if item.is_new_regression {
        Some(format!("New failure: the test passed in its last run{on}{place}.{elsewhere}"))
    } else if item.is_new_flaky {
        Some(format!("Newly flaky: the test passed first time in its last run{on}{place}.{elsewhere}"))
    } else if item.is_fixed {
        Some(format!("Recovered: the test failed in its last run{on}{place}."))
    } else if item.expected_failure {
        Some("Marked as expected to fail.".to_owned())
    } else {
        None
    }
}
