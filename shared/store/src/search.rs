//! Words by which things are found: each word of a name, title, path, label or
//! branch points at what it belongs to.
//!
//! Invariant: the words of an entity are exactly those of its present texts;
//! whoever changes a text replaces them in the same transaction.

use std::collections::HashMap;

use callboard_domain::ids::ProjectId;

use crate::Result;
use crate::db::{Backend, Bulk, Column, Filter, Session, Statement, args};

/// What a word belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SearchKind {
    /// A project, by the words of its name and label.
    Project = 1,
    /// A run, by the words of its label and branch.
    Run = 2,
    /// A test case, by the words of its title, describe titles and path.
    TestCase = 3,
    /// A failure cluster, by the words of its signature and title.
    Cluster = 4,
    /// A run, by its commit.
    Commit = 5,
}

/// Forgets the words of an entity. ix: search_terms_of_entity
static FORGET: Statement = Statement::new(
    "search::FORGET",
    "DELETE FROM search_terms WHERE project_id = $1 AND kind = $2 AND entity_id in_ints($3)",
);

// The times of entities are asked for with two lists of the same length, their projects and their ids. SQLite finds a
// row by its id alone; PostgreSQL would look for every id in every project, were it not told which belong together, and
// would read the whole table, were it not told to look for each: it takes a few hundred for more than they are. Of
// runs it is asked for a column that no index has. Otherwise it would answer from an index of all runs of the project
// by time once the table was vacuumed, and go through that whole for each of them.

/// When some runs started.
static RUN_TIMES: Statement = Statement::of_each(
    "search::RUN_TIMES",
    "SELECT id, order_at FROM test_runs WHERE project_id in_ints($1) AND id in_ints($2)",
    "SELECT asked.id, found.order_at FROM unnest($1::bigint[], $2::bigint[]) AS asked(project_id, id) CROSS JOIN LATERAL \
     (SELECT r.order_at FROM test_runs r WHERE r.project_id = asked.project_id AND r.id BETWEEN asked.id AND asked.id \
     AND r.next_ordinal > 0 ORDER BY r.id LIMIT 1) AS found",
);

/// When some clusters were seen last, those that lists show: nothing is left of the others.
static CLUSTER_TIMES: Statement = Statement::of_each(
    "search::CLUSTER_TIMES",
    "SELECT id, last_seen_at FROM failure_clusters \
     WHERE project_id in_ints($1) AND id in_ints($2) AND status <> 'merged' AND occurrences > 0",
    "SELECT asked.id, found.last_seen_at FROM unnest($1::bigint[], $2::bigint[]) AS asked(project_id, id) CROSS JOIN LATERAL \
     (SELECT c.last_seen_at FROM failure_clusters c WHERE c.project_id = asked.project_id AND c.id BETWEEN asked.id AND asked.id \
     AND c.status <> 'merged' AND c.occurrences > 0 ORDER BY c.id LIMIT 1) AS found",
);

/// When some tests ran last. Lane 0 holds all runs of a project.
static TEST_TIMES: Statement = Statement::of_each(
    "search::TEST_TIMES",
    "SELECT s.test_case_id, s.last_order_at FROM test_cases c CROSS JOIN test_state s \
     WHERE c.project_id in_ints($1) AND c.id in_ints($2) \
     AND s.project_id = c.project_id AND s.lane_id = 0 AND s.test_case_id = c.id",
    "SELECT asked.id, found.last_order_at FROM unnest($1::bigint[], $2::bigint[]) AS asked(project_id, id) CROSS JOIN LATERAL \
     (SELECT s.last_order_at FROM test_state s WHERE s.project_id = asked.project_id AND s.lane_id = 0 \
     AND s.test_case_id BETWEEN asked.id AND asked.id ORDER BY s.test_case_id LIMIT 1) AS found",
);

/// The first words between two in each of some projects, each found by a look
/// behind the one before. ix: search_terms_of_project
static LONGER_WORDS: Statement = Statement::of_each(
    "search::LONGER_WORDS",
    "WITH RECURSIVE w(project_id, term, place) AS (SELECT p.value, (SELECT t.term FROM search_terms t \
     WHERE t.project_id = p.value AND t.kind = $2 AND t.term > $3 AND t.term < $4 ORDER BY t.term LIMIT 1), 1 FROM json_each($1) p \
     UNION ALL SELECT w.project_id, (SELECT t.term FROM search_terms t WHERE t.project_id = w.project_id AND t.kind = $2 \
     AND t.term > w.term AND t.term < $4 ORDER BY t.term LIMIT 1), w.place + 1 FROM w WHERE w.term IS NOT NULL AND w.place < $5) \
     SELECT project_id, term FROM w WHERE term IS NOT NULL",
    "WITH RECURSIVE w(project_id, term, place) AS (SELECT p.id, (SELECT t.term FROM search_terms t \
     WHERE t.project_id = p.id AND t.kind = $2 AND t.term > $3 AND t.term < $4 ORDER BY t.project_id, t.kind, t.term LIMIT 1), \
     1 FROM unnest($1::bigint[]) AS p(id) \
     UNION ALL SELECT w.project_id, (SELECT t.term FROM search_terms t WHERE t.project_id = w.project_id AND t.kind = $2 \
     AND t.term > w.term AND t.term < $4 ORDER BY t.project_id, t.kind, t.term LIMIT 1), w.place + 1 \
     FROM w WHERE w.term IS NOT NULL AND w.place < $5) \
     SELECT project_id, term FROM w WHERE term IS NOT NULL",
);

/// Every statement of this module.
pub(crate) static STATEMENTS: &[&Statement] =
    &[&FORGET, &RUN_TIMES, &CLUSTER_TIMES, &TEST_TIMES, &LONGER_WORDS];

/// Up to so many projects, each is looked through by itself for longer words.
const FEW_PROJECTS: usize = 64;
/// Least rows taken of each then.
const LEAST_SHARE: i64 = 20;

static ADD: Bulk = Bulk::new(
    "search::ADD",
    2,
    "INSERT INTO search_terms (kind, term, project_id, entity_id) SELECT $1, r.term, $2, r.entity_id FROM",
    &[Column::Text("term"), Column::Int("entity_id")],
    "WHERE true ON CONFLICT DO NOTHING",
);

pub(crate) static BULKS: &[&Bulk] = &[&ADD];

/// Adds words of entities of one kind. Writers of the same entities hold them
/// locked, so no two add the same word of one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add<W>(
    session: &mut Session,
    project: ProjectId,
    kind: SearchKind,
    words: impl IntoIterator<Item = (W, i64)>,
) -> Result<()>
where
    W: Into<String>,
{
    let mut words: Vec<(String, i64)> = words.into_iter().map(|(word, id)| (word.into(), id)).collect();
    // In the order of the key: neighbours share pages.
    words.sort_unstable();
    words.dedup();
    let mut rows = ADD.rows();
    for (word, id) in words {
        rows.push([word.into(), id.into()]);
    }
    session.execute_bulk(&ADD, args![kind as i64, project], rows).await?;
    Ok(())
}

/// Forgets the words of some entities.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn forget(
    session: &mut Session,
    project: ProjectId,
    kind: SearchKind,
    entities: Vec<i64>,
) -> Result<()> {
    session.execute(&FORGET, args![project, kind as i64, entities]).await?;
    Ok(())
}

/// Replaces the words of one entity.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn replace(
    session: &mut Session,
    project: ProjectId,
    kind: SearchKind,
    entity: i64,
    words: Vec<String>,
) -> Result<()> {
    forget(session, project, kind, vec![entity]).await?;
    add(session, project, kind, words.into_iter().map(|word| (word, entity))).await
}

/// A word that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedWord {
    /// The word.
    pub text: String,
    /// Whether longer words that begin so count too.
    pub is_prefix: bool,
}

/// Something that has all words asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its project.
    pub project: ProjectId,
    /// Its id.
    pub entity: i64,
    /// Whether the word that led to it was that very word.
    pub is_exact: bool,
}

/// Things of a kind that have all of `words`, those of the caller's projects
/// only: first those with the very first word, then those with a longer one,
/// newest first within a project; at most `limit` rows. Beside them stands whether
/// some may have been left out.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn find(
    session: &mut Session,
    projects: Option<&[ProjectId]>,
    kind: SearchKind,
    words: &[AskedWord],
    limit: i64,
) -> Result<(Vec<Found>, bool)> {
    let backend = session.backend();
    let mut found = match candidates(backend, projects, kind, words, true, limit) {
        Some(filter) => read(session, filter, true).await?,
        None => Vec::new(),
    };
    let room = limit - count_of(&found);
    let Some(filter) = candidates(backend, projects, kind, words, false, room) else {
        return Ok((found, room <= 0));
    };
    let longer = read(session, filter, false).await?;
    let mut is_cut = count_of(&longer) >= room;
    if let Some(few) = projects.filter(|projects| is_few(projects)) {
        let share = share_of(few.len(), room);
        is_cut |= few.iter().any(|project| {
            let own = longer.iter().filter(|found| found.project == *project).count();
            i64::try_from(own).is_ok_and(|own| own >= share)
        });
    }
    found.extend(longer);
    Ok((found, is_cut))
}

fn count_of(found: &[Found]) -> i64 {
    i64::try_from(found.len()).unwrap_or(i64::MAX)
}

/// Whether each of a caller's projects is looked through by itself.
fn is_few(projects: &[ProjectId]) -> bool {
    projects.len() <= FEW_PROJECTS
}

/// The rows taken of each of some projects: an equal share of all, and enough to
/// show what a single one has.
fn share_of(projects: usize, room: i64) -> i64 {
    (room / i64::try_from(projects).unwrap_or(room).max(1)).max(LEAST_SHARE).min(room)
}

/// The things of a kind that came last in each of some projects and have all of
/// `words`, the first one as it is; at most `limit` of a project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn newest_of(
    session: &mut Session,
    projects: Vec<i64>,
    kind: SearchKind,
    words: &[AskedWord],
    limit: i64,
) -> Result<Vec<Found>> {
    let Some((first, others)) = words.split_first() else { return Ok(Vec::new()) };
    let firsts = vec![first.text.clone(); projects.len()];
    let filter = newest(session.backend(), (projects, firsts), kind, others, limit);
    read(session, filter, true).await
}

/// The same with a longer word that begins like the first one: at most `limit`
/// of a project with each of such words it has, of which `most` are looked at.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn newest_with_longer_words(
    session: &mut Session,
    projects: Vec<i64>,
    kind: SearchKind,
    words: &[AskedWord],
    (most, limit): (i64, i64),
) -> Result<Vec<Found>> {
    let Some((first, others)) = words.split_first().filter(|(first, _)| first.is_prefix) else {
        return Ok(Vec::new());
    };
    let range = args![projects, kind as i64, &first.text, above(&first.text), most];
    let longer = session.all(&LONGER_WORDS, range).await?;
    let longer: Vec<(i64, String)> = longer
        .iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.int()?, r.text()?))
        })
        .collect::<Result<_>>()?;
    if longer.is_empty() {
        return Ok(Vec::new());
    }
    let filter = newest(session.backend(), longer.into_iter().unzip(), kind, others, limit);
    read(session, filter, false).await
}

async fn read(session: &mut Session, filter: Filter, is_exact: bool) -> Result<Vec<Found>> {
    let rows = session.list(filter).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(Found { project: ProjectId(r.int()?), entity: r.int()?, is_exact })
        })
        .collect()
}

/// When some runs of some projects started, ms since 1970, by id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn run_times(
    session: &mut Session,
    (projects, runs): (Vec<i64>, Vec<i64>),
) -> Result<HashMap<i64, i64>> {
    times(session, &RUN_TIMES, projects, runs).await
}

/// When some tests of some projects ran last, ms since 1970, by id.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn test_times(
    session: &mut Session,
    (projects, tests): (Vec<i64>, Vec<i64>),
) -> Result<HashMap<i64, i64>> {
    times(session, &TEST_TIMES, projects, tests).await
}

/// When some clusters of some projects were seen last, ms since 1970, by id;
/// without those that were merged or have no occurrence left.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn cluster_times(
    session: &mut Session,
    (projects, clusters): (Vec<i64>, Vec<i64>),
) -> Result<HashMap<i64, i64>> {
    times(session, &CLUSTER_TIMES, projects, clusters).await
}

async fn times(
    session: &mut Session,
    statement: &Statement,
    projects: Vec<i64>,
    entities: Vec<i64>,
) -> Result<HashMap<i64, i64>> {
    if entities.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.all(statement, args![projects, entities]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((r.int()?, r.int()?))
        })
        .collect()
}

/// The end of the words that begin so, which is above all of them.
fn above(prefix: &str) -> String {
    format!("{prefix}\u{10ffff}")
}

fn candidates(
    backend: Backend,
    projects: Option<&[ProjectId]>,
    kind: SearchKind,
    words: &[AskedWord],
    is_exact: bool,
    limit: i64,
) -> Option<Filter> {
    let (first, others) = words.split_first()?;
    if limit <= 0 || (!is_exact && !first.is_prefix) {
        return None;
    }
    let ids = projects.map(|projects| projects.iter().map(|project| project.get()).collect::<Vec<_>>());
    let projects = match (projects, ids) {
        (Some(few), Some(ids)) if !is_exact && is_few(few) => {
            return Some(longer_of_few(backend, ids, kind, (first, others), limit));
        }
        (_, ids) => ids,
    };
    let base = "SELECT t.project_id, t.entity_id FROM search_terms t WHERE t.kind = $1";
    let mut filter = Filter::new(backend, base, args![kind as i64]);
    filter = if is_exact {
        filter.and("t.term = ?", args![&first.text])
    } else {
        filter.and("t.term > ?", args![&first.text]).and("t.term < ?", args![above(&first.text)])
    };
    filter = match projects {
        Some(projects) => filter.and("t.project_id in_ints(?)", args![projects]),
        // Not those of hidden projects.
        None => filter.and("EXISTS (SELECT 1 FROM projects p WHERE p.id = t.project_id)", args![]),
    };
    Some(
        with_words(filter, others).end(
            "ORDER BY t.kind DESC, t.term DESC, t.project_id DESC, t.entity_id DESC LIMIT ?",
            args![limit],
        ),
    )
}

/// Those with a longer word than the first one, looked for project by project: a
/// caller who sees few of many does not wait for a walk through the words of all.
/// SQLite takes more than its share of a project whose last word is a common one.
fn longer_of_few(
    backend: Backend,
    projects: Vec<i64>,
    kind: SearchKind,
    (first, others): (&AskedWord, &[AskedWord]),
    limit: i64,
) -> Filter {
    let share = share_of(projects.len(), limit);
    let args = args![projects, kind as i64, &first.text, above(&first.text)];
    match backend {
        Backend::Postgres => {
            let base = "SELECT n.project_id, n.entity_id FROM unnest($1::bigint[]) AS p(id) \
                CROSS JOIN LATERAL (SELECT t.project_id, t.entity_id FROM search_terms t WHERE t.project_id = p.id \
                AND t.kind = $2 AND t.term > $3 AND t.term < $4";
            with_words(Filter::new(backend, base, args), others).end(
                "ORDER BY t.project_id DESC, t.kind DESC, t.term DESC, t.entity_id DESC LIMIT ?) n LIMIT ?",
                args![share, limit],
            )
        }
        Backend::Sqlite => {
            // What the planner is told of the table makes it take the words of all projects for few.
            let base = "SELECT t.project_id, t.entity_id FROM json_each($1) p CROSS JOIN search_terms t INDEXED BY search_terms_of_project \
                WHERE t.project_id = p.value AND t.kind = $2 AND t.term > $3 AND t.term < $4 AND t.term >= COALESCE((SELECT t.term \
                FROM search_terms t INDEXED BY search_terms_of_project \
                WHERE t.project_id = p.value AND t.kind = $2 AND t.term > $3 AND t.term < $4";
            let since = with_words(Filter::new(backend, base, args), others)
                .end("ORDER BY t.term DESC LIMIT 1 OFFSET ?), '')", args![share - 1]);
            with_words(since, others)
                .end("ORDER BY t.term DESC, t.project_id DESC, t.entity_id DESC LIMIT ?", args![limit])
        }
    }
}

/// With all of some words.
fn with_words(filter: Filter, words: &[AskedWord]) -> Filter {
    words.iter().fold(filter, |filter, word| {
        let end = if word.is_prefix { above(&word.text) } else { word.text.clone() };
        filter.and(
            "EXISTS (SELECT 1 FROM search_terms o WHERE o.project_id = t.project_id AND o.kind = t.kind \
             AND o.entity_id = t.entity_id AND o.term >= ? AND o.term <= ?)",
            args![&word.text, end],
        )
    })
}

/// The newest of each project with the word beside it, in two lists of the same
/// length. On PostgreSQL they are asked for side by side. SQLite has no such
/// join: there it is asked from which on they are.
fn newest(
    backend: Backend,
    (projects, firsts): (Vec<i64>, Vec<String>),
    kind: SearchKind,
    others: &[AskedWord],
    limit: i64,
) -> Filter {
    let args = args![projects, kind as i64, firsts];
    match backend {
        Backend::Postgres => {
            let base = "SELECT n.project_id, n.entity_id FROM unnest($1::bigint[], $3::text[]) AS w(project_id, term) \
                CROSS JOIN LATERAL (SELECT t.project_id, t.entity_id FROM search_terms t WHERE t.project_id = w.project_id \
                AND t.kind = $2 AND t.term = w.term";
            with_words(Filter::new(backend, base, args), others).end(
                "ORDER BY t.kind DESC, t.term DESC, t.project_id DESC, t.entity_id DESC LIMIT ?) n",
                args![limit],
            )
        }
        Backend::Sqlite => {
            let base = "SELECT t.project_id, t.entity_id FROM json_each($1) p CROSS JOIN json_each($3) w CROSS JOIN search_terms t \
                WHERE w.key = p.key AND t.kind = $2 AND t.term = w.value AND t.project_id = p.value \
                AND t.entity_id >= COALESCE((SELECT t.entity_id \
                FROM search_terms t WHERE t.kind = $2 AND t.term = w.value AND t.project_id = p.value";
            let since = with_words(Filter::new(backend, base, args), others)
                .end("ORDER BY t.entity_id DESC LIMIT 1 OFFSET ?), 0)", args![limit - 1]);
            with_words(since, others)
        }
    }
}

/// What the question can look like, for the test that prepares every
/// statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let word = |is_prefix| AskedWord { text: String::new(), is_prefix };
    let words = [word(true), word(true), word(false)];
    let some = [ProjectId(1)];
    let kind = SearchKind::TestCase;
    let many = vec![ProjectId(1); FEW_PROJECTS + 1];
    [(None, true), (Some(&some[..]), true), (Some(&some[..]), false), (None, false), (Some(&many[..]), false)]
        .into_iter()
        .filter_map(|(projects, is_exact)| candidates(backend, projects, kind, &words, is_exact, 1))
        .chain([newest(backend, (vec![1], vec![String::new()]), kind, &words, 1)])
        .collect()
}
