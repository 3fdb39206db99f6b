//! What changes of a stored run.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::run_life::EndReason;
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;

use super::row::{RunRow, totals_args};
use crate::db::{Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// Writes what changed after a batch of executions.
    UPDATE = "UPDATE test_runs SET status = $3, finished_at = $4, duration = $5, totals_source = $6, total = $7, passed = $8, \
        failed = $9, timedout = $10, interrupted = $11, skipped = $12, didnotrun = $13, flaky = $14, tests_ms = $15, \
        wasted_ms = $16, avg_ms = $17, p90_ms = $18, browsers = $19, updated_at = $20, version = version + 1, \
        pending_status = $21, end_reason = $22, last_activity_at = $23, feed_seq = $24, shards_finished = $25, start_time = $26, \
        is_green = $39, lost_ms = $28, is_mass_failure = $29, \
        next_ordinal = $30, counted_to = $31, uncounted_since = $32, p50_ms = $33, p95_ms = $34, error_count = $35, \
        first_error = $36, is_full = $37, expected_tests = $38, extra_repetitions = $40, superseded_by = $41 \
        WHERE project_id = $1 AND id = $2 AND status = $27";
    /// Writes what changes with every batch of a run that goes on: the columns no index holds. SQLite writes the indexes of every
    /// column that is named, whether it changes or not.
    ADVANCE = "UPDATE test_runs SET totals_source = $3, total = $4, passed = $5, failed = $6, timedout = $7, interrupted = $8, \
        skipped = $9, didnotrun = $10, flaky = $11, tests_ms = $12, wasted_ms = $13, lost_ms = $14, browsers = $15, updated_at = $16, \
        version = version + 1, last_activity_at = $17, feed_seq = $18, next_ordinal = $19, counted_to = $20, uncounted_since = $21, \
        extra_repetitions = $23 \
        WHERE project_id = $1 AND id = $2 AND status = $22";
    /// Writes what a client told later about its run.
    DESCRIBE = "UPDATE test_runs SET lane_id = $3, branch = $4, environment = $5, label = $6, commit_sha = $7, commit_message = $8, \
        author = $9, pull_request = $10, ci_provider = $11, build_url = $12, planned_tests = $13, playwright_version = $14, \
        reporter_version = $15, is_full = $16, is_dirty = $17 WHERE project_id = $1 AND id = $2";
    /// Whether most of a run failed.
    SET_MASS_FAILURE = "UPDATE test_runs SET is_mass_failure = $3 WHERE project_id = $1 AND id = $2";
    /// Notes a sign of life.
    TOUCH = "UPDATE test_runs SET last_activity_at = $3 WHERE project_id = $1 AND id = $2 AND last_activity_at < $3";
}

/// Writes status, totals and timing of a locked run that was stored as
/// `found`.
///
/// # Errors
/// [`StoreError::Damaged`] when it stands elsewhere: it was not locked.
pub async fn update(session: &mut Session, run: &RunRow, found: &RunRow) -> Result<()> {
    let is_written = if only_advances(run, found) {
        advance(session, run).await?
    } else {
        replace(session, run, found.status).await?
    };
    if is_written { Ok(()) } else { Err(StoreError::Damaged("a run changed although it was locked")) }
}

/// Whether a run goes on and nothing else about it changed than what
/// [`advance`] writes.
fn only_advances(run: &RunRow, found: &RunRow) -> bool {
    let rest = |run: &RunRow| {
        let ends = (run.finished_at, run.duration_ms, run.pending_status, run.end_reason, run.superseded_by);
        let errors = (run.error_count, run.first_error.clone());
        let extent = (run.is_full, run.expected_tests);
        (
            run.status,
            ends,
            run.test_durations,
            run.shards_finished,
            run.start_time,
            run.is_mass_failure,
            errors,
            extent,
        )
    };
    !run.status.is_final() && rest(run) == rest(found)
}

fn browsers_of(run: &RunRow) -> Result<String> {
    serde_json::to_string(&run.browsers).map_err(|_| StoreError::Damaged("a list of browsers"))
}

async fn advance(session: &mut Session, run: &RunRow) -> Result<bool> {
    let mut args = args![run.project, run.id, run.totals_from_rows];
    args.extend(totals_args(&run.totals));
    args.extend(args![
        run.tests_ms,
        run.wasted_ms,
        run.lost_ms,
        browsers_of(run)?,
        run.updated_at,
        run.last_activity_at,
        run.feed_seq,
        run.next_ordinal,
        run.counted_to,
        run.uncounted_since,
        run.status.as_str(),
        run.extra_repetitions
    ]);
    session.write_locked(&ADVANCE, args).await
}

async fn replace(session: &mut Session, run: &RunRow, from: RunStatus) -> Result<bool> {
    let mut args = args![
        run.project,
        run.id,
        run.status.as_str(),
        run.finished_at,
        run.duration_ms,
        run.totals_from_rows
    ];
    args.extend(totals_args(&run.totals));
    args.extend(args![
        run.tests_ms,
        run.wasted_ms,
        run.test_durations.mean,
        run.test_durations.p90,
        browsers_of(run)?,
        run.updated_at,
        run.pending_status.map(RunStatus::as_str),
        run.end_reason.map(EndReason::as_str),
        run.last_activity_at,
        run.feed_seq,
        run.shards_finished,
        run.start_time,
        from.as_str(),
        run.lost_ms,
        run.is_mass_failure,
        run.next_ordinal,
        run.counted_to,
        run.uncounted_since,
        run.test_durations.p50,
        run.test_durations.p95,
        run.error_count,
        run.first_error.clone(),
        run.is_full,
        run.expected_tests,
        run.may_be_baseline(),
        run.extra_repetitions,
        run.superseded_by
    ]);
    session.write_locked(&UPDATE, args).await
}

/// Writes what a client told later about a locked run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn describe(session: &mut Session, run: &RunRow) -> Result<()> {
    session
        .write(
            &DESCRIBE,
            args![
                run.project,
                run.id,
                run.lane_id,
                &run.branch,
                &run.environment,
                run.label.clone(),
                run.commit_sha.clone(),
                run.commit_message.clone(),
                run.author.clone(),
                run.pull_request.clone(),
                run.ci_provider.clone(),
                run.build_url.clone(),
                run.planned_tests,
                run.playwright_version.clone(),
                run.reporter_version.clone(),
                run.is_full,
                run.is_dirty
            ],
        )
        .await?;
    Ok(())
}

/// Notes a sign of life of a run.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn touch(session: &mut Session, project: ProjectId, run: RunId, now: Timestamp) -> Result<()> {
    session.write(&TOUCH, args![project, run, now]).await?;
    Ok(())
}

/// Notes of a locked run whether most of it failed.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set_mass_failure(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    is_mass_failure: bool,
) -> Result<()> {
    session.execute(&SET_MASS_FAILURE, args![project, run, is_mass_failure]).await?;
    Ok(())
}
