//! What is kept although its time is over: what somebody pinned, what others
//! are measured against, and what explains a failure.

use std::collections::BTreeSet;

use callboard_domain::ids::ExecutionId;
use callboard_domain::retention::Policy;
use callboard_store::Session;
use callboard_store::projects::ProjectRow;
use callboard_store::retention::exempt;
use callboard_store::runs::RunRow;

use super::dating::follows;
use crate::Result;

/// Why a run is kept with all that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// Somebody pinned it.
    Pinned,
    /// It is the last green one of a tracked branch.
    LastGreen,
    /// It goes on.
    Open,
}

/// What is kept of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Exempt {
    /// All of it.
    pub(super) whole: Option<Whole>,
    /// Executions in which clusters were first seen.
    pub(super) first_failures: BTreeSet<ExecutionId>,
    /// Executions that are among the newest of an open cluster.
    pub(super) samples: BTreeSet<ExecutionId>,
}

impl Exempt {
    /// What the policy keeps of a run.
    pub(super) async fn load(
        session: &mut Session,
        policy: &Policy,
        project: &ProjectRow,
        run: &RunRow,
    ) -> Result<Self> {
        let whole = whole(session, policy, project, run).await?;
        if whole.is_some() {
            return Ok(Self { whole, ..Self::default() });
        }
        let keep = &policy.keep;
        let first_failures = if keep.first_failure {
            exempt::first_failures(session, run.project, run.id).await?
        } else {
            Vec::new()
        };
        let samples = exempt::samples(session, run.project, run.id, keep.cluster_samples).await?;
        Ok(Self {
            whole: None,
            first_failures: first_failures.into_iter().collect(),
            samples: samples.into_iter().collect(),
        })
    }

    /// Whether what belongs to an execution is kept.
    pub(super) fn holds(&self, execution: ExecutionId) -> bool {
        self.whole.is_some() || self.first_failures.contains(&execution) || self.samples.contains(&execution)
    }

    /// Whether the run has to stay for the sake of any of its executions.
    pub(super) fn holds_run(&self) -> bool {
        self.whole.is_some() || !self.first_failures.is_empty() || !self.samples.is_empty()
    }

    /// The executions that are kept, when the run is not as a whole.
    pub(super) fn executions(&self) -> Vec<i64> {
        self.first_failures.union(&self.samples).map(|id| id.get()).collect()
    }
}

async fn whole(
    session: &mut Session,
    policy: &Policy,
    project: &ProjectRow,
    run: &RunRow,
) -> Result<Option<Whole>> {
    if run.pin.is_some() {
        return Ok(Some(Whole::Pinned));
    }
    if !run.status.is_final() {
        return Ok(Some(Whole::Open));
    }
    let may_be_measured_against = policy.keep.last_green && run.is_green && follows(project, &run.branch);
    if may_be_measured_against && exempt::last_green(session, run.project, run.lane_id).await? == Some(run.id)
    {
        return Ok(Some(Whole::LastGreen));
    }
    Ok(None)
}
