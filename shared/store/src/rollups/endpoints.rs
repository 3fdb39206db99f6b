//! Endpoints of the application under test, by run and by day of a project.
//!
//! Both are written in the transaction of the executions that brought the
//! requests. A run holds [`MAX_ENDPOINTS`] of them and so does a day; what
//! comes after that counts as [`Endpoint::rest`], and a row of a run knows
//! whether its day tells it apart, so that it can be taken back from where it
//! was counted.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::endpoints::{Calls, Endpoint, MAX_ENDPOINTS, Sample, Traffic, Worst};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::sketch::{Sketch, bucket_of};
use callboard_domain::time::Day;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::{Backend, Bulk, Column, Reader, Row, Session, args, statements};
use crate::{Result, StoreError};

/// One more than a run or a day holds.
const MOST: i64 = MAX_ENDPOINTS as i64 + 1;

macro_rules! of_run {
    ($tail:literal) => {
        concat!(
            "SELECT method, route, n, errors, codes, sum_ms, min_ms, max_ms, sketch, samples, logs, is_apart FROM run_endpoints \
             WHERE project_id = $1 AND run_id = $2 ",
            $tail
        )
    };
}

statements! {
    /// Every endpoint of a run, at most 501. PK
    OF_RUN = of_run!("ORDER BY method, route");
    /// Some endpoints of a run. PK
    SOME_OF_RUN = of_run!("AND route in_texts($3)");
    /// Which endpoints a run holds. PK
    NAMES_OF_RUN = "SELECT method, route FROM run_endpoints WHERE project_id = $1 AND run_id = $2 LIMIT $3";
    /// Which endpoints a day holds. PK
    NAMES_OF_DAY = "SELECT method, route FROM endpoint_daily WHERE project_id = $1 AND day = $2 LIMIT $3";
    /// Some endpoints of a day, held until the transaction ends; in the order everybody locks in. PK
    LOCK_DAY = "SELECT method, route, n, errors, sum_ms, max_ms, sketch, slowest FROM endpoint_daily \
        WHERE project_id = $1 AND day = $2 AND route in_texts($3) ORDER BY method, route for_update()";
    /// Endpoints of a run whose executions are gone. PK
    DROP_RUN = "DELETE FROM run_endpoints WHERE project_id = $1 AND run_id = $2";
    /// Endpoints of a day that nothing counts for any more. PK
    DROP_EMPTY = "DELETE FROM endpoint_daily WHERE project_id = $1 AND day = $2 AND route in_texts($3) AND n <= 0";
    /// Endpoints of some projects over some days, those with the longest mean duration in one of the projects first. PK
    SLOWEST = "SELECT method, route FROM (SELECT method, route, CAST(SUM(sum_ms) AS BIGINT) / CAST(SUM(n) AS BIGINT) AS mean_ms \
        FROM endpoint_daily WHERE project_id in_ints($1) AND day BETWEEN $2 AND $3 AND n > 0 GROUP BY project_id, method, route) AS means \
        GROUP BY method, route ORDER BY MAX(mean_ms) DESC, method, route LIMIT $4";
    /// Some endpoints of some projects on some days. PK
    OF_DAYS = "SELECT method, route, n, errors, sum_ms, max_ms, sketch, slowest, project_id FROM endpoint_daily \
        WHERE project_id in_ints($1) AND day BETWEEN $2 AND $3 AND route in_texts($4) AND n > 0";
}

static WRITE_RUN: Bulk = Bulk::new(
    "rollups::WRITE_RUN_ENDPOINTS",
    2,
    "INSERT INTO run_endpoints (project_id, run_id, method, route, n, errors, codes, sum_ms, min_ms, max_ms, sketch, samples, logs, is_apart) \
     SELECT $1, $2, r.method, r.route, r.n, r.errors, r.codes, r.sum_ms, r.min_ms, r.max_ms, r.sketch, r.samples, r.logs, r.is_apart FROM",
    &[
        Column::Text("method"),
        Column::Text("route"),
        Column::Int("n"),
        Column::Int("errors"),
        Column::Text("codes"),
        Column::Int("sum_ms"),
        Column::Int("min_ms"),
        Column::Int("max_ms"),
        Column::Bytes("sketch"),
        Column::Text("samples"),
        Column::Text("logs"),
        Column::Int("is_apart"),
    ],
    "WHERE true ON CONFLICT (project_id, run_id, method, route) DO UPDATE SET n = excluded.n, errors = excluded.errors, \
     codes = excluded.codes, sum_ms = excluded.sum_ms, min_ms = excluded.min_ms, max_ms = excluded.max_ms, \
     sketch = excluded.sketch, samples = excluded.samples, logs = excluded.logs",
);

static WRITE_DAY: Bulk = Bulk::new(
    "rollups::WRITE_ENDPOINT_DAYS",
    2,
    "INSERT INTO endpoint_daily (project_id, day, method, route, n, errors, sum_ms, max_ms, sketch, slowest) \
     SELECT $1, $2, r.method, r.route, r.n, r.errors, r.sum_ms, r.max_ms, r.sketch, r.slowest FROM",
    &[
        Column::Text("method"),
        Column::Text("route"),
        Column::Int("n"),
        Column::Int("errors"),
        Column::Int("sum_ms"),
        Column::Int("max_ms"),
        Column::Bytes("sketch"),
        Column::Text("slowest"),
    ],
    "WHERE true ON CONFLICT (project_id, day, method, route) DO UPDATE SET n = excluded.n, errors = excluded.errors, \
     sum_ms = excluded.sum_ms, max_ms = excluded.max_ms, sketch = excluded.sketch, slowest = excluded.slowest",
);

/// Makes rows that nobody else can make until the transaction ends.
static RESERVE_DAY: Bulk = Bulk::new(
    "rollups::RESERVE_ENDPOINT_DAYS",
    2,
    "INSERT INTO endpoint_daily (project_id, day, method, route, n, errors, sum_ms, max_ms, sketch, slowest) \
     SELECT $1, $2, r.method, r.route, 0, 0, 0, 0, r.empty, '[]' FROM",
    &[Column::Text("method"), Column::Text("route"), Column::Bytes("empty")],
    "WHERE true ON CONFLICT (project_id, day, method, route) DO NOTHING",
);

pub(crate) static BULKS: &[&Bulk] = &[&WRITE_RUN, &WRITE_DAY, &RESERVE_DAY];

/// Where requests are counted.
#[derive(Debug, Clone, Copy)]
pub struct EndpointPlace {
    /// Project.
    pub project: ProjectId,
    /// Run, locked.
    pub run: RunId,
    /// UTC day of its order key.
    pub day: Day,
}

/// What a run tells of one endpoint.
#[derive(Debug, Clone)]
pub struct RunEndpoint {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Its requests.
    pub calls: Calls,
    /// Whether its day tells it apart.
    is_apart: bool,
}

/// Counts the requests of a batch. `is_fresh` is a run that has none yet.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn add_endpoints(
    session: &mut Session,
    place: EndpointPlace,
    is_fresh: bool,
    calls: BTreeMap<Endpoint, Calls>,
) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    let EndpointPlace { project, run, .. } = place;
    let mut known = BTreeMap::new();
    if !is_fresh {
        let rows = session.all(&SOME_OF_RUN, args![project, run, routes(calls.keys(), true)]).await?;
        for row in &rows {
            let found = read_run(row)?;
            known.insert(found.endpoint.clone(), found);
        }
    }
    let names = if is_fresh || calls.keys().all(|endpoint| known.contains_key(endpoint)) {
        BTreeSet::new()
    } else {
        names(&session.all(&NAMES_OF_RUN, args![project, run, MOST]).await?)?
    };
    let mut room = MAX_ENDPOINTS.saturating_sub(names.len());
    let mut more: BTreeMap<Endpoint, Calls> = BTreeMap::new();
    for (endpoint, calls) in calls {
        let has_place = known.contains_key(&endpoint) || room > 0;
        room -= usize::from(has_place && !known.contains_key(&endpoint));
        let counted = if has_place { endpoint } else { Endpoint::rest() };
        more.entry(counted).or_default().merge(&calls, Worst::Failing);
    }
    let day_of = places_of_day(session, place, &known, more.keys()).await?;
    add_to_day(session, place, &day_of, &more).await?;
    let mut rows = WRITE_RUN.rows();
    for (endpoint, calls) in more {
        let is_apart = day_of.get(&endpoint) == Some(&endpoint);
        let mut sums = known.remove(&endpoint).map(|row| row.calls).unwrap_or_default();
        sums.merge(&calls, Worst::Failing);
        let traffic = sums.traffic;
        rows.push([
            endpoint.method.into(),
            endpoint.route.into(),
            traffic.requests.into(),
            traffic.errors.into(),
            json(&traffic.codes)?.into(),
            traffic.sum_ms.into(),
            traffic.min_ms.into(),
            traffic.max_ms.into(),
            traffic.sketch.encode().into(),
            json(&sums.samples)?.into(),
            json(&sums.logs)?.into(),
            i64::from(is_apart).into(),
        ]);
    }
    session.execute_bulk(&WRITE_RUN, args![project, run], rows).await?;
    Ok(())
}

/// Which row of its day every endpoint counts for.
async fn places_of_day<'e>(
    session: &mut Session,
    place: EndpointPlace,
    known: &BTreeMap<Endpoint, RunEndpoint>,
    endpoints: impl Iterator<Item = &'e Endpoint>,
) -> Result<BTreeMap<Endpoint, Endpoint>> {
    let mut day_of = BTreeMap::new();
    let mut new = Vec::new();
    for endpoint in endpoints {
        match known.get(endpoint) {
            Some(row) => {
                let counted = if row.is_apart { endpoint.clone() } else { Endpoint::rest() };
                day_of.insert(endpoint.clone(), counted);
            }
            None => new.push(endpoint),
        }
    }
    if new.is_empty() {
        return Ok(day_of);
    }
    let names = names(&session.all(&NAMES_OF_DAY, args![place.project, place.day, MOST]).await?)?;
    let mut room = MAX_ENDPOINTS.saturating_sub(names.len());
    for endpoint in new {
        let is_listed = names.contains(endpoint) || *endpoint == Endpoint::rest();
        let has_place = is_listed || room > 0;
        room -= usize::from(has_place && !is_listed);
        let counted = if has_place { endpoint.clone() } else { Endpoint::rest() };
        day_of.insert(endpoint.clone(), counted);
    }
    Ok(day_of)
}

async fn add_to_day(
    session: &mut Session,
    place: EndpointPlace,
    day_of: &BTreeMap<Endpoint, Endpoint>,
    more: &BTreeMap<Endpoint, Calls>,
) -> Result<()> {
    let mut added: BTreeMap<&Endpoint, Calls> = BTreeMap::new();
    for (endpoint, calls) in more {
        let counted = day_of.get(endpoint).unwrap_or(endpoint);
        added.entry(counted).or_default().merge(calls, Worst::Slowest);
    }
    if session.backend() == Backend::Postgres {
        let mut missing = RESERVE_DAY.rows();
        for endpoint in added.keys() {
            let Endpoint { method, route } = (*endpoint).clone();
            missing.push([method.into(), route.into(), Vec::<u8>::new().into()]);
        }
        session.execute_bulk(&RESERVE_DAY, args![place.project, place.day], missing).await?;
    }
    let mut days = lock_day(session, place, routes(added.keys().copied(), false)).await?;
    let mut changed = BTreeMap::new();
    for (endpoint, calls) in added {
        let mut sums = days.remove(endpoint).unwrap_or_default();
        sums.merge(&calls, Worst::Slowest);
        changed.insert(endpoint.clone(), sums);
    }
    write_day(session, place, changed).await
}

/// Takes back everything a run counted for its day, and forgets it.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn take_back_endpoints(session: &mut Session, place: EndpointPlace) -> Result<()> {
    subtract_endpoints(session, place).await?;
    session.execute(&DROP_RUN, args![place.project, place.run]).await?;
    Ok(())
}

/// Adds what a restored run has of its own to its day again.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn restore_endpoints(session: &mut Session, place: EndpointPlace) -> Result<()> {
    let restored = of_run(session, place.project, place.run).await?;
    if restored.is_empty() {
        return Ok(());
    }
    let (mut day_of, mut more) = (BTreeMap::new(), BTreeMap::new());
    for row in restored {
        let counted = if row.is_apart { row.endpoint.clone() } else { Endpoint::rest() };
        day_of.insert(row.endpoint.clone(), counted);
        more.insert(row.endpoint, row.calls);
    }
    add_to_day(session, place, &day_of, &more).await
}

/// Takes what a run counted for its day out of it; the run keeps its own rows.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn subtract_endpoints(session: &mut Session, place: EndpointPlace) -> Result<()> {
    let EndpointPlace { project, run, day } = place;
    let gone = of_run(session, project, run).await?;
    if gone.is_empty() {
        return Ok(());
    }
    let rest = Endpoint::rest();
    let mut less: BTreeMap<Endpoint, Traffic> = BTreeMap::new();
    for row in &gone {
        let counted = if row.is_apart { &row.endpoint } else { &rest };
        less.entry(counted.clone()).or_default().merge(&row.calls.traffic);
    }
    let asked = routes(less.keys(), false);
    let mut days = lock_day(session, place, asked.clone()).await?;
    let mut changed = BTreeMap::new();
    for (endpoint, traffic) in less {
        let Some(mut sums) = days.remove(&endpoint) else { continue };
        let longest = sums.traffic.max_ms;
        sums.traffic.subtract(&traffic);
        sums.samples.retain(|sample| sample.execution.run() != run);
        // The slowest that is remembered is exact where the sketch only knows about.
        let left = sums.samples.first().map_or(0, |sample| sample.duration_ms);
        if sums.traffic.max_ms != longest && bucket_of(left) == bucket_of(sums.traffic.max_ms) {
            sums.traffic.max_ms = left;
        }
        changed.insert(endpoint, sums);
    }
    write_day(session, place, changed).await?;
    session.execute(&DROP_EMPTY, args![project, day, asked]).await?;
    Ok(())
}

async fn lock_day(
    session: &mut Session,
    place: EndpointPlace,
    routes: Vec<String>,
) -> Result<BTreeMap<Endpoint, Calls>> {
    session
        .all(&LOCK_DAY, args![place.project, place.day, routes])
        .await?
        .iter()
        .map(|row| read_day(&mut row.reader()))
        .collect()
}

/// What a day tells of an endpoint: it knows neither statuses nor what the
/// backend logged.
fn read_day(r: &mut Reader<'_>) -> Result<(Endpoint, Calls)> {
    let endpoint = Endpoint { method: r.text()?, route: r.text()? };
    let traffic = Traffic {
        requests: r.int()?,
        errors: r.int()?,
        codes: BTreeMap::new(),
        sum_ms: r.int()?,
        min_ms: 0,
        max_ms: r.int()?,
        sketch: sketch(&r.bytes()?)?,
    };
    let samples = parsed(&r.text()?)?;
    Ok((endpoint, Calls { traffic, samples, logs: Vec::new() }))
}

async fn write_day(
    session: &mut Session,
    place: EndpointPlace,
    days: BTreeMap<Endpoint, Calls>,
) -> Result<()> {
    let mut rows = WRITE_DAY.rows();
    for (endpoint, Calls { traffic, samples, .. }) in days {
        rows.push([
            endpoint.method.into(),
            endpoint.route.into(),
            traffic.requests.into(),
            traffic.errors.into(),
            traffic.sum_ms.into(),
            traffic.max_ms.into(),
            traffic.sketch.encode().into(),
            json(&samples)?.into(),
        ]);
    }
    session.execute_bulk(&WRITE_DAY, args![place.project, place.day], rows).await?;
    Ok(())
}

/// Every endpoint of a run, by method and route.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run(session: &mut Session, project: ProjectId, run: RunId) -> Result<Vec<RunEndpoint>> {
    session.all(&OF_RUN, args![project, run]).await?.iter().map(read_run).collect()
}

/// The endpoints of some projects with the longest mean durations in one of
/// them from one day to another, at most `limit`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn slowest_endpoints(
    session: &mut Session,
    projects: Vec<i64>,
    (since, until): (Day, Day),
    limit: i64,
) -> Result<BTreeSet<Endpoint>> {
    names(&session.all(&SLOWEST, args![projects, since, until, limit]).await?)
}

/// What one endpoint of a project did on a day. Its durations and requests are
/// read when they are needed: of most days they are not.
#[derive(Debug)]
pub struct EndpointDay {
    /// The project.
    pub project: ProjectId,
    /// The endpoint.
    pub endpoint: Endpoint,
    traffic: Traffic,
    sketch: Vec<u8>,
    slowest: String,
}

impl EndpointDay {
    fn read(row: &Row) -> Result<Self> {
        let mut r = row.reader();
        let endpoint = Endpoint { method: r.text()?, route: r.text()? };
        let (requests, errors, sum_ms, max_ms) = (r.int()?, r.int()?, r.int()?, r.int()?);
        let traffic = Traffic { requests, errors, sum_ms, max_ms, ..Traffic::default() };
        let (sketch, slowest) = (r.bytes()?, r.text()?);
        Ok(Self { project: ProjectId(r.int()?), endpoint, traffic, sketch, slowest })
    }

    /// Adds its requests to others; statuses are not known.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for durations that cannot be read.
    pub fn add_to(&self, sums: &mut Traffic) -> Result<()> {
        sums.merge(&self.traffic);
        let added = sums.sketch.merge_encoded(&self.sketch);
        added.ok_or(StoreError::Damaged("the durations of an endpoint"))
    }

    /// Its slowest requests.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when they cannot be read.
    pub fn slowest(&self) -> Result<Vec<Sample>> {
        parsed(&self.slowest)
    }
}

/// What some endpoints of some projects did from one day to another, day by
/// day. Endpoints that share a route with one that is asked for may come along.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn endpoints_of_days(
    session: &mut Session,
    projects: Vec<i64>,
    (since, until): (Day, Day),
    routes: Vec<String>,
) -> Result<Vec<EndpointDay>> {
    let rows = session.all(&OF_DAYS, args![projects, since, until, routes]).await?;
    rows.iter().map(EndpointDay::read).collect()
}

fn read_run(row: &Row) -> Result<RunEndpoint> {
    let mut r = row.reader();
    let endpoint = Endpoint { method: r.text()?, route: r.text()? };
    let (requests, errors) = (r.int()?, r.int()?);
    let codes = parsed(&r.text()?)?;
    let (sum_ms, min_ms, max_ms) = (r.int()?, r.int()?, r.int()?);
    let traffic = Traffic { requests, errors, codes, sum_ms, min_ms, max_ms, sketch: sketch(&r.bytes()?)? };
    let calls = Calls { traffic, samples: parsed(&r.text()?)?, logs: parsed(&r.text()?)? };
    Ok(RunEndpoint { endpoint, calls, is_apart: r.flag()? })
}

/// The routes to ask for; with `and_rest`, also that of what is not told apart.
fn routes<'e>(endpoints: impl Iterator<Item = &'e Endpoint>, and_rest: bool) -> Vec<String> {
    let mut routes: BTreeSet<String> = endpoints.map(|endpoint| endpoint.route.clone()).collect();
    if and_rest {
        routes.insert(Endpoint::rest().route);
    }
    routes.into_iter().collect()
}

fn names(rows: &[Row]) -> Result<BTreeSet<Endpoint>> {
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(Endpoint { method: r.text()?, route: r.text()? })
        })
        .collect()
}

fn sketch(bytes: &[u8]) -> Result<Sketch> {
    Sketch::decode(bytes).ok_or(StoreError::Damaged("the durations of an endpoint"))
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|_| StoreError::Damaged("numbers of an endpoint"))
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| StoreError::Damaged("numbers of an endpoint"))
}
