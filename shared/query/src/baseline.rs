//! What a run is measured against, as answers show it.

use callboard_domain::time::Timestamp;
pub use callboard_ingest::baseline::Fallback;
pub(crate) use callboard_ingest::baseline::{BaselineRun, default_branch, environments_of, facts, of_run};
use serde::Serialize;
use utoipa::ToSchema;

use crate::shapes::non_empty;

/// The green run another run is measured against.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// The green run.
    #[schema(example = 40)]
    pub run_id: i64,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// Its branch.
    pub branch: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// `same-branch`, or `default-branch` when the run's own branch and
    /// environment have no green run before it.
    pub fallback: Fallback,
}

impl Baseline {
    pub(crate) fn from_run(found: &BaselineRun) -> Self {
        Self {
            run_id: found.row.id.get(),
            start_time: found.row.start_time,
            branch: non_empty(&found.row.branch),
            commit: found.row.commit_sha.clone(),
            fallback: found.fallback,
        }
    }
}
