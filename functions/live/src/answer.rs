//! What clients are told when their run is opened.

use callboard_domain::ingest::Warnings;
use callboard_http::ingest_warnings::{WarningView, warnings};
use callboard_ingest::Ticket;
use callboard_platform::Config;
use serde::Serialize;
use utoipa::ToSchema;

/// What lets itself be used beyond the calls every client knows.
const CAPABILITIES: [&str; 4] = ["gzip", "uploads.plan", "attempts", "idempotency-key"];

/// How much one request may bring, bytes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limits {
    /// An events call, inflated.
    events_max_bytes: u64,
    /// A submission, inflated.
    submit_max_bytes: u64,
    /// An upload.
    upload_max_bytes: u64,
    /// Any request, as it is sent.
    request_max_bytes: u64,
}

impl Limits {
    fn from_config(config: &Config) -> Self {
        Self {
            events_max_bytes: config.max_events_bytes,
            submit_max_bytes: config.max_submit_bytes,
            upload_max_bytes: config.max_upload_bytes,
            request_max_bytes: config.max_request_bytes(),
        }
    }
}

/// What opening a run is answered with, whatever it is opened by.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    /// Always true.
    success: bool,
    /// The run.
    #[schema(example = 42)]
    run_id: i64,
    /// Its project.
    #[schema(example = 3)]
    project_id: i64,
    /// Its page.
    #[schema(example = "http://localhost:3000/test-runs/42")]
    run_url: String,
    /// What lets itself be used beyond the calls every client knows.
    capabilities: [&'static str; 4],
    /// How much one request may bring.
    limits: Limits,
    /// What was read leniently, at most 20 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warnings: Option<Vec<WarningView>>,
}

impl Opened {
    fn new(ticket: &Ticket, found: &Warnings, config: &Config) -> Self {
        Self {
            success: true,
            run_id: ticket.run.get(),
            project_id: ticket.project.get(),
            run_url: ticket.url.clone(),
            capabilities: CAPABILITIES,
            limits: Limits::from_config(config),
            warnings: warnings(found),
        }
    }
}

/// A run that is set up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetupAnswer {
    #[serde(flatten)]
    opened: Opened,
    /// Opens `begin`, once. It is not shown again.
    setup_token: String,
}

impl SetupAnswer {
    pub(crate) fn new(ticket: Ticket, found: &Warnings, config: &Config) -> Self {
        Self { opened: Opened::new(&ticket, found, config), setup_token: ticket.token }
    }
}

/// A run that may be fed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartAnswer {
    #[serde(flatten)]
    opened: Opened,
    /// Opens every call that feeds the run. It is not shown again.
    stream_token: String,
}

impl StartAnswer {
    pub(crate) fn new(ticket: Ticket, found: &Warnings, config: &Config) -> Self {
        Self { opened: Opened::new(&ticket, found, config), stream_token: ticket.token }
    }
}
