//! What an execution left behind, whole: its error, attempts and evidence, and
//! how its failure keeps coming.

use callboard_auth::scope::Authorized;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::test_state::RecentOutcome;
use callboard_store::{StoreError, boxed, rollups};

use super::subject::Subject;
use crate::executions::attempt_view;
use crate::shapes::{AttemptView, ClusterBrief};
use crate::{Context, Result, clusters};
use callboard_ingest::{read_session_with_fresh_aggregates, stored_attempts};

/// Newest decided executions that say how a failure keeps coming.
const LOOKED_AT: usize = 20;
/// Failures in a row from which one is taken for lasting.
const LASTING: usize = 3;

/// How the failure of a test keeps coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    /// It comes and goes.
    Intermittent,
    /// It stayed for some executions in a row.
    Persistent,
    /// There is too little to say.
    Unknown,
}

impl Recurrence {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intermittent => "intermittent",
            Self::Persistent => "persistent",
            Self::Unknown => "unknown",
        }
    }

    /// Judges the newest executions of a test in one browser project, oldest
    /// first: a failure that came back after a pass comes and goes, and so does
    /// one that a retry did away with; three in a row last.
    fn from_outcomes(recent: impl Iterator<Item = RecentOutcome>, browser: i64) -> Self {
        let slot = RecentOutcome::slot_of(browser);
        let decided = recent.filter(|recent| recent.browser_slot == slot && !recent.is_mass_failure);
        let outcomes: Vec<Outcome> = decided
            .map(|recent| recent.outcome)
            .filter(|outcome| {
                matches!(outcome, Outcome::Passed | Outcome::Failed | Outcome::TimedOut | Outcome::Flaky)
            })
            .collect();
        let newest = &outcomes[outcomes.len().saturating_sub(LOOKED_AT)..];
        if newest.contains(&Outcome::Flaky) {
            return Self::Intermittent;
        }
        let is_pass = |outcome: &Outcome| *outcome == Outcome::Passed;
        let failing: Vec<usize> = newest
            .chunk_by(|one, other| is_pass(one) == is_pass(other))
            .filter(|stretch| stretch[0] != Outcome::Passed)
            .map(<[Outcome]>::len)
            .collect();
        match failing.as_slice() {
            [] => Self::Unknown,
            [length] if *length >= LASTING => Self::Persistent,
            [_] => Self::Unknown,
            _ => Self::Intermittent,
        }
    }
}

/// What an execution left behind.
#[derive(Debug)]
pub struct FailureRecord {
    /// Status of the execution.
    pub status: TestStatus,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// The whole error of the attempt that is spoken of, without colours.
    pub error: Option<String>,
    /// Attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// Evidence of the attempt that failed, else of the deciding one; empty when
    /// it brought none or it has expired.
    pub evidence: Evidence,
    /// The cluster it counts for.
    pub cluster: Option<ClusterBrief>,
    /// How the failure keeps coming.
    pub recurrence: Recurrence,
    /// Page of the execution.
    pub url: String,
}

/// What an execution left behind: one ranged read of one object.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn failure_record(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<FailureRecord> {
    let subject = Subject::read(ctx, project, id).await?;
    let project = project.get();
    let decision = stored_attempts(&subject.row)?
        .decide()
        .ok_or(StoreError::Damaged("an execution without attempts"))?;
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let cluster = clusters::of_execution(&mut session, project, id, subject.row.cluster).await?;
    let state = rollups::state(&mut session, project, subject.row.lane_id, subject.row.test_case).await?;
    drop(session);
    let recurrence = state.map_or(Recurrence::Unknown, |state| {
        Recurrence::from_outcomes(state.recent(), subject.row.browser_id)
    });
    Ok(FailureRecord {
        status: subject.row.outcome.status(),
        title: subject.case.title.clone(),
        file_path: subject.case.file_path.clone(),
        error: subject.error(),
        attempts: decision.attempts.iter().map(attempt_view).collect(),
        cluster: cluster.map(|cluster| cluster.brief),
        recurrence,
        url: ctx.links.execution(id.get()),
        evidence: subject.evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(outcomes: &str) -> Recurrence {
        let recent = outcomes.chars().map(|char| RecentOutcome {
            outcome: match char {
                'f' => Outcome::Failed,
                'l' => Outcome::Flaky,
                's' => Outcome::Skipped,
                _ => Outcome::Passed,
            },
            is_mass_failure: char == 'm',
            browser_slot: if char == 'o' { 2 } else { 1 },
            duration_ms: None,
            lost_ms: None,
        });
        Recurrence::from_outcomes(recent.collect::<Vec<_>>().into_iter(), 1)
    }

    #[test]
    fn a_failure_comes_and_goes_or_stays() {
        for (outcomes, expected) in [
            ("", Recurrence::Unknown),
            ("pppf", Recurrence::Unknown),
            ("ppff", Recurrence::Unknown),
            ("ppfff", Recurrence::Persistent),
            ("pfsoffm", Recurrence::Persistent),
            ("ppfffpp", Recurrence::Persistent),
            ("pfpf", Recurrence::Intermittent),
            ("fffpf", Recurrence::Intermittent),
            ("pplpp", Recurrence::Intermittent),
        ] {
            assert_eq!(judged(outcomes), expected, "{outcomes}");
        }
    }
}
