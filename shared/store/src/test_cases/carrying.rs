//! Identities that lead to another test: a test whose reporter sends another path
//! than before goes on with its history under the new one.
//!
//! Invariant: an identity leads to at most one test, and that leads to no other.

use std::collections::{HashMap, HashSet};

use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::ingest::{IdentityHash, SourcePaths, identity_hash};
use callboard_domain::time::Timestamp;

use super::{Stored, TestCaseRow, TestIdentity, read_stored, search_text, search_words, split_suite_path};
use crate::Result;
use crate::db::{Row, Session, args, statements};
use crate::history_joins::{self, JoinState, NewJoin};
use crate::search::{self, SearchKind};
use crate::source_paths;

macro_rules! select_identity {
    ($tail:literal) => {
        concat!(
            "SELECT c.id, COALESCE(c.reported_path, c.file_path), c.suite_path, c.title, c.joined_to, c.is_rooted FROM test_cases c ",
            $tail
        )
    };
}

statements! {
    /// Identities behind a test. PK
    IDENTITIES_BEHIND = select_identity!("WHERE c.project_id = $1 AND c.id > $2 ORDER BY c.id LIMIT $3");
    /// Some identities. ix: test_cases_identity
    BY_IDENTITIES = select_identity!("WHERE c.project_id = $1 AND c.identity_hash in_bytes($2) ORDER BY c.id");
    /// Identities of a run that no run from the root of a work tree has reported. PK
    NOT_ROOTED = "SELECT DISTINCT c.id FROM executions e JOIN test_cases c ON c.project_id = e.project_id \
        AND c.id = COALESCE(e.reported_as, e.test_case_id) WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 \
        AND c.is_rooted = 0";
    /// Marks identities that such a run has reported. PK
    MARK_ROOTED = "UPDATE test_cases SET is_rooted = 1 WHERE project_id = $1 AND id in_ints($2) AND is_rooted = 0";
    /// Tests of a run that lead to another one. PK
    LEFT_BEHIND = "SELECT DISTINCT c.id FROM executions e JOIN test_cases c ON c.project_id = e.project_id AND c.id = e.test_case_id \
        WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND c.joined_to IS NOT NULL";
    /// The tests to which some lead. PK
    JOINED_TO = "SELECT id, joined_to FROM test_cases WHERE project_id = $1 AND id in_ints($2) AND joined_to IS NOT NULL";
    /// Lets a test lead to another, or to none. PK
    SET_JOINED = "UPDATE test_cases SET joined_to = $3 WHERE project_id = $1 AND id = $2";
    /// Sets the path under which a test is shown. PK
    SET_PATH = "UPDATE test_cases SET reported_path = NULLIF(COALESCE(reported_path, file_path), $3), file_path = $3, search_text = $4 \
        WHERE project_id = $1 AND id = $2";
}

/// What a missing test goes on with.
#[derive(Debug)]
pub(super) struct Carried {
    /// The test with the earlier path.
    pub(super) earlier: TestCaseId,
    earlier_path: String,
    path: String,
}

/// A stored identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRow {
    /// Id of its own test.
    pub id: TestCaseId,
    /// The path under which its results come.
    pub path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Own title.
    pub title: String,
    /// The test it leads to.
    pub joined_to: Option<TestCaseId>,
    /// Whether a run whose paths begin at the root of a work tree has reported it.
    pub is_rooted: bool,
}

impl IdentityRow {
    /// The test for which its results count.
    #[must_use]
    pub fn counts_for(&self) -> TestCaseId {
        self.joined_to.unwrap_or(self.id)
    }

    /// The identity of the same test in another file.
    #[must_use]
    pub fn at(&self, path: &str) -> IdentityHash {
        identity_hash(path, &self.suite_path, &self.title)
    }
}

fn read_identity(row: &Row) -> Result<IdentityRow> {
    let mut r = row.reader();
    Ok(IdentityRow {
        id: TestCaseId(r.int()?),
        path: r.text()?,
        suite_path: split_suite_path(&r.text()?),
        title: r.text()?,
        joined_to: r.opt_int()?.map(TestCaseId),
        is_rooted: r.int()? != 0,
    })
}

/// What each of some missing tests of a run goes on with, by identity: the test under the
/// path that earlier releases of the reporter sent, where nothing speaks against it. What is
/// not certain is left to a job, which asks people.
pub(super) async fn carried(
    session: &mut Session,
    project: ProjectId,
    missing: &[&TestIdentity],
    paths: &SourcePaths,
) -> Result<HashMap<[u8; 32], Carried>> {
    let mut candidates = HashMap::new();
    for identity in missing {
        let earlier = paths.prefix.earlier_path(&identity.file_path);
        if let Some(earlier) = earlier.filter(|earlier| !paths.is_shared(earlier)) {
            let hash = identity_hash(&earlier, &identity.suite_path, &identity.title);
            candidates.insert(hash, (*identity, earlier));
        }
    }
    if candidates.is_empty() {
        return Ok(HashMap::new());
    }
    let hashes = candidates.keys().map(|hash| hash.to_vec()).collect();
    let mut known = read_stored(session, project, hashes).await?;
    known.retain(|_, row| row.joined.is_none() && !row.is_rooted);
    if known.is_empty() {
        return Ok(HashMap::new());
    }
    // A test that has a join with another path already may be meant by several.
    let ids = known.values().map(|row| row.id.get()).collect();
    let taken: HashSet<TestCaseId> = history_joins::of_tests(session, project, ids)
        .await?
        .iter()
        .flat_map(|join| [join.kept, join.joined])
        .collect();
    let earlier = known.keys().filter_map(|hash| candidates.get(hash)).map(|(_, earlier)| earlier.clone());
    let shared = source_paths::shared_among(session, project, earlier.collect()).await?;
    let carried = known.into_iter().filter_map(|(hash, row)| {
        let (identity, earlier_path) = candidates.remove(&hash)?;
        let is_free = !taken.contains(&row.id) && !shared.contains(&earlier_path);
        let path = identity.file_path.clone();
        is_free.then_some((identity.hash, Carried { earlier: row.id, earlier_path, path }))
    });
    Ok(carried.collect())
}

/// Why a history was carried over, for people.
const REASON: &str = "the reporter sends paths from the root of the sources now";

/// Notes what was carried.
pub(super) async fn note(
    session: &mut Session,
    project: ProjectId,
    carried: &HashMap<[u8; 32], Carried>,
    stored: &HashMap<[u8; 32], Stored>,
    now: Timestamp,
) -> Result<()> {
    let mut joins = Vec::new();
    for (hash, Carried { earlier, earlier_path, path }) in carried {
        // Another run may have created it meanwhile, and decided otherwise.
        if let Some(Stored { id, joined: Some(joined), .. }) = stored.get(hash)
            && id == earlier
        {
            let paths = (earlier_path.as_str(), path.as_str());
            let (kept, joined, state) = (*earlier, *joined, JoinState::Joining);
            joins.push(NewJoin { kept, joined, paths, path, state, reason: REASON });
        }
    }
    joins.sort_unstable_by_key(|join| (join.kept, join.joined));
    history_joins::note(session, project, &joins, now).await?;
    Ok(())
}

/// At most `limit` identities of a project behind a test, by id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn identities_behind(
    session: &mut Session,
    project: ProjectId,
    after: TestCaseId,
    limit: i64,
) -> Result<Vec<IdentityRow>> {
    session.all(&IDENTITIES_BEHIND, args![project, after, limit]).await?.iter().map(read_identity).collect()
}

/// Those of some identities that are stored.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn identities(
    session: &mut Session,
    project: ProjectId,
    hashes: &[IdentityHash],
) -> Result<Vec<IdentityRow>> {
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.to_vec()).collect();
    session.all(&BY_IDENTITIES, args![project, hashes]).await?.iter().map(read_identity).collect()
}

/// The tests to which some of these lead.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn joined_to(
    session: &mut Session,
    project: ProjectId,
    ids: Vec<i64>,
) -> Result<HashMap<TestCaseId, TestCaseId>> {
    let rows = session.all(&JOINED_TO, args![project, ids]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((TestCaseId(r.int()?), TestCaseId(r.int()?)))
        })
        .collect()
}

/// Identities of a run that no run whose paths begin at the root of a work tree has reported.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn not_rooted(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<TestCaseId>> {
    let (first, last) = ExecutionId::range_of(run);
    let rows = session.all(&NOT_ROOTED, args![project, run, first, last]).await?;
    rows.iter().map(|row| row.reader().int().map(TestCaseId)).collect()
}

/// Notes that such a run has reported some identities.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn mark_rooted(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<()> {
    super::lock(session, project, ids.clone()).await?;
    session.execute(&MARK_ROOTED, args![project, ids]).await?;
    Ok(())
}

/// Tests that lead to another one, of which a run has results all the same: they were on
/// their way when the test was joined.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn left_behind(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<i64>> {
    let (first, last) = ExecutionId::range_of(run);
    let rows = session.all(&LEFT_BEHIND, args![project, run, first, last]).await?;
    rows.iter().map(|row| row.reader().int()).collect()
}

/// Lets a test lead to another, or be one of its own again. It is not found by
/// its words while it leads to another.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn lead_to(session: &mut Session, test: &TestCaseRow, kept: Option<TestCaseId>) -> Result<()> {
    let TestCaseRow { project, id, .. } = *test;
    session.execute(&SET_JOINED, args![project, id, kept.map(TestCaseId::get)]).await?;
    let words = match kept {
        Some(_) => Vec::new(),
        None => search_words(&test.title, &test.file_path, &test.suite_path),
    };
    search::replace(session, project, SearchKind::TestCase, id.get(), words).await
}

/// Shows a test under another path than before.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_path(session: &mut Session, test: &TestCaseRow, path: &str) -> Result<()> {
    let TestCaseRow { project, id, title, suite_path, .. } = test;
    let text = search_text(title, path, suite_path);
    session.execute(&SET_PATH, args![*project, *id, path, text]).await?;
    let words = search_words(title, path, suite_path);
    search::replace(session, *project, SearchKind::TestCase, id.get(), words).await
}
