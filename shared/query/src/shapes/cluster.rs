//! Failure clusters as answers show them.

use callboard_domain::text::{cut_str, strip_ansi};
use callboard_domain::time::{Day, Timestamp};
use callboard_store::clusters::reads::AffectedTest;
use callboard_store::clusters::{ClusterRow, ClusterStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::words::{ClusterStatusWord, ErrorTypeWord};

use super::{ProjectRef, UserRef};
use crate::Links;
use crate::diagnoses::DiagnosisBrief;

/// Characters of a sample error in a list.
const MAX_SAMPLE_CHARS: usize = 400;

/// A failure cluster in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterBrief {
    /// Cluster id.
    #[schema(example = 8)]
    pub id: i64,
    /// Project.
    pub project_id: i64,
    /// One line that names it.
    #[schema(example = "click testid=pay — covered by another element")]
    pub signature: String,
    /// What a person calls it.
    pub title: Option<String>,
    /// `timeout`, `assertion`, `strict-mode`, `navigation`, `crash` or `unknown`.
    #[schema(value_type = ErrorTypeWord)]
    pub error_type: &'static str,
    /// `open`, `resolved` or `ignored`.
    #[schema(value_type = ClusterStatusWord)]
    pub status: &'static str,
    /// Executions in which an attempt failed for this cause; some of them passed
    /// on a retry.
    pub occurrences: i64,
    /// Tests among them.
    pub affected_tests: i64,
    /// A note.
    pub note: Option<String>,
    /// What a model says about it; null in lists, and while nothing is diagnosed.
    pub diagnosis: Option<DiagnosisBrief>,
}

/// A failure cluster as one of its tests sees it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOfTest {
    /// The cluster.
    #[serde(flatten)]
    pub brief: ClusterBrief,
    /// Executions of this test among its occurrences.
    pub own_occurrences: i64,
}

impl ClusterBrief {
    /// Shows a stored cluster.
    #[must_use]
    pub fn from_row(row: &ClusterRow) -> Self {
        Self {
            id: row.id.get(),
            project_id: row.project.get(),
            signature: row.signature.clone(),
            title: row.title.clone(),
            error_type: row.error_type.as_str(),
            status: row.status.as_str(),
            occurrences: row.occurrences,
            affected_tests: row.affected_tests,
            note: row.note.clone(),
            diagnosis: None,
        }
    }
}

/// A failure cluster.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterItem {
    /// The short form.
    #[serde(flatten)]
    pub brief: ClusterBrief,
    /// What it was made for, 64 hexadecimal digits.
    pub fingerprint: String,
    /// The element it is about, as a canonical locator.
    pub selector: Option<String>,
    /// The beginning of one of its errors, without colours.
    pub sample_error: Option<String>,
    /// Who looks after it.
    pub assignee: Option<UserRef>,
    /// Until when nobody wants to hear of it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub snoozed_until: Option<Timestamp>,
    /// The run that showed it first.
    pub first_seen_run_id: i64,
    /// Start of that run.
    #[schema(value_type = String, format = DateTime)]
    pub first_seen_at: Timestamp,
    /// The run that showed it last.
    pub last_seen_run_id: i64,
    /// Start of that run.
    #[schema(value_type = String, format = DateTime)]
    pub last_seen_at: Timestamp,
    /// How the test ended there: `failed`, `timedout` or `flaky`.
    #[schema(example = "failed")]
    pub last_seen_status: String,
    /// The first run after the last occurrence in which its tests passed.
    pub fix_landed_run_id: Option<i64>,
    /// When that was, or when a person said that it is repaired.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub fix_landed_at: Option<Timestamp>,
    /// Commit of that run.
    pub fix_commit: Option<String>,
    /// From the first occurrence to the repair.
    pub time_to_resolution_ms: Option<i64>,
    /// `stopped-failing`, `diagnosis-verified` or `regressed`.
    pub fix_verification: Option<String>,
    /// When it was first stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Its page.
    pub url: String,
}

impl ClusterItem {
    /// Shows a stored cluster.
    #[must_use]
    pub fn new(row: &ClusterRow, assignee: Option<UserRef>, links: &Links) -> Self {
        // A repair that nothing proves yet is not shown as one.
        let is_believed = row.status == ClusterStatus::Resolved
            || row.fix_verification.as_deref().is_some_and(|word| word != "regressed");
        let sample = strip_ansi(&row.sample);
        let sample = sample.trim();
        Self {
            brief: ClusterBrief::from_row(row),
            fingerprint: row.fingerprint.to_hex(),
            selector: row.selector.clone(),
            sample_error: (!sample.is_empty()).then(|| cut_str(sample, MAX_SAMPLE_CHARS).to_owned()),
            assignee,
            snoozed_until: row.snoozed_until,
            first_seen_run_id: row.first_run.get(),
            first_seen_at: row.first_seen_at,
            last_seen_run_id: row.last_run.get(),
            last_seen_at: row.last_seen_at,
            last_seen_status: row.last_status.clone(),
            fix_landed_run_id: row.fix_run.filter(|_| is_believed).map(|run| run.get()),
            fix_landed_at: row.fix_at.filter(|_| is_believed),
            fix_commit: row.fix_commit.clone().filter(|_| is_believed),
            time_to_resolution_ms: row.ttr_ms,
            fix_verification: row.fix_verification.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            url: links.cluster(row.id.get()),
        }
    }
}

/// A failure cluster with its project.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ClusterWithProject {
    /// The cluster.
    #[serde(flatten)]
    pub cluster: ClusterItem,
    /// Its project.
    pub project: ProjectRef,
}

/// A test that failed for a cluster.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedTestCase {
    /// Test case.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File.
    pub file_path: String,
    /// Owner of the test.
    pub owner: Option<String>,
    /// Its executions in which an attempt failed so.
    pub run_count: i64,
    /// The last execution that did.
    pub execution_id: i64,
}

impl AffectedTestCase {
    pub(crate) fn from_test(test: AffectedTest) -> Self {
        Self {
            test_case_id: test.test_case.get(),
            title: test.title,
            file_path: test.file_path,
            owner: test.owner,
            run_count: test.occurrences,
            execution_id: test.last_execution.get(),
        }
    }
}

/// A test of a cluster in the list of its own.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTestCase {
    /// Test case.
    pub test_case_id: i64,
    /// Title.
    pub title: String,
    /// File.
    pub file_path: String,
    /// Owner of the test.
    pub owner: Option<String>,
    /// Its executions in which an attempt failed so.
    pub occurrences: i64,
    /// Start of the first run in which it did.
    #[schema(value_type = String, format = DateTime)]
    pub first_seen_at: Timestamp,
    /// Start of the last one.
    #[schema(value_type = String, format = DateTime)]
    pub last_seen_at: Timestamp,
    /// The execution there.
    pub last_execution_id: i64,
}

impl ClusterTestCase {
    pub(crate) fn from_test(test: AffectedTest) -> Self {
        Self {
            test_case_id: test.test_case.get(),
            title: test.title,
            file_path: test.file_path,
            owner: test.owner,
            occurrences: test.occurrences,
            first_seen_at: test.first_at,
            last_seen_at: test.last_at,
            last_execution_id: test.last_execution.get(),
        }
    }
}

/// How often a cluster was seen on a day.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ClusterDay {
    /// UTC day.
    #[schema(value_type = String, format = Date)]
    pub day: Day,
    /// Executions.
    pub occurrences: i64,
}

/// What the failures of a cluster have in common.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CommonField {
    /// `kind`, `action`, `negated`, `locator`, `reason`, `error`, `codes` or `text`.
    #[schema(example = "locator")]
    pub field: String,
    /// Its value, the same for all of them.
    #[schema(example = "testid=pay")]
    pub value: String,
}

/// A failure cluster with everything its page shows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDetail {
    /// The list form, with the whole sample error.
    #[serde(flatten)]
    pub item: ClusterItem,
    /// Commit that changes are compared with.
    pub base_commit: Option<String>,
    /// Project.
    pub project: ProjectRef,
    /// What its failures have in common.
    pub grouped_by: Vec<CommonField>,
    /// Branches on which it was seen of late, at most 20.
    pub branches: Vec<String>,
    /// Tests that fail most for it, at most 20.
    pub affected_test_cases: Vec<AffectedTestCase>,
    /// The last 30 days on which it was seen, oldest first.
    pub trend: Vec<ClusterDay>,
}

/// The cluster of an execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterOfExecution {
    /// The cluster.
    #[serde(flatten)]
    pub brief: ClusterBrief,
    /// Whether the run of the execution was the first to show it.
    pub is_new: bool,
    /// Executions of the same run that count for it.
    pub same_run_count: i64,
}
