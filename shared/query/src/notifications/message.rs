//! The text of messages, from the present state of what an event is about.

use callboard_domain::human::duration;
use callboard_domain::ids::{ClusterId, DiagnosisId, ProjectId, RunId, TestCaseId};
use callboard_domain::notifications::{Message, NotificationEvent};
use callboard_domain::status::RunStatus;
use callboard_domain::text::truncate_text;
use callboard_store::clusters::{self, ClusterRow, reads};
use callboard_store::db::Session;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};
use callboard_store::{diagnoses, test_cases};

use crate::{Context, Result};

/// New causes that a message names.
const NAMED_CAUSES: usize = 5;
/// Longest fact, in characters: a message of the largest size stays below 3 KB.
const MAX_FACT_CHARS: usize = 300;

/// A message about a run.
pub(super) async fn about_run(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    run: &RunRow,
    event: NotificationEvent,
    before: Option<&str>,
) -> Result<Message> {
    let mut facts = vec![run.totals.in_words()];
    if event == NotificationEvent::RunRevised {
        facts.extend(before.and_then(reported_before));
    }
    if let Some(reason) = run.end().reason() {
        facts.push(reason);
    }
    let causes = new_causes(session, project.id, run.id).await?;
    if !causes.is_empty() && run.status != RunStatus::Passed {
        facts.push(match causes.len() {
            1 => "1 new cause:".to_owned(),
            more => format!("{more} new causes:"),
        });
        facts.extend(causes.iter().take(NAMED_CAUSES).map(|cause| format!("• {}", name_of(cause))));
        if causes.len() > NAMED_CAUSES {
            facts.push(format!("and {} more", causes.len() - NAMED_CAUSES));
        }
    }
    if let Some(commit) = &run.commit_sha {
        let short: String = commit.chars().take(8).collect();
        let subject = run.commit_message.as_deref().and_then(|message| message.lines().next());
        facts.push(
            subject.map_or_else(|| format!("Commit {short}"), |subject| format!("Commit {short}: {subject}")),
        );
    }
    let (name, place) = (shown_name(project), place_of(run));
    let headline = match event {
        NotificationEvent::BranchRed => format!("{name}: {place} is red since run {}", run.id),
        NotificationEvent::BranchRecovered => format!("{name}: {place} is green again"),
        NotificationEvent::ShardMissing => {
            format!("{name}: run {} on {place} ended without all shards", run.id)
        }
        NotificationEvent::RunRevised => {
            format!("{name}: run {} on {place} changed and {}", run.id, ended_as(run.status))
        }
        _ => format!("{name}: run {} on {place} {}", run.id, ended_as(run.status)),
    };
    Ok(Message {
        run_id: Some(run.id.get()),
        status: Some(run.status.as_str().to_owned()),
        failed_tests: Some(failed_tests(run)),
        branch: named(&run.branch),
        environment: named(&run.environment),
        ..message(project, headline, facts, ctx.links.run(run.id.get()))
    })
}

/// A message about a failure cluster.
pub(super) async fn about_cluster(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    cluster: ClusterId,
    run: RunId,
    event: NotificationEvent,
) -> Result<Option<Message>> {
    let Some(row) = clusters::get(session, project.id, cluster).await? else { return Ok(None) };
    let Some(run) = runs::get(session, project.id, run).await? else { return Ok(None) };
    let name = shown_name(project);
    let headline = match event {
        NotificationEvent::ClusterRegressed => format!("{name}: a fixed failure is back"),
        NotificationEvent::ClusterVerified => format!("{name}: a fix held"),
        _ => format!("{name}: new failure on {}", place_of(&run)),
    };
    let tests =
        if row.affected_tests == 1 { "1 test".to_owned() } else { format!("{} tests", row.affected_tests) };
    let facts = vec![name_of(&row), format!("{tests} so far; run {}", run.id)];
    Ok(Some(Message {
        run_id: Some(run.id.get()),
        cluster_id: Some(cluster.get()),
        branch: named(&run.branch),
        environment: named(&run.environment),
        ..message(project, headline, facts, ctx.links.cluster(cluster.get()))
    }))
}

/// `Reported before: failed, 3 failed tests`, of a status and a number.
fn reported_before(state: &str) -> Option<String> {
    let mut words = state.split(' ');
    let (status, failed) = (words.next()?, words.next()?);
    let noun = if failed == "1" { "test" } else { "tests" };
    Some(format!("Reported before: {}, {failed} failed {noun}", ended_as(RunStatus::parse(status)?)))
}

/// A message about a test: what it did in a run, or that it left quarantine.
pub(super) async fn about_test(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    case: TestCaseId,
    run: Option<&RunRow>,
    event: NotificationEvent,
) -> Result<Option<Message>> {
    let Some(row) = test_cases::get(session, project.id, case).await? else { return Ok(None) };
    let (name, place) = (shown_name(project), run.map(place_of).unwrap_or_default());
    let headline = match event {
        NotificationEvent::TestFailed => format!("{name}: a test fails on {place}"),
        NotificationEvent::TestFixed => format!("{name}: a test passes again on {place}"),
        _ => format!("{name}: a test left quarantine"),
    };
    let mut facts = vec![row.title, row.file_path];
    facts.extend(run.map(|run| format!("Run {}", run.id)));
    Ok(Some(Message {
        test_case_id: Some(case.get()),
        run_id: run.map(|run| run.id.get()),
        branch: run.and_then(|run| named(&run.branch)),
        environment: run.and_then(|run| named(&run.environment)),
        ..message(project, headline, facts, ctx.links.test_case(case.get()))
    }))
}

/// A message about a test that became slower for good.
pub(super) async fn about_slower(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    case: TestCaseId,
    run: Option<&RunRow>,
    (before_ms, after_ms): (i64, i64),
) -> Result<Option<Message>> {
    let Some(row) = test_cases::get(session, project.id, case).await? else { return Ok(None) };
    let place = run.map(place_of).unwrap_or_default();
    let headline = format!("{}: a test became slower on {place}", shown_name(project));
    let change = format!("{} instead of {} in the median", duration(after_ms), duration(before_ms));
    let facts = vec![row.title, change, row.file_path];
    Ok(Some(Message {
        test_case_id: Some(case.get()),
        run_id: run.map(|run| run.id.get()),
        branch: run.and_then(|run| named(&run.branch)),
        environment: run.and_then(|run| named(&run.environment)),
        ..message(project, headline, facts, ctx.links.test_case(case.get()))
    }))
}

/// A message about a run of which something was not stored.
pub(super) fn about_dropped(ctx: &Context, project: &ProjectRow, run: &RunRow, reason: &str) -> Message {
    let headline = format!("{}: evidence of run {} was not stored", shown_name(project), run.id);
    Message {
        run_id: Some(run.id.get()),
        branch: named(&run.branch),
        environment: named(&run.environment),
        ..message(project, headline, vec![reason.to_owned()], ctx.links.run(run.id.get()))
    }
}

/// A message about a diagnosis.
pub(super) async fn about_diagnosis(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    diagnosis: DiagnosisId,
    cluster: ClusterId,
) -> Result<Option<Message>> {
    let Some(row) = clusters::get(session, project.id, cluster).await? else { return Ok(None) };
    let found = diagnoses::get(session, project.id, diagnosis).await?;
    let mut facts = vec![name_of(&row)];
    facts.extend(found.and_then(|found| found.summary));
    let headline = format!("{}: a failure was diagnosed", shown_name(project));
    let url = format!("{}?tab=diagnosis", ctx.links.cluster(cluster.get()));
    Ok(Some(Message { cluster_id: Some(cluster.get()), ..message(project, headline, facts, url) }))
}

/// `1.2 GB`.
fn bytes(count: i64) -> String {
    const UNITS: [(&str, i64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let unit = UNITS.into_iter().find(|(_, size)| count >= *size);
    unit.map_or_else(
        || format!("{count} B"),
        |(unit, size)| format!("{}.{} {unit}", count / size, count % size * 10 / size),
    )
}

/// How much of a quota is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuotaFacts {
    /// Percent that was reached: 80, 95 or 100.
    pub(super) level: i64,
    /// Bytes.
    pub(super) used_bytes: i64,
    /// Bytes.
    pub(super) quota_bytes: i64,
}

impl QuotaFacts {
    fn headline(self, name: &str) -> String {
        if self.level >= 100 {
            format!("{name}: the storage quota is used up")
        } else {
            format!("{name}: {}% of the storage quota are used", self.level)
        }
    }

    fn facts(self) -> Vec<String> {
        vec![
            format!("{} of {}", bytes(self.used_bytes), bytes(self.quota_bytes)),
            "Nothing is refused or deleted because of this.".to_owned(),
        ]
    }
}

/// A message about the quota of a project.
pub(super) fn about_quota(ctx: &Context, project: &ProjectRow, quota: QuotaFacts) -> Message {
    let url = format!("{}?tab=settings", ctx.links.project(project.id.get()));
    message(project, quota.headline(shown_name(project)), quota.facts(), url)
}

/// A message about the quota of the instance.
pub(super) fn about_instance_quota(ctx: &Context, quota: QuotaFacts) -> Message {
    Message {
        headline: quota.headline("Callboard"),
        facts: quota.facts(),
        url: ctx.links.storage(),
        ..Message::default()
    }
}

fn message(project: &ProjectRow, headline: String, facts: Vec<String>, url: String) -> Message {
    let short = |text: String| truncate_text(text, MAX_FACT_CHARS);
    Message {
        headline: short(headline),
        facts: facts.into_iter().map(short).collect(),
        url,
        project_id: Some(project.id.get()),
        project_name: Some(project.name.clone()),
        ..Message::default()
    }
}

/// Clusters that a run is the first to show, with most failures first.
async fn new_causes(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<ClusterRow>> {
    let most = NAMED_CAUSES as i64 + 20;
    let ids = reads::new_of_run(session, project, run, most).await?;
    let mut rows = clusters::get_many(session, project, ids.iter().map(|id| id.get()).collect()).await?;
    rows.sort_by_key(|row| ids.iter().position(|id| *id == row.id));
    Ok(rows)
}

pub(crate) fn name_of(cluster: &ClusterRow) -> String {
    cluster.title.clone().unwrap_or_else(|| cluster.signature.clone())
}

pub(crate) fn shown_name(project: &ProjectRow) -> &str {
    project.label.as_deref().unwrap_or(&project.name)
}

fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// `main`, `main (staging)`, or words for a run that names neither.
fn place_of(run: &RunRow) -> String {
    match (run.branch.as_str(), run.environment.as_str()) {
        ("", "") => "an unnamed branch".to_owned(),
        ("", environment) => environment.to_owned(),
        (branch, "") => branch.to_owned(),
        (branch, environment) => format!("{branch} ({environment})"),
    }
}

pub(crate) const fn ended_as(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Passed => "passed",
        RunStatus::Failed => "failed",
        RunStatus::TimedOut => "timed out",
        RunStatus::Interrupted => "was interrupted",
        RunStatus::Cancelled => "was cancelled",
        RunStatus::Initializing | RunStatus::Running | RunStatus::Finalizing => "goes on",
    }
}

/// Tests of a run that failed, timed out or were interrupted.
pub(super) const fn failed_tests(run: &RunRow) -> i64 {
    run.totals.failed_tests + run.totals.interrupted_tests
}
