//! Which errors an operation answers with: those its row in the route table,
//! its path, its parameters and its body bring, beside those its handler
//! names. Every one has the same body; only the codes differ.

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::Route;
use callboard_auth::routes::{Access, Method, ProjectSource, Roles};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

use crate::error::ErrorBody;

/// Errors that say the same wherever they happen: the name of their component,
/// the status, and what is written about them.
const COMMON: [(&str, u16, &str); 11] = [
    (
        "SignInFirst",
        401,
        "`authentication_required`, `invalid_api_key`; `WWW-Authenticate` says how to sign in",
    ),
    ("OtherMethod", 405, "`method_not_allowed`: the address exists with other methods; `Allow` names them"),
    ("Stale", 412, "`precondition_failed`: `If-Match` names another state than the stored one"),
    ("BodyTooLarge", 413, "`body_too_large`, `too_many_items`; `data.limit` is the most"),
    ("AddressTooLong", 414, "`url_too_long`: the address is longer than 8 KiB"),
    ("NotJson", 415, "`unsupported_media_type`"),
    ("OtherHost", 421, "`host_not_allowed`: the service does not answer to that name"),
    ("TooManyRequests", 429, "`rate_limited`; `Retry-After` says when to ask again"),
    ("HeadersTooLarge", 431, "`headers_too_large`: the headers are longer than 32 KiB"),
    ("OurFault", 500, "`internal_error`; `data.reference` is what the log knows it by"),
    (
        "TryAgain",
        503,
        "`database_unavailable`, `storage_unavailable`, `busy`: `Retry-After` says when to ask again; \
         `auth_mode_differs`: another process on this database requires sign-in",
    ),
];

/// The errors of [`COMMON`] as components, by name.
pub(super) fn components() -> impl Iterator<Item = (String, RefOr<Response>)> {
    COMMON.into_iter().map(|(name, _, text)| (name.to_owned(), RefOr::T(response(text))))
}

/// The schema of every error.
pub(super) fn schema() -> (String, RefOr<utoipa::openapi::Schema>) {
    (ErrorBody::name().into_owned(), ErrorBody::schema())
}

fn content() -> Content {
    Content::new(Some(RefOr::Ref(Ref::from_schema_name(ErrorBody::name()))))
}

fn response(description: &str) -> Response {
    ResponseBuilder::new().description(description).content("application/json", content()).build()
}

/// Names every error of an operation.
pub(super) fn complete(operation: &mut Operation, route: &Route) {
    let codes = codes(operation, route);
    let responses = &mut operation.responses.responses;
    for (status, codes) in codes {
        let common = COMMON.iter().find(|(_, of, _)| *of == status);
        match (responses.get_mut(&status.to_string()), common) {
            (Some(RefOr::T(named)), _) => also(named, &codes),
            (Some(RefOr::Ref(_)), _) => {}
            (None, Some((name, ..))) if codes.is_empty() => {
                responses.insert(status.to_string(), RefOr::Ref(Ref::from_response_name(*name)));
            }
            (None, _) => {
                responses.insert(status.to_string(), RefOr::T(response(&listed(&codes))));
            }
        }
    }
    // What a handler says of an error is a sentence; the body is always the same.
    for (status, named) in responses.iter_mut() {
        if let RefOr::T(named) = named
            && status.starts_with(['4', '5'])
            && named.content.is_empty()
        {
            named.content.insert("application/json".to_owned(), RefOr::T(content()));
        }
    }
}

type Codes = BTreeSet<String>;

fn listed(codes: &Codes) -> String {
    codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

/// Adds codes to what a handler says.
fn also(named: &mut Response, codes: &Codes) {
    let missing: Codes =
        codes.iter().filter(|code| !named.description.contains(&format!("`{code}`"))).cloned().collect();
    match (named.description.is_empty(), missing.is_empty()) {
        (_, true) => {}
        (true, false) => named.description = listed(&missing),
        (false, false) => named.description = format!("{}; {}", named.description, listed(&missing)),
    }
}

fn codes(operation: &Operation, route: &Route) -> BTreeMap<u16, Codes> {
    let mut all: BTreeMap<u16, Codes> = BTreeMap::new();
    let mut add = |status: u16, codes: &[&str]| {
        all.entry(status).or_default().extend(codes.iter().map(|code| (*code).to_owned()));
    };
    for everywhere in [405, 414, 421, 431, 500, 503] {
        add(everywhere, &[]);
    }
    let writes = route.method != Method::Get;
    access(route, &mut add);
    for entity in entities(route.pattern) {
        add(400, &[&format!("invalid_{entity}_id")]);
        add(404, &[&format!("{entity}_not_found")]);
    }
    let in_query: Vec<&Parameter> = parameters(operation, &ParameterIn::Query).collect();
    if !in_query.is_empty() {
        add(400, &["invalid_query"]);
    }
    if in_query.iter().any(|parameter| parameter.name == "cursor") {
        add(400, &["invalid_cursor"]);
    }
    if route.project == ProjectSource::Listed && in_query.iter().any(|parameter| parameter.name == "project")
    {
        add(404, &["project_not_found"]);
    }
    if let Some(body) = &operation.request_body {
        add(400, &["invalid_json", "invalid_body"]);
        if matches!(body, RefOr::T(body) if body.content.contains_key("multipart/form-data")) {
            add(400, &["invalid_multipart"]);
        }
    }
    if streams(operation) {
        add(429, &["rate_limited", "too_many_streams"]);
    }
    if writes {
        add(413, &[]);
        add(403, &["origin_not_allowed"]);
        if route.pattern.starts_with("/api/") {
            add(415, &[]);
        }
    }
    if !route.is_open_in_demo() {
        add(403, &["demo_mode"]);
    }
    if route.mutates {
        add(412, &[]);
    }
    if route.mutates && route.method == Method::Post {
        add(400, &["invalid_field"]);
        add(409, &["idempotency_conflict", "idempotency_in_progress"]);
    }
    if route.rate.is_some() || route.ingest {
        add(429, &[]);
    }
    all
}

/// What its row says about who may call it.
fn access(route: &Route, add: &mut impl FnMut(u16, &[&str])) {
    let is_for_accounts =
        matches!(route.access, Access::Roles(_) | Access::RolesOrRunToken(_) | Access::BodyTokenOrRoles(_));
    if let Access::Roles(roles) | Access::RolesOrRunToken(roles) | Access::BodyTokenOrRoles(roles) =
        route.access
    {
        // Two keys at the same time; and wrong keys are counted.
        add(400, &["invalid_header"]);
        add(401, &[]);
        add(403, &["key_scope_denied"]);
        add(429, &[]);
        if roles.as_slice().len() < Roles::ALL.as_slice().len() {
            add(403, &["insufficient_role"]);
        }
    }
    if matches!(route.access, Access::RunToken | Access::RolesOrRunToken(_) | Access::BodyTokenOrRoles(_)) {
        add(401, &["missing_token"]);
        if is_for_accounts {
            add(401, &["authentication_required", "invalid_api_key"]);
        }
        add(403, &["invalid_token", "token_expired", "token_revoked"]);
    }
    if route.session_only {
        add(403, &["session_required"]);
    }
    match route.project {
        ProjectSource::None => {}
        ProjectSource::FromBody(_) => {
            add(400, &["invalid_project_name"]);
            add(403, &["project_access_denied", "project_creation_forbidden"]);
        }
        ProjectSource::FromPath | ProjectSource::FromEntity(_) | ProjectSource::Listed if is_for_accounts => {
            add(403, &["project_access_denied"]);
        }
        _ => {}
    }
}

/// Whether it answers with events as they happen, of which a client holds few.
fn streams(operation: &Operation) -> bool {
    operation.responses.responses.values().any(
        |response| matches!(response, RefOr::T(response) if response.content.contains_key("text/event-stream")),
    )
}

fn parameters<'o>(operation: &'o Operation, within: &ParameterIn) -> impl Iterator<Item = &'o Parameter> {
    let all = operation.parameters.iter().flatten();
    all.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == *within => Some(parameter),
        _ => None,
    })
}

/// What the ids in a path are ids of, as error codes spell it.
fn entities(pattern: &str) -> Vec<&'static str> {
    let segments: Vec<&str> = pattern.split('/').collect();
    let named = segments.windows(2).filter(|pair| pair[1].starts_with('{') && !pair[1].starts_with("{*"));
    named.filter_map(|pair| entity(pair[0])).collect()
}

fn entity(segment: &str) -> Option<&'static str> {
    Some(match segment {
        "projects" => "project",
        "test-runs" => "run",
        "test-cases" | "quarantine" => "test_case",
        "test-run-cases" | "cases" => "execution",
        "failure-clusters" => "cluster",
        "gate-policies" => "policy",
        "links" => "link",
        "markers" => "marker",
        "tags" => "tag",
        "test-functions" => "function",
        "sessions" => "session",
        "users" => "user",
        "api-keys" => "api_key",
        "invitations" => "invitation",
        "deletions" => "deletion",
        "exports" => "export",
        "channels" => "channel",
        "subscriptions" => "subscription",
        "deliveries" => "delivery",
        "failure-diagnoses" => "diagnosis",
        "cluster-merge-suggestions" => "suggestion",
        "views" => "view",
        _ => return None,
    })
}
