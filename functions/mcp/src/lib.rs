//! Function `mcp`: the Model Context Protocol endpoint for agents.
//!
//! Lives here: `/mcp` with its transport rules, JSON-RPC, tools, the prompt
//! and the page that says how to connect. One JSON answer per POST, no
//! sessions, no server push. Must not live here: SQL, or numbers of its own;
//! tools ask the query layer what REST asks it.
//!
//! From the outside in: `http` (requests and headers), `methods` over `rpc`
//! (the protocol), `tool` with `arguments`, `parameter`, `cursor`, `budget`
//! and `clean` (what all tools share), `tools` (one file each).

mod arguments;
mod budget;
mod clean;
mod completion;
mod context;
mod cursor;
mod diagnosis;
mod era;
mod error;
mod evidence_text;
mod http;
mod images;
mod instructions;
mod methods;
mod outputs;
mod page;
mod parameter;
mod prompt;
mod refused;
mod rpc;
mod shapes;
mod suspects;
mod tool;
mod tools;
mod version;

use axum::Router;
use axum::middleware::from_fn_with_state;
use callboard_auth::RouteId;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    Routes::new(state.clone())
        .on(RouteId::McpMessages, http::messages)
        .on(RouteId::McpPage, http::page)
        .on(RouteId::McpAsset, page::asset)
        .otherwise(RouteId::McpPage, http::other_methods)
        .into_router()
        .layer(from_fn_with_state(state, http::around))
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        paths(http::messages),
        tags((name = "mcp", description = "Model Context Protocol, for agents"))
    )]
    struct Document;
    Document::openapi()
}
