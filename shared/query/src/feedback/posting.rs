//! Posts what a run says. The state `sending` is committed before the call, and the marker of a comment before it is
//! created: whatever dies, the next attempt finds what was written. An attempt that never ends is given up after a few.

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
use callboard_store::{StoreError, boxed, projects};
use serde::{Deserialize, Serialize};

use super::facts::facts;
use crate::projects::required;
use crate::scm::{
    Access, Host, RunPlace, SourceControlError, is_whole_sha, open_request, repository_identity,
};
use crate::shapes::non_empty;
use crate::{Context, Result, settings};
use outcome::{Attempt, Ended, MAX_ATTEMPTS, Posted, may_arrive};

/// How long a place belongs to whoever writes to it, ms: longer than all calls of one attempt may take.
const LEASE_MS: i64 = 3 * 60 * 1000;
/// When a place that somebody else writes to is looked at again, ms.
const BUSY_MS: i64 = 10_000;
/// How often a deleted comment is created again without being asked for.
const MAX_REMADE: i64 = 1;
/// How often a comment that the account may not edit is replaced before one is edited.
const MAX_REPLACED: i64 = 1;
/// Bytes of the longest comment; Bitbucket takes fewer.
const MAX_COMMENT_BYTES: usize = 60_000;
const MAX_BITBUCKET_BYTES: usize = 30_000;

const NAME_IS_TAKEN: &str = "Another project sets a status of this name in the same repository. Choose another name in \
    the settings of feedback.";

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
    let project = required(&mut session, job.project).await?;
    let context = settings.context(job.project, &project.name);
    let is_on = settings.kinds().any(|on| on == kind);
    let commit = run.commit_sha.clone();
    if row.attempts >= MAX_ATTEMPTS {
        // No attempt came to an end. The other kind gets a job of its own: this one may have used up its attempts.
        let attempt = Attempt { job, row, context, is_on, commit };
        attempt.give_up(&mut session, now).await?;
        session.commit().await?;
        return Ok(None);
    }
    row.attempts += 1;
    row.state = FeedbackState::Sending;
    row.next_at = None;
    row.updated_at = now;
    scm_feedback::save(&mut session, job.project, &row).await?;
    session.commit().await?;
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
    let place = RunPlace::new(run.commit_sha.as_deref(), branch.as_deref(), run.pull_request.as_deref());
    let Some(request) = open_request(ctx, host, place, now).await? else {
        return Ok(Ended::Skipped("No open request has this commit or branch.".to_owned()));
    };
    let target = format!("{} {}#{}", host.provider.as_str(), host.identity, request.number);
    let lease = match take_lease(ctx, attempt, run, target, new_marker()?, now).await? {
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
    times_replaced: i64,
}

impl Written {
    fn new(action: FeedbackAction, comment: Option<Comment>, place: &TargetRow) -> Self {
        let (times_remade, times_replaced) = (place.times_remade, place.times_replaced);
        Self { action, comment, marker: place.marker.clone(), times_remade, times_replaced }
    }
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
    // A comment that was edited belongs to the account.
    let edited = |comment| {
        let written = Written::new(FeedbackAction::Updated, Some(comment), lease);
        Written { times_replaced: 0, ..written }
    };
    if let Some(id) = &lease.external_id {
        let is_foreign = match edit(id).await {
            Ok(Some(comment)) => return Ok(Some(edited(comment))),
            Ok(None) => host.ask(ctx, now, |client| client.has_comment(request, id)).await?,
            Err(error) if is_denied(&error) => true,
            Err(error) => return Err(error),
        };
        let mut again = TargetRow { marker: new_marker()?, external_id: None, ..lease.clone() };
        let action = if is_foreign {
            // Another account wrote it, or this one may write nothing at all, which creating a comment tells.
            if lease.times_replaced >= MAX_REPLACED && !attempt.job.is_asked {
                let permission = "to edit its own comments".to_owned();
                return Err(host.failed(ScmError::MissingPermission { provider: host.provider, permission }));
            }
            again.times_replaced += 1;
            FeedbackAction::Replaced
        } else {
            if lease.times_remade >= MAX_REMADE && !attempt.job.is_asked {
                return Ok(None);
            }
            again.times_remade = if attempt.job.is_asked { 0 } else { lease.times_remade + 1 };
            FeedbackAction::Recreated
        };
        // Whoever copied the old marker is not found by the new one, which is stored before the comment is created.
        attempt.save_place(ctx, &again, now).await?;
        let body = text(&again.marker);
        return match host.ask(ctx, now, |client| client.create_comment(request, &body)).await {
            Ok(comment) => Ok(Some(Written::new(action, Some(comment), &again))),
            Err(error) => {
                if !may_arrive(&error) {
                    attempt.save_place(ctx, lease, now).await?;
                }
                Err(error)
            }
        };
    }
    // Before the first attempt nobody can have written the marker.
    let was_tried = lease.lease > 1;
    if was_tried
        && let Some(found) = found_comment(ctx, host, attempt, (request, &marker), now).await?
        && let Some(comment) = edit(&found.id).await?
    {
        return Ok(Some(edited(comment)));
    }
    let comment = host.ask(ctx, now, |client| client.create_comment(request, &body)).await?;
    Ok(Some(Written::new(FeedbackAction::Created, Some(comment), lease)))
}

/// The comment that an earlier attempt created, if it did. A person who asks gets a comment even where there are too
/// many to search them all.
async fn found_comment(
    ctx: &Context,
    host: &Host,
    attempt: &Attempt,
    (request, marker): (u64, &str),
    now: Timestamp,
) -> Result<Option<Comment>, SourceControlError> {
    match host.ask(ctx, now, |client| client.find_comment(request, marker)).await {
        Err(SourceControlError::Upstream { error: ScmError::TooManyComments { .. }, .. })
            if attempt.job.is_asked =>
        {
            Ok(None)
        }
        found => found,
    }
}

/// Whether the account may not do this.
const fn is_denied(error: &SourceControlError) -> bool {
    matches!(error, SourceControlError::Upstream { error: ScmError::MissingPermission { .. }, .. })
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
    let repository = format!("{} {}", host.provider.as_str(), host.identity);
    if !has_status_name(ctx, attempt, &repository).await? {
        return Ok(Ended::Failed(NAME_IS_TAKEN.to_owned()));
    }
    let target = format!("{repository}@{commit} {}", attempt.context);
    // Statuses are found by their name.
    let lease = match take_lease(ctx, attempt, run, target, String::new(), now).await? {
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
    let written = set.map(|()| Some(Written::new(FeedbackAction::Set, None, &lease)));
    Ok(posted(lease, None, run, written))
}

/// Whether no other project sets a status of this name in the repository. A project that does so no longer gives the name
/// back.
async fn has_status_name(ctx: &Context, attempt: &Attempt, repository: &str) -> Result<bool> {
    let (project, context) = (attempt.job.project, attempt.context.as_str());
    let mut session = ctx.store.db().begin().await?;
    let holder = scm_feedback::claim_status_name(&mut session, repository, context, project).await?;
    if holder != project {
        if sets_status(&mut session, holder, repository, context).await? {
            return Ok(false);
        }
        scm_feedback::give_status_name(&mut session, repository, context, project).await?;
    }
    session.commit().await?;
    Ok(true)
}

async fn sets_status(
    session: &mut Session,
    project: ProjectId,
    repository: &str,
    context: &str,
) -> Result<bool> {
    let Some(row) = projects::get(session, project).await? else { return Ok(false) };
    let settings: FeedbackSettings = settings::stored(session, Some(project)).await?;
    let is_on = settings.kinds().any(|kind| kind == FeedbackKind::Status);
    Ok(is_on
        && settings.context(project, &row.name) == context
        && repository_identity(session, project).await?.as_deref() == Some(repository))
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
    marker: String,
    now: Timestamp,
) -> Result<Lease, SourceControlError> {
    let project = attempt.job.project;
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
