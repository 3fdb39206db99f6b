//! What the tests of a cluster left behind when they failed last.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_store::files::{self, FileKind};
use callboard_store::{executions, lanes};

use crate::executions::{show, with_runs};
use crate::shapes::{AffectedTestCase, ExecutionItem, FileItem, RunBrief};
use crate::{Context, Result};

/// What the last failure of a test for a cluster left behind.
#[derive(Debug, Clone)]
pub struct LastFailure {
    /// The execution.
    pub execution: ExecutionItem,
    /// Its run.
    pub run: RunBrief,
    /// The newest picture of its page.
    pub screenshot: Option<FileItem>,
}

/// The last failures of tests of a cluster, by execution. Those that were
/// deleted meanwhile are left out.
///
/// # Errors
/// [`QueryError::Store`].
pub async fn last_failures(
    ctx: &Context,
    project: Authorized<ProjectId>,
    tests: &[AffectedTestCase],
) -> Result<HashMap<i64, LastFailure>> {
    let project = project.get();
    let ids: Vec<ExecutionId> = tests.iter().map(|test| ExecutionId(test.execution_id)).collect();
    let mut session = ctx.store.db().read().await?;
    let rows = executions::get_many(&mut session, project, &ids).await?;
    let pictured: Vec<ExecutionId> = rows.iter().filter(|row| row.files > 0).map(|row| row.id).collect();
    let pictures = files::newest_of(&mut session, project, &pictured, FileKind::Screenshot).await?;
    let mut pictures: HashMap<i64, FileItem> =
        pictures.iter().map(|file| (file.execution.get(), FileItem::of(file, &ctx.links))).collect();
    let browsers = lanes::browsers(&mut session, project).await?;
    let items = show(&mut session, project, &rows, &browsers).await?;
    let items = with_runs(&mut session, project, items).await?;
    let found = items.into_iter().map(|(execution, run)| {
        let screenshot = pictures.remove(&execution.id);
        (execution.id, LastFailure { execution, run, screenshot })
    });
    Ok(found.collect())
}
