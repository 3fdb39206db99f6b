//! Days of folders of tests: the first two segments of their paths. One row
//! per folder, lane and day, however many tests lie in it. The files of one
//! folder are summed up from the days of its tests. A folder counts results under
//! the path they came with, also where the test is shown under another one now.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::ids::ProjectId;
use callboard_domain::status::Outcome;
use callboard_domain::time::Day;

use super::days::DayDelta;
use crate::Result;
use crate::db::{Bulk, Column, Session, args, statements};

statements! {
    /// Folders of a lane over some days. PK
    FOLDERS = "SELECT prefix, CAST(SUM(executions) AS BIGINT), CAST(SUM(passed) AS BIGINT), CAST(SUM(failed) AS BIGINT), \
        CAST(SUM(flaky) AS BIGINT), CAST(SUM(dur_sum) AS BIGINT), CAST(SUM(dur_n) AS BIGINT) FROM spec_daily \
        WHERE project_id = $1 AND lane_id = $2 AND day BETWEEN $3 AND $4 GROUP BY prefix ORDER BY prefix";
    /// Files of the tests that ran in a lane since a day, with how many. ix: test_state_by_day
    FILES_SINCE = "SELECT c.file_path, COUNT(*) FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
        WHERE s.project_id = $1 AND s.lane_id = $2 AND s.last_day >= $3 AND s.total > 0 GROUP BY c.file_path";
    /// The tests that ran in a lane since a day and whose paths begin with a text. ix: test_state_by_day
    TESTS_BELOW = "SELECT s.test_case_id, c.file_path FROM test_state s JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id \
        WHERE s.project_id = $1 AND s.lane_id = $2 AND s.last_day >= $3 AND s.total > 0 AND SUBSTR(c.file_path, 1, LENGTH($4)) = $4";
    /// What some tests did in a lane over some days. PK
    TESTS_OVER_DAYS = "SELECT test_case_id, CAST(SUM(runs) AS BIGINT), CAST(SUM(passed) AS BIGINT), CAST(SUM(failed) AS BIGINT), \
        CAST(SUM(flaky) AS BIGINT), CAST(SUM(dur_sum) AS BIGINT), CAST(SUM(dur_n) AS BIGINT) FROM test_daily \
        WHERE project_id = $1 AND lane_id = $2 AND day in_ints($3) AND test_case_id in_ints($4) GROUP BY test_case_id";
}

static ADD: Bulk = Bulk::new(
    "rollups::ADD_SPEC_DAYS",
    1,
    "INSERT INTO spec_daily AS d (project_id, lane_id, day, prefix, executions, passed, failed, flaky, dur_sum, dur_n) \
     SELECT $1, r.lane_id, r.day, r.prefix, r.executions, r.passed, r.failed, r.flaky, r.dur_sum, r.dur_n FROM",
    &[
        Column::Int("lane_id"),
        Column::Int("day"),
        Column::Text("prefix"),
        Column::Int("executions"),
        Column::Int("passed"),
        Column::Int("failed"),
        Column::Int("flaky"),
        Column::Int("dur_sum"),
        Column::Int("dur_n"),
    ],
    "WHERE true ON CONFLICT (project_id, lane_id, day, prefix) DO UPDATE SET executions = d.executions + excluded.executions, \
     passed = d.passed + excluded.passed, failed = d.failed + excluded.failed, flaky = d.flaky + excluded.flaky, \
     dur_sum = d.dur_sum + excluded.dur_sum, dur_n = d.dur_n + excluded.dur_n",
);

pub(crate) static BULKS: &[&Bulk] = &[&ADD];

/// The folder of a path: its first two segments, or the first when there is
/// only one folder; a file at the top is its own.
#[must_use]
pub fn folder_of(file_path: &str) -> &str {
    let mut slashes = file_path.match_indices('/').map(|(at, _)| at);
    match (slashes.next(), slashes.next()) {
        (_, Some(second)) => &file_path[..second],
        (Some(first), None) => &file_path[..first],
        (None, None) => file_path,
    }
}

/// What a batch adds to days of folders; negative where it takes back.
#[derive(Debug, Default)]
pub struct FolderDays(HashMap<String, BTreeMap<(i64, Day), DayDelta>>);

impl FolderDays {
    /// Counts an execution in some lanes on a day (`sign` 1), or takes it back
    /// (`sign` -1).
    pub fn count(
        &mut self,
        (lanes, day): (&[i64], Day),
        folder: &str,
        outcome: Outcome,
        duration_ms: i64,
        sign: i64,
    ) {
        if !self.0.contains_key(folder) {
            self.0.insert(folder.to_owned(), BTreeMap::new());
        }
        if let Some(places) = self.0.get_mut(folder) {
            for lane in lanes {
                places.entry((*lane, day)).or_default().count(outcome, duration_ms, sign);
            }
        }
    }
}

/// Adds a batch to the days of its folders.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn add_folder_days(session: &mut Session, project: ProjectId, days: FolderDays) -> Result<()> {
    let mut rows = ADD.rows();
    let places = days.0.iter().flat_map(|(folder, places)| {
        let changed = places.iter().filter(|(_, delta)| **delta != DayDelta::default());
        changed.map(move |((lane, day), delta)| ((*lane, *day, folder.as_str()), delta))
    });
    for ((lane, day, folder), delta) in places.collect::<BTreeMap<_, _>>() {
        rows.push([
            lane.into(),
            day.into(),
            folder.into(),
            delta.runs.into(),
            delta.passed.into(),
            delta.failed.into(),
            delta.flaky.into(),
            delta.dur_sum.into(),
            delta.dur_n.into(),
        ]);
    }
    session.execute_bulk(&ADD, args![project], rows).await?;
    Ok(())
}

/// A folder over some days, or one file of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// The first segments of its tests' paths; the whole path of a file.
    pub prefix: String,
    /// What ran there.
    pub counts: DayDelta,
    /// Tests of it that ran since the first of these days.
    pub tests: i64,
    /// Files that these tests are in.
    pub files: i64,
}

/// The folders of a lane over some days, by name. Bounded by the days and by
/// the files of the project.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn folders(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    (since, until): (Day, Day),
) -> Result<Vec<Folder>> {
    let mut found: BTreeMap<String, Folder> = BTreeMap::new();
    for row in session.all(&FOLDERS, args![project, lane, since, until]).await? {
        let mut r = row.reader();
        let prefix = r.text()?;
        let counts = DayDelta::read(&mut r)?;
        if counts.runs > 0 {
            found.insert(prefix.clone(), Folder { prefix, counts, ..Folder::default() });
        }
    }
    for row in session.all(&FILES_SINCE, args![project, lane, since]).await? {
        let mut r = row.reader();
        let file_path = r.text()?;
        let tests = r.int()?;
        if let Some(folder) = found.get_mut(folder_of(&file_path)) {
            folder.tests += tests;
            folder.files += 1;
        }
    }
    Ok(found.into_values().collect())
}

/// The files of one folder of a lane over some days, by name, or those of all
/// folders. Bounded by the tests of the project and by the days of those in the
/// files.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database).
pub async fn files(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    (since, until): (Day, Day),
    folder: Option<&str>,
) -> Result<Vec<Folder>> {
    let mut paths: HashMap<i64, String> = HashMap::new();
    for row in session.all(&TESTS_BELOW, args![project, lane, since, folder.unwrap_or_default()]).await? {
        let mut r = row.reader();
        let (case, path) = (r.int()?, r.text()?);
        if folder.is_none_or(|folder| folder_of(&path) == folder) {
            paths.insert(case, path);
        }
    }
    let mut cases: Vec<i64> = paths.keys().copied().collect();
    cases.sort_unstable();
    let days: Vec<i64> = (since.0..=until.0).collect();
    let mut found: BTreeMap<String, Folder> = BTreeMap::new();
    for row in session.all(&TESTS_OVER_DAYS, args![project, lane, days, cases]).await? {
        let mut r = row.reader();
        let Some(prefix) = paths.remove(&r.int()?) else { continue };
        let counts = DayDelta::read(&mut r)?;
        if counts.runs > 0 {
            let file = found.entry(prefix.clone()).or_insert_with(|| Folder {
                prefix,
                files: 1,
                ..Folder::default()
            });
            file.counts.add(&counts);
            file.tests += 1;
        }
    }
    Ok(found.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn a_folder_is_at_most_two_segments_and_never_the_file_itself_unless_it_is_alone() {
        assert_eq!(folder_of("tests/shop/cart/add.spec.ts"), "tests/shop");
        assert_eq!(folder_of("tests/shop/add.spec.ts"), "tests/shop");
        assert_eq!(folder_of("tests/add.spec.ts"), "tests");
        assert_eq!(folder_of("add.spec.ts"), "add.spec.ts");
    }
}
