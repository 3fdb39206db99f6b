//! Everything that the commits of a range changed.

use std::time::Duration;

use callboard_domain::suspects::{CommitChange, FileChange};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::CommitQuery;
use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::commits::{RepositoryCommit, page};
use super::diff::{StoredDiff, stored};
use super::error::SourceControlError;
use super::host::Host;
use crate::Context;

/// Commits of a range that are listed, and whose diffs are read: the newest ones.
pub(super) const MAX_COMMITS: u32 = 50;
/// Diffs that are asked for at a time.
const TOGETHER: usize = 4;
/// How long the diffs of a range may take together. What came in time is stored,
/// so the next attempt goes on from there.
const DEADLINE: Duration = Duration::from_secs(18);

/// The commits of a range and what they changed, as far as it could be read.
#[derive(Debug)]
pub(super) struct RangeChanges {
    /// Commits, newest first.
    pub(super) commits: Vec<RepositoryCommit>,
    /// What they changed; commits whose diff is missing have no entry.
    pub(super) changes: Vec<CommitChange>,
    /// Whether there are older commits.
    pub(super) goes_on: bool,
    /// Why diffs are missing, as a sentence.
    pub(super) problem: Option<String>,
}

/// Reads the commits after `base` up to `head` with their diffs.
///
/// # Errors
/// [`SourceControlError`] when the commits themselves cannot be listed.
pub(super) async fn read(
    ctx: &Context,
    host: &Host,
    base: &str,
    head: &str,
    now: Timestamp,
) -> Result<RangeChanges, SourceControlError> {
    let query = CommitQuery {
        start: Some(head.to_owned()),
        base: Some(base.to_owned()),
        limit: MAX_COMMITS,
        page: None,
    };
    let mut listed = page(ctx, host, &query, now).await?;
    // GitHub counts pages from the oldest commit, so the page with the newest ones may be short.
    while listed.commits.len() < MAX_COMMITS as usize
        && let Some(next) = listed.next.take()
    {
        let query = CommitQuery { page: Some(next), ..query.clone() };
        let more = page(ctx, host, &query, now).await?;
        if more.commits.is_empty() {
            break;
        }
        listed.commits.extend(more.commits);
        listed.next = more.next;
    }
    let goes_on = listed.commits.len() > MAX_COMMITS as usize || listed.next.is_some();
    listed.commits.truncate(MAX_COMMITS as usize);
    let end = Instant::now() + DEADLINE;
    let mut read = RangeChanges { commits: listed.commits, changes: Vec::new(), goes_on, problem: None };
    for some in read.commits.chunks(TOGETHER) {
        let diffs = join_all(some.iter().map(|commit| stored(ctx, host, &commit.sha, now)));
        let Ok(diffs) = timeout_at(end, diffs).await else {
            let missing = read.commits.len() - read.changes.len();
            read.problem =
                Some(format!("{missing} diffs did not come in time; open this again to read them."));
            break;
        };
        for (commit, diff) in some.iter().zip(diffs) {
            match diff {
                Ok(diff) => read.changes.push(change(commit, diff)),
                Err(SourceControlError::Upstream { error, .. }) => read.problem = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        // Who refused one refuses the next.
        if read.problem.is_some() {
            break;
        }
    }
    Ok(read)
}

fn change(commit: &RepositoryCommit, diff: StoredDiff) -> CommitChange {
    let files = diff.files.into_iter().map(|file| FileChange {
        path: file.filename,
        previous_path: file.previous_filename,
        patch: file.patch,
    });
    CommitChange { sha: commit.sha.clone(), files: files.collect() }
}
