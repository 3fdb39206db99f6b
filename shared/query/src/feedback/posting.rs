//! Posts what a run says. The state `sending` is committed before the call, and the marker of a comment before it is
//! created: whatever dies, the next attempt finds what was written.

mod outcome;

use callboard_auth::scope::Authorized;
use callboard_domain::feedback::{
    self, Audience, FeedbackAction, FeedbackFacts, FeedbackKind, FeedbackSettings, FeedbackState,
};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{Comment, CommitStatus, Provider, ScmError};
use callboard_store::db::Session;
use callboard_store::jobs::{self, Payload};
use callboard_store::runs::{self, RunRow};
use callboard_store::scm_feedback::{self, FeedbackRow, TargetRow};
use callboard_store::{StoreError, boxed};
use serde::{Deserialize, Serialize};

use super::facts::facts;
use crate::projects::required;
use crate::scm::{Access, Host, SourceControlError, is_whole_sha, open_request};
use crate::shapes::non_empty;
use crate::{Context, Result, settings};
use outcome::{Attempt, Ended, Posted};

/// How long a place belongs to whoever writes to it, ms: longer than all calls of one attempt may take.
const LEASE_MS: i64 = 3 * 60 * 1000;
/// When a place that somebody else writes to is looked at again, ms.
const BUSY_MS: i64 = 10_000;
/// How often a deleted comment is made anew by itself.
const MAX_REMADE: i64 = 1;
/// Bytes of the longest comment; Bitbucket takes fewer.
const MAX_COMMENT_BYTES: usize = 60_000;
const MAX_BITBUCKET_BYTES: usize = 30_000;

/// A run is to say at its code host what it has not said yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PostFeedback {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
    /// Whether a person asked for it.
    #[serde(default)]
    pub is_asked: bool,
}

impl Payload for PostFeedback {
    const KIND: &'static str = "post_feedback";
}

/// Posts what is due of a run. What fails is tried again by another job.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn post(ctx: &Context, access: &Access<'_>, job: PostFeedback, now: Timestamp) -> Result<()> {
    let rows = scm_feedback::of_run(&mut ctx.store.db().read().await?, job.project, job.run).await?;
    for row in rows {
        let is_open = matches!(row.state, FeedbackState::Pending | FeedbackState::Sending);
        if is_open && row.next_at.is_none_or(|at| at <= now) {
            post_one(ctx, access, job, row.kind, now).await?;
        }
    }
    Ok(())
}

async fn post_one(
    ctx: &Context,
    access: &Access<'_>,
    job: PostFeedback,
    kind: FeedbackKind,
    now: Timestamp,
) -> Result<()> {
    let Some((attempt, run)) = begin(ctx, job, kind, now).await? else { return Ok(()) };
    let ended = match attempt_it(ctx, access, &attempt, &run, now).await {
        Ok(ended) => ended,
        Err(SourceControlError::Query(error)) => return Err(error),
        Err(SourceControlError::NotConfigured(missing)) => Ended::Failed(missing.to_string()),
        Err(SourceControlError::Upstream { error, .. }) => Ended::Upstream(error),
    };
    attempt.finish(ctx, ended, now).await
}

/// Counts an attempt, before anybody is called. `None` when there is nothing to do.
async fn begin(
    ctx: &Context,
    job: PostFeedback,
    kind: FeedbackKind,
    now: Timestamp,
) -> Result<Option<(Attempt, RunRow)>> {
    let mut session = ctx.store.db().begin().await?;
    let Some(mut row) = scm_feedback::lock(&mut session, job.project, job.run, kind).await? else {
        return Ok(None);
    };
    if !matches!(row.state, FeedbackState::Pending | FeedbackState::Sending) {
        return Ok(None);
    }
    let Some(run) = runs::get(&mut session, job.project, job.run).await? else { return Ok(None) };
    // One that goes on says so when it ends.
    if !run.status.is_final() {
        return Ok(None);
    }
    let settings: FeedbackSettings = settings::stored(&mut session, Some(job.project)).await?;
    row.attempts += 1;
    row.state = FeedbackState::Sending;
    row.next_at = None;
    row.updated_at = now;
    scm_feedback::save(&mut session, job.project, &row).await?;
    let project = required(&mut session, job.project).await?;
    session.commit().await?;
    let context = settings.context(&project.name);
    let is_on = settings.kinds().any(|on| on == kind);
    let commit = run.commit_sha.clone();
    Ok(Some((Attempt { job, row, context, is_on, commit }, run)))
}

/// Why a run says nothing, whatever its code host knows.
fn reason_for_silence(attempt: &Attempt, run: &RunRow) -> Option<String> {
    if !attempt.is_on {
        return Some("It was switched off in the project's settings.".to_owned());
    }
    if let Some(by) = run.superseded_by {
        return Some(format!("Run {by} took the place of this run."));
    }
    run.is_dirty.then(|| "The run tested uncommitted changes.".to_owned())
}

async fn attempt_it(
    ctx: &Context,
    access: &Access<'_>,
    attempt: &Attempt,
    run: &RunRow,
    now: Timestamp,
) -> Result<Ended, SourceControlError> {
    if let Some(reason) = reason_for_silence(attempt, run) {
        return Ok(Ended::Skipped(reason));
    }
    let project = Authorized::of_job(attempt.job.project);
    let host = Host::open(ctx, access, project, now).await?;
    match attempt.row.kind {
        FeedbackKind::Comment => comment(ctx, &host, attempt, run, now).await,
        FeedbackKind::Status => status(ctx, &host, attempt, run, now).await,
    }
}

async fn comment(
    ctx: &Context,
    host: &Host,
    attempt: &Attempt,
    run: &RunRow,
    now: Timestamp,
) -> Result<Ended, SourceControlError> {
    let branch = non_empty(&run.branch);
    let place = (run.commit_sha.as_deref(), branch.as_deref());
    let Some(request) = open_request(ctx, host, place, now).await? else {
        return Ok(Ended::Skipped("No open request has this commit or branch.".to_owned()));
    };
    let target = format!("{} {}#{}", host.provider.as_str(), repository_name(host), request.number);
    let lease = match take_lease(ctx, attempt, run, target, now).await? {
        Lease::Taken(lease) => *lease,
        Lease::Busy => return Ok(Ended::Busy),
        Lease::Newer(newer) => return Ok(Ended::Skipped(newer)),
    };
    let audience = if request.is_fork { Audience::Fork } else { Audience::Repository };
    let max_bytes =
        if host.provider == Provider::Bitbucket { MAX_BITBUCKET_BYTES } else { MAX_COMMENT_BYTES };
    let facts = facts_or_release(ctx, attempt, run, &lease, now).await?;
    let text = |marker: &str| {
        let marker = marked(marker);
        let body = feedback::comment(&facts, audience, max_bytes - marker.len() - 2);
        format!("{marker}\n\n{body}")
    };
    let written = write_comment(ctx, host, attempt, &lease, request.number, text, now).await;
    let request = i64::try_from(request.number).ok();
    Ok(posted(lease, request, run, written))
}

/// The repository, however its address is spelled in the settings.
fn repository_name(host: &Host) -> String {
    host.url.trim_end_matches('/').trim_end_matches(".git").to_lowercase()
}

/// The line by which a comment is recognised; no provider shows it.
fn marked(marker: &str) -> String {
    format!("[//]: # (callboard-feedback {marker})")
}

/// What a call left behind.
struct Written {
    action: FeedbackAction,
    comment: Option<Comment>,
    /// The marker it carries.
    marker: String,
    times_remade: i64,
}

/// Edits the comment of a request, or creates it. `None` when people deleted it and want none.
async fn write_comment(
    ctx: &Context,
    host: &Host,
    attempt: &Attempt,
    lease: &TargetRow,
    request: u64,
    text: impl Fn(&str) -> String,
    now: Timestamp,
) -> Result<Option<Written>, SourceControlError> {
    let marker = marked(&lease.marker);
    let body = text(&lease.marker);
    let edit = async |id: &str| host.ask(ctx, now, |client| client.update_comment(request, id, &body)).await;
    let find = async || host.ask(ctx, now, |client| client.find_comment(request, &marker)).await;
    let written = |action, comment| Written {
        action,
        comment: Some(comment),
        marker: lease.marker.clone(),
        times_remade: lease.times_remade,
    };
    if let Some(id) = &lease.external_id {
        if let Some(comment) = edit(id).await? {
            return Ok(Some(written(FeedbackAction::Updated, comment)));
        }
        if find().await?.is_some_and(|found| found.id == *id) {
            // It is there, and nobody may edit it.
            let permission = "to edit its own comments".to_owned();
            return Err(host.failed(ScmError::MissingPermission { provider: host.provider, permission }));
        }
        if lease.times_remade >= MAX_REMADE && !attempt.job.is_asked {
            return Ok(None);
        }
        // Whoever copied the old marker is not found by the new one.
        let renewed = attempt.renew_marker(ctx, lease, now).await?;
        let body = text(&renewed);
        let comment = host.ask(ctx, now, |client| client.create_comment(request, &body)).await?;
        let times_remade = if attempt.job.is_asked { 0 } else { lease.times_remade + 1 };
        let action = FeedbackAction::Recreated;
        return Ok(Some(Written { action, comment: Some(comment), marker: renewed, times_remade }));
    }
    // Before the first attempt nobody can have written the marker.
    let was_tried = lease.lease > 1;
    if was_tried
        && let Some(found) = find().await?
        && let Some(comment) = edit(&found.id).await?
    {
        return Ok(Some(written(FeedbackAction::Updated, comment)));
    }
    let comment = host.ask(ctx, now, |client| client.create_comment(request, &body)).await?;
    Ok(Some(written(FeedbackAction::Created, comment)))
}

async fn status(
    ctx: &Context,
    host: &Host,
    attempt: &Attempt,
    run: &RunRow,
    now: Timestamp,
) -> Result<Ended, SourceControlError> {
    let Some(commit) = run.commit_sha.as_deref().filter(|sha| is_whole_sha(sha)) else {
        return Ok(Ended::Skipped("The run names no whole commit.".to_owned()));
    };
    let target = format!("{} {}@{commit} {}", host.provider.as_str(), repository_name(host), attempt.context);
    let lease = match take_lease(ctx, attempt, run, target, now).await? {
        Lease::Taken(lease) => *lease,
        Lease::Busy => return Ok(Ended::Busy),
        Lease::Newer(newer) => return Ok(Ended::Skipped(newer)),
    };
    let facts = facts_or_release(ctx, attempt, run, &lease, now).await?;
    let (is_success, description) = feedback::status(&facts);
    let status = CommitStatus {
        context: &attempt.context,
        is_success,
        description: &description,
        url: &facts.run_url,
    };
    let set = host.ask(ctx, now, |client| client.set_status(commit, &status)).await;
    let written = set.map(|()| {
        let marker = lease.marker.clone();
        Some(Written { action: FeedbackAction::Set, comment: None, marker, times_remade: 0 })
    });
    Ok(posted(lease, None, run, written))
}

/// What the run says. Where that cannot be read, the place is free for the next attempt.
async fn facts_or_release(
    ctx: &Context,
    attempt: &Attempt,
    run: &RunRow,
    lease: &TargetRow,
    now: Timestamp,
) -> Result<FeedbackFacts, SourceControlError> {
    match facts(ctx, run).await {
        Ok(facts) => Ok(facts),
        Err(error) => {
            let mut session = ctx.store.db().begin().await?;
            attempt.release(&mut session, lease.clone(), now).await?;
            session.commit().await?;
            Err(error.into())
        }
    }
}

fn posted(
    lease: TargetRow,
    request: Option<i64>,
    run: &RunRow,
    written: Result<Option<Written>, SourceControlError>,
) -> Ended {
    Ended::Posted(Box::new(Posted { lease, request, run: run.id, order: run.order_at, written }))
}

enum Lease {
    Taken(Box<TargetRow>),
    /// Somebody else writes there.
    Busy,
    /// A newer run is shown: which one, as a sentence.
    Newer(String),
}

/// Takes a place for this attempt, unless a newer run is shown there.
async fn take_lease(
    ctx: &Context,
    attempt: &Attempt,
    run: &RunRow,
    target: String,
    now: Timestamp,
) -> Result<Lease, SourceControlError> {
    let project = attempt.job.project;
    let marker = new_marker()?;
    let mut session = ctx.store.db().begin().await?;
    let mut row = scm_feedback::lock_target(&mut session, project, &target, &marker, now).await?;
    if row.lease_until.is_some_and(|until| until > now) {
        session.commit().await?;
        return Ok(Lease::Busy);
    }
    if let Some(shown) = row.shown
        && shown > (run.order_at, run.id)
        // A deleted run is no reason to keep quiet.
        && runs::get(&mut session, project, shown.1).await?.is_some()
    {
        session.commit().await?;
        return Ok(Lease::Newer(format!("Run {}, which is newer, is shown.", shown.1)));
    }
    row.lease += 1;
    row.lease_until = Some(Timestamp(now.millis() + LEASE_MS));
    scm_feedback::save_target(&mut session, project, &row, now).await?;
    session.commit().await?;
    Ok(Lease::Taken(Box::new(row)))
}

/// 128 random bits.
fn new_marker() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| StoreError::Damaged("no random bytes for a marker"))?;
    Ok(hex::encode(bytes))
}

/// Queues the next look at a run.
async fn enqueue(
    session: &mut Session,
    attempt: &Attempt,
    row: &FeedbackRow,
    due: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let PostFeedback { project, run, .. } = attempt.job;
    let (kind, millis) = (row.kind.as_str(), now.millis());
    let key = format!("feedback:{project}:{run}:{kind}:{}:{}:{millis}", row.wanted, row.attempts);
    jobs::enqueue_at(session, &key, Some(project), &attempt.job, due, now).await?;
    Ok(())
}
