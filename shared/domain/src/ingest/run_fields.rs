//! The fields of a run, normalised: the same for setup, start, begin, finish,
//! upload and submit. Bounds are applied, wrong types left out with a
//! warning; only what a call cannot do without is an error.

mod reader;

use reader::{Reader, is_missing};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::field_error::FieldError;
use super::lenient::{self, as_duration};
use super::metadata::{Origin, bounded_metadata};
use super::run_parts::{ClaimedTotals, FilterDetails, Shard};
use super::warnings::Warnings;
use crate::evidence::{StepEvent, bounded_step_events};
use crate::run_errors::RunError;
use crate::status::RunStatus;
use crate::time::Timestamp;

const MAX_PROJECT_NAME_CHARS: usize = 255;
const MAX_DESCRIPTION_CHARS: usize = 2_000;
const MAX_ENVIRONMENT_CHARS: usize = 100;
const MAX_LABEL_CHARS: usize = 200;
const MAX_VERSION_CHARS: usize = 50;
const MAX_SETUP_STEPS: usize = 200;
/// How far a client's clock may be ahead without a warning, ms.
const START_AHEAD_MS: i64 = 5 * 60 * 1000;

/// Which call the fields belong to: what it requires of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Registering a run: the project's name.
    Setup,
    /// Opening a streaming run: the project's name.
    Start,
    /// Going from setup to running: nothing.
    Begin,
    /// Finishing: nothing.
    Finish,
    /// A batch as JSON: project's name, status and start.
    Submit,
    /// A batch as form: the project's name is a part of its own, so nothing.
    UploadNewRun,
}

impl Need {
    const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Setup | Self::Start => &["projectName"],
            Self::Submit => &["projectName", "status", "startTime"],
            Self::Begin | Self::Finish | Self::UploadNewRun => &[],
        }
    }
}

/// What a client says about its run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFields {
    /// Project, trimmed, 1 to 255 characters. `None` only where the call does
    /// not require it.
    pub project_name: Option<String>,
    /// Description for a project created by this call.
    pub project_description: Option<String>,
    /// Claimed result; `None` when not sent or unknown. A client that says
    /// only that it is done claims `failed`.
    pub status: Option<RunStatus>,
    /// Client's clock at the start.
    pub start_time: Option<Timestamp>,
    /// Wall clock in milliseconds.
    pub duration_ms: Option<i64>,
    /// Counters as claimed.
    pub claimed_totals: Option<ClaimedTotals>,
    /// Deployment target, ≤ 100 characters.
    pub environment: Option<String>,
    /// Display label, ≤ 200 characters.
    pub label: Option<String>,
    /// Metadata within its bound, without credentials.
    pub metadata: Option<Map<String, Value>>,
    /// Errors that belong to no test, taken out of the metadata.
    pub errors: Vec<RunError>,
    /// Groups the processes of one run.
    pub instance_id: Option<String>,
    /// Version of the test runner.
    pub playwright_version: Option<String>,
    /// Version of the reporter.
    pub reporter_version: Option<String>,
    /// Which shard this is; `None` for an unsharded run.
    pub shard: Option<Shard>,
    /// Whether all tests were meant to run.
    pub is_full_run: bool,
    /// What narrowed a partial run.
    pub filter_details: Option<FilterDetails>,
    /// Steps of the global set-up, ≤ 200.
    pub setup_steps: Vec<StepEvent>,
    /// Files will follow the finish.
    pub has_pending_uploads: bool,
    /// How many tests are planned.
    pub planned_tests: Option<i64>,
    /// Names one reporter process, the strongest key of idempotency.
    pub client_run_id: Option<String>,
    /// The run that it repeats, when its client names it.
    pub rerun_of: Option<i64>,
    /// Branch, commit, author, change request, build.
    pub origin: Origin,
}

impl RunFields {
    /// Takes the fields out of `body` and normalises them. Keys it does not
    /// know stay behind.
    ///
    /// # Errors
    /// [`FieldError`] for missing required fields (all of them together), an
    /// impossible start time, project name or shard.
    pub fn parse(body: &mut Map<String, Value>, need: Need) -> Result<(Self, Warnings), FieldError> {
        let missing: Vec<&'static str> =
            need.required().iter().copied().filter(|field| is_missing(body.get(*field))).collect();
        if !missing.is_empty() {
            return Err(FieldError::Missing { fields: missing });
        }
        let mut warnings = Warnings::default();
        let mut read = Reader { body, warnings: &mut warnings };
        let requires = |field| need.required().contains(&field);
        let project_name = read.project_name(requires("projectName"))?;
        let says_nothing =
            !matches!(read.body.get("status"), Some(Value::String(word)) if !word.trim().is_empty());
        let status = match read.status(requires("status"))? {
            None if need == Need::Finish && says_nothing => Some(RunStatus::Failed),
            told => told,
        };
        let start_time = read.start_time()?;
        let shard = read.shard()?;
        let mut metadata = read.object("metadata");
        let errors = metadata.as_mut().map(RunError::take_from).unwrap_or_default();
        let metadata = metadata.map(bounded_metadata);
        let origin = Origin::resolve(read.body, metadata.as_ref().unwrap_or(&Map::new()));
        let claimed_totals = read.claimed_totals();
        let planned_tests = read.count("plannedTests").or_else(|| match need {
            Need::Start | Need::Begin => claimed_totals.and_then(|totals| totals.total_tests),
            _ => None,
        });
        let fields = Self {
            project_name,
            project_description: read.text("projectDescription", MAX_DESCRIPTION_CHARS),
            status,
            start_time,
            duration_ms: read.number("duration").map(as_duration),
            claimed_totals,
            environment: read.text("environment", MAX_ENVIRONMENT_CHARS),
            label: read.text("label", MAX_LABEL_CHARS),
            metadata,
            errors,
            instance_id: read.key("instanceId", 1..=64, |byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
            }),
            playwright_version: read.text("playwrightVersion", MAX_VERSION_CHARS),
            reporter_version: read.text("reporterVersion", MAX_VERSION_CHARS),
            shard,
            is_full_run: read.flag("isFullRun").unwrap_or(true),
            filter_details: read
                .shape::<FilterDetails>("filterDetails", "an object", Value::is_object)
                .and_then(FilterDetails::bounded),
            setup_steps: read
                .shape::<SetupSteps>("setupSteps", "a list", Value::is_array)
                .map(|steps| bounded_step_events(steps.0, MAX_SETUP_STEPS))
                .unwrap_or_default(),
            has_pending_uploads: read.flag("hasPendingUploads").unwrap_or(false),
            planned_tests,
            client_run_id: read
                .key("clientRunId", 8..=64, |byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            rerun_of: read.id("rerunOf"),
            origin,
        };
        Ok((fields, warnings))
    }
}

impl RunFields {
    /// Warns of a start that lies ahead of the clock of the service: lists sort such a run
    /// by when it arrived.
    pub fn warn_of_start_ahead(&self, now: Timestamp, warnings: &mut Warnings) {
        let ahead_ms = self.start_time.map_or(0, |start| start.millis() - now.millis());
        if ahead_ms > START_AHEAD_MS {
            warnings.add("start_in_future", None, || {
                format!(
                    "startTime is {} min ahead of the clock of the service; check the clock of the client.",
                    ahead_ms / 60_000
                )
            });
        }
    }
}

/// Normalises the name of a project, also where it is a form field.
///
/// # Errors
/// `missing_field` when there is none, `invalid_project_name` when it is
/// longer than 255 characters or has control characters. U+FFFD counts as
/// one: it stands for what was no character to begin with.
pub fn project_name(name: &str) -> Result<String, FieldError> {
    let trimmed = name.trim();
    if trimmed.is_empty() {
        return Err(FieldError::Missing { fields: vec!["projectName"] });
    }
    let is_possible = trimmed.chars().take(MAX_PROJECT_NAME_CHARS + 1).count() <= MAX_PROJECT_NAME_CHARS
        && !trimmed.chars().any(|character| character.is_control() || character == '\u{fffd}');
    if is_possible { Ok(trimmed.to_owned()) } else { Err(FieldError::project_name(trimmed)) }
}

#[derive(Deserialize)]
struct SetupSteps(#[serde(deserialize_with = "lenient::list_or_empty")] Vec<StepEvent>);

#[cfg(test)]
mod tests;
