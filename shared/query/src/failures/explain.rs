//! Why an execution failed: what it says itself, what changed since its test
//! passed, and where to look next.

mod answer;
mod changes;

use callboard_auth::scope::Authorized;
use callboard_domain::environment::Difference;
use callboard_domain::evidence::Evidence;
use callboard_domain::explain::{self, Facts, Headline, PassedIn, Verdict, headline, judge};
use callboard_domain::flakiness::{Place, Posterior};
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::status::Outcome;
use callboard_domain::text::cut;
use callboard_store::clusters::{self, ClusterRow, ClusterStatus};
use callboard_store::db::Session;
use callboard_store::{boxed, executions, rollups};
use futures::try_join;

use super::environment::{compare, label};
use super::failed_requests::request_name;
use super::healing::{HealingSource, LocatorHealing, is_same_file, of_subject};
use super::subject::{LastPass, Subject};
use crate::flakiness::exact::Series;
use crate::shapes::non_empty;
use crate::{Context, Result};

pub use answer::{
    ChangeKind, ChangeSince, Detail, ExplainedCluster, ExplainedHealing, ExplainedLine, ExplainedStep,
    Explanation, LastPassed,
};
use changes::{changes, has_new_error, received_value, slower, source_changed, telling_failure};

const MAX_VALUE_CHARS: usize = 400;

/// Explains an execution from what is stored. No model is asked.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn explain(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    detail: Detail,
) -> Result<Explanation> {
    let subject = Subject::read(ctx, project, id).await?;
    if !subject.has_failed() {
        let last = subject.last_passed(ctx).await?;
        return Ok(Explanation {
            headline: None,
            verdict: Verdict::Unknown.as_str(),
            confidence: 0.0,
            also: None,
            failing_step: None,
            source_line: None,
            changed: Vec::new(),
            last_passed: last.map(LastPassed::from_pass),
            cluster: None,
            healing: None,
            next: vec![format!("get_test_case testCaseId={}", subject.case.id)],
        });
    }
    // Objects are read while the database is asked, and what changed while the locator is looked for.
    let (healing, compared, circumstances) = try_join!(
        Box::pin(of_subject(ctx, project, &subject)),
        Box::pin(Compared::read(ctx, &subject)),
        Circumstances::read(ctx, &subject),
    )?;
    let Compared { last, passed, surroundings } = compared;
    let last_passed = last.map(LastPassed::from_pass);
    let Circumstances { cluster, history, concentrates } = circumstances;
    let mut changed = changes(&subject.evidence, passed);
    if let (Some(last), error) = (last, subject.error()) {
        changed.extend(error.as_deref().and_then(received_value));
        changed.extend(slower(&subject.row, &last.row));
    }
    let telling = surroundings.into_iter().filter(|found| !found.informational);
    let before = changed.len();
    changed.extend(telling.map(|found| ChangeSince {
        kind: ChangeKind::Environment,
        label: label(&found.key),
        before: found.baseline,
        after: found.failing,
        evidence: "environment",
    }));
    let environment_changes = changed.len() - before;
    let source_line = source_line(&healing);
    let source_change = match (&source_line, last) {
        (Some(line), Some(last)) => source_change(ctx, &subject, line, last).await?,
        _ => None,
    };
    let test_changed = source_change.is_some();
    changed.extend(source_change);
    changed.sort_by_key(|change| change.kind);
    let has_new_error = passed.is_some_and(|passed| has_new_error(&subject.evidence, passed));

    let healed = healing.recommended().map(|locator| f64::from(locator.score) / 100.0);
    let judgement = judge(&Facts {
        is_mass_failure: subject.run.is_mass_failure,
        passed_on_retry: subject.row.outcome == Outcome::Flaky,
        healed,
        is_known: cluster.as_ref().is_some_and(|cluster| {
            cluster.status == ClusterStatus::Open && cluster.first_run < subject.run.id
        }),
        regression: Some(history.broken),
        passed_before: last.is_some(),
        flaky: Some(history.probability),
        has_new_error,
        concentrates,
        environment_changes,
        test_changed,
    });
    changed.truncate(detail.changes());
    Ok(Explanation {
        headline: line(&subject, &healing, last_passed.as_ref(), passed),
        verdict: judgement.verdict.as_str(),
        confidence: (judgement.confidence * 10_000.0).round() / 10_000.0,
        also: judgement.second.map(Verdict::as_str),
        failing_step: failing_step(&subject.evidence),
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

fn line(
    subject: &Subject,
    healing: &LocatorHealing,
    last: Option<&LastPassed>,
    passed: Option<&Evidence>,
) -> Option<String> {
    let error = subject.error()?;
    let signature = subject.signature()?;
    let named = telling_failure(&subject.evidence, passed).map(|request| (request_name(request), request));
    let was_recorded = !subject.evidence.network_requests.is_empty();
    Some(headline(&Headline {
        signature: &signature,
        error: &error,
        locator: healing.failing_text.as_deref(),
        other_page: healing.other_page.as_ref(),
        last_passed: last.map(|last| PassedIn {
            run: last.run_id,
            branch: last.branch.as_deref(),
            environment: last.environment.as_deref(),
        }),
        failed_request: was_recorded.then(|| named.as_ref().map(|(name, request)| (name.as_str(), *request))),
    }))
}

fn failing_step(evidence: &Evidence) -> Option<ExplainedStep> {
    let step = &evidence.steps[explain::failing_step(&evidence.steps, evidence.error.as_deref())?];
    Some(ExplainedStep {
        title: step.full_title().into_owned(),
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

/// What the failing line was when the test passed. Only the file of the test is
/// known from then: the line may stand in another one, such as a page object.
async fn source_change(
    ctx: &Context,
    subject: &Subject,
    line: &ExplainedLine,
    last: &LastPass,
) -> Result<Option<ChangeSince>> {
    let Some(now) = subject.evidence.test_source.as_deref() else { return Ok(None) };
    if !is_same_file(&subject.case.file_path, &line.file_path) {
        return Ok(None);
    }
    let then = last.test_source(ctx).await?;
    Ok(then.and_then(|then| source_changed(line, now, &then)))
}

impl LastPassed {
    fn from_pass(last: &LastPass) -> Self {
        Self {
            execution_id: last.row.id.get(),
            run_id: last.run.id.get(),
            commit: last.run.commit_sha.clone(),
            branch: non_empty(&last.run.branch),
            environment: non_empty(&last.run.environment),
        }
    }
}

/// The last pass, and what is different since.
struct Compared<'s> {
    last: Option<&'s LastPass>,
    passed: Option<&'s Evidence>,
    surroundings: Vec<Difference>,
}

impl<'s> Compared<'s> {
    async fn read(ctx: &Context, subject: &'s Subject) -> Result<Self> {
        let Some(last) = subject.last_passed(ctx).await? else {
            return Ok(Self { last: None, passed: None, surroundings: Vec::new() });
        };
        let surroundings = compare(ctx, subject, last).await?;
        Ok(Self { last: Some(last), passed: Some(last.evidence(ctx).await?), surroundings })
    }
}

/// What else is known of the failure, its test and its run.
struct Circumstances {
    cluster: Option<ClusterRow>,
    history: Posterior,
    concentrates: bool,
}

impl Circumstances {
    async fn read(ctx: &Context, subject: &Subject) -> Result<Self> {
        let mut session = ctx.store.db().read().await?;
        Ok(Self {
            cluster: cluster_of(&mut session, subject).await?,
            history: history(&mut session, subject).await?,
            concentrates: concentrates(&mut session, subject).await?,
        })
    }
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

/// What the test looked like after the execution: how probably it was broken
/// then, and how probably it is flaky.
async fn history(session: &mut Session, subject: &Subject) -> Result<Posterior> {
    let Subject { row, run, .. } = subject;
    let state = rollups::state(session, row.project, row.lane_id, row.test_case).await?;
    let day = run.order_at.day();
    let series = Series {
        project: row.project,
        test_case: row.test_case,
        browser: row.browser_id,
        lanes: Some(vec![row.lane_id]),
        until: (run.order_at, row.id),
        first_seen: state.map_or(day, |state| state.first_seen_at().day()),
        failures: true,
    };
    series.posterior(session).await
}

/// Whether the failures of the run gather in the browser project or the shard
/// of this one.
async fn concentrates(session: &mut Session, subject: &Subject) -> Result<bool> {
    let Subject { row, run, .. } = subject;
    if run.browsers.len() < 2 && row.facts.shard_index.is_none() {
        return Ok(false);
    }
    let counts = executions::places(session, row.project, run.id).await?;
    let browsers = counts.iter().map(|count| (count.browser_id.to_string(), count.ran, count.failed));
    let shards = counts.iter().filter_map(|count| {
        let shard = count.shard_index?;
        Some((shard.to_string(), count.ran, count.failed))
    });
    let (browsers, shards) = (Place::count("browser project", browsers), Place::count("shard", shards));
    let is_here = |places: &[Place], here: i64| {
        places.iter().any(|place| place.name == here.to_string() && place.is_concentration())
    };
    Ok(is_here(&browsers, row.browser_id)
        || row.facts.shard_index.is_some_and(|shard| is_here(&shards, shard)))
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
