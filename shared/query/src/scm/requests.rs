//! Pull and merge requests of commits and branches.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::text::{clean, cut};
use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{ChangeRequest, Fetched, RequestQuery, RequestState, ScmError, is_branch};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::Access;
use super::cache::{Entry, Freshness};
use super::commits::is_whole_sha;
use super::error::SourceControlError;
use super::host::Host;
use crate::Context;

/// Characters of a title and of a name that are shown.
const MAX_TITLE_CHARS: usize = 300;
const MAX_NAME_CHARS: usize = 200;

/// A pull or merge request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestItem {
    /// Number within the repository.
    #[schema(example = 42)]
    pub number: u64,
    /// Title.
    pub title: String,
    /// `open`, `draft`, `merged` or `closed`.
    #[schema(value_type = String, example = "open")]
    pub state: RequestState,
    /// Address of its page.
    pub url: String,
    /// Name of who opened it.
    pub author: String,
    /// Branch that it wants to merge.
    pub branch: String,
    /// Whether that branch is in another repository.
    pub is_fork: bool,
}

impl RequestItem {
    /// The word for its state.
    #[must_use]
    pub const fn state_word(&self) -> &'static str {
        match self.state {
            RequestState::Open => "open",
            RequestState::Draft => "draft",
            RequestState::Merged => "merged",
            RequestState::Closed => "closed",
        }
    }

    /// A request as pages may show it; `None` when its address is not one of the
    /// web.
    fn new(request: ChangeRequest) -> Option<Self> {
        let shown = |text: &str, max_chars| cut(clean(text).trim().to_owned(), max_chars);
        let is_web = request.url.starts_with("https://") || request.url.starts_with("http://");
        is_web.then(|| Self {
            number: request.number,
            title: shown(&request.title, MAX_TITLE_CHARS),
            state: request.state,
            author: shown(&request.author, MAX_NAME_CHARS),
            branch: shown(&request.branch, MAX_NAME_CHARS),
            is_fork: request.is_fork,
            url: request.url,
        })
    }

    const fn is_open(&self) -> bool {
        matches!(self.state, RequestState::Open | RequestState::Draft)
    }
}

/// What a run says about where it ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunPlace<'p> {
    /// Commit.
    pub commit: Option<&'p str>,
    /// Branch.
    pub branch: Option<&'p str>,
    /// Number of the request, as the CI system named it.
    pub number: Option<u64>,
}

impl<'p> RunPlace<'p> {
    /// The place that the parts of a run name; a number that is none is left out.
    #[must_use]
    pub fn new(commit: Option<&'p str>, branch: Option<&'p str>, request: Option<&str>) -> Self {
        let number = request.and_then(|text| text.trim_start_matches(['#', '!']).parse().ok());
        Self { commit, branch, number }
    }

    /// Whether nothing could be found by it.
    #[must_use]
    pub const fn is_nowhere(self) -> bool {
        self.commit.is_none() && self.branch.is_none()
    }

    /// Whether the request of the number can be the one of the run. CI systems number requests of another repository,
    /// too, so its branch must be the one that was tested.
    fn is_of(self, request: &RequestItem) -> bool {
        self.branch == Some(request.branch.as_str())
    }
}

/// What to look for, in this order.
fn queries(
    host: &Host,
    RunPlace { commit, branch, number }: RunPlace<'_>,
) -> impl Iterator<Item = RequestQuery> {
    // What is merged by now is in many requests' branches, and was made in one.
    let branch = branch.filter(|name| is_branch(name) && host.default_branch.as_deref() != Some(*name));
    let by_commit = commit.filter(|sha| is_whole_sha(sha)).map(|sha| RequestQuery::Commit(sha.to_owned()));
    let by_branch = branch.map(|name| RequestQuery::Branch(name.to_owned()));
    number.map(RequestQuery::Number).into_iter().chain(by_commit).chain(by_branch)
}

/// The open request of the number that the run names, else the one that its commit or its branch belongs to, as the
/// code host knows it now.
pub(crate) async fn open_request(
    ctx: &Context,
    host: &Host,
    place: RunPlace<'_>,
    now: Timestamp,
) -> Result<Option<RequestItem>, SourceControlError> {
    for query in queries(host, place) {
        let fetched = host.ask(ctx, now, |client| client.change_requests(&query, None)).await?;
        let Fetched::Fresh { value, .. } = fetched else {
            return Err(host.failed(ScmError::Failed { provider: host.provider, status: 304 }));
        };
        // A fork may have a branch of the same name, which is not the branch that was tested.
        let is_by_branch = matches!(query, RequestQuery::Branch(_));
        let mut open: Vec<RequestItem> = value
            .into_iter()
            .filter_map(RequestItem::new)
            .filter(|request| request.is_open() && !(is_by_branch && request.is_fork))
            .filter(|request| !matches!(query, RequestQuery::Number(_)) || place.is_of(request))
            .collect();
        // A commit is in the requests stacked upon its own, too, and a stranger's fork may contain it.
        open.sort_by_key(|request| (place.branch != Some(request.branch.as_str()), request.is_fork));
        let open = open.into_iter().next();
        if open.is_some() {
            return Ok(open);
        }
    }
    Ok(None)
}

/// The request of the number that the run names, else the one that its commit or its branch belongs to: an open one
/// before others, then the one changed last.
///
/// # Errors
/// [`SourceControlError`].
pub async fn request_of(
    ctx: &Context,
    access: &Access<'_>,
    project: Authorized<ProjectId>,
    place: RunPlace<'_>,
    now: Timestamp,
) -> Result<Option<RequestItem>, SourceControlError> {
    let host = Host::open(ctx, access, project, now).await?;
    for query in queries(&host, place) {
        let mut found = listed(ctx, &host, &query, now).await?;
        found.retain(|request| !matches!(query, RequestQuery::Number(_)) || place.is_of(request));
        let open = found.iter().find(|request| request.is_open()).cloned();
        if let Some(request) = open.or_else(|| found.into_iter().next()) {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

/// Requests that a question finds, stored for a minute.
pub(super) async fn listed(
    ctx: &Context,
    host: &Host,
    query: &RequestQuery,
    now: Timestamp,
) -> Result<Vec<RequestItem>, SourceControlError> {
    let key = host.key("requests", query)?;
    let mut entry: Entry<Vec<RequestItem>> = Entry::look_up(ctx, host.project, key, now).await?;
    if let Some(found) = entry.take_fresh() {
        return Ok(found);
    }
    let fetched = host.ask(ctx, now, |client| client.change_requests(query, entry.etag())).await?;
    match fetched {
        Fetched::Fresh { value, etag } => {
            let items = value.into_iter().filter_map(RequestItem::new).collect();
            Ok(entry.store(ctx, items, etag, Freshness::BRANCH, now).await?)
        }
        // A provider that confirms what was not sent to it has said nothing.
        Fetched::NotModified => entry
            .confirm(ctx, Freshness::BRANCH, now)
            .await?
            .ok_or_else(|| host.failed(ScmError::Failed { provider: host.provider, status: 304 })),
    }
}
