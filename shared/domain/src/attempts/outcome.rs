//! The outcome of one repetition over its attempts, by Playwright's own rule
//! (`TestCase.outcome()`): a failure is never undone by an attempt that was
//! interrupted or did not run, and a test that failed as well as passed is
//! flaky in whichever order it did.

use crate::status::TestStatus;

/// How a repetition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepetitionOutcome {
    /// Its status; a flaky repetition passed.
    pub(super) status: TestStatus,
    /// Some attempt failed and another one passed or, as the last, was skipped;
    /// or it passed and skipped itself when it was run again.
    pub(super) flaky: bool,
    /// Position of the attempt that speaks for it: the last unexpected one of
    /// a failed repetition, the last expected one of any other.
    pub(super) deciding: usize,
}

/// Judges the attempts of a repetition, given in order of retry; `None`
/// without attempts.
///
/// A status says whether the attempt was expected: a failure that was expected
/// is reported as `passed`, and a pass that was not as `failed`. `skipped` was
/// skipped on purpose; a test that Playwright skipped did not run.
pub(super) fn repetition_outcome(statuses: &[TestStatus]) -> Option<RepetitionOutcome> {
    let last = |wanted: TestStatus| statuses.iter().rposition(|status| *status == wanted);
    let unexpected = statuses.iter().rposition(|status| status.is_failing());
    let passed = last(TestStatus::Passed);
    // The last attempt says what is expected of all of them: after a skip
    // nothing but skips is, and a skip before another result counts for none.
    let has_run = |status: &&TestStatus| !matches!(status, TestStatus::Interrupted | TestStatus::DidNotRun);
    let ends_skipped = statuses.iter().rfind(has_run) == Some(&TestStatus::Skipped);
    let skipped = last(TestStatus::Skipped).filter(|_| ends_skipped);
    let is_flaky = match (unexpected, passed, skipped) {
        (Some(_), passed, skipped) => passed.is_some() || skipped.is_some(),
        (None, passed, skipped) => passed.is_some() && skipped.is_some(),
    };
    if let (true, Some(deciding)) = (is_flaky, passed.or(skipped)) {
        return Some(RepetitionOutcome { status: TestStatus::Passed, flaky: true, deciding });
    }
    let deciding = unexpected
        .or(passed)
        .or_else(|| last(TestStatus::Skipped))
        .or_else(|| last(TestStatus::Interrupted))
        .or_else(|| last(TestStatus::DidNotRun))?;
    Some(RepetitionOutcome { status: statuses[deciding], flaky: false, deciding })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::TestStatus::{DidNotRun, Failed, Interrupted, Passed, Skipped, TimedOut};

    /// What `TestCase.outcome()` of Playwright answers.
    #[derive(Debug, PartialEq)]
    enum PlaywrightOutcome {
        Skipped,
        Expected,
        Unexpected,
        Flaky,
    }

    /// Playwright's rule, written as Playwright writes it: results are counted
    /// by kind, and the last attempt says what was expected.
    fn playwright_outcome(statuses: &[TestStatus]) -> PlaywrightOutcome {
        let (mut skipped, mut expected, mut unexpected) = (0, 0, 0);
        let ran = || statuses.iter().filter(|status| !matches!(status, Interrupted | DidNotRun));
        let expects_skip = ran().next_back() == Some(&Skipped);
        for status in ran() {
            match status {
                Skipped if expects_skip => skipped += 1,
                Passed if !expects_skip => expected += 1,
                Passed | Failed | TimedOut => unexpected += 1,
                _ => {}
            }
        }
        if expected == 0 && unexpected == 0 {
            PlaywrightOutcome::Skipped
        } else if unexpected == 0 {
            PlaywrightOutcome::Expected
        } else if expected == 0 && skipped == 0 {
            PlaywrightOutcome::Unexpected
        } else {
            PlaywrightOutcome::Flaky
        }
    }

    /// All sequences of one to `longest` statuses.
    fn sequences(longest: usize) -> Vec<Vec<TestStatus>> {
        let mut all: Vec<Vec<TestStatus>> = vec![Vec::new()];
        let mut begin = 0;
        for _ in 0..longest {
            let end = all.len();
            for at in begin..end {
                for status in TestStatus::ALL {
                    let mut longer = all[at].clone();
                    longer.push(status);
                    all.push(longer);
                }
            }
            begin = end;
        }
        all.split_off(1)
    }

    #[test]
    fn every_sequence_is_judged_as_playwright_judges_it() {
        let all = sequences(4);
        assert_eq!(all.len(), 6 + 36 + 216 + 1_296);
        for statuses in all {
            let judged = repetition_outcome(&statuses).expect("there are attempts");
            let deciding = statuses[judged.deciding];
            let has = |status| statuses.contains(&status);
            match playwright_outcome(&statuses) {
                PlaywrightOutcome::Flaky => {
                    assert_eq!((judged.status, judged.flaky), (Passed, true), "{statuses:?}");
                    assert_eq!(deciding, if has(Passed) { Passed } else { Skipped }, "{statuses:?}");
                }
                PlaywrightOutcome::Unexpected => {
                    assert!(!has(Passed), "{statuses:?}");
                    let last = statuses.iter().rev().find(|status| matches!(status, Failed | TimedOut));
                    assert_eq!((Some(&judged.status), judged.flaky), (last, false), "{statuses:?}");
                    assert_eq!(deciding, judged.status, "{statuses:?}");
                }
                PlaywrightOutcome::Expected => {
                    assert_eq!(
                        (judged.status, deciding, judged.flaky),
                        (Passed, Passed, false),
                        "{statuses:?}"
                    );
                }
                // Playwright has one word for what we tell apart.
                PlaywrightOutcome::Skipped => {
                    let best = [Skipped, Interrupted, DidNotRun].into_iter().find(|status| has(*status));
                    assert_eq!((Some(judged.status), judged.flaky), (best, false), "{statuses:?}");
                    assert_eq!(deciding, judged.status, "{statuses:?}");
                }
            }
            let is_last = !statuses[judged.deciding + 1..].contains(&deciding);
            assert!(is_last, "a later attempt ended like the deciding one: {statuses:?}");
        }
        assert_eq!(repetition_outcome(&[]), None);
    }

    #[test]
    fn a_failure_never_vanishes() {
        let judge = |statuses: &[TestStatus]| {
            let judged = repetition_outcome(statuses).expect("there are attempts");
            (judged.status, judged.flaky, judged.deciding)
        };
        assert_eq!(judge(&[Failed, Interrupted]), (Failed, false, 0));
        assert_eq!(judge(&[Failed, TimedOut, DidNotRun]), (TimedOut, false, 1));
        assert_eq!(judge(&[Passed, Failed]), (Passed, true, 0));
        assert_eq!(judge(&[Failed, Skipped]), (Passed, true, 1));
        assert_eq!(judge(&[Passed, Interrupted]), (Passed, false, 0));
        assert_eq!(judge(&[Passed, Skipped]), (Passed, true, 0));
        assert_eq!(judge(&[Passed, Skipped, Passed]), (Passed, false, 2));
        assert_eq!(judge(&[Failed, Skipped, Failed]), (Failed, false, 2));
        assert_eq!(judge(&[Skipped, Interrupted]), (Skipped, false, 0));
    }
}
