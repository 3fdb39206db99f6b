//! What fails, across projects: open clusters by type of error, and those that
//! failed most often.

use callboard_auth::scope::Scope;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::boxed;
use callboard_store::clusters::list::error_types;
use callboard_store::clusters::reads::count_resolved;
use serde::Serialize;
use utoipa::ToSchema;

use super::{SeenProjects, WidgetQuery};
use crate::clusters::{self, ClusterQuery, ClusterSort, ClusterStatus};
use crate::shapes::ClusterWithProject;
use crate::{Context, Result};

/// Clusters that are shown.
const MOST_CLUSTERS: usize = 15;

/// Open failure clusters of several projects.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLandscape {
    /// Clusters that wait for a repair.
    pub total_open: i64,
    /// Clusters that were resolved within the days asked for, and still are.
    pub resolved_in_period: i64,
    /// Open clusters by type of error, the most frequent first.
    pub by_error_type: Vec<ErrorTypeCount>,
    /// Open clusters, those that failed most often first, fifteen at most.
    pub clusters: Vec<ClusterWithProject>,
}

/// Open clusters of one type of error.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorTypeCount {
    /// `timeout`, `assertion`, `strict-mode`, `navigation`, `crash` or `unknown`.
    #[schema(example = "timeout")]
    pub error_type: String,
    /// How many.
    pub count: i64,
}

/// What fails. Clusters are of all branches together, so neither `query.lane`
/// nor `query.full_runs` matters.
///
/// # Errors
/// [`QueryError::Store`](crate::QueryError::Store).
#[boxed]
pub async fn cluster_landscape(
    ctx: &Context,
    scope: &Scope,
    seen: &SeenProjects,
    query: &WidgetQuery,
    today: Day,
    now: Timestamp,
) -> Result<ClusterLandscape> {
    let (scope, span) = (query.scope(scope), query.span(today));
    let resolved = span.since.start()..Day(span.until.0 + 1).start();
    let mut session = ctx.store.db().read().await?;
    let by_type = error_types(&mut session, seen.keys()).await?;
    let resolved_in_period = count_resolved(&mut session, seen.keys(), resolved.start, resolved.end).await?;
    drop(session);
    let mut by_error_type: Vec<ErrorTypeCount> =
        by_type.into_iter().map(|(error_type, count)| ErrorTypeCount { error_type, count }).collect();
    by_error_type.sort_by_key(|row| std::cmp::Reverse(row.count));
    let wanted = ClusterQuery {
        statuses: vec![ClusterStatus::Open],
        sort: ClusterSort::Occurrences,
        ..ClusterQuery::default()
    };
    let most = clusters::list(ctx, &scope, &wanted, now, MOST_CLUSTERS).await?;
    Ok(ClusterLandscape {
        total_open: by_error_type.iter().map(|row| row.count).sum(),
        resolved_in_period,
        by_error_type,
        clusters: most.items,
    })
}
