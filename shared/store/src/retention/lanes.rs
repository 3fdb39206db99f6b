//! Letting go of numbers: those of lanes nobody follows any more, and those of
//! days long past. What a lane counted before is no longer taken back from it
//! ([`clear`] notes from when on).

use callboard_domain::ids::ProjectId;
use callboard_domain::time::{Day, Timestamp};

use crate::Result;
use crate::db::{Session, Statement, args, statements};
use crate::runs::expired;

macro_rules! of_lane {
    ($table:literal, $key:literal, $condition:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE project_id = $1 AND lane_id = $2 AND (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE project_id = $1 AND lane_id = $2",
            $condition,
            " LIMIT $3)"
        )
    };
}

macro_rules! of_project {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE project_id = $1 AND (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE project_id = $1 AND day < $3 LIMIT $2)"
        )
    };
}

statements! {
    /// The next project. PK
    NEXT_PROJECT = "SELECT id FROM projects WHERE id > $1 ORDER BY id LIMIT 1";
    /// Lanes of branches without a run since a moment. ix: lanes_with_numbers
    SILENT = "SELECT id, branch FROM lanes WHERE project_id = $1 AND has_numbers = 1 AND kind IN (1, 3) AND last_run_at < $2 ORDER BY last_run_at";
    /// All lanes of a project with numbers. ix: lanes_with_numbers
    OF_PROJECT = "SELECT id FROM lanes WHERE project_id = $1 AND has_numbers = 1 ORDER BY id";
    /// From when on a lane counts again.
    CLEAR = "UPDATE lanes SET cleared_before = last_run_at + 1 WHERE project_id = $1 AND id = $2 AND last_run_at < $3";
    /// Whether a lane is still to be cleared: no run came since. PK
    IS_SILENT = "SELECT id FROM lanes WHERE project_id = $1 AND id = $2 AND cleared_before > last_run_at for_update()";
    /// That nothing is left of a lane.
    CLEARED = "UPDATE lanes SET has_numbers = 0 WHERE project_id = $1 AND id = $2 AND cleared_before > last_run_at";
    STATES = of_lane!("test_state", "test_case_id", "");
    TEST_DAYS = of_lane!("test_daily", "day, test_case_id", "");
    PROJECT_DAYS = of_lane!("project_daily", "day, is_full", "");
    FOLDER_DAYS = of_lane!("spec_daily", "day, prefix", "");
    OLD_TEST_DAYS = of_lane!("test_daily", "day, test_case_id", " AND day < $4");
    OLD_PROJECT_DAYS = of_lane!("project_daily", "day, is_full", " AND day < $4");
    OLD_FOLDER_DAYS = of_lane!("spec_daily", "day, prefix", " AND day < $4");
    OLD_BROWSER_DAYS = of_project!("browser_daily", "day, browser_id");
    OLD_ENDPOINT_DAYS = of_project!("endpoint_daily", "day, method, route");
}

/// Everything a lane counts.
static NUMBERS: &[&Statement] = &[&STATES, &TEST_DAYS, &PROJECT_DAYS, &FOLDER_DAYS];
/// What it counts by the day.
static DAYS: &[&Statement] = &[&OLD_TEST_DAYS, &OLD_PROJECT_DAYS, &OLD_FOLDER_DAYS];
/// What a project counts by the day whatever the lane.
static PROJECT_WIDE_DAYS: &[&Statement] = &[&OLD_BROWSER_DAYS, &OLD_ENDPOINT_DAYS];

/// The project behind one, by id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn next_project(session: &mut Session, after: Option<ProjectId>) -> Result<Option<ProjectId>> {
    let row = session.first(&NEXT_PROJECT, args![after.map_or(0, ProjectId::get)]).await?;
    row.map(|row| row.reader().int().map(ProjectId)).transpose()
}

/// Lanes of branches that had no run since a moment and still have numbers:
/// id and branch.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn silent(
    session: &mut Session,
    project: ProjectId,
    since: Timestamp,
) -> Result<Vec<(i64, String)>> {
    let rows = session.all(&SILENT, args![project, since]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.int()?, r.text()?))
        })
        .collect()
}

/// Lanes of a project that have numbers.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn with_numbers(session: &mut Session, project: ProjectId) -> Result<Vec<i64>> {
    let rows = session.all(&OF_PROJECT, args![project]).await?;
    rows.iter().map(|row| row.reader().int()).collect()
}

/// Notes that what the lane counted so far goes; `false` when a run came since
/// `since`. Committed before the first number goes.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn clear(session: &mut Session, project: ProjectId, lane: i64, since: Timestamp) -> Result<bool> {
    Ok(session.execute(&CLEAR, args![project, lane, since]).await? == 1)
}

/// Deletes at most `limit` numbers of a lane that [`clear`] gave up; `false`
/// when none is left, which is noted, or when a run came meanwhile.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete_numbers(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    limit: i64,
) -> Result<bool> {
    if session.first(&IS_SILENT, args![project, lane]).await?.is_none() {
        return Ok(false);
    }
    for table in NUMBERS {
        if session.execute(table, args![project, lane, limit]).await? > 0 {
            return Ok(true);
        }
    }
    expired::forget_branch(session, project, lane).await?;
    session.execute(&CLEARED, args![project, lane]).await?;
    Ok(false)
}

/// Deletes at most `limit` numbers of a project, whatever the lane, from days
/// before one; `false` when none is left.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete_days_of_project(
    session: &mut Session,
    project: ProjectId,
    before: Day,
    limit: i64,
) -> Result<bool> {
    for table in PROJECT_WIDE_DAYS {
        if session.execute(table, args![project, limit, before]).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes at most `limit` numbers of a lane from days before one; `false`
/// when none is left.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn delete_days(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    before: Day,
    limit: i64,
) -> Result<bool> {
    for table in DAYS {
        if session.execute(table, args![project, lane, limit, before]).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
