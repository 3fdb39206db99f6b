//! The words clients use for results, read without regard to case, `-`, `_`
//! and blanks.

use crate::status::{RunStatus, TestStatus};

/// A result as a client named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedResult {
    /// The status the word stands for.
    pub status: TestStatus,
    /// The word was `flaky`.
    pub flaky: bool,
}

/// Longest word of the vocabulary.
const MAX_WORD: usize = 16;

/// Lower case without `-`, `_` and blanks, on the stack; `None` for words
/// longer than any we know.
fn with_folded<T>(word: &str, look_up: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut folded = [0_u8; MAX_WORD];
    let mut length = 0;
    for byte in word.bytes().filter(|byte| !matches!(byte, b'-' | b'_') && !byte.is_ascii_whitespace()) {
        *folded.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    look_up(std::str::from_utf8(&folded[..length]).ok()?)
}

/// Whether there is no word at all.
pub(crate) fn is_blank(word: &str) -> bool {
    word.chars().all(|character| matches!(character, '-' | '_') || character.is_whitespace())
}

/// Reads the result of an attempt; `None` for a word that is none of ours.
#[must_use]
pub fn test_result(word: &str) -> Option<ClaimedResult> {
    let status = with_folded(word, |word| {
        Some(match word {
            "passed" | "pass" | "ok" | "success" | "expected" | "flaky" => TestStatus::Passed,
            "failed" | "fail" | "failure" | "error" | "broken" | "unexpected" => TestStatus::Failed,
            "timedout" | "timeout" => TestStatus::TimedOut,
            "interrupted" | "cancelled" | "canceled" | "aborted" => TestStatus::Interrupted,
            "skipped" | "skip" | "pending" | "disabled" | "ignored" | "todo" => TestStatus::Skipped,
            "didnotrun" | "notrun" | "blocked" => TestStatus::DidNotRun,
            _ => return None,
        })
    })?;
    let flaky = with_folded(word, |word| (word == "flaky").then_some(())).is_some();
    Some(ClaimedResult { status, flaky })
}

/// Reads the result a client claims for its run; `None` for other words.
#[must_use]
pub fn run_result(word: &str) -> Option<RunStatus> {
    with_folded(word, |word| {
        Some(match word {
            "passed" | "success" => RunStatus::Passed,
            "failed" | "failure" => RunStatus::Failed,
            "timedout" => RunStatus::TimedOut,
            "interrupted" | "cancelled" | "canceled" => RunStatus::Interrupted,
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_result_is_understood() {
        for (status, words) in [
            (TestStatus::Passed, "passed pass ok success expected flaky Passed PASS"),
            (TestStatus::Failed, "failed fail failure error broken unexpected"),
            (TestStatus::TimedOut, "timedOut timeout timed-out TIMED_OUT"),
            (TestStatus::Interrupted, "interrupted cancelled canceled aborted"),
            (TestStatus::Skipped, "skipped skip pending disabled ignored todo"),
            (TestStatus::DidNotRun, "didnotrun notrun blocked did-not-run not_run"),
        ] {
            for word in words.split(' ') {
                let expected = ClaimedResult { status, flaky: word == "flaky" };
                assert_eq!(test_result(word), Some(expected), "{word}");
            }
        }
        assert_eq!(test_result(" did not run ").map(|result| result.status), Some(TestStatus::DidNotRun));
        for word in ["", "purple", "passed!", "passedpassedpassedpassed", "Ünbekannt"] {
            assert_eq!(test_result(word), None, "{word}");
        }
    }

    #[test]
    fn every_spelling_of_a_run_result_is_understood() {
        for (status, words) in [
            (RunStatus::Passed, "passed success"),
            (RunStatus::Failed, "failed failure"),
            (RunStatus::TimedOut, "timedout timedOut timed-out"),
            (RunStatus::Interrupted, "interrupted cancelled canceled"),
        ] {
            for word in words.split(' ') {
                assert_eq!(run_result(word), Some(status), "{word}");
            }
        }
        for word in ["running", "already-submitted", ""] {
            assert_eq!(run_result(word), None, "{word}");
        }
    }
}
