//! One function as its platform runs it: its binary as a child process, an
//! emulated Lambda runtime API that hands it events, and events made of requests
//! as the gateways in front of functions make them.
//!
//! As on the platform, an instance handles one event at a time, a request and
//! an answer may have 6 MB, or 1 MB behind a load balancer, and an answer may take 30
//! seconds.

mod event;
mod runtime_api;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use serde_json::Value;

use crate::process::Process;
use crate::{Answer, Settings};
pub use event::{Gateway, SourceIp};
use runtime_api::{Outcome, RuntimeApi};

/// How long the gateway waits for an answer.
const GATEWAY_PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// A request that the platform does not hand to a function.
#[derive(Debug, Clone, Copy)]
pub struct EventTooLarge {
    bytes: usize,
    most: usize,
}

impl std::fmt::Display for EventTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the event has {} bytes, the platform takes {}", self.bytes, self.most)
    }
}

impl std::error::Error for EventTooLarge {}

/// A running function instance.
#[derive(Debug)]
pub struct Function {
    name: String,
    process: Mutex<Process>,
    runtime: RuntimeApi,
}

impl Function {
    /// Starts `callboard-<name>` under an emulated runtime API. It may still
    /// be initialising, or refuse to, when this returns.
    ///
    /// # Errors
    /// When the binary was not built or does not start.
    pub async fn start(name: &str, settings: &Settings) -> Result<Self> {
        let runtime = RuntimeApi::start().await?;
        let mut settings = settings.clone();
        let function_name = format!("callboard-{name}");
        settings.extend(
            [
                ("AWS_LAMBDA_RUNTIME_API", runtime.address()),
                ("AWS_LAMBDA_FUNCTION_NAME", &function_name),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
                ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
                ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/callboard"),
                ("AWS_LAMBDA_LOG_STREAM_NAME", "test"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let process = Process::start(&function_name, &settings)?;
        Ok(Self { name: function_name, process: Mutex::new(process), runtime })
    }

    /// Waits until it asks for its first event and returns how long that took
    /// since this call.
    ///
    /// # Errors
    /// When it ends instead; its output is in the message.
    pub async fn ready(&self) -> Result<Duration> {
        let started = Instant::now();
        while !self.runtime.has_asked() {
            self.still_runs()?;
            ensure!(
                started.elapsed() < GATEWAY_PATIENCE,
                "{} did not initialise:\n{}",
                self.name,
                self.output()
            );
            tokio::time::sleep(PAUSE).await;
        }
        Ok(started.elapsed())
    }

    /// Sends a request as the event of a route such as `GET /api/health` or
    /// `$default`, and reads its answer.
    ///
    /// # Errors
    /// When the function ends, reports an error, or answers what the gateway
    /// could not pass on.
    pub async fn invoke(&self, route_key: &str, request: &http::Request<Bytes>) -> Result<Answer> {
        self.invoke_behind(Gateway::HttpApi, route_key, request).await
    }

    /// The same behind another gateway.
    ///
    /// # Errors
    /// As [`Function::invoke`].
    pub async fn invoke_behind(
        &self,
        gateway: Gateway,
        route_key: &str,
        request: &http::Request<Bytes>,
    ) -> Result<Answer> {
        let event = gateway.event(route_key, request)?;
        let payload = self.invoke_within(&event, gateway.max_payload_bytes()).await?;
        gateway
            .answer(&payload, request.method())
            .with_context(|| format!("{} answered something that is no HTTP answer", self.name))
    }

    /// Sends an event as it is, such as the scheduler's, and reads what the
    /// function answers.
    ///
    /// # Errors
    /// When the function ends or reports an error.
    pub async fn invoke_event(&self, event: &Value) -> Result<Bytes> {
        self.invoke_within(event, Gateway::HttpApi.max_payload_bytes()).await
    }

    async fn invoke_within(&self, event: &Value, most: usize) -> Result<Bytes> {
        let event = serde_json::to_vec(event)?;
        if event.len() > most {
            bail!(EventTooLarge { bytes: event.len(), most });
        }
        let mut outcome = self.runtime.send(event);
        let started = Instant::now();
        loop {
            match tokio::time::timeout(PAUSE, &mut outcome).await {
                Ok(Ok(Outcome::Answered(payload))) => {
                    let length = payload.len();
                    ensure!(length <= most, "the answer has {length} bytes, the platform takes {most}");
                    return Ok(payload);
                }
                Ok(Ok(Outcome::Failed(report))) => bail!("{} reported an error: {report}", self.name),
                Ok(Err(_)) => bail!("the runtime API ended"),
                Err(_) => self.still_runs()?,
            }
            ensure!(
                started.elapsed() < GATEWAY_PATIENCE,
                "{} did not answer within {GATEWAY_PATIENCE:?}; it printed:\n{}",
                self.name,
                self.output()
            );
        }
    }

    /// Waits until a function that refuses to start has ended; its exit code
    /// and what it printed.
    ///
    /// # Errors
    /// When it still runs after 30 seconds.
    pub async fn refusal(self) -> Result<(Option<i32>, String)> {
        let mut process = self.process.into_inner().unwrap_or_else(PoisonError::into_inner);
        let status = process.end().await?;
        Ok((status.code(), process.output()))
    }

    /// What it has printed so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).output()
    }

    fn still_runs(&self) -> Result<()> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = self.runtime.initialisation_error() {
            bail!("{} reported that it cannot start: {report}", self.name);
        }
        if let Some(status) = process.ended()? {
            bail!("{} ended with {status}; it printed:\n{}", self.name, process.output());
        }
        Ok(())
    }
}
