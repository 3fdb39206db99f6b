//! What a policy deletes, as a count.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is kept although its time is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Exemptions {
    /// Runs that somebody pinned.
    pub pinned: i64,
    /// Runs that are the last green ones of a tracked branch.
    pub last_green: i64,
    /// Executions in which clusters were first seen.
    pub first_failure: i64,
    /// Executions that are among the newest of an open cluster.
    pub cluster_sample: i64,
}

/// What a policy deletes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Preview {
    /// Runs.
    pub runs: i64,
    /// Their executions.
    pub executions: i64,
    /// Files, of those runs and of others.
    pub files: i64,
    /// Executions that lose their evidence.
    pub evidence_slices: i64,
    /// Bytes of all of it; content that several runs share counts in each.
    pub bytes: i64,
    /// What is kept although its time is over.
    pub exempt: Exemptions,
    /// Whether there was no time to count everything: it is at least so much.
    pub partial: bool,
}
