//! What administrators change of a project, read under a lock and written as a
//! whole; and the sealed tokens of all projects, for sealing them anew.

use callboard_domain::ids::ProjectId;
use callboard_domain::search::words;
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Row, Session, args, statements};
use crate::search::{self, SearchKind};

/// What can be changed of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditableProject {
    /// Id.
    pub id: ProjectId,
    /// Unique name.
    pub name: String,
    /// Name to show.
    pub label: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Default branch.
    pub default_branch: Option<String>,
    /// Patterns of branches that are followed like the default one.
    pub tracked_branches: Vec<String>,
    /// Address of the repository.
    pub repository_url: Option<String>,
    /// What kind of code host it is at.
    pub repository_provider: Option<String>,
    /// The sealed token of the code host.
    pub scm_token: Option<String>,
    /// What a diagnosis should know.
    pub diagnosis_instructions: Option<String>,
    /// Whether a re-run joins the run that it repeats.
    pub joins_reruns: bool,
}

statements! {
    /// What can be changed of a project, locked.
    LOCK = "SELECT id, name, label, description, default_branch, tracked_branches, repository_url, repository_provider, \
        scm_token, diagnosis_instructions, joins_reruns FROM projects WHERE id = $1 for_update()";
    /// Another project of a name. ix: projects_name
    NAMED = "SELECT id FROM projects WHERE name = $1";
    /// Writes what was changed.
    SAVE = "UPDATE projects SET name = $2, label = $3, description = $4, default_branch = $5, tracked_branches = $6, \
        repository_url = $7, repository_provider = $8, scm_token = $9, diagnosis_instructions = $10, joins_reruns = $12, \
        updated_at = CASE WHEN updated_at < $11 THEN $11 ELSE updated_at END WHERE id = $1";
    /// The repository of a project and what opens it.
    REPOSITORY = "SELECT repository_url, repository_provider, scm_token, default_branch FROM projects WHERE id = $1";
    /// Sets what opens the badge of a project, or takes it away.
    SET_BADGE = "UPDATE projects SET badge_token_hash = $2 WHERE id = $1";
    /// The project whose badge a token opens. ix: projects_badge
    OF_BADGE = "SELECT id FROM projects WHERE badge_token_hash = $1 AND badge_token_hash IS NOT NULL";
    /// Sealed tokens in the order of their projects.
    SEALED = "SELECT id, scm_token FROM projects WHERE scm_token IS NOT NULL AND id > $1 ORDER BY id LIMIT $2";
    /// Projects with a repository, after one of them. PK
    WITH_REPOSITORY = "SELECT id FROM projects WHERE repository_url IS NOT NULL AND id > $1 ORDER BY id LIMIT $2";
    /// Puts a token sealed anew in the place of the one it was made of.
    RESEAL = "UPDATE projects SET scm_token = $3 WHERE id = $1 AND scm_token = $2";
}

fn read(row: &Row) -> Result<EditableProject> {
    let mut r = row.reader();
    Ok(EditableProject {
        id: ProjectId(r.int()?),
        name: r.text()?,
        label: r.opt_text()?,
        description: r.opt_text()?,
        default_branch: r.opt_text()?,
        tracked_branches: super::branches(&r.text()?)?,
        repository_url: r.opt_text()?,
        repository_provider: r.opt_text()?,
        scm_token: r.opt_text()?,
        diagnosis_instructions: r.opt_text()?,
        joins_reruns: r.flag()?,
    })
}

/// A project, locked until the transaction ends.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn lock(session: &mut Session, id: ProjectId) -> Result<Option<EditableProject>> {
    session.first(&LOCK, args![id]).await?.as_ref().map(read).transpose()
}

/// Writes a project that was read with [`lock`]; `false` when another project
/// has its name.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn save(session: &mut Session, project: &EditableProject, now: Timestamp) -> Result<bool> {
    // Asked before, because a refused statement ends a transaction on PostgreSQL.
    let holder = session.first(&NAMED, args![&project.name]).await?;
    if let Some(row) = holder
        && row.reader().int()? != project.id.get()
    {
        return Ok(false);
    }
    let branches = serde_json::Value::from(project.tracked_branches.clone()).to_string();
    let values = args![
        project.id,
        &project.name,
        project.label.clone(),
        project.description.clone(),
        project.default_branch.clone(),
        branches,
        project.repository_url.clone(),
        project.repository_provider.clone(),
        project.scm_token.clone(),
        project.diagnosis_instructions.clone(),
        now,
        project.joins_reruns
    ];
    match session.execute(&SAVE, values).await {
        Ok(_) => {
            let found_by = words([project.name.as_str(), project.label.as_deref().unwrap_or_default()]);
            search::replace(session, project.id, SearchKind::Project, project.id.get(), found_by).await?;
            Ok(true)
        }
        // Two saves at the same moment; the caller's transaction is over.
        Err(error) if error.is_taken() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The repository of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositorySettings {
    /// Address of the repository.
    pub url: Option<String>,
    /// What kind of code host it is at.
    pub provider: Option<String>,
    /// The sealed token of the code host.
    pub sealed_token: Option<String>,
    /// Default branch of the project.
    pub default_branch: Option<String>,
}

/// The repository of a project; `None` when there is no such project.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn repository(session: &mut Session, project: ProjectId) -> Result<Option<RepositorySettings>> {
    let row = session.first(&REPOSITORY, args![project]).await?;
    row.map(|row| {
        let mut r = row.reader();
        Ok(RepositorySettings {
            url: r.opt_text()?,
            provider: r.opt_text()?,
            sealed_token: r.opt_text()?,
            default_branch: r.opt_text()?,
        })
    })
    .transpose()
}

/// Sets the hash of the token that opens the badge of a project; `None` takes
/// it away.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_badge(session: &mut Session, project: ProjectId, hash: Option<[u8; 32]>) -> Result<()> {
    session.execute(&SET_BADGE, args![project, hash.map(|hash| hash.to_vec())]).await?;
    Ok(())
}

/// The project whose badge opens with the token of this hash.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_badge(session: &mut Session, hash: [u8; 32]) -> Result<Option<ProjectId>> {
    let row = session.first(&OF_BADGE, args![hash.to_vec()]).await?;
    row.map(|row| row.reader().int().map(ProjectId)).transpose()
}

/// A sealed token and its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedToken {
    /// The project.
    pub project: ProjectId,
    /// The token as it is stored.
    pub sealed: String,
}

/// At most `limit` sealed tokens of the projects behind one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn sealed_tokens(session: &mut Session, after: ProjectId, limit: i64) -> Result<Vec<SealedToken>> {
    let rows = session.all(&SEALED, args![after, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(SealedToken { project: ProjectId(r.int()?), sealed: r.text()? })
        })
        .collect()
}

/// Projects with a repository, after one of them.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn with_repository(session: &mut Session, after: ProjectId, limit: i64) -> Result<Vec<ProjectId>> {
    let rows = session.all(&WITH_REPOSITORY, args![after, limit]).await?;
    rows.iter().map(|row| Ok(ProjectId(row.reader().int()?))).collect()
}

/// Replaces a sealed token; `false` when it was changed meanwhile.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn replace_sealed(session: &mut Session, token: &SealedToken, sealed: &str) -> Result<bool> {
    Ok(session.execute(&RESEAL, args![token.project, &token.sealed, sealed]).await? == 1)
}
