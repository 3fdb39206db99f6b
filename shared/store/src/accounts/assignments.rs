//! Which projects an account reaches. The user's view and the project's view
//! edit the same rows; a global assignment is one row without a project.

use std::collections::BTreeSet;

use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};
use crate::ids::{self, Kind};

/// The assignments of one account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignments {
    /// All projects, later ones included.
    pub is_global: bool,
    /// Projects assigned one by one, kept beside a global assignment.
    pub projects: BTreeSet<ProjectId>,
}

statements! {
    /// Projects of an account; null is all of them. ix: project_assignments_one
    OF_USER = "SELECT project_id FROM project_assignments WHERE user_id = $1 ORDER BY project_id";
    /// Accounts assigned to a project one by one. ix: project_assignments_of_project
    OF_PROJECT = "SELECT user_id FROM project_assignments WHERE project_id = $1 ORDER BY user_id";
    /// Accounts among these with a global assignment. ix: project_assignments_all
    GLOBAL_AMONG = "SELECT user_id FROM project_assignments WHERE project_id IS NULL AND user_id in_ints($1)";
    /// Accounts with a global assignment.
    GLOBAL = "SELECT user_id FROM project_assignments WHERE project_id IS NULL ORDER BY user_id LIMIT $1";
    /// A new assignment.
    INSERT = "INSERT INTO project_assignments (id, user_id, project_id, created_by, created_at) \
              VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    /// Takes one project away.
    REMOVE = "DELETE FROM project_assignments WHERE user_id = $1 AND project_id = $2";
    /// Takes all projects away.
    REMOVE_GLOBAL = "DELETE FROM project_assignments WHERE user_id = $1 AND project_id IS NULL";
    /// Accounts that would lose sight of everything when authentication begins.
    WITHOUT_ANY = "SELECT id FROM users WHERE role <> 'administrator' \
                   AND NOT EXISTS (SELECT 1 FROM project_assignments a WHERE a.user_id = users.id AND a.project_id IS NULL) \
                   ORDER BY id";
}

/// The assignments of an account.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_user(session: &mut Session, user: UserId) -> Result<Assignments> {
    let mut found = Assignments::default();
    for row in session.all(&OF_USER, args![user]).await? {
        match row.reader().opt_int()? {
            Some(project) => {
                found.projects.insert(ProjectId(project));
            }
            None => found.is_global = true,
        }
    }
    Ok(found)
}

/// Accounts assigned to a project one by one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_project(session: &mut Session, project: ProjectId) -> Result<BTreeSet<UserId>> {
    users(session.all(&OF_PROJECT, args![project]).await?)
}

/// Those of some accounts that have a global assignment.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn global_among(session: &mut Session, ids: Vec<i64>) -> Result<BTreeSet<UserId>> {
    users(session.all(&GLOBAL_AMONG, args![ids]).await?)
}

/// Accounts with a global assignment, at most `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn global(session: &mut Session, limit: i64) -> Result<BTreeSet<UserId>> {
    users(session.all(&GLOBAL, args![limit]).await?)
}

fn users(rows: Vec<crate::db::Row>) -> Result<BTreeSet<UserId>> {
    rows.iter().map(|row| row.reader().int().map(UserId)).collect()
}

/// Makes an account's assignments what they should be. The caller holds the
/// account's row, so two changes of one account follow each other.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_of_user(
    session: &mut Session,
    user: UserId,
    wanted: &Assignments,
    by: Option<UserId>,
    now: Timestamp,
) -> Result<()> {
    let present = of_user(session, user).await?;
    for project in present.projects.difference(&wanted.projects) {
        session.execute(&REMOVE, args![user, *project]).await?;
    }
    for project in wanted.projects.difference(&present.projects) {
        add(session, user, Some(*project), by, now).await?;
    }
    if wanted.is_global && !present.is_global {
        add(session, user, None, by, now).await?;
    } else if present.is_global && !wanted.is_global {
        session.execute(&REMOVE_GLOBAL, args![user]).await?;
    }
    Ok(())
}

/// Assigns a project, or with `None` all of them; nothing happens when it is.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add(
    session: &mut Session,
    user: UserId,
    project: Option<ProjectId>,
    by: Option<UserId>,
    now: Timestamp,
) -> Result<()> {
    let id = ids::allocate_one(session, Kind::Assignment).await?;
    session.execute(&INSERT, args![id, user, project, by, now]).await?;
    Ok(())
}

/// Takes one project away from an account.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn remove(session: &mut Session, user: UserId, project: ProjectId) -> Result<()> {
    session.execute(&REMOVE, args![user, project]).await?;
    Ok(())
}

/// Gives every account that is not an administrator's a global assignment.
/// For the one moment at which authentication is first turned on.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn make_all_global(session: &mut Session, now: Timestamp) -> Result<u64> {
    let accounts = users(session.all(&WITHOUT_ANY, args![]).await?)?;
    for user in &accounts {
        add(session, *user, None, None, now).await?;
    }
    Ok(accounts.len() as u64)
}
