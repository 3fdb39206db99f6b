//! What a run is measured against, how it fared, and that it is to be kept.
//!
//! Invariant: `is_green` is set together with the status and says whether the
//! run may be a baseline; the comparison is a function of the run's rows.

use callboard_domain::ids::{ProjectId, RunId, UserId};
use callboard_domain::suite_size::{EarlierRun, LOOKED_AT};
use callboard_domain::time::Timestamp;

use super::row::{RunRow, read, select_run};
use crate::Result;
use crate::db::{Row, Session, args, statements};

/// How the tests of a run compare with what they did before. Tests in
/// quarantine are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Passed before, fail now.
    pub new_regressions: i64,
    /// Passed at the first attempt before, flaky now.
    pub new_flaky: i64,
    /// Failed before, pass now.
    pub fixed: i64,
}

/// That a run is kept whatever retention says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Since when.
    pub at: Timestamp,
    /// Who pinned it; `None` without authentication.
    pub by: Option<UserId>,
    /// Why.
    pub reason: Option<String>,
}

pub(super) fn compared(
    new_regressions: Option<i64>,
    new_flaky: Option<i64>,
    fixed: Option<i64>,
) -> Option<Compared> {
    Some(Compared { new_regressions: new_regressions?, new_flaky: new_flaky?, fixed: fixed? })
}

pub(super) fn pin(at: Option<Timestamp>, by: Option<i64>, reason: Option<String>) -> Option<Pin> {
    Some(Pin { at: at?, by: by.map(UserId), reason })
}

statements! {
    /// The newest green run of a lane before another run. ix: test_runs_green
    GREEN_BEFORE = select_run!("WHERE project_id = $1 AND lane_id = $2 AND is_green = 1 AND (order_at, id) < ($3, $4) \
        ORDER BY order_at DESC, id DESC LIMIT 1");
    /// The newest final run on a branch in an environment before another run. ix: test_runs_by_branch
    FINAL_BEFORE = select_run!("WHERE project_id = $1 AND branch = $2 AND environment = $3 \
        AND status NOT IN ('initializing', 'running', 'finalizing') AND (order_at, id) < ($4, $5) \
        ORDER BY order_at DESC, id DESC LIMIT 1");
    /// Runs on a branch in an environment behind a place, up to another. ix: test_runs_by_branch
    OF_PLACE_UP_TO = select_run!("WHERE project_id = $1 AND branch = $2 AND environment = $3 AND (order_at, id) > ($4, $5) \
        AND (order_at, id) <= ($6, $7) ORDER BY order_at, id LIMIT $8");
    /// Runs of a project behind a place, up to another. ix: test_runs_by_time
    UP_TO = select_run!("WHERE project_id = $1 AND (order_at, id) > ($2, $3) AND (order_at, id) <= ($4, $5) \
        ORDER BY order_at, id LIMIT $6");
    /// Runs of a project before a place, the newest first. ix: test_runs_by_time
    BEFORE = select_run!("WHERE project_id = $1 AND (order_at, id) < ($2, $3) ORDER BY order_at DESC, id DESC LIMIT $4");
    /// Sizes of the newest runs of a lane before another run that claimed to be full and ended by their results, and whether
    /// they were doubted. ix: test_runs_claimed_full
    SUITE_SIZES = "SELECT total, CASE WHEN is_full = 1 THEN 0 ELSE 1 END FROM test_runs WHERE project_id = $1 AND lane_id = $2 \
        AND (is_full = 1 OR expected_tests IS NOT NULL) AND (order_at, id) < ($3, $4) AND status IN ('passed', 'failed') \
        AND totals_source = 1 ORDER BY order_at DESC, id DESC LIMIT $5";
    /// Writes how a run compares, and how many clusters it was the first to show.
    NOTE = "UPDATE test_runs SET new_regressions = $3, new_flaky = $4, fixed = $5, quarantined_failed = $6, new_clusters = $7 \
        WHERE project_id = $1 AND id = $2";
    /// Gives a run a label by hand.
    SET_LABEL = "UPDATE test_runs SET label = $3, label_edited = 1, updated_at = $4, version = version + 1 \
        WHERE project_id = $1 AND id = $2";
    /// Pins a run, or lets it go.
    SET_PIN = "UPDATE test_runs SET pinned_at = $3, pinned_by = $4, pin_reason = $5, updated_at = $6, version = version + 1 \
        WHERE project_id = $1 AND id = $2";
}

/// The newest green run of a lane that stands before `run`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn green_before(session: &mut Session, run: &RunRow, lane: i64) -> Result<Option<RunRow>> {
    let args = args![run.project, lane, run.order_at, run.id];
    session.first(&GREEN_BEFORE, args).await?.as_ref().map(read).transpose()
}

/// The newest final run with the branch and environment of `run` before it.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn previous(session: &mut Session, run: &RunRow) -> Result<Option<RunRow>> {
    let args = args![run.project, &run.branch, &run.environment, run.order_at, run.id];
    session.first(&FINAL_BEFORE, args).await?.as_ref().map(read).transpose()
}

/// The runs on a branch and in an environment that stand behind a place, up to and
/// with the one at another, the first ones first, at most `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn of_place_up_to(
    session: &mut Session,
    project: ProjectId,
    (branch, environment): (&str, &str),
    after: (Timestamp, RunId),
    last: (Timestamp, RunId),
    limit: i64,
) -> Result<Vec<RunRow>> {
    let args = args![project, branch, environment, after.0, after.1, last.0, last.1, limit];
    session.all(&OF_PLACE_UP_TO, args).await?.iter().map(read).collect()
}

/// The runs of a project that stand behind a place, up to and with the one at
/// another, the first ones first, at most `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn up_to(
    session: &mut Session,
    project: ProjectId,
    after: (Timestamp, RunId),
    last: (Timestamp, RunId),
    limit: i64,
) -> Result<Vec<RunRow>> {
    let args = args![project, after.0, after.1, last.0, last.1, limit];
    session.all(&UP_TO, args).await?.iter().map(read).collect()
}

/// The runs of a project that stand before a place, the newest first, at most
/// `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn before(
    session: &mut Session,
    project: ProjectId,
    (order_at, run): (Timestamp, RunId),
    limit: i64,
) -> Result<Vec<RunRow>> {
    let rows = session.all(&BEFORE, args![project, order_at, run, limit]).await?;
    rows.iter().map(read).collect()
}

/// Sizes of the newest runs with the branch and environment of `run` before it
/// that claimed to be full, newest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn suite_sizes(session: &mut Session, run: &RunRow) -> Result<Vec<EarlierRun>> {
    let limit = i64::try_from(LOOKED_AT).unwrap_or(i64::MAX);
    let args = args![run.project, run.lane_id, run.order_at, run.id, limit];
    let rows = session.all(&SUITE_SIZES, args).await?;
    let size = |row: &Row| {
        let mut r = row.reader();
        Ok(EarlierRun { tests: r.int()?, is_doubted: r.flag()? })
    };
    rows.iter().map(size).collect()
}

/// Writes how a locked run compares, and how many clusters it was the first to
/// show, as its row says.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn note(session: &mut Session, run: &RunRow, quarantined_failed: i64) -> Result<()> {
    let number = |read: fn(Compared) -> i64| run.compared.map(read);
    let args = args![
        run.project,
        run.id,
        number(|compared| compared.new_regressions),
        number(|compared| compared.new_flaky),
        number(|compared| compared.fixed),
        quarantined_failed,
        run.new_clusters
    ];
    session.write(&NOTE, args).await
}

/// Gives a run a label by hand; ingest leaves it alone from then on.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_label(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    label: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    session.execute(&SET_LABEL, args![project, run, label, now]).await?;
    Ok(())
}

/// Pins a run, or lets it go.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn set_pin(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    pin: Option<&Pin>,
    now: Timestamp,
) -> Result<()> {
    let args = args![
        project,
        run,
        pin.map(|pin| pin.at),
        pin.and_then(|pin| pin.by),
        pin.and_then(|pin| pin.reason.clone()),
        now
    ];
    session.execute(&SET_PIN, args).await?;
    Ok(())
}
