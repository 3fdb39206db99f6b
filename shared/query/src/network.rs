//! Endpoints of the application under test, as the requests of its tests show
//! them: of one run, and of projects over some days.
//!
//! Only captured requests count: the failing ones of every attempt and its
//! slowest others. Days hold all branches and environments together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_auth::scope::Authorized;
use callboard_domain::endpoints::{Calls, Endpoint, Sample, Traffic, Worst};
use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::sketch::Sketch;
use callboard_domain::time::Day;
use callboard_domain::totals::rate;
use callboard_store::boxed;
use callboard_store::db::Session;
use callboard_store::rollups::{self, EndpointDay, RunEndpoint};
use callboard_store::test_cases;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::analytics::{SeenProjects, WidgetQuery};
use crate::page::Slice;
use crate::runs::required_run;
use crate::{Context, Result};

/// Endpoints that are looked at: those with the longest means in one project.
/// What is slow in all of them together is at least as slow in one.
const CANDIDATES: usize = 200;
/// Error rates are compared to this fraction.
const RATE_STEPS: i64 = 1_000_000;

/// How the endpoints of a run are sorted; equal ones by mean duration, then by
/// method and route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestSort {
    /// The least reliable first.
    #[default]
    ErrorRate,
    /// The slowest first.
    AvgDuration,
    /// The most frequent first.
    Count,
}

/// Place in a list of endpoints: what it is sorted by, then method and route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestKey {
    first: i64,
    then: i64,
    method: String,
    route: String,
}

/// The requests that the tests of a run made to one endpoint.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRequests {
    /// HTTP method; `*` for what a run with too many endpoints does not tell apart.
    #[schema(example = "GET")]
    pub method: String,
    /// Path with placeholders for what names one thing.
    #[schema(example = "/api/orders/:id")]
    pub route: String,
    /// Requests that are kept, of all attempts.
    #[schema(example = 43)]
    pub count: i64,
    /// Requests by HTTP status; 0 stands for no answer.
    #[schema(example = json!({ "200": 41, "503": 2 }))]
    pub status_codes: BTreeMap<u16, i64>,
    /// Share answered with a status of 400 or more, or not at all.
    #[schema(example = 0.0465)]
    pub error_rate: f64,
    /// Mean duration, ms.
    pub avg_duration: i64,
    /// Shortest duration, ms.
    pub min_duration: i64,
    /// Longest duration, ms.
    pub max_duration: i64,
    /// Nine in ten took at most this long, ms, to a twentieth.
    pub p90_duration: i64,
    /// Tests whose requests failed or took longest, five at most.
    pub test_cases: Vec<RequestingTest>,
    /// What the backend logged, three entries at most.
    pub server_logs: Vec<String>,
}

/// A test with the request it made.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestingTest {
    /// Test case.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// Execution that made the request.
    pub execution_id: i64,
    /// HTTP status; 0 stands for no answer.
    pub status: u16,
    /// How long the request took, ms.
    pub duration: i64,
}

impl RequestSort {
    fn key(self, row: &RunEndpoint) -> RequestKey {
        let traffic = &row.calls.traffic;
        let errors = traffic.errors * RATE_STEPS / traffic.requests.max(1);
        let (first, then) = match self {
            Self::ErrorRate => (errors, traffic.mean_ms()),
            Self::AvgDuration => (traffic.mean_ms(), 0),
            Self::Count => (traffic.requests, traffic.mean_ms()),
        };
        let Endpoint { method, route } = row.endpoint.clone();
        RequestKey { first: -first, then: -then, method, route }
    }
}

/// The endpoints that the tests of a run called; at most 501, each told from
/// sums that are written with the results. With the page comes how many there
/// are.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn requests_of_run(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    sort: RequestSort,
    after: Option<RequestKey>,
    limit: usize,
) -> Result<(Slice<NetworkRequests, RequestKey>, usize)> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project, run).await?;
    let mut rows = rollups::endpoints_of_run(&mut session, project, run).await?;
    let total = rows.len();
    rows.retain(|row| after.as_ref().is_none_or(|after| sort.key(row) > *after));
    rows.sort_by_cached_key(|row| sort.key(row));
    let rows = Slice::cut(rows, limit, |row| sort.key(row));
    let samples = rows.items.iter().flat_map(|row| &row.calls.samples);
    let titles = titles(&mut session, project, samples).await?;
    Ok((rows.map(|row| shown(row, &titles)), total))
}

fn shown(row: RunEndpoint, titles: &BTreeMap<TestCaseId, String>) -> NetworkRequests {
    let traffic = row.calls.traffic;
    let mut told = BTreeSet::new();
    let tests = row.calls.samples.iter().filter(|sample| told.insert(sample.test_case));
    NetworkRequests {
        count: traffic.requests,
        error_rate: rate(traffic.errors, traffic.requests).unwrap_or_default(),
        avg_duration: traffic.mean_ms(),
        min_duration: traffic.min_ms,
        max_duration: traffic.max_ms,
        p90_duration: quantile(&traffic.sketch, 0.9, traffic.max_ms),
        test_cases: tests
            .filter_map(|sample| Some(requesting(sample, titles.get(&sample.test_case)?.clone())))
            .collect(),
        server_logs: row.calls.logs,
        status_codes: traffic.codes,
        method: row.endpoint.method,
        route: row.endpoint.route,
    }
}

/// A quantile of durations; a sketch may answer a twentieth more than the
/// longest there was.
fn quantile(sketch: &Sketch, share: f64, longest: i64) -> i64 {
    sketch.quantile(share).map_or(0, |ms| ms.min(longest))
}

fn requesting(sample: &Sample, title: String) -> RequestingTest {
    RequestingTest {
        id: sample.test_case.get(),
        title,
        execution_id: sample.execution.get(),
        status: sample.status,
        duration: sample.duration_ms,
    }
}

async fn titles<'s>(
    session: &mut Session,
    project: ProjectId,
    samples: impl Iterator<Item = &'s Sample>,
) -> Result<BTreeMap<TestCaseId, String>> {
    let cases: BTreeSet<i64> = samples.map(|sample| sample.test_case.get()).collect();
    let cases = test_cases::get_many(session, project, cases.into_iter().collect()).await?;
    Ok(cases.into_iter().map(|(id, case)| (id, case.title)).collect())
}

/// An endpoint of one or several projects.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlowEndpoint {
    /// HTTP method; `*` for what is not told apart.
    #[schema(example = "POST")]
    pub method: String,
    /// Path with placeholders for what names one thing.
    #[schema(example = "/api/orders")]
    pub route: String,
    /// Requests.
    pub requests: i64,
    /// Half of them took at most this long, ms, to a twentieth.
    pub p50_duration: i64,
    /// Nine in ten took at most this long, ms, to a twentieth.
    pub p90_duration: i64,
    /// Longest duration, ms.
    pub max_duration: i64,
    /// Share answered with a status of 400 or more, or not at all.
    pub error_rate: f64,
    /// Projects whose tests called it.
    pub project_count: i64,
    /// The slowest requests, one of each execution, five at most.
    pub slowest: Vec<SlowRequest>,
}

/// A slow request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlowRequest {
    /// Project of the execution.
    pub project_id: i64,
    /// The test with its execution.
    #[serde(flatten)]
    pub test: RequestingTest,
}

/// What an endpoint adds up to across projects.
#[derive(Debug, Default)]
struct Together {
    projects: BTreeSet<ProjectId>,
    traffic: Traffic,
    days: Vec<EndpointDay>,
}

/// The slowest endpoints of some projects over some days, by the time nine in
/// ten requests took at most: of the 200 with the longest means. Days hold no
/// branches, so neither `query.lane` nor `query.full_runs` matters.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn slow_endpoints(
    ctx: &Context,
    seen: &SeenProjects,
    query: &WidgetQuery,
    today: Day,
) -> Result<Vec<SlowEndpoint>> {
    let projects = seen.keys();
    let span = query.span(today);
    let mut session = ctx.store.db().read().await?;
    let together = slowest(&mut session, &projects, (span.since, span.until)).await?;
    let mut rows: Vec<(i64, Endpoint, Together)> = together
        .into_iter()
        .map(|(endpoint, all)| {
            let traffic = &all.traffic;
            (quantile(&traffic.sketch, 0.9, traffic.max_ms), endpoint, all)
        })
        .collect();
    rows.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    rows.truncate(query.limit);

    // Only of what is shown are the slowest requests read.
    let samples: Vec<Vec<Sample>> = rows.iter().map(|(.., all)| all.slowest()).collect::<Result<_>>()?;
    let cases: BTreeSet<i64> = samples.iter().flatten().map(|sample| sample.test_case.get()).collect();
    let callers = if cases.is_empty() {
        HashMap::new()
    } else {
        test_cases::get_in(&mut session, projects, cases.into_iter().collect()).await?
    };
    let items = rows.into_iter().zip(samples).map(|((p90, endpoint, all), samples)| {
        let slowest = samples.iter().filter_map(|sample| {
            let case = callers.get(&sample.test_case)?;
            let test = requesting(sample, case.title.clone());
            Some(SlowRequest { project_id: case.project.get(), test })
        });
        let traffic = &all.traffic;
        SlowEndpoint {
            requests: traffic.requests,
            p50_duration: quantile(&traffic.sketch, 0.5, traffic.max_ms),
            p90_duration: p90,
            max_duration: traffic.max_ms,
            error_rate: rate(traffic.errors, traffic.requests).unwrap_or_default(),
            project_count: i64::try_from(all.projects.len()).unwrap_or(i64::MAX),
            slowest: slowest.collect(),
            method: endpoint.method,
            route: endpoint.route,
        }
    });
    Ok(items.collect())
}

impl Together {
    fn add(&mut self, day: EndpointDay) -> Result<()> {
        day.add_to(&mut self.traffic)?;
        self.projects.insert(day.project);
        self.days.push(day);
        Ok(())
    }

    /// The slowest requests of all its days.
    fn slowest(&self) -> Result<Vec<Sample>> {
        let mut all = Calls::default();
        for day in &self.days {
            all.merge(&Calls { samples: day.slowest()?, ..Calls::default() }, Worst::Slowest);
        }
        Ok(all.samples)
    }
}

/// What the endpoints with the longest means add up to, however fast they are
/// in one of the projects.
async fn slowest(
    session: &mut Session,
    projects: &[i64],
    days: (Day, Day),
) -> Result<BTreeMap<Endpoint, Together>> {
    let most = i64::try_from(CANDIDATES).unwrap_or(i64::MAX);
    let endpoints = rollups::slowest_endpoints(session, projects.to_vec(), days, most).await?;
    let routes: BTreeSet<String> = endpoints.iter().map(|endpoint| endpoint.route.clone()).collect();
    let mut all: BTreeMap<Endpoint, Together> =
        endpoints.into_iter().map(|endpoint| (endpoint, Together::default())).collect();
    if routes.is_empty() {
        return Ok(all);
    }
    let routes = routes.into_iter().collect();
    for day in rollups::endpoints_of_days(session, projects.to_vec(), days, routes).await? {
        if let Some(together) = all.get_mut(&day.endpoint) {
            together.add(day)?;
        }
    }
    Ok(all)
}
