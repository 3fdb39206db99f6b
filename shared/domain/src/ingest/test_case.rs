//! One attempt of one test, normalised: what a client's test-case object
//! becomes before it meets SQL. Texts are within their bounds, except that
//! identity was computed on the full ones.

mod reader;
mod summaries;

use reader::Reader;
use serde::{Deserialize, Serialize};
pub use summaries::{AttemptSummary, EvidenceCounts, VitalsSummary};
pub use summaries::{MAX_SUITE_CHARS, MAX_SUITES};
use summaries::{expects_failure, history, left_files, suites, turned_around};

use super::caps::Caps;
use super::identity::{IdentityHash, identity_hash};
use super::lenient::{Given, as_duration, rounded};
use super::location::Location;
use super::locators::{LocatorSnapshot, bounded_snapshots};
use super::meta::{SuiteConfig, TestMeta, tidy, tidy_tags};
use super::test_case_input::TestCaseInput;
use super::warnings::{Warning, Warnings, quoted};
use crate::evidence::{Annotation, Browser, Evidence, fixed_waits_ms, skip_reason, without_secrets};
use crate::failure::Signature;
use crate::status::TestStatus;
use crate::text::{cut, cut_key, cut_str, truncate_error};
use crate::time::{Timestamp, as_millis};

/// Characters of a title.
pub const MAX_TITLE_CHARS: usize = 2_000;
/// Characters of a file path.
pub const MAX_PATH_CHARS: usize = 1_000;
/// Bytes of a file path: PostgreSQL has no index for texts that are much longer.
pub const MAX_PATH_BYTES: usize = 2_400;
const MAX_RETRY: i64 = 1_000;
const MAX_REPETITION: i64 = 10_000;
const MAX_BROWSER_CHARS: usize = 200;
const MAX_STEP_TITLE_CHARS: usize = 500;
const MAX_REASON_CHARS: usize = 60;
const MAX_SKIP_REASON_CHARS: usize = 500;
const MAX_SUMMARY_CHARS: usize = 300;
/// What two-byte columns of SQL hold.
const MAX_SMALL: i64 = 32_767;
const EXPECTED_TO_FAIL: &str = "Expected to fail, but passed.";

/// One attempt of one test. Its stored form, without evidence, is for results
/// that wait to be worked into their run: what says nothing is left out, as a
/// database keeps it for a client that waits. It is the same for versions that run
/// side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestCaseEntry {
    /// Place in the request's list; files of an upload refer to it.
    pub index: usize,
    /// Names the test case within its project.
    #[serde(with = "hex::serde")]
    pub identity: IdentityHash,
    /// Own title, ≤ 2,000 characters.
    pub title: String,
    /// Normalised path, ≤ 1,000 characters and 2,400 bytes, `unknown` without
    /// a location.
    pub file_path: String,
    /// Titles of the enclosing suites, outermost first; `None` when the client
    /// does not know about suites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite_path: Option<Vec<String>>,
    /// Line of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Result, after expected failures were turned around.
    pub status: TestStatus,
    /// The client itself called the result flaky.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flaky_claimed: bool,
    /// The test failed as it was expected to, and therefore passed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expected_failure: bool,
    /// An annotation marks the test as slow.
    #[serde(default, skip_serializing_if = "is_default")]
    pub marked_slow: bool,
    /// The client's word for the result when it is none of ours, ≤ 60
    /// characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_status: Option<String>,
    /// Milliseconds.
    pub duration_ms: i64,
    /// Milliseconds, 0 without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// Complete error with colour codes, for fingerprint and cluster sample
    /// (cut at the sample's cap). Evidence holds its own, shorter copy. None
    /// for an expected failure, whose error is evidence only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the error says of its cause; None when nothing failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Signature>>,
    /// First line of the error, plain, ≤ 300 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<String>,
    /// Index of this attempt, 0 for the first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: u32,
    /// Which repetition of `--repeat-each`, when the client said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_each_index: Option<u32>,
    /// The attempts up to this one as the client remembers them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub history: Vec<AttemptSummary>,
    /// Worker process, −1 when it never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_index: Option<i32>,
    /// Slot among the parallel workers, −1 when it never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_index: Option<i32>,
    /// Shard, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard_index: Option<u32>,
    /// Start of the attempt.
    #[serde(default, with = "as_millis", skip_serializing_if = "is_default")]
    pub started_at: Option<Timestamp>,
    /// Browser project, empty without one, ≤ 200 characters.
    pub browser_project: String,
    /// Browser, ≤ 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_name: Option<String>,
    /// Tags without `@`, ≤ 20.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tags: Vec<String>,
    /// Owner, feature, priority, link.
    #[serde(default, skip_serializing_if = "is_default")]
    pub meta: TestMeta,
    /// How each suite of `suite_path` runs; empty when not sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suite_config: Vec<SuiteConfig>,
    /// Why the test did not run, ≤ 60 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_not_run_reason: Option<String>,
    /// Why its author skipped the test, ≤ 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// Normalised location of the failing test that blocked this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Title of the longest step, ≤ 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_step: Option<String>,
    /// Its duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_step_ms: Option<i64>,
    /// Sum of fixed waits in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasted_ms: Option<i64>,
    /// Web vitals for the execution row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub vitals: VitalsSummary,
    /// Sizes of the evidence for the execution row.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counts: EvidenceCounts,
    /// Locators used; `None` when the client does not capture them, so that
    /// known ones are not taken for gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locator_snapshots: Option<Vec<LocatorSnapshot>>,
    /// Everything else; `None` for a lean entry.
    #[serde(skip)]
    pub evidence: Option<Box<Evidence>>,
    /// Path and title in full where the stored ones were cut.
    #[serde(skip)]
    full_names: Option<Box<(String, String)>>,
}

/// Whether a field says no more than if it were left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TestCaseEntry {
    /// Makes an entry of what a client sent as number `index` of its list.
    /// Fields of a wrong type are left out and noted in `warnings`.
    ///
    /// # Errors
    /// A warning that says why the entry has to be skipped: it has no title,
    /// or neither a status nor an error.
    pub fn parse(
        input: TestCaseInput<'_>,
        index: usize,
        caps: &Caps,
        warnings: &mut Warnings,
    ) -> Result<Self, Warning> {
        let skipped = |code, message: &str| Warning { code, message: message.to_owned(), index: Some(index) };
        let mut read = Reader { index, warnings };
        let title = read
            .text("title", input.title)
            .or_else(|| read.text("name", input.name))
            .filter(|title| !title.trim().is_empty())
            .ok_or_else(|| {
                skipped("missing_title", "A test case without a title was skipped; send title as text.")
            })?;
        if input.is_cut {
            let title = quoted(&title);
            read.warnings.add("entry_cut", Some(index), || {
                format!(
                    "testCases[{index}] ({title}) has more steps, requests, log entries or other list elements than \
                     are read of one test case; the rest of them was left out."
                )
            });
        }

        let error = match input.error {
            Given::Value(error) => Some(error.into_text()),
            given => read.text_of("error", given),
        }
        .filter(|error| !error.trim().is_empty());
        let annotations = read.value("testAnnotations", input.test_annotations).unwrap_or_default();
        let claim = read.claim(&input.status, error.is_some()).ok_or_else(|| {
            skipped("missing_status", "A test case without status and without error was skipped.")
        })?;
        let expects_failure = expects_failure(&input.expected_status, &annotations);
        let status = turned_around(claim.status, expects_failure);
        let expected_failure = expects_failure && claim.status == TestStatus::Failed;
        let error = if expects_failure && claim.status == TestStatus::Passed {
            Some(EXPECTED_TO_FAIL.to_owned())
        } else {
            error
        };

        let Location { path, line, column } = read.location(
            [("location", input.location), ("file", input.file), ("filePath", input.file_path)],
            &input.line,
            &input.column,
        );
        let suite_titles = read.value("suitePath", input.suite_path);
        let suite_config = read.value("suiteConfig", input.suite_config);
        let (suite_path, suite_config) = suites(suite_titles, suite_config);
        let browser = match input.browser {
            Given::Value(browser) => Some(browser),
            given => read.text_of("browser", given).filter(|name| !name.is_empty()).map(Browser::named),
        };
        let browser_project = browser
            .as_ref()
            .and_then(|browser| browser.project_name.clone())
            .or_else(|| read.text("browserProject", input.browser_project))
            .map_or_else(String::new, |name| cut(name, MAX_BROWSER_CHARS));
        let browser_name =
            browser.as_ref().and_then(|browser| tidy(browser.browser_name.clone()?, MAX_BROWSER_CHARS));
        let web_vitals = read.value("webVitals", input.web_vitals);
        let vitals = web_vitals.as_ref().map(VitalsSummary::from_vitals).unwrap_or_default();
        let meta = TestMeta::new(read.value("testMeta", input.test_meta).unwrap_or_default(), &annotations);
        let marked_slow =
            annotations.iter().any(|annotation| annotation.kind.trim().eq_ignore_ascii_case("slow"));
        let said_error = error.clone().filter(|_| !expected_failure);
        // What failed is read from the evidence's copy where more is kept of that.
        let longer = said_error
            .as_ref()
            .filter(|_| caps.error_chars > caps.sample_error_chars)
            .map(|error| truncate_error(error.clone(), caps.error_chars));

        let evidence = Evidence {
            error,
            steps: read.value("steps", input.steps).unwrap_or_default(),
            step_events: read.value("stepEvents", input.step_events).unwrap_or_default(),
            network_requests: read.value("networkRequests", input.network_requests).unwrap_or_default(),
            web_vitals,
            page_state: read.value("pageState", input.page_state),
            console_logs: read.value("consoleLogs", input.console_logs).unwrap_or_default(),
            aria_snapshot: read.text("ariaSnapshot", input.aria_snapshot),
            test_source: read.text("testSource", input.test_source),
            test_source_frames: read.value("testSourceFrames", input.test_source_frames).unwrap_or_default(),
            browser,
            ai_usage: read.value("aiUsage", input.ai_usage),
            stdout: read.text("stdout", input.stdout),
            stderr: read.text("stderr", input.stderr),
            annotations,
            left_files: left_files(read.value("attachments", input.attachments).unwrap_or_default()),
        }
        .bounded(caps);

        let retry =
            match read.number("retries", &input.retries).or_else(|| read.number("retry", &input.retry)) {
                Some(number) => small(number, 0, MAX_RETRY),
                None => 0,
            };
        let mut entry = Self {
            index,
            identity: IdentityHash::default(),
            title,
            file_path: path,
            suite_path,
            line,
            column,
            status,
            flaky_claimed: claim.flaky,
            expected_failure,
            marked_slow,
            raw_status: claim.raw,
            duration_ms: read.number("duration", &input.duration).map_or(0, as_duration),
            timeout_ms: read.number("timeout", &input.timeout).map(as_duration),
            error_summary: said_error
                .as_deref()
                .map(|error| evidence.error_line(error, MAX_SUMMARY_CHARS))
                .filter(|summary| !summary.is_empty()),
            error: said_error.map(|error| truncate_error(error, caps.sample_error_chars)),
            retry,
            repeat_each_index: read
                .number("repeatEachIndex", &input.repeat_each_index)
                .map(|number| small(number, 0, MAX_REPETITION)),
            history: history(read.value("attempts", input.attempts).unwrap_or_default(), expects_failure),
            worker_index: read.worker("workerIndex", &input.worker_index),
            parallel_index: read.worker("parallelIndex", &input.parallel_index),
            shard_index: read
                .number("shardIndex", &input.shard_index)
                .filter(|number| *number >= 1.0)
                .map(|number| small(number, 1, MAX_SMALL)),
            started_at: read.moment("startedAt", &input.started_at),
            browser_project,
            browser_name,
            tags: tidy_tags(read.value("tags", input.tags).unwrap_or_default()),
            meta,
            suite_config,
            did_not_run_reason: read
                .text("didNotRunReason", input.did_not_run_reason)
                .and_then(|reason| tidy(reason, MAX_REASON_CHARS)),
            skip_reason: read
                .text("skipReason", input.skip_reason)
                .or_else(|| skip_reason(&evidence.annotations).map(str::to_owned))
                .filter(|_| status == TestStatus::Skipped)
                .and_then(|reason| tidy(reason, MAX_SKIP_REASON_CHARS)),
            blocked_by: read
                .text("blockedBy", input.blocked_by)
                .filter(|location| !location.trim().is_empty())
                .map(|location| cut(Location::parse(&location).to_string(), MAX_PATH_CHARS)),
            slowest_step: read
                .text("slowestStep", input.slowest_step)
                .and_then(|step| tidy(without_secrets(step), MAX_STEP_TITLE_CHARS)),
            slowest_step_ms: read
                .number("slowestStepDuration", &input.slowest_step_duration)
                .map(as_duration),
            // Not every client adds its waits up.
            wasted_ms: read
                .number("wastedTimeMs", &input.wasted_time_ms)
                .map(as_duration)
                .or_else(|| fixed_waits_ms(&evidence.steps)),
            vitals,
            counts: EvidenceCounts::from_evidence(&evidence, caps),
            locator_snapshots: read.value("locatorSnapshots", input.locator_snapshots).map(bounded_snapshots),
            evidence: (!evidence.is_empty()).then(|| Box::new(evidence)),
            failure: None,
            full_names: None,
        };
        entry.read_failure(longer.as_deref());
        entry.bound_names();
        entry.set_identity();
        Ok(entry)
    }

    /// Reads what failed. The error of a test that passed in the end is what
    /// made it flaky, when the client knows only the result. `longer` is the
    /// error where more of it is kept than of a cluster's sample.
    fn read_failure(&mut self, longer: Option<&str>) {
        let can_have_failed =
            matches!(self.status, TestStatus::Failed | TestStatus::TimedOut | TestStatus::Passed);
        let Some(error) = longer.or(self.error.as_deref()).filter(|_| can_have_failed) else { return };
        let failure = match &self.evidence {
            Some(evidence) => evidence.failure_of(error),
            None => Evidence::default().failure_of(error),
        };
        self.failure = failure.map(Box::new);
    }

    /// Annotations of this attempt, suggestions for locators included.
    #[must_use]
    pub fn annotations(&self) -> &[Annotation] {
        self.evidence.as_ref().map_or(&[], |evidence| &evidence.annotations)
    }

    /// Moves the test to another describe path; its identity follows.
    pub fn set_suite_path(&mut self, suite_path: Vec<String>) {
        self.suite_path = Some(suite_path);
        self.set_identity();
    }

    fn bound_names(&mut self) {
        let path = cut_key(&self.file_path, MAX_PATH_CHARS, MAX_PATH_BYTES);
        let title = cut_str(&self.title, MAX_TITLE_CHARS);
        if path.len() < self.file_path.len() || title.len() < self.title.len() {
            let (path, title) = (path.to_owned(), title.to_owned());
            let full_path = std::mem::replace(&mut self.file_path, path);
            let full_title = std::mem::replace(&mut self.title, title);
            self.full_names = Some(Box::new((full_path, full_title)));
        }
    }

    fn set_identity(&mut self) {
        let (path, title) = match self.full_names.as_deref() {
            Some((path, title)) => (path, title),
            None => (&self.file_path, &self.title),
        };
        self.identity = identity_hash(path, self.suite_path.as_deref().unwrap_or_default(), title);
    }
}

/// A number within bounds that fit the type.
fn small(number: f64, min: i64, max: i64) -> u32 {
    u32::try_from(rounded(number, 0.0, 1e12).clamp(min, max)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
