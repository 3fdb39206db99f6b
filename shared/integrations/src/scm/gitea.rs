//! Gitea and Forgejo: <https://docs.gitea.com/api/>, version 1. Their API compares
//! commits without files, so the changes of a range are those of its commits.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::error::ScmError;
use super::github_shapes::{Issue, IssueComment, ListedCommit, Pull, goes_on, status_body};
use super::patch::{FilePatch, by_path};
use super::repository::{encode_path, encode_segment};
use super::source_control::SourceControl;
use super::transport::{Transport, or_gone, or_missing};
use super::types::{
    ChangeRequest, ChangedFile, Comment, Commit, CommitChanges, CommitPage, CommitQuery, CommitStatus,
    Fetched, FileStatus, RangeChanges, RepositoryInfo, RequestQuery, Ticket, TicketKind,
};

/// Answered where a repository has no commits.
const CONFLICT: u16 = 409;
/// Pages of commits whose files make the changes of a range.
const MAX_RANGE_PAGES: u32 = 10;
/// Commits of such a page.
const RANGE_PAGE: &str = "50";
const COMMENTS: &str = "write:issue";
const STATUSES: &str = "write:repository";

pub(super) struct Gitea(Transport);

#[derive(Deserialize)]
struct AffectedFile {
    filename: String,
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
struct Described {
    full_name: String,
    default_branch: Option<String>,
    #[serde(default)]
    empty: bool,
}

fn status(word: &str) -> FileStatus {
    match word {
        "added" => FileStatus::Added,
        "removed" | "deleted" => FileStatus::Removed,
        _ => FileStatus::Modified,
    }
}

impl Gitea {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    /// Patches of a commit by path; none where the diff is larger than what is
    /// read.
    async fn patches(&self, sha: &str) -> Result<Option<HashMap<String, FilePatch>>, ScmError> {
        let place = format!("/git/commits/{}.diff", encode_segment(sha));
        match self.0.accepting("text/plain", &place, &[]).await {
            Ok(reply) => Ok(Some(by_path(&reply.body))),
            Err(ScmError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl SourceControl for Gitea {
    async fn commits(
        &self,
        query: &CommitQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<CommitPage>, ScmError> {
        let (page, size, start) = query.place();
        let (page, size) = (page.to_string(), size.to_string());
        let mut parameters = vec![
            ("limit", size.as_str()),
            ("page", page.as_str()),
            ("stat", "false"),
            ("verification", "false"),
            ("files", "false"),
        ];
        parameters.extend(start.map(|start| ("sha", start)));
        parameters.extend(query.base.as_deref().map(|base| ("not", base)));
        let (reply, etag) = match self.0.get_changed("/commits", &parameters, etag).await {
            Ok(Fetched::NotModified) => return Ok(Fetched::NotModified),
            Ok(Fetched::Fresh { value, etag }) => (value, etag),
            Err(ScmError::Failed { status: CONFLICT, .. }) => {
                return Ok(Fetched::Fresh { value: CommitPage::EMPTY, etag: None });
            }
            Err(error) => return Err(self.0.explained(error, || query.wanted()).await),
        };
        let commits: Vec<ListedCommit<AffectedFile>> = self.0.read(&reply)?;
        let commits = commits.into_iter().map(Commit::from).collect();
        let value = CommitPage::numbered(commits, query, goes_on(&reply));
        Ok(Fetched::Fresh { value, etag })
    }

    async fn commit_diff(&self, sha: &str) -> Result<CommitChanges, ScmError> {
        let place = format!("/git/commits/{}", encode_segment(sha));
        let found =
            self.0.json(&place, &[("stat", "false"), ("verification", "false"), ("files", "true")]).await;
        let mut found: ListedCommit<AffectedFile> = match found {
            Ok(found) => found,
            Err(error) => return Err(self.0.explained(error, || format!("commit {sha}")).await),
        };
        let mut patches = self.patches(&found.sha).await?;
        let affected = found.files.take().unwrap_or_default();
        let files = affected.into_iter().map(|file| {
            let patch = patches.as_mut().map(|patches| patches.remove(&file.filename).unwrap_or_default());
            ChangedFile {
                status: status(&file.status),
                path: file.filename,
                previous_path: None,
                additions: patch.as_ref().map(|patch| patch.additions),
                deletions: patch.as_ref().map(|patch| patch.deletions),
                patch: patch.and_then(|patch| patch.hunks),
            }
        });
        let files = files.collect();
        Ok(CommitChanges { commit: found.into(), files, is_cut: false })
    }

    async fn range_diff(&self, base: &str, head: &str) -> Result<RangeChanges, ScmError> {
        let mut files: BTreeMap<String, FileStatus> = BTreeMap::new();
        let mut page = 1;
        loop {
            let number = page.to_string();
            let parameters = [
                ("sha", head),
                ("not", base),
                ("limit", RANGE_PAGE),
                ("page", &number),
                ("stat", "false"),
                ("verification", "false"),
                ("files", "true"),
            ];
            let reply = match self.0.get("/commits", &parameters).await {
                Ok(reply) => reply,
                Err(error) => {
                    return Err(self.0.explained(error, || format!("commit {base}, or no {head}")).await);
                }
            };
            let commits: Vec<ListedCommit<AffectedFile>> = self.0.read(&reply)?;
            for file in commits.into_iter().filter_map(|commit| commit.files).flatten() {
                // The newest commit comes first and says how the file ended.
                files.entry(file.filename).or_insert_with(|| status(&file.status));
            }
            let goes_on = goes_on(&reply);
            if !goes_on || page == MAX_RANGE_PAGES {
                let files = files.into_iter().map(|(path, status)| ChangedFile {
                    path,
                    previous_path: None,
                    status,
                    additions: None,
                    deletions: None,
                    patch: None,
                });
                return Ok(RangeChanges { files: files.collect(), is_cut: goes_on });
            }
            page += 1;
        }
    }

    async fn file_at(&self, sha: &str, path: &str) -> Result<Option<Vec<u8>>, ScmError> {
        let Some(path) = encode_path(path) else { return Ok(None) };
        let place = format!("/raw/{path}");
        or_missing(self.0.accepting("*/*", &place, &[("ref", sha)]).await)
    }

    async fn change_requests(
        &self,
        query: &RequestQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<Vec<ChangeRequest>>, ScmError> {
        match query {
            // There is one at most.
            RequestQuery::Commit(sha) => {
                let path = format!("/commits/{}/pull", encode_segment(sha));
                let found: Fetched<Option<Pull>> = self.0.list_of(&path, &[], etag).await?;
                Ok(found.map(|pull| pull.into_iter().map(ChangeRequest::from).collect()))
            }
            // No parameter names the branch, so it is looked for among the newest ones.
            RequestQuery::Branch(branch) => {
                let parameters = [("state", "all"), ("sort", "recentupdate"), ("limit", RANGE_PAGE)];
                let found: Fetched<Vec<Pull>> = self.0.list_of("/pulls", &parameters, etag).await?;
                let is_from = |pull: &Pull| pull.head.branch == *branch && !pull.is_fork();
                Ok(found.map(|pulls| pulls.into_iter().filter(is_from).map(ChangeRequest::from).collect()))
            }
            RequestQuery::Open => {
                let parameters =
                    [("state", "open"), ("sort", "recentupdate"), ("limit", RequestQuery::OPEN_LIMIT)];
                let found: Fetched<Vec<Pull>> = self.0.list_of("/pulls", &parameters, etag).await?;
                Ok(found.map(|pulls| pulls.into_iter().map(ChangeRequest::from).collect()))
            }
            RequestQuery::Number(number) => {
                let found: Fetched<Option<Pull>> =
                    self.0.list_of(&format!("/pulls/{number}"), &[], etag).await?;
                Ok(found.map(|pull| pull.into_iter().map(ChangeRequest::from).collect()))
            }
        }
    }

    async fn find_comment(&self, request: u64, marker: &str) -> Result<Option<Comment>, ScmError> {
        let path = format!("/issues/{request}/comments");
        // All of them are one answer.
        let comments: Vec<IssueComment> = self.0.json(&path, &[]).await?;
        Ok(comments.into_iter().rev().find(|comment| comment.begins_with(marker)).map(Comment::from))
    }

    async fn has_comment(&self, _: u64, id: &str) -> Result<bool, ScmError> {
        let path = format!("/issues/comments/{}", encode_segment(id));
        Ok(self.0.json_or_missing::<IssueComment>(&path).await?.is_some())
    }

    async fn create_comment(&self, request: u64, text: &str) -> Result<Comment, ScmError> {
        let (path, body) = (format!("/issues/{request}/comments"), json!({ "body": text }));
        let reply = self.0.write(Method::POST, &path, &body, COMMENTS).await?;
        Ok(self.0.read::<IssueComment>(&reply)?.into())
    }

    async fn update_comment(&self, _: u64, id: &str, text: &str) -> Result<Option<Comment>, ScmError> {
        let (path, body) = (format!("/issues/comments/{}", encode_segment(id)), json!({ "body": text }));
        let reply = or_gone(self.0.write(Method::PATCH, &path, &body, COMMENTS).await)?;
        reply.map(|reply| Ok(self.0.read::<IssueComment>(&reply)?.into())).transpose()
    }

    async fn set_status(&self, sha: &str, status: &CommitStatus<'_>) -> Result<(), ScmError> {
        let path = format!("/statuses/{}", encode_segment(sha));
        match self.0.write(Method::POST, &path, &status_body(status), STATUSES).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.0.explained(error, || format!("commit {sha}")).await),
        }
    }

    async fn ticket(&self, _kind: TicketKind, number: u64) -> Result<Option<Ticket>, ScmError> {
        // A request is an issue of the same number there.
        let found: Option<Issue> = self.0.json_or_missing(&format!("/issues/{number}")).await?;
        Ok(found.map(Ticket::from))
    }

    async fn check(&self) -> Result<RepositoryInfo, ScmError> {
        let Described { full_name, default_branch, empty } = self.0.json("", &[]).await?;
        Ok(RepositoryInfo { full_name, default_branch: default_branch.filter(|_| !empty) })
    }
}
