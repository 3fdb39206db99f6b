//! The jobs that follow a change of a run. The transaction of the change queues
//! them; what they do is in `complete`.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_store::jobs::Payload;
use serde::{Deserialize, Serialize};

/// The work after the end of a run; once per run, whichever way it ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Completion {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
}

impl Payload for Completion {
    const KIND: &'static str = "completion";
}

impl Completion {
    pub(crate) fn key(&self) -> String {
        format!("run:{}:completion", self.run)
    }
}

/// The numbers of a run that changed after its end, or was cancelled.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Recompute {
    /// Project.
    pub project: ProjectId,
    /// Run.
    pub run: RunId,
}

impl Payload for Recompute {
    const KIND: &'static str = "recompute";
}

impl Recompute {
    /// One per change of the run.
    pub(crate) fn key(&self, version: i64) -> String {
        format!("run:{}:recompute:{version}", self.run)
    }
}
