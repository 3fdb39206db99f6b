//! Code hosts: commits, diffs and files of one repository, read over the REST
//! API of its provider, and comments and statuses, written over it.
//!
//! Every client is a [`SourceControl`] and returns the types of this module,
//! whatever its provider calls them. Requests go through
//! [`AdminUrl`](callboard_platform::egress::AdminUrl), so the token reaches the
//! host of the repository and no other. Caching is the caller's.

mod allowlist;
mod bitbucket;
mod codeowners;
mod error;
mod failures;
mod gitea;
mod github;
mod github_shapes;
mod gitlab;
mod patch;
mod reference;
mod repository;
mod source_control;
mod transport;
mod types;

use callboard_domain::time::Timestamp;
use callboard_platform::egress::AdminUrl;

pub use allowlist::{AllowedRepository, InvalidEntry};
pub use codeowners::{CodeOwners, code_owners_paths};
pub use error::ScmError;
pub use reference::{is_branch, is_sha};
pub use repository::{InvalidRepository, Provider, Repository};
pub use source_control::SourceControl;
pub use types::{
    ChangeRequest, ChangedFile, Comment, Commit, CommitChanges, CommitPage, CommitQuery, CommitStatus,
    Fetched, FileStatus, PageToken, RangeChanges, RepositoryInfo, RequestQuery, RequestState, Ticket,
    TicketKind,
};

use bitbucket::Bitbucket;
use gitea::Gitea;
use github::GitHub;
use gitlab::GitLab;
use transport::Transport;

/// Makes the client of a repository. `now` is the time that waiting periods of
/// answers count from.
#[must_use]
pub fn connect(
    client: AdminUrl,
    repository: Repository,
    token: &str,
    now: Timestamp,
) -> Box<dyn SourceControl> {
    let provider = repository.provider();
    let transport = Transport::new(client, repository, token, now);
    match provider {
        Provider::GitHub => Box::new(GitHub::new(transport)),
        Provider::GitLab => Box::new(GitLab::new(transport)),
        Provider::Gitea => Box::new(Gitea::new(transport)),
        Provider::Bitbucket => Box::new(Bitbucket::new(transport)),
    }
}
