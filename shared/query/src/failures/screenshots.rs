//! Pictures of the pages a test was on.

use std::cmp::Reverse;

use bytes::Bytes;
use callboard_auth::scope::Authorized;
use callboard_domain::attempts::Decision;
use callboard_domain::ids::{ExecutionId, FileId, ProjectId};
use callboard_store::blobs::content::Content;
use callboard_store::boxed;
use callboard_store::files::{self, FileKind};

use crate::executions::required_execution;
use crate::shapes::FileItem;
use crate::{Context, Entity, QueryError, Result};
use callboard_ingest::stored_attempts;

/// Screenshots of an execution that are looked at.
const MAX_FILES: i64 = 200;

/// The newest screenshots of an execution: of the last attempt first, of a
/// failed one those of the attempt that failed it. Nothing of their content is
/// read.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn screenshots(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    most: usize,
) -> Result<Vec<FileItem>> {
    let mut session = ctx.store.db().read().await?;
    let row = required_execution(&mut session, project.get(), id).await?;
    let decision = stored_attempts(&row)?.decide().filter(|decision| decision.status.is_failing());
    let failed = decision.as_ref().and_then(Decision::failed_attempt);
    let failed = failed.map(|view| (i64::from(view.repetition), i64::from(view.attempt.retry)));
    let kinds = [FileKind::Screenshot];
    let mut rows =
        files::of_execution(&mut session, project.get(), id, Some(&kinds), None, MAX_FILES).await?;
    rows.sort_by_key(|file| {
        let attempt = (file.repetition, file.retry);
        (failed.is_some_and(|failed| failed != attempt), Reverse((attempt, file.id)))
    });
    Ok(rows.iter().take(most).map(|file| FileItem::from_row(file, &ctx.links)).collect())
}

/// The bytes of a file of the project; `None` when they are more than
/// `max_bytes`.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn screenshot_bytes(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: i64,
    max_bytes: u64,
) -> Result<Option<Bytes>> {
    let mut session = ctx.store.db().read().await?;
    let row = files::get(&mut session, project.get(), FileId(id)).await?;
    let row = row.ok_or_else(|| QueryError::not_found(Entity::File, id))?;
    let content = Content::load(&mut session, project.get(), row.blob).await?;
    drop(session);
    if content.size() > max_bytes {
        return Ok(None);
    }
    Ok(Some(content.read(&ctx.store, 0..content.size()).await?))
}
