//! Bitbucket Cloud: <https://developer.atlassian.com/cloud/bitbucket/rest/>, version 2.0.

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use url::Url;

use super::error::ScmError;
use super::patch::by_path;
use super::repository::{encode_path, encode_segment};
use super::source_control::SourceControl;
use super::transport::{Transport, or_gone, or_missing};
use super::types::{
    ChangeRequest, ChangedFile, Comment, Commit, CommitChanges, CommitPage, CommitQuery, CommitStatus,
    Fetched, FileStatus, PageToken, RangeChanges, RepositoryInfo, RequestQuery, RequestState, Ticket,
    TicketKind, date,
};

/// Files of one page of changes.
const FILES_PER_PAGE: &str = "500";
/// Pages of files that are read.
const MAX_FILE_PAGES: u32 = 6;
/// Pages of comments that are searched, 100 comments each.
const MAX_COMMENT_PAGES: u32 = 30;
/// Characters of the longest key of a status.
const MAX_KEY_CHARS: usize = 39;
const COMMENTS: &str = "pullrequest";
const STATUSES: &str = "repository";

pub(super) struct Bitbucket(Transport);

#[derive(Deserialize)]
struct Paged<T> {
    #[serde(default = "Vec::new")]
    values: Vec<T>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct ListedCommit {
    hash: String,
    message: String,
    author: Option<Author>,
    date: Option<String>,
    #[serde(default)]
    parents: Vec<Parent>,
}

#[derive(Deserialize)]
struct Author {
    raw: Option<String>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    display_name: Option<String>,
}

#[derive(Deserialize)]
struct Parent {
    hash: String,
}

#[derive(Deserialize)]
struct FileChange {
    status: String,
    lines_added: u64,
    lines_removed: u64,
    old: Option<Place>,
    new: Option<Place>,
}

#[derive(Deserialize)]
struct Place {
    path: String,
}

#[derive(Deserialize)]
struct Described {
    full_name: String,
    mainbranch: Option<Branch>,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
}

#[derive(Deserialize)]
struct PullRequest {
    id: u64,
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
    links: Links,
    author: Option<User>,
    source: End,
    destination: End,
}

#[derive(Deserialize)]
struct PostedComment {
    id: u64,
    #[serde(default)]
    deleted: bool,
    content: Option<Content>,
    links: Option<Links>,
}

#[derive(Deserialize)]
struct Content {
    raw: Option<String>,
}

impl PostedComment {
    fn begins_with(&self, marker: &str) -> bool {
        let raw = self.content.as_ref().and_then(|content| content.raw.as_deref());
        !self.deleted && raw.is_some_and(|raw| raw.trim_start().starts_with(marker))
    }
}

impl From<PostedComment> for Comment {
    fn from(found: PostedComment) -> Self {
        Self { id: found.id.to_string(), url: found.links.map(|links| links.html.href) }
    }
}

/// The key of a status, which is shorter than names may be.
fn status_key(context: &str) -> String {
    if context.chars().count() <= MAX_KEY_CHARS {
        return context.to_owned();
    }
    hex::encode(&Sha256::digest(context)[..MAX_KEY_CHARS / 2])
}

#[derive(Deserialize)]
struct Links {
    html: Link,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

/// An issue or pull request.
#[derive(Deserialize)]
struct Listed {
    title: String,
    state: String,
    #[serde(default)]
    draft: bool,
}

impl From<Listed> for Ticket {
    fn from(found: Listed) -> Self {
        // Requests are written in capitals; an issue on hold is still to be done.
        let is_open = matches!(found.state.as_str(), "OPEN" | "new" | "open" | "on hold");
        Self { state: RequestState::new(is_open, found.draft, found.state == "MERGED"), title: found.title }
    }
}

/// One end of a pull request; the repository is missing once it was deleted.
#[derive(Deserialize)]
struct End {
    branch: Branch,
    repository: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    full_name: String,
}

impl From<PullRequest> for ChangeRequest {
    fn from(request: PullRequest) -> Self {
        let repository = |end: &End| end.repository.as_ref().map(|named| named.full_name.clone());
        Self {
            is_fork: repository(&request.source) != repository(&request.destination),
            number: request.id,
            state: RequestState::new(request.state == "OPEN", request.draft, request.state == "MERGED"),
            title: request.title,
            url: request.links.html.href,
            author: request.author.and_then(|user| user.display_name).unwrap_or_default(),
            branch: request.source.branch.name,
        }
    }
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { values: Vec::new(), next: None }
    }
}

impl From<ListedCommit> for Commit {
    fn from(listed: ListedCommit) -> Self {
        let (raw, user) = listed.author.map_or((None, None), |author| (author.raw, author.user));
        // `Ada Lovelace <ada@example.org>`
        let written = raw.map(|raw| raw.split('<').next().unwrap_or_default().trim().to_owned());
        let shown = user.and_then(|user| user.display_name);
        Self {
            sha: listed.hash,
            message: listed.message,
            author: written.filter(|name| !name.is_empty()).or(shown).unwrap_or_default(),
            date: date(listed.date.as_deref()),
            parents: listed.parents.into_iter().map(|parent| parent.hash).collect(),
        }
    }
}

impl FileChange {
    /// The file without its patch; `None` for a change that names no file.
    fn into_file(self) -> Option<ChangedFile> {
        let status = match self.status.as_str() {
            "added" => FileStatus::Added,
            "removed" => FileStatus::Removed,
            "renamed" => FileStatus::Renamed,
            _ => FileStatus::Modified,
        };
        let (old, new) = (self.old.map(|place| place.path), self.new.map(|place| place.path));
        Some(ChangedFile {
            previous_path: old.clone().filter(|_| status == FileStatus::Renamed),
            path: new.or(old)?,
            status,
            additions: Some(self.lines_added),
            deletions: Some(self.lines_removed),
            patch: None,
        })
    }
}

/// The parameters by which a `next` address leads to the next page.
fn next_page(address: &str) -> Option<(u32, Option<String>)> {
    let url = Url::parse(address).ok()?;
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    Some((value("page")?.parse().ok()?, value("ctx")))
}

impl Bitbucket {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    /// Changed files without their patches, and whether there are more.
    async fn changes(&self, spec: &str, parameters: &[(&str, &str)]) -> Result<RangeChanges, ScmError> {
        let mut files = Vec::new();
        let mut page = 1;
        loop {
            let number = page.to_string();
            let mut asked = vec![("pagelen", FILES_PER_PAGE), ("page", number.as_str())];
            asked.extend(parameters);
            let found: Paged<FileChange> = self.0.json(&format!("/diffstat/{spec}"), &asked).await?;
            files.extend(found.values.into_iter().filter_map(FileChange::into_file));
            let goes_on = found.next.is_some();
            if !goes_on || page == MAX_FILE_PAGES {
                return Ok(RangeChanges { files, is_cut: goes_on });
            }
            page += 1;
        }
    }
}

#[async_trait]
impl SourceControl for Bitbucket {
    async fn commits(
        &self,
        query: &CommitQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<CommitPage>, ScmError> {
        let (page, size, start) = query.place();
        // Without a start the list would be that of all branches.
        let default = match start {
            Some(_) => None,
            None => match self.check().await?.default_branch {
                Some(branch) => Some(branch),
                None => return Ok(Fetched::Fresh { value: CommitPage::EMPTY, etag: None }),
            },
        };
        let (page, size) = (page.to_string(), size.to_string());
        let mut parameters = vec![("pagelen", size.as_str()), ("page", page.as_str())];
        parameters.extend(start.or(default.as_deref()).map(|start| ("include", start)));
        parameters.extend(query.base.as_deref().map(|base| ("exclude", base)));
        let context = query.page.as_ref().and_then(|page| page.context.as_deref());
        parameters.extend(context.map(|context| ("ctx", context)));
        let (reply, etag) = match self.0.get_changed("/commits", &parameters, etag).await {
            Ok(Fetched::NotModified) => return Ok(Fetched::NotModified),
            Ok(Fetched::Fresh { value, etag }) => (value, etag),
            Err(error) => return Err(self.0.explained(error, || query.wanted()).await),
        };
        let found: Paged<ListedCommit> = self.0.read(&reply)?;
        let next = found.next.as_deref().and_then(next_page);
        let commits = found.values.into_iter().map(Commit::from).collect();
        let mut value = CommitPage::numbered(commits, query, next.is_some());
        value.next =
            value.next.zip(next).map(|(token, (page, context))| PageToken { page, context, ..token });
        Ok(Fetched::Fresh { value, etag })
    }

    async fn commit_diff(&self, sha: &str) -> Result<CommitChanges, ScmError> {
        let sha = encode_segment(sha);
        let commit: ListedCommit = match self.0.json(&format!("/commit/{sha}"), &[]).await {
            Ok(commit) => commit,
            Err(error) => return Err(self.0.explained(error, || format!("commit {sha}")).await),
        };
        let RangeChanges { mut files, is_cut } = self.changes(&sha, &[]).await?;
        match self.0.accepting("text/plain", &format!("/diff/{sha}"), &[]).await {
            Ok(reply) => {
                let mut patches = by_path(&reply.body);
                for file in &mut files {
                    file.patch = patches.remove(&file.path).and_then(|patch| patch.hunks);
                }
            }
            // The names of the files are enough to go on with.
            Err(ScmError::TooLarge { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(CommitChanges { commit: commit.into(), files, is_cut })
    }

    async fn range_diff(&self, base: &str, head: &str) -> Result<RangeChanges, ScmError> {
        // The commit with the changes comes first here.
        let spec = format!("{}..{}", encode_segment(head), encode_segment(base));
        match self.changes(&spec, &[("topic", "true")]).await {
            Ok(changes) => Ok(changes),
            Err(error) => Err(self.0.explained(error, || format!("commit {base}, or no {head}")).await),
        }
    }

    async fn file_at(&self, sha: &str, path: &str) -> Result<Option<Vec<u8>>, ScmError> {
        let Some(path) = encode_path(path) else { return Ok(None) };
        let place = format!("/src/{}/{path}", encode_segment(sha));
        or_missing(self.0.accepting("*/*", &place, &[]).await)
    }

    async fn change_requests(
        &self,
        query: &RequestQuery,
        etag: Option<&str>,
    ) -> Result<Fetched<Vec<ChangeRequest>>, ScmError> {
        let found: Fetched<Paged<PullRequest>> = match query {
            RequestQuery::Commit(sha) => {
                let path = format!("/commit/{}/pullrequests", encode_segment(sha));
                self.0.list_of(&path, &[("pagelen", RequestQuery::LIMIT)], etag).await?
            }
            RequestQuery::Branch(branch) => {
                let quoted = branch.replace('\\', "\\\\").replace('"', "\\\"");
                let from = format!("source.branch.name = \"{quoted}\"");
                let parameters = [
                    ("q", from.as_str()),
                    ("state", "OPEN"),
                    ("state", "MERGED"),
                    ("state", "DECLINED"),
                    ("sort", "-updated_on"),
                    ("pagelen", RequestQuery::LIMIT),
                ];
                self.0.list_of("/pullrequests", &parameters, etag).await?
            }
            RequestQuery::Open => {
                let parameters =
                    [("state", "OPEN"), ("sort", "-updated_on"), ("pagelen", RequestQuery::OPEN_LIMIT)];
                self.0.list_of("/pullrequests", &parameters, etag).await?
            }
            RequestQuery::Number(number) => {
                let found: Fetched<Option<PullRequest>> =
                    self.0.list_of(&format!("/pullrequests/{number}"), &[], etag).await?;
                found.map(|request| Paged { values: request.into_iter().collect(), next: None })
            }
        };
        Ok(found.map(|page| page.values.into_iter().map(ChangeRequest::from).collect()))
    }

    async fn find_comment(&self, request: u64, marker: &str) -> Result<Option<Comment>, ScmError> {
        let path = format!("/pullrequests/{request}/comments");
        for page in 1..=MAX_COMMENT_PAGES {
            let page = page.to_string();
            let parameters = [("pagelen", "100"), ("page", page.as_str()), ("sort", "-created_on")];
            let found: Paged<PostedComment> = self.0.json(&path, &parameters).await?;
            if let Some(comment) = found.values.into_iter().find(|comment| comment.begins_with(marker)) {
                return Ok(Some(comment.into()));
            }
            if found.next.is_none() {
                return Ok(None);
            }
        }
        Err(ScmError::TooManyComments { searched: MAX_COMMENT_PAGES * 100 })
    }

    async fn has_comment(&self, request: u64, id: &str) -> Result<bool, ScmError> {
        let path = format!("/pullrequests/{request}/comments/{}", encode_segment(id));
        let found: Option<PostedComment> = self.0.json_or_missing(&path).await?;
        Ok(found.is_some_and(|comment| !comment.deleted))
    }

    async fn create_comment(&self, request: u64, text: &str) -> Result<Comment, ScmError> {
        let path = format!("/pullrequests/{request}/comments");
        let body = json!({ "content": { "raw": text } });
        let reply = self.0.write(Method::POST, &path, &body, COMMENTS).await?;
        Ok(self.0.read::<PostedComment>(&reply)?.into())
    }

    async fn update_comment(&self, request: u64, id: &str, text: &str) -> Result<Option<Comment>, ScmError> {
        let path = format!("/pullrequests/{request}/comments/{}", encode_segment(id));
        let body = json!({ "content": { "raw": text } });
        let Some(reply) = or_gone(self.0.write(Method::PUT, &path, &body, COMMENTS).await)? else {
            return Ok(None);
        };
        let comment: PostedComment = self.0.read(&reply)?;
        Ok((!comment.deleted).then(|| comment.into()))
    }

    async fn set_status(&self, sha: &str, status: &CommitStatus<'_>) -> Result<(), ScmError> {
        let body = json!({
            "key": status_key(status.context), "name": status.context, "url": status.url,
            "state": if status.is_success { "SUCCESSFUL" } else { "FAILED" }, "description": status.description,
        });
        let path = format!("/commit/{}/statuses/build", encode_segment(sha));
        match self.0.write(Method::POST, &path, &body, STATUSES).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.0.explained(error, || format!("commit {sha}")).await),
        }
    }

    async fn ticket(&self, kind: TicketKind, number: u64) -> Result<Option<Ticket>, ScmError> {
        let list = if kind == TicketKind::Issue { "issues" } else { "pullrequests" };
        let found: Option<Listed> = self.0.json_or_missing(&format!("/{list}/{number}")).await?;
        Ok(found.map(Ticket::from))
    }

    async fn check(&self) -> Result<RepositoryInfo, ScmError> {
        let Described { full_name, mainbranch } = self.0.json("", &[]).await?;
        Ok(RepositoryInfo { full_name, default_branch: mainbranch.map(|branch| branch.name) })
    }
}
