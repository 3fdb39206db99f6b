//! The message that all channels share.

use serde::{Deserialize, Serialize};

/// Largest message, bytes of its JSON.
pub const MAX_MESSAGE_BYTES: usize = 3_000;
/// Characters of each text of a message that is too large without any list.
const SHORT_CHARS: usize = 120;

/// A message, the same for every channel. Texts may come from tests and are
/// never markup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// What is new, on one line.
    pub headline: String,
    /// What a reader needs to decide whether to look, one fact each.
    pub facts: Vec<String>,
    /// Failures that are new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureLine>,
    /// New failures that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_failures: i64,
    /// Page that shows it.
    pub url: String,
    /// Project; absent in test messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<i64>,
    /// Name of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// Run it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    /// Status of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Tests of that run that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_tests: Option<i64>,
    /// Branch of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Environment of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Failure cluster it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<i64>,
    /// Test case it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_case_id: Option<i64>,
}

/// A new failure: one test, and how many others have the same cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureLine {
    /// Title of the test.
    pub title: String,
    /// Cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Owner of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Other tests with the same cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub same_cause: i64,
    /// Page of the failure.
    pub url: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl FailureLine {
    /// What stands behind the title: ` – cause (@owner, and 2 more tests)`.
    #[must_use]
    pub fn details(&self) -> String {
        let cause = self.cause.as_ref().map(|cause| format!(" – {cause}")).unwrap_or_default();
        let same = match self.same_cause {
            0 => None,
            1 => Some("and 1 more test".to_owned()),
            more => Some(format!("and {more} more tests")),
        };
        let aside: Vec<String> = self.owner.clone().into_iter().chain(same).collect();
        if aside.is_empty() { cause } else { format!("{cause} ({})", aside.join(", ")) }
    }

    /// Title and details on one line.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}{}", self.title, self.details())
    }
}

impl Message {
    /// What stands behind the list of failures when some are left out.
    #[must_use]
    pub fn failures_left_out(&self) -> Option<String> {
        (self.more_failures > 0).then(|| match self.more_failures {
            1 => "and 1 more new failure".to_owned(),
            more => format!("and {more} more new failures"),
        })
    }

    fn size(&self) -> usize {
        serde_json::to_string(self).map_or(0, |json| json.len())
    }

    /// Whether it is small enough as it is.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.size() <= MAX_MESSAGE_BYTES
    }

    /// The message with as many failures and facts as fit into [`MAX_MESSAGE_BYTES`]; what a message is about and the
    /// first fact stay.
    #[must_use]
    pub fn fitted(mut self) -> Self {
        while !self.fits() {
            if let Some(left_out) = self.failures.pop() {
                self.more_failures += 1 + left_out.same_cause;
            } else if self.facts.len() > 1 {
                self.facts.pop();
            } else {
                let names = [&mut self.project_name, &mut self.branch, &mut self.environment];
                let texts = names.into_iter().flatten().chain(&mut self.facts).chain([&mut self.headline]);
                for text in texts {
                    *text = one_line(text, SHORT_CHARS);
                }
                break;
            }
        }
        self
    }
}

/// A text as one line with a limit of characters; a cut text ends with an ellipsis.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        let end = line[..end].char_indices().next_back().map_or(0, |(at, _)| at);
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn failure(title: &str, same_cause: i64) -> FailureLine {
        FailureLine { title: title.to_owned(), same_cause, url: "/".to_owned(), ..FailureLine::default() }
    }

    #[test]
    fn a_failure_is_one_line() {
        let line = FailureLine {
            cause: Some("Timed out".to_owned()),
            owner: Some("@team".to_owned()),
            ..failure("pays", 2)
        };
        assert_eq!(line.line(), "pays – Timed out (@team, and 2 more tests)");
        assert_eq!(failure("pays", 0).line(), "pays");
    }

    #[test]
    fn a_text_becomes_one_line() {
        assert_eq!(one_line("a\nb", 3), "a b");
        assert_eq!(one_line("abcdé", 4), "abc…");
        assert_eq!(one_line("", 4), "");
    }

    proptest! {
        /// Whatever tests are called, a message is small, and says how much it leaves out.
        #[test]
        fn a_message_fits(
            titles in prop::collection::vec("\\PC{0,120}", 0..12),
            facts in prop::collection::vec("[\u{1F600}-\u{1F64F}]{0,300}", 1..12),
        ) {
            let count = i64::try_from(titles.len()).expect("a number");
            let failures = titles.iter().map(|title| failure(title, 1)).collect();
            let long = "\u{1F600}".repeat(300);
            let branch = Some(long.clone());
            let message = Message { headline: long, facts, failures, branch, ..Message::default() }.fitted();
            prop_assert!(message.size() <= MAX_MESSAGE_BYTES, "{}", message.size());
            let listed = i64::try_from(message.failures.len()).expect("a number");
            prop_assert_eq!(2 * listed + message.more_failures, 2 * count);
            prop_assert!(!message.facts.is_empty());
        }
    }
}
