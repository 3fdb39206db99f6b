//! What stands out across projects.

use callboard_auth::scope::Scope;
use callboard_domain::ids::ProjectId;
use callboard_domain::standouts::{
    self, ClusterFacts, EndpointFacts, ProjectFacts, Severity, Standout, WindowSums,
};
use callboard_domain::time::Timestamp;
use callboard_store::boxed;
use callboard_store::rollups::{RunContribution, Windows};
use serde::Serialize;
use utoipa::ToSchema;

use super::{SeenProjects, WidgetQuery};
use crate::clusters::{self, ClusterQuery, ClusterSort, ClusterStatus};
use crate::network::SlowEndpoint;
use crate::{Context, Result, timeouts};
use callboard_ingest::read_session_with_fresh_aggregates_in;

/// What is shown at most.
const MOST: usize = 10;
/// Clusters that are looked at, of those seen in the window the ones that failed most often.
const CLUSTERS: usize = 50;

/// Something that stands out.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InsightItem {
    /// Names it as long as it is there.
    #[schema(example = "pass-rate-drop:3")]
    pub id: String,
    /// The rule that says so.
    #[schema(example = "pass-rate-drop")]
    pub rule_id: &'static str,
    /// `critical`, `warning` or `good`.
    #[schema(value_type = String, example = "warning")]
    pub severity: Severity,
    /// One sentence with its numbers.
    pub message: String,
    /// What they are measured against.
    pub detail: Option<String>,
    /// Page that shows more.
    pub to: Option<String>,
    /// Project it is about; null for several.
    pub project_id: Option<i64>,
}

impl InsightItem {
    fn new(found: Standout, subject: &str, to: Option<String>, project_id: Option<i64>) -> Self {
        let Standout { rule, severity, message, detail, .. } = found;
        Self { id: format!("{rule}:{subject}"), rule_id: rule, severity, message, detail, to, project_id }
    }
}

/// What stands out in the projects of a caller, against the equal window
/// before; ten at most, what concerns more time first. `endpoints` are the
/// slowest of the projects that are `seen` and the same days.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn insights(
    ctx: &Context,
    scope: &Scope,
    seen: &SeenProjects,
    query: &WidgetQuery,
    endpoints: &[SlowEndpoint],
    now: Timestamp,
) -> Result<Vec<InsightItem>> {
    let (narrowed, today, ids) = (query.scope(scope), now.day(), seen.ids());
    let mut session = read_session_with_fresh_aggregates_in(ctx, Some(&ids)).await?;
    let mut all: Vec<(Standout, InsightItem)> = Vec::new();
    let mut add = |standout: Standout, subject: &str, to: Option<String>, project: Option<i64>| {
        all.push((standout.clone(), InsightItem::new(standout, subject, to, project)));
    };
    let windows = super::windows(&mut session, &ids, query, today).await?;
    // Without a timeout there is nothing to save, and nothing to read.
    let timed_out =
        ids.iter().filter(|id| windows.get(id).is_some_and(|of| of.now.totals.timed_out_tests > 0));
    let timed_out = timed_out.map(|id| id.get()).collect();
    let savings = timeouts::savings(&mut session, timed_out, &query.lane).await?;
    let streaks = crate::projects::default_branch_streaks(&mut session, &seen.rows).await?;
    drop(session);
    let (mut tests_ms, mut tests) = (0, 0);
    for reference in &seen.references {
        let id = ProjectId(reference.id);
        let streak = streaks.get(&id).copied().unwrap_or_default();
        let Windows { now: sums, before } = windows.get(&id).copied().unwrap_or_default();
        tests_ms += sums.tests_ms;
        tests += sums.totals.total_tests;
        let facts = ProjectFacts {
            now: window(&sums),
            before: window(&before),
            failing_streak: streak.runs,
            streak_ms: streak.ms,
            timeout_saving_ms: savings.get(&id).copied().unwrap_or_default(),
        };
        let name = reference.label.as_deref().unwrap_or(&reference.name);
        for standout in standouts::of_project(name, &facts) {
            let to = Some(ctx.links.project(reference.id));
            add(standout, &reference.id.to_string(), to, Some(reference.id));
        }
    }
    let mean_ms = if tests > 0 { tests_ms / tests } else { 0 };
    let wanted = ClusterQuery {
        statuses: vec![ClusterStatus::Open],
        seen_from: Some(query.span(today).since.start()),
        sort: ClusterSort::Occurrences,
        ..ClusterQuery::default()
    };
    for cluster in clusters::list(ctx, &narrowed, &wanted, now, CLUSTERS).await?.items {
        let item = &cluster.cluster;
        // What has stopped failing waits for a person to close it, and costs nothing.
        if item.fix_landed_at.is_some() {
            continue;
        }
        let facts = ClusterFacts {
            name: item.brief.title.clone().unwrap_or_else(|| item.brief.signature.clone()),
            age_days: today.0 - item.first_seen_at.day().0,
            occurrences: item.brief.occurrences,
        };
        if let Some(standout) = standouts::of_cluster(&facts, mean_ms) {
            let to = Some(item.url.clone());
            add(standout, &item.brief.id.to_string(), to, Some(item.brief.project_id));
        }
    }
    for endpoint in endpoints {
        let facts = EndpointFacts {
            name: format!("{} {}", endpoint.method, endpoint.route),
            requests: endpoint.requests,
            p90_ms: endpoint.p90_duration,
            projects: endpoint.project_count,
        };
        if let Some(standout) = standouts::of_endpoint(&facts) {
            add(standout, &facts.name, None, None);
        }
    }
    standouts::sort(&mut all);
    all.truncate(MOST);
    Ok(all.into_iter().map(|(_, item)| item).collect())
}

const fn window(sums: &RunContribution) -> WindowSums {
    WindowSums {
        runs: sums.runs,
        passed: sums.totals.passed_tests,
        failed: sums.totals.failed_tests,
        run_ms: sums.run_ms,
        wasted_ms: sums.wasted_ms + sums.lost_ms,
        regressions: sums.new_regressions,
    }
}
