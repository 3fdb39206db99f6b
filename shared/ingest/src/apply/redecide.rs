//! Stored executions judged anew by their attempts: because some attempts
//! belong to another generation than it seemed, or by a newer rule.

use callboard_domain::attempts::AttemptSet;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionRow};

use crate::Result;
use crate::apply::attempt_merge::{decided, stored_attempts};
use crate::apply::clusters::Failures;
use crate::apply::execution_change::ExecutionChange;
use crate::apply::execution_writer::{WriteContext, write};
use crate::transaction::run_lanes::place_of;
use crate::transaction::run_transaction::LockedRun;

/// Judges executions of a locked run anew, and corrects whatever counts those
/// whose outcome is another: totals, rollups, clusters. Answers how many changed.
pub(crate) async fn redecide(
    session: &mut Session,
    locked: &mut LockedRun,
    rows: Vec<ExecutionRow>,
    change: impl Fn(&mut AttemptSet),
    now: Timestamp,
) -> Result<usize> {
    let place = place_of(&locked.run);
    let mut changes = Vec::new();
    for before in rows {
        let mut attempts = stored_attempts(&before)?;
        change(&mut attempts);
        let after = decided(place, before.test_case, before.browser_id, Some(&before), &attempts)?;
        if after != before {
            changes.push(ExecutionChange { before: Some(before), after });
        }
    }
    if changes.is_empty() {
        return Ok(0);
    }
    let cases: Vec<i64> = changes.iter().map(|change| change.after.test_case.get()).collect();
    let failures = Failures::from_groups(&[]);
    failures.begin(session, &locked.run, false).await?;
    let (_, predecessors) = executions::of_batch_with_predecessors(session, place, cases).await?;
    let assigned = changes.iter_mut().map(|change| &mut change.after);
    failures.assign(session, &locked.run, assigned, now).await?;
    let lanes = locked.lanes.clone();
    let mut held = WriteContext { run: &mut locked.run, lanes: &lanes, now };
    let change = write(session, &mut held, &mut changes, &predecessors).await?;
    locked.count_clusters(change.open, change.events);
    Ok(changes.len())
}
