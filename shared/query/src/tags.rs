//! Tags of projects: questions for everybody, commands for administrators.

use std::collections::HashMap;

use callboard_domain::annotations::TagColor;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::TagId;
use callboard_store::boxed;
use callboard_store::tags::{self, TagRow};
use serde_json::json;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::page::{COUNTED_TO, Slice, Total, fetch};
use crate::shapes::Tag;
use crate::{Context, Entity, QueryError, Result};

/// Key of a page: the folded word and the id of its last tag.
pub type TagKey = (String, i64);

/// Tags, alphabetical; `contains` narrows them, in any case.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    contains: Option<&str>,
    after: Option<TagKey>,
    limit: usize,
) -> Result<Slice<Tag, TagKey>> {
    let mut session = ctx.store.db().read().await?;
    let rows = tags::list(&mut session, contains, after, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row: &TagRow| (tags::text_key(&row.text), row.id.get()));
    Ok(rows.map(|row| Tag::from_row(&row)))
}

/// How many tags the list has.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count(ctx: &Context, contains: Option<&str>) -> Result<Total> {
    let mut session = ctx.store.db().read().await?;
    Ok(Total::of_counted(tags::count(&mut session, contains, COUNTED_TO).await?))
}

/// How many projects carry each of some tags, by its id; those that none
/// carries are left out.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn count_projects(ctx: &Context, tags: &[Tag]) -> Result<HashMap<i64, i64>> {
    let mut session = ctx.store.db().read().await?;
    let counts = tags::count_projects(&mut session, tags.iter().map(|tag| tag.id).collect()).await?;
    Ok(counts.into_iter().map(|(tag, count)| (tag.get(), count)).collect())
}

/// Creates a tag.
///
/// # Errors
/// [`AdministrationRule::TagTaken`].
pub async fn create(ctx: &Context, acting: Acting<'_>, text: &str, color: TagColor) -> Result<Tag> {
    let mut session = ctx.store.db().begin().await?;
    let tag = tags::create(&mut session, text, color, acting.now).await?;
    let tag = tag.ok_or(AdministrationRule::TagTaken)?;
    note(&mut session, acting, AuditAction::TagCreated, &tag).await?.commit(session).await?;
    Ok(Tag::from_row(&tag))
}

/// Changes a tag: what is `None` stays.
///
/// # Errors
/// [`QueryError::NotFound`], [`AdministrationRule::TagTaken`].
pub async fn edit(
    ctx: &Context,
    acting: Acting<'_>,
    id: TagId,
    text: Option<String>,
    color: Option<TagColor>,
) -> Result<Tag> {
    let mut session = ctx.store.db().begin().await?;
    let found = tags::lock(&mut session, id).await?;
    let mut tag = found.ok_or_else(|| QueryError::not_found(Entity::Tag, id))?;
    let before = tag.clone();
    tag.text = text.unwrap_or(tag.text);
    tag.color = color.unwrap_or(tag.color);
    if tag != before {
        tag.updated_at = acting.now;
        if !tags::save(&mut session, &tag).await? {
            return Err(AdministrationRule::TagTaken.into());
        }
        note(&mut session, acting, AuditAction::TagChanged, &tag).await?.commit(session).await?;
    }
    Ok(Tag::from_row(&tag))
}

/// Deletes a tag and takes it off every project.
///
/// # Errors
/// [`QueryError::NotFound`].
pub async fn delete(ctx: &Context, acting: Acting<'_>, id: TagId) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let found = tags::lock(&mut session, id).await?;
    let tag = found.ok_or_else(|| QueryError::not_found(Entity::Tag, id))?;
    tags::delete(&mut session, id).await?;
    note(&mut session, acting, AuditAction::TagDeleted, &tag).await?.commit(session).await
}

async fn note(
    session: &mut callboard_store::Session,
    acting: Acting<'_>,
    action: AuditAction,
    tag: &TagRow,
) -> Result<Noted> {
    let detail = json!({ "text": tag.text });
    Ok(Noted(acting.record(session, action, ("tag", tag.id.get()), None, detail).await?))
}

struct Noted(callboard_store::audit::Recorded);

impl Noted {
    async fn commit(self, session: callboard_store::Session) -> Result<()> {
        session.commit().await?;
        self.0.committed();
        Ok(())
    }
}
