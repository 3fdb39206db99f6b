//! Commits of a branch, and of a range.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::text::{clean, cut};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{
    Commit, CommitPage, CommitQuery, Fetched, PageToken, Provider, RangeChanges, ScmError, is_branch, is_sha,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Access;
use super::cache::{Entry, Freshness};
use super::error::SourceControlError;
use super::host::Host;
use crate::Context;
use crate::page::Slice;

/// Characters of a message that are shown.
const MAX_MESSAGE_CHARS: usize = 500;
/// Characters of an author's name that are shown.
const MAX_AUTHOR_CHARS: usize = 200;
/// Digits of the shortest whole hash.
const WHOLE_DIGITS: usize = 40;
/// Digits of the short form of a hash.
const SHORT_DIGITS: usize = 8;

/// A commit of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryCommit {
    /// Whole hash.
    #[schema(example = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567")]
    pub sha: String,
    /// First eight digits of the hash.
    #[schema(example = "0a1b2c3d")]
    pub short_sha: String,
    /// Message, at most 500 characters.
    pub message: String,
    /// Name of the author.
    pub author: String,
    /// When it was authored.
    #[schema(value_type = String, format = DateTime)]
    pub date: Timestamp,
}

impl From<Commit> for RepositoryCommit {
    fn from(commit: Commit) -> Self {
        let shown = |text: &str, max_chars| cut(clean(text).trim_end().to_owned(), max_chars);
        Self {
            short_sha: commit.sha.chars().take(SHORT_DIGITS).collect(),
            message: shown(&commit.message, MAX_MESSAGE_CHARS),
            author: shown(&commit.author, MAX_AUTHOR_CHARS),
            date: commit.date,
            sha: commit.sha,
        }
    }
}

impl RepositoryCommit {
    /// First line of the message.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// Which commits to list.
#[derive(Debug, Clone, Default)]
pub struct CommitsParams {
    /// Branch or commit; the default branch when it is not given.
    pub branch: Option<String>,
    /// Leaves out what this commit has.
    pub base: Option<String>,
    /// Commits of a page, 1 to 100.
    pub limit: u32,
    /// Where a page before ended.
    pub after: Option<PageToken>,
}

/// What a range changed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aggregate {
    /// Files.
    pub files_changed: u64,
    /// Added lines.
    pub lines_added: u64,
    /// Removed lines.
    pub lines_removed: u64,
}

/// A page of commits, newest first.
#[derive(Debug, Clone)]
pub struct CommitList {
    /// Commits, and where the next page begins.
    pub commits: Slice<RepositoryCommit, PageToken>,
    /// Address of the repository.
    pub repository_url: String,
    /// Owner and name of the repository.
    pub repository: String,
    /// Kind of code host.
    pub provider: Provider,
    /// Branch that is listed; `None` is the repository's default branch.
    pub branch: Option<String>,
    /// What the range changed; only on its first page, and only where the
    /// provider counts lines.
    pub aggregate: Option<Aggregate>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredPage {
    pub(super) commits: Vec<RepositoryCommit>,
    pub(super) next: Option<PageToken>,
}

impl From<CommitPage> for StoredPage {
    fn from(page: CommitPage) -> Self {
        let commits = page.commits.into_iter().map(RepositoryCommit::from).collect();
        Self { commits, next: page.next }
    }
}

/// Commits of a branch, newest first.
///
/// # Errors
/// [`SourceControlError`].
pub async fn commits(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    params: CommitsParams,
    now: Timestamp,
) -> Result<CommitList, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    let branch = params.branch.or_else(|| host.default_branch.clone());
    if let Some(name) = branch.as_deref().filter(|name| !is_branch(name)) {
        let wanted = format!("branch {name}");
        return Err(host.failed(ScmError::NotInRepository { repository: host.path.clone(), wanted }));
    }
    let query =
        CommitQuery { start: branch.clone(), base: params.base, limit: params.limit, page: params.after };
    let page = page(ctx, &host, &query, now).await?;
    let range = query.base.as_deref().filter(|_| query.page.is_none());
    let aggregate = match (range, page.commits.first()) {
        (Some(base), Some(head)) => aggregate(ctx, &host, base, &head.sha, now).await?,
        _ => None,
    };
    Ok(CommitList {
        commits: Slice { items: page.commits, next: page.next },
        repository_url: host.url,
        repository: host.path,
        provider: host.provider,
        branch,
        aggregate,
    })
}

pub(super) async fn page(
    ctx: &Context,
    host: &Host,
    query: &CommitQuery,
    now: Timestamp,
) -> Result<StoredPage, SourceControlError> {
    let question = (&query.start, &query.base, query.limit, &query.page);
    let key = host.key("commits", &question)?;
    let mut entry: Entry<StoredPage> = Entry::look_up(ctx, host.project, key, now).await?;
    if let Some(page) = entry.take_fresh() {
        return Ok(page);
    }
    let fetched = host.ask(ctx, now, |client| client.commits(query, entry.etag())).await?;
    let is_whole = |end: &Option<String>| end.as_deref().is_some_and(is_whole_sha);
    let freshness = match &query.page {
        Some(_) => Freshness::PAGE,
        None if is_whole(&query.start) && is_whole(&query.base) => Freshness::COMMIT,
        None => Freshness::BRANCH,
    };
    match fetched {
        Fetched::Fresh { value, etag } => Ok(entry.store(ctx, value.into(), etag, freshness, now).await?),
        // A provider that confirms what was not sent to it has said nothing.
        Fetched::NotModified => entry
            .confirm(ctx, freshness, now)
            .await?
            .ok_or_else(|| host.failed(ScmError::Failed { provider: host.provider, status: 304 })),
    }
}

/// Whether a text is a whole hash, which stands for the same commit for ever.
pub(crate) fn is_whole_sha(text: &str) -> bool {
    is_sha(text) && text.len() >= WHOLE_DIGITS
}

/// What a range changed; `None` where the provider does not count all of it.
async fn aggregate(
    ctx: &Context,
    host: &Host,
    base: &str,
    head: &str,
    now: Timestamp,
) -> Result<Option<Aggregate>, SourceControlError> {
    let key = host.key("range", &(base, head))?;
    let mut entry: Entry<Option<Aggregate>> = Entry::look_up(ctx, host.project, key, now).await?;
    if let Some(aggregate) = entry.take_fresh() {
        return Ok(aggregate);
    }
    let changes = match host.ask(ctx, now, |client| client.range_diff(base, head)).await {
        Ok(changes) => changes,
        // The commits are there; their sum can be missing.
        Err(SourceControlError::Upstream { error, .. }) => {
            tracing::info!(%error, "the changes of a range were not read");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(entry.store(ctx, sum(&changes), None, Freshness::COMMIT, now).await?)
}

fn sum(changes: &RangeChanges) -> Option<Aggregate> {
    let empty = Aggregate { files_changed: 0, lines_added: 0, lines_removed: 0 };
    let sum = changes.files.iter().try_fold(empty, |sum, file| {
        Some(Aggregate {
            files_changed: sum.files_changed + 1,
            lines_added: sum.lines_added.saturating_add(file.additions?),
            lines_removed: sum.lines_removed.saturating_add(file.deletions?),
        })
    });
    sum.filter(|_| !changes.is_cut)
}
