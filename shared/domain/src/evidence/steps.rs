//! What a test did: its steps and the events of its timeline.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::url_text::redact_queries;
use crate::ingest::lenient::{self, element_is_object};
use crate::text::cut;

pub(super) const MAX_TITLE_CHARS: usize = 500;
const MAX_STEP_ERROR_CHARS: usize = 2_000;
const MAX_SKIP_REASON_CHARS: usize = 500;
const MAX_PARAMS_CHARS: usize = 500;
/// How the error begins by which Playwright ends what a skip ends.
const SKIP_ERROR: &str = "Test is skipped";
const MAX_LOCATION_CHARS: usize = 1_000;
const MAX_CATEGORY_CHARS: usize = 40;

/// One step of the flattened tree, depth first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Step {
    /// What the step did, ≤ 500 characters.
    #[serde(deserialize_with = "lenient::text")]
    pub title: String,
    /// What it did it to, such as a locator, where Playwright says that apart
    /// from the title, ≤ 500 characters.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub subtitle: Option<String>,
    /// Milliseconds.
    #[serde(deserialize_with = "lenient::duration")]
    pub duration: i64,
    /// Kind of step.
    #[serde(deserialize_with = "lenient::word")]
    pub category: StepCategory,
    /// The step's own error.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_object")]
    pub error: Option<StepError>,
    /// Whether the step failed.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "lenient::flag")]
    pub failed: bool,
    /// Whether the step was skipped, or ended by the skip of its test.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "lenient::flag")]
    pub skipped: bool,
    /// Why it was skipped, ≤ 500 characters.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub skip_reason: Option<String>,
    /// Parameters its author gave it, as JSON, ≤ 500 characters.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub params: Option<String>,
    /// Absolute `file:line:column`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub location: Option<String>,
    /// Epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_moment")]
    pub start_time: Option<i64>,
}

impl Step {
    /// Reads the error that only says that the test was skipped as a skip.
    /// Clients that know no skipped steps send it as a failure.
    fn read_skip_error(&mut self) {
        let message = self.error.as_ref().map(|error| error.message.trim_start());
        let Some(rest) = message
            .map(|message| message.strip_prefix("Error: ").unwrap_or(message))
            .and_then(|message| message.strip_prefix(SKIP_ERROR))
        else {
            return;
        };
        let reason = rest.lines().next().unwrap_or_default().trim_start_matches(':').trim();
        if self.skip_reason.is_none() && !reason.is_empty() {
            self.skip_reason = Some(reason.to_owned());
        }
        self.error = None;
        self.failed = false;
        self.skipped = true;
    }

    /// Title and subtitle as one text.
    #[must_use]
    pub fn full_title(&self) -> Cow<'_, str> {
        match &self.subtitle {
            Some(subtitle) if !self.title.contains(subtitle.as_str()) => {
                Cow::Owned(format!("{} {subtitle}", self.title))
            }
            _ => Cow::Borrowed(&self.title),
        }
    }

    /// Whether it waited for a fixed time, whatever the page did: that is how the
    /// call is titled by older and by newer runners.
    fn is_fixed_wait(&self) -> bool {
        let title = self.title.to_ascii_lowercase();
        let is_titled_so = title.starts_with("wait for timeout") || title.contains("waitfortimeout");
        is_titled_so && !matches!(self.category, StepCategory::Hook | StepCategory::Fixture)
    }
}

/// Time that steps waited for a fixed time, ms; `None` when none of them did.
pub(crate) fn fixed_waits_ms(steps: &[Step]) -> Option<i64> {
    let waits = steps.iter().filter(|step| step.is_fixed_wait());
    waits.map(|step| step.duration).reduce(i64::saturating_add)
}

/// Why a step failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepError {
    /// Message, ≤ 2,000 characters.
    #[serde(deserialize_with = "lenient::text")]
    pub message: String,
}

/// Kind of a step; unknown words are [`StepCategory::Other`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants are the words of the wire format")]
pub enum StepCategory {
    Hook,
    Fixture,
    Assertion,
    Wait,
    Navigation,
    Action,
    Input,
    Api,
    #[default]
    Other,
}

impl TryFrom<&str> for StepCategory {
    type Error = ();

    fn try_from(word: &str) -> Result<Self, ()> {
        Ok(match word {
            "hook" => Self::Hook,
            "fixture" => Self::Fixture,
            "assertion" => Self::Assertion,
            "wait" => Self::Wait,
            "navigation" => Self::Navigation,
            "action" => Self::Action,
            "input" => Self::Input,
            "api" => Self::Api,
            _ => return Err(()),
        })
    }
}

/// One event of the timeline: hooks, fixtures, waits and test steps, in newer
/// clients also actions and expectations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepEvent {
    /// What happened, ≤ 500 characters.
    #[serde(deserialize_with = "lenient::text")]
    pub title: String,
    /// `hook`, `fixture`, `wait`, `test.step`, `expect` or a newer word.
    #[serde(deserialize_with = "lenient::text")]
    pub category: String,
    /// Epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_moment")]
    pub started_at: Option<i64>,
    /// Milliseconds.
    #[serde(deserialize_with = "lenient::duration")]
    pub duration: i64,
    /// How it ended.
    #[serde(deserialize_with = "lenient::word")]
    pub status: StepEventStatus,
    /// `file:line:column`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub location: Option<String>,
    /// The worker it happened in; only sent for steps of the global set-up.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_count")]
    pub worker_index: Option<i64>,
}

/// How a timeline event ended; a fixed wait is `wasted`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants are the words of the wire format")]
pub enum StepEventStatus {
    #[default]
    Passed,
    Failed,
    Skipped,
    Wasted,
}

impl TryFrom<&str> for StepEventStatus {
    type Error = ();

    fn try_from(word: &str) -> Result<Self, ()> {
        Ok(match word {
            "passed" => Self::Passed,
            "failed" => Self::Failed,
            "skipped" => Self::Skipped,
            "wasted" => Self::Wasted,
            _ => return Err(()),
        })
    }
}

element_is_object!(Step, StepEvent);

/// Keeps the first `max` steps that say what they are.
pub(super) fn bounded_steps(mut steps: Vec<Step>, max: usize) -> Vec<Step> {
    steps.retain(|step| !step.title.is_empty());
    steps.truncate(max);
    for step in &mut steps {
        bound_title(&mut step.title);
        step.subtitle.take_if(|subtitle| subtitle.trim().is_empty());
        step.subtitle.iter_mut().for_each(bound_title);
        step.location.iter_mut().for_each(tidy_location);
        step.error.take_if(|error| error.message.is_empty());
        if let Some(error) = &mut step.error {
            cut_in_place(&mut error.message, MAX_STEP_ERROR_CHARS);
        }
        step.read_skip_error();
        step.skip_reason.iter_mut().for_each(|reason| cut_in_place(reason, MAX_SKIP_REASON_CHARS));
        step.params.iter_mut().for_each(|params| cut_in_place(params, MAX_PARAMS_CHARS));
    }
    steps
}

/// Keeps the first `max` events that say what they are.
#[must_use]
pub fn bounded_step_events(mut events: Vec<StepEvent>, max: usize) -> Vec<StepEvent> {
    events.retain(|event| !event.title.is_empty());
    events.truncate(max);
    for event in &mut events {
        bound_title(&mut event.title);
        cut_in_place(&mut event.category, MAX_CATEGORY_CHARS);
        event.location.iter_mut().for_each(tidy_location);
    }
    events
}

/// The title of a step without secrets: runners put the address into it, with
/// all its parameters. Titles are most of what live runs send, so nothing else in
/// them is searched.
pub(crate) fn without_secrets(title: String) -> String {
    redact_queries(title)
}

fn bound_title(title: &mut String) {
    *title = without_secrets(std::mem::take(title));
    cut_in_place(title, MAX_TITLE_CHARS);
}

fn tidy_location(location: &mut String) {
    cut_in_place(location, MAX_LOCATION_CHARS);
    if location.contains('\\') {
        *location = location.replace('\\', "/");
    }
}

pub(super) fn cut_in_place(text: &mut String, max_chars: usize) {
    if text.len() > max_chars {
        *text = cut(std::mem::take(text), max_chars);
    }
}
