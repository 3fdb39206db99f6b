//! Parts of a run's fields that are structures of their own: shard, claimed
//! counters, filters.

use serde::{Deserialize, Serialize};

use super::lenient;
use crate::text::cut;
use crate::totals::Totals;

const MAX_FILTER_CHARS: usize = 1_000;
const MAX_FILTER_ITEMS: usize = 200;

/// A shard of a run with more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1; `None` takes the lowest free one.
    pub index: Option<u32>,
    /// 2 to 1,000.
    pub total: u32,
}

/// Counters as a client claims them. Clients count attempts, so these are
/// shown only while the run has no rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names of `Totals`")]
pub struct ClaimedTotals {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_tests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_tests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out_tests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_tests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_not_run_tests: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaky_tests: Option<i64>,
}

impl ClaimedTotals {
    /// The claim as totals; what was not claimed is 0, a missing total the sum
    /// of its parts.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            passed_tests: self.passed_tests.unwrap_or(0),
            failed_tests: self.failed_tests.unwrap_or(0),
            timed_out_tests: self.timed_out_tests.unwrap_or(0),
            skipped_tests: self.skipped_tests.unwrap_or(0),
            did_not_run_tests: self.did_not_run_tests.unwrap_or(0),
            flaky_tests: self.flaky_tests.unwrap_or(0),
            ..Totals::default()
        };
        let parts =
            totals.passed_tests + totals.failed_tests + totals.skipped_tests + totals.did_not_run_tests;
        totals.total_tests = self.total_tests.unwrap_or(parts);
        totals
    }
}

/// What narrowed a partial run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilterDetails {
    /// Pattern tests had to match.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub grep: Option<String>,
    /// Pattern tests must not match.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub grep_invert: Option<String>,
    /// Files named on the command line, ≤ 200.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient::list_or_empty")]
    pub files: Vec<String>,
    /// Browser projects selected, ≤ 200.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient::list_or_empty")]
    pub projects: Vec<String>,
    /// Only the tests that failed last.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_flag")]
    pub last_failed: Option<bool>,
    /// Only changed files; `true`, or the ref they changed against.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_json_text")]
    pub only_changed: Option<String>,
    /// Only the tests that are focused with `.only`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_flag")]
    pub only: Option<bool>,
}

impl FilterDetails {
    pub(super) fn bounded(mut self) -> Option<Self> {
        let short = |text: String| cut(text, MAX_FILTER_CHARS);
        for text in [&mut self.grep, &mut self.grep_invert, &mut self.only_changed] {
            *text = text.take().filter(|text| !text.is_empty()).map(short);
        }
        for items in [&mut self.files, &mut self.projects] {
            items.truncate(MAX_FILTER_ITEMS);
            items.iter_mut().for_each(|item| *item = short(std::mem::take(item)));
        }
        (self != Self::default()).then_some(self)
    }
}
