//! Timeouts that could be shorter, and by what they are judged.

use std::cmp::Reverse;

use callboard_auth::scope::Authorized;
use callboard_domain::durations::Spread;
use callboard_domain::flakiness::DEFAULT_WINDOW;
use callboard_domain::ids::ProjectId;
use callboard_domain::timeouts::{
    TimeoutKind, TimeoutOpportunity, TimeoutOverrides, TimeoutRules, timeout_opportunity,
};
use callboard_store::db::Session;
use callboard_store::rollups::scores::{self, Durations};
use callboard_store::{boxed, executions, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ingest::counted;
use crate::page::Slice;
use crate::performance::NewestQuery;
use crate::shapes::words::TimeoutKindWord;
use crate::test_cases::LaneQuery;
use crate::{Context, Result, settings};

/// By what timeouts are judged in all projects.
async fn rules(session: &mut Session) -> Result<TimeoutRules> {
    let set: TimeoutOverrides = settings::stored(session, None).await?;
    Ok(set.over(&TimeoutRules::default()))
}

/// A timeout that could be shorter.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutRow {
    /// Test case id.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File of the test.
    pub file_path: String,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// oversized-timeout or stale-slow.
    #[schema(value_type = TimeoutKindWord)]
    pub kind: TimeoutKind,
    /// The timeout of its newest execution, ms.
    pub timeout: Option<i64>,
    /// Median duration of its passed executions, ms.
    pub p50_duration: i64,
    /// 95th percentile, ms.
    pub p95_duration: i64,
    /// The longest, ms.
    pub max_duration: i64,
    /// Passed executions these numbers are about.
    pub run_count: i64,
    /// Failed executions meanwhile.
    pub fail_count: i64,
    /// Whether the test is marked as slow.
    pub has_slow_annotation: bool,
    /// What to set instead, ms.
    pub recommended_timeout: i64,
    /// What the timeouts meanwhile would have cost less, ms.
    pub estimated_saving_ms: i64,
    /// For ordering, the greater the more it is worth.
    pub impact: i64,
}

/// Timeouts that could be shorter, most worthwhile first. Bounded by the tests
/// of the project. The key is the impact and the id of the last test seen.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn timeout_opportunities(
    ctx: &Context,
    project: Authorized<ProjectId>,
    query: &NewestQuery,
    after: Option<(i64, i64)>,
    limit: usize,
) -> Result<Slice<TimeoutRow, (i64, i64)>> {
    let project = project.get();
    let mut session = counted(ctx, project).await?;
    let Some(lane) = query.lane.find(&mut session, project).await? else {
        return Ok(Slice { items: Vec::new(), next: None });
    };
    let found = scores::durations(&mut session, project, lane, query.runs, query.since).await?;
    let mut rows = opportunities(&mut session, project, found).await?;
    if let Some((impact, id)) = after {
        rows.retain(|row| (Reverse(row.found.impact), row.test.case.get()) > (Reverse(impact), id));
    }
    rows.sort_unstable_by_key(|row| (Reverse(row.found.impact), row.test.case.get()));
    rows.truncate(limit + 1);
    let page = Slice::cut(rows, limit, |row| (row.found.impact, row.test.case.get()));
    let ids = page.items.iter().map(|row| row.test.case.get()).collect();
    let mut cases = test_cases::get_many(&mut session, project, ids).await?;
    let items = page.items.into_iter().filter_map(|Opportunity { found, spread, timeout, is_slow, test }| {
        let case = cases.remove(&test.case)?;
        Some(TimeoutRow {
            test_case_id: case.id.get(),
            title: case.title,
            file_path: case.file_path,
            suite_path: case.suite_path,
            kind: found.kind,
            timeout,
            p50_duration: spread.p50,
            p95_duration: spread.p95,
            max_duration: spread.max,
            run_count: spread.count,
            fail_count: test.failed,
            has_slow_annotation: is_slow,
            recommended_timeout: found.recommended_ms,
            estimated_saving_ms: found.saving_ms,
            impact: found.impact,
        })
    });
    Ok(Slice { items: items.collect(), next: page.next })
}

/// A test whose timeout could be shorter.
struct Opportunity {
    found: TimeoutOpportunity,
    spread: Spread,
    timeout: Option<i64>,
    is_slow: bool,
    test: Durations,
}

/// Those of some tests whose timeouts could be shorter.
async fn opportunities(
    session: &mut Session,
    project: ProjectId,
    tests: Vec<Durations>,
) -> Result<Vec<Opportunity>> {
    let rules = rules(session).await?;
    let newest = tests.iter().map(|test| test.last_execution.get()).collect();
    let limits = executions::timeouts(session, project, newest).await?;
    let mut all = Vec::new();
    for test in tests {
        let Some(spread) = Spread::of(&test.passed_ms) else { continue };
        let (timeout, is_slow) = limits.get(&test.last_execution).copied().unwrap_or_default();
        if let Some(found) = timeout_opportunity(&spread, timeout, test.timed_out, is_slow, &rules) {
            all.push(Opportunity { found, spread, timeout, is_slow, test });
        }
    }
    Ok(all)
}

/// What shorter timeouts would save in a run of a project, ms: for each test
/// what its newest timeouts would have cost less, spread over its runs.
pub(crate) async fn timeout_saving(
    session: &mut Session,
    project: ProjectId,
    lane: &LaneQuery,
) -> Result<i64> {
    let Some(lane) = lane.find(session, project).await? else { return Ok(0) };
    let tests = scores::durations_of_timed_out(session, project, lane, DEFAULT_WINDOW).await?;
    let all = opportunities(session, project, tests).await?;
    Ok(all.iter().map(|one| one.found.saving_ms / (one.spread.count + one.test.failed).max(1)).sum())
}
