//! Links: addresses outside that hang on a run, an execution, a test case or a
//! failure cluster.

use callboard_domain::annotations::{LinkProvider, LinkTarget};
use callboard_domain::ids::{LinkId, ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// Id.
    pub id: LinkId,
    /// What kind of thing it hangs on.
    pub target: LinkTarget,
    /// The id of that thing.
    pub entity: i64,
    /// The address.
    pub url: String,
    /// Where it leads.
    pub provider: LinkProvider,
    /// What it is called there.
    pub key: Option<String>,
    /// What a person called it.
    pub title: Option<String>,
    /// What the address calls itself.
    pub told_title: Option<String>,
    /// When the address was looked at.
    pub unfurled_at: Option<Timestamp>,
    /// Who made it: id, name to sign in with, name to show.
    pub created_by: Option<(UserId, String, Option<String>)>,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

macro_rules! select_link {
    ($tail:literal) => {
        concat!(
            "SELECT l.id, l.entity_kind, l.entity_id, l.url, l.provider, l.key, l.title, l.told_title, l.unfurled_at, u.id, u.username, u.name, \
             l.created_at, l.updated_at FROM entity_links l LEFT JOIN users u ON u.id = l.created_by ",
            $tail
        )
    };
}

statements! {
    /// A new link.
    INSERT = "INSERT INTO entity_links (id, project_id, entity_kind, entity_id, url, provider, key, title, created_by, \
        created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)";
    /// One link.
    BY_ID = select_link!("WHERE l.project_id = $1 AND l.id = $2");
    /// Links of a thing in the order they were made. ix: entity_links_of_entity
    OF_ENTITY = select_link!("WHERE l.project_id = $1 AND l.entity_kind = $2 AND l.entity_id = $3 AND l.id > $4 ORDER BY l.id LIMIT $5");
    /// Changes a link.
    SAVE = "UPDATE entity_links SET url = $3, provider = $4, key = $5, title = $6, told_title = $7, unfurled_at = $8, updated_at = $9 \
        WHERE project_id = $1 AND id = $2";
    /// Notes what an address told, unless the link leads elsewhere by now.
    SET_TOLD = "UPDATE entity_links SET told_title = $4, unfurled_at = $5 WHERE project_id = $1 AND id = $2 AND url = $3";
    /// Removes a link.
    DELETE = "DELETE FROM entity_links WHERE project_id = $1 AND id = $2";
}

fn read(row: &Row) -> Result<LinkRow> {
    let mut r = row.reader();
    let id = LinkId(r.int()?);
    let target = LinkTarget::from_code(r.int()?).ok_or(StoreError::Damaged("what a link hangs on"))?;
    let (entity, url) = (r.int()?, r.text()?);
    let provider = LinkProvider::parse(&r.text()?).unwrap_or(LinkProvider::Generic);
    let (key, title) = (r.opt_text()?, r.opt_text()?);
    let (told_title, unfurled_at) = (r.opt_text()?, r.opt_time()?);
    let (user, username, name) = (r.opt_int()?, r.opt_text()?, r.opt_text()?);
    let created_by = user.zip(username).map(|(user, username)| (UserId(user), username, name));
    Ok(LinkRow {
        id,
        target,
        entity,
        url,
        provider,
        key,
        title,
        told_title,
        unfurled_at,
        created_by,
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

/// What a new link says.
#[derive(Debug, Clone)]
pub struct NewLink {
    /// What kind of thing it hangs on.
    pub target: LinkTarget,
    /// The id of that thing.
    pub entity: i64,
    /// The address.
    pub url: String,
    /// Where it leads.
    pub provider: LinkProvider,
    /// What it is called there.
    pub key: Option<String>,
    /// What a person calls it.
    pub title: Option<String>,
    /// Who makes it.
    pub created_by: Option<UserId>,
}

/// Creates a link.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn create(
    session: &mut Session,
    project: ProjectId,
    new: &NewLink,
    now: Timestamp,
) -> Result<LinkId> {
    let id = ids::allocate_one(session, Kind::Link).await?;
    ids::list(session, Listed::Link, project, &[id]).await?;
    let values = args![
        id,
        project,
        new.target.code(),
        new.entity,
        &new.url,
        new.provider.as_str(),
        new.key.clone(),
        new.title.clone(),
        new.created_by,
        now
    ];
    session.execute(&INSERT, values).await?;
    Ok(LinkId(id))
}

/// One link.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: LinkId) -> Result<Option<LinkRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Links of a thing behind one of them, in the order they were made.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    target: LinkTarget,
    entity: i64,
    after: i64,
    limit: i64,
) -> Result<Vec<LinkRow>> {
    let args = args![project, target.code(), entity, after, limit];
    session.all(&OF_ENTITY, args).await?.iter().map(read).collect()
}

/// Writes a link that was read.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save(session: &mut Session, project: ProjectId, link: &LinkRow) -> Result<()> {
    let LinkRow { id, url, provider, key, title, told_title, unfurled_at, updated_at, .. } = link;
    let values = args![
        project,
        *id,
        url,
        provider.as_str(),
        key.clone(),
        title.clone(),
        told_title.clone(),
        *unfurled_at,
        *updated_at
    ];
    session.execute(&SAVE, values).await?;
    Ok(())
}

/// Notes what the address of a link told; nothing when the link leads
/// elsewhere by now.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set_told(
    session: &mut Session,
    project: ProjectId,
    id: LinkId,
    url: &str,
    title: Option<String>,
    now: Timestamp,
) -> Result<()> {
    session.execute(&SET_TOLD, args![project, id, url, title, now]).await?;
    Ok(())
}

/// Removes a link; `false` when it was gone.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete(session: &mut Session, project: ProjectId, id: LinkId) -> Result<bool> {
    ids::unlist(session, Listed::Link, id.get()).await?;
    Ok(session.execute(&DELETE, args![project, id]).await? == 1)
}
