//! Mounting handlers. [`Routes`] is the only way: it takes a [`RouteId`], so
//! every handler has a row in the route table, and it puts the checks of that
//! row in front of the handler, in the order of the security design.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};
use callboard_auth::routes::{BodyLimit, Method, OriginRule};
use callboard_auth::{Route, RouteId};
use http::header::{CONTENT_LENGTH, EXPECT, HeaderMap};

use crate::error::ApiError;
use crate::extract::{Caller, MaxBodyBytes, discard};
use crate::sandbox::Site;
use crate::state::AppState;

/// Collects the handlers of a function crate.
///
/// ```no_run
/// use axum::{Json, Router};
/// use callboard_auth::RouteId;
/// use callboard_http::{AppState, Routes, extract::Caller};
///
/// async fn me(caller: Caller) -> Json<bool> {
///     Json(caller.role().is_some())
/// }
///
/// fn router(state: AppState) -> Router {
///     Routes::new(state).on(RouteId::Me, me).into_router()
/// }
/// ```
#[derive(Debug)]
#[must_use = "routes serve nothing until they are a router"]
pub struct Routes {
    router: Router<AppState>,
    state: AppState,
    mounted: BTreeSet<RouteId>,
}

impl Routes {
    /// No routes yet.
    pub fn new(state: AppState) -> Self {
        Self { router: Router::new(), state, mounted: BTreeSet::new() }
    }

    /// Mounts the handler of a route.
    pub fn on<H, T>(mut self, id: RouteId, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        let route = id.route();
        let filter = match route.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        let guarded = MethodRouter::new()
            .on(filter, handler)
            .route_layer(from_fn_with_state(Guarded { state: self.state.clone(), route }, guard));
        self.router = self.router.route(route.pattern, guarded);
        self.mounted.insert(id);
        self
    }

    /// Mounts a handler for every method that has no row at the path of
    /// `id`. It is behind the Host gate only: it must answer from the request
    /// alone.
    pub fn otherwise<H, T>(mut self, id: RouteId, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        let rest =
            MethodRouter::new().fallback(handler).layer(from_fn_with_state(self.state.clone(), guard_host));
        self.router = self.router.route(id.route().pattern, rest);
        self
    }

    /// The router.
    pub fn into_router(self) -> Router {
        self.state.note_mounted(self.mounted);
        self.router.with_state(self.state)
    }
}

#[derive(Clone)]
struct Guarded {
    state: AppState,
    route: &'static Route,
}

/// Steps 1 to 4 of the request order: declared size, Host and Origin, caller,
/// role; then whether writes are possible at all.
async fn guard(
    State(Guarded { state, route }): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Response {
    let limit = match route.body_limit {
        BodyLimit::Fixed(bytes) => bytes,
        BodyLimit::Submit => state.config().max_submit_bytes,
        BodyLimit::Upload => state.config().max_upload_bytes,
    };
    match check(&state, route, request.headers(), limit).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(MaxBodyBytes(limit));
            next.run(request).await
        }
        Err(error) => refuse(request, error),
    }
}

async fn check(state: &AppState, route: &Route, headers: &HeaderMap, limit: u64) -> Result<Caller, ApiError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(ApiError::body_too_large(limit));
    }
    let gate = state.gate();
    let named = gate.effective_origin(headers);
    if route.id != RouteId::Health {
        gate.check_host(named.as_ref())?;
    }
    if route.method != Method::Get {
        match route.origins {
            OriginRule::Site => gate.check_origin(headers, named.as_ref())?,
            OriginRule::Mcp => {
                gate.check_mcp_origin(headers)?;
            }
        }
    }
    let identity = state.authenticator().authenticate(route, headers)?;
    identity.admit(route)?;
    if route.mutates && !state.schema_is_current().await? {
        return Err(ApiError::migration_pending());
    }
    Ok(Caller::new(identity))
}

async fn guard_host(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let named = request.extensions().get::<Site>().and(state.gate().effective_origin(request.headers()));
    match state.gate().check_host(named.as_ref()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refuse(request, refusal.into()),
    }
}

/// Answers without having read the body; what of it is under way is let in,
/// so that the client reads the answer and not a reset. A client that waits
/// for `100 Continue` has sent nothing.
fn refuse(request: Request, error: ApiError) -> Response {
    if !request.headers().contains_key(EXPECT) {
        discard(request.into_body().into_data_stream());
    }
    error.into_response()
}
