//! How near projects and the instance are to their storage quota, as it was reported last.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Session, args, statements};

/// Stands for the instance.
const INSTANCE: i64 = 0;

statements! {
    /// What was reported last. PK
    LEVEL = "SELECT level FROM quota_states WHERE project_id = $1";
    /// Reports another level; no row when it is the same. PK
    SET_LEVEL = "INSERT INTO quota_states AS q (project_id, level, changed_at) VALUES ($1, $2, $3) \
        ON CONFLICT (project_id) DO UPDATE SET level = excluded.level, changed_at = excluded.changed_at WHERE q.level <> excluded.level";
    /// Bytes that projects keep, and the quota of those that have one; projects after an id. PK
    USAGE = "SELECT p.id, s.value, CAST(COALESCE((SELECT SUM(t.bytes) FROM storage_totals t WHERE t.project_id = p.id), 0) AS BIGINT) \
        FROM projects p JOIN project_settings s ON s.project_id = p.id AND s.grp = $3 WHERE p.id > $1 ORDER BY p.id LIMIT $2";
    /// Bytes that all projects keep.
    TOTAL = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM storage_totals";
}

/// What a project keeps, and the JSON text of its settings about that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectUsage {
    /// Project.
    pub project: ProjectId,
    /// What is set, as JSON.
    pub settings: String,
    /// Bytes.
    pub bytes: i64,
}

/// The level that was reported last about a project or the instance; 0 for none.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn level(session: &mut Session, project: Option<ProjectId>) -> Result<i64> {
    let row = session.first(&LEVEL, args![project.map_or(INSTANCE, ProjectId::get)]).await?;
    row.map_or(Ok(0), |row| row.reader().int())
}

/// Notes a level; false when it was noted before.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn set_level(
    session: &mut Session,
    project: Option<ProjectId>,
    level: i64,
    now: Timestamp,
) -> Result<bool> {
    let args = args![project.map_or(INSTANCE, ProjectId::get), level, now];
    Ok(session.execute(&SET_LEVEL, args).await? == 1)
}

/// Projects for which a group is set, after one of them, with what they keep.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn usage(
    session: &mut Session,
    after: ProjectId,
    group: &str,
    limit: i64,
) -> Result<Vec<ProjectUsage>> {
    let rows = session.all(&USAGE, args![after, limit, group]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(ProjectUsage { project: ProjectId(r.int()?), settings: r.text()?, bytes: r.int()? })
        })
        .collect()
}

/// Bytes that all projects keep.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn total(session: &mut Session) -> Result<i64> {
    session.first(&TOTAL, args![]).await?.map_or(Ok(0), |row| row.reader().int())
}
