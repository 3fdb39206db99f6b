//! Tests in quarantine: they run, are counted and scored, and their failures
//! are marked. A row is never deleted; released ones tell who was there.
//!
//! Invariant: at most one row per test is not released. One whose time is over
//! counts as released, whatever its row says.

use std::collections::{HashMap, HashSet};

use callboard_domain::ids::{ProjectId, TestCaseId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// A test in quarantine, or one that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineRow {
    /// Id.
    pub id: i64,
    /// The test.
    pub case: TestCaseId,
    /// Why.
    pub reason: Option<String>,
    /// `manual` or `proposed`.
    pub source: String,
    /// Executions of the test that were counted before.
    pub total_before: i64,
    /// Who put it there; `None` without authentication.
    pub created_by: Option<UserId>,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when at most.
    pub expires_at: Option<Timestamp>,
    /// When it was released.
    pub released_at: Option<Timestamp>,
    /// Why it was released.
    pub released_reason: Option<String>,
}

macro_rules! select_row {
    ($tail:literal) => {
        concat!(
            "SELECT id, test_case_id, reason, source, total_before, created_by, created_at, expires_at, released_at, \
             released_reason FROM quarantine ",
            $tail
        )
    };
}

statements! {
    /// The tests in quarantine. ix: quarantine_active
    CASES = "SELECT test_case_id FROM quarantine WHERE project_id = $1 AND released_at IS NULL \
        AND (expires_at IS NULL OR expires_at > $2) ORDER BY test_case_id LIMIT $3";
    /// Those of some tests that were not released. ix: quarantine_active
    MARKED = "SELECT test_case_id FROM quarantine WHERE project_id = $1 AND released_at IS NULL AND test_case_id in_ints($2)";
    /// How many tests of some projects were not released. ix: quarantine_active
    COUNTS = "SELECT project_id, COUNT(*) FROM quarantine WHERE project_id in_ints($1) AND released_at IS NULL GROUP BY project_id";
    /// Releases those whose time is over.
    EXPIRE = "UPDATE quarantine SET released_at = expires_at, released_reason = 'expired' \
        WHERE released_at IS NULL AND expires_at <= $1 RETURNING project_id, test_case_id";
    /// The row of a test that is not released, its time being over or not. ix: quarantine_active
    OPEN = select_row!("WHERE project_id = $1 AND test_case_id = $2 AND released_at IS NULL");
    /// Puts a test there; a concurrent caller may have been first.
    INSERT = "INSERT INTO quarantine (id, project_id, test_case_id, reason, source, total_before, created_by, created_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
    /// Sets one test aside in place of another that is. ix: quarantine_active
    HAND_OVER = "UPDATE quarantine SET test_case_id = $3 WHERE project_id = $1 AND test_case_id = $2 AND released_at IS NULL \
        AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.project_id = $1 AND q.test_case_id = $3 AND q.released_at IS NULL)";
    /// Takes executions of tests back that were there when the tests were set aside. ix: quarantine_active
    TAKE_BACK = "UPDATE quarantine SET total_before = total_before - $4 WHERE project_id = $1 AND test_case_id in_ints($2) \
        AND created_at > $3 AND released_at IS NULL";
    /// Lets a test go.
    RELEASE = "UPDATE quarantine SET released_at = $3, released_by = $4, released_reason = $5 \
        WHERE project_id = $1 AND id = $2 AND released_at IS NULL";
    /// One row.
    BY_ID = select_row!("WHERE project_id = $1 AND id = $2");
}

fn read(row: &Row) -> Result<QuarantineRow> {
    let mut r = row.reader();
    Ok(QuarantineRow {
        id: r.int()?,
        case: TestCaseId(r.int()?),
        reason: r.opt_text()?,
        source: r.text()?,
        total_before: r.int()?,
        created_by: r.opt_int()?.map(UserId),
        created_at: r.time()?,
        expires_at: r.opt_time()?,
        released_at: r.opt_time()?,
        released_reason: r.opt_text()?,
    })
}

/// Most tests in quarantine that are looked at together.
pub const MOST: i64 = 5_000;

/// How many tests of some projects are in quarantine; projects without any are
/// left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn counts(session: &mut Session, projects: Vec<i64>) -> Result<HashMap<ProjectId, i64>> {
    let rows = session.all(&COUNTS, args![projects]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), r.int()?))
        })
        .collect()
}

/// The tests in quarantine, ascending, up to [`MOST`].
///
/// # Errors
/// [`StoreError::Database`].
pub async fn cases(session: &mut Session, project: ProjectId, now: Timestamp) -> Result<Vec<TestCaseId>> {
    let rows = session.all(&CASES, args![project, now, MOST]).await?;
    rows.iter().map(|row| row.reader().int().map(TestCaseId)).collect()
}

/// Those of some tests that were not released. One whose time is over is among
/// them until [`expire`] has seen it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn marked(
    session: &mut Session,
    project: ProjectId,
    cases: Vec<i64>,
) -> Result<HashSet<TestCaseId>> {
    let rows = session.all(&MARKED, args![project, cases]).await?;
    rows.iter().map(|row| row.reader().int().map(TestCaseId)).collect()
}

/// Releases all whose time is over; returns the tests.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn expire(session: &mut Session, now: Timestamp) -> Result<Vec<(ProjectId, TestCaseId)>> {
    let rows = session.all(&EXPIRE, args![now]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((ProjectId(r.int()?), TestCaseId(r.int()?)))
        })
        .collect()
}

/// The quarantine of a test that was not released, its time being over or not.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn open(
    session: &mut Session,
    project: ProjectId,
    case: TestCaseId,
) -> Result<Option<QuarantineRow>> {
    session.first(&OPEN, args![project, case]).await?.as_ref().map(read).transpose()
}

/// What is told when a test is set aside.
#[derive(Debug, Clone)]
pub struct NewQuarantine {
    /// Why.
    pub reason: Option<String>,
    /// `manual` or `proposed`.
    pub source: &'static str,
    /// Executions of the test that were counted before.
    pub total_before: i64,
    /// Who does it.
    pub by: Option<UserId>,
    /// Until when at most.
    pub expires_at: Option<Timestamp>,
}

/// Puts a test into quarantine. `None` when it already is there.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn insert(
    session: &mut Session,
    project: ProjectId,
    case: TestCaseId,
    new: &NewQuarantine,
    now: Timestamp,
) -> Result<Option<QuarantineRow>> {
    let id = ids::allocate(session, Kind::Quarantine, 1).await?;
    let id = *id.first().ok_or(StoreError::Damaged("no id was left"))?;
    let args = args![
        id,
        project,
        case,
        new.reason.clone(),
        new.source,
        new.total_before,
        new.by,
        now,
        new.expires_at
    ];
    if session.execute(&INSERT, args).await? == 0 {
        return Ok(None);
    }
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Notes that `executions` of each of some tests, of a run at `run_at`, are gone:
/// those set aside after it began count from fewer. One that began before and
/// was counted after that moment is taken for counted before.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn take_back(
    session: &mut Session,
    project: ProjectId,
    cases: Vec<i64>,
    run_at: Timestamp,
    executions: i64,
) -> Result<()> {
    session.execute(&TAKE_BACK, args![project, cases, run_at, executions]).await?;
    Ok(())
}

/// Sets a test aside in place of one that leads to it now, unless it is already.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn hand_over(
    session: &mut Session,
    project: ProjectId,
    (from, to): (TestCaseId, TestCaseId),
) -> Result<()> {
    session.execute(&HAND_OVER, args![project, from, to]).await?;
    Ok(())
}

/// Lets a test go; `None` when it was not there any more.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn release(
    session: &mut Session,
    project: ProjectId,
    id: i64,
    by: Option<UserId>,
    reason: Option<&str>,
    at: Timestamp,
) -> Result<Option<QuarantineRow>> {
    if session.execute(&RELEASE, args![project, id, at, by, reason]).await? == 0 {
        return Ok(None);
    }
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Which tests a list of the quarantine shows.
#[derive(Debug, Clone)]
pub struct QuarantineFilter {
    /// Those that are there, or those that were.
    pub is_active: bool,
    /// Only tests of this owner.
    pub owner: Option<String>,
}

/// Tests in quarantine, or those that were, newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    wanted: &QuarantineFilter,
    before: Option<i64>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<QuarantineRow>> {
    let filter = listed(session.backend(), project, wanted, before, now, limit);
    session.list(filter).await?.iter().map(read).collect()
}

fn listed(
    backend: Backend,
    project: ProjectId,
    wanted: &QuarantineFilter,
    before: Option<i64>,
    now: Timestamp,
    limit: i64,
) -> Filter {
    const IS_OF_OWNER: &str = "EXISTS (SELECT 1 FROM test_cases o WHERE o.project_id = quarantine.project_id \
        AND o.id = quarantine.test_case_id AND COALESCE(o.owner, o.code_owner) = ?)";
    let filter = Filter::new(backend, select_row!("WHERE project_id = $1"), args![project])
        .and_if(IS_OF_OWNER, wanted.owner.clone());
    let filter = if wanted.is_active {
        filter.and("released_at IS NULL AND (expires_at IS NULL OR expires_at > ?)", args![now])
    } else {
        filter.and("(released_at IS NOT NULL OR expires_at <= ?)", args![now])
    };
    filter.and_if("id < ?", before).end("ORDER BY id DESC LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let shape = |is_active, owner: Option<&str>, before| {
        let wanted = QuarantineFilter { is_active, owner: owner.map(str::to_owned) };
        listed(backend, ProjectId(1), &wanted, before, Timestamp(0), 1)
    };
    vec![shape(true, None, None), shape(false, None, Some(1)), shape(true, Some(""), Some(1))]
}
