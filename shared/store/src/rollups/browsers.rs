//! Days of browser projects: how often their tests passed and failed. One row
//! per browser project and day, whatever the branch.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::ids::ProjectId;
use callboard_domain::status::Outcome;
use callboard_domain::time::Day;

use crate::Result;
use crate::db::{Bulk, Column, Session, args, statements};

statements! {
    /// Browser projects of some projects over some days, by name. PK
    BROWSER_DAYS = "SELECT d.project_id, b.name, CAST(SUM(d.passed) AS BIGINT), CAST(SUM(d.failed) AS BIGINT) FROM browser_daily d \
        JOIN browser_projects b ON b.project_id = d.project_id AND b.id = d.browser_id \
        WHERE d.project_id in_ints($1) AND d.day BETWEEN $2 AND $3 GROUP BY d.project_id, b.name ORDER BY d.project_id, b.name";
}

static ADD: Bulk = Bulk::new(
    "rollups::ADD_BROWSER_DAYS",
    1,
    "INSERT INTO browser_daily AS d (project_id, day, browser_id, passed, failed) \
     SELECT $1, r.day, r.browser_id, r.passed, r.failed FROM",
    &[Column::Int("day"), Column::Int("browser_id"), Column::Int("passed"), Column::Int("failed")],
    "WHERE true ON CONFLICT (project_id, day, browser_id) DO UPDATE SET passed = d.passed + excluded.passed, \
     failed = d.failed + excluded.failed",
);

pub(crate) static BULKS: &[&Bulk] = &[&ADD];

/// What a batch adds to days of browser projects; negative where it takes back.
#[derive(Debug, Default)]
pub struct BrowserDays(BTreeMap<(Day, i64), (i64, i64)>);

impl BrowserDays {
    /// Counts an execution on a day (`sign` 1), or takes it back (`sign` -1).
    pub fn count(&mut self, day: Day, browser: i64, outcome: Outcome, sign: i64) {
        let (passed, failed) = match outcome {
            Outcome::Passed | Outcome::Flaky => (sign, 0),
            Outcome::Failed | Outcome::TimedOut => (0, sign),
            Outcome::Interrupted | Outcome::Skipped | Outcome::DidNotRun => return,
        };
        let sums = self.0.entry((day, browser)).or_default();
        *sums = (sums.0 + passed, sums.1 + failed);
    }
}

/// Adds a batch to the days of its browser projects.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add_browser_days(session: &mut Session, project: ProjectId, days: BrowserDays) -> Result<()> {
    let mut rows = ADD.rows();
    for ((day, browser), (passed, failed)) in days.0.into_iter().filter(|(_, sums)| *sums != (0, 0)) {
        rows.push([day.into(), browser.into(), passed.into(), failed.into()]);
    }
    session.execute_bulk(&ADD, args![project], rows).await?;
    Ok(())
}

/// How the tests of one browser project ended.
#[derive(Debug, Clone)]
pub struct BrowserSums {
    /// Name of the browser project; empty for tests that named none.
    pub name: String,
    /// Passed, flaky ones included.
    pub passed: i64,
    /// Failed, timed out ones included.
    pub failed: i64,
}

/// The browser projects of each of some projects from one day to another, by
/// name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn browser_days(
    session: &mut Session,
    projects: Vec<i64>,
    (since, until): (Day, Day),
) -> Result<HashMap<ProjectId, Vec<BrowserSums>>> {
    let mut found: HashMap<ProjectId, Vec<BrowserSums>> = HashMap::new();
    for row in session.all(&BROWSER_DAYS, args![projects, since, until]).await? {
        let mut r = row.reader();
        let project = ProjectId(r.int()?);
        let sums = BrowserSums { name: r.text()?, passed: r.int()?, failed: r.int()? };
        found.entry(project).or_default().push(sums);
    }
    Ok(found)
}
