//! Mounting handlers. [`Routes`] is the only way: it takes a [`RouteId`], so
//! every handler has a row in the route table, and it puts the checks of that
//! row in front of the handler, in the order of the security design.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, any};
use callboard_auth::client_address::ClientAddress;
use callboard_auth::limits;
use callboard_auth::routes::{Access, BodyLimit, Method, OriginRule, RateClass};
use callboard_auth::{Identity, Route, RouteId};
use callboard_store::{SchemaState, boxed};
use http::Extensions;
use http::header::{CONTENT_LENGTH, EXPECT, HeaderMap, HeaderValue, ORIGIN, SET_COOKIE};

use crate::error::ApiError;
use crate::extract::{BodyRules, Caller, check_content_type, discard, is_browser_form};
use crate::front::asks_for_page;
use crate::idempotency;
use crate::precondition::{Condition, Readers};
use crate::recognise::{self, Recognised};
use crate::refused::{self, RequestInfo};
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
    /// Those of them that read, for comparison with `If-Match`.
    reading: Router<AppState>,
    readers: Readers,
    state: AppState,
    mounted: BTreeSet<RouteId>,
}

impl Routes {
    /// No routes yet.
    pub fn new(state: AppState) -> Self {
        Self {
            router: Router::new(),
            reading: Router::new(),
            readers: Readers::default(),
            state,
            mounted: BTreeSet::new(),
        }
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
            Method::Put => MethodFilter::PUT,
            Method::Patch => MethodFilter::PATCH,
            Method::Delete => MethodFilter::DELETE,
        };
        let readers = route.mutates.then(|| self.readers.clone());
        let guarded = Guarded { state: self.state.clone(), route, readers };
        let guarded = MethodRouter::new().on(filter, handler).route_layer(from_fn_with_state(guarded, guard));
        if route.method == Method::Get {
            self.reading = self.reading.route(route.pattern, guarded.clone());
        }
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

    /// Mounts a handler for pages that no row names. It is behind the checks
    /// of `like`, the row of a page that whoever sees any page may see.
    /// Requests of programs have the standard answer.
    pub fn elsewhere<H, T>(mut self, like: RouteId, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        let guarded = Guarded { state: self.state.clone(), route: like.route(), readers: None };
        let pages = any(handler).layer(from_fn_with_state(guarded, guard)).layer(from_fn(pages_only));
        self.router = self.router.fallback(pages);
        self
    }

    /// The router.
    pub fn into_router(self) -> Router {
        self.state.note_mounted(self.mounted);
        self.readers.set(self.reading.with_state(self.state.clone()));
        self.router.with_state(self.state)
    }
}

#[derive(Clone)]
struct Guarded {
    state: AppState,
    route: &'static Route,
    /// What the state is read with that a change may be bound to.
    readers: Option<Readers>,
}

/// Steps 1 to 4 of the request order: declared size, Host and Origin, caller,
/// role; then whether writes are possible at all.
#[boxed]
async fn guard(
    State(Guarded { state, route, readers }): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Response {
    let address = request.extensions().get::<ClientAddress>().copied();
    let limit = match route.body_limit {
        BodyLimit::Fixed(bytes) => bytes,
        BodyLimit::Submit => state.config().max_submit_bytes,
        BodyLimit::Upload => state.config().max_upload_bytes,
        BodyLimit::Events => state.config().max_events_bytes,
    };
    let Recognised { identity, renewed } =
        match recognised(&state, route, request.headers(), request.extensions(), limit).await {
            Ok(recognised) => recognised,
            Err(error) => {
                let response = refuse(request, error);
                let asked =
                    RequestInfo { route, path: String::new(), identity: &Identity::anonymous(), address };
                let refusal = refused::refusal_of(&asked, &response);
                refused::note(&state, asked, refusal).await;
                return response;
            }
        };
    let caller = Caller::new(identity.clone());
    let asked = RequestInfo { route, path: request.uri().path().to_owned(), identity: &identity, address };
    let takes_type = takes_type(route, request.headers());
    let condition = Condition::from_request(&request);
    let admitted = async {
        admitted(&state, route, &identity, address.as_ref()).await?;
        takes_type?;
        writable(&state, route).await?;
        match (readers, condition) {
            (Some(readers), Some(condition)) => readers.check(condition).await,
            _ => Ok(()),
        }
    };
    let admitted = admitted.await;
    let mut response = match admitted {
        Ok(()) => {
            settle(&state, route).await;
            request.extensions_mut().insert(caller.clone());
            request.extensions_mut().insert(BodyRules { limit, budget: state.store().memory().clone() });
            if route.mutates && route.method == Method::Post {
                idempotency::answer(&state, &identity, limit, request, next).await
            } else {
                next.run(request).await
            }
        }
        Err(error) => refuse(request, error),
    };
    if let Some(cookie) = renewed {
        renew(response.headers_mut(), cookie);
    }
    let refusal = refused::refusal_of(&asked, &response);
    refused::note(&state, asked, refusal).await;
    // For layers around the guard: a refused page still shows who is signed in.
    response.extensions_mut().insert(caller);
    response
}

/// Gives the browser its session sealed anew, unless the answer sets a
/// session of its own.
fn renew(headers: &mut HeaderMap, cookie: HeaderValue) {
    let name = |value: &HeaderValue| {
        let end = value.as_bytes().iter().position(|byte| *byte == b'=');
        end.map(|end| value.as_bytes()[..end].to_vec())
    };
    if !headers.get_all(SET_COOKIE).iter().any(|set| name(set) == name(&cookie)) {
        headers.append(SET_COOKIE, cookie);
    }
}

async fn recognised(
    state: &AppState,
    route: &Route,
    headers: &HeaderMap,
    extensions: &Extensions,
    limit: u64,
) -> Result<Recognised, ApiError> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(match route.body_limit {
            BodyLimit::Submit => ApiError::run_too_large(limit),
            _ => ApiError::body_too_large(limit),
        });
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
    // Before the caller is looked up: a write is refused whoever asks, and costs nothing.
    if state.config().demo && !route.is_open_in_demo() {
        return Err(ApiError::demo_mode());
    }
    recognise::caller(state, route, headers, named.as_ref(), extensions.get()).await
}

async fn admitted(
    state: &AppState,
    route: &Route,
    identity: &Identity,
    address: Option<&ClientAddress>,
) -> Result<(), ApiError> {
    identity.admit(route)?;
    if route.rate == Some(RateClass::Mcp) {
        state.admit_messages(identity, address, 1).await?;
    }
    let ingest_per_minute = state.config().ingest_rate_per_minute;
    // Clients of runs that send a token of theirs in the body have no credential to be counted by.
    let is_countable = identity.role().is_some() || !matches!(route.access, Access::BodyTokenOrRoles(_));
    if route.ingest && is_countable && ingest_per_minute > 0 {
        let limits = state.limits().await?;
        let rate = limits::ingest(ingest_per_minute);
        limits.check_steady(rate, identity.credential().as_bytes(), state.now()).await?;
    }
    Ok(())
}

/// Whether a body of this type is one the route reads: also where there is
/// nothing in it, so that no form of another page is taken for a command.
fn takes_type(route: &Route, headers: &HeaderMap) -> Result<(), ApiError> {
    let is_read = route.method == Method::Get || matches!(route.body_limit, BodyLimit::Upload);
    // Signing in and out work without scripts. Browsers say with every form whose page it is on, and the gate has
    // compared that; a form that does not say is no browser's.
    let takes_forms = matches!(route.id, RouteId::Login | RouteId::Logout);
    let is_form = takes_forms && is_browser_form(headers) && headers.contains_key(ORIGIN);
    // Mail programs send a form (RFC 8058). The token in the address is the permission, and the body is not read.
    let is_unread = route.id == RouteId::Unsubscribe;
    if is_read || is_form || is_unread || !route.pattern.starts_with("/api/") {
        return Ok(());
    }
    check_content_type(headers)
}

/// Works in what clients sent and nobody did yet, so that the answer tells of it.
/// What cannot be done is tried again by others.
async fn settle(state: &AppState, route: &Route) {
    if route.tells_of_results()
        && state.schema_is_current().await.unwrap_or(false)
        && let Err(error) = callboard_ingest::apply_all_pending(&state.background()).await
    {
        tracing::warn!(%error, "results that wait could not be worked into their runs");
    }
}

async fn writable(state: &AppState, route: &Route) -> Result<(), ApiError> {
    if route.mutates && !state.schema_is_current().await? {
        return Err(match state.store().schema_state().await? {
            SchemaState::TooNew => ApiError::version_too_old(),
            SchemaState::Behind | SchemaState::Current => ApiError::migration_pending(),
        });
    }
    Ok(())
}

/// Marks an answer that stays as it is although it comes from where pages are.
#[derive(Debug, Clone, Copy)]
pub struct ForPrograms;

async fn pages_only(request: Request, next: Next) -> Response {
    if asks_for_page(&request) {
        return next.run(request).await;
    }
    let mut response = refuse(request, ApiError::route_not_found());
    response.extensions_mut().insert(ForPrograms);
    response
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
pub(crate) fn refuse(request: Request, error: ApiError) -> Response {
    if !request.headers().contains_key(EXPECT) {
        discard(request.into_body().into_data_stream());
    }
    error.into_response()
}
