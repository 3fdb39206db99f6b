//! What is said about a failure.

use serde::Serialize;
use utoipa::ToSchema;

use crate::failures::healing::HealingSource;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// The three most telling changes.
    Summary,
    /// The eight most telling.
    #[default]
    Default,
    /// All that are known, at most thirty.
    Full,
}

impl Detail {
    /// The words of the parameter.
    pub const WORDS: &'static [&'static str] = &["summary", "default", "full"];

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "summary" => Some(Self::Summary),
            "default" => Some(Self::Default),
            "full" => Some(Self::Full),
            _ => None,
        }
    }

    pub(super) const fn changes(self) -> usize {
        match self {
            Self::Summary => 3,
            Self::Default => 8,
            Self::Full => 30,
        }
    }
}

/// Kinds of changes, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The first step that is another one.
    Step,
    /// What an assertion got.
    ReceivedValue,
    /// A request that failed and did not before.
    FailedRequest,
    /// An error of the page or its console that was not there before.
    PageError,
    /// A property of the environment.
    Environment,
    /// The failing line of the test.
    SourceLine,
    /// How long it took.
    Duration,
}

/// Something that is not what it was when the test passed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChangeSince {
    /// What kind of change.
    pub kind: ChangeKind,
    /// What changed.
    pub label: String,
    /// When it passed.
    pub before: Option<String>,
    /// When it failed.
    pub after: Option<String>,
    /// The field of the evidence this rests on.
    #[schema(example = "networkRequests")]
    pub evidence: &'static str,
}

/// The step that failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedStep {
    /// Title.
    #[schema(example = "locator.click(getByRole('button', { name: 'Pay' }))")]
    pub title: String,
    /// Where it stands.
    pub location: Option<String>,
    /// How long it took, ms.
    pub duration: i64,
}

/// The line that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedLine {
    /// File.
    pub file_path: String,
    /// Number.
    pub line: u32,
    /// Text.
    pub text: String,
}

/// The last pass before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastPassed {
    /// The execution.
    pub execution_id: i64,
    /// Its run.
    pub run_id: i64,
    /// Commit of that run.
    pub commit: Option<String>,
    /// Its branch: a pass is looked for on the branch of the failure, then on the default branch; anywhere while
    /// none is known.
    pub branch: Option<String>,
    /// Its environment: a pass is looked for in that of the failure, then in any.
    pub environment: Option<String>,
}

/// The cluster of the failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedCluster {
    /// Cluster.
    pub id: i64,
    /// One line that names it.
    pub signature: String,
    /// open, resolved or ignored.
    pub status: &'static str,
    /// Executions in which an attempt failed for this cause.
    pub occurrences: i64,
    /// Whether this run showed it first.
    pub is_new: bool,
}

/// What a healed locator looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExplainedHealing {
    /// Where it comes from.
    pub source: HealingSource,
    /// The locator.
    pub locator: String,
    /// Method.
    pub method: String,
    /// How likely it is right, 0 to 100.
    pub score: u8,
}

/// Why an execution failed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// One line that says it; null for an execution that did not fail.
    pub headline: Option<String>,
    /// outage, locator-drift, environment, known-cluster, app-error,
    /// likely-flake, likely-regression, test-bug or unknown.
    #[schema(example = "likely-regression")]
    pub verdict: &'static str,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// The next best, when the verdict follows from something known.
    pub also: Option<&'static str>,
    /// The step that failed.
    pub failing_step: Option<ExplainedStep>,
    /// The line that failed.
    pub source_line: Option<ExplainedLine>,
    /// What is not what it was, the most telling first.
    pub changed: Vec<ChangeSince>,
    /// The last pass before.
    pub last_passed: Option<LastPassed>,
    /// The cluster of the failure.
    pub cluster: Option<ExplainedCluster>,
    /// A locator that works.
    pub healing: Option<ExplainedHealing>,
    /// Names of tools and ids: where to look next.
    #[schema(example = json!(["get_locator_healing executionId=5"]))]
    pub next: Vec<String>,
}
