//! Words of exports: what is exported, in which form, and how far it is.

/// What an export is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    /// The tests of a run.
    Run,
    /// Runs or executions of a project.
    Project,
    /// The executions that count for a failure cluster.
    Cluster,
    /// One execution.
    Execution,
}

impl ExportKind {
    /// All words.
    pub const WORDS: &'static [&'static str] = &["run", "project", "cluster", "execution"];

    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Project => "project",
            Self::Cluster => "cluster",
            Self::Execution => "execution",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Run, Self::Project, Self::Cluster, Self::Execution]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// JUnit XML.
    Junit,
    /// Common Test Report Format.
    Ctrf,
    /// A table.
    Csv,
    /// One JSON object on each line.
    Ndjson,
}

impl ExportFormat {
    /// All words.
    pub const WORDS: &'static [&'static str] = &["junit", "ctrf", "csv", "ndjson"];

    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Junit => "junit",
            Self::Ctrf => "ctrf",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Junit, Self::Ctrf, Self::Csv, Self::Ndjson].into_iter().find(|format| format.as_str() == word)
    }

    /// How names of such files end.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Junit => "xml",
            Self::Ctrf => "json",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    /// Their media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Junit => "application/xml",
            Self::Ctrf => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// Whether the form is a list of rows, which fits anything; the others
    /// describe one run.
    #[must_use]
    pub const fn is_rows(self) -> bool {
        matches!(self, Self::Csv | Self::Ndjson)
    }
}

/// How far an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportStatus {
    /// It waits for its turn.
    Queued,
    /// It is being made.
    Running,
    /// It can be fetched.
    Ready,
    /// It could not be made.
    Failed,
}

impl ExportStatus {
    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Queued, Self::Running, Self::Ready, Self::Failed]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}
