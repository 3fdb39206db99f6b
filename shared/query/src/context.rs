//! What every question needs besides its arguments.

use std::sync::Arc;

use callboard_domain::retention::Overrides;
use callboard_domain::run_life::Patience;
use callboard_store::Store;

use crate::ingest::Turns;

/// The store, and how links to pages begin.
#[derive(Debug, Clone)]
pub struct Context {
    /// Rows and objects.
    pub store: Store,
    /// Where the pages are.
    pub links: Links,
    /// How long to wait for the clients of a run.
    pub patience: Patience,
    /// What the environment of the service sets of retention.
    pub retention: Arc<Overrides>,
    /// How long a change of retention that keeps less waits, milliseconds.
    pub retention_grace_ms: i64,
    /// How long what a person deletes can be restored, ms; 0 when it cannot.
    pub deletion_grace_ms: i64,
    /// Who waits in this process to write results of runs that go on.
    pub turns: Turns,
}

/// Builds addresses of dashboard pages.
#[derive(Debug, Clone)]
pub struct Links {
    origin: String,
    has_viewer: bool,
}

impl Links {
    /// `origin` is `https://host` of the dashboard as this caller knows it.
    #[must_use]
    pub fn new(origin: &str) -> Self {
        Self { origin: origin.trim_end_matches('/').to_owned(), has_viewer: false }
    }

    /// The same links, where traces open in the browser or do not.
    #[must_use]
    pub fn with_viewer(self, has_viewer: bool) -> Self {
        Self { has_viewer, ..self }
    }

    /// The origin the links begin with.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Page on which a mailed token sets a password. The token stands behind
    /// the `#`, so that no server sees it in an address.
    #[must_use]
    pub fn set_password(&self, token: &str) -> String {
        format!("{}/reset#token={token}", self.origin)
    }

    /// Page of the settings.
    #[must_use]
    pub fn settings(&self) -> String {
        format!("{}/settings", self.origin)
    }

    /// Page where repositories of projects are configured.
    #[must_use]
    pub fn source_control(&self) -> String {
        format!("{}/settings/source-control", self.origin)
    }

    /// Page of a project.
    #[must_use]
    pub fn project(&self, id: i64) -> String {
        format!("{}/projects/{id}", self.origin)
    }

    /// Page of a run.
    #[must_use]
    pub fn run(&self, id: i64) -> String {
        format!("{}/test-runs/{id}", self.origin)
    }

    /// Page of an execution.
    #[must_use]
    pub fn execution(&self, id: i64) -> String {
        format!("{}/test-run-cases/{id}", self.origin)
    }

    /// Page of a failure cluster.
    #[must_use]
    pub fn cluster(&self, id: i64) -> String {
        format!("{}/failure-clusters/{id}", self.origin)
    }

    /// Page of a test case.
    #[must_use]
    pub fn test_case(&self, id: i64) -> String {
        format!("{}/test-cases/{id}", self.origin)
    }

    /// Address of a stored file or report by its stored name.
    #[must_use]
    pub fn file(&self, path: &str) -> String {
        format!("{}/api/files/{path}", self.origin)
    }

    /// Where a browser opens a stored trace; nowhere without a viewer.
    #[must_use]
    pub fn trace_in_viewer(&self, file: i64) -> Option<String> {
        self.has_viewer.then(|| format!("{}/api/files/{file}?viewer=1", self.origin))
    }
}
