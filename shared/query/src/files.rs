//! Finding the bytes behind a file id or a stored name.

use callboard_auth::scope::{Authorized, Scope};
use callboard_auth::{Grant, GrantTarget, LinkHolder};
use callboard_domain::export::ExportStatus;
use callboard_domain::ids::{ExportId, FileId, ProjectId, ReportId};
use callboard_domain::time::Timestamp;
use callboard_store::accounts::principal;
use callboard_store::blobs::content::Content;
use callboard_store::exports::{self, ExportRow};
use callboard_store::files::FileRow;
pub use callboard_store::objects::AnsweredAs;
use callboard_store::{boxed, files, projects, reports, runs};
use sha2::{Digest as _, Sha256};

use crate::accounts::recognise::facts;
use crate::{Context, Entity, QueryError, Result};

/// Bytes that may be served: where they lie, and what may be said of them.
#[derive(Debug, Clone)]
pub struct Served {
    /// Project they belong to.
    pub project: Authorized<ProjectId>,
    /// Where its bytes lie.
    pub content: Content,
    /// Size in bytes.
    pub size: u64,
    /// Type as recognised by the server.
    pub content_type: String,
    /// Name to save them under.
    pub file_name: String,
    /// Changes when, and only when, the bytes do.
    pub etag: String,
    /// Whether the bytes can never change under this address.
    pub is_immutable: bool,
    /// What a grant for them opens: the file, or everything of its report, so
    /// that relative links work.
    pub grant_target: GrantTarget,
    /// Their path below such a grant.
    pub granted_path: String,
}

/// A file by id.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Denied`], [`QueryError::Store`].
#[boxed]
pub async fn by_id(ctx: &Context, scope: &Scope, id: FileId) -> Result<Served> {
    let project = crate::resolve::file(ctx, scope, id).await?;
    let row = files::get(&mut ctx.store.db().read().await?, project.get(), id).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::File, id))?;
    served_file(ctx, project, row).await
}

async fn served_file(ctx: &Context, project: Authorized<ProjectId>, row: FileRow) -> Result<Served> {
    let content = Content::load(&mut ctx.store.db().read().await?, project.get(), row.blob).await?;
    let granted_path = row.path.rsplit('/').next().unwrap_or(&row.path).to_owned();
    Ok(Served {
        project,
        size: content.size(),
        content,
        content_type: row.content_type,
        file_name: row.original_name.unwrap_or(row.name),
        etag: hex::encode(row.sha256),
        is_immutable: true,
        grant_target: GrantTarget::File(row.id),
        granted_path,
    })
}

/// A file, or an entry of a report, by its stored name
/// (`project-3/reports/42/7/index.html`). The name is looked up, never joined
/// to a folder.
///
/// # Errors
/// [`QueryError::NotFound`] for a name that nothing has,
/// [`QueryError::Denied`], [`QueryError::Store`].
#[boxed]
pub async fn by_path(ctx: &Context, scope: &Scope, path: &str, now: Timestamp) -> Result<Served> {
    let missing = || QueryError::not_found(Entity::File, path);
    let mut segments = path.split('/');
    let project = segments.next().and_then(|segment| segment.strip_prefix("project-"));
    let project = project.and_then(ProjectId::parse).ok_or_else(missing)?;
    require_project(ctx, project, path).await?;
    let project = scope.authorize(project)?;
    match segments.next() {
        Some("files") => {
            let row = files::by_path(&mut ctx.store.db().read().await?, project.get(), path).await?;
            served_file(ctx, project, row.ok_or_else(missing)?).await
        }
        Some("reports") => report_entry(ctx, project, path).await?.ok_or_else(missing),
        Some("exports") => export(ctx, project, path, now).await?.ok_or_else(missing),
        _ => Err(missing()),
    }
}

/// A file, or an entry of a report, by its path below a grant. The grant is
/// asked for in SQL again on every request: it opens nothing of a project,
/// file or report that is gone, and nothing its holder does not reach any
/// more. While authentication is off, everybody reaches everything.
///
/// # Errors
/// [`QueryError::NotFound`] for a path the grant does not cover,
/// [`QueryError::Store`].
#[boxed]
pub async fn by_grant(
    ctx: &Context,
    auth_enabled: bool,
    grant: &Grant,
    path: &str,
    now: Timestamp,
) -> Result<Served> {
    let missing = || QueryError::not_found(Entity::File, path);
    require_project(ctx, grant.project(), path).await?;
    let project = if auth_enabled {
        let holder = match grant.holder() {
            Some(LinkHolder { user, key, .. }) => {
                principal::by_holder(&mut ctx.store.db().read().await?, user, key, now).await?
            }
            None => None,
        };
        grant.redeem(holder.map(facts).as_ref()).map_err(|_| missing())?
    } else {
        grant.redeem_with_authentication_off()
    };
    match grant.target() {
        GrantTarget::Prefix(prefix) => {
            report_entry(ctx, project, &format!("{prefix}{path}")).await?.ok_or_else(missing)
        }
        GrantTarget::File(id) => {
            let row = files::get(&mut ctx.store.db().read().await?, project.get(), *id).await?;
            let served = served_file(ctx, project, row.ok_or_else(missing)?).await?;
            if served.granted_path == path { Ok(served) } else { Err(missing()) }
        }
    }
}

/// The file of an export, as long as it is kept.
async fn export(
    ctx: &Context,
    project: Authorized<ProjectId>,
    path: &str,
    now: Timestamp,
) -> Result<Option<Served>> {
    let Some(id) = path.split('/').nth(2).and_then(ExportId::parse) else { return Ok(None) };
    let row = exports::get(&mut ctx.store.db().read().await?, project.get(), id).await?;
    let is_it = |row: &ExportRow| {
        row.status == ExportStatus::Ready && row.path.as_deref() == Some(path) && row.expires_at > now
    };
    let Some(row) = row.filter(is_it) else { return Ok(None) };
    let size = u64::try_from(row.size.unwrap_or_default()).unwrap_or_default();
    let file_name = path.rsplit('/').next().unwrap_or(path).to_owned();
    Ok(Some(Served {
        project,
        content: Content::whole(path.to_owned(), size),
        size,
        content_type: row.format.content_type().to_owned(),
        granted_path: file_name.clone(),
        file_name,
        // Exports are written once.
        etag: format!("export-{id}"),
        is_immutable: true,
        grant_target: GrantTarget::Prefix(format!("project-{}/exports/{id}/", project.get())),
    }))
}

async fn require_project(ctx: &Context, project: ProjectId, path: &str) -> Result<()> {
    let known = projects::get(&mut ctx.store.db().read().await?, project).await?;
    known.map(drop).ok_or_else(|| QueryError::not_found(Entity::File, path))
}

async fn report_entry(ctx: &Context, project: Authorized<ProjectId>, path: &str) -> Result<Option<Served>> {
    let Some(report) = path.split('/').nth(3).and_then(ReportId::parse) else { return Ok(None) };
    let mut session = ctx.store.db().read().await?;
    let Some(row) = reports::get(&mut session, project.get(), report).await? else {
        let left = reports::left(&mut session, project.get(), report).await?;
        let Some(left) = left.filter(|row| path.starts_with(&format!("{}/", row.prefix))) else {
            return Ok(None);
        };
        let run = runs::get(&mut session, project.get(), left.run).await?;
        return if run.is_some() { Err(QueryError::ReportInProgress) } else { Ok(None) };
    };
    drop(session);
    let Some(entry) = path.strip_prefix(&row.prefix).and_then(|rest| rest.strip_prefix('/')) else {
        return Ok(None);
    };
    let is_plain = entry.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    if !is_plain {
        return Ok(None);
    }
    let Some(size) = ctx.store.objects().size(path).await? else { return Ok(None) };
    let file_name = entry.rsplit('/').next().unwrap_or(entry).to_owned();
    Ok(Some(Served {
        project,
        content: Content::whole(path.to_owned(), size),
        size,
        content_type: type_of_entry(&file_name).to_owned(),
        file_name,
        etag: etag_of_entry(&row.archive_sha256, entry),
        is_immutable: false,
        granted_path: entry.to_owned(),
        grant_target: GrantTarget::Prefix(format!("{}/", row.prefix)),
    }))
}

/// A report's objects are written once: its archive and the path name the bytes.
fn etag_of_entry(archive_sha256: &[u8; 32], entry: &str) -> String {
    hex::encode(Sha256::new().chain_update(archive_sha256).chain_update(entry).finalize())
}

/// Types of the files that reports consist of, by extension.
const ENTRY_TYPES: [(&str, &str); 20] = [
    ("html", "text/html; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("webm", "video/webm"),
    ("mp4", "video/mp4"),
    ("ttf", "font/ttf"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
    ("md", "text/plain; charset=utf-8"),
    ("zip", "application/zip"),
];

fn type_of_entry(file_name: &str) -> &'static str {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let known = ENTRY_TYPES.iter().find(|(known, _)| extension.as_deref() == Some(*known));
    known.map_or("application/octet-stream", |(_, content_type)| *content_type)
}
