//! `GET /api/test-cases/{id}/stability-trend`: a test's outcomes over time.

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::TestCaseId;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::shapes::{RunCounts, StabilityBucket};
use callboard_query::{projects, resolve, test_cases};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::lane::Lane;

const BY: [&str; 1] = ["day"];

callboard_query::vocabularies! {
    /// What the executions are split by.
    ByWord => BY;
}

const DEFAULT_BUCKETS: usize = 20;
const DEFAULT_DAYS: i64 = 30;

/// How the executions are split.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Split {
    /// Most parts the newest 200 executions are split into, 5 to 50; 20 by default. Not with `by`.
    #[param(minimum = 5, maximum = 50)]
    buckets: Option<usize>,
    /// `day`: one part for every UTC day with executions, instead of parts of equal size.
    #[param(value_type = Option<ByWord>, example = "day", inline)]
    by: Option<ByDay>,
    /// With `by=day`: how many days up to today, 1 to 366; 30 by default.
    #[param(minimum = 1, maximum = 366)]
    days: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct ByDay;

impl FromQuery for Split {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let buckets = query.number("buckets", 5..=50)?;
        let by = query.word("by", &BY, |word| (word == "day").then_some(ByDay))?;
        let days = query.number("days", 1..=366)?;
        if by.is_none() && days.is_some() {
            return Err(ApiError::invalid_query("days", "days goes with by=day."));
        }
        if by.is_some() && buckets.is_some() {
            return Err(ApiError::invalid_query("buckets", "buckets does not go with by=day."));
        }
        Ok(Self { buckets: buckets.and_then(|buckets| usize::try_from(buckets).ok()), by, days })
    }
}

/// A test's outcomes over time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StabilityTrend {
    /// The test.
    #[schema(value_type = i64)]
    test_case_id: TestCaseId,
    /// Oldest first.
    items: Vec<StabilityBucket>,
    /// Runs of its project; executions are counted of those that are kept, days of all.
    project_runs: RunCounts,
}

/// A test's outcomes over time: the newest 200 executions in parts of equal
/// size, or days.
///
/// # Errors
/// 404 `test_case_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-cases/{id}/stability-trend", tag = "cases",
    params(("id" = i64, Path, description = "Test case"), Split, Lane),
    responses((status = 200, body = StabilityTrend)))]
pub(crate) async fn stability_trend(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<TestCaseId>,
    Query(split): Query<Split>,
    Query(lane): Query<Lane>,
) -> Result<Json<StabilityTrend>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::test_case(&ctx, caller.scope(), id).await?;
    let id = resolve::kept_test(&ctx, project, id).await?;
    let lane = lane.query();
    let items = match split.by {
        Some(ByDay) => {
            let days = split.days.unwrap_or(DEFAULT_DAYS);
            test_cases::stability_by_day(&ctx, project, id, &lane, days, state.now().day()).await?
        }
        None => {
            let buckets = split.buckets.unwrap_or(DEFAULT_BUCKETS);
            test_cases::stability_by_count(&ctx, project, id, &lane, buckets).await?
        }
    };
    let project_runs = projects::run_counts(&ctx, project).await?;
    Ok(Json(StabilityTrend { test_case_id: id, items, project_runs }))
}
