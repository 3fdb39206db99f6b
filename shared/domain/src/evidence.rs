//! Evidence: what explains an attempt beyond its row. Everything here is
//! within the caps and free of query values, storage values and cookie
//! values; an attempt that brought nothing has no evidence at all.
//!
//! The shapes are written to packs as JSON with the names of the reading
//! interface and read back from there; missing parts are left out.

mod browser;
mod network;
mod page;
mod server;
mod steps;
pub mod url_text;

use serde::{Deserialize, Serialize};

pub use browser::{Browser, Geolocation, Viewport};
pub use network::{NetworkRequest, ResourceType};
pub use page::{
    ConsoleEntry, Cookie, CoreVitals, NavigationTiming, PageState, PaintTiming, StorageItem, WebVitals,
};
pub use server::{ServerLog, ServerSpan};
pub use steps::{Step, StepCategory, StepError, StepEvent, StepEventStatus, bounded_step_events};
pub(crate) use steps::{fixed_waits_ms, without_secrets};

use crate::failure::{ErrorText, QuotedSource, Signature, SourceText, error_line, signature};
use crate::ingest::lenient::{self, element_is_object};
use crate::ingest::{Caps, MAX_ATTACHMENTS};
use crate::text::{cut, truncate_error, truncate_text};
use steps::cut_in_place;

const MAX_FRAME_PATH_CHARS: usize = 500;
const MAX_AI_ENTRIES: usize = 500;
const MAX_AI_ENTRY_CHARS: usize = 400;
const MAX_AI_INTENTS: usize = 100;
const MAX_AI_TEMPLATE_CHARS: usize = 300;
const MAX_ANNOTATIONS: usize = 50;
const MAX_ANNOTATION_TYPE_CHARS: usize = 200;
const MAX_ANNOTATION_CHARS: usize = 2_000;
const MAX_FILE_NAME_CHARS: usize = 500;
/// Standard output and error hold this many console entries' worth of text.
const OUTPUT_ENTRIES: usize = 10;

/// The evidence of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// Complete error text with its colour codes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Steps, depth first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Events of the timeline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub step_events: Vec<StepEvent>,
    /// Failing and slow requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_requests: Vec<NetworkRequest>,
    /// Web vitals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_vitals: Option<WebVitals>,
    /// Address, storage keys, cookie names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_state: Option<PageState>,
    /// Console entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub console_logs: Vec<ConsoleEntry>,
    /// Accessibility tree at the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aria_snapshot: Option<String>,
    /// Source around the failing line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_source: Option<String>,
    /// Source around the stack frames inside the project, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub test_source_frames: Vec<SourceFrame>,
    /// Browser configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser: Option<Browser>,
    /// Steps written in natural language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_usage: Option<AiUsage>,
    /// Standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Annotations of this attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
    /// Names of the files the attempt left besides its trace, as they were
    /// announced before the files came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_files: Vec<String>,
}

/// Source around one stack frame.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceFrame {
    /// Path with forward slashes.
    #[serde(deserialize_with = "lenient::text")]
    pub file: String,
    /// Line of the frame.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_count")]
    pub line: Option<i64>,
    /// Lines with markers and numbers.
    #[serde(deserialize_with = "lenient::text")]
    pub snippet: String,
}

/// Steps written in natural language and what they were resolved to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AiUsage {
    /// The steps, ≤ 500.
    #[serde(deserialize_with = "lenient::list_or_empty")]
    pub entries: Vec<String>,
    /// Resolved steps, ≤ 100.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient::list_or_empty")]
    pub intents: Vec<AiIntent>,
}

/// One resolved step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AiIntent {
    /// The sentence with its variables as placeholders.
    #[serde(deserialize_with = "lenient::text")]
    pub template: String,
    /// What it was resolved to.
    #[serde(deserialize_with = "lenient::text")]
    pub locator: String,
    /// `locator` or `run`.
    #[serde(deserialize_with = "lenient::text")]
    pub kind: String,
}

/// A note the test carries, such as `issue` or `slow`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotation {
    /// Type, ≤ 200 characters.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: String,
    /// Text, ≤ 2,000 characters.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub description: Option<String>,
}

element_is_object!(SourceFrame, AiIntent, Annotation);

impl Annotation {
    /// Whether it is evidence for locator healing and not a note of the
    /// author's: such annotations are left out of annotation lists.
    #[must_use]
    pub fn is_locator_suggestion(&self) -> bool {
        self.kind.ends_with("-locator-suggestion")
    }
}

/// Why a test was skipped, as its annotations say: the last of several, which
/// is what the test itself said.
#[must_use]
pub fn skip_reason(annotations: &[Annotation]) -> Option<&str> {
    let skips = annotations.iter().filter(|one| matches!(one.kind.trim(), "skip" | "fixme"));
    skips.filter_map(|one| one.description.as_deref()).rfind(|reason| !reason.trim().is_empty())
}

/// Keeps the first 50 annotations that have a type, within their bounds.
#[must_use]
pub fn bounded_annotations(mut annotations: Vec<Annotation>) -> Vec<Annotation> {
    annotations.retain(|annotation| !annotation.kind.trim().is_empty());
    annotations.truncate(MAX_ANNOTATIONS);
    for annotation in &mut annotations {
        cut_in_place(&mut annotation.kind, MAX_ANNOTATION_TYPE_CHARS);
        if let Some(description) = &mut annotation.description {
            cut_in_place(description, MAX_ANNOTATION_CHARS);
        }
    }
    annotations
}

impl AiUsage {
    fn bounded(mut self) -> Option<Self> {
        self.entries.retain(|entry| !entry.is_empty());
        self.entries.truncate(MAX_AI_ENTRIES);
        self.entries.iter_mut().for_each(|entry| cut_in_place(entry, MAX_AI_ENTRY_CHARS));
        self.intents.retain(|intent| matches!(intent.kind.as_str(), "locator" | "run"));
        self.intents.truncate(MAX_AI_INTENTS);
        for intent in &mut self.intents {
            cut_in_place(&mut intent.template, MAX_AI_TEMPLATE_CHARS);
            cut_in_place(&mut intent.locator, MAX_AI_ENTRY_CHARS);
        }
        (!self.entries.is_empty()).then_some(self)
    }
}

impl Evidence {
    /// Brings every part within the caps and removes what must not be stored.
    /// Doing it twice is no harm except for markers of cuts.
    #[must_use]
    pub fn bounded(mut self, caps: &Caps) -> Self {
        let said = |text: &String| !text.is_empty();
        let output_chars = OUTPUT_ENTRIES * caps.console_entry_chars;
        self.error = self.error.filter(said).map(|error| truncate_error(error, caps.error_chars));
        self.steps = steps::bounded_steps(self.steps, caps.steps);
        self.step_events = bounded_step_events(self.step_events, caps.step_events);
        self.network_requests = network::bounded_requests(self.network_requests, caps.network_entries);
        self.web_vitals = self.web_vitals.and_then(WebVitals::bounded);
        self.page_state = self.page_state.and_then(PageState::bounded);
        self.console_logs =
            page::bounded_console(self.console_logs, caps.console_entries, caps.console_entry_chars);
        self.aria_snapshot = self.aria_snapshot.filter(said).map(|text| truncate_text(text, caps.aria_chars));
        self.test_source =
            self.test_source.filter(said).map(|text| truncate_text(text, caps.test_source_chars));
        self.test_source_frames.retain(|frame| !frame.snippet.is_empty());
        self.test_source_frames.truncate(caps.source_frames);
        for frame in &mut self.test_source_frames {
            frame.file = cut(frame.file.replace('\\', "/"), MAX_FRAME_PATH_CHARS);
            frame.snippet = truncate_text(std::mem::take(&mut frame.snippet), caps.source_frame_chars);
        }
        self.browser = self.browser.map(Browser::bounded);
        self.ai_usage = self.ai_usage.and_then(AiUsage::bounded);
        self.stdout = self.stdout.filter(said).map(|text| truncate_text(text, output_chars));
        self.stderr = self.stderr.filter(said).map(|text| truncate_text(text, output_chars));
        self.annotations = bounded_annotations(self.annotations);
        self.left_files.truncate(MAX_ATTACHMENTS);
        self.left_files.iter_mut().for_each(|name| cut_in_place(name, MAX_FILE_NAME_CHARS));
        self
    }

    /// What kind of failure an error is, told from its text and from the source
    /// around it.
    #[must_use]
    pub fn failure_of(&self, error: &str) -> Option<Signature> {
        self.with_source(|source| signature(&ErrorText::split(error), source))
    }

    /// The line that stands for an error in lists, see [`error_line`].
    #[must_use]
    pub fn error_line(&self, error: &str, max_chars: usize) -> String {
        self.with_source(|source| error_line(error, source, max_chars))
    }

    fn with_source<T>(&self, read: impl FnOnce(&[SourceText<'_>]) -> T) -> T {
        let frames = self.test_source_frames.iter().map(|frame| frame.snippet.as_str());
        let quoted: Vec<QuotedSource> =
            frames.chain(self.test_source.as_deref()).map(QuotedSource::read).collect();
        let source: Vec<_> = quoted.iter().map(QuotedSource::as_source).collect();
        read(&source)
    }

    /// Whether nothing here is worth a place in a pack. The names of browser
    /// and browser project alone are not: the execution row has them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.error.is_none()
            && self.steps.is_empty()
            && self.step_events.is_empty()
            && self.network_requests.is_empty()
            && self.web_vitals.is_none()
            && self.page_state.is_none()
            && self.console_logs.is_empty()
            && self.aria_snapshot.is_none()
            && self.test_source.is_none()
            && self.test_source_frames.is_empty()
            && self.ai_usage.is_none()
            && self.stdout.is_none()
            && self.stderr.is_none()
            && self.annotations.is_empty()
            && self.left_files.is_empty()
            && !self.browser.as_ref().is_some_and(Browser::is_more_than_names)
    }
}

#[cfg(test)]
mod tests;
