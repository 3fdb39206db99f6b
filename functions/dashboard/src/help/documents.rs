//! The documents and pictures of `docs/`, without those for developers.

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    /// Path below `docs/`, without `.md`.
    pub path: &'static str,
    /// What it says, as Markdown.
    pub text: &'static str,
}

impl Document {
    /// Its first heading.
    pub(super) fn title(&self) -> &'static str {
        let heading = self.text.lines().find_map(|line| line.strip_prefix("# "));
        heading.unwrap_or(self.path).trim()
    }

    /// Where it leads to.
    pub(super) fn address(&self) -> String {
        if self.path == INDEX { "/help".to_owned() } else { format!("/help/{}", self.path) }
    }

    /// The heading it stands under in the navigation.
    pub(super) fn group(&self) -> &'static str {
        match self.path.split('/').next() {
            Some("guides") => "Guides",
            Some("deploy") => "Deploy",
            Some("operate") => "Operate",
            Some("reference") => "Reference",
            _ => "Start",
        }
    }
}

/// Path of the first page.
pub(super) const INDEX: &str = "README";

macro_rules! documents {
    ($($path:literal),+ $(,)?) => {
        &[$(Document { path: $path, text: include_str!(concat!("../../../../docs/", $path, ".md")) }),+]
    };
}

/// In the order of the navigation.
pub(super) static DOCUMENTS: &[Document] = documents![
    "README",
    "quickstart",
    "guides/dashboard",
    "guides/reporter",
    "guides/ci-github",
    "guides/ci-gitlab",
    "guides/ci-jenkins",
    "guides/ci-azure",
    "guides/ci-circleci",
    "guides/api",
    "guides/mcp",
    "guides/access-and-sign-in",
    "guides/notifications",
    "guides/diagnosis",
    "guides/source-control",
    "guides/quality-gate",
    "guides/flaky-and-quarantine",
    "guides/retention-and-deletion",
    "guides/migrate",
    "deploy/one-process",
    "deploy/replicas",
    "deploy/scale-to-zero",
    "deploy/functions",
    "deploy/proxy-and-tls",
    "operate/backup",
    "operate/upgrade",
    "operate/monitoring",
    "operate/runbook",
    "operate/sizing",
    "reference/configuration",
    "reference/cli",
    "reference/errors",
    "reference/limits",
];

macro_rules! pictures {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../../../docs/", $name)).as_slice())),+]
    };
}

/// Pictures that documents show.
pub(super) static PICTURES: &[(&str, &[u8])] = pictures!["execution.png", "grid.png", "insights.png"];
