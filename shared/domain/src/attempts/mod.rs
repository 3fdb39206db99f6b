//! Attempts of one execution: what each reported, the set of them, and the
//! decision the set leads to.
//!
//! Invariant: a set is the join of everything that was ever reported, so the
//! order of arrival and repeated deliveries never show, neither in the set, nor
//! in its stored form, nor in the decision. `set` merges, `resolve` turns
//! undated reports into distinct attempts, `outcome` is Playwright's rule for
//! one repetition, `decide` judges the whole, `stored` is the JSON of the
//! `attempts` column.

mod decide;
mod outcome;
mod resolve;
mod set;
mod stored;
#[cfg(test)]
mod tests;

pub use decide::{AttemptView, Decision};
pub use set::{AttemptSet, MAX_LISTED, MAX_REMEMBERED};
pub use stored::StoredAttemptsError;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::failure::Fingerprint;
use crate::ids::PackId;
use crate::status::TestStatus;
use crate::time::Timestamp;

/// The columns of an execution that describe its deciding attempt. Durations
/// are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptFacts {
    /// 1-based line of the test.
    #[serde(rename = "ln", default, skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// 1-based column of the test.
    #[serde(rename = "co", default, skip_serializing_if = "Option::is_none")]
    pub column: Option<i64>,
    /// The timeout in force; 0 means unbounded.
    #[serde(rename = "to", default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// Playwright's worker index.
    #[serde(rename = "wi", default, skip_serializing_if = "Option::is_none")]
    pub worker_index: Option<i64>,
    /// Playwright's parallel index.
    #[serde(rename = "pi", default, skip_serializing_if = "Option::is_none")]
    pub parallel_index: Option<i64>,
    /// 1-based shard.
    #[serde(rename = "si", default, skip_serializing_if = "Option::is_none")]
    pub shard_index: Option<i64>,
    /// First line of the error, without control sequences.
    #[serde(rename = "er", default, skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<String>,
    /// Title of the longest step.
    #[serde(rename = "ss", default, skip_serializing_if = "Option::is_none")]
    pub slowest_step: Option<String>,
    /// How long that step took.
    #[serde(rename = "sm", default, skip_serializing_if = "Option::is_none")]
    pub slowest_ms: Option<i64>,
    /// Time spent in fixed waits.
    #[serde(rename = "wa", default, skip_serializing_if = "is_zero")]
    pub wasted_ms: i64,
    /// Largest contentful paint.
    #[serde(rename = "lc", default, skip_serializing_if = "Option::is_none")]
    pub lcp: Option<i64>,
    /// Interaction to next paint.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub inp: Option<i64>,
    /// Time to first byte.
    #[serde(rename = "tt", default, skip_serializing_if = "Option::is_none")]
    pub ttfb: Option<i64>,
    /// Cumulative layout shift in thousandths.
    #[serde(rename = "cl", default, skip_serializing_if = "Option::is_none")]
    pub cls_milli: Option<i64>,
    /// Number of steps.
    #[serde(rename = "ns", default, skip_serializing_if = "is_zero")]
    pub steps: i64,
    /// Number of console entries.
    #[serde(rename = "nc", default, skip_serializing_if = "is_zero")]
    pub console: i64,
    /// Number of network requests.
    #[serde(rename = "nn", default, skip_serializing_if = "is_zero")]
    pub network: i64,
    /// The status as it was sent, when it was not one of ours.
    #[serde(rename = "rs", default, skip_serializing_if = "Option::is_none")]
    pub raw_status: Option<String>,
    /// Why the test did not run.
    #[serde(rename = "nr", default, skip_serializing_if = "Option::is_none")]
    pub did_not_run_reason: Option<String>,
    /// Why its author skipped the test.
    #[serde(rename = "sr", default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// Location of the failing test that blocked this one.
    #[serde(rename = "bb", default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// The test was expected to fail and did, hence it passed.
    #[serde(rename = "xf", default, skip_serializing_if = "is_false")]
    pub expected_failure: bool,
    /// The test is marked as slow.
    #[serde(rename = "sl", default, skip_serializing_if = "is_false")]
    pub marked_slow: bool,
    /// What its failure is told from; of an execution, that of the attempt that
    /// failed last.
    #[serde(rename = "fp", default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Where the evidence of one attempt lies inside a pack object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvidenceSlice {
    /// The pack.
    pub pack: PackId,
    /// First byte of the frame.
    pub offset: i64,
    /// Length of the frame in bytes.
    pub length: i64,
}

/// One attempt as it is known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the attempt within its repetition, 0 for the first.
    pub retry: u32,
    /// `repeatEachIndex`, when the client sends it.
    pub repetition: Option<u32>,
    /// Generation of the shard's slot; 0 outside shards.
    pub generation: u32,
    /// How it ended.
    pub status: TestStatus,
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// The client called the test `flaky` itself.
    pub flaky_claimed: bool,
    /// What the execution row shows when this attempt decides.
    pub facts: AttemptFacts,
    /// Its evidence, if there is any.
    pub evidence: Option<EvidenceSlice>,
    /// Only known from the history a later attempt carried.
    pub is_summary: bool,
}

/// One line of the history that a later attempt carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierAttempt {
    /// Index of the attempt.
    pub retry: u32,
    /// How it ended, after normalisation.
    pub status: TestStatus,
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
    /// When it started.
    pub started_at: Option<Timestamp>,
}

/// One `complete` of a request: an attempt with the history it carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The attempt itself.
    pub attempt: Attempt,
    /// Its predecessors; lines of the attempt's own or a higher retry are
    /// ignored, the attempt speaks for itself.
    pub history: Vec<EarlierAttempt>,
}

/// What a reported attempt did to the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Merged {
    /// Everything was known.
    Unchanged,
    /// It, or its history, told something new about known attempts.
    Filled,
    /// A new attempt.
    Inserted,
}

impl AttemptFacts {
    /// Fills what is empty. Where both sides know something different the
    /// greater value stays, so that the order of arrival cannot show; pairs
    /// that only make sense together are taken together. Whether the failure
    /// was expected goes with the status, see [`Attempt::join`].
    fn join(&mut self, other: &Self) {
        self.marked_slow |= other.marked_slow;
        (self.line, self.column) = (self.line, self.column).max((other.line, other.column));
        if (other.slowest_ms, &other.slowest_step) > (self.slowest_ms, &self.slowest_step) {
            self.slowest_ms = other.slowest_ms;
            self.slowest_step.clone_from(&other.slowest_step);
        }
        for (mine, theirs) in [
            (&mut self.timeout_ms, other.timeout_ms),
            (&mut self.worker_index, other.worker_index),
            (&mut self.parallel_index, other.parallel_index),
            (&mut self.shard_index, other.shard_index),
            (&mut self.lcp, other.lcp),
            (&mut self.inp, other.inp),
            (&mut self.ttfb, other.ttfb),
            (&mut self.cls_milli, other.cls_milli),
        ] {
            *mine = (*mine).max(theirs);
        }
        for (mine, theirs) in [
            (&mut self.error_summary, &other.error_summary),
            (&mut self.raw_status, &other.raw_status),
            (&mut self.did_not_run_reason, &other.did_not_run_reason),
            (&mut self.blocked_by, &other.blocked_by),
            (&mut self.skip_reason, &other.skip_reason),
        ] {
            if theirs > mine {
                mine.clone_from(theirs);
            }
        }
        self.fingerprint = self.fingerprint.max(other.fingerprint);
        for (mine, theirs) in [
            (&mut self.wasted_ms, other.wasted_ms),
            (&mut self.steps, other.steps),
            (&mut self.console, other.console),
            (&mut self.network, other.network),
        ] {
            *mine = (*mine).max(theirs);
        }
    }
}

impl Attempt {
    /// Joins another report of the same attempt: a full report outranks a
    /// summary, of two differing statuses the worse stays, the first evidence
    /// (the lowest pack) stays. Commutative, associative and idempotent.
    fn join(&mut self, other: &Self) {
        let (mine, theirs) = (self.authority(), other.authority());
        if theirs > mine {
            self.status = other.status;
            self.facts.expected_failure = other.facts.expected_failure;
        } else if theirs == mine {
            self.facts.expected_failure |= other.facts.expected_failure;
        }
        self.duration_ms = (!self.is_summary, self.duration_ms).max((!other.is_summary, other.duration_ms)).1;
        self.started_at = self.started_at.max(other.started_at);
        self.flaky_claimed |= other.flaky_claimed;
        self.facts.join(&other.facts);
        self.evidence = match (self.evidence, other.evidence) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
        self.is_summary &= other.is_summary;
    }

    /// Whose word on the status counts more.
    fn authority(&self) -> (bool, Reverse<u8>) {
        (!self.is_summary, Reverse(self.status.severity()))
    }

    fn is_did_not_run(&self) -> bool {
        self.status == TestStatus::DidNotRun
    }
}
