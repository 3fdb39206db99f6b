//! Network requests of a test: which of them are kept, and what of them.

use serde::{Deserialize, Serialize};

use super::server::{self, ServerLog, ServerSpan};
use super::steps::cut_in_place;
use super::url_text::{normalise_url, strip_url};
use crate::ingest::lenient::{self, element_is_object};

/// Requests kept beside the failing ones.
const SLOWEST_KEPT: usize = 50;
const MAX_METHOD_CHARS: usize = 20;
const MAX_CONTENT_TYPE_CHARS: usize = 200;

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
    /// Images, styles, scripts and the like: never kept.
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
            _ => return Err(()),
        })
    }
}

element_is_object!(NetworkRequest);

impl NetworkRequest {
    /// Answered with an error, or not at all.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        self.status >= 400 || self.status == 0
    }
}

/// Keeps every failing request and the 50 slowest others, at most `max`, in
/// the order they came; failing ones have precedence.
pub(super) fn bounded_requests(mut requests: Vec<NetworkRequest>, max: usize) -> Vec<NetworkRequest> {
    requests.retain(|request| request.resource_type != Some(ResourceType::Static) && !request.url.is_empty());
    let failing = requests.iter().filter(|request| request.is_failing()).count();
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
    }
    requests
}

fn keep_worst(requests: &mut Vec<NetworkRequest>, max_failing: usize, max_others: usize) {
    let (failing, mut others): (Vec<usize>, Vec<usize>) =
        (0..requests.len()).partition(|index| requests[*index].is_failing());
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
