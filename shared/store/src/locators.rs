//! Locators that found something: one row per call site of a test. What did
//! not change is not written again.

use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;

use crate::db::{Bulk, Column, Row, Session, args, statements};
use crate::{Result, StoreError};

/// Rows read of one test.
pub const MAX_PER_TEST: i64 = 300;
/// Rows read of a locator elsewhere in the project.
const MAX_ELSEWHERE: i64 = 20;

/// A locator as it is written by ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLocator {
    /// Test.
    pub test_case: TestCaseId,
    /// `file:line:column` of the call.
    pub location: String,
    /// Method.
    pub method: String,
    /// The whole chain as text.
    pub raw: String,
    /// Arguments, JSON.
    pub args: String,
    /// SHA-256 of method and arguments.
    pub args_fp: [u8; 32],
    /// The element, JSON.
    pub element: String,
    /// Other locators of it, JSON.
    pub alternatives: String,
    /// SHA-256 over all of it.
    pub content_hash: [u8; 32],
}

/// What ingest needs to know of a stored locator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLocator {
    /// Test.
    pub test_case: TestCaseId,
    /// Call site.
    pub location: String,
    /// SHA-256 over its content.
    pub content_hash: [u8; 32],
    /// Start of the run that wrote it last.
    pub last_seen_at: Timestamp,
}

/// A stored locator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatorRow {
    /// Test.
    pub test_case: TestCaseId,
    /// `file:line:column` of the call.
    pub location: String,
    /// Method.
    pub method: String,
    /// The whole chain as text.
    pub raw: String,
    /// Arguments, JSON.
    pub args: String,
    /// SHA-256 of method and arguments.
    pub args_fp: [u8; 32],
    /// The element, JSON; `{}` when nobody saw it.
    pub element: String,
    /// Other locators of it, JSON.
    pub alternatives: String,
    /// What a person chose, JSON.
    pub picked: Option<String>,
    /// The run in which this locator was first seen here.
    pub since_run: RunId,
    /// The run that wrote the row last.
    pub last_run: RunId,
    /// Start of that run.
    pub last_seen_at: Timestamp,
}

macro_rules! select_locator {
    ($tail:literal) => {
        concat!(
            "SELECT l.test_case_id, l.location, l.used_method, l.used_raw, l.used_args, l.args_fp, l.element, l.alternatives, \
             l.picked, l.since_run_id, l.last_run_id, l.last_seen_at FROM locator_snapshots l ",
            $tail
        )
    };
}

statements! {
    /// What is known of the tests of a batch. PK
    KNOWN = "SELECT test_case_id, location, content_hash, last_seen_at FROM locator_snapshots \
        WHERE project_id = $1 AND test_case_id in_ints($2)";
    /// Call sites of one test. PK
    OF_CASE = select_locator!("WHERE l.project_id = $1 AND l.test_case_id = $2 ORDER BY l.location LIMIT $3");
    /// A locator in other tests. ix: locator_snapshots_args
    ELSEWHERE = select_locator!("WHERE l.project_id = $1 AND l.args_fp = $2 AND l.test_case_id <> $3 \
        ORDER BY l.test_case_id, l.location LIMIT $4");
    /// Notes what a person chose. PK
    PICK = "UPDATE locator_snapshots SET picked = $4 WHERE project_id = $1 AND test_case_id = $2 AND location = $3";
}

static UPSERT: Bulk = Bulk::new(
    "locators::UPSERT",
    3,
    "INSERT INTO locator_snapshots (project_id, test_case_id, location, used_method, used_raw, used_args, args_fp, element, \
     alternatives, since_run_id, last_run_id, last_seen_at, content_hash) \
     SELECT $1, r.test_case_id, r.location, r.used_method, r.used_raw, r.used_args, r.args_fp, r.element, r.alternatives, \
     $2, $2, $3, r.content_hash FROM",
    &[
        Column::Int("test_case_id"),
        Column::Text("location"),
        Column::Text("used_method"),
        Column::Text("used_raw"),
        Column::Text("used_args"),
        Column::Bytes("args_fp"),
        Column::Text("element"),
        Column::Text("alternatives"),
        Column::Bytes("content_hash"),
    ],
    // Another locator at the same place makes what was chosen for the old one void.
    "WHERE true ON CONFLICT (project_id, test_case_id, location) DO UPDATE SET used_method = excluded.used_method, \
     used_raw = excluded.used_raw, used_args = excluded.used_args, element = excluded.element, \
     alternatives = excluded.alternatives, content_hash = excluded.content_hash, \
     picked = CASE WHEN locator_snapshots.args_fp = excluded.args_fp THEN locator_snapshots.picked END, \
     since_run_id = CASE WHEN locator_snapshots.args_fp = excluded.args_fp THEN locator_snapshots.since_run_id \
     ELSE excluded.since_run_id END, args_fp = excluded.args_fp, last_run_id = excluded.last_run_id, \
     last_seen_at = excluded.last_seen_at WHERE locator_snapshots.last_seen_at <= excluded.last_seen_at",
);
static FORGET: Bulk = Bulk::new(
    "locators::FORGET",
    2,
    "DELETE FROM locator_snapshots WHERE project_id = $1 AND last_seen_at <= $2 AND (test_case_id, location) IN \
     (SELECT r.test_case_id, r.location FROM",
    &[Column::Int("test_case_id"), Column::Text("location")],
    ")",
);

pub(crate) static BULKS: &[&Bulk] = &[&UPSERT, &FORGET];

/// What is known of some tests.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn known(session: &mut Session, project: ProjectId, cases: Vec<i64>) -> Result<Vec<KnownLocator>> {
    let rows = session.all(&KNOWN, args![project, cases]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(KnownLocator {
                test_case: TestCaseId(r.int()?),
                location: r.text()?,
                content_hash: hash(r.bytes()?)?,
                last_seen_at: r.time()?,
            })
        })
        .collect()
}

/// Writes locators a run used; what a later run wrote stays. `locators` are
/// sorted by test and location, so that writers lock in one order.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn write(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    at: Timestamp,
    locators: &[NewLocator],
) -> Result<()> {
    let mut rows = UPSERT.rows();
    for locator in locators {
        rows.push([
            locator.test_case.get().into(),
            (&locator.location).into(),
            (&locator.method).into(),
            (&locator.raw).into(),
            (&locator.args).into(),
            locator.args_fp.into(),
            (&locator.element).into(),
            (&locator.alternatives).into(),
            locator.content_hash.into(),
        ]);
    }
    session.execute_bulk(&UPSERT, args![project, run, at], rows).await?;
    Ok(())
}

/// Forgets call sites that a passing test does not have any more, unless a
/// later run saw them. Sorted as for [`fn@write`].
///
/// # Errors
/// [`StoreError::Database`].
pub async fn forget(
    session: &mut Session,
    project: ProjectId,
    at: Timestamp,
    gone: &[(TestCaseId, String)],
) -> Result<()> {
    let mut rows = FORGET.rows();
    for (case, location) in gone {
        rows.push([case.get().into(), location.into()]);
    }
    session.execute_bulk(&FORGET, args![project, at], rows).await?;
    Ok(())
}

/// Call sites of a test, by location, at most [`MAX_PER_TEST`].
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_case(session: &mut Session, project: ProjectId, case: TestCaseId) -> Result<Vec<LocatorRow>> {
    session.all(&OF_CASE, args![project, case, MAX_PER_TEST]).await?.iter().map(read).collect()
}

/// Where other tests use a locator, at most 20.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn elsewhere(
    session: &mut Session,
    project: ProjectId,
    args_fp: [u8; 32],
    except: TestCaseId,
) -> Result<Vec<LocatorRow>> {
    session.all(&ELSEWHERE, args![project, args_fp, except, MAX_ELSEWHERE]).await?.iter().map(read).collect()
}

/// Notes what a person chose at a call site.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn pick(
    session: &mut Session,
    project: ProjectId,
    case: TestCaseId,
    location: &str,
    picked: &str,
) -> Result<bool> {
    Ok(session.execute(&PICK, args![project, case, location, picked]).await? == 1)
}

fn read(row: &Row) -> Result<LocatorRow> {
    let mut r = row.reader();
    Ok(LocatorRow {
        test_case: TestCaseId(r.int()?),
        location: r.text()?,
        method: r.text()?,
        raw: r.text()?,
        args: r.text()?,
        args_fp: hash(r.bytes()?)?,
        element: r.text()?,
        alternatives: r.text()?,
        picked: r.opt_text()?,
        since_run: RunId(r.int()?),
        last_run: RunId(r.int()?),
        last_seen_at: r.time()?,
    })
}

fn hash(bytes: Vec<u8>) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| StoreError::Damaged("a hash of a locator"))
}
