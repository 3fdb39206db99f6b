//! Branches that stopped being tracked and are still kept as before, until the
//! grace of that change is over.

use callboard_domain::ids::UserId;
use callboard_domain::time::Timestamp;
use callboard_store::projects::ProjectRow;
use serde::{Deserialize, Serialize};

use super::Preview;

/// Branches that are kept like tracked ones until a grace is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBranches {
    /// Patterns of those that were tracked before.
    pub patterns: Vec<String>,
    /// When the grace is over, epoch ms.
    pub effective_at: i64,
    /// When the change was made, epoch ms.
    pub requested_at: i64,
    /// Who made it.
    pub requested_by: Option<i64>,
    /// What has to be deleted then.
    pub preview: Preview,
}

impl HeldBranches {
    /// When the grace is over.
    #[must_use]
    pub const fn effective_at(&self) -> Timestamp {
        Timestamp(self.effective_at)
    }

    /// Lets the grace end at another time.
    pub const fn postpone(&mut self, at: Timestamp) {
        self.effective_at = at.millis();
    }

    /// Who made the change.
    #[must_use]
    pub fn requested_by(&self) -> Option<UserId> {
        self.requested_by.map(UserId)
    }

    /// Counts them among the tracked branches of their project.
    pub fn add_to(&self, project: &mut ProjectRow) {
        project.tracked_branches.extend(self.patterns.iter().cloned());
    }
}
