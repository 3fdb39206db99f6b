//! Endpoints of the application under test, told from the requests its tests
//! made: what is called, how often, how it answers and how long it takes.
//!
//! Only requests that were captured count: the failing ones of an attempt and
//! its slowest others (see [`crate::evidence`]).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::evidence::NetworkRequest;
use crate::ids::{ExecutionId, TestCaseId};
use crate::sketch::Sketch;
use crate::text::cut_str;

/// Endpoints told apart in one run, and on one day of a project; the rest
/// counts as [`Endpoint::rest`].
pub const MAX_ENDPOINTS: usize = 500;
/// Requests remembered as examples of an endpoint.
pub const MAX_SAMPLES: usize = 5;
/// Log entries of the backend remembered with an endpoint.
pub const MAX_LOGS: usize = 3;

const MAX_METHOD_CHARS: usize = 16;
const MAX_ROUTE_CHARS: usize = 300;
/// Digits in a row that make a segment the name of one thing.
const ID_DIGITS: usize = 3;
/// Hexadecimal characters that make a segment a hash.
const HASH_CHARS: usize = 12;
/// Characters above which a segment with a digit is a token.
const WORD_CHARS: usize = 32;

/// What requests of different tests have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// HTTP method in capitals.
    pub method: String,
    /// Path with placeholders for what names one thing, such as
    /// `/api/orders/:id`; without host and query.
    pub route: String,
}

impl Endpoint {
    /// Where requests count whose endpoints are too many to be told apart.
    #[must_use]
    pub fn rest() -> Self {
        Self { method: "*".to_owned(), route: "*".to_owned() }
    }
}

/// The path that requests for different things share: segments that name one
/// thing become `:id`, `:uuid`, `:hash`, `:email` or `:token`. A number of up
/// to two digits inside a word stays, so `/api/v1` is told from `/api/v2`.
///
/// `normalised` is what [`crate::evidence::url_text::normalise_url`] answers;
/// `None` for what is no path, such as a `data:` address.
#[must_use]
pub fn route_of(normalised: &str) -> Option<Cow<'_, str>> {
    let path = normalised.split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return None;
    }
    let path = cut_str(path, MAX_ROUTE_CHARS);
    if path.split('/').all(|segment| placeholder(segment).is_none()) {
        return Some(Cow::Borrowed(path));
    }
    let parts = path.split('/').map(|segment| placeholder(segment).unwrap_or(segment));
    Some(Cow::Owned(parts.collect::<Vec<_>>().join("/")))
}

fn placeholder(segment: &str) -> Option<&'static str> {
    if segment.starts_with(':') || segment.len() < ID_DIGITS {
        return None;
    }
    if segment.contains('@') || segment.contains("%40") {
        return Some(":email");
    }
    let bytes = segment.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    if bytes.len() >= HASH_CHARS && bytes.iter().all(u8::is_ascii_hexdigit) && digits < bytes.len() {
        return Some(":hash");
    }
    if segment.chars().count() > WORD_CHARS {
        return Some(":token");
    }
    let has_number = bytes.windows(ID_DIGITS).any(|window| window.iter().all(u8::is_ascii_digit));
    has_number.then_some(":id")
}

/// What the requests to one endpoint add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests.
    pub requests: i64,
    /// Those answered with a status of 400 or more, or not at all.
    pub errors: i64,
    /// Requests by HTTP status; 0 without an answer.
    pub codes: BTreeMap<u16, i64>,
    /// Sum of durations, ms.
    pub sum_ms: i64,
    /// Shortest duration, ms.
    pub min_ms: i64,
    /// Longest duration, ms.
    pub max_ms: i64,
    /// Durations.
    pub sketch: Sketch,
}

impl Traffic {
    /// Counts one request.
    pub fn add(&mut self, status: u16, duration_ms: i64) {
        let duration_ms = duration_ms.max(0);
        self.min_ms = if self.requests == 0 { duration_ms } else { self.min_ms.min(duration_ms) };
        self.max_ms = self.max_ms.max(duration_ms);
        self.requests += 1;
        self.errors += i64::from(is_error(status));
        *self.codes.entry(status).or_default() += 1;
        self.sum_ms = self.sum_ms.saturating_add(duration_ms);
        self.sketch.add(duration_ms);
    }

    /// Counts everything `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.requests == 0 {
            return;
        }
        self.min_ms = if self.requests == 0 { other.min_ms } else { self.min_ms.min(other.min_ms) };
        self.max_ms = self.max_ms.max(other.max_ms);
        self.requests += other.requests;
        self.errors += other.errors;
        for (code, count) in &other.codes {
            *self.codes.entry(*code).or_default() += count;
        }
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
        self.sketch.merge(&other.sketch);
    }

    /// Takes back what `other` counted. When the longest request goes, the
    /// longest left is known to a twentieth only.
    pub fn subtract(&mut self, other: &Self) {
        self.requests = (self.requests - other.requests).max(0);
        self.errors = (self.errors - other.errors).clamp(0, self.requests);
        for (code, count) in &other.codes {
            if let Some(known) = self.codes.get_mut(code) {
                *known -= count;
            }
        }
        self.codes.retain(|_, count| *count > 0);
        self.sum_ms = (self.sum_ms - other.sum_ms).max(0);
        self.sketch.subtract(&other.sketch);
        if other.max_ms >= self.max_ms {
            self.max_ms = self.sketch.quantile(1.0).map_or(0, |top| top.min(self.max_ms));
        }
    }

    /// Mean duration in whole milliseconds, 0 without requests.
    #[must_use]
    pub const fn mean_ms(&self) -> i64 {
        if self.requests > 0 { self.sum_ms / self.requests } else { 0 }
    }
}

/// Answered with an error, or not at all.
const fn is_error(status: u16) -> bool {
    status >= 400 || status == 0
}

/// A request as an example of its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, u16, i64)", into = "(i64, i64, u16, i64)")]
pub struct Sample {
    /// Execution that made it.
    pub execution: ExecutionId,
    /// Its test.
    pub test_case: TestCaseId,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// How long it took, ms.
    pub duration_ms: i64,
}

impl From<(i64, i64, u16, i64)> for Sample {
    fn from((execution, test_case, status, duration_ms): (i64, i64, u16, i64)) -> Self {
        Self { execution: ExecutionId(execution), test_case: TestCaseId(test_case), status, duration_ms }
    }
}

impl From<Sample> for (i64, i64, u16, i64) {
    fn from(sample: Sample) -> Self {
        (sample.execution.get(), sample.test_case.get(), sample.status, sample.duration_ms)
    }
}

/// Which examples are worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// Failing requests first, then the slowest.
    Failing,
    /// The slowest.
    Slowest,
}

/// Keeps the worst examples, one of each execution.
pub fn keep_worst(samples: &mut Vec<Sample>, by: Worst) {
    let is_fine = |sample: &Sample| by == Worst::Failing && !is_error(sample.status);
    samples.sort_by_key(|sample| (is_fine(sample), Reverse(sample.duration_ms), sample.execution.get()));
    let mut kept: Vec<Sample> = Vec::with_capacity(MAX_SAMPLES);
    for sample in samples.drain(..) {
        if kept.len() < MAX_SAMPLES && kept.iter().all(|known| known.execution != sample.execution) {
            kept.push(sample);
        }
    }
    *samples = kept;
}

/// Keeps the first log entries of an endpoint that differ.
pub fn keep_logs(logs: &mut Vec<String>, more: &[String]) {
    for log in more {
        if logs.len() < MAX_LOGS && !logs.contains(log) {
            logs.push(log.clone());
        }
    }
}

/// What a batch of executions says about one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// Sums.
    pub traffic: Traffic,
    /// Examples.
    pub samples: Vec<Sample>,
    /// What the backend logged, ≤ [`MAX_LOGS`].
    pub logs: Vec<String>,
}

impl Calls {
    /// Adds what `other` says.
    pub fn merge(&mut self, other: &Self, by: Worst) {
        self.traffic.merge(&other.traffic);
        self.samples.extend_from_slice(&other.samples);
        keep_worst(&mut self.samples, by);
        keep_logs(&mut self.logs, &other.logs);
    }
}

/// The requests of a submission by the entry that brought them, with their
/// endpoints. Endpoints are held once, however many requests name them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Captured {
    /// Places of endpoints; only while requests are taken.
    #[serde(skip)]
    by_method: HashMap<String, HashMap<String, usize>>,
    endpoints: Vec<Endpoint>,
    logs: Vec<Vec<String>>,
    requests: HashMap<usize, Vec<Request>>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Request {
    endpoint: usize,
    status: u16,
    duration_ms: i64,
}

impl Captured {
    /// Takes the requests of an entry.
    pub fn take(&mut self, entry: usize, requests: &[NetworkRequest]) {
        let mut taken = Vec::with_capacity(requests.len());
        // How a request ends that is still waited for, nobody knows yet.
        for request in requests.iter().filter(|one| !one.pending && !one.is_part_of_page()) {
            let Some(route) = route_of(&request.normalized_url) else { continue };
            let endpoint = self.place(&request.method, &route);
            let said = request.server_logs.iter().map(|log| match log.level.as_str() {
                "" => log.message.clone(),
                level => format!("{level}: {}", log.message),
            });
            if self.logs[endpoint].len() < MAX_LOGS {
                keep_logs(&mut self.logs[endpoint], &said.collect::<Vec<_>>());
            }
            let status = u16::try_from(request.status.clamp(0, 999)).unwrap_or_default();
            taken.push(Request { endpoint, status, duration_ms: request.duration });
        }
        if !taken.is_empty() {
            self.requests.insert(entry, taken);
        }
    }

    /// Takes over what another submission captured, whose entries are counted
    /// from `first` on here.
    pub fn absorb(&mut self, other: Self, first: usize) {
        let places: Vec<usize> = other
            .endpoints
            .iter()
            .zip(&other.logs)
            .map(|(endpoint, logs)| {
                let place = self.place(&endpoint.method, &endpoint.route);
                keep_logs(&mut self.logs[place], logs);
                place
            })
            .collect();
        for (entry, mut requests) in other.requests {
            requests.retain_mut(|request| match places.get(request.endpoint) {
                Some(place) => {
                    request.endpoint = *place;
                    true
                }
                None => false,
            });
            self.requests.insert(first + entry, requests);
        }
    }

    fn place(&mut self, method: &str, route: &str) -> usize {
        let method = match cut_str(method.trim(), MAX_METHOD_CHARS) {
            "" => Cow::Borrowed("GET"),
            method if method.bytes().any(|byte| byte.is_ascii_lowercase()) => {
                Cow::Owned(method.to_ascii_uppercase())
            }
            method => Cow::Borrowed(method),
        };
        let known = self.by_method.get(method.as_ref()).and_then(|routes| routes.get(route));
        if let Some(place) = known {
            return *place;
        }
        let place = self.endpoints.len();
        self.endpoints.push(Endpoint { method: method.clone().into_owned(), route: route.to_owned() });
        self.logs.push(Vec::new());
        self.by_method.entry(method.into_owned()).or_default().insert(route.to_owned(), place);
        place
    }

    /// Adds up the requests of some entries, which belong to these executions.
    pub fn calls(
        &self,
        counted: impl IntoIterator<Item = (usize, ExecutionId, TestCaseId)>,
    ) -> BTreeMap<Endpoint, Calls> {
        let mut calls: BTreeMap<usize, Calls> = BTreeMap::new();
        for (entry, execution, test_case) in counted {
            for request in self.requests.get(&entry).map(Vec::as_slice).unwrap_or_default() {
                let of_endpoint = calls.entry(request.endpoint).or_default();
                of_endpoint.traffic.add(request.status, request.duration_ms);
                let (status, duration_ms) = (request.status, request.duration_ms.max(0));
                of_endpoint.samples.push(Sample { execution, test_case, status, duration_ms });
                if of_endpoint.samples.len() > 8 * MAX_SAMPLES {
                    keep_worst(&mut of_endpoint.samples, Worst::Failing);
                }
            }
        }
        let finished = calls.into_iter().map(|(place, mut calls)| {
            keep_worst(&mut calls.samples, Worst::Failing);
            calls.logs.clone_from(&self.logs[place]);
            (self.endpoints[place].clone(), calls)
        });
        finished.collect()
    }

    /// Whether no request was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::ResourceType;
    use proptest::prelude::*;

    #[test]
    fn what_names_one_thing_is_no_part_of_a_route() {
        for (normalised, expected) in [
            ("/api/v1/users/:id?page=<redacted>", "/api/v1/users/:id"),
            ("/orders/ORD-005069/lines", "/orders/:id/lines"),
            ("/oauth2/token", "/oauth2/token"),
            ("/assets/9f86d081884c7d65", "/assets/:hash"),
            ("/deadbeefcafe/x", "/deadbeefcafe/x"),
            ("/invite/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "/invite/:token"),
            ("/u/ada@shop.test", "/u/:email"),
            ("/", "/"),
        ] {
            assert_eq!(route_of(normalised).as_deref(), Some(expected), "{normalised}");
        }
        assert_eq!(route_of("about:blank"), None);
    }

    fn request(method: &str, url: &str, status: i64, duration: i64) -> NetworkRequest {
        NetworkRequest {
            method: method.into(),
            normalized_url: url.into(),
            status,
            duration,
            ..NetworkRequest::default()
        }
    }

    #[test]
    fn only_the_requests_of_counted_entries_add_up() {
        let mut captured = Captured::default();
        captured.take(0, &[request("get", "/a", 200, 40), request("GET", "/a", 503, 10)]);
        captured.take(1, &[request("POST", "/a", 0, 5), request("GET", "about:blank", 200, 1)]);
        captured.take(2, &[request("GET", "/a", 200, 9_000)]);
        let calls = captured.calls([(0, ExecutionId(7), TestCaseId(1)), (1, ExecutionId(8), TestCaseId(2))]);
        let shown: Vec<_> = calls
            .iter()
            .map(|(endpoint, calls)| {
                let traffic = &calls.traffic;
                let (requests, errors) = (traffic.requests, traffic.errors);
                (endpoint.method.as_str(), endpoint.route.as_str(), requests, errors, traffic.max_ms)
            })
            .collect();
        assert_eq!(shown, [("GET", "/a", 2, 1, 40), ("POST", "/a", 1, 1, 5)]);
        let get = &calls[&Endpoint { method: "GET".into(), route: "/a".into() }];
        assert_eq!(get.samples.len(), 1, "one example of each execution");
        assert_eq!(get.samples[0].status, 503, "the failing one first");
    }

    #[test]
    fn parts_of_a_page_and_requests_without_an_end_are_no_calls() {
        let script = NetworkRequest {
            resource_type: Some(ResourceType::Script),
            ..request("GET", "/vendor.js", 404, 5)
        };
        let waiting = NetworkRequest { pending: true, ..request("GET", "/poll", 0, 9_000) };
        let mut captured = Captured::default();
        captured.take(0, &[script, waiting]);
        assert!(captured.is_empty());
    }

    fn traffic(requests: &[(u16, i64)]) -> Traffic {
        let mut traffic = Traffic::default();
        requests.iter().for_each(|(status, ms)| traffic.add(*status, *ms));
        traffic
    }

    proptest! {
        #[test]
        fn what_was_merged_can_be_taken_back(
            one in proptest::collection::vec((0..600_u16, 0..100_000_i64), 1..40),
            other in proptest::collection::vec((0..600_u16, 0..100_000_i64), 0..40),
        ) {
            let mut both = traffic(&one);
            both.merge(&traffic(&other));
            prop_assert_eq!(&both, &traffic(&[one.clone(), other.clone()].concat()));
            both.subtract(&traffic(&other));
            let left = traffic(&one);
            prop_assert_eq!((both.requests, both.errors, both.sum_ms), (left.requests, left.errors, left.sum_ms));
            prop_assert_eq!((&both.codes, &both.sketch), (&left.codes, &left.sketch));
        }

        #[test]
        fn a_route_has_one_form(path in "(/[a-zA-Z0-9@._-]{0,40}){0,6}") {
            if let Some(route) = route_of(&path) {
                let again = route_of(&route);
                prop_assert_eq!(again.as_deref(), Some(route.as_ref()));
            }
        }
    }
}
