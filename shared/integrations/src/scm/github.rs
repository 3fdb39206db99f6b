//! GitHub: <https://docs.github.com/en/rest/commits>, version 2022-11-28.

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::error::ScmError;
use super::github_shapes::{Issue, IssueComment, ListedCommit, Pull, goes_on, last_page, status_body};
use super::repository::{encode_path, encode_segment};
use super::source_control::SourceControl;
use super::transport::{Transport, or_gone};
use super::types::{
    ChangeRequest, ChangedFile, Comment, Commit, CommitChanges, CommitPage, CommitQuery, CommitStatus,
    Fetched, FileStatus, PageToken, RangeChanges, RepositoryInfo, RequestQuery, Ticket, TicketKind,
};

/// Answered where a repository has no commits.
const CONFLICT: u16 = 409;
/// Answered where no commit has the hash.
const UNPROCESSABLE: u16 = 422;
/// Pages of files that a commit has at most, 300 files each.
const MAX_FILE_PAGES: u32 = 10;
/// Pages of comments that are searched, 100 comments each.
const MAX_COMMENT_PAGES: u32 = 30;
const COMMENTS: &str = "pull_requests=write";
const STATUSES: &str = "statuses=write";
/// Files that a comparison lists at most.
const MAX_COMPARED_FILES: usize = 300;

pub(super) struct GitHub(Transport);

#[derive(Deserialize)]
struct File {
    filename: String,
    previous_filename: Option<String>,
    status: String,
    additions: u64,
    deletions: u64,
    patch: Option<String>,
}

#[derive(Deserialize)]
struct Comparison {
    total_commits: u32,
    commits: Vec<ListedCommit<File>>,
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
struct Described {
    full_name: String,
    default_branch: Option<String>,
}

impl From<File> for ChangedFile {
    fn from(file: File) -> Self {
        let status = match file.status.as_str() {
            "added" | "copied" => FileStatus::Added,
            "removed" => FileStatus::Removed,
            "renamed" => FileStatus::Renamed,
            _ => FileStatus::Modified,
        };
        Self {
            path: file.filename,
            previous_path: file.previous_filename.filter(|_| status == FileStatus::Renamed),
            status,
            additions: Some(file.additions),
            deletions: Some(file.deletions),
            patch: file.patch,
        }
    }
}

impl GitHub {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    async fn explained(&self, error: ScmError, wanted: impl FnOnce() -> String + Send) -> ScmError {
        match error {
            ScmError::Failed { status: UNPROCESSABLE, .. } => self.0.not_in_repository(wanted()),
            error => self.0.explained(error, wanted).await,
        }
    }

    async fn listed(&self, query: &CommitQuery, etag: Option<&str>) -> Result<Fetched<CommitPage>, ScmError> {
        let (page, size, start) = query.place();
        let (page, size) = (page.to_string(), size.to_string());
        let mut parameters = vec![("per_page", size.as_str()), ("page", page.as_str())];
        parameters.extend(start.map(|start| ("sha", start)));
        let (reply, etag) = match self.0.get_changed("/commits", &parameters, etag).await {
            Ok(Fetched::NotModified) => return Ok(Fetched::NotModified),
            Ok(Fetched::Fresh { value, etag }) => (value, etag),
            Err(ScmError::Failed { status: CONFLICT, .. }) => {
                return Ok(Fetched::Fresh { value: CommitPage::EMPTY, etag: None });
            }
            Err(error) => return Err(self.explained(error, || query.wanted()).await),
        };
        let commits: Vec<ListedCommit<File>> = self.0.read(&reply)?;
        let commits = commits.into_iter().map(Commit::from).collect();
        let value = CommitPage::numbered(commits, query, goes_on(&reply));
        Ok(Fetched::Fresh { value, etag })
    }

    async fn compared(&self, base: &str, head: &str, page: u32, size: u32) -> Result<Comparison, ScmError> {
        let path = format!("/compare/{}...{}", encode_segment(base), encode_segment(head));
        let (page, size) = (page.to_string(), size.to_string());
        let parameters = [("per_page", size.as_str()), ("page", page.as_str())];
        let compared = self.0.json(&path, &parameters).await;
        match compared {
            Ok(compared) => Ok(compared),
            Err(error) => Err(self.explained(error, || format!("commit {base}, or no {head}")).await),
        }
    }

    /// Commits of a range. Comparisons list the oldest first, so the newest are
    /// on the last page, and pages are counted down.
    async fn ranged(&self, base: &str, query: &CommitQuery) -> Result<CommitPage, ScmError> {
        let (page, size, start) = query.place();
        let head = start.unwrap_or("HEAD");
        let (mut found, mut page) = (self.compared(base, head, page, size).await?, page);
        if query.page.is_none() {
            let last = found.total_commits.div_ceil(size).max(1);
            if last > 1 {
                found = self.compared(base, head, last, size).await?;
                page = last;
            }
        }
        let commits: Vec<Commit> = found.commits.into_iter().rev().map(Commit::from).collect();
        let newest =
            if query.page.is_some() { Some(head) } else { commits.first().map(|each| each.sha.as_str()) };
        let next = newest.filter(|_| page > 1).map(|head| PageToken {
            head: head.to_owned(),
            page: page - 1,
            size,
            context: None,
        });
        Ok(CommitPage { next, commits })
    }
}

#[async_trait]
impl SourceControl for GitHub {
    async fn commits(
        &self,
        query: &CommitQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<CommitPage>, ScmError> {
        match &query.base {
            None => self.listed(query, etag).await,
            Some(base) => Ok(Fetched::Fresh { value: self.ranged(base, query).await?, etag: None }),
        }
    }

    async fn commit_diff(&self, sha: &str) -> Result<CommitChanges, ScmError> {
        let path = format!("/commits/{}", encode_segment(sha));
        let mut files: Vec<ChangedFile> = Vec::new();
        let mut page = 1;
        loop {
            let reply = match self.0.get(&path, &[("page", &page.to_string())]).await {
                Ok(reply) => reply,
                Err(error) => return Err(self.explained(error, || format!("commit {sha}")).await),
            };
            let mut found: ListedCommit<File> = self.0.read(&reply)?;
            files.extend(found.files.take().into_iter().flatten().map(ChangedFile::from));
            let goes_on = goes_on(&reply);
            if !goes_on || page == MAX_FILE_PAGES {
                return Ok(CommitChanges { commit: found.into(), files, is_cut: goes_on });
            }
            page += 1;
        }
    }

    async fn range_diff(&self, base: &str, head: &str) -> Result<RangeChanges, ScmError> {
        let found = self.compared(base, head, 1, 1).await?;
        let is_cut = found.files.len() >= MAX_COMPARED_FILES;
        Ok(RangeChanges { files: found.files.into_iter().map(ChangedFile::from).collect(), is_cut })
    }

    async fn file_at(&self, sha: &str, path: &str) -> Result<Option<Vec<u8>>, ScmError> {
        let Some(path) = encode_path(path) else { return Ok(None) };
        let place = format!("/contents/{path}");
        let found = self.0.accepting("application/vnd.github.raw+json", &place, &[("ref", sha)]).await;
        super::transport::or_missing(found)
    }

    async fn change_requests(
        &self,
        query: &RequestQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<Vec<ChangeRequest>>, ScmError> {
        let found: Fetched<Vec<Pull>> = match query {
            RequestQuery::Commit(sha) => {
                let path = format!("/commits/{}/pulls", encode_segment(sha));
                self.0.list_of(&path, &[("per_page", RequestQuery::LIMIT)], etag).await?
            }
            RequestQuery::Branch(branch) => {
                let head = format!("{}:{branch}", self.0.owner());
                let parameters = [
                    ("head", head.as_str()),
                    ("state", "all"),
                    ("sort", "updated"),
                    ("direction", "desc"),
                    ("per_page", RequestQuery::LIMIT),
                ];
                self.0.list_of("/pulls", &parameters, etag).await?
            }
            RequestQuery::Open => {
                let parameters = [
                    ("state", "open"),
                    ("sort", "updated"),
                    ("direction", "desc"),
                    ("per_page", RequestQuery::OPEN_LIMIT),
                ];
                self.0.list_of("/pulls", &parameters, etag).await?
            }
            RequestQuery::Number(number) => {
                let found: Fetched<Option<Pull>> =
                    self.0.list_of(&format!("/pulls/{number}"), &[], etag).await?;
                found.map(|pull| pull.into_iter().collect())
            }
        };
        Ok(found.map(|pulls| pulls.into_iter().map(ChangeRequest::from).collect()))
    }

    async fn find_comment(&self, request: u64, marker: &str) -> Result<Option<Comment>, ScmError> {
        let path = format!("/issues/{request}/comments");
        let read = async |page: u32| {
            let reply = self.0.get(&path, &[("per_page", "100"), ("page", &page.to_string())]).await?;
            let comments: Vec<IssueComment> = self.0.read(&reply)?;
            let found = comments.into_iter().find(|comment| comment.begins_with(marker)).map(Comment::from);
            Ok::<_, ScmError>((found, last_page(&reply)))
        };
        // The oldest come first, so the pages are counted down from the last one, which the first one names.
        let (found, last) = read(1).await?;
        if found.is_some() {
            return Ok(found);
        }
        let last = last.unwrap_or(1);
        for page in (2..=last).rev().take(MAX_COMMENT_PAGES as usize - 1) {
            if let (Some(found), _) = read(page).await? {
                return Ok(Some(found));
            }
        }
        match last > MAX_COMMENT_PAGES {
            true => Err(ScmError::TooManyComments { searched: MAX_COMMENT_PAGES * 100 }),
            false => Ok(None),
        }
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
            Err(error) => Err(self.explained(error, || format!("commit {sha}")).await),
        }
    }

    async fn ticket(&self, _kind: TicketKind, number: u64) -> Result<Option<Ticket>, ScmError> {
        // A request is an issue of the same number there.
        let found: Option<Issue> = self.0.json_or_missing(&format!("/issues/{number}")).await?;
        Ok(found.map(Ticket::from))
    }

    async fn check(&self) -> Result<RepositoryInfo, ScmError> {
        let Described { full_name, default_branch } = self.0.json("", &[]).await?;
        Ok(RepositoryInfo { full_name, default_branch })
    }
}
