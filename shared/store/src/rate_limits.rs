//! Counters of limited calls. Each admission is one statement, so that
//! however many processes ask at the same time, no more are admitted than may be.

use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Row, Session, args, statements};

/// The name of a counter: a keyed hash.
pub type CounterName = [u8; 32];

statements! {
    /// One more call of a window; how many that makes, and what is left of
    /// the window. The count stops where it says nothing new.
    COUNT_CALL = "INSERT INTO rate_limits AS r (k, n, win_end, inflight, inflight_end) VALUES ($1, 1, $3, 0, 0) \
        ON CONFLICT (k) DO UPDATE SET \
          n = CASE WHEN r.win_end <= $2 THEN 1 WHEN r.n < 1000000 THEN r.n + 1 ELSE r.n END, \
          win_end = CASE WHEN r.win_end <= $2 THEN $3 ELSE r.win_end END \
        RETURNING n, win_end";
    /// A try that may fail; no row when too many have failed or are under
    /// way.
    ADMIT_TRY = "INSERT INTO rate_limits AS r (k, n, win_end, inflight, inflight_end) VALUES ($1, 0, $3, 1, $4) \
        ON CONFLICT (k) DO UPDATE SET \
          n = CASE WHEN r.win_end <= $2 THEN 0 ELSE r.n END, \
          win_end = CASE WHEN r.win_end <= $2 THEN $3 ELSE r.win_end END, \
          inflight = CASE WHEN r.inflight_end <= $2 THEN 1 ELSE r.inflight + 1 END, \
          inflight_end = $4 \
        WHERE (CASE WHEN r.win_end <= $2 THEN 0 ELSE r.n END) < $5 \
          AND (CASE WHEN r.inflight_end <= $2 THEN 0 ELSE r.inflight END) < $6 \
        RETURNING n";
    /// A try that failed.
    SETTLE_FAILURE = "UPDATE rate_limits SET \
          n = CASE WHEN win_end <= $2 THEN 1 ELSE n + 1 END, \
          win_end = CASE WHEN win_end <= $2 THEN $3 ELSE win_end END, \
          inflight = CASE WHEN inflight > 0 THEN inflight - 1 ELSE 0 END \
        WHERE k = $1";
    /// A try that did not fail.
    SETTLE_TRY = "UPDATE rate_limits SET inflight = CASE WHEN inflight > 0 THEN inflight - 1 ELSE 0 END \
        WHERE k = $1";
    /// A try that succeeded and forgets the failures before it.
    SETTLE_SUCCESS = "UPDATE rate_limits SET n = 0, inflight = CASE WHEN inflight > 0 THEN inflight - 1 ELSE 0 END \
        WHERE k = $1";
    /// One more call at a steady rate; no row when it comes too early.
    ADMIT_STEADY = "INSERT INTO rate_limits AS r (k, n, win_end, inflight, inflight_end) VALUES ($1, 0, $3, 0, 0) \
        ON CONFLICT (k) DO UPDATE SET win_end = CASE WHEN r.win_end > $2 THEN r.win_end + $4 ELSE $3 END \
        WHERE r.win_end <= $5 RETURNING win_end";
    /// What is known of a counter.
    COUNTER = "SELECT n, win_end FROM rate_limits WHERE k = $1";
    /// Counters that say nothing any more.
    // ix: rate_limits_by_end
    // The outer condition is looked at again when somebody counted meanwhile.
    PURGE = "DELETE FROM rate_limits WHERE win_end <= $1 AND inflight_end <= $1 AND k IN \
        (SELECT r.k FROM rate_limits r WHERE r.win_end <= $1 AND r.inflight_end <= $1 ORDER BY r.win_end LIMIT $2)";
}

/// A window in which failures count.
#[derive(Debug, Clone, Copy)]
pub struct FailureWindow {
    /// Most failures.
    pub failures: i64,
    /// Most tries under way.
    pub in_flight: i64,
    /// Length of the window, milliseconds.
    pub window_ms: i64,
    /// How long a try counts as under way, milliseconds.
    pub in_flight_ms: i64,
}

/// How a try ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It failed and counts.
    Failed,
    /// It did not fail; what failed before still counts.
    Passed,
    /// It did not fail, and what failed before is forgotten.
    Cleared,
}

/// What a counter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Calls or failures of the window.
    pub n: i64,
    /// The end of the window.
    pub window_end: Timestamp,
}

fn counter(row: &Row) -> Result<Counter> {
    let mut row = row.reader();
    Ok(Counter { n: row.int()?, window_end: row.time()? })
}

/// Counts a call; what the counter says with it.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count_call(
    session: &mut Session,
    name: CounterName,
    window_ms: i64,
    now: Timestamp,
) -> Result<Counter> {
    let end = now.millis() + window_ms;
    counter(&session.one(&COUNT_CALL, args![name, now, end]).await?)
}

/// Admits a try, or does not.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn admit_try(
    session: &mut Session,
    name: CounterName,
    window: FailureWindow,
    now: Timestamp,
) -> Result<bool> {
    let end = now.millis() + window.window_ms;
    let in_flight_end = now.millis() + window.in_flight_ms;
    let args = args![name, now, end, in_flight_end, window.failures, window.in_flight];
    Ok(session.first(&ADMIT_TRY, args).await?.is_some())
}

/// Notes how an admitted try ended.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn settle_try(
    session: &mut Session,
    name: CounterName,
    ending: Ending,
    window_ms: i64,
    now: Timestamp,
) -> Result<()> {
    match ending {
        Ending::Failed => {
            session.execute(&SETTLE_FAILURE, args![name, now, now.millis() + window_ms]).await?
        }
        Ending::Passed => session.execute(&SETTLE_TRY, args![name]).await?,
        Ending::Cleared => session.execute(&SETTLE_SUCCESS, args![name]).await?,
    };
    Ok(())
}

/// Admits so many calls at a steady rate, given as the milliseconds between two
/// calls and the calls of a burst; `false` when they come too early.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn admit_steady(
    session: &mut Session,
    name: CounterName,
    (interval_ms, burst): (i64, i64),
    calls: i64,
    now: Timestamp,
) -> Result<bool> {
    let now = now.millis();
    let latest = now + interval_ms * (burst - calls);
    let args = args![name, now, now + interval_ms * calls, interval_ms * calls, latest];
    Ok(session.first(&ADMIT_STEADY, args).await?.is_some())
}

/// What a counter says, if there is one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn read(session: &mut Session, name: CounterName) -> Result<Option<Counter>> {
    session.first(&COUNTER, args![name]).await?.as_ref().map(counter).transpose()
}

/// Deletes up to `limit` counters that say nothing any more, and tells how
/// many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge(session: &mut Session, now: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![now, limit]).await
}
