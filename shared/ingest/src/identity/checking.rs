//! What a run that is over tells about the paths of its project: how they were written
//! before, and which joins of histories were wrong.

use std::collections::HashSet;

use callboard_core::retry::repeated;
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::ingest::SourcePaths;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::history_joins::{self, Decider, HistoryJoin, JoinState};
use callboard_store::test_cases::carrying;
use callboard_store::{boxed, runs, source_paths};

use crate::identity::decisions::undo_now;
use crate::transaction::follow_up::{FindHistories, JoinHistories};
use crate::{Context, Result};

/// Learns from the paths of a run that is over, and makes tests two again that it shows to be two.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn check_paths(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    repeated(|| take_left_behind(ctx, project, run, now)).await?;
    let details = runs::details(&mut ctx.store.db().read().await?, project, run).await?;
    let Some(paths) = SourcePaths::from_json(&details.metadata) else { return Ok(()) };
    // Where a work tree is, a path is that of one file.
    if paths.is_of_git {
        repeated(|| mark_rooted(ctx, project, run, now)).await?;
    }
    repeated(|| learn(ctx, project, &paths, now)).await
}

/// Has results moved that were on their way to a test when it was joined.
async fn take_left_behind(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    if !history_joins::has_any(&mut session, project).await? {
        return Ok(());
    }
    let tests = carrying::left_behind(&mut session, project, run).await?;
    drop(session);
    if tests.is_empty() {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    let left: HashSet<TestCaseId> = tests.iter().copied().map(TestCaseId).collect();
    for join in history_joins::of_tests(&mut session, project, tests).await? {
        if let Some(join) = history_joins::lock(&mut session, project, join.id).await?
            && join.state == JoinState::Joined
            && left.contains(&join.joined)
        {
            history_joins::set_state(&mut session, &join, JoinState::Joining, &join.reason, None).await?;
        }
    }
    JoinHistories::enqueue(&mut session, project, now).await?;
    Ok(session.commit().await?)
}

/// Notes that the paths of a run are those of one file each, and undoes joins that say they are the
/// earlier paths of others.
async fn mark_rooted(ctx: &Context, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    let tests = carrying::not_rooted(&mut ctx.store.db().read().await?, project, run).await?;
    if tests.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = tests.iter().map(|test| test.get()).collect();
    let mut session = ctx.store.db().begin().await?;
    carrying::mark_rooted(&mut session, project, ids.clone()).await?;
    let joins = history_joins::of_tests(&mut session, project, ids).await?;
    let wrong: Vec<_> =
        joins.into_iter().filter(|join| tests.iter().any(|test| join.is_earlier(*test))).collect();
    let reason = format!("run {run} has its own test under the earlier path");
    undo_own(&mut session, project, &wrong, &reason, now).await?;
    Ok(session.commit().await?)
}

/// Notes how paths were written before, and which of the earlier paths several files had.
async fn learn(ctx: &Context, project: ProjectId, paths: &SourcePaths, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    let known = source_paths::prefixes(&mut session, project).await?;
    let shared = source_paths::shared_among(&mut session, project, paths.shared.clone()).await?;
    drop(session);
    let news: Vec<String> = paths.shared.iter().filter(|path| !shared.contains(*path)).cloned().collect();
    let has_prefix = paths.prefix.is_change() && !known.contains(&paths.prefix);
    if news.is_empty() && !has_prefix {
        return Ok(());
    }
    let mut session = ctx.store.db().begin().await?;
    if !news.is_empty() {
        source_paths::add_shared(&mut session, project, &news).await?;
        let wrong = history_joins::of_earlier_paths(&mut session, project, news).await?;
        undo_own(&mut session, project, &wrong, SHARED, now).await?;
    }
    if has_prefix && source_paths::add_prefix(&mut session, project, &paths.prefix).await? {
        FindHistories { project, after: TestCaseId(0), until: None }.enqueue(&mut session, now).await?;
    }
    Ok(session.commit().await?)
}

/// Why people are asked about a path that was that of several files.
pub(super) const SHARED: &str = "another file of the repository had the earlier path, too";
/// Why people are asked about a path that several tests had.
pub(super) const DISPUTED: &str = "several tests had the earlier path";

/// Whether the service undid a join because it cannot know which test is meant: then people are asked.
pub(super) fn asks_people(join: &HistoryJoin) -> bool {
    !join.is_by_people && [SHARED, DISPUTED].contains(&join.reason.as_str())
}

/// Makes tests two again that the service joined; what people joined stays.
pub(super) async fn undo_own(
    session: &mut Session,
    project: ProjectId,
    joins: &[HistoryJoin],
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    for join in joins {
        if let Some(join) = history_joins::lock(session, project, join.id).await?
            && join.state.is_one()
            && !join.is_by_people
        {
            undo_now(session, &join, reason, (now, Decider::Service)).await?;
        }
    }
    Ok(())
}
