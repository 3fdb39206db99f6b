//! Why a test is flaky, as far as its stored executions tell.
//!
//! Evidence adds up as log-odds, each in the share of the attempts that show
//! it: what one attempt in fifty shows does not outweigh what the others do.
//! A cause has to be clearly ahead of the next one to be named. Errors of the
//! application are weighed like the others and called other in the end.
//! Invariant: a named cause comes with what speaks for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::Place;
use crate::evidence::{ConsoleEntry, Evidence, NetworkRequest};
use crate::failure::{Kind, Signature};

/// Failing attempts looked at, the newest.
pub const MAX_ATTEMPTS: usize = 50;
/// How far ahead a cause has to be.
const MARGIN: f64 = 0.5;
/// Matchers that wait for a state of an element: there is no value to vary.
const STATES: [&str; 10] = [
    "toBeAttached",
    "toBeChecked",
    "toBeDisabled",
    "toBeEditable",
    "toBeEmpty",
    "toBeEnabled",
    "toBeFocused",
    "toBeHidden",
    "toBeInViewport",
    "toBeVisible",
];
/// Codes of errors that only a network has; the others are of files and memory.
const NETWORK_CODES: [&str; 11] = [
    "EADDRINUSE",
    "EAI_AGAIN",
    "ECONNABORTED",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTFOUND",
    "EPIPE",
    "EPROTO",
    "ETIMEDOUT",
];

/// A cause of flakiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootCause {
    /// The test does not wait for what it needs.
    Timing,
    /// Requests fail.
    Network,
    /// A value differs from run to run.
    Assertion,
    /// It fails in one place only.
    Environment,
    /// Something else, or several of these.
    Other,
}

impl RootCause {
    /// All causes.
    pub const ALL: [Self; 5] = [Self::Timing, Self::Network, Self::Assertion, Self::Environment, Self::Other];

    /// The stored and shown spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timing => "timing",
            Self::Network => "network",
            Self::Assertion => "assertion",
            Self::Environment => "environment",
            Self::Other => "other",
        }
    }

    /// Reads the stored or a filter's spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == text)
    }
}

impl Serialize for RootCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An attempt that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailingAttempt {
    /// What its error says.
    pub failure: Option<Signature>,
    /// The value an assertion got, as the error writes it.
    pub received: Option<String>,
    /// It ended in the timeout of the test.
    pub timed_out: bool,
    /// How long it took, ms.
    pub duration_ms: i64,
    /// The timeout in force, ms.
    pub timeout_ms: Option<i64>,
    /// A later attempt of the same execution passed.
    pub passed_on_retry: bool,
    /// What happened beside; `None` when nobody knows any more.
    pub beside: Option<Beside>,
}

/// What happened around an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Requests that got no answer, a server error or an error of the browser:
    /// method and path.
    pub failed_requests: BTreeSet<String>,
    /// Requests that were waited for at the end, however briefly.
    pub waiting_requests: BTreeSet<String>,
    /// Errors of the page and its console, without numbers.
    pub page_errors: BTreeSet<String>,
}

impl Beside {
    /// What the evidence of an attempt tells.
    #[must_use]
    pub fn from_evidence(evidence: &Evidence) -> Self {
        let names = |is_one: &dyn Fn(&NetworkRequest) -> bool| -> BTreeSet<String> {
            let requests = evidence.network_requests.iter().filter(|request| is_one(request));
            requests.map(|request| format!("{} {}", request.method, request.normalized_url)).collect()
        };
        let failed_requests =
            names(&|request| request.is_broken() || (request.status == 0 && request.is_failing()));
        let waiting_requests = names(&|request| request.pending);
        // What the browser itself writes about such a request is no second piece of evidence.
        let repeats_request = |entry: &ConsoleEntry| {
            let line = entry.text.strip_prefix("Failed to load resource: ");
            !failed_requests.is_empty()
                && line.is_some_and(|line| line.contains("net::") || line.contains("status of 5"))
        };
        let errors = evidence.console_logs.iter().filter(|entry| entry.is_error() && !repeats_request(entry));
        let page_errors = errors.map(ConsoleEntry::without_numbers).collect();
        Self { failed_requests, waiting_requests, page_errors }
    }
}

/// One thing that speaks for a cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Because {
    /// What it speaks for.
    pub cause: RootCause,
    /// How much, in log-odds.
    pub weight: f64,
    /// What was seen, as a sentence of numbers.
    pub seen: String,
}

/// A cause and what speaks for all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The cause.
    pub cause: RootCause,
    /// The strongest first.
    pub because: Vec<Because>,
}

/// Matcher, whether it is negated, element, text.
type Assertion<'a> = (&'a str, bool, &'a str, &'a str);

impl FailingAttempt {
    fn is_of(&self, kinds: &[Kind]) -> bool {
        self.failure.as_ref().is_some_and(|failure| kinds.contains(&failure.kind))
    }

    /// It waited in vain for something that was there the next time.
    fn waited(&self) -> bool {
        let is_unsettled = self
            .failure
            .as_ref()
            .is_some_and(|failure| matches!(&*failure.reason, "unstable" | "detached" | "not-found"));
        self.timed_out || is_unsettled || self.is_of(&[Kind::Timeout, Kind::TestTimeout])
    }

    fn is_at_its_timeout(&self) -> bool {
        self.timeout_ms.is_some_and(|timeout| timeout > 0 && self.duration_ms * 10 >= timeout * 9)
    }

    /// Its error names a request that went wrong.
    fn names_network(&self) -> bool {
        let Some(failure) = &self.failure else { return false };
        let is_of_network = |code: &String| {
            NETWORK_CODES.contains(&code.as_str())
                || ["net::", "NS_ERROR_", "http5"].iter().any(|start| code.starts_with(start))
        };
        failure.codes.iter().any(is_of_network) || failure.template.contains("socket hang up")
    }

    /// The assertion of a value it failed at, and the value it got.
    fn compared(&self) -> Option<(Assertion<'_>, &str)> {
        let failure = self.failure.as_ref().filter(|failure| {
            failure.kind == Kind::Assert
                && failure.reason.is_empty()
                && !STATES.contains(&failure.api.as_str())
        })?;
        // Codes are left out: they hold the value where it is a status.
        let assertion = (&*failure.api, failure.negated, &*failure.target, &*failure.template);
        Some((assertion, self.received.as_deref()?))
    }
}

/// Judges the newest failing attempts of a flaky test, the newest first, by
/// what passes of it were like and by where it failed.
#[must_use]
pub fn categorise(attempts: &[FailingAttempt], passes: &[Beside], places: &[Place]) -> Finding {
    let attempts = &attempts[..attempts.len().min(MAX_ATTEMPTS)];
    let mut because = Vec::new();
    let all = attempts.len();
    let mut part = |cause, weight: f64, count: usize, what: &str| {
        if count > 0 {
            let weight = weight * share(count, all);
            because.push(Because {
                cause,
                weight,
                seen: format!("{count} of {all} failing attempts {what}"),
            });
        }
    };
    let count = |fits: &dyn Fn(&FailingAttempt) -> bool| attempts.iter().filter(|one| fits(one)).count();

    let waited = count(&|attempt| attempt.passed_on_retry && attempt.waited());
    part(RootCause::Timing, 1.0, waited, "waited in vain for what the next attempt found");
    let late = count(&FailingAttempt::is_at_its_timeout);
    part(RootCause::Timing, 0.7, late, "took at least 90 % of their timeout");

    let usual: BTreeSet<&String> =
        passes.iter().flat_map(|pass| pass.failed_requests.iter().chain(&pass.waiting_requests)).collect();
    let lost_request = |attempt: &FailingAttempt| {
        let mut requests = attempt.beside.iter().flat_map(|beside| &beside.failed_requests);
        requests.any(|request| !usual.contains(request))
    };
    let network = count(&|attempt| attempt.names_network() || lost_request(attempt));
    part(RootCause::Network, 1.5, network, "had a request fail that fails in no pass");

    let (varying, constant) = compared_values(attempts);
    part(RootCause::Assertion, 0.7, varying, "compared a value that differs from attempt to attempt");
    part(RootCause::Other, 0.5, constant, "compared a value that is always the same wrong one");

    if let Some(failing) = telling_page_error(attempts, passes) {
        let of = count(&|attempt| attempt.beside.is_some());
        let seen =
            format!("{failing} of {of} failing attempts showed an error of the page that passes do not");
        because.push(Because { cause: RootCause::Other, weight: 1.5, seen });
    }
    for place in places.iter().filter(|place| place.is_concentration()) {
        let seen = format!(
            "{} of {} failing executions were in {} {}, where {} of {} ran",
            place.failed, place.failed_anywhere, place.kind, place.name, place.ran, place.ran_anywhere
        );
        because.push(Because { cause: RootCause::Environment, weight: 2.0, seen });
    }

    let sum = |cause| because.iter().filter(move |one| one.cause == cause).map(|one| one.weight);
    let mut scores = RootCause::ALL.map(|cause| {
        // One place is evidence enough: its kinds overlap.
        let score =
            if cause == RootCause::Environment { sum(cause).fold(0.0, f64::max) } else { sum(cause).sum() };
        (score, cause)
    });
    scores.sort_by(|one, other| other.0.total_cmp(&one.0));
    because.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    let cause = if scores[0].0 - scores[1].0 >= MARGIN { scores[0].1 } else { RootCause::Other };
    Finding { cause, because }
}

fn share(count: usize, of: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most fifty attempts")]
    let share = count as f64 / of.max(1) as f64;
    share
}

/// Attempts at one assertion that got another value each time, and those that
/// got the same one every time. One alone says neither.
fn compared_values(attempts: &[FailingAttempt]) -> (usize, usize) {
    let mut got: BTreeMap<Assertion<'_>, Vec<&str>> = BTreeMap::new();
    for (assertion, value) in attempts.iter().filter_map(FailingAttempt::compared) {
        got.entry(assertion).or_default().push(value);
    }
    got.values().filter(|values| values.len() > 1).fold((0, 0), |(varying, constant), values| {
        if values.iter().all(|value| *value == values[0]) {
            (varying, constant + values.len())
        } else {
            (varying + values.len(), constant)
        }
    })
}

/// In how many failing attempts there was the error of the page that at least
/// half of them and at most a twentieth of the passes show.
fn telling_page_error(attempts: &[FailingAttempt], passes: &[Beside]) -> Option<usize> {
    let failing: Vec<&Beside> = attempts.iter().filter_map(|attempt| attempt.beside.as_ref()).collect();
    if passes.is_empty() {
        return None;
    }
    let mut seen: BTreeMap<&String, usize> = BTreeMap::new();
    for error in failing.iter().flat_map(|beside| &beside.page_errors) {
        *seen.entry(error).or_default() += 1;
    }
    let is_rare = |error: &String| {
        passes.iter().filter(|pass| pass.page_errors.contains(error)).count() * 20 <= passes.len()
    };
    seen.into_iter()
        .filter(|(error, count)| count * 2 >= failing.len() && is_rare(error))
        .map(|one| one.1)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{ErrorText, signature};

    fn attempt(error: &str) -> FailingAttempt {
        FailingAttempt {
            failure: signature(&[ErrorText { message: error, stack: None }], &[]),
            received: crate::explain::received(error).map(|(_, received)| received),
            passed_on_retry: true,
            ..FailingAttempt::default()
        }
    }

    fn cause(attempts: &[FailingAttempt]) -> RootCause {
        categorise(attempts, &[], &[]).cause
    }

    fn beside(requests: &[&str], errors: &[&str]) -> Beside {
        let all = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Beside { failed_requests: all(requests), page_errors: all(errors), ..Beside::default() }
    }

    fn total(received: &str) -> FailingAttempt {
        attempt(&format!(
            "Error: expect(locator).toHaveText(expected) failed\n\nLocator: getByTestId('total')\nExpected: \"1\"\nReceived: \"{received}\"\n\nCall log:\n  - locator resolved to <p>"
        ))
    }

    #[test]
    fn causes_are_named_by_what_the_attempts_show() {
        let net = vec![attempt("Error: page.goto: net::ERR_CONNECTION_RESET at https://shop.test/"); 3];
        assert_eq!(cause(&net), RootCause::Network);
        let waits = vec![attempt("TimeoutError: locator.click: Timeout 5000ms exceeded."); 4];
        assert_eq!(cause(&waits), RootCause::Timing);
        let gone = attempt(
            "Error: expect(locator).toBeVisible() failed\n\nLocator: getByTestId('x')\nError: element(s) not found",
        );
        assert_eq!(cause(&[gone]), RootCause::Timing);
        let odd =
            [vec![attempt("Error: connect ECONNREFUSED 127.0.0.1:80")], vec![waits[0].clone(); 9]].concat();
        assert_eq!(cause(&odd), RootCause::Timing, "one attempt in ten does not outweigh the others");
        assert_eq!(cause(&[net, waits].concat()), RootCause::Other, "neither is ahead");
        let file = vec![attempt("Error: ENOENT: no such file or directory, open 'a.json'"); 3];
        assert_eq!(cause(&file), RootCause::Other);
        assert_eq!(categorise(&[], &[], &[]), Finding { cause: RootCause::Other, because: vec![] });
    }

    #[test]
    fn a_value_that_varies_is_the_tests_and_one_that_does_not_is_the_applications() {
        let found = categorise(&[total("2"), total("3")], &[], &[]);
        assert_eq!(found.cause, RootCause::Assertion);
        assert_eq!(
            found.because[0].seen,
            "2 of 2 failing attempts compared a value that differs from attempt to attempt"
        );
        let same = categorise(&[total("2"), total("2")], &[], &[]);
        assert_eq!((same.cause, same.because[0].weight), (RootCause::Other, 0.5));
        assert_eq!(categorise(&[total("2")], &[], &[]).because, vec![]);
    }

    #[test]
    fn a_timeout_that_never_passes_on_retry_says_little_about_timing() {
        let attempts = vec![FailingAttempt { timed_out: true, ..FailingAttempt::default() }; 3];
        assert_eq!(cause(&attempts), RootCause::Other);
    }

    #[test]
    fn only_what_passes_do_not_show_speaks_of_requests_and_pages() {
        let failing = |requests: &[&str], errors: &[&str]| FailingAttempt {
            beside: Some(beside(requests, errors)),
            ..FailingAttempt::default()
        };
        let lost = vec![failing(&["GET /api/cart"], &[]); 3];
        assert_eq!(categorise(&lost, &[beside(&[], &[])], &[]).cause, RootCause::Network);
        let usual = beside(&["GET /api/cart"], &["warning"]);
        assert_eq!(categorise(&lost, &[usual], &[]).because, vec![]);
        let waiting =
            Beside { waiting_requests: BTreeSet::from(["GET /api/cart".to_owned()]), ..Beside::default() };
        assert_eq!(categorise(&lost, &[waiting], &[]).because, vec![], "passes end before its answer too");
        // An application that throws is no slow test, though the test waits for it.
        let slow =
            FailingAttempt { timed_out: true, passed_on_retry: true, ..failing(&[], &["TypeError: x"]) };
        let found = categorise(std::slice::from_ref(&slow), &[beside(&[], &[])], &[]);
        assert_eq!((found.cause, found.because[0].cause), (RootCause::Other, RootCause::Other));
        assert_eq!(categorise(&[slow], &[], &[]).cause, RootCause::Timing, "nobody knows what passes show");
    }

    #[test]
    fn failures_in_one_browser_point_at_the_environment() {
        let values: Vec<FailingAttempt> = (0..6).map(|number| total(&number.to_string())).collect();
        let of = |webkit| {
            let counts = [("webkit", 20, webkit), ("chromium", 40, 6 - webkit)];
            Place::count("browser project", counts.map(|(name, ran, failed)| (name.to_owned(), ran, failed)))
        };
        assert_eq!(categorise(&values, &[], &of(6)).cause, RootCause::Environment);
        assert_eq!(categorise(&values, &[], &of(2)).cause, RootCause::Assertion);
    }
}
