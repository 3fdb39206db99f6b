//! A run comes into being.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::search::{commit_word, words};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;
use callboard_domain::totals::Totals;

use super::details::{RunDetails, insert_details};
use super::row::totals_args;
use crate::Result;
use crate::db::{Session, args, statements};
use crate::ids::{self, Listed};
use crate::search::{self, SearchKind};

/// What is written when a run is created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Most specific lane.
    pub lane_id: i64,
    /// Branch; empty when none was told.
    pub branch: String,
    /// Environment; empty when none was told.
    pub environment: String,
    /// Where its life begins.
    pub status: RunStatus,
    /// Start by the client's clock. Lists sort by it, unless it lies ahead of ours.
    pub start_time: Timestamp,
    /// Whether the whole suite was asked for.
    pub is_full: bool,
    /// Whether the work tree had uncommitted changes.
    pub is_dirty: bool,
    /// Number of shards; `None` outside shards.
    pub shard_total: Option<i64>,
    /// The run that it repeats, wholly or in part.
    pub rerun_of: Option<RunId>,
    /// Display label.
    pub label: Option<String>,
    /// Commit.
    pub commit_sha: Option<String>,
    /// Commit message.
    pub commit_message: Option<String>,
    /// Commit author.
    pub author: Option<String>,
    /// Change request.
    pub pull_request: Option<String>,
    /// CI system.
    pub ci_provider: Option<String>,
    /// Address of the CI build.
    pub build_url: Option<String>,
    /// Tests the client planned to run.
    pub planned_tests: Option<i64>,
    /// Version of Playwright.
    pub playwright_version: Option<String>,
    /// Version of the reporter.
    pub reporter_version: Option<String>,
    /// Grouping key of the client.
    pub instance_id: Option<String>,
    /// The client's totals, shown as long as the run has no row.
    pub claimed: Totals,
    /// Details shown on the run's page only.
    pub details: RunDetails,
}

statements! {
    /// A new run.
    INSERT = "INSERT INTO test_runs (id, project_id, lane_id, branch, environment, start_time, order_at, \
        next_ordinal, version, totals_source, total, passed, failed, timedout, interrupted, skipped, didnotrun, flaky, \
        is_full, tests_ms, wasted_ms, label, commit_sha, commit_message, author, pull_request, ci_provider, build_url, \
        browsers, planned_tests, playwright_version, reporter_version, instance_id, created_at, updated_at, \
        last_activity_at, feed_seq, label_edited, shards_finished, status, shard_total, rerun_of, is_dirty) \
        VALUES ($1, $2, $3, $4, $5, $6, $32, 1, 1, 0, $7, $8, $9, $10, $11, $12, $13, $14, $15, 0, 0, \
        $16, $17, $18, $19, $20, $21, $22, '[]', $23, $24, $25, $26, $27, $27, $27, 0, 0, 0, $28, $29, $30, $31)";
}

/// Creates a run.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn create(
    session: &mut Session,
    project: ProjectId,
    id: RunId,
    new: &NewRun,
    now: Timestamp,
) -> Result<()> {
    let mut args = args![id, project, new.lane_id, &new.branch, &new.environment, new.start_time];
    args.extend(totals_args(&new.claimed));
    args.extend(args![
        new.is_full,
        new.label.clone(),
        new.commit_sha.clone(),
        new.commit_message.clone(),
        new.author.clone(),
        new.pull_request.clone(),
        new.ci_provider.clone(),
        new.build_url.clone(),
        new.planned_tests,
        new.playwright_version.clone(),
        new.reporter_version.clone(),
        new.instance_id.clone(),
        now,
        new.status.as_str(),
        new.shard_total,
        new.rerun_of,
        new.is_dirty,
        new.start_time.min(now)
    ]);
    session.write(&INSERT, args).await?;
    insert_details(session, project, id, &new.details).await?;
    let found_by = words([new.label.as_deref().unwrap_or_default(), &new.branch]);
    let found_by = found_by.into_iter().map(|word| (word, id.get()));
    search::add(session, project, SearchKind::Run, found_by).await?;
    let commit = new.commit_sha.as_deref().map(commit_word);
    search::add(session, project, SearchKind::Commit, commit.map(|word| (word, id.get()))).await?;
    ids::list(session, Listed::Run, project, &[id.get()]).await
}
