//! Lanes: the branch and environment slices over which rollups are kept, and
//! the browser projects of a project. Both are small tables whose rows are
//! made at first use.

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::lane::{LaneKey, LaneKind};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::{Result, StoreError, quarantine};

statements! {
    /// The lane of a key. ix: lanes_key
    LANE = "SELECT id, kind, cleared_before FROM lanes WHERE project_id = $1 AND kind = $2 AND branch = $3 AND environment = $4";
    /// Makes a lane; a concurrent maker may have been first.
    INSERT_LANE = "INSERT INTO lanes (project_id, id, kind, branch, environment, first_run_at, last_run_at) \
        SELECT $1, (SELECT COALESCE(MAX(id), -1) + 1 FROM lanes WHERE project_id = $1), $2, $3, $4, $5, $5 \
        WHERE true ON CONFLICT DO NOTHING";
    /// The lanes of a run on a branch and in an environment. ix: lanes_key
    OF_PLACE = "SELECT id, kind, cleared_before FROM lanes WHERE project_id = $1 AND (kind, branch, environment) IN \
        (VALUES (0, '', ''), (1, $2, ''), (2, '', $3), (3, $2, $3)) ORDER BY id";
    /// The branch and the environment of a lane.
    PLACE_OF = "SELECT branch, environment FROM lanes WHERE project_id = $1 AND id = $2";
    /// When a lane that let go of its numbers ran last. PK
    LAST_RUN_OF_CLEARED = "SELECT last_run_at FROM lanes WHERE project_id = $1 AND id = $2 AND cleared_before IS NOT NULL";
    /// The lanes of a run. ix: lanes_key
    OF_RUN = "SELECT l.id, l.kind, l.cleared_before FROM test_runs r JOIN lanes l ON l.project_id = r.project_id \
        AND ((l.kind = 0 AND l.branch = '' AND l.environment = '') OR (l.kind = 1 AND l.branch = r.branch AND l.environment = '') \
        OR (l.kind = 2 AND l.branch = '' AND l.environment = r.environment) \
        OR (l.kind = 3 AND l.branch = r.branch AND l.environment = r.environment)) \
        WHERE r.project_id = $1 AND r.id = $2 ORDER BY l.id";
    /// Those of some lanes that are restricted to a branch.
    OF_ONE_BRANCH = "SELECT id FROM lanes WHERE project_id = $1 AND id in_ints($2) AND kind IN (1, 3)";
    /// The environments of some lanes.
    ENVIRONMENTS_OF = "SELECT id, environment FROM lanes WHERE project_id = $1 AND id in_ints($2)";
    /// Of each of some projects its default branch, the only branch that has runs, and the runs of the default one, in an
    /// environment or in all, that ended on days on which anything was decided: of as many of its days as runs are asked for.
    /// Days outlive the runs they count. ix: lanes_key, PK
    SPEAKING = "SELECT p.id, p.default_branch, \
        (SELECT CASE WHEN COUNT(*) = 1 THEN MAX(two.branch) END FROM (SELECT l.branch FROM lanes l WHERE l.project_id = p.id AND l.kind = 1 \
        AND EXISTS (SELECT 1 FROM test_runs r WHERE r.project_id = l.project_id AND r.branch = l.branch) ORDER BY l.branch LIMIT 2) two), \
        (SELECT CAST(COALESCE(SUM(newest.runs), 0) AS BIGINT) FROM (\
        SELECT CASE WHEN d.passed + d.failed > 0 THEN d.runs ELSE 0 END AS runs FROM lanes l \
        JOIN project_daily d ON d.project_id = l.project_id AND d.lane_id = l.id \
        WHERE l.project_id = p.id AND l.kind = $3 AND l.branch = p.default_branch AND l.environment = $4 \
        ORDER BY d.day DESC LIMIT $2) newest) FROM projects p WHERE p.id in_ints($1)";
    /// Moves a lane's last run forward.
    TOUCH_LANE = "UPDATE lanes SET last_run_at = CASE WHEN last_run_at < $3 THEN $3 ELSE last_run_at END, has_numbers = 1 \
        WHERE project_id = $1 AND id = $2 AND (last_run_at < $3 OR has_numbers = 0)";
    /// Branches or environments by last run, newest first; a lane of one kind has one of both names. ix: lanes_by_last_run
    RECENT_LANES = "SELECT branch || environment, last_run_at FROM lanes \
        WHERE project_id = $1 AND kind = $2 ORDER BY last_run_at DESC, id DESC LIMIT $3";
    /// The browser project of a name. ix: browser_projects_name
    BROWSER = "SELECT id FROM browser_projects WHERE project_id = $1 AND name = $2";
    /// Makes a browser project; a concurrent maker may have been first.
    INSERT_BROWSER = "INSERT INTO browser_projects (project_id, id, name, browser_name) \
        SELECT $1, (SELECT COALESCE(MAX(id), 0) + 1 FROM browser_projects WHERE project_id = $1), $2, $3 \
        WHERE true ON CONFLICT DO NOTHING";
    /// All browser projects of a project.
    BROWSERS = "SELECT id, name, browser_name FROM browser_projects WHERE project_id = $1 ORDER BY id";
    /// Lanes of the default branch of a project, in an environment first. ix: lanes_key
    OF_DEFAULT_BRANCH = "SELECT l.id FROM projects p JOIN lanes l ON l.project_id = p.id \
        AND ((l.kind = 3 AND l.branch = p.default_branch AND l.environment = $2 AND $2 <> '') \
        OR (l.kind = 1 AND l.branch = p.default_branch AND l.environment = '')) \
        WHERE p.id = $1 AND p.default_branch <> '' ORDER BY l.kind DESC";
}

/// The lane of all runs of a project.
pub const OF_ALL_RUNS: i64 = 0;

/// Attempts at making a small row before giving up; each lost race means that
/// another writer made progress.
const MAKE_ATTEMPTS: usize = 64;

/// The id of a lane, made when it does not exist. Makers wait for each other's
/// transaction, so this belongs into a short one of its own. Lane 0 is the lane of all
/// runs: it is asked for first, so it gets the first number.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lane(
    session: &mut Session,
    project: ProjectId,
    key: &LaneKey,
    run_at: Timestamp,
) -> Result<i64> {
    for _ in 0..MAKE_ATTEMPTS {
        let kind = key.kind.code();
        let found = session.first(&LANE, args![project, kind, &key.branch, &key.environment]).await?;
        if let Some(row) = found {
            return row.reader().int();
        }
        session.execute(&INSERT_LANE, args![project, kind, &key.branch, &key.environment, run_at]).await?;
    }
    Err(StoreError::Damaged("a lane could not be made"))
}

/// Moves the last run of some lanes forward. All runs of a project share a
/// lane, so this belongs at the end of a transaction; `lanes` must ascend.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn touch(
    session: &mut Session,
    project: ProjectId,
    lanes: &[i64],
    run_at: Timestamp,
) -> Result<()> {
    for lane in lanes {
        session.write(&TOUCH_LANE, args![project, *lane, run_at]).await?;
    }
    Ok(())
}

/// A lane, and from when on runs count in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountingLane {
    /// Lane.
    pub id: i64,
    /// How much of a run's place it names; the highest of a run is its own.
    pub kind: i64,
    /// Its numbers of runs that began before were let go.
    cleared_before: Option<Timestamp>,
}

impl CountingLane {
    /// Whether a run with this order key counts in the lane.
    #[must_use]
    pub fn counts(&self, order_at: Timestamp) -> bool {
        self.cleared_before.is_none_or(|cleared| order_at >= cleared)
    }
}

pub(crate) fn counting(row: &Row) -> Result<CountingLane> {
    let mut r = row.reader();
    Ok(CountingLane { id: r.int()?, kind: r.int()?, cleared_before: r.opt_time()? })
}

/// The lanes of runs on a branch and in an environment, ascending, as far as
/// they exist; both may be empty.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_place(
    session: &mut Session,
    project: ProjectId,
    branch: &str,
    environment: &str,
) -> Result<Vec<CountingLane>> {
    let rows = session.all(&OF_PLACE, args![project, branch, environment]).await?;
    rows.iter().map(counting).collect()
}

/// The branch and the environment of a lane.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn place_of(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
) -> Result<Option<(String, String)>> {
    let row = session.first(&PLACE_OF, args![project, lane]).await?;
    row.map(|row| {
        let mut r = row.reader();
        Ok((r.text()?, r.text()?))
    })
    .transpose()
}

/// The lane of a key, as runs count in it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn find_counting(
    session: &mut Session,
    project: ProjectId,
    key: &LaneKey,
) -> Result<Option<CountingLane>> {
    let row = session.first(&LANE, args![project, key.kind.code(), &key.branch, &key.environment]).await?;
    row.as_ref().map(counting).transpose()
}

/// When a lane ran last that let go of what it counted before; `None` for the
/// others.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn last_run_of_cleared(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
) -> Result<Option<Timestamp>> {
    let row = session.first(&LAST_RUN_OF_CLEARED, args![project, lane]).await?;
    row.map(|row| row.reader().time()).transpose()
}

/// Those of some lanes that are restricted to one branch.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_one_branch(session: &mut Session, project: ProjectId, lanes: Vec<i64>) -> Result<Vec<i64>> {
    let rows = session.all(&OF_ONE_BRANCH, args![project, lanes]).await?;
    rows.iter().map(|row| row.reader().int()).collect()
}

/// The environments of some lanes; empty where none was told.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn environments_of(
    session: &mut Session,
    project: ProjectId,
    lanes: Vec<i64>,
) -> Result<Vec<(i64, String)>> {
    let rows = session.all(&ENVIRONMENTS_OF, args![project, lanes]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.int()?, r.text()?))
        })
        .collect()
}

/// What tells which branch speaks for a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaking {
    /// Its default branch, when known.
    pub default_branch: Option<String>,
    /// The branch of all its runs, when that is one; empty when none was told.
    pub only_branch: Option<String>,
    /// Runs of the default branch that came to an end, in the environment that was asked for, be they deleted by retention
    /// since; as many as were asked for stand for more.
    pub decided_runs: i64,
}

/// What tells which branch speaks for each of some projects, in an environment
/// where one is named; of runs of a default branch no more are counted than
/// tell whether there are `most_decided`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn speaking(
    session: &mut Session,
    projects: Vec<i64>,
    environment: Option<&str>,
    most_decided: i64,
) -> Result<HashMap<ProjectId, Speaking>> {
    let environment = environment.unwrap_or_default();
    let kind = if environment.is_empty() { LaneKind::Branch } else { LaneKind::BranchAndEnvironment };
    let rows = session.all(&SPEAKING, args![projects, most_decided, kind.code(), environment]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let project = ProjectId(r.int()?);
            let (default_branch, only_branch) = (r.opt_text()?, r.opt_text()?);
            Ok((project, Speaking { default_branch, only_branch, decided_runs: r.int()? }))
        })
        .collect()
}

/// The id of an existing lane.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn find_lane(session: &mut Session, project: ProjectId, key: &LaneKey) -> Result<Option<i64>> {
    let kind = key.kind.code();
    let row = session.first(&LANE, args![project, kind, &key.branch, &key.environment]).await?;
    row.map(|row| row.reader().int()).transpose()
}

/// The most specific lanes of runs on some branches and in some environments:
/// those that executions carry. An empty list is "any", an empty word "none
/// recorded".
///
/// # Errors
/// [`StoreError::Database`].
pub async fn specific(
    session: &mut Session,
    project: ProjectId,
    branches: &[String],
    environments: &[String],
) -> Result<Vec<i64>> {
    let filter = of_runs(session.backend(), project, branches, environments);
    session.list(filter).await?.iter().map(|row| row.reader().int()).collect()
}

fn of_runs(backend: Backend, project: ProjectId, branches: &[String], environments: &[String]) -> Filter {
    let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
    let base = "SELECT id FROM lanes WHERE project_id = $1 AND kind IN (1, 3)";
    Filter::new(backend, base, args![project])
        .and_if("branch in_texts(?)", some(branches))
        .and_if("environment in_texts(?)", some(environments))
        .end("ORDER BY id", args![])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let words = [String::new()];
    vec![of_runs(backend, ProjectId(1), &[], &[]), of_runs(backend, ProjectId(1), &words, &words)]
}

/// A branch or environment in which runs happened.
#[derive(Debug, Clone)]
pub struct RecentLane {
    /// Its name; empty when none was recorded.
    pub name: String,
    /// Start of its newest run.
    pub last_run_at: Timestamp,
}

/// Branches or environments, after the kind of their lanes, by their newest
/// run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn recent(
    session: &mut Session,
    project: ProjectId,
    kind: LaneKind,
    limit: i64,
) -> Result<Vec<RecentLane>> {
    let rows = session.all(&RECENT_LANES, args![project, kind.code(), limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(RecentLane { name: r.text()?, last_run_at: r.time()? })
        })
        .collect()
}

/// A browser project of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserProject {
    /// Number within the project.
    pub id: i64,
    /// Name in the client's configuration; empty when it has none.
    pub name: String,
    /// Browser engine, when it was told.
    pub browser_name: Option<String>,
}

/// The id of a browser project, made when it does not exist. Makers wait for
/// each other's transaction, so this belongs into a short one of its own.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn browser(
    session: &mut Session,
    project: ProjectId,
    name: &str,
    browser_name: Option<&str>,
) -> Result<i64> {
    for _ in 0..MAKE_ATTEMPTS {
        if let Some(row) = session.first(&BROWSER, args![project, name]).await? {
            return row.reader().int();
        }
        session.execute(&INSERT_BROWSER, args![project, name, browser_name]).await?;
    }
    Err(StoreError::Damaged("a browser project could not be made"))
}

/// All browser projects of a project.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn browsers(session: &mut Session, project: ProjectId) -> Result<Vec<BrowserProject>> {
    session.all(&BROWSERS, args![project]).await?.iter().map(browser_project).collect()
}

/// All browser projects of a project, and its tests in quarantine, ascending.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn browsers_and_quarantine(
    session: &mut Session,
    project: ProjectId,
    now: Timestamp,
) -> Result<(Vec<BrowserProject>, Vec<TestCaseId>)> {
    let aside = (&quarantine::CASES, args![project, now, quarantine::MOST]);
    let [browsers, aside] = session.each([(&BROWSERS, args![project]), aside]).await?;
    let browsers = browsers.iter().map(browser_project).collect::<Result<_>>()?;
    let aside = aside.iter().map(|row| row.reader().int().map(TestCaseId)).collect::<Result<_>>()?;
    Ok((browsers, aside))
}

/// The lanes of a project's default branch, in an environment first, then
/// anywhere.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_default_branch(
    session: &mut Session,
    project: ProjectId,
    environment: &str,
) -> Result<Vec<i64>> {
    let rows = session.all(&OF_DEFAULT_BRANCH, args![project, environment]).await?;
    rows.iter().map(|row| row.reader().int()).collect()
}

fn browser_project(row: &Row) -> Result<BrowserProject> {
    let mut r = row.reader();
    Ok(BrowserProject { id: r.int()?, name: r.text()?, browser_name: r.opt_text()? })
}
