//! The CI job that a client ran in: the same key for all attempts of one job of one
//! build, so that a re-run finds the run that it repeats.

use callboard_domain::ingest::RunFields;
use serde_json::{Map, Value};

use crate::resolve::start_keys::hash;

/// A job of a CI build, and which attempt of it this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CiJob {
    /// Equal for all attempts of the job that run the same configuration.
    pub(crate) key: [u8; 32],
    /// The number of the attempt; later attempts have higher ones. `None` where the CI
    /// system does not count them.
    pub(crate) attempt: Option<i64>,
}

/// What the metadata of a run says about its CI job; `None` outside of CI, and where
/// build and job have no names.
pub(crate) fn from_fields(fields: &RunFields) -> Option<CiJob> {
    let metadata = fields.metadata.as_ref()?;
    let section = |name: &str| metadata.get(name).and_then(Value::as_object);
    let ci = section("ci")?;
    let build = text(ci, "buildId").or_else(|| text(ci, "buildUrl"))?;
    let job = text(ci, "jobName")?;
    let inside = |name: &str, key: &str| section(name).and_then(|section| text(section, key));
    // Jobs of a matrix have one name on some systems: what tells them apart belongs to the key.
    let system = inside("host", "os").unwrap_or_default();
    let key = hash(&[
        "job",
        &text(ci, "provider").unwrap_or_default(),
        &build,
        &job,
        fields.instance_id.as_deref().unwrap_or_default(),
        fields.environment.as_deref().unwrap_or_default(),
        system.split_whitespace().next().unwrap_or_default(),
        &inside("host", "arch").unwrap_or_default(),
        &inside("playwrightConfig", "configFile").unwrap_or_default(),
    ]);
    // Without attempts, the number of the job within its build counts: a retried job gets a new one.
    let number = |key: &str| text(ci, key).and_then(|text| text.parse().ok());
    Some(CiJob { key, attempt: number("runAttempt").or_else(|| number("jobNumber")) })
}

fn text(section: &Map<String, Value>, key: &str) -> Option<String> {
    match section.get(key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
