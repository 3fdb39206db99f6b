//! Histories that are one: a test whose results come under another path than
//! before keeps its id, and the identity of the other path leads to it. Every
//! result says under which of the two it came, so each join can be undone.

use callboard_domain::ids::{HistoryJoinId, ProjectId, TestCaseId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Bulk, Column, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

macro_rules! select {
    ($tail:literal) => {
        concat!(
            "SELECT id, project_id, test_case_id, joined_id, kept_path, joined_path, path, state, reason, created_at, \
             decided_at, decided_by, is_by_people FROM history_joins ",
            $tail
        )
    };
}

statements! {
    /// Whether a pair is known, in either order. ix: history_joins_pair
    KNOWN = "SELECT 1 FROM history_joins WHERE project_id = $1 AND (test_case_id = $2 AND joined_id = $3 OR test_case_id = $3 AND joined_id = $2)";
    /// One join, locked. PK
    LOCK = select!("WHERE project_id = $1 AND id = $2 for_update()");
    /// The join of a pair, locked. ix: history_joins_pair
    LOCK_PAIR = select!("WHERE project_id = $1 AND test_case_id = $2 AND joined_id = $3 for_update()");
    /// Joins of a project, the newest first. ix: history_joins_by_state
    LIST = select!("WHERE project_id = $1 AND state in_texts($2) AND id < $3 ORDER BY id DESC LIMIT $4");
    /// The next join of a project on which there is work. ix: history_joins_by_state
    NEXT = select!("WHERE project_id = $1 AND state IN ('joining', 'undoing') AND id > $2 ORDER BY id LIMIT $3");
    /// Joins into some tests. ix: history_joins_pair
    OF_KEPT = select!("WHERE project_id = $1 AND test_case_id in_ints($2) AND state IN ('joining', 'joined') ORDER BY id");
    /// Joins of some tests, whatever became of them. ix: history_joins_pair
    OF_TESTS_KEPT = select!("WHERE project_id = $1 AND test_case_id in_ints($2) ORDER BY id");
    /// And those by which some tests lead to another. ix: history_joins_of_joined
    OF_TESTS_JOINED = select!("WHERE project_id = $1 AND joined_id in_ints($2) ORDER BY id");
    /// Joins that show one of some paths under another. ix: history_joins_by_state
    OF_EARLIER_PATHS = select!("WHERE project_id = $1 AND state IN ('joining', 'joined') \
        AND (kept_path in_texts($2) AND kept_path <> path OR joined_path in_texts($2) AND joined_path <> path) ORDER BY id");
    /// Whether a project has any. ix: history_joins_by_state
    HAS_ANY = "SELECT 1 FROM history_joins WHERE project_id = $1 AND state IN ('joining', 'joined') LIMIT 1";
    /// Moves a join on. PK
    SET_STATE = "UPDATE history_joins SET state = $3, reason = $4, decided_at = COALESCE($5, decided_at), \
        decided_by = CASE WHEN $5 IS NULL THEN decided_by ELSE $6 END, \
        is_by_people = CASE WHEN $5 IS NULL THEN is_by_people ELSE $7 END WHERE project_id = $1 AND id = $2";
}

static INSERT: Bulk = Bulk::new(
    "history_joins::INSERT",
    2,
    "INSERT INTO history_joins (id, project_id, test_case_id, joined_id, kept_path, joined_path, path, state, reason, created_at) \
     SELECT r.id, $1, r.test_case_id, r.joined_id, r.kept_path, r.joined_path, r.path, r.state, r.reason, $2 FROM",
    &[
        Column::Int("id"),
        Column::Int("test_case_id"),
        Column::Int("joined_id"),
        Column::Text("kept_path"),
        Column::Text("joined_path"),
        Column::Text("path"),
        Column::Text("state"),
        Column::Text("reason"),
    ],
    "WHERE true ON CONFLICT (project_id, test_case_id, joined_id) DO NOTHING",
);

pub(crate) static BULKS: &[&Bulk] = &[&INSERT];

/// What has become of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinState {
    /// People decide.
    Proposed,
    /// Results count together; earlier ones are still being moved.
    Joining,
    /// The histories are one.
    Joined,
    /// Results are being moved back.
    Undoing,
    /// The histories are two again, and stay two.
    Undone,
    /// People refused it.
    Dismissed,
}

impl JoinState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Proposed, Self::Joining, Self::Joined, Self::Undoing, Self::Undone, Self::Dismissed];

    /// The word used on the wire and in columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Joining => "joining",
            Self::Joined => "joined",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
            Self::Dismissed => "dismissed",
        }
    }

    /// Whether the histories are one at present.
    #[must_use]
    pub const fn is_one(self) -> bool {
        matches!(self, Self::Joining | Self::Joined)
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

/// A stored join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryJoin {
    /// Id.
    pub id: HistoryJoinId,
    /// Project.
    pub project: ProjectId,
    /// The test that keeps its id.
    pub kept: TestCaseId,
    /// The test that leads to it.
    pub joined: TestCaseId,
    /// The path under which results of the kept test come.
    pub kept_path: String,
    /// The path under which results of the joined test come.
    pub joined_path: String,
    /// The path of both.
    pub path: String,
    /// What has become of it.
    pub state: JoinState,
    /// Why it was made, proposed or undone, for people.
    pub reason: String,
    /// When.
    pub created_at: Timestamp,
    /// When somebody decided, or the service did.
    pub decided_at: Option<Timestamp>,
    /// Who decided, where accounts are used.
    pub decided_by: Option<UserId>,
    /// Whether people decided last, and not the service.
    pub is_by_people: bool,
}

impl HistoryJoin {
    /// Whether results of a test come under a path that is not the one both are shown under.
    #[must_use]
    pub fn is_earlier(&self, test: TestCaseId) -> bool {
        test == self.kept && self.kept_path != self.path
            || test == self.joined && self.joined_path != self.path
    }
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// The service itself.
    Service,
    /// Somebody, whom installations without accounts do not know.
    Person(Option<UserId>),
}

/// A join to be noted.
#[derive(Debug, Clone, Copy)]
pub struct NewJoin<'a> {
    /// The test that keeps its id.
    pub kept: TestCaseId,
    /// The test that leads to it.
    pub joined: TestCaseId,
    /// The paths under which their results come.
    pub paths: (&'a str, &'a str),
    /// The path of both.
    pub path: &'a str,
    /// Proposed, or already decided.
    pub state: JoinState,
    /// Why, for people.
    pub reason: &'a str,
}

fn read(row: &Row) -> Result<HistoryJoin> {
    let mut r = row.reader();
    Ok(HistoryJoin {
        id: HistoryJoinId(r.int()?),
        project: ProjectId(r.int()?),
        kept: TestCaseId(r.int()?),
        joined: TestCaseId(r.int()?),
        kept_path: r.text()?,
        joined_path: r.text()?,
        path: r.text()?,
        state: JoinState::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown state of a join"))?,
        reason: r.text()?,
        created_at: r.time()?,
        decided_at: r.opt_time()?,
        decided_by: r.opt_int()?.map(UserId),
        is_by_people: r.int()? != 0,
    })
}

/// Notes joins; pairs that are known stay as they are.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn note(
    session: &mut Session,
    project: ProjectId,
    joins: &[NewJoin<'_>],
    now: Timestamp,
) -> Result<()> {
    if joins.is_empty() {
        return Ok(());
    }
    let mut rows = INSERT.rows();
    let ids = ids::allocate(session, Kind::HistoryJoin, joins.len()).await?;
    for (id, join) in ids.into_iter().zip(joins) {
        let (kept_path, joined_path) = join.paths;
        rows.push([
            id.into(),
            join.kept.into(),
            join.joined.into(),
            kept_path.into(),
            joined_path.into(),
            join.path.into(),
            join.state.as_str().into(),
            join.reason.into(),
        ]);
    }
    session.execute_bulk(&INSERT, args![project, now], rows).await?;
    Ok(())
}

/// Notes a pair that nobody has decided about, and answers it locked; `None` when it is known,
/// in either order.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn propose(
    session: &mut Session,
    project: ProjectId,
    join: &NewJoin<'_>,
    now: Timestamp,
) -> Result<Option<HistoryJoin>> {
    if session.first(&KNOWN, args![project, join.kept, join.joined]).await?.is_some() {
        return Ok(None);
    }
    note(session, project, std::slice::from_ref(join), now).await?;
    session.first(&LOCK_PAIR, args![project, join.kept, join.joined]).await?.as_ref().map(read).transpose()
}

/// One join, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(
    session: &mut Session,
    project: ProjectId,
    id: HistoryJoinId,
) -> Result<Option<HistoryJoin>> {
    session.first(&LOCK, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Joins of a project in some states behind an id, the newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    states: &[JoinState],
    before: Option<HistoryJoinId>,
    limit: i64,
) -> Result<Vec<HistoryJoin>> {
    let states: Vec<String> = states.iter().map(|state| state.as_str().to_owned()).collect();
    let before = before.map_or(i64::MAX, HistoryJoinId::get);
    session.all(&LIST, args![project, states, before, limit]).await?.iter().map(read).collect()
}

/// The next joins of a project on which there is work.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn unfinished(
    session: &mut Session,
    project: ProjectId,
    after: HistoryJoinId,
    limit: i64,
) -> Result<Vec<HistoryJoin>> {
    session.all(&NEXT, args![project, after, limit]).await?.iter().map(read).collect()
}

/// The joins that lead to some tests.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_kept(session: &mut Session, project: ProjectId, kept: Vec<i64>) -> Result<Vec<HistoryJoin>> {
    session.all(&OF_KEPT, args![project, kept]).await?.iter().map(read).collect()
}

/// All joins of some tests, whatever became of them.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_tests(
    session: &mut Session,
    project: ProjectId,
    tests: Vec<i64>,
) -> Result<Vec<HistoryJoin>> {
    let args = args![project, tests];
    let [kept, joined] = session.each([(&OF_TESTS_KEPT, args.clone()), (&OF_TESTS_JOINED, args)]).await?;
    kept.iter().chain(&joined).map(read).collect()
}

/// The joins by which results under one of some paths count for another.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_earlier_paths(
    session: &mut Session,
    project: ProjectId,
    paths: Vec<String>,
) -> Result<Vec<HistoryJoin>> {
    session.all(&OF_EARLIER_PATHS, args![project, paths]).await?.iter().map(read).collect()
}

/// Whether histories of a project are joined.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn has_any(session: &mut Session, project: ProjectId) -> Result<bool> {
    Ok(session.first(&HAS_ANY, args![project]).await?.is_some())
}

/// Moves a join on. `decided` says when and by whom, where that is news.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set_state(
    session: &mut Session,
    join: &HistoryJoin,
    state: JoinState,
    reason: &str,
    decided: Option<(Timestamp, Decider)>,
) -> Result<()> {
    let (at, by) = decided.unzip();
    let (user, is_by_people) = match by {
        Some(Decider::Person(user)) => (user, true),
        Some(Decider::Service) | None => (None, false),
    };
    let user = user.map(UserId::get);
    let args = args![join.project, join.id, state.as_str(), reason, at, user, i64::from(is_by_people)];
    session.execute(&SET_STATE, args).await?;
    Ok(())
}
