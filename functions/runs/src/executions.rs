//! `GET /api/test-runs/{id}/executions`: the executions of a run.

use axum::Json;
use axum::extract::State;
use callboard_auth::RouteId;
use callboard_domain::ids::{ClusterId, RunId};
use callboard_domain::ingest::Priority;
use callboard_domain::status::TestStatus;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{Caller, FromQuery, Path, Query, QueryReader};
use callboard_http::page::{CountedPage, PageRequest};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::executions::{self, ExecutionKey, ExecutionQuery, OfCluster, OutcomeGroup, Sort};
use callboard_query::shapes::ExecutionItem;
use callboard_query::shapes::words::{PriorityWord, TestStatusWord};
use callboard_query::{clusters, resolve, runs};
use serde::Serialize;
use utoipa::IntoParams;

const SORTS: [&str; 5] = ["trouble", "id", "duration", "startedAt", "file"];

callboard_query::vocabularies! {
    /// How a test ended, flaky apart from passed.
    OutcomeWord => OutcomeGroup::ALL.map(OutcomeGroup::as_str);
    /// An order of executions.
    SortWord => SORTS;
}

/// The largest number a shard or worker filter takes.
const MAX_INDEX: i64 = 1_000_000;

/// Which executions a list shows, and in which order.
#[derive(Debug, Default, PartialEq, Serialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct ExecutionFilters {
    /// Comma list or repeated: passed (with flaky), failed, timedout, interrupted, skipped, didnotrun.
    #[param(required = false, value_type = Vec<TestStatusWord>, example = json!(["failed", "timedout"]), inline)]
    status: Vec<TestStatus>,
    /// Comma list or repeated: failing (failed or timedout), flaky, interrupted, didnotrun, skipped, passed (at
    /// the first attempt).
    #[param(required = false, value_type = Vec<OutcomeWord>, example = json!(["failing"]), inline)]
    outcome: Vec<OutcomeGroup>,
    /// Exact file of the test.
    file: Option<String>,
    /// Only tests whose title, describe titles or file contain this, in upper or lower case.
    q: Option<String>,
    /// Exact tag of the test, with or without `@`.
    tag: Option<String>,
    /// Exact owner of the test.
    owner: Option<String>,
    /// Priority of the test: critical, high, medium or low.
    #[param(value_type = Option<PriorityWord>, example = "high", inline)]
    priority: Option<Priority>,
    /// Exact name of the browser project; an empty value stands for tests without one.
    browser: Option<String>,
    /// Shard of the deciding attempt.
    #[param(minimum = 0, maximum = 1000000)]
    shard: Option<i64>,
    /// Worker of the deciding attempt.
    #[param(minimum = 0, maximum = 1000000)]
    worker: Option<i64>,
    /// Failure cluster.
    cluster_id: Option<i64>,
    /// Whether the test passed last time and fails now.
    is_new_regression: Option<bool>,
    /// Whether the test was stable last time and is flaky now.
    is_new_flaky: Option<bool>,
    /// Whether the test failed last time and passes now.
    is_fixed: Option<bool>,
    /// Whether the test was in quarantine.
    quarantined: Option<bool>,
    /// Whether the test was tried more than once.
    retried: Option<bool>,
    /// `trouble` (failing, flaky, interrupted, didnotrun, skipped, passed; the default), `id`, `duration` (longest
    /// first), `startedAt` (earliest first) or `file`.
    #[param(value_type = Option<SortWord>, example = "trouble", inline)]
    sort: Sort,
}

impl FromQuery for ExecutionFilters {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let statuses = TestStatus::ALL.map(TestStatus::as_str);
        let outcomes = OutcomeGroup::ALL.map(OutcomeGroup::as_str);
        Ok(Self {
            status: query.words("status", &statuses, TestStatus::parse)?,
            outcome: query.words("outcome", &outcomes, OutcomeGroup::parse)?,
            file: query.exact("file")?,
            q: query.text("q")?,
            tag: query.exact("tag")?,
            owner: query.exact("owner")?,
            priority: query.word("priority", &Priority::ALL.map(Priority::as_str), Priority::parse)?,
            browser: query.single("browser")?.map(str::to_owned),
            shard: query.number("shard", 0..=MAX_INDEX)?,
            worker: query.number("worker", 0..=MAX_INDEX)?,
            cluster_id: query.number("clusterId", 1..=i64::MAX)?,
            is_new_regression: query.flag("isNewRegression")?,
            is_new_flaky: query.flag("isNewFlaky")?,
            is_fixed: query.flag("isFixed")?,
            quarantined: query.flag("quarantined")?,
            retried: query.flag("retried")?,
            sort: query.word("sort", &SORTS, sort)?.unwrap_or_default(),
        })
    }
}

fn sort(word: &str) -> Option<Sort> {
    Some(match word {
        "trouble" => Sort::Trouble,
        "id" => Sort::Id,
        "duration" => Sort::Duration,
        "startedAt" => Sort::StartedAt,
        "file" => Sort::File,
        _ => return None,
    })
}

impl ExecutionFilters {
    /// Whether nothing is left out.
    fn is_everything(&self) -> bool {
        *self == Self { sort: self.sort, ..Self::default() }
    }

    /// The question behind the row with the key `after`.
    pub(crate) fn query(&self, after: Option<ExecutionKey>) -> ExecutionQuery {
        ExecutionQuery {
            statuses: self.status.clone(),
            outcomes: self.outcome.clone(),
            file: self.file.clone(),
            text: self.q.clone(),
            tag: self.tag.clone(),
            owner: self.owner.clone(),
            priority: self.priority.map(|priority| priority.as_str().to_owned()),
            browser: self.browser.clone(),
            shard: self.shard,
            worker: self.worker,
            place: None,
            cluster: self.cluster_id.map(|id| OfCluster::Id(ClusterId(id))),
            new_regression: self.is_new_regression,
            new_flaky: self.is_new_flaky,
            fixed: self.is_fixed,
            recurring: false,
            quarantined: self.quarantined,
            retried: self.retried,
            sort: self.sort,
            after,
        }
    }
}

/// Executions of a run.
///
/// # Errors
/// 404 `run_not_found`, `cluster_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/test-runs/{id}/executions", tag = "runs",
    params(("id" = i64, Path, description = "Run"), ExecutionFilters, PageRequest),
    responses((status = 200, body = CountedPage<ExecutionItem>)))]
pub(crate) async fn executions(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<RunId>,
    Query(filters): Query<ExecutionFilters>,
    Query(page): Query<PageRequest>,
) -> Result<Json<CountedPage<ExecutionItem>>, ApiError> {
    let cursors = CursorScope::new(RouteId::RunExecutions, &(id, &filters))?;
    let mut query = filters.query(cursors.decode(page.cursor.as_deref())?);
    let ctx = state.context(&site);
    let project = resolve::run(&ctx, caller.scope(), id).await?;
    if let Some(OfCluster::Id(cluster)) = query.cluster {
        let cluster = clusters::named(&ctx, caller.scope(), project, cluster).await?;
        query.cluster = Some(OfCluster::Id(cluster));
    }
    let total = if filters.is_everything() {
        let run = runs::get(&ctx, project, id).await?;
        // What a client only claims is not in the list.
        (run.totals_source == "rows").then_some(run.brief.totals.total_tests)
    } else {
        None
    };
    let found = executions::list(&ctx, project, id, &query, page.rows()).await?;
    Ok(Json(CountedPage::new(cursors.page(found)?, total)))
}
