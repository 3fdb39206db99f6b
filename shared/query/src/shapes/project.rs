//! Projects as answers show them.

use callboard_domain::run_life::Reruns;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::projects::ProjectRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::{RunBrief, Tag};
use crate::Links;
use crate::projects::{FailingStreak, Told};
use crate::shapes::words::RerunsWord;

/// A project's id and name.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRef {
    /// Project id.
    #[schema(example = 3)]
    pub id: i64,
    /// Name.
    #[schema(example = "shop")]
    pub name: String,
    /// Name to show instead.
    #[schema(example = "Web shop")]
    pub label: Option<String>,
}

impl ProjectRef {
    /// Shows a stored project.
    #[must_use]
    pub fn from_row(row: &ProjectRow) -> Self {
        Self { id: row.id.get(), name: row.name.clone(), label: row.label.clone() }
    }

    /// What people read: its label, else its name.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

/// How a project has been doing lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tendency {
    /// Fewer than two full runs.
    #[default]
    Unknown,
    /// The latest full run did not pass.
    Failing,
    /// Passing, with flaky tests or a mix among the last five.
    Flaky,
    /// Passing.
    Passing,
}

impl Tendency {
    /// How a project stands for people: where there are too few full runs for a
    /// tendency, as the run that tells ended.
    #[must_use]
    pub fn standing(self, telling_run: Option<RunStatus>) -> Self {
        match (self, telling_run) {
            (Self::Unknown, Some(RunStatus::Passed)) => Self::Passing,
            (Self::Unknown, Some(status)) if status.is_final() => Self::Failing,
            _ => self,
        }
    }
}

/// A project.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Id and name.
    #[serde(flatten)]
    pub reference: ProjectRef,
    /// Free text.
    pub description: Option<String>,
    /// Default branch.
    pub default_branch: Option<String>,
    /// Patterns of branches that are followed like the default one.
    pub tracked_branches: Vec<String>,
    /// Address of the repository.
    pub repository_url: Option<String>,
    /// `github`, `gitlab`, `gitea`, `bitbucket` or `other`.
    pub repository_provider: Option<String>,
    /// Whether a token for the code host is stored; it is never shown.
    pub has_scm_token: bool,
    /// Whether its badge can be shown outside.
    pub has_badge_token: bool,
    /// What a diagnosis should know about the project.
    pub diagnosis_instructions: Option<String>,
    /// Whether a re-run joins the run that it repeats (`join`) or is a run of its own (`separate`).
    #[schema(value_type = RerunsWord)]
    pub reruns: &'static str,
    /// Tags, alphabetical.
    pub tags: Vec<Tag>,
    /// Number of runs, also of those whose details retention deleted.
    pub total_runs: i64,
    /// Runs whose details are kept; lists hold these.
    pub kept_runs: i64,
    /// Number of test cases.
    pub total_test_cases: i64,
    /// Failure clusters that wait for a repair.
    pub open_clusters: i64,
    /// Tests in quarantine.
    pub quarantined_tests: i64,
    /// Run with the latest start.
    pub latest_run: Option<RunBrief>,
    /// How it has been doing, by its default branch where that has full runs.
    pub tendency: Tendency,
    /// The newest run that says so; for drawings.
    #[serde(skip)]
    pub telling_run: Option<RunBrief>,
    /// The full runs of that branch that failed last; for drawings.
    #[serde(skip)]
    pub streak: FailingStreak,
    /// Start of the latest run.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_run_at: Option<Timestamp>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last edit or newest run.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Page of the project.
    pub url: String,
}

impl Project {
    /// Shows a stored project with its latest run.
    #[must_use]
    pub(crate) fn new(
        row: &ProjectRow,
        tags: Vec<Tag>,
        quarantined_tests: i64,
        latest_run: Option<RunBrief>,
        told: Told,
        links: &Links,
    ) -> Self {
        Self {
            reference: ProjectRef::from_row(row),
            description: row.description.clone(),
            default_branch: row.default_branch.clone(),
            tracked_branches: row.tracked_branches.clone(),
            repository_url: row.repository_url.clone(),
            repository_provider: row.repository_provider.clone(),
            has_scm_token: row.has_scm_token,
            has_badge_token: row.has_badge_token,
            diagnosis_instructions: row.diagnosis_instructions.clone(),
            reruns: Reruns::from_setting(row.joins_reruns).as_str(),
            tags,
            total_runs: row.runs,
            kept_runs: row.runs - row.expired_runs,
            total_test_cases: row.test_cases,
            open_clusters: row.open_clusters,
            quarantined_tests,
            latest_run,
            tendency: told.tendency,
            telling_run: told.run,
            streak: told.streak,
            last_run_at: row.last_run_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
            url: links.project(row.id.get()),
        }
    }
}

/// The runs of a project, beside a list that is made of those that are kept.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunCounts {
    /// Number of runs, also of those whose details retention deleted.
    pub total_runs: i64,
    /// Runs whose details are kept; the list is made of these.
    pub kept_runs: i64,
}

/// A project with its recent runs, for the home page.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectOverview {
    /// Id and name.
    #[serde(flatten)]
    pub reference: ProjectRef,
    /// Tags, alphabetical.
    pub tags: Vec<Tag>,
    /// Number of full runs.
    pub total_full_runs: i64,
    /// Latest full run that is final, in the environment asked for.
    pub latest_full_run: Option<RunBrief>,
    /// Up to 20 runs, oldest first.
    pub recent_runs: Vec<RunBrief>,
    /// How it has been doing, by its default branch where that has full runs.
    pub tendency: Tendency,
    /// The newest run that says so; for drawings.
    #[serde(skip)]
    pub telling_run: Option<RunBrief>,
    /// The full runs of that branch that failed last; for drawings.
    #[serde(skip)]
    pub streak: FailingStreak,
    /// Failure clusters that wait for a repair.
    pub open_clusters: i64,
}

/// What a project's lists can be filtered by.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Facets {
    /// Branches, newest first.
    pub branches: Vec<BranchFacet>,
    /// Environments, newest first.
    pub environments: Vec<String>,
    /// Browser projects.
    pub browsers: Vec<String>,
    /// Test tags, most used first.
    pub tags: Vec<String>,
    /// Owners.
    pub owners: Vec<String>,
    /// Features.
    pub features: Vec<String>,
}

/// A branch.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchFacet {
    /// Name.
    pub name: String,
    /// Start of its newest run.
    #[schema(value_type = String, format = DateTime)]
    pub last_run_at: Timestamp,
    /// Whether it is the project's default branch.
    pub is_default: bool,
    /// Whether it is followed like the default one.
    pub is_tracked: bool,
}
