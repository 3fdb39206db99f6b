//! Which function serves which route, as the routers themselves say, and the
//! same as the files under `infra/` hold it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use axum::Router;
use callboard_auth::{ROUTES, RouteId};
use callboard_http::AppState;
use callboard_platform::Config;
use callboard_store::{Backend, Store};
use callboard_test_support::TestDatabase;
use serde_json::{Value, json};

/// What makes the router of a function.
pub type MakeRouter = fn(AppState) -> Router;

/// The functions by the name of their folder.
pub const FUNCTIONS: [(&str, MakeRouter); 16] = [
    ("health", callboard_fn_health::router),
    ("auth", callboard_fn_auth::router),
    ("submit", callboard_fn_submit::router),
    ("live", callboard_fn_live::router),
    ("projects", callboard_fn_projects::router),
    ("runs", callboard_fn_runs::router),
    ("cases", callboard_fn_cases::router),
    ("analytics", callboard_fn_analytics::router),
    ("files", callboard_fn_files::router),
    ("mcp", callboard_fn_mcp::router),
    ("dashboard", callboard_fn_dashboard::router),
    ("users", callboard_fn_users::router),
    ("clusters", callboard_fn_clusters::router),
    ("settings", callboard_fn_settings::router),
    ("scm", callboard_fn_scm::router),
    ("jobs", callboard_fn_jobs::router),
];

/// What is invoked by the platform alone.
pub const WITHOUT_ROUTES: [&str; 1] = ["migrate"];

/// Answers what no route matches, as any function would.
const DEFAULT_FUNCTION: &str = "health";

/// The function of each route.
#[derive(Debug)]
pub struct Served(BTreeMap<RouteId, &'static str>);

impl Served {
    /// Asks every router what it serves.
    ///
    /// # Errors
    /// When a route of the table is served by no function or by two.
    pub async fn by_functions() -> Result<Self> {
        let database = TestDatabase::fresh(Backend::Sqlite).await?;
        let store = database.store().await?;
        let mut served = BTreeMap::new();
        for (name, router) in FUNCTIONS {
            for route in mounted(router, store.clone())? {
                let other = served.insert(route, name);
                ensure!(
                    other.is_none(),
                    "{} is served by {} and by {name}",
                    route.name(),
                    other.unwrap_or_default()
                );
            }
        }
        for route in ROUTES {
            ensure!(served.contains_key(&route.id), "no function serves {}", route.id.name());
        }
        Ok(Self(served))
    }

    /// The text of `infra/routes.json`.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn routes_json(&self) -> Result<String> {
        let routes: Vec<Value> = ROUTES
            .iter()
            .map(|route| {
                json!({
                    "function": self.0[&route.id],
                    "method": route.method.as_str(),
                    "name": route.id.name(),
                    "path": gateway_path(route.pattern),
                })
            })
            .collect();
        let document = json!({ "default": DEFAULT_FUNCTION, "routes": routes });
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    /// The template with the routes of every function in place.
    ///
    /// # Errors
    /// When the place of a function's routes is missing.
    pub fn template(&self, current: &str) -> Result<String> {
        let mut template = current.to_owned();
        for (name, _) in FUNCTIONS {
            let begin = format!("        # Routes of {name}, written by `make routes`.\n");
            let at = template.find(&begin).with_context(|| format!("no place for the routes of {name}"))?
                + begin.len();
            let length =
                template[at..].find("        # End of routes.\n").context("a place without its end")?;
            template.replace_range(at..at + length, &self.events(name));
        }
        Ok(template)
    }

    /// One event per path, for any method: a function says itself which
    /// methods it does not allow, as the local runner does.
    fn events(&self, function: &str) -> String {
        let mut paths = BTreeMap::new();
        for (id, _) in self.0.iter().filter(|(_, name)| **name == function) {
            paths.entry(gateway_path(id.route().pattern)).or_insert_with(|| id.name());
        }
        let mut events = String::new();
        for (path, event) in paths {
            // Writing to a String cannot fail.
            let _ = writeln!(
                events,
                "        {event}:\n          Type: HttpApi\n          Properties: {{ ApiId: !Ref Api, Path: \"{path}\", Method: ANY }}"
            );
        }
        if function == DEFAULT_FUNCTION {
            // Without a path it is the default route.
            events.push_str(
                "        Otherwise:\n          Type: HttpApi\n          Properties: { ApiId: !Ref Api }\n",
            );
        }
        events
    }
}

/// The routes one router serves.
fn mounted(router: MakeRouter, store: Store) -> Result<Vec<RouteId>> {
    let state = AppState::new(Config::from_env([])?, store);
    drop(router(state.clone()));
    Ok(state.mounted_routes().into_iter().collect())
}

/// A pattern as the gateway writes it: the rest of a path is `{proxy+}`.
fn gateway_path(pattern: &str) -> String {
    pattern.replace("{*path}", "{proxy+}")
}

/// A file under `infra/`.
#[must_use]
pub fn infra(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra")).join(name)
}
