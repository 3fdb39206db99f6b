//! `GET /api/health`: for load balancers and people who wonder.

use std::future::Future;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::{ApiError, AppState};
use callboard_store::SchemaState;
use http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// How long a part may take to show a sign of life.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum Probe {
    /// Database and file storage too.
    #[default]
    Full,
    /// Nothing outside of the process.
    Live,
}

/// What to look at.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `live` checks nothing outside of the process.
    #[param(required = false, inline)]
    probe: Probe,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let probe = query.one_of("probe", &[("full", Probe::Full), ("live", Probe::Live)])?;
        Ok(Self { probe: probe.unwrap_or_default() })
    }
}

/// Whether the service works.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthAnswer {
    /// `ok`, or `error` with status 503.
    #[schema(example = "ok")]
    status: &'static str,
    /// `ok`, `unreachable`, `migration_pending`, `version_too_old` when a version that is more than one release newer
    /// migrated the database, or `auth_mode_differs` when another process on this database
    /// requires sign-in and this one does not; absent for a live probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ok")]
    database: Option<&'static str>,
    /// `ok` or `unreachable`; absent for a live probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ok")]
    storage: Option<&'static str>,
}

/// Whether the service and what it needs are reachable.
#[utoipa::path(get, path = "/api/health", tag = "service", params(Params),
    responses(
        (status = 200, body = HealthAnswer),
        (status = 503, description = "The database or the file storage is not usable", body = HealthAnswer)
    ))]
pub(crate) async fn health(State(state): State<AppState>, Query(asked): Query<Params>) -> Response {
    if asked.probe == Probe::Live {
        return Json(HealthAnswer { status: "ok", database: None, storage: None }).into_response();
    }
    let database = async {
        match in_time(state.store().check_database()).await {
            Ok(()) => match in_time(state.schema_is_current()).await {
                Ok(true) => match in_time(state.auth_mode_differs()).await {
                    Ok(false) => "ok",
                    Ok(true) => "auth_mode_differs",
                    Err(Unreachable) => "unreachable",
                },
                Ok(false) => match in_time(state.store().schema_state()).await {
                    Ok(SchemaState::TooNew) => "version_too_old",
                    Ok(SchemaState::Behind | SchemaState::Current) => "migration_pending",
                    Err(Unreachable) => "unreachable",
                },
                Err(Unreachable) => "unreachable",
            },
            Err(Unreachable) => "unreachable",
        }
    };
    let storage = async { in_time(state.store().check_storage()).await.map_or("unreachable", |()| "ok") };
    let (database, storage) = tokio::join!(database, storage);
    let is_well = database == "ok" && storage == "ok";
    let (code, status) =
        if is_well { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "error") };
    (code, Json(HealthAnswer { status, database: Some(database), storage: Some(storage) })).into_response()
}

struct Unreachable;

async fn in_time<T, E>(check: impl Future<Output = Result<T, E>>) -> Result<T, Unreachable> {
    match tokio::time::timeout(PATIENCE, check).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) | Err(_) => Err(Unreachable),
    }
}
