//! What is said about the repair of a cluster.

use serde::Serialize;
use utoipa::ToSchema;

use crate::diagnoses::{Diagnosis, PatchValidation};
use crate::failures::RankedLocator;

/// The cluster a plan is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCluster {
    /// Cluster.
    pub id: i64,
    /// What a person calls it.
    pub title: Option<String>,
    /// One line that names it.
    pub signature: String,
    /// Type of its error.
    #[schema(example = "timeout")]
    pub error_type: &'static str,
    /// open, resolved or ignored.
    pub status: &'static str,
    /// Executions in which an attempt failed for this cause.
    pub occurrences: i64,
    /// `stopped-failing`, `diagnosis-verified` or `regressed`.
    pub fix_verification: Option<String>,
}

/// A change of one line of a test.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedEdit {
    /// File.
    pub file_path: String,
    /// Line.
    pub line: Option<u32>,
    /// The line as it was when the test failed.
    pub current_line: Option<String>,
    /// The locator that failed.
    pub failing_locator: Option<String>,
    /// The locator to use.
    pub suggested_locator: Option<String>,
    /// How likely it is right, 0 to 100.
    pub score: Option<u8>,
    /// The change. Diffs apply in the order of the edits: lines around a change
    /// are shown as the edits before it leave them.
    pub unified_diff: Option<String>,
    /// The execution it comes from.
    pub execution_id: i64,
    /// Other locators that may find the element; for drawings.
    #[serde(skip)]
    pub alternatives: Vec<RankedLocator>,
}

/// Locators of which none is certain.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The execution they come from.
    pub execution_id: i64,
    /// The locator that failed.
    pub failing_locator: Option<String>,
    /// What may find the element.
    pub locators: Vec<RankedLocator>,
}

/// A test that fails for the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTest {
    /// Test case.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File.
    pub file_path: String,
    /// Line of its declaration, as its newest execution tells it.
    pub line: Option<i64>,
    /// Browser project.
    pub browser_project: Option<String>,
    /// Its newest failing execution.
    pub execution_id: i64,
}

/// Who looks after the failing tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Ownership {
    /// The owner most of them name.
    pub owner: Option<String>,
    /// Where it is named: `annotation` or `codeowners`.
    pub source: Option<&'static str>,
}

/// How to see that a repair holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Verify {
    /// Commands for a shell, one for the tests of each set of browser projects,
    /// joined by `&&`; empty when no test is known.
    #[schema(
        example = "npx playwright test ./tests/pay.spec.ts:7 --project=chromium --repeat-each=3 --retries=0"
    )]
    pub command: String,
    /// What it has to show.
    pub expectation: String,
}

/// What a model says of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedDiagnosis {
    /// Diagnosis id.
    pub id: i64,
    /// `app-bug`, `test-bug`, `flaky-test`, `infrastructure`, `environment` or `unknown`.
    #[schema(example = "test-bug")]
    pub category: Option<String>,
    /// `high`, `medium` or `low`.
    #[schema(example = "high")]
    pub confidence: Option<&'static str>,
    /// One sentence.
    pub summary: Option<String>,
    /// The cause.
    pub root_cause: Option<String>,
    /// A change that may repair it, as a unified diff. Nothing applies it.
    pub patch: Option<String>,
    /// Whether the patch fits the stored sources.
    pub patch_validation: Option<PatchValidation>,
}

impl PlannedDiagnosis {
    pub(super) fn from_diagnosis(diagnosis: Diagnosis) -> Self {
        Self {
            id: diagnosis.id,
            category: diagnosis.category,
            confidence: diagnosis.confidence,
            summary: diagnosis.summary,
            root_cause: diagnosis.root_cause,
            patch: diagnosis.suggested_fix.and_then(|fix| fix.patch),
            patch_validation: diagnosis.patch_validation,
        }
    }
}

/// What to do about a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixPlan {
    /// The cluster.
    pub cluster: PlannedCluster,
    /// What a model says of it; null without one.
    pub diagnosis: Option<PlannedDiagnosis>,
    /// Changes that heal its locators, at most five.
    pub edits: Vec<PlannedEdit>,
    /// How many of them are known.
    pub edits_count: usize,
    /// How many of these are left out of `edits`.
    pub edits_omitted: usize,
    /// Failing tests whose locator was not looked at: at most eight are.
    pub unexamined_tests: usize,
    /// Tests that fail for it, once for each browser project, the newest first,
    /// at most twenty.
    pub failing_tests: Vec<PlannedTest>,
    /// How many of them its newest hundred failures show.
    pub failing_tests_count: usize,
    /// How many of these are left out of `failingTests`.
    pub failing_tests_omitted: usize,
    /// Who looks after them.
    pub ownership: Ownership,
    /// How to see that a repair holds.
    pub verify: Verify,
    /// Where no change is certain, what may be used in the newest failure; for drawings.
    #[serde(skip)]
    pub offer: Option<Offer>,
    /// Names of tools and ids: where to look next.
    #[schema(example = json!(["get_locator_healing executionId=7"]))]
    pub next: Vec<String>,
}
