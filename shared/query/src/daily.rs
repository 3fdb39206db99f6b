//! What ran on each day and how it ended, from the stored daily counts. A
//! trend reads one row per project and day, however many runs there were.

use std::collections::BTreeMap;

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_domain::lane::LaneKey;
use callboard_domain::time::Day;
use callboard_domain::totals::Totals as StoredTotals;
use callboard_store::{lanes, rollups};
use serde::Serialize;
use utoipa::ToSchema;

use crate::shapes::Totals;
use crate::test_cases::LaneQuery;
use crate::{Context, Result};

/// The runs of one UTC day.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DayCounts {
    /// Day.
    #[schema(value_type = String, format = Date)]
    pub date: Day,
    /// Runs that started on it.
    pub runs: i64,
    /// Those that passed.
    pub passed_runs: i64,
    /// Totals over these runs; timed out is not told apart.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Days of some projects together, oldest first; days without runs are left
/// out.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
pub async fn counts(
    ctx: &Context,
    projects: &[Authorized<ProjectId>],
    lane: &LaneQuery,
    since: Day,
) -> Result<Vec<DayCounts>> {
    let mut session = ctx.store.db().read().await?;
    let key = LaneKey::asked(lane.branch.as_deref(), lane.environment.as_deref());
    let mut days: BTreeMap<Day, (i64, i64, StoredTotals)> = BTreeMap::new();
    for project in projects {
        let project = project.get();
        let Some(lane) = lanes::find_lane(&mut session, project, &key).await? else { continue };
        for day in rollups::project_days(&mut session, project, lane, since).await? {
            let (runs, passed, totals) = days.entry(day.day).or_default();
            *runs += day.runs;
            *passed += day.runs_passed;
            *totals = sum(totals, &day.totals);
        }
    }
    let shown = days.into_iter().filter(|(_, (runs, ..))| *runs > 0);
    Ok(shown
        .map(|(date, (runs, passed_runs, totals))| DayCounts {
            date,
            runs,
            passed_runs,
            totals: totals.into(),
        })
        .collect())
}

fn sum(left: &StoredTotals, right: &StoredTotals) -> StoredTotals {
    StoredTotals {
        total_tests: left.total_tests + right.total_tests,
        passed_tests: left.passed_tests + right.passed_tests,
        failed_tests: left.failed_tests + right.failed_tests,
        timed_out_tests: left.timed_out_tests + right.timed_out_tests,
        interrupted_tests: left.interrupted_tests + right.interrupted_tests,
        skipped_tests: left.skipped_tests + right.skipped_tests,
        did_not_run_tests: left.did_not_run_tests + right.did_not_run_tests,
        flaky_tests: left.flaky_tests + right.flaky_tests,
    }
}
