//! Runs as answers show them.

use callboard_domain::ids::RunId;
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_store::projects::ProjectRow;
use callboard_store::runs::slots::SlotRow;
use callboard_store::runs::{BriefRow, RunRow};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{ProjectRef, Report, Totals, UserRef, non_empty, shortened};
use crate::Links;
use crate::baseline::Baseline;
use crate::links::Link;
use crate::markers::Marker;
use crate::retention::RunEnds;
use crate::run_attempts::RunAttempt;
use crate::run_errors::RunErrorItem;
use crate::shapes::words::RunStatusWord;

/// The short form of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunBrief {
    /// Run id.
    #[schema(example = 41)]
    pub id: i64,
    /// Where the run stands: initializing, running, finalizing, passed, failed,
    /// timedout, interrupted or cancelled.
    #[schema(value_type = RunStatusWord)]
    pub status: RunStatus,
    /// Why it is not green beyond its failed tests: errors outside of the tests, an early end, a failure that no test
    /// explains; null when its tests say it all.
    #[schema(example = "Global set-up failed: db is down")]
    pub status_reason: Option<String>,
    /// Start by the client's clock.
    #[schema(value_type = String, format = DateTime)]
    pub start_time: Timestamp,
    /// Wall clock.
    pub duration: Option<i64>,
    /// Totals.
    #[serde(flatten)]
    pub totals: Totals,
    /// Passed / (passed + failed).
    pub pass_rate: Option<f64>,
    /// Branch.
    pub branch: Option<String>,
    /// Commit.
    pub commit: Option<String>,
    /// Deployment target.
    pub environment: Option<String>,
    /// Display label.
    pub label: Option<String>,
    /// Whether it counts as a run of the whole suite.
    pub is_full_run: bool,
    /// A full run that passed on a clean work tree: others are measured against it.
    pub is_green: bool,
    /// Whether its details are kept, so that it has a page; for drawings.
    #[serde(skip)]
    pub is_kept: bool,
}

impl RunBrief {
    /// Shows a stored run.
    #[must_use]
    pub fn from_row(row: &RunRow) -> Self {
        Self {
            id: row.id.get(),
            status: row.status,
            status_reason: row.end().reason(),
            start_time: row.start_time,
            duration: row.duration_ms,
            totals: row.totals.into(),
            pass_rate: row.totals.pass_rate(),
            branch: non_empty(&row.branch),
            commit: row.commit_sha.clone(),
            environment: non_empty(&row.environment),
            label: row.label.clone(),
            is_full_run: row.is_full,
            is_green: row.is_green,
            is_kept: true,
        }
    }
}

impl From<&BriefRow> for RunBrief {
    fn from(row: &BriefRow) -> Self {
        Self {
            id: row.id.get(),
            status: row.status,
            status_reason: row.end().reason(),
            start_time: row.start_time,
            duration: row.duration_ms,
            totals: row.totals.into(),
            pass_rate: row.totals.pass_rate(),
            branch: non_empty(&row.branch),
            commit: row.commit_sha.clone(),
            environment: non_empty(&row.environment),
            label: row.label.clone(),
            is_full_run: row.is_full,
            is_green: row.is_green,
            is_kept: row.is_kept,
        }
    }
}

/// A run in lists.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunItem {
    /// The short form.
    #[serde(flatten)]
    pub brief: RunBrief,
    /// Project id.
    pub project_id: i64,
    /// Project name.
    pub project_name: String,
    /// Name to show instead; for pages.
    #[serde(skip)]
    pub project_label: Option<String>,
    /// Why the run ended when not by its results: client, user, superseded,
    /// stale, setup_timeout or shards_missing.
    #[schema(example = "stale")]
    pub end_reason: Option<&'static str>,
    /// When the run became final.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// `rows`, or `claimed` as long as the run has no test and shows what the
    /// client said.
    #[schema(example = "rows")]
    pub totals_source: &'static str,
    /// First 200 characters of the commit message.
    pub commit_message: Option<String>,
    /// Commit author.
    pub author: Option<String>,
    /// Change request.
    pub pull_request: Option<String>,
    /// CI system.
    pub ci_provider: Option<String>,
    /// Address of the CI build.
    pub build_url: Option<String>,
    /// Names of the browser projects that ran.
    pub browsers: Vec<String>,
    /// Tests the client planned to run.
    pub planned_tests: Option<i64>,
    /// Number of shards; null for a run without.
    pub shard_total: Option<i64>,
    /// Shards that finished; 1 when a run without shards has.
    pub shards_finished: i64,
    /// The run that this one repeats, wholly or in part.
    pub rerun_of: Option<i64>,
    /// How often its tests ran from their beginning, as Playwright counts them: every repetition of `--repeat-each`,
    /// where `totalTests` counts each test once. The two are equal where nothing was repeated.
    #[schema(example = 22)]
    pub repetitions: i64,
    /// The run of the same pipeline that took its place when it had been silent for 45 s.
    pub superseded_by: Option<i64>,
    /// Why it does not count as full: `selection` (its client ran a part of the suite), `rerun` (it repeats a part
    /// of a run) or `fewer-tests` (it had far fewer tests than the full runs before it).
    #[schema(example = "fewer-tests")]
    pub partial_reason: Option<&'static str>,
    /// Tests a full run was expected to have; set for `fewer-tests`.
    pub expected_tests: Option<i64>,
    /// Whether the work tree had uncommitted changes: no other run is measured against it.
    pub is_dirty: bool,
    /// Tests that passed before and fail now, without those in quarantine; null
    /// until the run is final and something is known of what came before.
    pub new_regressions: Option<i64>,
    /// Tests that passed at the first attempt before and are flaky now; null
    /// likewise.
    pub new_flaky: Option<i64>,
    /// Tests that failed before and pass now; null likewise.
    pub fixed_tests: Option<i64>,
    /// Failure clusters it was the first to show; null until the run is final.
    pub new_clusters: Option<i64>,
    /// Failed tests that are in quarantine.
    pub quarantined_failures: i64,
    /// Whether it is kept whatever retention says.
    pub is_pinned: bool,
    /// Sum of fixed waits.
    pub wasted_time_ms: i64,
    /// Sum over all attempts.
    pub tests_duration: i64,
    /// Mean over tests that ran.
    pub avg_test_duration: Option<i64>,
    /// Median (nearest rank) over tests that ran; null of runs that ended before it was kept.
    pub p50_test_duration: Option<i64>,
    /// 90th percentile (nearest rank) over tests that ran.
    pub p90_test_duration: Option<i64>,
    /// 95th percentile (nearest rank) over tests that ran; null of runs that ended before it was kept.
    pub p95_test_duration: Option<i64>,
    /// Version of Playwright.
    pub playwright_version: Option<String>,
    /// Version of the reporter.
    pub reporter_version: Option<String>,
    /// When the server first heard of the run.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Page of the run.
    pub url: String,
}

impl RunItem {
    /// Shows a stored run of a project.
    #[must_use]
    pub fn new(row: &RunRow, project: &ProjectRow, links: &Links) -> Self {
        // A run that goes on again keeps on its row what was said at its end.
        let compared = row.compared.filter(|_| row.status.is_final());
        Self {
            brief: RunBrief::from_row(row),
            project_id: row.project.get(),
            project_name: project.name.clone(),
            project_label: project.label.clone(),
            end_reason: row.end_reason.map(EndReason::as_str),
            finished_at: row.finished_at,
            totals_source: if row.totals_from_rows { "rows" } else { "claimed" },
            commit_message: shortened(row.commit_message.as_ref(), 200),
            author: row.author.clone(),
            pull_request: row.pull_request.clone(),
            ci_provider: row.ci_provider.clone(),
            build_url: row.build_url.clone(),
            browsers: row.browsers.clone(),
            planned_tests: row.planned_tests,
            shard_total: row.shard_total,
            shards_finished: row.shards_finished,
            rerun_of: row.rerun_of.map(RunId::get),
            repetitions: row.totals.total_tests + row.extra_repetitions,
            superseded_by: row.superseded_by.map(RunId::get),
            partial_reason: partial_reason(row),
            expected_tests: row.expected_tests,
            is_dirty: row.is_dirty,
            new_regressions: compared.map(|compared| compared.new_regressions),
            new_flaky: compared.map(|compared| compared.new_flaky),
            fixed_tests: compared.map(|compared| compared.fixed),
            new_clusters: compared.and(row.new_clusters),
            quarantined_failures: row.quarantined_failed,
            is_pinned: row.pin.is_some(),
            wasted_time_ms: row.wasted_ms,
            tests_duration: row.tests_ms,
            avg_test_duration: row.test_durations.mean,
            p50_test_duration: row.test_durations.p50,
            p90_test_duration: row.test_durations.p90,
            p95_test_duration: row.test_durations.p95,
            playwright_version: row.playwright_version.clone(),
            reporter_version: row.reporter_version.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            url: links.run(row.id.get()),
        }
    }

    /// Whether tests ran more than once from their beginning, as with `--repeat-each`.
    #[must_use]
    pub const fn is_repeated(&self) -> bool {
        self.repetitions > self.brief.totals.total_tests
    }
}

const fn partial_reason(row: &RunRow) -> Option<&'static str> {
    if row.is_full {
        None
    } else if row.expected_tests.is_some() {
        Some("fewer-tests")
    } else if row.rerun_of.is_some() {
        Some("rerun")
    } else {
        Some("selection")
    }
}

/// A run with everything its page shows besides executions.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunDetail {
    /// The list form.
    #[serde(flatten)]
    pub item: RunItem,
    /// Its errors that belong to no test.
    pub run_errors: Vec<RunErrorItem>,
    /// Project.
    pub project: ProjectRef,
    /// How the run was narrowed.
    #[schema(value_type = Option<Object>)]
    pub filter_details: Option<Value>,
    /// What the client told about the run; credentials removed.
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// Steps of the global setup.
    #[schema(value_type = Vec<Object>)]
    pub setup_steps: Value,
    /// The clients that fed the run.
    pub shards: Vec<ShardItem>,
    /// The run after each of its attempts, oldest first; empty for a run that was never re-run.
    pub attempts: Vec<RunAttempt>,
    /// Stored reports.
    pub reports: Vec<Report>,
    /// The green run it is measured against.
    pub baseline: Option<Baseline>,
    /// Why it is kept, when it is pinned.
    pub pin: Option<PinItem>,
    /// What the newest gate said.
    pub gate: Option<GateBrief>,
    /// Links of the run, in the order they were made; at most 50.
    pub links: Vec<Link>,
    /// The newest marker before the run, of its environment or of all.
    pub preceding_marker: Option<Marker>,
    /// What the run holds in the object store.
    pub storage: RunStorage,
    /// When it goes.
    pub retention: RunEnds,
}

/// That a run is kept whatever retention says.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PinItem {
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who pinned it, as long as the account exists.
    pub by: Option<UserRef>,
    /// Why.
    pub reason: Option<String>,
}

/// What judging a run said, in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateBrief {
    /// Id of the result.
    pub id: i64,
    /// Whether nothing was violated.
    pub passed: bool,
    /// Name of the stored policy; null for one that came with the request.
    pub policy_name: Option<String>,
    /// Number of violations.
    pub violations: i64,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// For whom, as long as the account exists.
    pub by: Option<UserRef>,
}

/// One client that fed a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardItem {
    /// Its shard from 1; 0 in a run without shards.
    pub index: i64,
    /// setup, live, finished or lost.
    #[schema(example = "finished")]
    pub state: &'static str,
    /// 0, and one more for every retry of the shard.
    pub generation: i64,
    /// Attempt of its CI job, where the CI system counts attempts.
    pub job_attempt: Option<i64>,
    /// What it told about its CI job; credentials removed.
    #[schema(value_type = Option<Object>)]
    pub ci: Option<Value>,
    /// The result it claimed.
    #[schema(value_type = Option<RunStatusWord>)]
    pub status: Option<RunStatus>,
    /// Wall clock.
    pub duration: Option<i64>,
    /// Whether files are still to follow.
    pub waiting: bool,
}

impl ShardItem {
    /// Shows a stored slot.
    #[must_use]
    pub fn from_row(row: &SlotRow) -> Self {
        Self {
            index: row.slot.shard_index,
            state: row.slot.state.as_str(),
            generation: row.slot.generation,
            job_attempt: row.slot.job_attempt,
            ci: row.metadata_ci.as_deref().and_then(|ci| serde_json::from_str(ci).ok()),
            status: row.slot.claimed,
            duration: row.slot.duration_ms,
            waiting: row.slot.waiting,
        }
    }
}

/// Bytes a run holds.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStorage {
    /// Number of files.
    pub files: i64,
    /// Their sizes together; content shared between files counts each time.
    pub bytes: i64,
    /// Compressed evidence.
    pub evidence_bytes: i64,
    /// Files by kind.
    pub by_kind: Vec<StorageByKind>,
}

/// Files of one kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageByKind {
    /// trace, screenshot, video or attachment.
    pub kind: &'static str,
    /// Number of files.
    pub count: i64,
    /// Their sizes together.
    pub bytes: i64,
}
