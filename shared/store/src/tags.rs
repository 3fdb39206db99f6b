//! Tags: words with a colour that group projects. They belong to the
//! installation; which projects carry them belongs to the projects.

use std::collections::{BTreeSet, HashMap};

use callboard_domain::annotations::TagColor;
use callboard_domain::ids::{ProjectId, TagId};
use callboard_domain::time::Timestamp;

use crate::db::{Backend, Bulk, Column, Filter, Row, Session, args, statements};
use crate::ids::{self, Kind};
use crate::projects::escape_like;
use crate::{Result, StoreError};

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagRow {
    /// Id.
    pub id: TagId,
    /// The word as it is shown.
    pub text: String,
    /// Its colour.
    pub color: TagColor,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

const SELECT: &str = "SELECT t.id, t.text, t.color, t.created_at, t.updated_at FROM tags t WHERE 1 = 1";

statements! {
    /// A new tag, unless its word is taken. ix: tags_text
    INSERT = "INSERT INTO tags (id, text, text_key, color, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5) \
        ON CONFLICT (text_key) DO NOTHING";
    /// One tag, locked.
    LOCK = "SELECT t.id, t.text, t.color, t.created_at, t.updated_at FROM tags t WHERE t.id = $1 for_update()";
    /// Tags by id.
    BY_IDS = "SELECT t.id, t.text, t.color, t.created_at, t.updated_at FROM tags t WHERE t.id in_ints($1) ORDER BY t.text_key, t.id";
    /// Who has a word. ix: tags_text
    HOLDER = "SELECT id FROM tags WHERE text_key = $1";
    /// Changes a tag.
    SAVE = "UPDATE tags SET text = $2, text_key = $3, color = $4, updated_at = $5 WHERE id = $1";
    /// Removes a tag.
    DELETE = "DELETE FROM tags WHERE id = $1";
    /// Takes a tag off every project. ix: project_tags_of_tag
    DELETE_USES = "DELETE FROM project_tags WHERE tag_id = $1";
    /// How many projects carry some tags.
    COUNT_PROJECTS = "SELECT tag_id, COUNT(*) FROM project_tags WHERE tag_id in_ints($1) GROUP BY tag_id";
    /// Tags of some projects. PK
    OF_PROJECTS = "SELECT p.project_id, t.id, t.text, t.color, t.created_at, t.updated_at FROM project_tags p \
        JOIN tags t ON t.id = p.tag_id WHERE p.project_id in_ints($1) ORDER BY p.project_id, t.text_key, t.id";
    /// Takes all tags off a project. PK
    CLEAR = "DELETE FROM project_tags WHERE project_id = $1";
}

static ASSIGN: Bulk = Bulk::new(
    "tags::ASSIGN",
    1,
    "INSERT INTO project_tags (project_id, tag_id) SELECT $1, r.tag_id FROM",
    &[Column::Int("tag_id")],
    "WHERE true",
);

pub(crate) static BULKS: &[&Bulk] = &[&ASSIGN];

/// What makes two words the same tag.
#[must_use]
pub fn text_key(text: &str) -> String {
    text.to_lowercase()
}

fn read(row: &Row, skip: bool) -> Result<TagRow> {
    let mut r = row.reader();
    if skip {
        r.int()?;
    }
    Ok(TagRow {
        id: TagId(r.int()?),
        text: r.text()?,
        color: TagColor::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown colour of a tag"))?,
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

/// Creates a tag; `None` when its word is taken.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn create(
    session: &mut Session,
    text: &str,
    color: TagColor,
    now: Timestamp,
) -> Result<Option<TagRow>> {
    let id = ids::allocate_one(session, Kind::Tag).await?;
    let created = session.execute(&INSERT, args![id, text, text_key(text), color.as_str(), now]).await? == 1;
    let row = TagRow { id: TagId(id), text: text.to_owned(), color, created_at: now, updated_at: now };
    Ok(created.then_some(row))
}

/// A tag, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(session: &mut Session, id: TagId) -> Result<Option<TagRow>> {
    session.first(&LOCK, args![id]).await?.as_ref().map(|row| read(row, false)).transpose()
}

/// Writes a tag that was read with [`lock`]; `false` when its word is taken.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save(session: &mut Session, tag: &TagRow) -> Result<bool> {
    let key = text_key(&tag.text);
    let holder = session.first(&HOLDER, args![&key]).await?;
    if let Some(row) = holder
        && row.reader().int()? != tag.id.get()
    {
        return Ok(false);
    }
    let saved =
        session.execute(&SAVE, args![tag.id, &tag.text, key, tag.color.as_str(), tag.updated_at]).await;
    match saved {
        Ok(_) => Ok(true),
        // Two saves at the same moment; the caller's transaction is over.
        Err(error) if error.is_taken() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a tag, and takes it off every project. Answers whether there was
/// one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete(session: &mut Session, id: TagId) -> Result<bool> {
    session.execute(&DELETE_USES, args![id]).await?;
    Ok(session.execute(&DELETE, args![id]).await? == 1)
}

/// Tags by id, alphabetical; missing ones are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_many(session: &mut Session, ids: Vec<i64>) -> Result<Vec<TagRow>> {
    session.all(&BY_IDS, args![ids]).await?.iter().map(|row| read(row, false)).collect()
}

/// A page of tags, alphabetical by their folded words; `contains` narrows it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    contains: Option<&str>,
    after: Option<(String, i64)>,
    limit: i64,
) -> Result<Vec<TagRow>> {
    let filter = page(session.backend(), contains, after, limit);
    session.list(filter).await?.iter().map(|row| read(row, false)).collect()
}

/// How many tags there are, up to `most`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn count(session: &mut Session, contains: Option<&str>, most: i64) -> Result<i64> {
    session.count(counting(session.backend(), contains, most)).await
}

fn counting(backend: Backend, contains: Option<&str>, most: i64) -> Filter {
    let base = "SELECT COUNT(*) FROM (SELECT 1 FROM tags t WHERE 1 = 1";
    narrowed(Filter::new(backend, base, args![]), contains).end("LIMIT ?) counted", args![most])
}

fn narrowed(filter: Filter, contains: Option<&str>) -> Filter {
    let pattern = contains.map(|text| format!("%{}%", escape_like(&text_key(text))));
    filter.and_if("t.text_key LIKE ? ESCAPE '\\'", pattern)
}

fn page(backend: Backend, contains: Option<&str>, after: Option<(String, i64)>, limit: i64) -> Filter {
    let filter = narrowed(Filter::new(backend, SELECT, args![]), contains);
    let filter = match after {
        Some((key, id)) => filter.and("(t.text_key, t.id) > (?, ?)", args![key, id]),
        None => filter,
    };
    // ix: tags_text
    filter.end("ORDER BY t.text_key, t.id LIMIT ?", args![limit])
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    vec![
        page(backend, None, None, 1),
        page(backend, Some("a"), Some((String::new(), 0)), 1),
        counting(backend, None, 1),
        counting(backend, Some("a"), 1),
    ]
}

/// How many projects carry each of some tags; tags that none carries are left
/// out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn count_projects(session: &mut Session, tags: Vec<i64>) -> Result<HashMap<TagId, i64>> {
    let rows = session.all(&COUNT_PROJECTS, args![tags]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok((TagId(r.int()?), r.int()?))
        })
        .collect()
}

/// The tags of some projects, alphabetical.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_projects(
    session: &mut Session,
    projects: Vec<i64>,
) -> Result<HashMap<ProjectId, Vec<TagRow>>> {
    let mut tags: HashMap<ProjectId, Vec<TagRow>> = HashMap::new();
    for row in session.all(&OF_PROJECTS, args![projects]).await? {
        let project = ProjectId(row.reader().int()?);
        tags.entry(project).or_default().push(read(&row, true)?);
    }
    Ok(tags)
}

/// Gives a project exactly these tags.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn assign(session: &mut Session, project: ProjectId, tags: &BTreeSet<TagId>) -> Result<()> {
    session.execute(&CLEAR, args![project]).await?;
    let mut rows = ASSIGN.rows();
    for tag in tags {
        rows.push([(*tag).into()]);
    }
    session.execute_bulk(&ASSIGN, args![project], rows).await?;
    Ok(())
}
