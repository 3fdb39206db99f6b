//! Whether each branch and environment is red: how its newest decided full run
//! ended. Stored, so that a change of it is noticed exactly once, whatever
//! order runs end in.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;

use crate::db::{Session, args, statements};
use crate::runs::RunRow;
use crate::{Result, StoreError};

statements! {
    /// The two newest full runs of a branch and environment whose tests decided them. ix: test_runs_full_of_branch
    NEWEST_DECIDED = "SELECT id, status FROM test_runs WHERE project_id = $1 AND branch = $2 AND environment = $3 AND is_full = 1 \
        AND status IN ('passed', 'failed', 'timedout') AND is_dirty = 0 ORDER BY order_at DESC, id DESC LIMIT 2";
    /// The first state of a branch.
    INSERT = "INSERT INTO branch_states (project_id, lane_id, is_red, run_id, changed_at) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (project_id, lane_id) DO NOTHING";
    /// Another state than the stored one. PK
    CHANGE = "UPDATE branch_states SET is_red = $3, run_id = $4, changed_at = $5 WHERE project_id = $1 AND lane_id = $2 AND is_red <> $3";
}

/// A change of a branch's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchChange {
    /// Whether it is red now.
    pub is_red: bool,
    /// Its newest decided full run.
    pub run: RunId,
}

/// Brings the state of the branch and environment of a run up to date. Returns
/// what changed. A branch without a stored state is compared with the run
/// before its newest one.
///
/// # Errors
/// [`StoreError`].
pub async fn update(session: &mut Session, run: &RunRow, now: Timestamp) -> Result<Option<BranchChange>> {
    let (project, lane): (ProjectId, i64) = (run.project, run.lane_id);
    let rows = session.all(&NEWEST_DECIDED, args![project, &run.branch, &run.environment]).await?;
    let mut newest = Vec::with_capacity(2);
    for row in &rows {
        let mut r = row.reader();
        let id = RunId(r.int()?);
        let status = RunStatus::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown run status"))?;
        newest.push(BranchChange { is_red: status != RunStatus::Passed, run: id });
    }
    let Some(&now_is) = newest.first() else { return Ok(None) };
    let args = args![project, lane, now_is.is_red, now_is.run, now];
    let has_changed = if session.execute(&INSERT, args.clone()).await? == 1 {
        newest.get(1).is_some_and(|before| before.is_red != now_is.is_red)
    } else {
        session.execute(&CHANGE, args).await? == 1
    };
    Ok(has_changed.then_some(now_is))
}
