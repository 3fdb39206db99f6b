//! What an installation knows about itself.

use callboard_domain::time::Timestamp;

use crate::db::{Db, Session, Statement, args, statements};
use crate::{Result, StoreError};

statements! {
    /// A sign of life.
    PING = "SELECT 1";
    /// A value by key.
    VALUE_OF = "SELECT value FROM instance_state WHERE key = $1";
    /// What is in use: each question ends with the first row it finds. ix: test_runs_all_by_time
    IN_USE = "SELECT EXISTS (SELECT 1 FROM (SELECT reporter_version FROM test_runs ORDER BY order_at DESC, id DESC LIMIT 100) r \
            WHERE r.reporter_version IS NOT NULL), \
        EXISTS (SELECT 1 FROM run_endpoints), EXISTS (SELECT 1 FROM locator_snapshots), EXISTS (SELECT 1 FROM failure_clusters), \
        EXISTS (SELECT 1 FROM projects WHERE scm_token IS NOT NULL), EXISTS (SELECT 1 FROM project_tags), \
        EXISTS (SELECT 1 FROM markers), EXISTS (SELECT 1 FROM quarantine), EXISTS (SELECT 1 FROM subscriptions), \
        EXISTS (SELECT 1 FROM settings WHERE grp = 'retention') OR EXISTS (SELECT 1 FROM project_settings WHERE grp = 'retention'), \
        EXISTS (SELECT 1 FROM settings WHERE grp = 'ai' AND value LIKE '%\"enabled\":true%')";
    /// Sets a value once; the first writer wins.
    CLAIM_VALUE = "INSERT INTO instance_state (key, value, updated_at) VALUES ($1, $2, $3) \
                   ON CONFLICT (key) DO NOTHING";
    /// Sets a value unless it is set so; no row when nothing changed.
    SET_VALUE = "INSERT INTO instance_state AS s (key, value, updated_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at \
                 WHERE s.value <> excluded.value";
    /// Notes that a process that requires sign-in is running.
    CHECK_IN = "INSERT INTO instance_state (key, value, updated_at) VALUES ($1, 'on', $2) \
                ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at";
    /// Processes that ended without checking out.
    PURGE_CHECK_INS = "DELETE FROM instance_state WHERE key LIKE 'sign_in_required:%' AND updated_at < $1";
    /// The process stops.
    CHECK_OUT = "DELETE FROM instance_state WHERE key = $1";
    /// Whether a process requires sign-in, and whether there are accounts. The table has few rows.
    SIGN_IN_STATE = "SELECT EXISTS (SELECT 1 FROM instance_state WHERE key LIKE 'sign_in_required:%' \
                     AND updated_at BETWEEN $1 AND $2), EXISTS (SELECT 1 FROM users)";
}

/// A check-in counts this long, milliseconds.
pub const CHECK_IN_LIFETIME_MS: i64 = 60 * 1000;

fn check_in_key(process: &str) -> String {
    format!("sign_in_required:{process}")
}

/// Notes that `process`, which requires sign-in, is running.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn check_in(session: &mut Session, process: &str, now: Timestamp) -> Result<()> {
    session.execute(&PURGE_CHECK_INS, args![now.millis() - CHECK_IN_LIFETIME_MS]).await?;
    session.execute(&CHECK_IN, args![check_in_key(process), now]).await?;
    Ok(())
}

/// Notes that `process` stops.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn check_out(session: &mut Session, process: &str) -> Result<()> {
    session.execute(&CHECK_OUT, args![check_in_key(process)]).await?;
    Ok(())
}

/// What a process that does not require sign-in has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInState {
    /// A process that requires it has checked in lately.
    pub is_required_elsewhere: bool,
    /// There are accounts.
    pub has_accounts: bool,
}

/// Whether another process requires sign-in, and whether there are accounts.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn sign_in_state(db: &Db, now: Timestamp) -> Result<SignInState> {
    // Clocks differ a little, so a check-in may seem to be from the future.
    let (from, to) = (now.millis() - CHECK_IN_LIFETIME_MS, now.millis() + CHECK_IN_LIFETIME_MS);
    let row = db.read().await?.one(&SIGN_IN_STATE, args![from, to]).await?;
    let mut row = row.reader();
    Ok(SignInState { is_required_elsewhere: row.flag()?, has_accounts: row.flag()? })
}

/// The time of the database, epoch milliseconds. No words for it are common
/// to both engines.
static CLOCK: Statement = Statement::of_each(
    "instance::CLOCK",
    "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
);
/// What is worded for each engine.
pub(crate) static WORDED_APART: &[&Statement] = &[&CLOCK];

/// What time it is where the database runs.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn clock(db: &Db) -> Result<Timestamp> {
    let row = db.read().await?.one(&CLOCK, args![]).await?;
    Ok(Timestamp(row.reader().int()?))
}

pub(crate) async fn check(db: &Db) -> Result<()> {
    db.read().await?.one(&PING, args![]).await?;
    Ok(())
}

/// Whether something was noted about this installation.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn has(db: &Db, key: &str) -> Result<bool> {
    Ok(db.read().await?.first(&VALUE_OF, args![key]).await?.is_some())
}

/// Notes that something was done, once: of any number of callers at the same time
/// exactly one gets true.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn claim(session: &mut Session, key: &str, now: Timestamp) -> Result<bool> {
    Ok(session.execute(&CLAIM_VALUE, args![key, now.to_iso(), now.millis()]).await? == 1)
}

/// What was noted under a key.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn value(db: &Db, key: &str) -> Result<Option<String>> {
    value_in(&mut db.read().await?, key).await
}

/// A noted value, read in a transaction.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn value_in(session: &mut Session, key: &str) -> Result<Option<String>> {
    session.first(&VALUE_OF, args![key]).await?.map(|row| row.reader().text()).transpose()
}

/// Notes a value; `false` when it was noted already.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn set(session: &mut Session, key: &str, value: &str, now: Timestamp) -> Result<bool> {
    Ok(session.execute(&SET_VALUE, args![key, value, now]).await? == 1)
}

/// Which features of an installation are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InUse {
    /// One of the newest hundred runs came from the reporter.
    pub reporter: bool,
    /// Requests were captured by its fixtures.
    pub fixtures: bool,
    /// Locators were captured.
    pub locators: bool,
    /// Failures were grouped.
    pub clusters: bool,
    /// A project has a token of its code host.
    pub source_control: bool,
    /// A project has a tag.
    pub tags: bool,
    /// There is a marker.
    pub markers: bool,
    /// A test is or was set aside.
    pub quarantine: bool,
    /// A channel is subscribed to events.
    pub notifications: bool,
    /// Somebody said how long things are kept.
    pub retention: bool,
    /// A model for diagnoses is switched on.
    pub diagnosis: bool,
}

/// Which features are in use.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn in_use(db: &Db) -> Result<InUse> {
    let row = db.read().await?.one(&IN_USE, args![]).await?;
    let mut r = row.reader();
    Ok(InUse {
        reporter: r.flag()?,
        fixtures: r.flag()?,
        locators: r.flag()?,
        clusters: r.flag()?,
        source_control: r.flag()?,
        tags: r.flag()?,
        markers: r.flag()?,
        quarantine: r.flag()?,
        notifications: r.flag()?,
        retention: r.flag()?,
        diagnosis: r.flag()?,
    })
}

pub(crate) async fn secret(db: &Db, key: &str) -> Result<[u8; 32]> {
    if let Some(secret) = stored(db, key).await? {
        return Ok(secret);
    }
    let mut fresh = [0_u8; 32];
    getrandom::fill(&mut fresh)
        .map_err(|_| StoreError::Configuration("the system gives no random bytes".to_owned()))?;
    let now = chrono::Utc::now().timestamp_millis();
    let mut session = db.begin().await?;
    session.execute(&CLAIM_VALUE, args![key, hex::encode(fresh), now]).await?;
    session.commit().await?;
    // Another process may have been first: what is stored counts.
    stored(db, key).await?.ok_or(StoreError::Damaged("an instance secret vanished"))
}

async fn stored(db: &Db, key: &str) -> Result<Option<[u8; 32]>> {
    let Some(row) = db.read().await?.first(&VALUE_OF, args![key]).await? else {
        return Ok(None);
    };
    let bytes = hex::decode(row.reader().text()?).unwrap_or_default();
    bytes.try_into().map(Some).map_err(|_| StoreError::Damaged("an instance secret is not 32 bytes"))
}
