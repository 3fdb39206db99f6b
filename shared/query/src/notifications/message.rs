//! The text of messages, from the present state of what an event is about.

use callboard_domain::ids::{ClusterId, ProjectId, RunId, TestCaseId};
use callboard_domain::notifications::{Message, NotificationEvent};
use callboard_domain::status::RunStatus;
use callboard_domain::text::truncate_text;
use callboard_store::clusters::{self, ClusterRow, reads};
use callboard_store::db::Session;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::{self, RunRow};
use callboard_store::test_cases;

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
) -> Result<Message> {
    let mut facts = vec![run.totals.in_words()];
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
        _ => format!("{name}: run {} on {place} {}", run.id, ended_as(run.status)),
    };
    Ok(Message {
        run_id: Some(run.id.get()),
        status: Some(run.status.as_str().to_owned()),
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

/// A message about a test that left quarantine.
pub(super) async fn about_release(
    ctx: &Context,
    session: &mut Session,
    project: &ProjectRow,
    case: TestCaseId,
) -> Result<Option<Message>> {
    let Some(row) = test_cases::get(session, project.id, case).await? else { return Ok(None) };
    let headline = format!("{}: a test left quarantine", shown_name(project));
    let facts = vec![row.title, row.file_path];
    Ok(Some(Message {
        test_case_id: Some(case.get()),
        ..message(project, headline, facts, ctx.links.test_case(case.get()))
    }))
}

fn message(project: &ProjectRow, headline: String, facts: Vec<String>, url: String) -> Message {
    let short = |text: String| truncate_text(text, MAX_FACT_CHARS);
    Message {
        headline: short(headline),
        facts: facts.into_iter().map(short).collect(),
        url,
        project_id: Some(project.id.get()),
        project_name: Some(project.name.clone()),
        run_id: None,
        status: None,
        branch: None,
        environment: None,
        cluster_id: None,
        test_case_id: None,
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
