//! Tests against runs: how each test of a page of the catalogue ended in each
//! of the newest runs.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_store::boxed;
use callboard_store::executions::grid as store;
use callboard_store::runs::{self, RunFilter};

use crate::shapes::{RunBrief, TestCaseItem};
use crate::test_cases::{self, CatalogueKey, CatalogueQuery};
use crate::{Context, Result};

/// How a test ended in a run; the worst of its browser projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridCell {
    /// The execution that ended like this.
    pub execution: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// Duration of its deciding attempt, ms.
    pub duration_ms: i64,
}

/// One test with a cell per run; `None` where it was no part of the run.
#[derive(Debug, Clone)]
pub struct GridRow {
    /// The test.
    pub case: TestCaseItem,
    /// Its cells, in the order of the runs.
    pub cells: Vec<Option<GridCell>>,
}

/// Tests against runs.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Finished runs, oldest first.
    pub runs: Vec<RunBrief>,
    /// Tests in the order asked for.
    pub rows: Vec<GridRow>,
    /// Key of the next page of tests.
    pub next: Option<CatalogueKey>,
}

/// A page of the catalogue against the newest finished runs of the same branch
/// and environment.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn of_newest_runs(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &CatalogueQuery,
    newest: i64,
    limit: usize,
) -> Result<Grid> {
    let cases = test_cases::list(ctx, project, query, limit).await?;
    let mut session = ctx.store.db().read().await?;
    let filter = RunFilter {
        branch: query.lane.branch.clone(),
        environment: query.lane.environment.clone(),
        finished: true,
        ..RunFilter::default()
    };
    let mut runs = runs::list(&mut session, Some(project.get()), &filter, newest).await?;
    runs.reverse();
    let mut days: Vec<i64> = runs.iter().map(|run| run.order_at.day().0).collect();
    days.dedup();
    let tests = cases.items.iter().map(|case| case.id).collect();
    let ids = runs.iter().map(|run| run.id.get()).collect();
    let found = store::of_tests_in_runs(&mut session, project.get(), days, tests, ids).await?;
    let worst = worst(found);
    let cells = |case: i64| {
        let cell = |run: &RunId| worst.get(&(*run, TestCaseId(case))).copied();
        runs.iter().map(|run| cell(&run.id)).collect()
    };
    let rows = cases.items.into_iter().map(|case| GridRow { cells: cells(case.id), case });
    Ok(Grid { rows: rows.collect(), next: cases.next, runs: runs.iter().map(RunBrief::from_row).collect() })
}

/// The worst execution of each test and run. Outcomes rank by how much they
/// trouble; of equal ones the first browser project counts.
fn worst(cells: Vec<store::Cell>) -> HashMap<(RunId, TestCaseId), GridCell> {
    let mut worst: HashMap<(RunId, TestCaseId), GridCell> = HashMap::with_capacity(cells.len());
    for cell in cells {
        let shown = GridCell { execution: cell.id, outcome: cell.outcome, duration_ms: cell.duration_ms };
        let key = |cell: &GridCell| (cell.outcome.rank(), cell.execution.get());
        worst
            .entry((cell.run, cell.test_case))
            .and_modify(|kept| {
                if key(&shown) < key(kept) {
                    *kept = shown;
                }
            })
            .or_insert(shown);
    }
    worst
}
