//! The errors of a run that belong to no test.
//!
//! Each client has its own; those of clients that decide about the run count,
//! so a shard that is tried again leaves its errors behind.

use callboard_domain::run_errors::{ErrorPhase, RunError};
use callboard_domain::run_life::Slots;
use callboard_domain::run_reason::RunEnd;
use callboard_store::db::Session;
use callboard_store::runs::slots::{self, SlotRow};
use callboard_store::runs::{self, RunRow};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use callboard_ingest::run_errors::of_slots;

use crate::Result;

crate::vocabularies! {
    /// When an error outside of the tests happened.
    pub ErrorPhaseWord => ErrorPhase::ALL.map(ErrorPhase::as_str);
}

/// An error of a run that belongs to no test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunErrorItem {
    /// The error in one line, which says when it happened.
    #[schema(example = "Global set-up failed: db is down")]
    pub headline: String,
    /// What the client reported, at most 4,000 characters.
    pub message: String,
    /// `file:line:column`, where it is known.
    pub location: Option<String>,
    /// When it happened, where it is known.
    #[schema(value_type = Option<ErrorPhaseWord>)]
    pub phase: Option<ErrorPhase>,
    /// The shard that reported it; null in a run without shards.
    pub shard_index: Option<i64>,
}

impl RunErrorItem {
    /// A run without an error of its own that is red for another reason.
    pub(crate) const fn of_reason(reason: String) -> Self {
        Self { headline: reason, message: String::new(), location: None, phase: None, shard_index: None }
    }
}

/// The errors of a run, by shard.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub(crate) async fn of_run(session: &mut Session, run: &RunRow) -> Result<Vec<RunErrorItem>> {
    if run.error_count > 0 {
        let rows = slots::of_run(session, run.project, run.id).await?;
        return Ok(counting(run, &rows));
    }
    if run.is_green || !run.status.is_final() {
        return Ok(Vec::new());
    }
    // Runs that were stored before errors had a column have theirs in the metadata.
    let details = runs::details(session, run.project, run.id).await?;
    Ok(of_metadata(&details.metadata))
}

/// The errors of a run whose slots and metadata are known.
pub(crate) fn known(run: &RunRow, rows: &[SlotRow], metadata: &str) -> Vec<RunErrorItem> {
    if run.error_count > 0 { counting(run, rows) } else { of_metadata(metadata) }
}

/// Why a run with these errors is not green beyond its failed tests.
pub(crate) fn reason(run: &RunRow, errors: &[RunErrorItem]) -> Option<String> {
    let first_error = errors.first().map(|error| error.headline.as_str());
    let errors = i64::try_from(errors.len()).unwrap_or(i64::MAX);
    RunEnd { errors, first_error, ..run.end() }.reason()
}

fn counting(run: &RunRow, rows: &[SlotRow]) -> Vec<RunErrorItem> {
    let all: Vec<_> = rows.iter().map(|row| row.slot.clone()).collect();
    let slots = Slots { all: &all, shard_total: run.shard_total, is_rerun: run.rerun_of.is_some() };
    let mut errors = of_slots(rows, slots.deciding());
    errors.sort_by_key(|error| error.shard_index);
    let is_sharded = run.shard_total.is_some();
    errors.into_iter().map(|found| item(found.error, is_sharded.then_some(found.shard_index))).collect()
}

fn of_metadata(metadata: &str) -> Vec<RunErrorItem> {
    if !metadata.contains("globalErrors") {
        return Vec::new();
    }
    let mut metadata: Map<String, Value> = serde_json::from_str(metadata).unwrap_or_default();
    RunError::take_from(&mut metadata).into_iter().map(|error| item(error, None)).collect()
}

fn item(error: RunError, shard_index: Option<i64>) -> RunErrorItem {
    RunErrorItem {
        headline: error.headline(),
        message: error.message,
        location: error.location,
        phase: error.phase,
        shard_index,
    }
}
