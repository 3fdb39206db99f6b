//! The parts of an entry that are computed from others: the client's memory of
//! earlier attempts, vitals and counts for the execution row, the describe
//! path, and what an expected failure turns a status into.

use serde::{Deserialize, Serialize};

use super::MAX_RETRY;
use crate::evidence::{Annotation, Evidence, WebVitals};
use crate::ingest::caps::Caps;
use crate::ingest::lenient::{Scalar, as_count};
use crate::ingest::meta::SuiteConfig;
use crate::ingest::status_words::{is_blank, test_result};
use crate::ingest::test_case_input::{AttachmentInput, AttemptInput, SuiteTitle};
use crate::status::TestStatus;
use crate::text::cut;
use crate::time::Timestamp;

/// Levels of a describe path; deeper ones are left out.
pub const MAX_SUITES: usize = 20;
/// Characters of a describe title.
pub const MAX_SUITE_CHARS: usize = 500;
const MAX_HISTORY: usize = 100;

/// An attempt of which only the outline is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSummary {
    /// Index of the attempt.
    pub retry: u32,
    /// Result, after expected failures were turned around.
    pub status: TestStatus,
    /// Milliseconds.
    pub duration_ms: i64,
    /// Start of the attempt.
    #[serde(with = "crate::time::as_millis")]
    pub started_at: Option<Timestamp>,
}

/// Web vitals in the units of the execution row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VitalsSummary {
    /// Largest contentful paint, milliseconds.
    pub lcp_ms: Option<i32>,
    /// Interaction to next paint, milliseconds.
    pub inp_ms: Option<i32>,
    /// Time to first byte, milliseconds.
    pub ttfb_ms: Option<i32>,
    /// Cumulative layout shift in thousandths.
    pub cls_thousandths: Option<i32>,
}

/// How much evidence there is, as stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceCounts {
    /// Steps.
    pub steps: u16,
    /// Console entries.
    pub console: u16,
    /// Network requests.
    pub network: u16,
}

/// Names of the files an attempt left besides its trace.
pub(super) fn left_files(attachments: Vec<AttachmentInput>) -> Vec<String> {
    let files = attachments.into_iter().filter(AttachmentInput::is_left_file);
    files.map(|file| file.name).collect()
}

impl VitalsSummary {
    pub(super) fn from_vitals(web_vitals: &WebVitals) -> Self {
        let narrow = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
        let vitals = web_vitals.vitals.as_ref();
        Self {
            lcp_ms: vitals.and_then(|vitals| vitals.lcp).map(narrow),
            inp_ms: vitals.and_then(|vitals| vitals.inp).map(narrow),
            ttfb_ms: web_vitals.navigation.as_ref().and_then(|navigation| navigation.ttfb).map(narrow),
            cls_thousandths: vitals.and_then(|vitals| vitals.cls).map(|cls| narrow(as_count(cls * 1_000.0))),
        }
    }
}

impl EvidenceCounts {
    /// The line that says how many console entries are missing is not one.
    pub(super) fn from_evidence(evidence: &Evidence, caps: &Caps) -> Self {
        let narrow = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        Self {
            steps: narrow(evidence.steps.len()),
            console: narrow(evidence.console_logs.len().min(caps.console_entries)),
            network: narrow(evidence.network_requests.len()),
        }
    }
}

/// Said outright, else by an annotation `fail`.
pub(super) fn expects_failure(expected: &Scalar<'_>, annotations: &[Annotation]) -> bool {
    match expected.as_text().and_then(test_result) {
        Some(expected) => expected.status == TestStatus::Failed,
        None => annotations.iter().any(|annotation| annotation.kind == "fail"),
    }
}

/// A failure that was expected is a pass, and the other way round.
pub(super) const fn turned_around(status: TestStatus, expects_failure: bool) -> TestStatus {
    match status {
        TestStatus::Failed if expects_failure => TestStatus::Passed,
        TestStatus::Passed if expects_failure => TestStatus::Failed,
        other => other,
    }
}

pub(super) fn history(attempts: Vec<AttemptInput>, expects_failure: bool) -> Vec<AttemptSummary> {
    let summary = |(place, attempt): (usize, AttemptInput)| {
        if is_blank(&attempt.status) {
            return None;
        }
        let status = test_result(&attempt.status).map_or(TestStatus::Failed, |result| result.status);
        let retry = attempt.retry.or_else(|| i64::try_from(place).ok())?;
        Some(AttemptSummary {
            retry: u32::try_from(retry.min(MAX_RETRY)).ok()?,
            status: turned_around(status, expects_failure),
            duration_ms: attempt.duration,
            started_at: attempt.started_at.map(Timestamp),
        })
    };
    attempts.into_iter().take(MAX_HISTORY).enumerate().filter_map(summary).collect()
}

/// Drops blank levels from both parallel lists.
pub(super) fn suites(
    titles: Option<Vec<SuiteTitle>>,
    configs: Option<Vec<SuiteConfig>>,
) -> (Option<Vec<String>>, Vec<SuiteConfig>) {
    let Some(titles) = titles else {
        return (None, Vec::new());
    };
    let has_configs = configs.as_ref().is_some_and(|configs| !configs.is_empty());
    let mut configs = configs.unwrap_or_default().into_iter();
    let mut path = Vec::with_capacity(titles.len().min(MAX_SUITES));
    let mut kept_configs = Vec::new();
    for title in titles {
        let config = configs.next().unwrap_or_default();
        if let Some(title) = title.0
            && path.len() < MAX_SUITES
        {
            path.push(cut(title, MAX_SUITE_CHARS));
            if has_configs {
                kept_configs.push(config.bounded());
            }
        }
    }
    (Some(path), kept_configs)
}
