//! What every client of a code host can do.

use async_trait::async_trait;

use super::error::ScmError;
use super::types::{
    ChangeRequest, Comment, CommitChanges, CommitPage, CommitQuery, CommitStatus, Fetched, RangeChanges,
    RepositoryInfo, RequestQuery, Ticket, TicketKind,
};

/// Reads of one repository, comments on its requests, and statuses of its commits.
#[async_trait]
pub trait SourceControl: Send + Sync {
    /// A page of commits, newest first. With `etag`, the answer may be
    /// [`Fetched::NotModified`].
    async fn commits(&self, query: &CommitQuery, etag: Option<&str>)
    -> Result<Fetched<CommitPage>, ScmError>;

    /// A commit and what it changed against its first parent; everything is
    /// added when it has none.
    async fn commit_diff(&self, sha: &str) -> Result<CommitChanges, ScmError>;

    /// What changed from the merge base of two commits to the second one.
    async fn range_diff(&self, base: &str, head: &str) -> Result<RangeChanges, ScmError>;

    /// The contents of a file at a commit; `None` when the commit has no such
    /// file.
    async fn file_at(&self, sha: &str, path: &str) -> Result<Option<Vec<u8>>, ScmError>;

    /// Pull or merge requests of a commit or branch, at most ten, or all open ones, at
    /// most fifty, the one changed last first; none for a commit that the provider does not know. With
    /// `etag`, the answer may be [`Fetched::NotModified`].
    async fn change_requests(
        &self,
        query: &RequestQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<Vec<ChangeRequest>>, ScmError>;

    /// The comment on a request whose text begins with `marker`, looked for from the newest comment on.
    /// [`ScmError::TooManyComments`] when not all of them could be read.
    async fn find_comment(&self, request: u64, marker: &str) -> Result<Option<Comment>, ScmError>;

    /// Whether a request has the comment of an id.
    async fn has_comment(&self, request: u64, id: &str) -> Result<bool, ScmError>;

    /// Adds a comment in Markdown to a request.
    async fn create_comment(&self, request: u64, text: &str) -> Result<Comment, ScmError>;

    /// Replaces the text of a comment; `None` when there is no such comment, or the provider denies that there is.
    async fn update_comment(&self, request: u64, id: &str, text: &str) -> Result<Option<Comment>, ScmError>;

    /// Sets a status of a commit, given by its whole hash.
    async fn set_status(&self, sha: &str, status: &CommitStatus<'_>) -> Result<(), ScmError>;

    /// An issue or request by its number; `None` when the repository has none.
    async fn ticket(&self, kind: TicketKind, number: u64) -> Result<Option<Ticket>, ScmError>;

    /// Reads the description of the repository, which shows that host, token
    /// and repository are right.
    async fn check(&self) -> Result<RepositoryInfo, ScmError>;
}
