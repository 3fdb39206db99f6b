//! Where the failing tests of a cluster stand now, and which other tests stand
//! there too.
//!
//! A failure of the cluster may be old, and lines may have been put in above
//! its test since. The newest execution of a test tells where it stands,
//! whatever came of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::rerun;
use callboard_domain::time::{Day, Timestamp};
use callboard_playwright::healing::verify::MAX_TARGETS;
use callboard_store::clusters::reads::Sighting;
use callboard_store::executions;
use callboard_store::executions::brief;
use callboard_store::rollups::States;
use callboard_store::test_cases::{self, TestCaseRow};

use crate::{Context, Result};

/// Tests of all files among which others on the same lines are looked for.
const MAX_OF_FILES: i64 = 20_000;
/// Files among which those are looked for whose path ends like that of a test.
const MAX_FILES: i64 = 5_000;

/// Where tests stand.
#[derive(Debug, Default)]
pub(super) struct Places {
    newest: BTreeMap<TestCaseId, Seen>,
    /// Lines of files on which tests stand that do not fail for the cluster, as
    /// in a loop.
    shared: BTreeSet<(String, i64)>,
    /// Other files that the path of a file of theirs finds as well.
    found_too: BTreeMap<String, Vec<String>>,
}

/// Where a test stood in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    run: RunId,
    day: Day,
    line: Option<i64>,
}

impl Seen {
    fn from_row(row: &Sighting) -> Self {
        Self { run: row.run, day: row.day, line: row.line.filter(|line| *line > 0) }
    }
}

impl Places {
    pub(super) async fn read(
        ctx: &Context,
        project: ProjectId,
        failing: &[(&Sighting, &TestCaseRow)],
        states: &States,
    ) -> Result<Self> {
        let newest = newest(ctx, project, failing, states).await?;
        let shared = shared_lines(ctx, project, failing, &newest).await?;
        let mut session = ctx.store.db().read().await?;
        let files = test_cases::files(&mut session, project, MAX_FILES).await?;
        let mut found_too = BTreeMap::new();
        for (_, case) in failing {
            if found_too.len() == MAX_TARGETS {
                break;
            }
            let path = &case.file_path;
            found_too.entry(path.clone()).or_insert_with(|| rerun::found_too(path, &files));
        }
        Ok(Self { newest, shared, found_too })
    }

    /// The line on which a test begins, when its newest execution tells.
    pub(super) fn line(&self, case: &TestCaseRow) -> Option<i64> {
        self.newest.get(&case.id)?.line
    }

    /// Other files that the path of a test finds as well.
    pub(super) fn found_too(&self, case: &TestCaseRow) -> Vec<String> {
        self.found_too.get(&case.file_path).cloned().unwrap_or_default()
    }

    /// Whether other tests stand on that line.
    pub(super) fn is_shared(&self, case: &TestCaseRow) -> bool {
        self.line(case).is_some_and(|line| self.shared.contains(&(case.file_path.clone(), line)))
    }
}

/// Where each failing test stood when it last ran in a lane in which it failed;
/// of a test of which nothing is counted, when it failed.
async fn newest(
    ctx: &Context,
    project: ProjectId,
    failing: &[(&Sighting, &TestCaseRow)],
    states: &States,
) -> Result<BTreeMap<TestCaseId, Seen>> {
    let mut newest: BTreeMap<TestCaseId, Seen> = BTreeMap::new();
    let mut last: BTreeMap<TestCaseId, (Timestamp, ExecutionId)> = BTreeMap::new();
    for (row, case) in failing {
        newest.entry(case.id).or_insert_with(|| Seen::from_row(row));
        if let Some(state) = states.get(&(row.lane_id, case.id)) {
            let here = (state.last_order_at(), state.last_execution());
            last.entry(case.id).and_modify(|known| *known = here.max(*known)).or_insert(here);
        }
    }
    let ids: Vec<ExecutionId> = last.values().map(|(_, id)| *id).collect();
    let mut session = ctx.store.db().read().await?;
    for row in executions::get_many(&mut session, project, &ids).await? {
        if let Some((order_at, _)) = last.get(&row.test_case) {
            let line = row.facts.line.filter(|line| *line > 0);
            newest.insert(row.test_case, Seen { run: row.run, day: order_at.day(), line });
        }
    }
    Ok(newest)
}

/// Those of the lines a command could name on which tests stand that do not
/// fail for the cluster: in the newest run, or when the test failed, since the
/// newest run may have been one of a few tests.
async fn shared_lines(
    ctx: &Context,
    project: ProjectId,
    failing: &[(&Sighting, &TestCaseRow)],
    newest: &BTreeMap<TestCaseId, Seen>,
) -> Result<BTreeSet<(String, i64)>> {
    let failing_tests: BTreeSet<TestCaseId> = failing.iter().map(|(row, _)| row.test_case).collect();
    let mut places: BTreeMap<(&str, i64), [Seen; 2]> = BTreeMap::new();
    for (row, case) in failing {
        let Some(now) = newest.get(&case.id) else { continue };
        let Some(line) = now.line else { continue };
        if places.len() == MAX_TARGETS {
            break;
        }
        places.entry((case.file_path.as_str(), line)).or_insert([*now, Seen::from_row(row)]);
    }
    let files: BTreeSet<&str> = places.keys().map(|(file, _)| *file).collect();
    let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
    let mut session = ctx.store.db().read().await?;
    let tests_of = test_cases::of_files(&mut session, project, files, MAX_OF_FILES).await?;
    let mut shared = BTreeSet::new();
    for then in [0, 1] {
        // Most of them stood in the same newest run, of which each test is asked for once.
        let mut asked = BTreeSet::new();
        for ((file, _), seen) in &places {
            let tests = tests_of.get(*file).into_iter().flatten();
            asked.extend(tests.map(|test| (seen[then].day, seen[then].run, TestCaseId(*test))));
        }
        let asked: Vec<_> = asked.into_iter().collect();
        let mut lines: BTreeMap<RunId, HashMap<i64, Vec<Option<i64>>>> = BTreeMap::new();
        for (run, test, line) in brief::lines_of_tests(&mut session, project, &asked).await? {
            lines.entry(run).or_default().entry(test.get()).or_default().push(line);
        }
        places.retain(|(file, line), seen| {
            let Some(tests) = tests_of.get(*file) else { return false };
            let of_run = lines.entry(seen[then].run).or_default();
            let place = seen[then].line;
            let others = tests.iter().filter(|test| !failing_tests.contains(&TestCaseId(**test)));
            let mut beside = others.filter_map(|test| of_run.get(test)).flatten();
            if place.is_some() && beside.any(|other| *other == place) {
                shared.insert(((*file).to_owned(), *line));
                return false;
            }
            // Where every test of the file ran, nothing else stands on the line any more.
            !tests.iter().all(|test| of_run.contains_key(test))
        });
    }
    Ok(shared)
}
