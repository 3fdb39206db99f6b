//! Network requests of a test: which of them are kept, and what of them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::server::{self, ServerLog, ServerSpan};
use super::steps::cut_in_place;
use super::url_text::{normalise_url, redact_queries, strip_url};
use crate::ingest::lenient::{self, element_is_object};

/// Requests kept beside the failing ones.
const SLOWEST_KEPT: usize = 50;
const MAX_METHOD_CHARS: usize = 20;
const MAX_CONTENT_TYPE_CHARS: usize = 200;
const MAX_FAILURE_TEXT_CHARS: usize = 200;
/// A request that waited this long for its response is taken to have none. A
/// younger one may just have been sent when the test ended.
const UNANSWERED_MS: i64 = 1_000;
/// How Chromium, Firefox and `WebKit` tell that the page cancelled a request.
const CANCELLED: [&str; 4] = ["ERR_ABORTED", "NS_BINDING_ABORTED", "cancelled", "canceled"];

/// One request of the page, without query values, bodies and headers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRequest {
    /// HTTP method.
    #[serde(deserialize_with = "lenient::text")]
    pub method: String,
    /// `scheme://host/path`.
    #[serde(deserialize_with = "lenient::text")]
    pub url: String,
    /// Path with `:id` and `:uuid` for segments that are ids, and the names of
    /// the query keys.
    #[serde(deserialize_with = "lenient::text")]
    pub normalized_url: String,
    /// HTTP status, 0 without a response.
    #[serde(deserialize_with = "lenient::count")]
    pub status: i64,
    /// Milliseconds.
    #[serde(deserialize_with = "lenient::duration")]
    pub duration: i64,
    /// Kind of resource.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_word")]
    pub resource_type: Option<ResourceType>,
    /// Media type of the response.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub content_type: Option<String>,
    /// Error of the browser, such as `net::ERR_CONNECTION_REFUSED`, ≤ 200
    /// characters.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub failure_text: Option<String>,
    /// Whether the test ended before there was a response; the duration is how
    /// long it had waited.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "lenient::flag")]
    pub pending: bool,
    /// What the backend logged.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "server::logs")]
    pub server_logs: Vec<ServerLog>,
    /// Where the backend spent its time.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "server::spans")]
    pub server_traces: Vec<ServerSpan>,
}

/// Kind of a requested resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceType {
    /// `fetch()`.
    Fetch,
    /// XMLHttpRequest.
    Xhr,
    /// A page or frame.
    Document,
    /// What the browser calls other.
    Other,
    /// A script; kept when it did not load.
    Script,
    /// A style sheet; kept when it did not load.
    Stylesheet,
    /// Images, fonts and the like: never kept.
    #[default]
    Static,
}

impl TryFrom<&str> for ResourceType {
    type Error = ();

    fn try_from(word: &str) -> Result<Self, ()> {
        Ok(match word {
            "fetch" => Self::Fetch,
            "xhr" => Self::Xhr,
            "document" => Self::Document,
            "other" => Self::Other,
            "script" => Self::Script,
            "stylesheet" => Self::Stylesheet,
            _ => return Err(()),
        })
    }
}

element_is_object!(NetworkRequest);

impl NetworkRequest {
    /// Answered with an error, or not at all.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        let is_unanswered = self.status == 0 && (!self.pending || self.duration >= UNANSWERED_MS);
        self.status >= 400 || is_unanswered || self.failure_text.is_some()
    }

    /// Whether the page lacked what it asked for: a server error, no connection,
    /// or a script or style sheet that did not load. What the page cancelled, or
    /// still waited for, is not lacking.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.status >= 500
            || (self.status >= 400 && self.is_part_of_page())
            || self
                .failure_text
                .as_deref()
                .is_some_and(|text| !CANCELLED.iter().any(|word| text.contains(word)))
    }

    /// Whether it loads a part of the page itself, which is no endpoint.
    #[must_use]
    pub const fn is_part_of_page(&self) -> bool {
        matches!(self.resource_type, Some(ResourceType::Script | ResourceType::Stylesheet))
    }

    /// Its status, or why it has none.
    #[must_use]
    pub fn outcome(&self) -> Cow<'_, str> {
        match (self.status, self.failure_text.as_deref()) {
            (0, Some(text)) => Cow::Borrowed(text),
            (0, None) => Cow::Borrowed("no response"),
            (status, Some(text)) => Cow::Owned(format!("{status}, {text}")),
            (status, None) => Cow::Owned(status.to_string()),
        }
    }

    /// Images never count, what a page is made of only when it did not load, and
    /// without an address nothing can be said.
    fn is_kept(&self) -> bool {
        let is_wanted = match self.resource_type {
            Some(ResourceType::Static) => false,
            Some(ResourceType::Script | ResourceType::Stylesheet) => self.is_telling(),
            _ => true,
        };
        is_wanted && !self.url.is_empty()
    }

    /// What is kept before all others: a request that waits in passes too is no news.
    const fn is_telling(&self) -> bool {
        self.is_failing() || self.pending
    }
}

/// Keeps every failing or waiting request and the 50 slowest others, at most `max`, in
/// the order they came; failing ones have precedence.
pub(super) fn bounded_requests(mut requests: Vec<NetworkRequest>, max: usize) -> Vec<NetworkRequest> {
    for request in &mut requests {
        // Only what was not answered can be waited for.
        request.pending &= request.status == 0 && request.failure_text.is_none();
    }
    requests.retain(NetworkRequest::is_kept);
    let failing = requests.iter().filter(|request| request.is_telling()).count();
    let room = SLOWEST_KEPT.min(max.saturating_sub(failing));
    if requests.len() - failing > room || failing > max {
        keep_worst(&mut requests, max, room);
    }
    for request in &mut requests {
        request.normalized_url = normalise_url(&request.url);
        request.url = strip_url(std::mem::take(&mut request.url));
        cut_in_place(&mut request.method, MAX_METHOD_CHARS);
        if let Some(content_type) = &mut request.content_type {
            cut_in_place(content_type, MAX_CONTENT_TYPE_CHARS);
        }
        if let Some(mut text) = request.failure_text.take().filter(|text| !text.trim().is_empty()) {
            cut_in_place(&mut text, MAX_FAILURE_TEXT_CHARS);
            request.failure_text = Some(redact_queries(text));
        }
    }
    requests
}

fn keep_worst(requests: &mut Vec<NetworkRequest>, max_failing: usize, max_others: usize) {
    let (failing, mut others): (Vec<usize>, Vec<usize>) =
        (0..requests.len()).partition(|index| requests[*index].is_telling());
    others.sort_by_key(|index| std::cmp::Reverse(requests[*index].duration));
    let mut kept = vec![false; requests.len()];
    for index in failing.into_iter().take(max_failing).chain(others.into_iter().take(max_others)) {
        kept[index] = true;
    }
    let mut kept = kept.into_iter();
    requests.retain(|_| kept.next() == Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, status: i64, duration: i64, resource_type: Option<ResourceType>) -> NetworkRequest {
        NetworkRequest { url: url.into(), status, duration, resource_type, ..NetworkRequest::default() }
    }

    #[test]
    fn failing_and_slow_requests_are_kept_in_order() {
        let mut requests: Vec<_> = (0..60)
            .map(|n| request(&format!("https://a.test/ok/{n}"), 200, n, Some(ResourceType::Fetch)))
            .collect();
        requests.insert(0, request("https://a.test/fails?token=s3cret", 500, 1, None));
        requests.push(request("https://a.test/lost", 0, 0, Some(ResourceType::Xhr)));
        requests.push(request("https://a.test/logo.png", 404, 9_999, Some(ResourceType::Static)));
        let kept = bounded_requests(requests, 500);
        assert_eq!(kept.len(), 52);
        assert_eq!(kept[0].url, "https://a.test/fails");
        assert_eq!(kept[0].normalized_url, "/fails?token=<redacted>");
        assert_eq!(kept[1].url, "https://a.test/ok/10", "the ten quickest go");
        assert_eq!(kept[51].url, "https://a.test/lost");
    }

    #[test]
    fn what_did_not_load_and_what_waits_is_kept() {
        let asset = |url: &str, status| request(url, status, 5, Some(ResourceType::Script));
        let refused = NetworkRequest {
            failure_text: Some("Could not connect to https://a.test/v.js?token=s3cret".into()),
            ..asset("https://a.test/v.js", 0)
        };
        let waiting =
            |duration| NetworkRequest { pending: true, ..request("https://a.test/poll", 0, duration, None) };
        let kept = bounded_requests(
            vec![
                asset("https://a.test/ok.js", 200),
                asset("https://a.test/gone.js", 404),
                refused,
                waiting(10),
            ],
            500,
        );
        let shown: Vec<_> =
            kept.iter().map(|one| (one.outcome().into_owned(), one.is_failing(), one.is_broken())).collect();
        let text = "Could not connect to https://a.test/v.js?token=<redacted>".to_owned();
        assert_eq!(
            shown,
            [("404".to_owned(), true, true), (text, true, true), ("no response".to_owned(), false, false)]
        );
        assert!(waiting(UNANSWERED_MS).is_failing(), "it waited in vain");
        let cancelled = NetworkRequest {
            failure_text: Some("net::ERR_ABORTED".into()),
            ..request("https://a.test/x", 0, 1, None)
        };
        assert_eq!((cancelled.is_failing(), cancelled.is_broken()), (true, false));
    }

    #[test]
    fn a_request_that_waits_is_kept_before_slow_ones() {
        let mut requests: Vec<_> =
            (0..60).map(|n| request("https://a.test/ok", 200, 100 + n, None)).collect();
        requests.push(NetworkRequest { pending: true, ..request("https://a.test/poll", 0, 1, None) });
        let kept = bounded_requests(requests, 50);
        assert_eq!((kept.len(), kept[49].pending), (50, true));
    }

    #[test]
    fn the_cap_holds_at_its_boundary_and_one_above() {
        let failing = |count| vec![request("https://a.test/x", 500, 1, None); count];
        assert_eq!(bounded_requests(failing(50), 50).len(), 50);
        assert_eq!(bounded_requests(failing(51), 50).len(), 50);
        let mut mixed = failing(49);
        mixed.extend([request("https://a.test/a", 200, 5, None), request("https://a.test/b", 200, 9, None)]);
        let kept = bounded_requests(mixed, 50);
        assert_eq!((kept.len(), kept[49].url.as_str()), (50, "https://a.test/b"));
    }
}
