//! Commits between a run and the last green run before it.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::is_sha;

use super::access::Access;
use super::commits::{CommitList, CommitsParams, commits};
use super::error::SourceControlError;
use crate::Context;
use crate::run_views::{SinceGreen, since_green};

/// Commits that are listed; the code host has the rest.
const COMMITS: u32 = 50;

/// Why there is nothing to list. The text is one sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCommits {
    /// No green run came before.
    #[error("No green run came before this one.")]
    NoGreenRun,
    /// One of the two runs does not name its commit.
    #[error("This run or the last green run does not name its commit.")]
    UnknownCommit,
    /// Both runs tested the same commit.
    #[error("This run and the last green run tested the same commit.")]
    SameCommit,
    /// Retention deleted the run.
    #[error("The first run that showed this failure was deleted.")]
    FirstRunDeleted,
    /// Nothing leads from the green commit to this one.
    #[error("The commit of the last green run contains everything that this run tested.")]
    NothingNew,
}

/// What lies between a run and the last green run before it.
#[derive(Debug, Clone)]
pub enum SinceGreenCommits {
    /// These commits, newest first.
    Commits(CommitList),
    /// Nothing.
    None(NoCommits),
}

/// The two ends of the range: the commit of the green run, then that of the
/// run.
pub(super) fn ends(since: &SinceGreen) -> Result<(&str, &str), NoCommits> {
    let known = |commit: &'_ str| is_sha(commit);
    let range = since.commit_range.as_ref();
    let (from, to) = (range.map(|range| range.from_sha.as_str()), range.map(|range| range.to_sha.as_str()));
    let green = since.green.as_ref().and_then(|green| green.place.commit.as_deref());
    if since.green.is_none() && range.is_none() {
        return Err(NoCommits::NoGreenRun);
    }
    if !from.or(green).is_some_and(known) || !to.or(since.current.commit.as_deref()).is_some_and(known) {
        return Err(NoCommits::UnknownCommit);
    }
    let range = since.commit_range.as_ref().ok_or(NoCommits::SameCommit)?;
    Ok((&range.from_sha, &range.to_sha))
}

/// Commits between a run and the last green run before it.
///
/// # Errors
/// [`SourceControlError`].
pub async fn commits_since_green(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    run: RunId,
    now: Timestamp,
) -> Result<SinceGreenCommits, SourceControlError> {
    let since = since_green(ctx, project, run, None).await?;
    let (base, head) = match ends(&since) {
        Ok(ends) => ends,
        Err(none) => return Ok(SinceGreenCommits::None(none)),
    };
    let params = CommitsParams {
        branch: Some(head.to_owned()),
        base: Some(base.to_owned()),
        limit: COMMITS,
        after: None,
    };
    let list = commits(ctx, access, project, params, now).await?;
    Ok(match list.commits.items.is_empty() {
        true => SinceGreenCommits::None(NoCommits::NothingNew),
        false => SinceGreenCommits::Commits(list),
    })
}
