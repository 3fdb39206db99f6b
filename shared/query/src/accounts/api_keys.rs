//! API keys: listing, creating, revoking. A key reaches at most what its owner
//! reaches; one created with another key also at most what that one does, and
//! it ends with it.

use std::collections::{BTreeSet, HashMap};

use callboard_auth::{Authorized, Denied, KeyPermission, Role, api_key};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ApiKeyId, ProjectId, UserId};
use callboard_domain::ingest::FieldError;
use callboard_domain::time::Timestamp;
use callboard_store::Session;
use callboard_store::accounts::api_keys::{self, KeyListed, MAX_LIVE, NewKey};
use callboard_store::accounts::assignments;
use callboard_store::accounts::users::{self, UserRow};
use callboard_store::boxed;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Acting;
use super::members::known;
use super::users::{locked, required};
use crate::page::{Slice, fetch};
use crate::shapes::UserRef;
use crate::{Context, Entity, QueryError, Result};

/// How long revoked keys stay in lists, milliseconds.
const REVOKED_SHOWN_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// An API key, without what opens anything.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Key id.
    #[schema(example = 12)]
    pub id: i64,
    /// What it is for.
    #[schema(example = "nightly")]
    pub name: String,
    /// The beginning of the key.
    #[schema(example = "pd_1a2b3c4d")]
    pub key_prefix: String,
    /// `full`, `ingest`, `read` or `metrics`.
    #[schema(example = "ingest")]
    pub permission: &'static str,
    /// The projects it is narrowed to; null for all that its owner reaches.
    pub project_ids: Option<Vec<i64>>,
    /// Who created it; null when that account is gone.
    pub created_by: Option<UserRef>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last noted use, at most hourly.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// When it stops opening anything.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    fn from_row(row: &KeyListed, created_by: Option<&UserRow>) -> Self {
        Self {
            id: row.id.get(),
            name: row.name.clone(),
            key_prefix: row.key_prefix.clone(),
            permission: row.permission.as_str(),
            project_ids: row.projects.as_ref().map(|ids| ids.iter().map(|id| id.get()).collect()),
            created_by: created_by.map(UserRef::from_row),
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
        }
    }
}

/// Keys of an account, newest first, revoked ones for 90 days; a page is keyed
/// by the id.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn list(
    ctx: &Context,
    user: Authorized<UserId>,
    after: Option<ApiKeyId>,
    limit: usize,
    now: Timestamp,
) -> Result<Slice<ApiKey, ApiKeyId>> {
    let mut session = ctx.store.db().read().await?;
    required(&mut session, user.get()).await?;
    let since = Timestamp(now.millis() - REVOKED_SHOWN_MS);
    let rows = api_keys::of_user(&mut session, user.get(), after, since, fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| row.id);
    let creators: BTreeSet<i64> = rows.items.iter().map(|row| row.created_by.get()).collect();
    let creators = users::get_many(&mut session, creators.into_iter().collect()).await?;
    let creators: HashMap<UserId, &UserRow> = creators.iter().map(|row| (row.id, row)).collect();
    Ok(rows.map(|row| ApiKey::from_row(&row, creators.get(&row.created_by).copied())))
}

/// A key about to be created. Its name was judged.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// What it is for.
    pub name: String,
    /// What it may be used for.
    pub permission: KeyPermission,
    /// The projects it is narrowed to.
    pub projects: Option<BTreeSet<ProjectId>>,
    /// When it stops.
    pub expires_at: Option<Timestamp>,
}

/// A key that was created.
#[derive(Debug)]
pub struct CreatedKey {
    /// The key itself, which is told once and never again.
    pub text: String,
    /// As lists show it.
    pub key: ApiKey,
}

/// Creates a key of an account.
///
/// # Errors
/// [`QueryError::NotFound`] for the account or a project; [`QueryError::Field`]
/// for a moment that is past and an empty list of projects;
/// [`QueryError::Denied`] for projects beyond the owner's or the caller's and
/// for more than the key it is created with may do; [`QueryError::TooMany`]
/// beyond a hundred live keys.
pub async fn create(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    mut new: NewApiKey,
) -> Result<CreatedKey> {
    let now = acting.now;
    if new.expires_at.is_some_and(|end| end <= now) {
        return Err(wrong("expiresAt", "in the future", "a moment that is past"));
    }
    if new.projects.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err(wrong(
            "projectIds",
            "a list of at least one project, or left out for all",
            "an empty list",
        ));
    }
    let minted = api_key::mint()?;
    let mut session = ctx.store.db().begin().await?;
    let owner = locked(&mut session, user.get()).await?;
    if let Some(projects) = &new.projects {
        known(&mut session, projects).await?;
        reaches(&mut session, &owner, projects).await?;
        for project in projects {
            acting.caller.authorize(*project)?;
        }
    }
    let parent = acting.caller.key_id();
    if let Some(parent) = parent {
        within_parent(&mut session, acting, parent, &mut new).await?;
    }
    if api_keys::count_live(&mut session, owner.id, now).await? >= MAX_LIVE {
        let limit = usize::try_from(MAX_LIVE).unwrap_or(usize::MAX);
        return Err(QueryError::TooMany { what: "API keys that are not revoked or expired", limit });
    }
    let key = NewKey {
        user: owner.id,
        name: new.name,
        key_hash: minted.hash,
        key_prefix: minted.shown,
        permission: new.permission,
        projects: new.projects.map(|projects| projects.into_iter().collect()),
        parent,
        created_by: acting.caller.user_id().unwrap_or(owner.id),
        created_at: now,
        expires_at: new.expires_at,
    };
    let id = api_keys::insert(&mut session, &key).await?;
    let stored = api_keys::get(&mut session, owner.id, id).await?;
    let stored = stored.ok_or_else(|| QueryError::not_found(Entity::ApiKey, id))?;
    let creator = users::get(&mut session, stored.created_by).await?;
    let shown = ApiKey::from_row(&stored, creator.as_ref());
    let detail = json!({
        "user": owner.id.get(),
        "prefix": shown.key_prefix,
        "permission": shown.permission,
        "projectIds": shown.project_ids,
        "expiresAt": shown.expires_at,
    });
    let recorded =
        acting.record(&mut session, AuditAction::KeyCreated, ("api_key", id.get()), None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(CreatedKey { text: minted.text, key: shown })
}

fn wrong(field: &'static str, expected: &'static str, got: &str) -> QueryError {
    FieldError::Invalid { field, expected, got: got.to_owned() }.into()
}

/// Cuts a new key to what the key it is created with may do and reach, and
/// holds that one, so that it cannot be revoked meanwhile.
async fn within_parent(
    session: &mut Session,
    acting: Acting<'_>,
    parent: ApiKeyId,
    new: &mut NewApiKey,
) -> Result<()> {
    let owner = acting.caller.user_id().ok_or(Denied::InvalidApiKey)?;
    let parent = api_keys::lock(session, owner, parent).await?.ok_or(Denied::InvalidApiKey)?;
    if parent.revoked_at.is_some() || parent.expires_at.is_some_and(|end| end <= acting.now) {
        return Err(Denied::InvalidApiKey.into());
    }
    if !parent.permission.includes(new.permission) {
        return Err(Denied::KeyScopeDenied.into());
    }
    new.expires_at = match (new.expires_at, parent.expires_at) {
        (Some(asked), Some(end)) => Some(asked.min(end)),
        (asked, end) => asked.or(end),
    };
    if let (None, Some(projects)) = (&new.projects, parent.projects) {
        // Projects that were asked for are within the caller's scope, and so within these.
        new.projects = Some(projects.into_iter().collect());
    }
    Ok(())
}

/// Fails unless the owner reaches all of these projects.
async fn reaches(session: &mut Session, owner: &UserRow, projects: &BTreeSet<ProjectId>) -> Result<()> {
    if owner.role == Role::Administrator {
        return Ok(());
    }
    let assigned = assignments::of_user(session, owner.id).await?;
    if assigned.is_global || projects.is_subset(&assigned.projects) {
        Ok(())
    } else {
        Err(Denied::ProjectAccessDenied.into())
    }
}

/// Revokes a key with every key that was created with it; they open nothing
/// from the next request on. One that is revoked already stays so.
///
/// # Errors
/// [`QueryError::NotFound`] when the account has no such key.
pub async fn revoke(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    key: ApiKeyId,
) -> Result<()> {
    // A leaked key must not take down its owner's other keys.
    if acting.caller.key_id() != Some(key) {
        acting.reaches_everything()?;
    }
    let mut session = ctx.store.db().begin().await?;
    let found = api_keys::lock(&mut session, user.get(), key).await?;
    let found = found.ok_or_else(|| QueryError::not_found(Entity::ApiKey, key))?;
    let revoked = api_keys::revoke(&mut session, key, acting.now).await?;
    if revoked == 0 {
        return Ok(());
    }
    let detail = json!({ "user": user.get().get(), "prefix": found.key_prefix, "revoked": revoked });
    let recorded =
        acting.record(&mut session, AuditAction::KeyRevoked, ("api_key", key.get()), None, detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
