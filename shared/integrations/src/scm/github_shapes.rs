//! What GitHub answers, as far as Gitea and Forgejo answer the same.

use callboard_platform::egress::{Next, next_page, page_of_relation};
use serde::Deserialize;
use serde_json::{Value, json};

use super::transport::Reply;
use super::types::{ChangeRequest, Comment, Commit, CommitStatus, RequestState, Ticket, date};

/// A commit; `F` is a file that it changed.
#[derive(Deserialize)]
pub(super) struct ListedCommit<F> {
    pub(super) sha: String,
    commit: CommitDetails,
    parents: Option<Vec<Parent>>,
    pub(super) files: Option<Vec<F>>,
}

#[derive(Deserialize)]
struct CommitDetails {
    message: String,
    author: Option<Author>,
}

#[derive(Deserialize)]
struct Author {
    name: Option<String>,
    date: Option<String>,
}

#[derive(Deserialize)]
struct Parent {
    sha: String,
}

impl<F> From<ListedCommit<F>> for Commit {
    fn from(listed: ListedCommit<F>) -> Self {
        let (name, at) = listed.commit.author.map_or((None, None), |author| (author.name, author.date));
        Self {
            sha: listed.sha,
            message: listed.commit.message,
            author: name.unwrap_or_default(),
            date: date(at.as_deref()),
            parents: listed.parents.into_iter().flatten().map(|parent| parent.sha).collect(),
        }
    }
}

/// A pull request.
#[derive(Deserialize)]
pub(super) struct Pull {
    number: u64,
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
    merged_at: Option<String>,
    html_url: String,
    user: Option<User>,
    pub(super) head: End,
    base: End,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

/// One end of a pull request.
#[derive(Deserialize)]
pub(super) struct End {
    #[serde(rename = "ref")]
    pub(super) branch: String,
    /// Missing once it was deleted.
    repo: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    full_name: String,
}

impl End {
    fn repository(&self) -> Option<&str> {
        self.repo.as_ref().map(|repository| repository.full_name.as_str())
    }
}

impl Pull {
    pub(super) fn is_fork(&self) -> bool {
        self.head.repository() != self.base.repository()
    }
}

impl From<Pull> for ChangeRequest {
    fn from(pull: Pull) -> Self {
        Self {
            is_fork: pull.is_fork(),
            number: pull.number,
            state: RequestState::new(pull.state == "open", pull.draft, pull.merged_at.is_some()),
            title: pull.title,
            url: pull.html_url,
            author: pull.user.map(|user| user.login).unwrap_or_default(),
            branch: pull.head.branch,
        }
    }
}

/// An issue, and what a request says as one.
#[derive(Deserialize)]
pub(super) struct Issue {
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
    pull_request: Option<IssueRequest>,
}

#[derive(Deserialize)]
struct IssueRequest {
    merged_at: Option<String>,
    #[serde(default)]
    merged: bool,
    #[serde(default)]
    draft: bool,
}

impl From<Issue> for Ticket {
    fn from(issue: Issue) -> Self {
        let request = issue.pull_request.as_ref();
        let is_merged = request.is_some_and(|request| request.merged || request.merged_at.is_some());
        let is_draft = issue.draft || request.is_some_and(|request| request.draft);
        Self { state: RequestState::new(issue.state == "open", is_draft, is_merged), title: issue.title }
    }
}

/// Whether there is another page.
pub(super) fn goes_on(reply: &Reply) -> bool {
    matches!(next_page(&reply.headers), Next::At(_))
}

/// Number of the last page of a list, where the answer names one.
pub(super) fn last_page(reply: &Reply) -> Option<u32> {
    let address = page_of_relation(&reply.headers, "last")?;
    let query = address.split_once('?')?.1;
    query.split('&').find_map(|pair| pair.strip_prefix("page=")?.parse().ok())
}

/// A comment on an issue or a pull request.
#[derive(Deserialize)]
pub(super) struct IssueComment {
    id: u64,
    html_url: Option<String>,
    body: Option<String>,
}

impl IssueComment {
    pub(super) fn begins_with(&self, marker: &str) -> bool {
        self.body.as_deref().is_some_and(|body| body.trim_start().starts_with(marker))
    }
}

impl From<IssueComment> for Comment {
    fn from(found: IssueComment) -> Self {
        Self { id: found.id.to_string(), url: found.html_url }
    }
}

/// The body of a request that sets a status.
pub(super) fn status_body(status: &CommitStatus<'_>) -> Value {
    json!({
        "state": if status.is_success { "success" } else { "failure" },
        "context": status.context, "description": status.description, "target_url": status.url,
    })
}
