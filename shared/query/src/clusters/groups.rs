//! The failures of one run by cause.

use std::collections::{BTreeMap, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::clusters::reads::{self, ClusterInRun, OccurrenceFilter};
use callboard_store::clusters::{self, ClusterRow};
use callboard_store::db::Session;
use callboard_store::lanes::{self, BrowserProject};
use callboard_store::runs::RunRow;
use futures::{StreamExt as _, stream};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::executions::show;
use crate::failures::{HealingSource, LocatorHealing, locator_healing};
use crate::page::Slice;
use crate::runs::required_run;
use crate::shapes::{ClusterBrief, ExecutionItem};
use crate::{Context, QueryError, Result};

/// Cases shown of a group.
const CASES_SHOWN: i64 = 10;
/// Groups of a page that are healed.
const HEALED: usize = 5;
/// Failures of one worker that make one look at it.
const MIN_ON_ONE_WORKER: i64 = 3;
/// How unlikely it has to be that they are there by chance.
const BY_CHANCE: f64 = 0.01;

/// The last group of a page: its size and its cluster; size 0 after the group
/// without one, which is the last.
pub type GroupKey = (i64, i64);

/// One failure of a group.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupCase {
    /// Execution.
    pub execution_id: i64,
    /// Test case.
    pub test_case_id: i64,
    /// Title of the test.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Owner of the test.
    pub owner: Option<String>,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Browser project.
    pub browser_project: String,
    /// Highest retry.
    pub retries: i64,
    /// Worker of the deciding attempt.
    pub worker_index: Option<i64>,
    /// Passed in the end.
    pub flaky: bool,
}

impl GroupCase {
    fn from_item(item: ExecutionItem) -> Self {
        Self {
            execution_id: item.id,
            test_case_id: item.test_case_id,
            title: item.title,
            file_path: item.file_path,
            owner: item.owner,
            suite_path: item.suite_path,
            browser_project: item.browser_project,
            retries: item.retries,
            worker_index: item.worker_index,
            flaky: item.flaky,
        }
    }
}

/// Failures of a run with one cause.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureGroup {
    /// The cluster; null for failures without one, which form the last group.
    #[schema(example = 8)]
    pub id: Option<i64>,
    /// Project.
    pub project_id: i64,
    /// One line that names the cause.
    pub signature: Option<String>,
    /// What a person calls it.
    pub title: Option<String>,
    /// Type of the error.
    pub error_type: Option<&'static str>,
    /// `open`, `resolved` or `ignored`.
    pub status: Option<&'static str>,
    /// Executions of all runs that count for it.
    pub occurrences: Option<i64>,
    /// Tests among them.
    pub affected_tests: Option<i64>,
    /// A note.
    pub note: Option<String>,
    /// What a model says about it; null while nothing is diagnosed.
    #[schema(value_type = Option<Object>)]
    pub diagnosis: Option<Value>,
    /// Executions of this run that count for it: those that failed, and those that passed after a failed attempt.
    pub count: i64,
    /// Of these, failed in the end. Over all groups they add up to the failed tests of the run.
    pub failed_count: i64,
    /// Of these, passed in the end.
    pub flaky_count: i64,
    /// Whether this run was the first to show it.
    pub is_new: bool,
    /// The run that showed it first.
    pub first_seen_run_id: Option<i64>,
    /// Start of that run.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_seen_at: Option<Timestamp>,
    /// All on one of several workers, which is hardly chance.
    pub worker_correlated: bool,
    /// Whether some of the tests passed in the end.
    pub flaky: bool,
    /// Some of the failures, at most 10.
    pub cases: Vec<GroupCase>,
    /// A locator that would work again in the first of the cases. Null where nothing is recommended, and beyond the first
    /// groups of a page that lost an element: ask for the locator healing of a case.
    pub healing: Option<GroupHealing>,
    /// Whether the failures name an element, which alone can have been lost.
    #[serde(skip)]
    names_element: bool,
}

/// A locator to use instead of the one that finds nothing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct GroupHealing {
    /// The locator.
    #[schema(example = "getByRole('button', { name: 'Pay' })")]
    pub recommended: String,
    /// Where it is known from.
    pub source: HealingSource,
    /// Whether it passed at that place in a later run.
    pub healed: bool,
}

/// A page of groups.
#[derive(Debug, Clone)]
pub struct FailureGroups {
    /// The groups, the largest first.
    pub groups: Slice<FailureGroup, GroupKey>,
    /// Failed tests of the run, timed out ones included: the sum of `failed_count` over all groups.
    pub failed_tests: i64,
}

/// What all groups of a run come to, whichever of them a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSums {
    /// Groups, that of failures without a cluster included.
    pub groups: i64,
    /// Flaky tests in them.
    pub flaky: i64,
}

/// What all groups of a run come to.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn group_sums(ctx: &Context, project: Authorized<ProjectId>, run: RunId) -> Result<GroupSums> {
    let mut session = ctx.store.db().read().await?;
    let sums = reads::sums_of_run(&mut session, project.get(), run).await?;
    let unclustered = reads::unclustered(&mut session, project.get(), run).await?;
    Ok(GroupSums { groups: sums.clusters + i64::from(unclustered > 0), flaky: sums.flaky })
}

/// The failures of a run by cause: the largest group first, failures without
/// a cluster last.
///
/// # Errors
/// [`crate::QueryError::NotFound`].
#[boxed]
pub async fn failure_groups(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    after: Option<GroupKey>,
    limit: usize,
) -> Result<FailureGroups> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let run = required_run(&mut session, project, run).await?;
    let failed_tests = run.totals.failed_tests;
    if after.is_some_and(|(count, _)| count == 0) {
        return Ok(FailureGroups { groups: Slice { items: Vec::new(), next: None }, failed_tests });
    }
    let found = reads::of_run(&mut session, project, run.id, after, crate::page::fetch(limit)).await?;
    let mut places: Vec<Option<ClusterInRun>> = found.into_iter().map(Some).collect();
    let unclustered =
        if places.len() <= limit { reads::unclustered(&mut session, project, run.id).await? } else { 0 };
    if unclustered > 0 {
        places.push(None);
    }
    let places =
        Slice::cut(places, limit, |place| place.map_or((0, 0), |place| (place.n, place.cluster.get())));
    let ids: Vec<i64> = places.items.iter().flatten().map(|place| place.cluster.get()).collect();
    let rows = clusters::get_many(&mut session, project, ids).await?;
    let rows: HashMap<ClusterId, ClusterRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    let browsers = lanes::browsers(&mut session, project).await?;
    let correlated = correlated(&mut session, &run, &places.items).await?;
    let mut groups = Vec::with_capacity(places.items.len());
    for place in &places.items {
        let cluster = place.and_then(|place| rows.get(&place.cluster));
        let cases = cases(&mut session, &run, place.map(|place| place.cluster), &browsers).await?;
        groups.push(group(&run, cluster, *place, unclustered, &correlated, cases));
    }
    Ok(FailureGroups { groups: Slice { items: groups, next: places.next }, failed_tests })
}

fn group(
    run: &RunRow,
    cluster: Option<&ClusterRow>,
    place: Option<ClusterInRun>,
    unclustered: i64,
    correlated: &[ClusterId],
    cases: Vec<GroupCase>,
) -> FailureGroup {
    let brief = cluster.map(ClusterBrief::from_row);
    FailureGroup {
        id: brief.as_ref().map(|brief| brief.id),
        project_id: run.project.get(),
        error_type: brief.as_ref().map(|brief| brief.error_type),
        status: brief.as_ref().map(|brief| brief.status),
        occurrences: brief.as_ref().map(|brief| brief.occurrences),
        affected_tests: brief.as_ref().map(|brief| brief.affected_tests),
        signature: brief.as_ref().map(|brief| brief.signature.clone()),
        title: brief.as_ref().and_then(|brief| brief.title.clone()),
        note: brief.and_then(|brief| brief.note),
        diagnosis: None,
        count: place.map_or(unclustered, |place| place.n),
        failed_count: place.map_or(unclustered, |place| place.n - place.flaky),
        flaky_count: place.map_or(0, |place| place.flaky),
        is_new: cluster.is_some_and(|cluster| cluster.first_run == run.id),
        first_seen_run_id: cluster.map(|cluster| cluster.first_run.get()),
        first_seen_at: cluster.map(|cluster| cluster.first_seen_at),
        worker_correlated: cluster.is_some_and(|cluster| correlated.contains(&cluster.id)),
        flaky: place.is_some_and(|place| place.flaky > 0),
        cases,
        healing: None,
        names_element: cluster.is_some_and(|cluster| cluster.selector.is_some()),
    }
}

/// Adds what would work again to the first groups that lost an element. Each
/// costs a look at the evidence and the trace of one failure; where that cannot
/// be read, its group is told without.
#[boxed]
pub async fn heal_groups(ctx: &Context, project: Authorized<ProjectId>, groups: &mut [FailureGroup]) {
    let lost = groups.iter_mut().filter(|group| group.names_element && !group.cases.is_empty());
    let lost: Vec<&mut FailureGroup> = lost.take(HEALED).collect();
    let healings: Vec<_> = lost
        .iter()
        .filter_map(|group| group.cases.first())
        .map(|case| locator_healing(ctx, project, ExecutionId(case.execution_id)))
        .collect();
    let found: Vec<Result<LocatorHealing>> = stream::iter(healings).buffered(HEALED).collect().await;
    for (group, found) in lost.into_iter().zip(found) {
        group.healing = match found {
            Ok(found) => found.recommended().map(|locator| GroupHealing {
                recommended: locator.locator.clone(),
                source: found.source,
                healed: found.healed_in_run_id.is_some(),
            }),
            // It went while this was read.
            Err(QueryError::NotFound { .. }) => None,
            Err(error) => {
                tracing::warn!(%error, "what would heal a locator could not be told");
                None
            }
        };
    }
}

async fn cases(
    session: &mut Session,
    run: &RunRow,
    cluster: Option<ClusterId>,
    browsers: &[BrowserProject],
) -> Result<Vec<GroupCase>> {
    let filter = OccurrenceFilter { run: Some((run.id, run.order_at.day())), ..OccurrenceFilter::default() };
    let rows = reads::occurrences(session, run.project, cluster, &filter, CASES_SHOWN).await?;
    let items = show(session, run.project, &rows, browsers).await?;
    Ok(items.into_iter().map(GroupCase::from_item).collect())
}

/// Clusters whose failures are all on one worker although the run had
/// several, and too many of them for chance.
async fn correlated(
    session: &mut Session,
    run: &RunRow,
    places: &[Option<ClusterInRun>],
) -> Result<Vec<ClusterId>> {
    let large: Vec<i64> = places
        .iter()
        .flatten()
        .filter(|place| place.n >= MIN_ON_ONE_WORKER)
        .map(|place| place.cluster.get())
        .collect();
    if large.is_empty() {
        return Ok(Vec::new());
    }
    let day = run.order_at.day();
    let mut workers: BTreeMap<ClusterId, Vec<(Option<i64>, i64)>> = BTreeMap::new();
    for (cluster, worker, count) in
        reads::workers_of_clusters(session, run.project, run.id, day, large).await?
    {
        workers.entry(cluster).or_default().push((worker, count));
    }
    let on_one: Vec<(ClusterId, i64, i64)> = workers
        .into_iter()
        .filter_map(|(cluster, workers)| match workers.as_slice() {
            [(Some(worker), count)] => Some((cluster, *worker, *count)),
            _ => None,
        })
        .collect();
    if on_one.is_empty() {
        return Ok(Vec::new());
    }
    let all = reads::workers_of_run(session, run.project, run.id).await?;
    if all.len() < 2 {
        return Ok(Vec::new());
    }
    let total = all.iter().map(|(_, count)| count).sum();
    let share = |worker: i64| all.iter().find(|(one, _)| *one == worker).map_or(0, |(_, count)| *count);
    let is_odd =
        |(_, worker, count): &(ClusterId, i64, i64)| by_chance(*count, share(*worker), total) < BY_CHANCE;
    Ok(on_one.iter().filter(|one| is_odd(one)).map(|(cluster, _, _)| *cluster).collect())
}

/// The probability that `drawn` out of `total` tests are all among the
/// `marked` ones: the tail of the hypergeometric distribution.
fn by_chance(drawn: i64, marked: i64, total: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of tests")]
    let share = |left: i64| (marked - left) as f64 / ((total - left) as f64).max(1.0);
    (0..drawn).map(|left| share(left).clamp(0.0, 1.0)).product()
}

#[cfg(test)]
mod tests {
    use super::by_chance;

    #[test]
    fn failures_on_one_worker_are_judged_by_its_share_of_the_run() {
        assert!((by_chance(2, 2, 4) - 1.0 / 6.0).abs() < 1e-12);
        assert!(by_chance(3, 50, 100) > 0.1 && by_chance(8, 50, 100) < 0.01);
        assert!((by_chance(3, 9, 9) - 1.0).abs() < f64::EPSILON);
    }
}
