//! The functions of `infra/routes.json` behind an emulated gateway: every
//! request goes to the function its route names, as an event, and nothing but
//! the database and the bucket is shared between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use callboard_test_support::{Answer, Function, Settings};
use http::Request;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::served::infra;

/// Functions that start with their first request, as on the platform.
#[derive(Debug)]
pub struct Deployment {
    settings: Settings,
    routes: Vec<DeployedRoute>,
    default: String,
    running: Mutex<BTreeMap<String, Arc<Function>>>,
}

#[derive(Debug, PartialEq, Eq)]
struct DeployedRoute {
    path: String,
    function: String,
}

impl Deployment {
    /// A deployment whose functions have these settings.
    ///
    /// # Errors
    /// When `infra/routes.json` cannot be read.
    pub fn new(settings: Settings) -> Result<Self> {
        let document: Value = serde_json::from_slice(&std::fs::read(infra("routes.json"))?)?;
        let text =
            |value: &Value| value.as_str().map(str::to_owned).context("routes.json holds something else");
        let routes = document["routes"].as_array().context("routes.json has no routes")?.iter();
        let routes = routes
            .map(|route| {
                Ok(DeployedRoute { path: text(&route["path"])?, function: text(&route["function"])? })
            })
            .collect::<Result<_>>()?;
        Ok(Self { settings, routes, default: text(&document["default"])?, running: Mutex::default() })
    }

    /// Sends a request through the gateway.
    ///
    /// # Errors
    /// When the function fails instead of answering.
    pub async fn send(&self, request: &Request<Bytes>) -> Result<Answer> {
        let (function, route_key) = match best(&self.routes, request.uri().path()) {
            Some(route) => (&route.function, format!("ANY {}", route.path)),
            None => (&self.default, "$default".to_owned()),
        };
        let answer = self.function(function).await?.invoke(&route_key, request).await;
        answer.with_context(|| format!("{} {} at {function}", request.method(), request.uri()))
    }

    /// A function, started when it does not run yet.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn function(&self, name: &str) -> Result<Arc<Function>> {
        let mut running = self.running.lock().await;
        if let Some(function) = running.get(name) {
            return Ok(Arc::clone(function));
        }
        let function = Arc::new(Function::start(name, &self.settings).await?);
        running.insert(name.to_owned(), Arc::clone(&function));
        Ok(function)
    }

    /// Has the work done that is due, as the scheduler of the platform does.
    ///
    /// # Errors
    /// When the function fails.
    pub async fn tick(&self) -> Result<()> {
        self.function("jobs").await?.invoke_event(&scheduled()).await?;
        Ok(())
    }
}

/// What the scheduler of the platform sends to the function `jobs`.
#[must_use]
pub fn scheduled() -> Value {
    json!({
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": "123456789012",
        "time": "2026-01-01T10:00:00Z",
        "region": "eu-central-1",
        "resources": ["arn:aws:scheduler:eu-central-1:123456789012:schedule/default/callboard-tick"],
        "detail": "{}"
    })
}

/// The route the gateway would choose: named segments before parameters,
/// parameters before the rest of a path.
fn best<'a>(routes: &'a [DeployedRoute], path: &str) -> Option<&'a DeployedRoute> {
    routes
        .iter()
        .filter_map(|route| Some((rank(&route.path, path)?, route)))
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, route)| route)
}

/// How loosely a pattern matches a path, segment by segment; `None` when it
/// does not. Smaller ranks come first.
fn rank(pattern: &str, path: &str) -> Option<u64> {
    let mut segments = path.split('/');
    let mut rank = 0;
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        rank *= 3;
        if expected == "{proxy+}" {
            return (!segment.is_empty()).then_some(rank + 2);
        }
        if expected.starts_with('{') {
            rank += 1;
            if segment.is_empty() {
                return None;
            }
        } else if expected != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_route_is_chosen() {
        let routes: Vec<DeployedRoute> =
            ["/", "/api/projects/{id}", "/api/projects/menu", "/api/files/{proxy+}"]
                .map(|path| DeployedRoute { path: path.to_owned(), function: String::new() })
                .into();
        let chosen = |path| best(&routes, path).map(|route| route.path.as_str());
        assert_eq!(chosen("/"), Some("/"));
        assert_eq!(chosen("/api/projects/7"), Some("/api/projects/{id}"));
        assert_eq!(chosen("/api/projects/menu"), Some("/api/projects/menu"));
        assert_eq!(chosen("/api/files/a/b/c"), Some("/api/files/{proxy+}"));
        assert_eq!(chosen("/api/files/"), None);
        assert_eq!(chosen("/api/projects"), None);
        assert_eq!(chosen("/api/projects/7/more"), None);
    }
}
