//! What follows the end of runs, and ending those that nobody ends.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_ingest::{
    Checked, CompareBehind, CompareProject, Completion, FindHistories, JoinEvidence, JoinHistories,
    MoveExecutions, PoolTraces, Recompute, ReevaluateOutcomes, UnpackReport,
};
use callboard_query::{clusters, events, flakiness, quarantine, slower};
use callboard_store::feed;
use callboard_store::jobs::{self, Payload};
use callboard_store::runs::tokens;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// Rows of one batch.
const BATCH: i64 = 500;
/// How long the feed of all runs is kept, ms.
const GLOBAL_FEED_MS: i64 = 24 * 60 * 60 * 1000;

/// A run has ended: its numbers are checked.
pub(crate) async fn completion(ctx: JobContext, job: Completion) -> Result<Outcome<Completion>, JobError> {
    if check(&ctx, job.project, job.run).await? {
        let background = ctx.state().background();
        slower::judge_durations(&background, job.project, job.run, ctx.now()).await?;
        flakiness::find_newly_flaky(&background, job.project, job.run, ctx.now()).await?;
        events::run_evaluated(&background, job.project, job.run, false, ctx.now()).await?;
    }
    events::deliver(&ctx.state().background(), job.project, ctx.now()).await?;
    Ok(Outcome::Done)
}

/// A run changed after its end: its numbers are checked.
pub(crate) async fn recompute(ctx: JobContext, job: Recompute) -> Result<Outcome<Recompute>, JobError> {
    if check(&ctx, job.project, job.run).await? {
        events::run_evaluated(&ctx.state().background(), job.project, job.run, true, ctx.now()).await?;
    }
    events::deliver(&ctx.state().background(), job.project, ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Checks a run; returns whether it still exists.
async fn check(ctx: &JobContext, project: ProjectId, run: RunId) -> Result<bool, JobError> {
    match callboard_ingest::check_run(&ctx.state().background(), project, run, ctx.now()).await? {
        Checked::Repaired => tracing::error!(%run, "the numbers of a run were wrong and are repaired"),
        Checked::Right => {}
        Checked::Gone => return Ok(false),
    }
    callboard_ingest::check_paths(&ctx.state().background(), project, run, ctx.now()).await?;
    callboard_query::flakiness::judge_run(&ctx.state().background(), project, run).await?;
    callboard_ingest::queue_trace_pool(&ctx.state().background(), project, run, ctx.now()).await?;
    callboard_ingest::queue_joining(&ctx.state().background(), project, run, ctx.now()).await?;
    Ok(true)
}

/// A run was moved to another environment: its tests follow.
pub(crate) async fn move_executions(
    ctx: JobContext,
    job: MoveExecutions,
) -> Result<Outcome<MoveExecutions>, JobError> {
    let background = ctx.state().background();
    let outcome =
        ctx.in_steps(job, |job| callboard_ingest::move_executions(&background, job, ctx.now())).await?;
    if matches!(outcome, Outcome::Done) {
        check(&ctx, job.project, job.run).await?;
    }
    Ok(outcome)
}

/// Histories were joined, or made two again: their results follow.
pub(crate) async fn join_histories(
    ctx: JobContext,
    job: JoinHistories,
) -> Result<Outcome<JoinHistories>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| callboard_ingest::join_histories(&background, job, ctx.now())).await
}

/// Tests are new, or it became known how paths were written before: tests with two are looked for.
pub(crate) async fn find_histories(
    ctx: JobContext,
    job: FindHistories,
) -> Result<Outcome<FindHistories>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| callboard_ingest::find_histories(&background, job, ctx.now())).await
}

/// What tests decided has changed: the runs behind are compared again.
pub(crate) async fn compare_behind(
    ctx: JobContext,
    job: CompareBehind,
) -> Result<Outcome<CompareBehind>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| callboard_ingest::compare_behind(&background, job)).await
}

/// A project has another default branch: its runs are compared again.
pub(crate) async fn compare_project(
    ctx: JobContext,
    job: CompareProject,
) -> Result<Outcome<CompareProject>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| callboard_ingest::compare_project(&background, job)).await
}

/// Stored executions are judged by the rule of today.
pub(crate) async fn reevaluate_outcomes(
    ctx: JobContext,
    job: ReevaluateOutcomes,
) -> Result<Outcome<ReevaluateOutcomes>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| callboard_ingest::reevaluate_outcomes(&background, job, ctx.now())).await
}

/// The traces of a run share their common parts.
pub(crate) async fn pool_traces(ctx: JobContext, job: PoolTraces) -> Result<Outcome<PoolTraces>, JobError> {
    let background = ctx.state().background();
    ctx.in_steps(job, |job| callboard_ingest::pool_traces(&background, job, ctx.now())).await
}

/// The evidence of a run comes together.
pub(crate) async fn join_evidence(
    ctx: JobContext,
    job: JoinEvidence,
) -> Result<Outcome<JoinEvidence>, JobError> {
    while ctx.has_time() {
        if !callboard_ingest::join_evidence(&ctx.state().background(), job, ctx.now()).await? {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}

/// A report with many files is unpacked.
pub(crate) async fn unpack_report(
    ctx: JobContext,
    job: UnpackReport,
) -> Result<Outcome<UnpackReport>, JobError> {
    let rest = callboard_ingest::unpack_report(&ctx.state().background(), job, &|| ctx.has_time(), ctx.now())
        .await?;
    Ok(rest.map_or(Outcome::Done, Outcome::GoOn))
}

/// What could not be stored for long is tried again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ResumeStoring {}

impl Payload for ResumeStoring {
    // From when it was about evidence alone.
    const KIND: &'static str = "resume_joining";
}

/// Takes jobs up again that failed too often to be tried by themselves: results
/// and reports are taken while the object store is away.
pub(crate) async fn resume_storing(
    ctx: JobContext,
    _: ResumeStoring,
) -> Result<Outcome<ResumeStoring>, JobError> {
    let mut session = ctx.store().db().begin().await?;
    let mut resumed = 0;
    for kind in [JoinEvidence::KIND, UnpackReport::KIND] {
        resumed += jobs::revive(&mut session, kind, ctx.now()).await?;
    }
    session.commit().await?;
    if resumed > 0 {
        tracing::warn!(resumed, "what could not be stored is tried again");
    }
    Ok(Outcome::Done)
}

/// Runs that nobody feeds any more are ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SweepStaleRuns {}

impl Payload for SweepStaleRuns {
    const KIND: &'static str = "sweep_stale_runs";
}

/// Ends what fell silent.
pub(crate) async fn sweep_stale_runs(
    ctx: JobContext,
    _: SweepStaleRuns,
) -> Result<Outcome<SweepStaleRuns>, JobError> {
    let swept = callboard_ingest::sweep_stale_runs(&ctx.state().background(), ctx.now()).await?;
    if swept.ended > 0 {
        tracing::info!(ended = swept.ended, "ended runs that fell silent");
    }
    Ok(Outcome::Done)
}

/// Feeds and tokens whose time is over are purged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgeFeeds {}

impl Payload for PurgeFeeds {
    const KIND: &'static str = "purge_feeds";
}

/// Deletes events nobody will read any more, and tokens that open nothing.
pub(crate) async fn purge_feeds(ctx: JobContext, job: PurgeFeeds) -> Result<Outcome<PurgeFeeds>, JobError> {
    while ctx.has_time() {
        let mut session = ctx.store().db().begin().await?;
        let now = ctx.now();
        let of_runs = feed::purge_runs(&mut session, now, BATCH).await?;
        let before = Timestamp(now.millis() - GLOBAL_FEED_MS);
        let of_all = feed::purge_global(&mut session, before, BATCH).await?;
        let tokens = tokens::purge(&mut session, now, BATCH).await?;
        session.commit().await?;
        if of_runs + of_all + tokens == 0 {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}

/// Quarantines whose time is over are ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct EndQuarantines {}

impl Payload for EndQuarantines {
    const KIND: &'static str = "end_quarantines";
}

/// Releases the tests that were set aside until now at most.
pub(crate) async fn end_quarantines(
    ctx: JobContext,
    _: EndQuarantines,
) -> Result<Outcome<EndQuarantines>, JobError> {
    quarantine::release_expired(&ctx.state().background(), ctx.now()).await?;
    Ok(Outcome::Done)
}

/// Failures that older rules told apart are told anew.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReFingerprint {}

impl Payload for ReFingerprint {
    const KIND: &'static str = "re_fingerprint";
}

/// Leads what newer rules read of stored failures to the clusters they are in.
pub(crate) async fn re_fingerprint(
    ctx: JobContext,
    job: ReFingerprint,
) -> Result<Outcome<ReFingerprint>, JobError> {
    while ctx.has_time() {
        if !clusters::follow_rules(&ctx.state().background(), ctx.now()).await? {
            return Ok(Outcome::Done);
        }
    }
    Ok(Outcome::GoOn(job))
}
