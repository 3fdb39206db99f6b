//! Days of several projects together: each question is one statement over
//! ranges of the days' primary key, however many projects there are.

use std::collections::HashMap;

use callboard_domain::ids::ProjectId;
use callboard_domain::lane::LaneKey;
use callboard_domain::time::Day;

use super::days::{DaySpan, RunContribution, read_sums, sums};
use crate::Result;
use crate::db::{Session, args, statements};

/// The days of one lane of each of some projects, by the projects' ids.
macro_rules! of_lane {
    () => {
        " FROM lanes l CROSS JOIN project_daily d WHERE l.project_id in_ints($1) AND l.kind = $2 AND l.branch = $3 \
         AND l.environment = $4 AND d.project_id = l.project_id AND d.lane_id = l.id AND d.day BETWEEN $5 AND $6 \
         AND d.is_full in_ints($7)"
    };
}

statements! {
    /// Days of some projects together. ix: lanes_key, PK
    DAYS = concat!("SELECT d.day, ", sums!(), of_lane!(), " GROUP BY d.day ORDER BY d.day");
    /// Sums of each of some projects from a day on, and before it. ix: lanes_key, PK
    WINDOWS = concat!("SELECT d.project_id, CASE WHEN d.day >= $8 THEN 1 ELSE 0 END AS is_now, ", sums!(), of_lane!(),
        " GROUP BY d.project_id, is_now");
    /// Tests that passed and failed, by project and day. ix: lanes_key, PK
    PASSED = concat!("SELECT d.project_id, d.day, CAST(SUM(d.passed) AS BIGINT), CAST(SUM(d.failed) AS BIGINT)", of_lane!(),
        " GROUP BY d.project_id, d.day ORDER BY d.project_id, d.day");
}

/// One lane of each of some projects.
#[derive(Debug, Clone)]
pub struct LaneOfEach {
    /// The projects.
    pub projects: Vec<i64>,
    /// The lane.
    pub lane: LaneKey,
}

/// The days of some projects added up, oldest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn days_together(
    session: &mut Session,
    LaneOfEach { projects, lane }: LaneOfEach,
    span: DaySpan,
) -> Result<Vec<(Day, RunContribution)>> {
    let (kind, full) = (lane.kind.code(), span.full_or_partial());
    let (branch, environment) = (&lane.branch, &lane.environment);
    let asked = args![projects, kind, branch, environment, span.since, span.until, full];
    let rows = session.all(&DAYS, asked).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((Day(r.int()?), read_sums(&mut r)?))
        })
        .collect()
}

/// The sums of two windows that follow each other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Windows {
    /// From a day on.
    pub now: RunContribution,
    /// The days before it.
    pub before: RunContribution,
}

/// The sums of each of some projects from `now` on, and before it within the
/// span; projects without a run are left out.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn windows_of_each(
    session: &mut Session,
    LaneOfEach { projects, lane }: LaneOfEach,
    span: DaySpan,
    now: Day,
) -> Result<HashMap<ProjectId, Windows>> {
    let (kind, full) = (lane.kind.code(), span.full_or_partial());
    let (branch, environment) = (&lane.branch, &lane.environment);
    let asked = args![projects, kind, branch, environment, span.since, span.until, full, now];
    let mut found: HashMap<ProjectId, Windows> = HashMap::new();
    for row in session.all(&WINDOWS, asked).await? {
        let mut r = row.reader();
        let (project, is_now) = (ProjectId(r.int()?), r.flag()?);
        let windows = found.entry(project).or_default();
        *if is_now { &mut windows.now } else { &mut windows.before } = read_sums(&mut r)?;
    }
    Ok(found)
}

/// Tests of a project on a day.
#[derive(Debug, Clone, Copy)]
pub struct DecidedDay {
    /// Day.
    pub day: Day,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included.
    pub failed: i64,
}

/// How the tests of each of some projects ended, day by day.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn decided_days(
    session: &mut Session,
    LaneOfEach { projects, lane }: LaneOfEach,
    span: DaySpan,
) -> Result<HashMap<ProjectId, Vec<DecidedDay>>> {
    let (kind, full) = (lane.kind.code(), span.full_or_partial());
    let (branch, environment) = (&lane.branch, &lane.environment);
    let asked = args![projects, kind, branch, environment, span.since, span.until, full];
    let mut found: HashMap<ProjectId, Vec<DecidedDay>> = HashMap::new();
    for row in session.all(&PASSED, asked).await? {
        let mut r = row.reader();
        let project = ProjectId(r.int()?);
        let day = DecidedDay { day: Day(r.int()?), passed: r.int()?, failed: r.int()? };
        found.entry(project).or_default().push(day);
    }
    Ok(found)
}
