//! Pull requests of the repository, as the four APIs list them.

use serde_json::{Value, json};

use super::git::GitRepository;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// Open for review.
    Open,
    /// Open, and not ready for review.
    Draft,
    /// Merged.
    Merged,
    /// Closed without being merged.
    Closed,
}

/// A pull request.
#[derive(Debug, Clone)]
pub struct PullRequest {
    /// Number.
    pub number: u64,
    /// Title.
    pub title: String,
    /// Branch that it wants to merge into `main`.
    pub branch: String,
    /// What became of it.
    pub state: RequestState,
    /// Whether the branch is in another repository.
    pub is_fork: bool,
}

impl PullRequest {
    /// Whether a commit is one of those that the request brings.
    pub(super) fn has(&self, git: &GitRepository, sha: &str) -> bool {
        let Some(tip) = git.resolve(&self.branch) else { return false };
        git.log(&[&tip, "^main"]).iter().any(|commit| commit.sha == sha)
    }

    /// As GitHub and Gitea answer a question for the issue of its number.
    pub(super) fn as_issue(&self) -> Value {
        let merged = (self.state == RequestState::Merged).then_some("2026-01-02T10:00:00Z");
        let is_draft = self.state == RequestState::Draft;
        json!({
            "id": self.number, "number": self.number, "title": self.title, "draft": is_draft,
            "state": if self.is_open() { "open" } else { "closed" },
            "pull_request": { "merged_at": merged, "merged": merged.is_some(), "draft": is_draft },
        })
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, RequestState::Open | RequestState::Draft)
    }

    fn head(&self) -> &'static str {
        if self.is_fork { "someone/shop" } else { "acme/shop" }
    }

    /// As GitHub and Gitea list it.
    pub(super) fn github(&self) -> Value {
        let merged = (self.state == RequestState::Merged).then_some("2026-01-02T10:00:00Z");
        json!({
            "id": self.number, "number": self.number, "title": self.title, "merged_at": merged,
            "state": if self.is_open() { "open" } else { "closed" },
            "draft": self.state == RequestState::Draft,
            "html_url": format!("https://host.test/acme/shop/pulls/{}", self.number),
            "user": { "login": "ada", "id": 1 },
            "head": { "ref": self.branch, "sha": "0", "repo": { "full_name": self.head() } },
            "base": { "ref": "main", "sha": "0", "repo": { "full_name": "acme/shop" } },
        })
    }

    /// As GitLab lists it.
    pub(super) fn gitlab(&self) -> Value {
        let state = match self.state {
            RequestState::Open | RequestState::Draft => "opened",
            RequestState::Merged => "merged",
            RequestState::Closed => "closed",
        };
        json!({
            "id": 1000 + self.number, "iid": self.number, "title": self.title, "state": state,
            "draft": self.state == RequestState::Draft,
            "web_url": format!("https://host.test/acme/web/shop/-/merge_requests/{}", self.number),
            "author": { "id": 1, "username": "ada", "name": "Ada Lovelace" },
            "source_branch": self.branch, "target_branch": "main",
            "source_project_id": if self.is_fork { 2 } else { 1 }, "target_project_id": 1,
        })
    }

    /// As Bitbucket lists it.
    pub(super) fn bitbucket(&self) -> Value {
        let state = match self.state {
            RequestState::Open | RequestState::Draft => "OPEN",
            RequestState::Merged => "MERGED",
            RequestState::Closed => "DECLINED",
        };
        let end = |branch: &str, repository: &str| json!({ "branch": { "name": branch }, "repository": { "full_name": repository } });
        json!({
            "type": "pullrequest", "id": self.number, "title": self.title, "state": state,
            "draft": self.state == RequestState::Draft,
            "links": { "html": { "href": format!("https://host.test/acme/shop/pull-requests/{}", self.number) } },
            "author": { "display_name": "ada", "type": "user" },
            "source": end(&self.branch, self.head()), "destination": end("main", "acme/shop"),
        })
    }
}

/// An issue.
#[derive(Debug, Clone)]
pub struct Issue {
    /// Number.
    pub number: u64,
    /// Title.
    pub title: String,
    /// Whether it is still to be done.
    pub is_open: bool,
}

impl Issue {
    /// As GitHub and Gitea show it.
    pub(super) fn github(&self) -> Value {
        let state = if self.is_open { "open" } else { "closed" };
        json!({ "id": self.number, "number": self.number, "title": self.title, "state": state })
    }

    /// As GitLab shows it.
    pub(super) fn gitlab(&self) -> Value {
        let state = if self.is_open { "opened" } else { "closed" };
        json!({ "id": 1000 + self.number, "iid": self.number, "title": self.title, "state": state })
    }

    /// As Bitbucket shows it.
    pub(super) fn bitbucket(&self) -> Value {
        let state = if self.is_open { "new" } else { "resolved" };
        json!({ "type": "issue", "id": self.number, "title": self.title, "state": state })
    }
}
