//! A code host that speaks the APIs of all four providers about one real git
//! repository. It checks tokens, takes comments and statuses, records requests, and fails on demand.

mod dialects;
mod feedback;
mod git;
mod pulls;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use http::header::{AUTHORIZATION, ETAG, HeaderName, IF_NONE_MATCH, LINK, LOCATION};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use url::form_urlencoded;

pub use feedback::{HostComment, HostStatus};
pub use git::GitRepository;
pub use pulls::{Issue, PullRequest, RequestState};

/// The token that opens the repository.
pub const TOKEN: &str = "a-very-secret-token-of-the-code-host";

/// A provider whose API the code host speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// GitHub Enterprise.
    GitHub,
    /// GitLab; the repository is in a nested group.
    GitLab,
    /// Gitea.
    Gitea,
    /// Bitbucket Cloud.
    Bitbucket,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::GitHub, Self::GitLab, Self::Gitea, Self::Bitbucket];

    /// The word of the provider in settings.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Bitbucket => "bitbucket",
        }
    }

    /// Owner and name of the repository.
    #[must_use]
    pub const fn repository(self) -> &'static str {
        match self {
            Self::GitLab => "acme/web/shop",
            Self::GitHub | Self::Gitea | Self::Bitbucket => "acme/shop",
        }
    }

    /// Where its API is.
    const fn root(self) -> &'static str {
        match self {
            Self::GitHub => "/api/v3/repos/acme/shop",
            Self::GitLab => "/api/v4/projects/acme%2Fweb%2Fshop",
            Self::Gitea => "/api/v1/repos/acme/shop",
            Self::Bitbucket => "/2.0/repositories/acme/shop",
        }
    }

    fn of_path(path: &str) -> Option<Self> {
        let begins = |dialect: &Self| {
            let root = dialect.root();
            let prefix = root.split("acme").next().unwrap_or(root);
            path.starts_with(prefix)
        };
        Self::ALL.into_iter().find(begins)
    }

    fn admits(self, headers: &HeaderMap, token: &str) -> bool {
        let (name, expected) = match self {
            Self::GitHub | Self::Bitbucket => (AUTHORIZATION, format!("Bearer {token}")),
            Self::GitLab => (HeaderName::from_static("private-token"), token.to_owned()),
            Self::Gitea => (AUTHORIZATION, format!("token {token}")),
        };
        headers.get(name).is_some_and(|value| value.as_bytes() == expected.as_bytes())
    }
}

/// What the code host does instead of answering.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers with a status, headers and a body.
    Answers(u16, Vec<(&'static str, String)>, String),
    /// Answers with a body of this size, in bytes.
    Floods(usize),
    /// Redirects to another address.
    RedirectsTo(String),
    /// Does what it is asked to, and ends the connection without an answer.
    Cuts,
}

/// A request that reached the code host.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The API that was spoken.
    pub dialect: Dialect,
    /// Method.
    pub method: Method,
    /// JSON that was sent; null without any.
    pub body: Value,
    /// Path below the repository as it was sent, still encoded.
    pub path: String,
    /// Query parameters, decoded.
    pub query: Vec<(String, String)>,
    /// Whether the answer had to be confirmed only.
    pub is_conditional: bool,
}

impl Recorded {
    /// A query parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug)]
struct Known {
    repository: GitRepository,
    /// The one changed last comes first.
    pulls: Vec<PullRequest>,
    issues: Vec<Issue>,
    token: String,
    fault: Option<Fault>,
    /// What happens to the next writes, one each.
    write_faults: VecDeque<Option<Fault>>,
    requests: Vec<Recorded>,
    /// Requests until one gets no answer, and whether that one is carried out.
    hang: Option<(usize, bool)>,
    /// Told when a request gets no answer.
    hung: Arc<Notify>,
    comments: Vec<HostComment>,
    /// The account that the token belongs to.
    account: u64,
    /// Counts them; ids are never used again.
    last_comment: u64,
    statuses: Vec<HostStatus>,
}

/// A running code host. Dropping it stops it.
#[derive(Debug)]
pub struct CodeHost {
    host: String,
    known: Arc<Mutex<Known>>,
    serving: JoinHandle<()>,
}

impl Drop for CodeHost {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What an answer is made of.
pub(crate) struct Reply {
    status: StatusCode,
    body: Vec<u8>,
    /// Number of the next page, for a `Link` header.
    next_page: Option<u32>,
    /// Number of the last page, for the same header.
    last_page: Option<u32>,
    has_etag: bool,
}

impl Reply {
    fn json(value: &Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: value.to_string().into_bytes(),
            next_page: None,
            last_page: None,
            has_etag: false,
        }
    }

    fn bytes(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, body, next_page: None, last_page: None, has_etag: false }
    }

    fn error(status: StatusCode) -> Self {
        Self { status, ..Self::json(&serde_json::json!({ "message": "no" })) }
    }

    fn with_next_page(self, next_page: Option<u32>) -> Self {
        Self { next_page, ..self }
    }

    fn with_etag(self) -> Self {
        Self { has_etag: true, ..self }
    }
}

impl CodeHost {
    /// Starts a code host over a repository without commits.
    ///
    /// # Errors
    /// When there is no port, or `git` cannot be run.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let host = listener.local_addr()?.to_string();
        let repository = GitRepository::create()?;
        let known = Known {
            repository,
            pulls: Vec::new(),
            issues: Vec::new(),
            token: TOKEN.to_owned(),
            fault: None,
            write_faults: VecDeque::new(),
            requests: Vec::new(),
            hang: None,
            hung: Arc::default(),
            comments: Vec::new(),
            account: 1,
            last_comment: 0,
            statuses: Vec::new(),
        };
        let known = Arc::new(Mutex::new(known));
        let router = Router::new().fallback(receive).with_state(Arc::clone(&known));
        let serving = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { host, known, serving })
    }

    /// Host and port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The address that people know the repository by.
    #[must_use]
    pub fn address(&self, dialect: Dialect) -> String {
        format!("http://{}/{}", self.host, dialect.repository())
    }

    /// Commits files; one without contents is removed. Returns the hash.
    ///
    /// # Errors
    /// When `git` fails.
    pub fn commit(&self, message: &str, files: &[(&str, Option<&[u8]>)]) -> Result<String> {
        self.lock().repository.commit(message, files)
    }

    /// Runs `git` in the repository and returns what it printed.
    ///
    /// # Errors
    /// When `git` fails.
    pub fn git(&self, arguments: &[&str]) -> Result<String> {
        self.lock().repository.git(arguments)
    }

    /// Opens a pull request, or changes the one of that number.
    pub fn set_pull_request(&self, request: PullRequest) {
        let pulls = &mut self.lock().pulls;
        pulls.retain(|known| known.number != request.number);
        pulls.insert(0, request);
    }

    /// Opens an issue, or changes the one of that number.
    pub fn set_issue(&self, issue: Issue) {
        let issues = &mut self.lock().issues;
        issues.retain(|known| known.number != issue.number);
        issues.push(issue);
    }

    /// Opens the repository with another token only.
    pub fn set_token(&self, token: &str) {
        token.clone_into(&mut self.lock().token);
    }

    /// Fails from now on, or answers again.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    /// What happens to the next comments and statuses, one each; `None` answers.
    pub fn plan_writes(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.lock().write_faults = faults.into_iter().collect();
    }

    /// Leaves one request without an answer, after `others` of them; it is carried out or not.
    pub fn hang_after(&self, others: usize, is_done: bool) {
        self.lock().hang = Some((others, is_done));
    }

    /// Whether the request that [`CodeHost::hang_after`] means has not come yet. It is not waited for any more.
    #[must_use]
    pub fn stop_hanging(&self) -> bool {
        self.lock().hang.take().is_some()
    }

    /// Waits until a request is left without an answer.
    pub async fn until_it_hangs(&self) {
        let hung = Arc::clone(&self.lock().hung);
        hung.notified().await;
    }

    /// The comments on a request, oldest first.
    #[must_use]
    pub fn comments(&self, request: u64) -> Vec<HostComment> {
        self.lock().comments.iter().filter(|comment| comment.request == request).cloned().collect()
    }

    /// Adds a comment of somebody else.
    pub fn add_comment(&self, request: u64, body: &str) {
        self.lock().add_comment(request, body);
    }

    /// Gives the token to another account, which may not edit what the one before wrote.
    pub fn change_account(&self) {
        self.lock().account += 1;
    }

    /// Deletes all comments on a request.
    pub fn delete_comments(&self, request: u64) {
        self.lock().comments.retain(|comment| comment.request != request);
    }

    /// The statuses that were set of a commit, oldest first.
    #[must_use]
    pub fn statuses(&self, sha: &str) -> Vec<HostStatus> {
        self.lock().statuses.iter().filter(|status| status.sha == sha).cloned().collect()
    }

    /// What was asked since the last call.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.lock().requests)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn receive(
    State(known): State<Arc<Mutex<Known>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let hang = {
        let mut known = lock(&known);
        let is_due = known.hang.take_if(|(others, _)| *others == 0);
        if let Some((others, _)) = &mut known.hang {
            *others -= 1;
        }
        is_due.map(|(_, is_done)| (is_done, Arc::clone(&known.hung)))
    };
    let asked = move || answer(&mut lock(&known), method, &uri, &headers, &body);
    if let Some((is_done, hung)) = hang {
        if is_done {
            let _ = tokio::task::spawn_blocking(asked).await;
        }
        hung.notify_one();
        return std::future::pending().await;
    }
    let answered = tokio::task::spawn_blocking(asked).await;
    answered.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, Body::empty()))
}

fn plain(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn answer(known: &mut Known, method: Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
    let Some(dialect) = Dialect::of_path(uri.path()) else {
        return plain(StatusCode::NOT_FOUND, Body::from("no API is here"));
    };
    let query: Vec<(String, String)> =
        form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let path = uri.path().strip_prefix(dialect.root());
    let recorded = Recorded {
        dialect,
        method,
        body: serde_json::from_slice(body).unwrap_or_default(),
        path: path.unwrap_or(uri.path()).to_owned(),
        query,
        is_conditional: headers.contains_key(IF_NONE_MATCH),
    };
    known.requests.push(recorded.clone());
    let is_write = recorded.method != Method::GET;
    let planned = if is_write { known.write_faults.pop_front().flatten() } else { None };
    let fault = planned.or_else(|| known.fault.clone());
    let cuts = matches!(fault, Some(Fault::Cuts));
    match &fault {
        Some(Fault::Answers(status, more, body)) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = plain(status, Body::from(body.clone()));
            for (name, value) in more {
                if let Ok(value) = value.parse() {
                    response.headers_mut().insert(*name, value);
                }
            }
            return response;
        }
        Some(Fault::Floods(bytes)) => return plain(StatusCode::OK, flood(*bytes)),
        Some(Fault::RedirectsTo(address)) => {
            let mut response = plain(StatusCode::FOUND, Body::empty());
            if let Ok(address) = address.parse() {
                response.headers_mut().insert(LOCATION, address);
            }
            return response;
        }
        Some(Fault::Cuts) | None => {}
    }
    if !dialect.admits(headers, &known.token) {
        return plain(StatusCode::UNAUTHORIZED, Body::from(r#"{"message":"Bad credentials"}"#));
    }
    if path.is_none() {
        return plain(StatusCode::NOT_FOUND, Body::from(r#"{"message":"Not Found"}"#));
    }
    if let Some(reply) = feedback::reply(known, &recorded) {
        if cuts {
            let cut = futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
            return plain(reply.status, Body::from_stream(cut));
        }
        return finish(reply, uri, headers);
    }
    let reply = dialects::reply(&known.repository, (&known.pulls, &known.issues), &recorded)
        .unwrap_or_else(|| Reply::error(StatusCode::NOT_FOUND));
    finish(reply, uri, headers)
}

/// A body of blanks.
fn flood(bytes: usize) -> Body {
    const CHUNK: &[u8] = &[b' '; 64 * 1024];
    let chunks = (0..bytes.div_ceil(CHUNK.len())).map(|_| Ok::<_, Infallible>(Bytes::from_static(CHUNK)));
    Body::from_stream(futures::stream::iter(chunks))
}

/// The `Link` header of a page.
fn links(path: &str, next: u32, last: Option<u32>) -> String {
    let link =
        |page: u32, relation: &str| format!("<http://host.test{path}?page={page}>; rel=\"{relation}\"");
    let last = last.map(|last| link(last, "last"));
    [Some(link(next, "next")), last].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Adds what APIs say beside the body.
fn finish(reply: Reply, uri: &Uri, headers: &HeaderMap) -> Response {
    let etag = format!("W/\"{}\"", Base64::encode_string(&Sha256::digest(&reply.body)[..12]));
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    if reply.has_etag && is_known {
        return plain(StatusCode::NOT_MODIFIED, Body::empty());
    }
    let mut response = plain(reply.status, Body::from(reply.body));
    if reply.has_etag
        && let Ok(etag) = etag.parse()
    {
        response.headers_mut().insert(ETAG, etag);
    }
    if let Some(page) = reply.next_page
        && let Ok(link) = links(uri.path(), page, reply.last_page).parse()
    {
        response.headers_mut().insert(LINK, link);
    }
    response
}
