//! Addresses of dashboard pages and of stored files.

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

    /// Page of a channel of notifications.
    #[must_use]
    pub fn channel(&self, id: i64) -> String {
        format!("{}/settings/notifications/channels/{id}", self.origin)
    }

    /// Page of the storage of the instance.
    #[must_use]
    pub fn storage(&self) -> String {
        format!("{}/settings/storage", self.origin)
    }

    /// The first page.
    #[must_use]
    pub fn home(&self) -> String {
        format!("{}/", self.origin)
    }

    /// Page where the model for diagnoses is configured.
    #[must_use]
    pub fn diagnosis_settings(&self) -> String {
        format!("{}/settings/diagnosis", self.origin)
    }

    /// The MCP endpoint.
    #[must_use]
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.origin)
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
