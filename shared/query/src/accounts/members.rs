//! Which accounts reach which projects, seen from the account and from the
//! project. Both views edit the same rows, and both hold the rows of the
//! accounts they change.

use std::collections::BTreeSet;

use callboard_auth::{Authorized, Role};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::ingest::FieldError;
use callboard_store::accounts::assignments::{self, Assignments};
use callboard_store::accounts::users::{self, UserFilter};
use callboard_store::{Session, boxed, projects};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Acting;
use super::users::{locked, required};
use crate::page::{Slice, fetch};
use crate::{Context, Entity, QueryError, Result};

/// Most projects or accounts that one request names.
pub const MOST_NAMED: usize = 2_000;

/// What an account reaches, as a request names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// All projects, later ones included.
    pub is_global: bool,
    /// Projects named one by one.
    pub projects: BTreeSet<ProjectId>,
}

impl From<Reach> for Assignments {
    fn from(reach: Reach) -> Self {
        Self { is_global: reach.is_global, projects: reach.projects }
    }
}

impl Reach {
    /// Checks it for an account of a role: every project exists, and an
    /// administrator, who reaches everything, is assigned nothing.
    pub(super) async fn check(&self, session: &mut Session, role: Role) -> Result<()> {
        if role == Role::Administrator {
            let named = [("isGlobal", self.is_global), ("projectIds", !self.projects.is_empty())];
            if let Some((field, _)) = named.into_iter().find(|(_, is_named)| *is_named) {
                return Err(of_administrator(field).into());
            }
        }
        known(session, &self.projects).await
    }
}

fn of_administrator(field: &'static str) -> FieldError {
    FieldError::Invalid {
        field,
        expected: "left out for an administrator, who reaches every project",
        got: "a value".to_owned(),
    }
}

/// Fails unless all of these projects exist.
pub(super) async fn known(session: &mut Session, wanted: &BTreeSet<ProjectId>) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let found = projects::get_many(session, wanted.iter().map(|id| id.get()).collect()).await?;
    let found: BTreeSet<ProjectId> = found.iter().map(|row| row.id).collect();
    match wanted.difference(&found).next() {
        Some(unknown) => Err(QueryError::not_found(Entity::Project, unknown)),
        None => Ok(()),
    }
}

/// The projects of an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserProjects {
    /// All of them, later ones included; always for administrators.
    pub is_global: bool,
    /// Projects assigned one by one, kept beside a global assignment.
    pub project_ids: Vec<i64>,
}

impl UserProjects {
    fn new(role: Role, found: &Assignments) -> Self {
        Self {
            is_global: role == Role::Administrator || found.is_global,
            project_ids: found.projects.iter().map(|id| id.get()).collect(),
        }
    }
}

/// The projects of an account.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn of_user(ctx: &Context, user: Authorized<UserId>) -> Result<UserProjects> {
    let mut session = ctx.store.db().read().await?;
    let row = required(&mut session, user.get()).await?;
    Ok(UserProjects::new(row.role, &assignments::of_user(&mut session, row.id).await?))
}

/// Assigns projects to an account; what is not named stays as it is.
///
/// # Errors
/// [`QueryError::NotFound`] for the account or a project, [`QueryError::Field`]
/// for an administrator, [`QueryError::Denied`] for a narrowed key.
pub async fn set_of_user(
    ctx: &Context,
    acting: Acting<'_>,
    user: Authorized<UserId>,
    is_global: Option<bool>,
    projects: Option<BTreeSet<ProjectId>>,
) -> Result<UserProjects> {
    acting.reaches_everything()?;
    let mut session = ctx.store.db().begin().await?;
    let row = locked(&mut session, user.get()).await?;
    if row.role == Role::Administrator {
        return Err(of_administrator(if is_global.is_some() { "isGlobal" } else { "projectIds" }).into());
    }
    let present = assignments::of_user(&mut session, row.id).await?;
    if let Some(projects) = &projects {
        // A project that is assigned already may be gone; that is no reason to refuse.
        known(&mut session, &projects.difference(&present.projects).copied().collect()).await?;
    }
    let wanted = Assignments {
        is_global: is_global.unwrap_or(present.is_global),
        projects: projects.unwrap_or_else(|| present.projects.clone()),
    };
    if wanted != present {
        assignments::set_of_user(&mut session, row.id, &wanted, acting.caller.user_id(), acting.now).await?;
        let ids = |ids: &BTreeSet<ProjectId>, without: &BTreeSet<ProjectId>| -> Vec<i64> {
            ids.difference(without).map(|id| id.get()).collect()
        };
        let detail = json!({
            "isGlobal": wanted.is_global,
            "added": ids(&wanted.projects, &present.projects),
            "removed": ids(&present.projects, &wanted.projects),
        });
        let target = ("user", row.id.get());
        let recorded =
            acting.record(&mut session, AuditAction::AssignmentsChanged, target, None, detail).await?;
        session.commit().await?;
        recorded.committed();
    }
    Ok(UserProjects::new(row.role, &wanted))
}

/// Why an account reaches a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberSource {
    /// The project is assigned to it.
    Explicit,
    /// All projects are assigned to it.
    Global,
    /// It is an administrator's.
    Administrator,
}

/// An account that reaches a project.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// User id.
    #[schema(example = 7)]
    pub id: i64,
    /// Name to sign in with.
    #[schema(example = "ada")]
    pub username: String,
    /// Name to show.
    pub name: Option<String>,
    /// `administrator`, `reporter` or `user`.
    #[schema(example = "reporter")]
    pub role: &'static str,
    /// Why it reaches the project; an assignment of this project is told before one of all projects.
    pub source: MemberSource,
}

/// Accounts that reach a project, by the folded name, which is also the key of
/// a page.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn of_project(
    ctx: &Context,
    project: Authorized<ProjectId>,
    after: Option<String>,
    limit: usize,
) -> Result<Slice<Member, String>> {
    let mut session = ctx.store.db().read().await?;
    let wanted = UserFilter { reaching: Some(project.get()), ..UserFilter::default() };
    let rows = users::list(&mut session, &wanted, after.as_deref(), fetch(limit)).await?;
    let rows = Slice::cut(rows, limit, |row| row.username_key.clone());
    let explicit = assignments::of_project(&mut session, project.get()).await?;
    Ok(rows.map(|row| Member {
        id: row.id.get(),
        username: row.username,
        name: row.name,
        role: row.role.as_str(),
        source: if row.role == Role::Administrator {
            MemberSource::Administrator
        } else if explicit.contains(&row.id) {
            MemberSource::Explicit
        } else {
            MemberSource::Global
        },
    }))
}

/// Assigns a project to exactly these accounts. Assignments of all projects
/// stay, and so does what administrators were assigned before they became
/// such.
///
/// # Errors
/// [`QueryError::NotFound`] for an unknown account, [`QueryError::Field`] for
/// an administrator among them.
pub async fn set_of_project(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    wanted: BTreeSet<UserId>,
) -> Result<()> {
    let project = project.get();
    let mut session = ctx.store.db().begin().await?;
    let present = assignments::of_project(&mut session, project).await?;
    let mut rows = users::get_many(&mut session, present.union(&wanted).map(|id| id.get()).collect()).await?;
    rows.sort_unstable_by_key(|row| row.id);
    if let Some(unknown) = wanted.iter().find(|id| !rows.iter().any(|row| row.id == **id)) {
        return Err(QueryError::not_found(Entity::User, unknown));
    }
    let is_administrator = |role| role == Role::Administrator;
    if rows.iter().any(|row| is_administrator(row.role) && wanted.contains(&row.id)) {
        return Err(FieldError::Invalid {
            field: "userIds",
            expected: "without administrators, who reach every project",
            got: "one".to_owned(),
        }
        .into());
    }
    let mut added = Vec::new();
    let mut removed = Vec::new();
    // In the order of their ids, so that two such changes wait for each other instead of for ever.
    for row in rows
        .iter()
        .filter(|row| !is_administrator(row.role) && present.contains(&row.id) != wanted.contains(&row.id))
    {
        let Some(row) = users::lock(&mut session, row.id).await? else {
            return Err(QueryError::not_found(Entity::User, row.id));
        };
        if wanted.contains(&row.id) {
            assignments::add(&mut session, row.id, Some(project), acting.caller.user_id(), acting.now)
                .await?;
            added.push(row.id.get());
        } else {
            assignments::remove(&mut session, row.id, project).await?;
            removed.push(row.id.get());
        }
    }
    if added.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let detail = json!({ "added": added, "removed": removed });
    let target = ("project", project.get());
    let recorded =
        acting.record(&mut session, AuditAction::AssignmentsChanged, target, Some(project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(())
}
