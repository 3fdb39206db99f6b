//! Comparing a run with another one, test by test.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::comparison::{self, Change, Side};
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::status::{Outcome, TestStatus};
use callboard_store::db::Session;
use callboard_store::executions::brief::{self, BriefRow};
use callboard_store::runs::{RunRow, compared};
use callboard_store::{boxed, lanes, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::page::Slice;
use crate::runs::required_run;
use crate::shapes::RunBrief;
use crate::shapes::words::{ChangeWord, TestStatusWord};
use crate::{Context, Result, baseline};
use callboard_ingest::read_session_with_fresh_aggregates;

/// What a run is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Against {
    /// The green run it is measured against.
    Baseline,
    /// The final run before it on its branch and in its environment.
    Previous,
    /// This run of the same project.
    Run(RunId),
}

/// Place in a comparison: the class of change, in classes about durations the
/// difference, the greatest first, and the execution.
pub type ChangeKey = (i64, i64, i64);

/// A test that two runs have in common, or one of them alone.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedTest {
    /// newFailure, stillFailing, fixed, newFlaky, added, removed, slower, faster or unchanged.
    #[schema(value_type = ChangeWord)]
    pub change: Change,
    /// Test case.
    pub test_case_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Name of the browser project; empty when there is none.
    pub browser_project: String,
    /// As the other run saw it; null when it is new.
    pub base: Option<ComparedSide>,
    /// As this run saw it; null when it is gone.
    pub head: Option<ComparedSide>,
    /// How much longer it takes now; null when one side is missing.
    pub duration_delta: Option<i64>,
}

/// A test as one run saw it.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedSide {
    /// Execution.
    pub execution_id: i64,
    /// Status.
    #[schema(value_type = TestStatusWord)]
    pub status: TestStatus,
    /// Passed after a failed attempt.
    pub flaky: bool,
    /// Duration of the deciding attempt.
    pub duration: i64,
}

/// How many tests fall into each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeCounts {
    /// Fail now and did not before.
    pub new_failure: i64,
    /// Fail in both.
    pub still_failing: i64,
    /// Failed before, pass now.
    pub fixed: i64,
    /// Flaky now, passed at the first attempt before.
    pub new_flaky: i64,
    /// Only in this run.
    pub added: i64,
    /// Only in the other run.
    pub removed: i64,
    /// Notably slower.
    pub slower: i64,
    /// Notably faster.
    pub faster: i64,
    /// None of these.
    pub unchanged: i64,
}

impl ChangeCounts {
    const fn counter(&mut self, change: Change) -> &mut i64 {
        match change {
            Change::NewFailure => &mut self.new_failure,
            Change::StillFailing => &mut self.still_failing,
            Change::Fixed => &mut self.fixed,
            Change::NewFlaky => &mut self.new_flaky,
            Change::Added => &mut self.added,
            Change::Removed => &mut self.removed,
            Change::Slower => &mut self.slower,
            Change::Faster => &mut self.faster,
            Change::Unchanged => &mut self.unchanged,
        }
    }
}

/// A page of a comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The run it is compared with.
    pub base: RunBrief,
    /// The run.
    pub head: RunBrief,
    /// How many tests fall into each class, whichever are asked for.
    pub counts: ChangeCounts,
    /// The tests.
    pub tests: Slice<ComparedTest, ChangeKey>,
}

/// Compares a run, new failures first; `None` when there is nothing to compare
/// it with. Only some classes of change may be asked for.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn compare(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    against: Against,
    changes: &[Change],
    after: Option<ChangeKey>,
    limit: usize,
) -> Result<Option<Comparison>> {
    let mut session = read_session_with_fresh_aggregates(ctx, project.get()).await?;
    let head = required_run(&mut session, project.get(), run).await?;
    let base = match against {
        Against::Baseline => baseline::of_run(&mut session, &head).await?.map(|green| green.row),
        Against::Previous => compared::previous(&mut session, &head).await?,
        Against::Run(run) => Some(required_run(&mut session, project.get(), run).await?),
    };
    let Some(base) = base else { return Ok(None) };
    let pairs = pairs(&mut session, &base, &head).await?;
    let counts = counts(&pairs);
    let found = page(pairs, changes, after, limit);
    let items = show(&mut session, project.get(), &found.items).await?;
    Ok(Some(Comparison {
        base: RunBrief::from_row(&base),
        head: RunBrief::from_row(&head),
        counts,
        tests: Slice { items, next: found.next },
    }))
}

/// A test and how it changed.
#[derive(Debug, Clone, Copy)]
struct Pair {
    change: Change,
    base: Option<BriefRow>,
    head: Option<BriefRow>,
}

impl Pair {
    fn new(base: Option<BriefRow>, head: Option<BriefRow>) -> Option<Self> {
        let side = |row: BriefRow| Side { outcome: row.outcome, duration_ms: row.duration_ms };
        let change = comparison::classify(base.map(side), head.map(side))?;
        Some(Self { change, base, head })
    }

    fn row(&self) -> Option<BriefRow> {
        self.head.or(self.base)
    }

    /// How much longer it takes now; `None` when one side is missing.
    fn delta_ms(&self) -> Option<i64> {
        self.head.zip(self.base).map(|(head, base)| head.duration_ms - base.duration_ms)
    }

    fn key(&self) -> ChangeKey {
        let by_duration = match self.change {
            Change::Slower | Change::Faster => -self.delta_ms().unwrap_or(0).abs(),
            _ => 0,
        };
        (self.change as i64, by_duration, self.row().map_or(0, |row| row.id.get()))
    }
}

/// Every pair of two runs: each is read once, in short rows.
async fn pairs(session: &mut Session, base: &RunRow, head: &RunRow) -> Result<Vec<Pair>> {
    let mut before: HashMap<(TestCaseId, i64), BriefRow> = HashMap::new();
    each_step(session, base, |row| {
        before.insert(row.series(), row);
    })
    .await?;
    let mut pairs = Vec::new();
    each_step(session, head, |row| pairs.extend(Pair::new(before.remove(&row.series()), Some(row)))).await?;
    pairs.extend(before.into_values().filter_map(|row| Pair::new(Some(row), None)));
    Ok(pairs)
}

fn counts(pairs: &[Pair]) -> ChangeCounts {
    let mut counts = ChangeCounts::default();
    for pair in pairs {
        *counts.counter(pair.change) += 1;
    }
    counts
}

/// The page behind a key: what needs somebody first, and within a class in the
/// order of the run; what became slower or faster by how much it did.
fn page(
    mut pairs: Vec<Pair>,
    changes: &[Change],
    after: Option<ChangeKey>,
    limit: usize,
) -> Slice<Pair, ChangeKey> {
    pairs.retain(|pair| {
        (changes.is_empty() || changes.contains(&pair.change)) && after.is_none_or(|after| pair.key() > after)
    });
    pairs.sort_unstable_by_key(Pair::key);
    pairs.truncate(limit + 1);
    Slice::cut(pairs, limit, Pair::key)
}

pub(crate) async fn each_step(
    session: &mut Session,
    run: &RunRow,
    mut take: impl FnMut(BriefRow),
) -> Result<()> {
    const STEP: i64 = 5_000;
    let mut after = None;
    loop {
        let rows = brief::of_run(session, run.project, run.id, after, STEP).await?;
        after = rows.last().map(|row| row.id);
        let is_last = i64::try_from(rows.len()).unwrap_or(i64::MAX) < STEP;
        rows.into_iter().for_each(&mut take);
        if is_last {
            return Ok(());
        }
    }
}

async fn show(session: &mut Session, project: ProjectId, pairs: &[Pair]) -> Result<Vec<ComparedTest>> {
    let rows = pairs.iter().filter_map(Pair::row);
    let cases = test_cases::get_many(session, project, rows.map(|row| row.test_case.get()).collect()).await?;
    let browsers: HashMap<i64, String> = lanes::browsers(session, project)
        .await?
        .into_iter()
        .map(|browser| (browser.id, browser.name))
        .collect();
    let shown = pairs.iter().filter_map(|pair| {
        let row = pair.row()?;
        let case = cases.get(&row.test_case)?;
        let side = |row: BriefRow| ComparedSide {
            execution_id: row.id.get(),
            status: row.outcome.status(),
            flaky: row.outcome == Outcome::Flaky,
            duration: row.duration_ms,
        };
        Some(ComparedTest {
            change: pair.change,
            test_case_id: row.test_case.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            suite_path: case.suite_path.clone(),
            browser_project: browsers.get(&row.browser_id).cloned().unwrap_or_default(),
            base: pair.base.map(side),
            head: pair.head.map(side),
            duration_delta: pair.delta_ms(),
        })
    });
    Ok(shown.collect())
}
