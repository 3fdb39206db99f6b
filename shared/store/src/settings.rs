//! What is set by hand: one JSON text per group, for the installation and for
//! each project. What the texts say is the business of whoever asks.

use std::collections::HashMap;

use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Reader, Row, Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// What is set for the installation. PK
    OF_INSTANCE = "SELECT value, updated_at, updated_by FROM settings WHERE grp = $1";
    /// What is set for a project. PK
    OF_PROJECT = "SELECT value, updated_at, updated_by FROM project_settings WHERE project_id = $1 AND grp = $2";
    /// What is set for some projects. PK
    OF_PROJECTS = "SELECT value, updated_at, updated_by, project_id FROM project_settings WHERE project_id in_ints($1) AND grp = $2";
    /// A group nobody has set yet.
    MAKE_OF_INSTANCE = "INSERT INTO settings (grp, value, updated_at) VALUES ($1, '{}', $2) ON CONFLICT (grp) DO NOTHING";
    /// A group nobody has set yet.
    MAKE_OF_PROJECT = "INSERT INTO project_settings (project_id, grp, value, updated_at) VALUES ($1, $2, '{}', $3) \
        ON CONFLICT (project_id, grp) DO NOTHING";
    /// What is set for the installation, locked. PK
    LOCK_OF_INSTANCE = "SELECT value, updated_at, updated_by FROM settings WHERE grp = $1 for_update()";
    /// What is set for a project, locked. PK
    LOCK_OF_PROJECT = "SELECT value, updated_at, updated_by FROM project_settings WHERE project_id = $1 AND grp = $2 for_update()";
    /// Writes what is set for the installation. PK
    SET_OF_INSTANCE = "UPDATE settings SET value = $2, updated_at = $3, updated_by = $4 WHERE grp = $1";
    /// Writes what is set for a project. PK
    SET_OF_PROJECT = "UPDATE project_settings SET value = $3, updated_at = $4, updated_by = $5 WHERE project_id = $1 AND grp = $2";
}

/// A group of settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSettings {
    /// The JSON text.
    pub value: String,
    /// When it was set.
    pub updated_at: Timestamp,
    /// Who set it.
    pub updated_by: Option<UserId>,
}

fn read(r: &mut Reader<'_>) -> Result<StoredSettings> {
    Ok(StoredSettings { value: r.text()?, updated_at: r.time()?, updated_by: r.opt_int()?.map(UserId) })
}

/// A group of the installation, or of a project; `None` while nobody has set
/// it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(
    session: &mut Session,
    project: Option<ProjectId>,
    group: &str,
) -> Result<Option<StoredSettings>> {
    let row = match project {
        None => session.first(&OF_INSTANCE, args![group]).await?,
        Some(project) => session.first(&OF_PROJECT, args![project, group]).await?,
    };
    row.map(|row| read(&mut row.reader())).transpose()
}

/// A group of the installation and of a project, each `None` while nobody has set it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get_both(
    session: &mut Session,
    project: ProjectId,
    group: &str,
) -> Result<(Option<StoredSettings>, Option<StoredSettings>)> {
    let reads = [(&OF_INSTANCE, args![group]), (&OF_PROJECT, args![project, group])];
    let [of_instance, of_project] = session.each(reads).await?;
    let first = |rows: Vec<Row>| rows.first().map(|row| read(&mut row.reader())).transpose();
    Ok((first(of_instance)?, first(of_project)?))
}

/// A group of some projects; those for which nobody has set it are left out.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_projects(
    session: &mut Session,
    projects: Vec<i64>,
    group: &str,
) -> Result<HashMap<ProjectId, StoredSettings>> {
    let rows = session.all(&OF_PROJECTS, args![projects, group]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let stored = read(&mut r)?;
            Ok((ProjectId(r.int()?), stored))
        })
        .collect()
}

/// The same, locked until the transaction ends and made when it is missing.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(
    session: &mut Session,
    project: Option<ProjectId>,
    group: &str,
    now: Timestamp,
) -> Result<StoredSettings> {
    let row = match project {
        None => {
            session.execute(&MAKE_OF_INSTANCE, args![group, now]).await?;
            session.first(&LOCK_OF_INSTANCE, args![group]).await?
        }
        Some(project) => {
            session.execute(&MAKE_OF_PROJECT, args![project, group, now]).await?;
            session.first(&LOCK_OF_PROJECT, args![project, group]).await?
        }
    };
    read(&mut row.ok_or(StoreError::Damaged("settings vanished while they were locked"))?.reader())
}

/// Writes a group that [`lock`] answered.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set(
    session: &mut Session,
    project: Option<ProjectId>,
    group: &str,
    value: &str,
    now: Timestamp,
    by: Option<UserId>,
) -> Result<()> {
    match project {
        None => session.execute(&SET_OF_INSTANCE, args![group, value, now, by]).await?,
        Some(project) => session.execute(&SET_OF_PROJECT, args![project, group, value, now, by]).await?,
    };
    Ok(())
}
