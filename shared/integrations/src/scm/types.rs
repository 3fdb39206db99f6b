//! What all providers have in common.

use callboard_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::reference::is_sha;

/// Most commits of a page; every provider gives that many.
const MAX_PAGE: u32 = 100;

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// All digits of its hash.
    pub sha: String,
    /// Whole message.
    pub message: String,
    /// Name of the author, without an email address.
    pub author: String,
    /// When it was authored.
    pub date: Timestamp,
    /// Hashes of its parents, the first one first; none for a root commit.
    pub parents: Vec<String>,
}

/// Which commits to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitQuery {
    /// Branch or commit to begin with; `None` is the default branch.
    pub start: Option<String>,
    /// Commits that are reachable from this one are left out.
    pub base: Option<String>,
    /// Commits of a page, 1 to 100.
    pub limit: u32,
    /// Where a page before ended.
    pub page: Option<PageToken>,
}

/// Where the next page of commits begins. It names the commit that the list
/// began with, so that commits pushed meanwhile move nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageToken {
    /// First commit of the first page.
    pub head: String,
    /// Number of the page at the provider.
    pub page: u32,
    /// Commits of a page.
    pub size: u32,
    /// What the provider wants to get back besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl CommitQuery {
    /// Number and size of the page, and what the list begins with: the commit
    /// that it began with, else the branch.
    pub(super) fn place(&self) -> (u32, u32, Option<&str>) {
        match &self.page {
            Some(page) => (page.page.max(1), page.size.clamp(1, MAX_PAGE), Some(&page.head)),
            None => (1, self.limit.clamp(1, MAX_PAGE), self.start.as_deref()),
        }
    }

    /// What is missing when the provider finds nothing to list.
    pub(super) fn wanted(&self) -> String {
        match (self.place().2, &self.base) {
            (_, Some(base)) => format!("commit {base}, or no {}", self.wanted_start()),
            (_, None) => self.wanted_start(),
        }
    }

    fn wanted_start(&self) -> String {
        match self.place().2 {
            Some(start) if is_sha(start) => format!("commit {start}"),
            Some(start) => format!("branch {start}"),
            None => "commits".to_owned(),
        }
    }
}

/// A page of commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitPage {
    /// Commits, newest first.
    pub commits: Vec<Commit>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<PageToken>,
}

impl CommitPage {
    /// The page of a repository without commits.
    pub(super) const EMPTY: Self = Self { commits: Vec::new(), next: None };

    /// A page of a list that goes on after it or not. `head` is the commit that
    /// the list began with; on the first page it is the first one.
    pub(super) fn numbered(commits: Vec<Commit>, query: &CommitQuery, goes_on: bool) -> Self {
        let (page, size, start) = query.place();
        let head =
            if query.page.is_some() { start } else { commits.first().map(|commit| commit.sha.as_str()) };
        let next = head.filter(|_| goes_on && !commits.is_empty()).map(|head| PageToken {
            head: head.to_owned(),
            page: page.saturating_add(1),
            size,
            context: None,
        });
        Self { next, commits }
    }
}

/// The date of a commit. One that no calendar of ours holds is the epoch: what
/// wrote it was broken, and the commit is there all the same.
pub(super) fn date(iso: Option<&str>) -> Timestamp {
    iso.and_then(Timestamp::parse_iso).unwrap_or(Timestamp(0))
}

/// What a conditional request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched<T> {
    /// Nothing changed since the answer with the ETag that was sent.
    NotModified,
    /// The answer.
    Fresh {
        /// Its value.
        value: T,
        /// Its ETag, where the provider sends one.
        etag: Option<String>,
    },
}

impl<T> Fetched<T> {
    /// Makes another value of a fresh answer.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Fetched<U> {
        match self {
            Self::NotModified => Fetched::NotModified,
            Self::Fresh { value, etag } => Fetched::Fresh { value: change(value), etag },
        }
    }
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// It is new.
    Added,
    /// Its contents or mode changed.
    Modified,
    /// It is gone.
    Removed,
    /// It has another path, and maybe other contents.
    Renamed,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Path; the old one when it was removed.
    pub path: String,
    /// Path before a rename.
    pub previous_path: Option<String>,
    /// What happened to it.
    pub status: FileStatus,
    /// Added lines; `None` when the provider does not say.
    pub additions: Option<u64>,
    /// Removed lines; `None` when the provider does not say.
    pub deletions: Option<u64>,
    /// Hunks of the unified diff; `None` for binary files and for patches that
    /// the provider leaves out.
    pub patch: Option<String>,
}

/// A commit with what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitChanges {
    /// The commit.
    pub commit: Commit,
    /// Changed files in the provider's order.
    pub files: Vec<ChangedFile>,
    /// Whether there are more files than the provider lists.
    pub is_cut: bool,
}

/// What changed between two commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeChanges {
    /// Changed files.
    pub files: Vec<ChangedFile>,
    /// Whether there are more files than the provider lists.
    pub is_cut: bool,
}

/// Which requests to look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestQuery {
    /// Those that have this commit: its whole hash.
    Commit(String),
    /// Those from this branch of the repository itself.
    Branch(String),
    /// Those that are open.
    Open,
    /// The one of this number.
    Number(u64),
}

impl RequestQuery {
    /// Newest requests that are listed.
    pub(super) const LIMIT: &'static str = "10";
    /// Open ones that are listed.
    pub(super) const OPEN_LIMIT: &'static str = "50";
}

/// Whether a request is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// It is open for review.
    Open,
    /// It is open and not ready for review.
    Draft,
    /// It was merged.
    Merged,
    /// It was closed without being merged.
    Closed,
}

impl RequestState {
    /// The state of what is open or not, a draft or not, merged or not.
    pub(super) const fn new(is_open: bool, is_draft: bool, is_merged: bool) -> Self {
        match (is_merged, is_open, is_draft) {
            (true, ..) => Self::Merged,
            (false, true, true) => Self::Draft,
            (false, true, false) => Self::Open,
            (false, false, _) => Self::Closed,
        }
    }
}

/// A pull request; GitLab calls it a merge request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRequest {
    /// Number within the repository.
    pub number: u64,
    /// Title.
    pub title: String,
    /// Whether it is still open.
    pub state: RequestState,
    /// Address of its page.
    pub url: String,
    /// Name of who opened it, as the provider shows it.
    pub author: String,
    /// Branch that it wants to merge.
    pub branch: String,
    /// Whether that branch is in another repository.
    pub is_fork: bool,
}

/// What a number of the repository names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TicketKind {
    /// An issue.
    Issue,
    /// A pull or merge request.
    Request,
}

/// An issue or a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Title.
    pub title: String,
    /// How it stands.
    pub state: RequestState,
}

/// What a provider says about a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryInfo {
    /// Owner and name as the provider spells them.
    pub full_name: String,
    /// Default branch; `None` while there are no commits.
    pub default_branch: Option<String>,
}

/// A comment on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Id at the provider.
    pub id: String,
    /// Address of its page, where the provider says so.
    pub url: Option<String>,
}

/// A status of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitStatus<'a> {
    /// Its name; another status of the same name is replaced.
    pub context: &'a str,
    /// Whether it is a success.
    pub is_success: bool,
    /// One line of plain text, at most 140 characters.
    pub description: &'a str,
    /// Page that says more.
    pub url: &'a str,
}
