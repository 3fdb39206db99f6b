//! What every client of a code host can do.

use async_trait::async_trait;

use super::error::ScmError;
use super::types::{
    ChangeRequest, CommitChanges, CommitPage, CommitQuery, Fetched, RangeChanges, RepositoryInfo,
    RequestQuery, Ticket, TicketKind,
};

/// Reads of one repository.
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

    /// An issue or request by its number; `None` when the repository has none.
    async fn ticket(&self, kind: TicketKind, number: u64) -> Result<Option<Ticket>, ScmError>;

    /// Reads the description of the repository, which shows that host, token
    /// and repository are right.
    async fn check(&self) -> Result<RepositoryInfo, ScmError>;
}
