//! The functions of `infra/routes.json` behind an emulated gateway: every
//! request goes to the function its route names, as an event, and nothing but
//! the database and the bucket is shared between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use callboard_test_support::{Answer, Function, Gateway, Settings};
use http::Request;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore};

use crate::served::infra;

/// Functions that start with their first request, as on the platform.
#[derive(Debug)]
pub struct Deployment {
    settings: Settings,
    gateway: Gateway,
    instances: usize,
    routes: Vec<DeployedRoute>,
    default: String,
    running: Mutex<BTreeMap<String, Arc<Instances>>>,
}

/// The instances of one function. Each handles one request at a time.
#[derive(Debug)]
struct Instances {
    permits: Semaphore,
    idle: std::sync::Mutex<Vec<Arc<Function>>>,
}

impl Instances {
    fn new(most: usize) -> Self {
        Self { permits: Semaphore::new(most), idle: std::sync::Mutex::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Function>>> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
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
        let default = text(&document["default"])?;
        Ok(Self {
            settings,
            gateway: Gateway::default(),
            instances: 1,
            routes,
            default,
            running: Mutex::default(),
        })
    }

    /// The same behind another gateway.
    #[must_use]
    pub fn behind(self, gateway: Gateway) -> Self {
        Self { gateway, ..self }
    }

    /// The same with so many instances of each function.
    #[must_use]
    pub fn with_instances(self, instances: usize) -> Self {
        Self { instances, ..self }
    }

    /// Sends a request through the gateway.
    ///
    /// # Errors
    /// When the function fails instead of answering.
    pub async fn send(&self, request: &Request<Bytes>) -> Result<Answer> {
        let route = best(&self.routes, request.uri().path());
        let route_key = route.map_or_else(|| "$default".to_owned(), |route| format!("ANY {}", route.path));
        let function = self.function_of(request.uri().path());
        let instances = self.instances(function).await;
        let _permit = instances.permits.acquire().await?;
        let instance = self.take(function, &instances).await?;
        let answer = instance.invoke_behind(self.gateway, &route_key, request).await;
        if answer.is_ok() {
            instances.idle().push(instance);
        }
        answer.with_context(|| format!("{} {} at {function}", request.method(), request.uri()))
    }

    /// The function that answers requests for a path.
    #[must_use]
    pub fn function_of(&self, path: &str) -> &str {
        best(&self.routes, path).map_or(&self.default, |route| &route.function)
    }

    async fn instances(&self, name: &str) -> Arc<Instances> {
        let mut running = self.running.lock().await;
        Arc::clone(running.entry(name.to_owned()).or_insert_with(|| Arc::new(Instances::new(self.instances))))
    }

    async fn take(&self, name: &str, instances: &Instances) -> Result<Arc<Function>> {
        let idle = instances.idle().pop();
        match idle {
            Some(instance) => Ok(instance),
            None => Ok(Arc::new(Function::start(name, &self.settings).await?)),
        }
    }

    /// An instance of a function, started when none runs yet.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn function(&self, name: &str) -> Result<Arc<Function>> {
        let instances = self.instances(name).await;
        let _permit = instances.permits.acquire().await?;
        let instance = self.take(name, &instances).await?;
        instances.idle().push(Arc::clone(&instance));
        Ok(instance)
    }

    /// Has the work done that is due, as the scheduler of the platform does.
    ///
    /// # Errors
    /// When the function fails.
    pub async fn tick(&self) -> Result<()> {
        self.invoke_event("jobs", &scheduled()).await?;
        Ok(())
    }

    /// Invokes a function with an event of the platform; its answer.
    ///
    /// # Errors
    /// When the function fails.
    pub async fn invoke_event(&self, name: &str, event: &Value) -> Result<Bytes> {
        let instances = self.instances(name).await;
        let _permit = instances.permits.acquire().await?;
        let instance = self.take(name, &instances).await?;
        let answer = instance.invoke_event(event).await?;
        instances.idle().push(instance);
        Ok(answer)
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
