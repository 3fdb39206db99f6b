//! The route table, the handlers and the OpenAPI document say the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::routes::{Access, Route};
use callboard_auth::{ROUTES, RouteId};
use callboard_http::AppState;
use callboard_http::openapi::operations;
use callboard_local_runner::{app, openapi, openapi_parts, sandbox_app};
use callboard_platform::config::Config;
use serde_json::Value;

async fn state(folder: &tempfile::TempDir) -> AppState {
    let data = [("SERVICE_DATA_DIR".to_owned(), folder.path().to_str().unwrap().to_owned())];
    AppState::connect(Config::from_env(data).unwrap()).await.unwrap()
}

#[tokio::test]
async fn every_row_has_a_handler() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(&folder).await;
    let _service = app(state.clone());
    let without: Vec<&str> = ROUTES
        .iter()
        .filter(|route| !state.mounted_routes().contains(&route.id))
        .map(|route| route.id.name())
        .collect();
    assert_eq!(without, Vec::<&str>::new());
}

#[tokio::test]
async fn the_sandbox_serves_granted_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let state = state(&folder).await;
    let _service = sandbox_app(state.clone());
    assert!(state.mounted_routes().contains(&RouteId::GrantedFile));
}

/// Operations of the API; pages and their assets are not part of it.
fn is_operation(route: &Route) -> bool {
    route.pattern.starts_with("/api/")
        || matches!(route.id, RouteId::McpMessages | RouteId::PublicBadge)
        || matches!(route.access, Access::Grant | Access::Ticket | Access::RunToken | Access::System)
}

#[test]
fn the_document_describes_every_operation_and_no_other() {
    let described: BTreeSet<String> = operations(&openapi()).into_iter().collect();
    let expected: BTreeSet<String> = ROUTES
        .iter()
        .filter(|route| is_operation(route))
        .map(|route| format!("{} {}", route.method.as_str(), route.pattern.replace("{*", "{")))
        .collect();
    let missing: Vec<_> = expected.difference(&described).collect();
    let unknown: Vec<_> = described.difference(&expected).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "not described: {missing:?}; no such route: {unknown:?}"
    );
}

/// Who may call stands in the document as in the table: with roles, callers
/// have to say who they are; without, there is nothing to say.
#[test]
fn the_document_says_who_may_call() {
    let document = serde_json::to_value(openapi()).unwrap();
    for route in ROUTES.iter().filter(|route| is_operation(route)) {
        let path = route.pattern.replace("{*", "{");
        let operation = &document["paths"][&path][route.method.as_str().to_ascii_lowercase()];
        let told = operation["x-required-roles"].as_array().unwrap();
        let is_open = matches!(
            route.access,
            Access::Public | Access::Grant | Access::Ticket | Access::RunToken | Access::System
        );
        assert_eq!(told.is_empty(), is_open, "{} {path}", route.method.as_str());
        assert_eq!(operation["security"].is_null(), is_open, "{} {path}", route.method.as_str());
    }
}

#[test]
fn the_checked_in_document_is_the_one_of_the_handlers() {
    let checked_in = include_str!("../../infra/openapi.json");
    let current = openapi().to_pretty_json().unwrap();
    assert!(
        checked_in.trim_end() == current.trim_end(),
        "infra/openapi.json is out of date; write it anew: cargo run -p callboard-local-runner -- openapi > \
         openapi.tmp && mv openapi.tmp infra/openapi.json"
    );
}

/// A schema without its words: what it allows.
fn allowed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| !matches!(name.as_str(), "description" | "example") || value.is_object())
            .map(|(name, value)| (name.clone(), allowed(value)))
            .collect(),
        Value::Array(items) => items.iter().map(allowed).collect(),
        other => other.clone(),
    }
}

/// Where documents are put together, the first schema of a name counts.
#[test]
fn no_two_schemas_share_a_name() {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for part in openapi_parts() {
        for (name, schema) in part.components.unwrap_or_default().schemas {
            let schema = allowed(&serde_json::to_value(schema).unwrap());
            let first = known.entry(name.clone()).or_insert_with(|| schema.clone());
            if *first != schema {
                shared.insert(name);
            }
        }
    }
    assert!(shared.is_empty(), "these schemas need names of their own: {shared:?}");
}

/// Every operation names each error it answers with, and none is left to a
/// default.
#[test]
fn every_error_has_the_one_body() {
    let document = serde_json::to_value(openapi()).unwrap();
    let body = serde_json::json!({ "$ref": "#/components/schemas/ErrorBody" });
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("500") && !responses.contains_key("default"), "{method} {path}");
            for (status, response) in responses.iter().filter(|(status, _)| status.starts_with(['4', '5'])) {
                let response = match response["$ref"].as_str() {
                    Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
                    None => response,
                };
                let is_own = matches!(path.as_str(), "/mcp" | "/api/health");
                let schema = &response["content"]["application/json"]["schema"];
                assert!(is_own || *schema == body, "{method} {path} {status} has another body: {schema}");
            }
        }
    }
}
