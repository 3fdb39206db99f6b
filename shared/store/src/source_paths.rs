//! What the runs of a project say about the paths of its files: how they were
//! written before, and which of the earlier ones several files had.

use std::collections::HashSet;

use callboard_domain::ids::ProjectId;
use callboard_domain::ingest::PathPrefix;

use crate::Result;
use crate::db::{Session, args, statements};

/// Most prefixes of a project. More come from reports merged out of folders whose names change.
const MAX_PREFIXES: usize = 20;

statements! {
    /// The prefixes of a project. PK
    PREFIXES = "SELECT present, earlier FROM path_prefixes WHERE project_id = $1";
    /// Adds a prefix. PK
    ADD_PREFIX = "INSERT INTO path_prefixes (project_id, present, earlier) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    /// Those of some paths that several files had. PK
    SHARED_AMONG = "SELECT path FROM shared_paths WHERE project_id = $1 AND path in_texts($2)";
    /// Adds a path that several files had. PK
    ADD_SHARED = "INSERT INTO shared_paths (project_id, path) VALUES ($1, $2) ON CONFLICT DO NOTHING";
}

/// How paths of a project were written before.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn prefixes(session: &mut Session, project: ProjectId) -> Result<Vec<PathPrefix>> {
    let rows = session.all(&PREFIXES, args![project]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(PathPrefix { present: r.text()?, earlier: r.text()? })
        })
        .collect()
}

/// Adds a prefix to those of a project, unless it has many; answers whether it was new.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add_prefix(session: &mut Session, project: ProjectId, prefix: &PathPrefix) -> Result<bool> {
    if prefixes(session, project).await?.len() >= MAX_PREFIXES {
        return Ok(false);
    }
    let args = args![project, prefix.present.as_str(), prefix.earlier.as_str()];
    Ok(session.execute(&ADD_PREFIX, args).await? > 0)
}

/// Those of some earlier paths that several files of the sources had.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn shared_among(
    session: &mut Session,
    project: ProjectId,
    paths: Vec<String>,
) -> Result<HashSet<String>> {
    let rows = session.all(&SHARED_AMONG, args![project, paths]).await?;
    rows.iter().map(|row| row.reader().text()).collect()
}

/// Notes earlier paths that several files of the sources had.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn add_shared(session: &mut Session, project: ProjectId, paths: &[String]) -> Result<()> {
    for path in paths {
        session.execute(&ADD_SHARED, args![project, path.as_str()]).await?;
    }
    Ok(())
}
