//! The tests of a run, page by page, for files that leave the service.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_domain::totals::Totals;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow};
use callboard_store::{StoreError, boxed, evidence, lanes};
use serde::Serialize;
use serde_json::Value;

use crate::executions::{attempt_view, show};
use crate::page::{Slice, fetch};
use crate::run_errors::RunErrorItem;
use crate::runs::required_run;
use crate::shapes::{AttemptView, ExecutionItem, RunBrief, RunItem};
use crate::{Context, Result, runs};
use callboard_ingest::{read_session_with_fresh_aggregates, stored_attempts};

/// Rows read at a time when each is a row of the database.
const ROWS_AT_ONCE: usize = 500;
/// Rows read at a time when each may be an object in the store.
const OBJECTS_AT_ONCE: usize = 50;

/// What an export holds.
#[derive(Debug, Clone, Default)]
pub struct ExportWish {
    /// Only tests of these statuses; all when empty.
    pub statuses: Vec<TestStatus>,
    /// Every attempt of each test.
    pub attempts: bool,
    /// Whole errors instead of their first lines.
    pub errors: bool,
    /// Everything that was captured of the deciding attempt.
    pub evidence: bool,
}

impl ExportWish {
    fn outcomes(&self) -> Vec<Outcome> {
        let fits = |outcome: &Outcome| self.statuses.is_empty() || self.statuses.contains(&outcome.status());
        Outcome::ALL.into_iter().filter(fits).collect()
    }

    /// Whether tests of a status are not in it.
    pub(super) fn leaves_out(&self, status: TestStatus) -> bool {
        !self.statuses.is_empty() && !self.statuses.contains(&status)
    }
}

/// A test of an export.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedTest {
    /// The test; its error is whole where errors were asked for.
    #[serde(flatten)]
    pub item: ExecutionItem,
    /// Its attempts, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptView>>,
    /// What was captured, when asked for; null when there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Value>,
    /// The line that stands for its error, see [`callboard_domain::failure::error_line`].
    #[serde(skip)]
    pub error_line: Option<String>,
    /// Its run, where the export holds several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunBrief>,
}

/// What an export is about.
#[derive(Debug, Clone)]
pub struct ExportHead {
    /// The run.
    pub run: RunItem,
    /// Totals of the tests in the export.
    pub totals: Totals,
    /// What makes the run red beside its failed tests: its errors that belong to no test, or why it ended early. It is
    /// there whatever tests are left out.
    pub run_errors: Vec<RunErrorItem>,
}

/// What an export is about, before its first test.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn head(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    wish: &ExportWish,
) -> Result<ExportHead> {
    let item = runs::get(ctx, project, run).await?;
    let mut session = read_session_with_fresh_aggregates(ctx, project.get()).await?;
    let all = executions::brief::by_flags(&mut session, project.get(), run).await?;
    let outcomes = wish.outcomes();
    let mut totals = Totals::default();
    for group in all.into_iter().filter(|group| outcomes.contains(&group.outcome)) {
        totals.count(group.outcome, group.count);
    }
    let mut run_errors = runs::errors(ctx, project, run).await?;
    if run_errors.is_empty()
        && let Some(reason) = &item.brief.status_reason
    {
        run_errors.push(RunErrorItem::of_reason(reason.clone()));
    }
    Ok(ExportHead { run: item, totals, run_errors })
}

/// The next tests of an export by id; the key is the id.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn page(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    wish: &ExportWish,
    after: Option<i64>,
) -> Result<Slice<ExportedTest, i64>> {
    let project = project.get();
    let limit = if wish.errors || wish.evidence { OBJECTS_AT_ONCE } else { ROWS_AT_ONCE };
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project, run).await?;
    let outcomes = wish.outcomes().into_iter().map(Outcome::code).collect();
    let filter = ExecutionFilter {
        outcomes: (!wish.statuses.is_empty()).then_some(outcomes),
        ..ExecutionFilter::default()
    };
    let order = ExecutionOrder::Id(after);
    let rows = executions::list(&mut session, project, run, &filter, &order, fetch(limit)).await?;
    drop(session);
    let rows = Slice::cut(rows, limit, |row| row.id.get());
    Ok(Slice { items: told(ctx, project, &rows.items, wish).await?, next: rows.next })
}

/// What an export tells of some executions.
pub(super) async fn told(
    ctx: &Context,
    project: ProjectId,
    rows: &[ExecutionRow],
    wish: &ExportWish,
) -> Result<Vec<ExportedTest>> {
    let mut session = ctx.store.db().read().await?;
    let browsers = lanes::browsers(&mut session, project).await?;
    let items = show(&mut session, project, rows, &browsers).await?;
    drop(session);

    let mut tests = Vec::with_capacity(items.len());
    for (row, mut item) in rows.iter().zip(items) {
        let attempts = wish.attempts || wish.evidence;
        let decision = if attempts {
            Some(stored_attempts(row)?.decide().ok_or(StoreError::Damaged("an execution without attempts"))?)
        } else {
            None
        };
        let is_read = wish.evidence || (wish.errors && row.facts.error_summary.is_some());
        let told = match row.evidence.filter(|_| is_read) {
            Some(slice) => Some(evidence::read(&ctx.store, project, &slice).await?),
            None => None,
        };
        let error_line = item.error.clone();
        if wish.errors {
            item.error = told.as_ref().and_then(|told| told.error.clone()).or(item.error);
        }
        let deciding = decision.as_ref().map(|decision| &decision.deciding);
        let attempt = deciding.map_or((0, 0), |attempt| (attempt.retry, attempt.repetition.unwrap_or(0)));
        tests.push(ExportedTest {
            attempts: decision
                .filter(|_| wish.attempts)
                .map(|decision| decision.attempts.iter().map(attempt_view).collect()),
            evidence: wish.evidence.then(|| {
                told.map_or(Value::Null, |told| {
                    crate::evidence::shown(&told, attempt, &crate::evidence::Parts::All).0
                })
            }),
            item,
            error_line,
            run: None,
        });
    }
    Ok(tests)
}
