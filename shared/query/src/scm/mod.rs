//! Source control: commits and diffs of a project's repository, read from its
//! code host and stored for a while.
//!
//! The repository is the one an administrator entered; what runs say about
//! theirs is never called. Answers live in `scm_cache`: lists of a branch are
//! fresh for a minute and confirmed by their ETag after that, what is named by
//! a whole hash does not change.

mod access;
mod branches;
mod cache;
mod commits;
mod connection;
mod culprit;
mod diff;
pub(crate) mod editing;
mod error;
mod files;
mod host;
mod issue;
mod owners;
mod range;
mod requests;
pub(crate) mod shared_token;
mod since_green;
mod suspects;
mod tickets;

pub use access::Access;
pub use branches::{ClusterBranch, cluster_branches};
pub use callboard_integrations::scm::{
    AllowedRepository, FileStatus, InvalidRepository, PageToken, Provider, Repository, RequestState,
    ScmError, is_branch, is_sha,
};
pub(crate) use commits::is_whole_sha;
pub use commits::{Aggregate, CommitList, CommitsParams, RepositoryCommit, commits};
pub use connection::{ConnectionTest, test_connection};
pub use culprit::{
    CulpritRange, CulpritSearch, CulpritState, CulpritSuspect, FindCulprit, NextCommit, culprit,
    find_culprit, request_culprit,
};
pub use diff::{DiffFile, DiffPage, DiffParams, commit_diff};
pub use error::{NotConfigured, SourceControlError};
pub(crate) use files::texts_at;
pub(crate) use host::Host;
pub use host::has_repository;
pub(crate) use host::repository_identity;
pub use issue::{NewIssue, new_issue};
pub use owners::refresh_owners;
pub(crate) use requests::open_request;
pub use requests::{RequestItem, RunPlace, request_of};
pub use shared_token::{SharedTokenEdit, StoredToken, edit_shared_token, stored_token};
pub use since_green::{NoCommits, SinceGreenCommits, commits_since_green};
pub use suspects::{
    ClusterRange, ClusterSuspects, SuspectCommitItem, SuspectFileItem, SuspectReason, SuspectsOf,
    stored_suspects, suspects,
};
pub use tickets::{TicketState, add_states, refresh_tickets, stored_tickets};
