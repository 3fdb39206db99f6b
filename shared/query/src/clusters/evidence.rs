//! What the tests of a cluster left behind when they failed last.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_store::files::{self, FileKind, FileRow};
use callboard_store::{boxed, executions, lanes};

use crate::executions::{show, with_runs};
use crate::shapes::{AffectedTestCase, ExecutionItem, FileItem, RunBrief, Try, part_of_comparison};
use crate::{Context, Result};

/// What the last failure of a test for a cluster left behind.
#[derive(Debug, Clone)]
pub struct LastFailure {
    /// The execution.
    pub execution: ExecutionItem,
    /// Its run.
    pub run: RunBrief,
    /// The newest picture of the page it failed on.
    pub screenshot: Option<FileItem>,
}

/// Pictures of an execution among which that of its page is looked for.
const MOST_PICTURES: i64 = 20;

/// Whether a picture shows the page at a failure: it is of an attempt that
/// failed, and not what a page was compared with.
fn is_of_failure(file: &FileRow, execution: &ExecutionItem) -> bool {
    let is_attempt =
        |each: &&Try| (i64::from(each.retry), i64::from(each.repetition)) == (file.retry, file.repetition);
    let has_failed = execution.tries.iter().find(is_attempt).is_none_or(|each| each.status.is_failing());
    has_failed && part_of_comparison(&file.name).is_none()
}

/// The last failures of tests of a cluster, by execution. Those that were
/// deleted meanwhile are left out.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
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
    let pictures =
        files::newest_of(&mut session, project, &pictured, FileKind::Screenshot, MOST_PICTURES).await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let items = show(&mut session, project, &rows, &browsers).await?;
    let items = with_runs(&mut session, project, items).await?;
    let found = items.into_iter().map(|(execution, run)| {
        let mut own = pictures.iter().filter(|file| file.execution.get() == execution.id);
        let page = own.find(|file| is_of_failure(file, &execution));
        let screenshot = page.map(|file| FileItem::from_row(file, &ctx.links));
        (execution.id, LastFailure { execution, run, screenshot })
    });
    Ok(found.collect())
}
