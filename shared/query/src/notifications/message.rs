//! The text of messages, from the present state of what an event is about.

use callboard_domain::human::duration;
use callboard_domain::ids::{ClusterId, DiagnosisId, ProjectId, RunId, TestCaseId};
use callboard_domain::notifications::{FailureLine, Message, NotificationEvent, one_line};
use callboard_domain::status::RunStatus;
use callboard_store::clusters::{self, ClusterRow, reads};
use callboard_store::db::Session;
use callboard_store::executions::brief::{self, BriefRow};
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};
use callboard_store::{StoreError, diagnoses, test_cases};

use crate::{Context, Result};

/// New failures that a message lists.
const NAMED_FAILURES: usize = 5;
/// New failures of a run that are looked at.
const MOST_NEW_FAILURES: i64 = 500;
/// Clusters of a run that are looked at.
const MOST_NEW_CAUSES: i64 = 100;
/// Tests that pass again and are named.
const NAMED_FIXED: usize = 3;
/// Longest texts, in characters.
const MAX_FACT_CHARS: usize = 300;
const MAX_TITLE_CHARS: usize = 120;
const MAX_CAUSE_CHARS: usize = 160;
const MAX_OWNER_CHARS: usize = 60;

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
    let (failures, more_failures) = match run.status {
        RunStatus::Passed => (Vec::new(), 0),
        _ => new_failures(ctx, session, project.id, run.id).await?,
    };
    let listed = failures.iter().map(|failure| 1 + failure.same_cause).sum::<i64>() + more_failures;
    facts.extend(in_comparison(run, listed));
    facts.extend(fixed_tests(session, project.id, run).await?);
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
        failures,
        more_failures,
        ..message(project, headline, facts, ctx.links.run(run.id.get()))
    })
}

/// `2 new failures, 5 known, 1 in quarantine, 3 flaky`: what counts of them says how much is new.
fn in_comparison(run: &RunRow, listed: i64) -> Option<String> {
    let compared = run.compared.as_ref()?;
    let failed = failed_tests(run);
    // A test without a baseline is no regression, and new when its cause is.
    let new = compared.new_regressions.max(listed);
    let known = failed - new - run.quarantined_failed;
    let counts = [
        (new, if new == 1 { "new failure" } else { "new failures" }),
        (known.max(0), "known"),
        (run.quarantined_failed, "in quarantine"),
        (run.totals.flaky_tests, "flaky"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    (failed > 0 && !parts.is_empty()).then(|| parts.join(", "))
}

/// `Passes again: pays, ships and 3 more`.
async fn fixed_tests(session: &mut Session, project: ProjectId, run: &RunRow) -> Result<Option<String>> {
    let fixed = run.compared.as_ref().map_or(0, |compared| compared.fixed);
    if fixed == 0 {
        return Ok(None);
    }
    let most = i64::try_from(NAMED_FIXED).unwrap_or(i64::MAX);
    let rows = brief::fixed(session, project, run.id, most).await?;
    let cases: Vec<i64> = rows.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(session, project, cases).await?;
    let titles: Vec<&str> =
        rows.iter().filter_map(|row| cases.get(&row.test_case)).map(|case| case.title.as_str()).collect();
    if titles.is_empty() {
        return Ok(None);
    }
    let verb = if fixed == 1 { "Passes again" } else { "Pass again" };
    let more = fixed - i64::try_from(titles.len()).unwrap_or(fixed);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(Some(format!("{verb}: {}{more}", titles.join(", "))))
}

/// New failures of a run, one of each cause, and how many are not listed. Where a run says nothing about what was before,
/// those are new whose cause it is the first to show.
async fn new_failures(
    ctx: &Context,
    session: &mut Session,
    project: ProjectId,
    run: RunId,
) -> Result<(Vec<FailureLine>, i64)> {
    let new = reads::new_of_run(session, project, run, MOST_NEW_CAUSES).await?;
    let new: Vec<i64> = new.into_iter().map(ClusterId::get).collect();
    let rows = brief::new_failures(session, project, run, new, MOST_NEW_FAILURES).await?;
    // The rows are in the order of the run; of each cause the first one speaks.
    let mut listed: Vec<(&BriefRow, i64)> = Vec::new();
    let mut more = 0;
    for row in &rows {
        let is_same = |(known, _): &(&BriefRow, i64)| known.cluster.is_some() && known.cluster == row.cluster;
        match listed.iter().position(is_same) {
            Some(at) => listed[at].1 += 1,
            None if listed.len() < NAMED_FAILURES => listed.push((row, 0)),
            None => more += 1,
        }
    }
    let cases = listed.iter().map(|(row, _)| row.test_case.get()).collect();
    let cases = test_cases::get_many(session, project, cases).await?;
    let causes = listed.iter().filter_map(|(row, _)| row.cluster).map(ClusterId::get).collect();
    let causes = clusters::get_many(session, project, causes).await?;
    let line = |(row, same_cause): (&BriefRow, i64)| {
        let case = cases.get(&row.test_case)?;
        let path: Vec<&str> = case.suite_path.iter().chain([&case.title]).map(String::as_str).collect();
        let cause = causes.iter().find(|cause| Some(cause.id) == row.cluster).map(name_of);
        Some(FailureLine {
            title: one_line(&path.join(" › "), MAX_TITLE_CHARS),
            cause: cause.map(|cause| one_line(&cause, MAX_CAUSE_CHARS)),
            owner: case.meta.owner.as_ref().map(|owner| one_line(owner, MAX_OWNER_CHARS)),
            same_cause,
            url: ctx.links.execution(row.id.get()),
        })
    };
    Ok((listed.into_iter().filter_map(line).collect(), more))
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

/// A message about a test that became flaky.
pub(super) async fn about_flaky(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    case: TestCaseId,
    run: Option<&RunRow>,
    score: i64,
) -> Result<Option<Message>> {
    let Some(row) = test_cases::get(session, project.id, case).await? else { return Ok(None) };
    let place = run.map(place_of).unwrap_or_default();
    let headline = format!("{}: a test became flaky on {place}", shown_name(project));
    let mut facts = vec![row.title, format!("Flaky score {score} of 100"), row.file_path];
    facts.extend(row.meta.owner.map(|owner| format!("Owner: {owner}")));
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
            format!("{name}: {}% of the storage quota is used", self.level)
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
    let short = |text: &String| one_line(text, MAX_FACT_CHARS);
    Message {
        headline: short(&headline),
        facts: facts.iter().map(short).collect(),
        url,
        project_id: Some(project.id.get()),
        project_name: Some(project.name.clone()),
        ..Message::default()
    }
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

/// Reads a stored message.
pub(super) fn read_message(payload: &str) -> Result<Message> {
    Ok(serde_json::from_str(payload).map_err(|_| StoreError::Damaged("the message of a delivery"))?)
}
