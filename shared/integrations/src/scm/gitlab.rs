//! GitLab: <https://docs.gitlab.com/api/commits/>, version 4.

use async_trait::async_trait;
use callboard_platform::egress::{Next, next_page};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::error::ScmError;
use super::patch::{count_lines, is_binary_note};
use super::repository::encode_segment;
use super::source_control::SourceControl;
use super::transport::{Reply, Transport, or_gone, or_missing};
use super::types::{
    ChangeRequest, ChangedFile, Comment, Commit, CommitChanges, CommitPage, CommitQuery, CommitStatus,
    Fetched, FileStatus, RangeChanges, RepositoryInfo, RequestQuery, RequestState, Ticket, TicketKind, date,
};

/// Files of one page of a diff.
const FILES_PER_PAGE: &str = "100";
/// Pages of files that are read.
const MAX_FILE_PAGES: u32 = 30;
/// Pages of notes that are searched, 100 notes each.
const MAX_NOTE_PAGES: u32 = 30;
/// What writing takes.
const WRITING: &str = "api";

pub(super) struct GitLab(Transport);

#[derive(Deserialize)]
struct ListedCommit {
    id: String,
    message: String,
    author_name: Option<String>,
    authored_date: Option<String>,
    #[serde(default)]
    parent_ids: Vec<String>,
}

#[derive(Deserialize)]
struct Diff {
    old_path: String,
    new_path: String,
    #[serde(default)]
    new_file: bool,
    #[serde(default)]
    renamed_file: bool,
    #[serde(default)]
    deleted_file: bool,
    #[serde(default)]
    too_large: Option<bool>,
    #[serde(default)]
    collapsed: Option<bool>,
    #[serde(default)]
    diff: String,
}

#[derive(Deserialize)]
struct Comparison {
    diffs: Vec<Diff>,
    #[serde(default)]
    compare_timeout: bool,
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
    web_url: String,
    author: Option<User>,
    source_branch: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

impl From<MergeRequest> for ChangeRequest {
    fn from(request: MergeRequest) -> Self {
        // A locked one is about to be merged.
        let is_open = matches!(request.state.as_str(), "opened" | "locked");
        Self {
            is_fork: request.source_project_id != Some(request.target_project_id),
            number: request.iid,
            state: RequestState::new(is_open, request.draft, request.state == "merged"),
            title: request.title,
            url: request.web_url,
            author: request.author.map(|user| user.username).unwrap_or_default(),
            branch: request.source_branch,
        }
    }
}

/// A comment; GitLab counts what happened to a request among them, as a note of the system.
#[derive(Deserialize)]
struct Note {
    id: u64,
    body: String,
    #[serde(default)]
    system: bool,
}

impl From<Note> for Comment {
    fn from(note: Note) -> Self {
        Self { id: note.id.to_string(), url: None }
    }
}

/// An issue or merge request.
#[derive(Deserialize)]
struct Listed {
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
}

impl From<Listed> for Ticket {
    fn from(found: Listed) -> Self {
        let is_open = matches!(found.state.as_str(), "opened" | "locked");
        Self { state: RequestState::new(is_open, found.draft, found.state == "merged"), title: found.title }
    }
}

#[derive(Deserialize)]
struct Described {
    path_with_namespace: String,
    default_branch: Option<String>,
}

impl From<ListedCommit> for Commit {
    fn from(listed: ListedCommit) -> Self {
        Self {
            sha: listed.id,
            message: listed.message,
            author: listed.author_name.unwrap_or_default(),
            date: date(listed.authored_date.as_deref()),
            parents: listed.parent_ids,
        }
    }
}

impl From<Diff> for ChangedFile {
    fn from(diff: Diff) -> Self {
        let status = match &diff {
            Diff { new_file: true, .. } => FileStatus::Added,
            Diff { deleted_file: true, .. } => FileStatus::Removed,
            Diff { renamed_file: true, .. } => FileStatus::Renamed,
            _ => FileStatus::Modified,
        };
        let is_left_out = diff.too_large.unwrap_or_default() || diff.collapsed.unwrap_or_default();
        let (additions, deletions) = match is_left_out {
            true => (None, None),
            false => {
                let (additions, deletions) = count_lines(&diff.diff);
                (Some(additions), Some(deletions))
            }
        };
        let has_patch = !is_left_out && !diff.diff.is_empty() && !is_binary_note(&diff.diff);
        Self {
            previous_path: (status == FileStatus::Renamed).then_some(diff.old_path),
            path: diff.new_path,
            status,
            additions,
            deletions,
            patch: has_patch.then(|| diff.diff.strip_suffix('\n').unwrap_or(&diff.diff).to_owned()),
        }
    }
}

fn goes_on(reply: &Reply) -> bool {
    matches!(next_page(&reply.headers), Next::At(_))
}

impl GitLab {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }
}

#[async_trait]
impl SourceControl for GitLab {
    async fn commits(
        &self,
        query: &CommitQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<CommitPage>, ScmError> {
        let (page, size, start) = query.place();
        let (page, size) = (page.to_string(), size.to_string());
        let range = query.base.as_ref().map(|base| format!("{base}..{}", start.unwrap_or("HEAD")));
        let reference = range.as_deref().or(start);
        let mut parameters = vec![("per_page", size.as_str()), ("page", page.as_str())];
        parameters.extend(reference.map(|reference| ("ref_name", reference)));
        let (reply, etag) = match self.0.get_changed("/repository/commits", &parameters, etag).await {
            Ok(Fetched::NotModified) => return Ok(Fetched::NotModified),
            Ok(Fetched::Fresh { value, etag }) => (value, etag),
            Err(error) => return Err(self.0.explained(error, || query.wanted()).await),
        };
        let commits: Vec<ListedCommit> = self.0.read(&reply)?;
        let commits = commits.into_iter().map(Commit::from).collect();
        let value = CommitPage::numbered(commits, query, goes_on(&reply));
        Ok(Fetched::Fresh { value, etag })
    }

    async fn commit_diff(&self, sha: &str) -> Result<CommitChanges, ScmError> {
        let path = format!("/repository/commits/{}", encode_segment(sha));
        let commit: ListedCommit = match self.0.json(&path, &[]).await {
            Ok(commit) => commit,
            Err(error) => return Err(self.0.explained(error, || format!("commit {sha}")).await),
        };
        let mut files = Vec::new();
        let mut page = 1;
        loop {
            let parameters = [("per_page", FILES_PER_PAGE), ("page", &page.to_string())];
            let reply = self.0.get(&format!("{path}/diff"), &parameters).await?;
            let diffs: Vec<Diff> = self.0.read(&reply)?;
            files.extend(diffs.into_iter().map(ChangedFile::from));
            let goes_on = goes_on(&reply);
            if !goes_on || page == MAX_FILE_PAGES {
                return Ok(CommitChanges { commit: commit.into(), files, is_cut: goes_on });
            }
            page += 1;
        }
    }

    async fn range_diff(&self, base: &str, head: &str) -> Result<RangeChanges, ScmError> {
        let found: Comparison =
            match self.0.json("/repository/compare", &[("from", base), ("to", head)]).await {
                Ok(found) => found,
                Err(error) => {
                    return Err(self.0.explained(error, || format!("commit {base}, or no {head}")).await);
                }
            };
        let files = found.diffs.into_iter().map(ChangedFile::from).collect();
        Ok(RangeChanges { files, is_cut: found.compare_timeout })
    }

    async fn file_at(&self, sha: &str, path: &str) -> Result<Option<Vec<u8>>, ScmError> {
        let place = format!("/repository/files/{}/raw", encode_segment(path));
        or_missing(self.0.accepting("*/*", &place, &[("ref", sha)]).await)
    }

    async fn change_requests(
        &self,
        query: &RequestQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<Vec<ChangeRequest>>, ScmError> {
        let found: Fetched<Vec<MergeRequest>> = match query {
            RequestQuery::Commit(sha) => {
                let path = format!("/repository/commits/{}/merge_requests", encode_segment(sha));
                self.0.list_of(&path, &[("per_page", RequestQuery::LIMIT)], etag).await?
            }
            RequestQuery::Branch(branch) => {
                let parameters = [
                    ("source_branch", branch.as_str()),
                    ("state", "all"),
                    ("order_by", "updated_at"),
                    ("sort", "desc"),
                    ("per_page", RequestQuery::LIMIT),
                ];
                self.0.list_of("/merge_requests", &parameters, etag).await?
            }
            RequestQuery::Open => {
                let parameters = [
                    ("state", "opened"),
                    ("order_by", "updated_at"),
                    ("sort", "desc"),
                    ("per_page", RequestQuery::OPEN_LIMIT),
                ];
                self.0.list_of("/merge_requests", &parameters, etag).await?
            }
            RequestQuery::Number(number) => {
                let found: Fetched<Option<MergeRequest>> =
                    self.0.list_of(&format!("/merge_requests/{number}"), &[], etag).await?;
                found.map(|request| request.into_iter().collect())
            }
        };
        Ok(found.map(|requests| requests.into_iter().map(ChangeRequest::from).collect()))
    }

    async fn find_comment(&self, request: u64, marker: &str) -> Result<Option<Comment>, ScmError> {
        let path = format!("/merge_requests/{request}/notes");
        for page in 1..=MAX_NOTE_PAGES {
            let page = page.to_string();
            let parameters =
                [("per_page", "100"), ("page", page.as_str()), ("order_by", "created_at"), ("sort", "desc")];
            let reply = self.0.get(&path, &parameters).await?;
            let notes: Vec<Note> = self.0.read(&reply)?;
            let is_ours = |note: &Note| !note.system && note.body.trim_start().starts_with(marker);
            if let Some(found) = notes.into_iter().find(is_ours) {
                return Ok(Some(found.into()));
            }
            if !goes_on(&reply) {
                return Ok(None);
            }
        }
        Err(ScmError::TooManyComments { searched: MAX_NOTE_PAGES * 100 })
    }

    async fn has_comment(&self, request: u64, id: &str) -> Result<bool, ScmError> {
        let path = format!("/merge_requests/{request}/notes/{}", encode_segment(id));
        Ok(self.0.json_or_missing::<Note>(&path).await?.is_some())
    }

    async fn create_comment(&self, request: u64, text: &str) -> Result<Comment, ScmError> {
        let (path, body) = (format!("/merge_requests/{request}/notes"), json!({ "body": text }));
        let reply = self.0.write(Method::POST, &path, &body, WRITING).await?;
        Ok(self.0.read::<Note>(&reply)?.into())
    }

    async fn update_comment(&self, request: u64, id: &str, text: &str) -> Result<Option<Comment>, ScmError> {
        let path = format!("/merge_requests/{request}/notes/{}", encode_segment(id));
        let reply = or_gone(self.0.write(Method::PUT, &path, &json!({ "body": text }), WRITING).await)?;
        reply.map(|reply| Ok(self.0.read::<Note>(&reply)?.into())).transpose()
    }

    async fn set_status(&self, sha: &str, status: &CommitStatus<'_>) -> Result<(), ScmError> {
        let body = json!({
            "state": if status.is_success { "success" } else { "failed" },
            "name": status.context, "description": status.description, "target_url": status.url,
        });
        let path = format!("/statuses/{}", encode_segment(sha));
        match self.0.write(Method::POST, &path, &body, WRITING).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.0.explained(error, || format!("commit {sha}")).await),
        }
    }

    async fn ticket(&self, kind: TicketKind, number: u64) -> Result<Option<Ticket>, ScmError> {
        let list = if kind == TicketKind::Issue { "issues" } else { "merge_requests" };
        let found: Option<Listed> = self.0.json_or_missing(&format!("/{list}/{number}")).await?;
        Ok(found.map(Ticket::from))
    }

    async fn check(&self) -> Result<RepositoryInfo, ScmError> {
        let Described { path_with_namespace, default_branch } = self.0.json("", &[]).await?;
        Ok(RepositoryInfo { full_name: path_with_namespace, default_branch })
    }
}
