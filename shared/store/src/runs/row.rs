//! The row of a run: how it is selected and read.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::run_reason::RunEnd;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;

use super::compared::{Compared, Pin, compared, pin};
use crate::db::{Args, Reader, Row, args};
use crate::{Result, StoreError};

/// How long the tests of a run took, ms: their mean and percentiles by nearest
/// rank; `None` while it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestDurations {
    /// Mean.
    pub mean: Option<i64>,
    /// Median.
    pub p50: Option<i64>,
    /// 90th percentile.
    pub p90: Option<i64>,
    /// 95th percentile.
    pub p95: Option<i64>,
}

/// A run as lists show it.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Id.
    pub id: RunId,
    /// Project.
    pub project: ProjectId,
    /// Most specific lane of the run.
    pub lane_id: i64,
    /// Branch; empty when none was told.
    pub branch: String,
    /// Environment; empty when none was told.
    pub environment: String,
    /// Status.
    pub status: RunStatus,
    /// The status it takes when its files have arrived.
    pub pending_status: Option<RunStatus>,
    /// Why it ended, when not by its results.
    pub end_reason: Option<EndReason>,
    /// Number of its errors that belong to no test.
    pub error_count: i64,
    /// Headline of the first of them.
    pub first_error: Option<String>,
    /// Last sign of life of any of its clients.
    pub last_activity_at: Timestamp,
    /// Number of its newest event.
    pub feed_seq: i64,
    /// Number of its changes.
    pub version: i64,
    /// Whether other runs may be measured against it: [`RunRow::may_be_baseline`].
    pub is_green: bool,
    /// How its tests compare with what they did before; `None` before the run
    /// is final, and when nothing was known of any of them.
    pub compared: Option<Compared>,
    /// Failure clusters it was the first to show; `None` before it is final.
    pub new_clusters: Option<i64>,
    /// Failed tests that were in quarantine.
    pub quarantined_failed: i64,
    /// Since when it is kept whatever retention says.
    pub pin: Option<Pin>,
    /// Most of it failed: it says nothing about its tests.
    pub is_mass_failure: bool,
    /// Time spent on attempts that did not decide, ms.
    pub lost_ms: i64,
    /// Repetitions of `--repeat-each` beyond the first one of each test.
    pub extra_repetitions: i64,
    /// Start by the client's clock.
    pub start_time: Timestamp,
    /// Sort key of all lists.
    pub order_at: Timestamp,
    /// When the run became final.
    pub finished_at: Option<Timestamp>,
    /// Wall clock, ms.
    pub duration_ms: Option<i64>,
    /// Ordinal of the next execution.
    pub next_ordinal: i64,
    /// The ordinal up to which its executions are counted in states and days of
    /// tests.
    pub counted_to: i64,
    /// Since when an execution beyond it waits.
    pub uncounted_since: Option<Timestamp>,
    /// Whether the totals come from rows (else from the client's claim).
    pub totals_from_rows: bool,
    /// Totals.
    pub totals: Totals,
    /// Whether it counts as a run of the whole suite.
    pub is_full: bool,
    /// How many tests a full run was expected to have, of one that claimed to be
    /// full and counts as partial because it had far fewer.
    pub expected_tests: Option<i64>,
    /// Whether the work tree had uncommitted changes.
    pub is_dirty: bool,
    /// Sum over all attempts, ms.
    pub tests_ms: i64,
    /// Sum of fixed waits, ms.
    pub wasted_ms: i64,
    /// How long its tests took.
    pub test_durations: TestDurations,
    /// Display label.
    pub label: Option<String>,
    /// Commit.
    pub commit_sha: Option<String>,
    /// First line of the commit message.
    pub commit_message: Option<String>,
    /// Commit author.
    pub author: Option<String>,
    /// Change request number or name.
    pub pull_request: Option<String>,
    /// CI system.
    pub ci_provider: Option<String>,
    /// Address of the CI build.
    pub build_url: Option<String>,
    /// Names of the browser projects that ran.
    pub browsers: Vec<String>,
    /// Number of shards; `None` outside shards.
    pub shard_total: Option<i64>,
    /// Shards that finished; 1 for a finished run without shards.
    pub shards_finished: i64,
    /// The run that it repeats, wholly or in part.
    pub rerun_of: Option<RunId>,
    /// The run that took its place when it had fallen silent.
    pub superseded_by: Option<RunId>,
    /// Tests the client planned to run.
    pub planned_tests: Option<i64>,
    /// Version of Playwright.
    pub playwright_version: Option<String>,
    /// Version of the reporter.
    pub reporter_version: Option<String>,
    /// Grouping key of the client.
    pub instance_id: Option<String>,
    /// Whether a person gave it its label.
    pub label_is_edited: bool,
    /// Creation.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
}

macro_rules! select_run {
    ($tail:literal) => {
        concat!(
            "SELECT id, project_id, lane_id, branch, environment, status, start_time, order_at, finished_at, duration, \
             next_ordinal, totals_source, total, passed, failed, timedout, interrupted, skipped, didnotrun, flaky, \
             is_full, tests_ms, wasted_ms, avg_ms, p50_ms, p90_ms, p95_ms, label, commit_sha, commit_message, author, pull_request, \
             ci_provider, build_url, browsers, planned_tests, playwright_version, reporter_version, created_at, updated_at, \
             pending_status, end_reason, last_activity_at, feed_seq, shard_total, shards_finished, rerun_of, instance_id, \
             label_edited, version, is_green, new_regressions, new_flaky, fixed, quarantined_failed, pinned_at, pinned_by, \
             pin_reason, is_mass_failure, lost_ms, new_clusters, counted_to, uncounted_since, error_count, first_error, \
             expected_tests, is_dirty, extra_repetitions, superseded_by FROM test_runs ",
            $tail
        )
    };
}
pub(super) use select_run;

pub(super) fn read(row: &Row) -> Result<RunRow> {
    let mut r = row.reader();
    Ok(RunRow {
        id: RunId(r.int()?),
        project: ProjectId(r.int()?),
        lane_id: r.int()?,
        branch: r.text()?,
        environment: r.text()?,
        status: RunStatus::parse(&r.text()?).ok_or(StoreError::Damaged("an unknown run status"))?,
        start_time: r.time()?,
        order_at: r.time()?,
        finished_at: r.opt_time()?,
        duration_ms: r.opt_int()?,
        next_ordinal: r.int()?,
        totals_from_rows: r.flag()?,
        totals: totals(&mut r)?,
        is_full: r.flag()?,
        tests_ms: r.int()?,
        wasted_ms: r.int()?,
        test_durations: TestDurations {
            mean: r.opt_int()?,
            p50: r.opt_int()?,
            p90: r.opt_int()?,
            p95: r.opt_int()?,
        },
        label: r.opt_text()?,
        commit_sha: r.opt_text()?,
        commit_message: r.opt_text()?,
        author: r.opt_text()?,
        pull_request: r.opt_text()?,
        ci_provider: r.opt_text()?,
        build_url: r.opt_text()?,
        browsers: serde_json::from_str(&r.text()?).map_err(|_| StoreError::Damaged("a list of browsers"))?,
        planned_tests: r.opt_int()?,
        playwright_version: r.opt_text()?,
        reporter_version: r.opt_text()?,
        created_at: r.time()?,
        updated_at: r.time()?,
        pending_status: r.opt_text()?.as_deref().and_then(RunStatus::parse),
        end_reason: r.opt_text()?.as_deref().and_then(EndReason::parse),
        last_activity_at: r.time()?,
        feed_seq: r.int()?,
        shard_total: r.opt_int()?,
        shards_finished: r.int()?,
        rerun_of: r.opt_int()?.map(RunId),
        instance_id: r.opt_text()?,
        label_is_edited: r.flag()?,
        version: r.int()?,
        is_green: r.flag()?,
        compared: compared(r.opt_int()?, r.opt_int()?, r.opt_int()?),
        quarantined_failed: r.int()?,
        pin: pin(r.opt_time()?, r.opt_int()?, r.opt_text()?),
        is_mass_failure: r.flag()?,
        lost_ms: r.int()?,
        new_clusters: r.opt_int()?,
        counted_to: r.int()?,
        uncounted_since: r.opt_time()?,
        error_count: r.int()?,
        first_error: r.opt_text()?,
        expected_tests: r.opt_int()?,
        is_dirty: r.flag()?,
        extra_repetitions: r.int()?,
        superseded_by: r.opt_int()?.map(RunId),
    })
}

/// Totals, as eight columns one after the other.
pub(super) fn totals(r: &mut Reader<'_>) -> Result<Totals> {
    Ok(Totals {
        total_tests: r.int()?,
        passed_tests: r.int()?,
        failed_tests: r.int()?,
        timed_out_tests: r.int()?,
        interrupted_tests: r.int()?,
        skipped_tests: r.int()?,
        did_not_run_tests: r.int()?,
        flaky_tests: r.int()?,
    })
}

/// The values of those columns.
pub(super) fn totals_args(totals: &Totals) -> Args {
    args![
        totals.total_tests,
        totals.passed_tests,
        totals.failed_tests,
        totals.timed_out_tests,
        totals.interrupted_tests,
        totals.skipped_tests,
        totals.did_not_run_tests,
        totals.flaky_tests
    ]
}

impl RunRow {
    /// Whether its clients claim that the whole suite ran.
    #[must_use]
    pub const fn claims_full(&self) -> bool {
        self.is_full || self.expected_tests.is_some()
    }

    /// Whether other runs may be measured against it: a full run that passed,
    /// of a commit without further changes.
    #[must_use]
    pub fn may_be_baseline(&self) -> bool {
        self.is_full && !self.is_dirty && self.status == RunStatus::Passed
    }

    /// Takes `count` consecutive ordinals for new executions of a locked run
    /// and answers the first; [`super::update`] writes that they are taken.
    ///
    /// # Errors
    /// [`StoreError::RunFull`] when the run cannot hold that many more.
    pub fn take_ordinals(&mut self, count: usize) -> Result<i64> {
        let first = self.next_ordinal;
        let next = i64::try_from(count).ok().and_then(|count| first.checked_add(count));
        let next = next.filter(|next| next - 1 <= callboard_domain::ids::MAX_EXECUTIONS_PER_RUN);
        self.next_ordinal = next.ok_or(StoreError::RunFull)?;
        Ok(first)
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> RunEnd<'_> {
        RunEnd {
            status: self.status,
            end_reason: self.end_reason,
            totals: &self.totals,
            errors: self.error_count,
            first_error: self.first_error.as_deref(),
        }
    }

    /// How many executions wait to be counted.
    #[must_use]
    pub const fn waiting(&self) -> i64 {
        self.next_ordinal - 1 - self.counted_to
    }
}
