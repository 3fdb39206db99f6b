//! The text of a new issue about a failure cluster, which a person edits and files.

use super::markdown::{code, link, sentence};
use crate::text::cut;

const MAX_TITLE_CHARS: usize = 120;
const MAX_NAME_CHARS: usize = 200;
const MAX_ERROR_CHARS: usize = 1_000;
/// Tests that are named.
const MAX_TESTS: usize = 5;

/// What an issue is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueFacts {
    /// What the cluster is called.
    pub name: String,
    /// Its page.
    pub url: String,
    /// One of its errors.
    pub error: Option<String>,
    /// Failures so far.
    pub occurrences: i64,
    /// Titles of affected tests, and how many there are.
    pub tests: (Vec<String>, i64),
    /// The run that showed it first, and its page.
    pub first_run: (i64, String),
}

/// Its title: plain text, which no provider renders.
#[must_use]
pub fn issue_title(facts: &IssueFacts) -> String {
    let line: String = facts.name.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    cut(crate::bidi::visible(line.trim()).into_owned(), MAX_TITLE_CHARS)
}

/// Its body in Markdown.
#[must_use]
pub fn issue_body(facts: &IssueFacts) -> String {
    let mut body = format!("{}\n", sentence(&facts.name, MAX_NAME_CHARS));
    if let Some(error) = &facts.error {
        body.push_str(&format!("\n{}\n", code(error, MAX_ERROR_CHARS)));
    }
    let (run, run_url) = &facts.first_run;
    body.push_str(&format!("\n- {}\n", link("Failure cluster in Callboard", &facts.url)));
    body.push_str(&format!("- First seen in {}\n", link(&format!("run {run}"), run_url)));
    body.push_str(&format!("- {} failures so far\n", facts.occurrences));
    let (tests, count) = &facts.tests;
    if !tests.is_empty() {
        body.push_str("\nAffected tests:\n\n");
        for title in tests.iter().take(MAX_TESTS) {
            body.push_str(&format!("- {}\n", code(title, MAX_NAME_CHARS)));
        }
        let left = count - i64::try_from(tests.len().min(MAX_TESTS)).unwrap_or_default();
        if left > 0 {
            body.push_str(&format!("- and {left} more\n"));
        }
    }
    body
}
