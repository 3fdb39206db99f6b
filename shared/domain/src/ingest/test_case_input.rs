//! A test-case object as clients write it, every known field under its wire
//! name and whatever its type. [`super::test_case`] makes an entry of it.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::allowance;
use super::lenient::{self, Element, Given, Maybe, Scalar, element_is_object};
use super::locators::LocatorSnapshot;
use super::meta::{MetaInput, SuiteConfig};
use crate::evidence::{
    AiUsage, Annotation, Browser, ConsoleEntry, NetworkRequest, PageState, SourceFrame, Step, StepEvent,
    WebVitals,
};

/// The object before it is judged, and any other event of a running client.
/// Borrows text from the body it was read of.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TestCaseInput<'a> {
    /// What happened, where it is an event.
    #[serde(borrow, rename = "type")]
    pub(super) kind: Scalar<'a>,
    /// The test of a step that began or ended.
    #[serde(borrow)]
    pub(super) parent_title: Scalar<'a>,
    /// The kind of that step.
    #[serde(borrow)]
    pub(super) step_category: Scalar<'a>,
    #[serde(borrow)]
    pub(super) title: Scalar<'a>,
    #[serde(borrow)]
    pub(super) name: Scalar<'a>,
    #[serde(borrow)]
    pub(super) location: Scalar<'a>,
    #[serde(borrow)]
    pub(super) file: Scalar<'a>,
    #[serde(borrow)]
    pub(super) file_path: Scalar<'a>,
    #[serde(borrow)]
    pub(super) line: Scalar<'a>,
    #[serde(borrow)]
    pub(super) column: Scalar<'a>,
    #[serde(borrow)]
    pub(super) status: Scalar<'a>,
    #[serde(borrow)]
    pub(super) expected_status: Scalar<'a>,
    #[serde(borrow)]
    pub(super) duration: Scalar<'a>,
    #[serde(borrow)]
    pub(super) timeout: Scalar<'a>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) error: Given<ErrorInput>,
    #[serde(borrow)]
    pub(super) retries: Scalar<'a>,
    #[serde(borrow)]
    pub(super) retry: Scalar<'a>,
    #[serde(borrow)]
    pub(super) repeat_each_index: Scalar<'a>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) attempts: Given<Vec<AttemptInput>>,
    #[serde(borrow)]
    pub(super) worker_index: Scalar<'a>,
    #[serde(borrow)]
    pub(super) parallel_index: Scalar<'a>,
    #[serde(borrow)]
    pub(super) shard_index: Scalar<'a>,
    #[serde(borrow)]
    pub(super) started_at: Scalar<'a>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) browser: Given<Browser>,
    #[serde(borrow)]
    pub(super) browser_project: Scalar<'a>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) suite_path: Given<Vec<SuiteTitle>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) suite_config: Given<Vec<SuiteConfig>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) test_annotations: Given<Vec<Annotation>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) tags: Given<Vec<String>>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) test_meta: Given<MetaInput>,
    #[serde(borrow)]
    pub(super) did_not_run_reason: Scalar<'a>,
    #[serde(borrow)]
    pub(super) skip_reason: Scalar<'a>,
    #[serde(borrow)]
    pub(super) blocked_by: Scalar<'a>,
    #[serde(borrow)]
    pub(super) slowest_step: Scalar<'a>,
    #[serde(borrow)]
    pub(super) slowest_step_duration: Scalar<'a>,
    #[serde(borrow)]
    pub(super) wasted_time_ms: Scalar<'a>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) steps: Given<Vec<Step>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) step_events: Given<Vec<StepEvent>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) network_requests: Given<Vec<NetworkRequest>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) console_logs: Given<Vec<ConsoleEntry>>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) web_vitals: Given<WebVitals>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) page_state: Given<PageState>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) locator_snapshots: Given<Vec<LocatorSnapshot>>,
    #[serde(deserialize_with = "lenient::object")]
    pub(super) ai_usage: Given<AiUsage>,
    #[serde(borrow)]
    pub(super) aria_snapshot: Scalar<'a>,
    #[serde(borrow)]
    pub(super) test_source: Scalar<'a>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) test_source_frames: Given<Vec<SourceFrame>>,
    #[serde(deserialize_with = "lenient::list")]
    pub(super) attachments: Given<Vec<AttachmentInput>>,
    #[serde(borrow)]
    pub(super) stdout: Scalar<'a>,
    #[serde(borrow)]
    pub(super) stderr: Scalar<'a>,
    /// Whether elements of its lists were left out, because there were too many.
    #[serde(skip)]
    pub(super) is_cut: bool,
}

/// A test case or another event as it was sent, as far as memory allows; nothing
/// where it is no object.
pub(super) struct Sent<'a>(pub(super) Option<TestCaseInput<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Sent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (read, is_cut) = allowance::within(|| Maybe::<TestCaseInput<'a>>::deserialize(deserializer));
        let input = read?.0;
        Ok(Self(input.map(|input| TestCaseInput { is_cut, ..input })))
    }
}

/// An error sent as an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorInput {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) message: String,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) stack: String,
}

impl ErrorInput {
    /// The stack when it repeats the message, else both.
    pub(super) fn into_text(self) -> String {
        if self.stack.contains(&self.message) {
            self.stack
        } else if self.stack.is_empty() {
            self.message
        } else {
            format!("{}\n{}", self.message, self.stack)
        }
    }
}

/// One earlier attempt.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AttemptInput {
    #[serde(deserialize_with = "lenient::optional_count")]
    pub(super) retry: Option<i64>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) status: String,
    #[serde(deserialize_with = "lenient::duration")]
    pub(super) duration: i64,
    #[serde(deserialize_with = "lenient::optional_moment")]
    pub(super) started_at: Option<i64>,
}

/// A file or text that an attempt attached. Files come with calls of their own.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AttachmentInput {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) name: String,
    /// Where it lies on the client's machine; text lies nowhere.
    #[serde(deserialize_with = "lenient::text")]
    pub(super) path: String,
}

impl AttachmentInput {
    pub(super) fn is_left_file(&self) -> bool {
        !self.path.is_empty() && !self.name.is_empty() && self.name != "trace"
    }
}

element_is_object!(AttemptInput, AttachmentInput);

/// One level of the describe path; keeps its place when it is no text, so
/// that the configuration of suites stays parallel.
#[derive(Debug)]
pub(super) struct SuiteTitle(pub(super) Option<String>);

impl<'de> Element<'de> for SuiteTitle {
    type Read = Scalar<'de>;
    fn accept(read: Scalar<'de>) -> Option<Self> {
        Some(Self(read.into_text().filter(|title| !title.trim().is_empty())))
    }
}

impl<'de> Element<'de> for SuiteConfig {
    type Read = Maybe<Self>;
    fn accept(read: Maybe<Self>) -> Option<Self> {
        Some(read.0.unwrap_or_default())
    }
}

impl TestCaseInput<'static> {
    /// Reads a value that is in memory already, as importers have it.
    /// `None` when it is no object.
    #[must_use]
    pub fn from_value(value: Value) -> Option<Self> {
        Sent::deserialize(value).ok().and_then(|sent| sent.0)
    }
}
