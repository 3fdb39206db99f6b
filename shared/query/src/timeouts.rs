//! Timeouts that could be shorter, and by what they are judged.

use std::cmp::Reverse;
use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::durations::Spread;
use callboard_domain::flakiness::DEFAULT_WINDOW;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::timeouts::{
    TimeoutKind, TimeoutOpportunity, TimeoutOverrides, TimeoutRules, timeout_opportunity,
};
use callboard_store::db::Session;
use callboard_store::rollups::LaneOfEach;
use callboard_store::rollups::scores::{self, Durations};
use callboard_store::{boxed, executions, test_cases};
use serde::Serialize;
use utoipa::ToSchema;

use crate::page::Slice;
use crate::performance::NewestQuery;
use crate::shapes::words::TimeoutKindWord;
use crate::test_cases::LaneQuery;
use crate::{Context, Result, settings};
use callboard_ingest::read_session_with_fresh_aggregates;

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
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let Some(lane) = query.lane.find(&mut session, project).await? else {
        return Ok(Slice { items: Vec::new(), next: None });
    };
    let found = scores::durations(&mut session, project, lane, query.runs, query.since).await?;
    let newest = found.iter().map(|test| test.last_execution.get()).collect();
    let limits = executions::timeouts(&mut session, project, newest).await?;
    let rules = rules(&mut session).await?;
    let mut rows: Vec<Opportunity> =
        found.into_iter().filter_map(|test| Opportunity::new(test, &limits, &rules)).collect();
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

/// Timeouts of executions (ms), and whether their tests are marked as slow.
type Limits = HashMap<ExecutionId, (Option<i64>, bool)>;

/// A test whose timeout could be shorter.
struct Opportunity {
    found: TimeoutOpportunity,
    spread: Spread,
    timeout: Option<i64>,
    is_slow: bool,
    test: Durations,
}

impl Opportunity {
    /// That of a test, when its timeout could be shorter.
    fn new(test: Durations, limits: &Limits, rules: &TimeoutRules) -> Option<Self> {
        let spread = Spread::from_durations(&test.passed_ms)?;
        let (timeout, is_slow) = limits.get(&test.last_execution).copied().unwrap_or_default();
        let found = timeout_opportunity(&spread, timeout, test.timed_out, is_slow, rules)?;
        Some(Self { found, spread, timeout, is_slow, test })
    }
}

/// What shorter timeouts would save in a run of each of some projects, ms: for
/// each test what its newest timeouts would have cost less, spread over its
/// runs. Projects without such a test are left out.
pub(crate) async fn savings(
    session: &mut Session,
    projects: Vec<i64>,
    lane: &LaneQuery,
) -> Result<HashMap<ProjectId, i64>> {
    let mut savings: HashMap<ProjectId, i64> = HashMap::new();
    if projects.is_empty() {
        return Ok(savings);
    }
    let lanes = LaneOfEach { projects, lane: lane.key() };
    let tests = scores::durations_of_timed_out(session, lanes, DEFAULT_WINDOW).await?;
    let newest = tests.iter().map(|(project, test)| (*project, test.last_execution)).collect();
    let limits = executions::timeouts_in(session, newest).await?;
    let rules = rules(session).await?;
    for (project, test) in tests {
        if let Some(one) = Opportunity::new(test, &limits, &rules) {
            let saving = one.found.saving_ms / (one.spread.count + one.test.failed).max(1);
            *savings.entry(project).or_default() += saving;
        }
    }
    Ok(savings)
}
