//! Executions that change their lane: those of a run that is said to have run
//! in another environment.

use callboard_domain::ids::{ExecutionId, ProjectId, RunId};

use super::{ExecutionRow, read};
use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Executions of a run outside of a lane, a batch. PK
    OUTSIDE_LANE = concat!("SELECT ", columns!(), " FROM executions e WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 \
        AND e.lane_id <> $5 ORDER BY e.id LIMIT $6");
    /// Puts executions into a lane. PK
    SET_LANE = "UPDATE executions SET lane_id = $3 WHERE project_id = $1 AND run_id = $2 AND id in_ints($4)";
}

/// At most `limit` executions of a run behind `after` that are not in a lane,
/// by id.
///
/// # Errors
/// [`crate::StoreError::Database`] when the database refuses.
pub async fn outside_lane(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    lane: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<ExecutionRow>> {
    let (low, high) = ExecutionId::range_of(run);
    let args = args![project, run, low.max(after), high, lane, limit];
    session.all(&OUTSIDE_LANE, args).await?.iter().map(read).collect()
}

/// Puts executions of a run into a lane.
///
/// # Errors
/// [`crate::StoreError::Database`] when the database refuses.
pub async fn set_lane(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    lane: i64,
    ids: Vec<i64>,
) -> Result<()> {
    session.execute(&SET_LANE, args![project, run, lane, ids]).await?;
    Ok(())
}
