//! Why a test is flaky, as far as its stored executions tell.
//!
//! Evidence adds up as log-odds; a cause has to be clearly ahead of the next
//! one to be named. Invariant: a named cause comes with what speaks for it.

use serde::{Serialize, Serializer};

/// Failing attempts looked at, the newest.
pub const MAX_ATTEMPTS: usize = 50;
/// How far ahead a cause has to be.
const MARGIN: f64 = 0.5;
/// Failures from which a concentration can be told from chance.
const ENOUGH_FAILURES: usize = 5;
/// Probability below which a concentration is not chance.
const SIGNIFICANT: f64 = 0.01;

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
    /// First line of its error.
    pub error: Option<String>,
    /// It ended in the timeout of the test.
    pub timed_out: bool,
    /// How long it took, ms.
    pub duration_ms: i64,
    /// The timeout in force, ms.
    pub timeout_ms: Option<i64>,
    /// A later attempt of the same execution passed.
    pub passed_on_retry: bool,
}

/// Executions in one place: a browser project, an environment, a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of place.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Decided executions there.
    pub ran: usize,
    /// Those with a failing attempt.
    pub failed: usize,
    /// Decided executions in all places of the kind.
    pub ran_anywhere: usize,
    /// Those with a failing attempt.
    pub failed_anywhere: usize,
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

/// What the first line of an error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Timeout,
    Network,
    Value,
    Unsettled,
    Code,
    Unknown,
}

fn kind_of(attempt: &FailingAttempt) -> Kind {
    let text = attempt.error.as_deref().unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&[
        "net::ERR_",
        "NS_ERROR_",
        "ECONNREFUSED",
        "ECONNRESET",
        "ENOTFOUND",
        "ETIMEDOUT",
        "EPIPE",
        "socket hang up",
    ]) {
        Kind::Network
    } else if attempt.timed_out || has(&["Timeout ", "Timed out", "Test timeout of"]) {
        Kind::Timeout
    } else if has(&[
        "toBeVisible",
        "toBeEnabled",
        "toBeAttached",
        "toBeInViewport",
        "detached",
        "not stable",
        "intercepts pointer",
    ]) {
        Kind::Unsettled
    } else if has(&["expect(", "expect."]) {
        Kind::Value
    } else if has(&["TypeError", "ReferenceError", "RangeError", "SyntaxError"]) {
        Kind::Code
    } else {
        Kind::Unknown
    }
}

/// Judges the newest failing attempts of a flaky test and where they failed.
#[must_use]
pub fn categorise(attempts: &[FailingAttempt], places: &[Place]) -> Finding {
    let attempts = &attempts[..attempts.len().min(MAX_ATTEMPTS)];
    let mut because = Vec::new();
    let mut share = |cause, weight, what: &str, fits: &dyn Fn(&FailingAttempt) -> bool| {
        let count = attempts.iter().filter(|attempt| fits(attempt)).count();
        if count > 0 && count * 2 >= attempts.len() {
            let seen = format!("{count} of {} failing attempts {what}", attempts.len());
            because.push(Because { cause, weight, seen });
        }
    };
    share(RootCause::Timing, 1.0, "waited in vain for what the next attempt found", &|attempt| {
        attempt.passed_on_retry && matches!(kind_of(attempt), Kind::Timeout | Kind::Unsettled)
    });
    share(RootCause::Timing, 0.7, "took at least 90 % of their timeout", &|attempt| {
        attempt.timeout_ms.is_some_and(|timeout| timeout > 0 && attempt.duration_ms * 10 >= timeout * 9)
    });
    share(RootCause::Network, 1.5, "ended in a network error", &|attempt| kind_of(attempt) == Kind::Network);
    share(RootCause::Assertion, 0.7, "compared a value that differed", &|attempt| {
        kind_of(attempt) == Kind::Value
    });
    share(RootCause::Other, 0.5, "ended in an error of code", &|attempt| kind_of(attempt) == Kind::Code);
    for place in places {
        let is_some_of_many = place.ran < place.ran_anywhere && place.failed_anywhere >= ENOUGH_FAILURES;
        if is_some_of_many && concentration(place) < SIGNIFICANT {
            let seen = format!(
                "{} of {} failing executions were in {} {}, where {} of {} ran",
                place.failed, place.failed_anywhere, place.kind, place.name, place.ran, place.ran_anywhere
            );
            because.push(Because { cause: RootCause::Environment, weight: 2.0, seen });
        }
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

/// Probability of at least so many failures in the place if place did not
/// matter: the upper tail of the hypergeometric distribution, which is Fisher's
/// exact test of the two by two table.
fn concentration(place: &Place) -> f64 {
    let (population, drawn) = (place.ran_anywhere, place.ran);
    let marked = place.failed_anywhere.min(population);
    let logs: Vec<f64> = std::iter::once(0.0)
        .chain((1..=population).scan(0.0, |sum, n| {
            #[expect(clippy::cast_precision_loss, reason = "a few hundred executions")]
            let log = (n as f64).ln();
            *sum += log;
            Some(*sum)
        }))
        .collect();
    let choose = |n: usize, k: usize| if k > n { f64::NEG_INFINITY } else { logs[n] - logs[k] - logs[n - k] };
    let all = choose(population, drawn);
    (place.failed..=marked.min(drawn))
        .filter(|&k| drawn - k <= population - marked)
        .map(|k| (choose(marked, k) + choose(population - marked, drawn - k) - all).exp())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(error: &str) -> FailingAttempt {
        FailingAttempt { error: Some(error.to_owned()), passed_on_retry: true, ..FailingAttempt::default() }
    }

    #[test]
    fn causes_are_named_by_what_most_attempts_show() {
        let net = vec![attempt("Error: page.goto: net::ERR_CONNECTION_RESET at https://shop.test/"); 3];
        assert_eq!(categorise(&net, &[]).cause, RootCause::Network);
        let waits = vec![attempt("TimeoutError: locator.click: Timeout 5000ms exceeded."); 4];
        assert_eq!(categorise(&waits, &[]).cause, RootCause::Timing);
        let values = vec![attempt("Error: expect(received).toBe(expected) // Object.is equality"); 2];
        let found = categorise(&values, &[]);
        assert_eq!(found.cause, RootCause::Assertion);
        assert_eq!(found.because[0].seen, "2 of 2 failing attempts compared a value that differed");
        let mixed = [net, waits].concat();
        assert_eq!(categorise(&mixed, &[]).cause, RootCause::Timing, "the rarer one is not half of them");
        assert_eq!(categorise(&[], &[]), Finding { cause: RootCause::Other, because: vec![] });
    }

    #[test]
    fn a_timeout_that_never_passes_on_retry_says_little_about_timing() {
        let attempts = vec![FailingAttempt { timed_out: true, ..FailingAttempt::default() }; 3];
        assert_eq!(categorise(&attempts, &[]).cause, RootCause::Other);
    }

    #[test]
    fn failures_in_one_browser_point_at_the_environment() {
        let values = vec![attempt("Error: expect(received).toBe(expected)"); 6];
        let place = Place {
            kind: "browser project",
            name: "webkit".to_owned(),
            ran: 20,
            failed: 6,
            ran_anywhere: 60,
            failed_anywhere: 6,
        };
        // C(20,6) / C(60,6) = 38,760 / 50,063,860
        assert!((concentration(&place) - 38_760.0 / 50_063_860.0).abs() < 1e-9);
        assert_eq!(categorise(&values, std::slice::from_ref(&place)).cause, RootCause::Environment);
        let spread = Place { failed: 2, ..place };
        assert_eq!(categorise(&values, &[spread]).cause, RootCause::Assertion);
    }
}
