//! Test cases: the identity of a test across runs, and the attributes that
//! its newest run mirrors onto it.

use std::collections::{HashMap, HashSet};

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::ingest::{IdentityHash, SourcePaths};
use callboard_domain::search::{parts, words};
use callboard_domain::time::Timestamp;

use crate::db::{Bulk, Column, Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::projects::like_contains;
use crate::search::{self, SearchKind};
use crate::{Result, StoreError};

pub mod carrying;

use carrying::Carried;

/// Between the describe titles of a stored suite path.
pub const SUITE_SEPARATOR: char = '\u{1f}';

/// Whether a test has a text in its title, its file or its describe titles.
pub(crate) const HAS_TEXT: &str = "c.search_text LIKE ? ESCAPE '\\'";

/// What each [`HAS_TEXT`] of a filter is asked with.
pub(crate) fn asked_texts(text: Option<&str>) -> Vec<String> {
    text.map(parts).unwrap_or_default().iter().map(|part| like_contains(part)).collect()
}

/// What tells one test from another, with the attributes of this run.
#[derive(Debug, Clone)]
pub struct TestIdentity {
    /// SHA-256 over file, describe path and title.
    pub hash: [u8; 32],
    /// Normalised path of the file.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Own title.
    pub title: String,
    /// Attributes told by this run.
    pub meta: TestMeta,
}

/// Attributes a run tells about a test; the newest run wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestMeta {
    /// Tags without `@`.
    pub tags: Vec<String>,
    /// Owner.
    pub owner: Option<String>,
    /// Priority word.
    pub priority: Option<String>,
    /// Feature.
    pub feature: Option<String>,
    /// Link to a description.
    pub link: Option<String>,
}

/// Where the owner of a test is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerSource {
    /// In an annotation of the test.
    Annotation,
    /// In the CODEOWNERS file of the repository.
    CodeOwners,
}

impl OwnerSource {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::CodeOwners => "codeowners",
        }
    }
}

/// A stored test case.
#[derive(Debug, Clone)]
pub struct TestCaseRow {
    /// Id.
    pub id: TestCaseId,
    /// Project.
    pub project: ProjectId,
    /// Normalised path of the file.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Own title.
    pub title: String,
    /// Attributes of the newest run; the owner of CODEOWNERS where that names none.
    pub meta: TestMeta,
    /// Where the owner is named; `None` without one.
    pub owner_source: Option<OwnerSource>,
    /// First seen.
    pub created_at: Timestamp,
}

macro_rules! select_test_case {
    ($tail:literal) => {
        concat!(
            "SELECT c.id, c.project_id, c.file_path, c.suite_path, c.title, c.tags, COALESCE(c.owner, c.code_owner), \
             CASE WHEN c.owner IS NULL THEN 1 ELSE 0 END, c.priority, c.feature, c.link, c.created_at FROM test_cases c ",
            $tail
        )
    };
}

statements! {
    /// The test case of an identity. ix: test_cases_identity
    BY_IDENTITY = "SELECT COALESCE(joined_to, id) FROM test_cases WHERE project_id = $1 AND identity_hash = $2";
    /// One test case.
    BY_ID = select_test_case!("WHERE c.project_id = $1 AND c.id = $2");
    /// Several test cases.
    BY_IDS = select_test_case!("WHERE c.project_id = $1 AND c.id in_ints($2)");
    /// Several test cases of some projects. PK
    BY_IDS_IN = select_test_case!("WHERE c.project_id in_ints($1) AND c.id in_ints($2)");
    /// The files under which results of some test cases come. PostgreSQL is asked for a column that the index of files does
    /// not have: once the table was vacuumed it would go through all of that for each of them.
    REPORTED_PATHS = "SELECT id, COALESCE(reported_path, file_path) FROM test_cases WHERE project_id = $1 AND id in_ints($2)",
        whole "vv", postgres "SELECT c.id, COALESCE(c.reported_path, c.file_path) FROM unnest($2::bigint[]) AS asked(id) CROSS JOIN LATERAL \
        (SELECT id, file_path, reported_path FROM test_cases WHERE project_id = $1 AND id BETWEEN asked.id AND asked.id \
        AND octet_length(title) >= 0 ORDER BY id LIMIT 1) AS c";
    /// Tests of some files. ix: test_cases_by_file
    OF_FILES = "SELECT file_path, id FROM test_cases WHERE project_id = $1 AND file_path in_texts($2) AND joined_to IS NULL LIMIT $3",
        postgres "SELECT asked.path, c.id FROM unnest($2::text[]) AS asked(path) CROSS JOIN LATERAL \
        (SELECT id FROM test_cases WHERE project_id = $1 AND file_path = asked.path AND joined_to IS NULL OFFSET 0) AS c LIMIT $3";
    /// Files of a project. ix: test_cases_by_file
    FILES = "SELECT DISTINCT file_path FROM test_cases WHERE project_id = $1 AND joined_to IS NULL LIMIT $2";
    /// What is stored of some identities, with the attributes of the tests they lead to. ix: test_cases_identity
    BY_HASHES = "SELECT c.id, c.identity_hash, c.joined_to, c.is_rooted, CASE WHEN k.id IS NULL THEN c.tags ELSE k.tags END, CASE WHEN k.id IS NULL THEN c.owner ELSE k.owner END, CASE WHEN k.id IS NULL THEN c.priority ELSE k.priority END, CASE WHEN k.id IS NULL THEN c.feature ELSE k.feature END, CASE WHEN k.id IS NULL THEN c.link ELSE k.link END, CASE WHEN k.id IS NULL THEN c.meta_at ELSE k.meta_at END FROM test_cases c \
        LEFT JOIN test_cases k ON k.project_id = c.project_id AND k.id = c.joined_to \
        WHERE c.project_id = $1 AND c.identity_hash in_bytes($2)",
        whole "vbvvvvvvvv", postgres "SELECT c.id, c.identity_hash, c.joined_to, c.is_rooted, CASE WHEN k.id IS NULL THEN c.tags ELSE k.tags END, CASE WHEN k.id IS NULL THEN c.owner ELSE k.owner END, CASE WHEN k.id IS NULL THEN c.priority ELSE k.priority END, CASE WHEN k.id IS NULL THEN c.feature ELSE k.feature END, CASE WHEN k.id IS NULL THEN c.link ELSE k.link END, CASE WHEN k.id IS NULL THEN c.meta_at ELSE k.meta_at END \
        FROM unnest($2::bytea[]) AS asked(hash) CROSS JOIN LATERAL \
        (SELECT * FROM test_cases WHERE project_id = $1 AND identity_hash BETWEEN asked.hash AND asked.hash \
        ORDER BY identity_hash LIMIT 1) AS c LEFT JOIN LATERAL \
        (SELECT * FROM test_cases WHERE project_id = $1 AND id BETWEEN c.joined_to AND c.joined_to ORDER BY id LIMIT 1) AS k ON true";
    /// Marks tests of a project that nothing counts for any more.
    LET_GO = "UPDATE test_cases SET meta_at = $3 WHERE project_id = $1 AND id in_ints($2) AND meta_at > $3 AND NOT EXISTS \
        (SELECT 1 FROM test_state s WHERE s.project_id = $1 AND s.lane_id = 0 AND s.test_case_id = test_cases.id AND s.total > 0) \
        RETURNING id";
    /// Takes the mark from tests that run again.
    TAKE_BACK = "UPDATE test_cases SET meta_at = $3 WHERE project_id = $1 AND id in_ints($2) AND meta_at = $4 RETURNING id";
    /// Mirrors attributes of a newer run.
    SET_META = "UPDATE test_cases SET tags = $3, owner = $4, priority = $5, feature = $6, link = $7, meta_at = $8 \
        WHERE project_id = $1 AND id = $2 AND meta_at <= $8";
    /// Notes why a test is flaky.
    SET_ROOT_CAUSE = "UPDATE test_cases SET root_cause = $3 WHERE project_id = $1 AND id = $2";
    /// Locks some tests.
    LOCK = "SELECT id FROM test_cases WHERE project_id = $1 AND id in_ints($2) ORDER BY id for_update()";
    /// Why some tests are flaky.
    ROOT_CAUSES = "SELECT id, root_cause FROM test_cases WHERE project_id in_ints($1) AND id in_ints($2) AND root_cause IS NOT NULL";
    /// Forgets the tags of a test.
    CLEAR_TAGS = "DELETE FROM test_case_tags WHERE project_id = $1 AND test_case_id = $2";
    /// The tags, owners and features in use, most used first.
    TAGS = "SELECT tag FROM test_case_tags WHERE project_id = $1 GROUP BY tag ORDER BY COUNT(*) DESC, tag LIMIT $2";
    /// Owners in use. ix: test_cases_by_owner
    OWNERS = "SELECT COALESCE(owner, code_owner) FROM test_cases WHERE project_id = $1 AND COALESCE(owner, code_owner) IS NOT NULL \
        GROUP BY COALESCE(owner, code_owner) ORDER BY COALESCE(owner, code_owner) LIMIT $2";
    /// Features in use.
    FEATURES = "SELECT feature FROM test_cases WHERE project_id = $1 AND feature IS NOT NULL GROUP BY feature ORDER BY feature LIMIT $2";
}

static INSERT: Bulk = Bulk::new(
    "test_cases::INSERT",
    2,
    "INSERT INTO test_cases (id, project_id, identity_hash, file_path, suite_path, title, search_text, tags, owner, \
     priority, feature, link, meta_at, joined_to, created_at) \
     SELECT r.id, $1, r.identity_hash, r.file_path, r.suite_path, r.title, r.search_text, r.tags, r.owner, r.priority, \
     r.feature, r.link, r.meta_at, r.joined_to, $2 FROM",
    &[
        Column::Int("id"),
        Column::Bytes("identity_hash"),
        Column::Text("file_path"),
        Column::Text("suite_path"),
        Column::Text("title"),
        Column::Text("search_text"),
        Column::Text("tags"),
        Column::Text("owner"),
        Column::Text("priority"),
        Column::Text("feature"),
        Column::Text("link"),
        Column::Int("meta_at"),
        Column::Int("joined_to"),
    ],
    "WHERE true ON CONFLICT (project_id, identity_hash) DO NOTHING",
);
static INSERT_TAGS: Bulk = Bulk::new(
    "test_cases::INSERT_TAGS",
    1,
    "INSERT INTO test_case_tags (project_id, tag, test_case_id) SELECT $1, r.tag, r.test_case_id FROM",
    &[Column::Text("tag"), Column::Int("test_case_id")],
    "WHERE true ON CONFLICT DO NOTHING",
);

pub(crate) static BULKS: &[&Bulk] = &[&INSERT, &INSERT_TAGS];

fn read(row: &Row) -> Result<TestCaseRow> {
    let mut r = row.reader();
    let (id, project) = (TestCaseId(r.int()?), ProjectId(r.int()?));
    let (file_path, suite_path, title) = (r.text()?, split_suite_path(&r.text()?), r.text()?);
    let (tags, owner) = (read_tags(&r.text()?)?, r.opt_text()?);
    let source = if r.int()? == 0 { OwnerSource::Annotation } else { OwnerSource::CodeOwners };
    Ok(TestCaseRow {
        id,
        project,
        file_path,
        suite_path,
        title,
        owner_source: owner.as_ref().map(|_| source),
        meta: TestMeta { tags, owner, priority: r.opt_text()?, feature: r.opt_text()?, link: r.opt_text()? },
        created_at: r.time()?,
    })
}

fn read_tags(text: &str) -> Result<Vec<String>> {
    serde_json::from_str(text).map_err(|_| StoreError::Damaged("a list of tags"))
}

fn write_tags(tags: &[String]) -> Result<String> {
    serde_json::to_string(tags).map_err(|_| StoreError::Damaged("a list of tags"))
}

fn split_suite_path(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split(SUITE_SEPARATOR).map(str::to_owned).collect() }
}

/// `meta_at` of a test whose runs are all deleted: it is known, but does not
/// count, until a run brings it again.
const NO_RUN: i64 = i64::MIN;

/// The test cases of a batch.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Id by identity hash.
    pub ids: HashMap<[u8; 32], TestCaseId>,
    /// The tests of identities that lead to another one, which is in `ids`.
    pub joined: HashMap<[u8; 32], TestCaseId>,
    /// How many were new, or had no run left.
    pub created: usize,
    /// The first test that was made, if any.
    pub first_created: Option<TestCaseId>,
    /// Whether some go on with a history that they had under another path.
    pub carries: bool,
}

impl Resolved {
    fn take(&mut self, hash: [u8; 32], known: &Stored) {
        self.ids.insert(hash, known.id);
        if let Some(joined) = known.joined {
            self.joined.insert(hash, joined);
        }
    }

    /// Whether several identities are one test.
    #[must_use]
    pub fn has_joined_pairs(&self) -> bool {
        let tests: HashSet<TestCaseId> = self.ids.values().copied().collect();
        !self.joined.is_empty() && tests.len() < self.ids.len()
    }
}

/// The test cases of a batch, when [`resolve`] would find all of them as they should
/// be and write nothing; `None` otherwise.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn resolved(
    session: &mut Session,
    project: ProjectId,
    identities: &[TestIdentity],
    at: Timestamp,
) -> Result<Option<Resolved>> {
    let hashes = identities.iter().map(|identity| identity.hash.to_vec()).collect();
    let stored = read_stored(session, project, hashes).await?;
    let mut resolved = Resolved::default();
    for identity in identities {
        match stored.get(&identity.hash) {
            Some(known) if !known.has_no_run() && !known.is_changed_by(identity, at) => {
                resolved.take(identity.hash, known);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(resolved))
}

/// Finds the test cases of a batch and creates the missing ones. `at` is the
/// start of the run: attributes are mirrored only from runs at least as new as
/// the one that set them last. `identities` must be free of repeats. With
/// `earlier`, a missing test goes on with the history that it has under the path
/// that an earlier release of its reporter sent.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn resolve(
    session: &mut Session,
    project: ProjectId,
    mut identities: Vec<TestIdentity>,
    earlier: Option<&SourcePaths>,
    at: Timestamp,
    now: Timestamp,
) -> Result<Resolved> {
    // Writers of the same tests take their locks in one order.
    identities.sort_unstable_by_key(|identity| identity.hash);
    let mut resolved = Resolved::default();
    let mut changed = Vec::new();
    let hashes = identities.iter().map(|identity| identity.hash.to_vec()).collect();
    let mut stored = read_stored(session, project, hashes).await?;
    let missing: Vec<&TestIdentity> =
        identities.iter().filter(|identity| !stored.contains_key(&identity.hash)).collect();
    if !missing.is_empty() {
        let mut carried = HashMap::new();
        if let Some(earlier) = earlier {
            carried = carrying::carried(session, project, &missing, earlier).await?;
        }
        let created = create(session, project, &missing, &carried, at, now).await?;
        resolved.created = created.counting;
        resolved.first_created = created.first;
        stored.extend(created.stored);
        carrying::note(session, project, &carried, &stored, now).await?;
        resolved.carries = !carried.is_empty();
    }
    let mut without_run = Vec::new();
    for identity in identities {
        let known = stored.get(&identity.hash).ok_or(StoreError::Damaged("a test case was not stored"))?;
        resolved.take(identity.hash, known);
        if known.has_no_run() {
            without_run.push(known.id.get());
        }
        if known.is_changed_by(&identity, at) {
            changed.push((known.id, identity.meta));
        }
    }
    if !without_run.is_empty() {
        // Another run may have brought some of them meanwhile.
        resolved.created += take_back(session, project, without_run, at).await?;
    }
    for (id, meta) in changed {
        set_meta(session, project, id, &meta, at).await?;
    }
    Ok(resolved)
}

/// Lets those of some tests no longer count whose runs are all deleted; answers
/// how many they were.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn let_go(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<usize> {
    Ok(session.all(&LET_GO, args![project, ids, NO_RUN]).await?.len())
}

/// Lets those of some tests count again that were let go; answers how many they
/// were. `at` is the start of the run that has them.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn take_back(
    session: &mut Session,
    project: ProjectId,
    ids: Vec<i64>,
    at: Timestamp,
) -> Result<usize> {
    Ok(session.all(&TAKE_BACK, args![project, ids, at, NO_RUN]).await?.len())
}

struct Stored {
    /// Of the test for which results count.
    id: TestCaseId,
    /// Of the test of this identity, where that leads to another.
    joined: Option<TestCaseId>,
    /// Whether a run whose paths begin at the root of a work tree has reported it.
    is_rooted: bool,
    meta: TestMeta,
    meta_at: Timestamp,
}

impl Stored {
    fn has_no_run(&self) -> bool {
        self.meta_at.millis() == NO_RUN
    }

    /// Whether a run that began then tells other attributes.
    fn is_changed_by(&self, identity: &TestIdentity, at: Timestamp) -> bool {
        self.meta_at <= at && self.meta != identity.meta
    }
}

async fn read_stored(
    session: &mut Session,
    project: ProjectId,
    hashes: Vec<Vec<u8>>,
) -> Result<HashMap<[u8; 32], Stored>> {
    session.all(&BY_HASHES, args![project, hashes]).await?.iter().map(read_stored_row).collect()
}

fn read_stored_row(row: &Row) -> Result<([u8; 32], Stored)> {
    let mut r = row.reader();
    let own = TestCaseId(r.int()?);
    let hash = r.bytes()?.try_into().map_err(|_| StoreError::Damaged("an identity hash"))?;
    let joined_to = r.opt_int()?.map(TestCaseId);
    let is_rooted = r.int()? != 0;
    let meta = TestMeta {
        tags: read_tags(&r.text()?)?,
        owner: r.opt_text()?,
        priority: r.opt_text()?,
        feature: r.opt_text()?,
        link: r.opt_text()?,
    };
    let (id, joined) = joined_to.map_or((own, None), |kept| (kept, Some(own)));
    Ok((hash, Stored { id, joined, is_rooted, meta, meta_at: r.time()? }))
}

struct Created {
    /// How many count: those that lead to no other.
    counting: usize,
    /// The first of all.
    first: Option<TestCaseId>,
    stored: HashMap<[u8; 32], Stored>,
}

/// Creates tests, those that are carried leading to the one they are carried by.
async fn create(
    session: &mut Session,
    project: ProjectId,
    missing: &[&TestIdentity],
    carried: &HashMap<[u8; 32], Carried>,
    at: Timestamp,
    now: Timestamp,
) -> Result<Created> {
    let fresh = ids::allocate(session, Kind::TestCase, missing.len()).await?;
    let mut rows = INSERT.rows();
    for (id, identity) in fresh.iter().zip(missing) {
        let kept = carried.get(&identity.hash).map(|carried| carried.earlier);
        rows.push([
            (*id).into(),
            identity.hash.into(),
            (&identity.file_path).into(),
            identity.suite_path.join(&SUITE_SEPARATOR.to_string()).into(),
            (&identity.title).into(),
            search_text(&identity.title, &identity.file_path, &identity.suite_path).into(),
            write_tags(&identity.meta.tags)?.into(),
            identity.meta.owner.clone().into(),
            identity.meta.priority.clone().into(),
            identity.meta.feature.clone().into(),
            identity.meta.link.clone().into(),
            kept.map_or(at, |_| Timestamp(NO_RUN)).into(),
            kept.map(TestCaseId::get).into(),
        ]);
    }
    session.execute_bulk(&INSERT, args![project, now], rows).await?;
    // A concurrent run may have created some of them first: what is stored counts.
    let hashes = missing.iter().map(|identity| identity.hash.to_vec()).collect();
    let stored = read_stored(session, project, hashes).await?;
    let (mut listed, mut found_by, mut counting) = (Vec::new(), Vec::new(), 0);
    let mut tags = INSERT_TAGS.rows();
    for (id, identity) in fresh.iter().zip(missing) {
        let known = stored.get(&identity.hash).ok_or(StoreError::Damaged("a test case was not stored"))?;
        if known.joined.unwrap_or(known.id).get() != *id {
            continue;
        }
        listed.push(*id);
        if known.joined.is_some() {
            continue;
        }
        counting += 1;
        let words = search_words(&identity.title, &identity.file_path, &identity.suite_path);
        found_by.extend(words.into_iter().map(|word| (word, *id)));
        for tag in &identity.meta.tags {
            tags.push([tag.into(), (*id).into()]);
        }
    }
    session.execute_bulk(&INSERT_TAGS, args![project], tags).await?;
    search::add(session, project, SearchKind::TestCase, found_by).await?;
    ids::list(session, Listed::TestCase, project, &listed).await?;
    Ok(Created { counting, first: listed.first().copied().map(TestCaseId), stored })
}

fn search_text(title: &str, file_path: &str, suite_path: &[String]) -> String {
    format!("{title} {file_path} {}", suite_path.join(" ")).to_lowercase()
}

fn search_words(title: &str, file_path: &str, suite_path: &[String]) -> Vec<String> {
    words([title, file_path].into_iter().chain(suite_path.iter().map(String::as_str)))
}

/// Locks some tests until the transaction ends.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, project: ProjectId, ids: Vec<i64>) -> Result<()> {
    session.all(&LOCK, args![project, ids]).await?;
    Ok(())
}

/// Notes why a test is flaky.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set_root_cause(
    session: &mut Session,
    project: ProjectId,
    id: TestCaseId,
    cause: &str,
) -> Result<()> {
    session.write(&SET_ROOT_CAUSE, args![project, id, cause]).await
}

/// Why some tests are flaky, as far as it is known.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn root_causes(
    session: &mut Session,
    projects: Vec<i64>,
    ids: Vec<i64>,
) -> Result<HashMap<TestCaseId, String>> {
    let rows = session.all(&ROOT_CAUSES, args![projects, ids]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((TestCaseId(r.int()?), r.text()?))
        })
        .collect()
}

async fn set_meta(
    session: &mut Session,
    project: ProjectId,
    id: TestCaseId,
    meta: &TestMeta,
    at: Timestamp,
) -> Result<()> {
    let done = session
        .execute(
            &SET_META,
            args![
                project,
                id,
                write_tags(&meta.tags)?,
                meta.owner.clone(),
                meta.priority.clone(),
                meta.feature.clone(),
                meta.link.clone(),
                at
            ],
        )
        .await?;
    if done == 1 {
        session.execute(&CLEAR_TAGS, args![project, id]).await?;
        let mut tags = INSERT_TAGS.rows();
        for tag in &meta.tags {
            tags.push([tag.into(), id.get().into()]);
        }
        session.execute_bulk(&INSERT_TAGS, args![project], tags).await?;
    }
    Ok(())
}

/// The test case of an identity.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn find(
    session: &mut Session,
    project: ProjectId,
    identity: IdentityHash,
) -> Result<Option<TestCaseId>> {
    let row = session.first(&BY_IDENTITY, args![project, identity]).await?;
    row.map(|row| row.reader().int().map(TestCaseId)).transpose()
}

/// One test case.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: TestCaseId) -> Result<Option<TestCaseRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Several test cases of a project by id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(
    session: &mut Session,
    project: ProjectId,
    mut ids: Vec<i64>,
) -> Result<HashMap<TestCaseId, TestCaseRow>> {
    ids.sort_unstable();
    ids.dedup();
    let rows = session.all(&BY_IDS, args![project, ids]).await?;
    rows.iter().map(|row| read(row).map(|case| (case.id, case))).collect()
}

/// Several test cases of some projects by id.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_in(
    session: &mut Session,
    projects: Vec<i64>,
    ids: Vec<i64>,
) -> Result<HashMap<TestCaseId, TestCaseRow>> {
    let rows = session.all(&BY_IDS_IN, args![projects, ids]).await?;
    rows.iter().map(|row| read(row).map(|case| (case.id, case))).collect()
}

/// The files under which results of some test cases of a project come.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn reported_paths(
    session: &mut Session,
    project: ProjectId,
    ids: Vec<i64>,
) -> Result<HashMap<TestCaseId, String>> {
    let rows = session.all(&REPORTED_PATHS, args![project, ids]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((TestCaseId(r.int()?), r.text()?))
        })
        .collect()
}

/// The tests of some files, at most `limit` in all.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_files(
    session: &mut Session,
    project: ProjectId,
    files: Vec<String>,
    limit: i64,
) -> Result<HashMap<String, Vec<i64>>> {
    let mut tests: HashMap<String, Vec<i64>> = HashMap::with_capacity(files.len());
    for row in session.all(&OF_FILES, args![project, files, limit]).await? {
        let mut r = row.reader();
        tests.entry(r.text()?).or_default().push(r.int()?);
    }
    Ok(tests)
}

/// The files in which a project has tests, at most `limit`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn files(session: &mut Session, project: ProjectId, limit: i64) -> Result<Vec<String>> {
    let rows = session.all(&FILES, args![project, limit]).await?;
    rows.iter().map(|row| row.reader().text()).collect()
}

/// The words by which the tests of a project can be filtered.
#[derive(Debug, Clone)]
pub struct Facets {
    /// Tags, most used first.
    pub tags: Vec<String>,
    /// Owners.
    pub owners: Vec<String>,
    /// Features.
    pub features: Vec<String>,
}

/// Tags, owners and features in use, at most `limit` of each.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn facets(session: &mut Session, project: ProjectId, limit: i64) -> Result<Facets> {
    let mut lists = Vec::with_capacity(3);
    for statement in [&TAGS, &OWNERS, &FEATURES] {
        let rows = session.all(statement, args![project, limit]).await?;
        lists.push(rows.iter().map(|row| row.reader().text()).collect::<Result<Vec<_>>>()?);
    }
    let [tags, owners, features] =
        <[Vec<String>; 3]>::try_from(lists).map_err(|_| StoreError::Damaged("facets"))?;
    Ok(Facets { tags, owners, features })
}
