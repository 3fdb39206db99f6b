//! Of processes that run on one database at the same time, the stricter
//! authentication mode wins.
//!
//! A process that requires sign-in checks in at its start and regularly; one
//! that does not answers 503 to everything but health while such a check-in is
//! recent. What the database said is cached for some seconds, so that requests
//! cost no statement of their own; nothing is answered before it was asked once.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use callboard_domain::time::Timestamp;
use callboard_query::QueryError;
use callboard_query::accounts::auth_mode::{self, CHECK_IN_LIFETIME_MS};
use callboard_store::boxed;
use tokio::sync::Mutex;

use crate::error::ApiError;
use crate::request_id;
use crate::state::AppState;

/// How often a service with a timer refreshes what it knows, milliseconds.
pub const REFRESH_EVERY_MS: u64 = 1000;
/// A request refreshes an answer that is older, milliseconds. A process without
/// sign-in answers for so long at most after one that requires it has checked in.
const STALE_AFTER_MS: i64 = 2 * 1000;
/// How often a process that requires sign-in checks in, milliseconds.
const CHECK_IN_EVERY_MS: i64 = 20 * 1000;
/// A request checks in when that is longer ago, because no timer did, milliseconds.
const CHECK_IN_MISSED_MS: i64 = 30 * 1000;
/// No refresh was done yet.
const NEVER: i64 = i64::MIN;

/// What this process knows of the others on its database.
#[derive(Debug)]
pub(crate) struct AuthMode {
    process: String,
    refreshed_at: AtomicI64,
    is_closed: AtomicBool,
    has_accounts: AtomicBool,
    /// One refresh at a time; requests that need it wait for it.
    refreshing: Mutex<()>,
}

impl Default for AuthMode {
    fn default() -> Self {
        Self {
            process: request_id::fresh(),
            refreshed_at: AtomicI64::new(NEVER),
            is_closed: AtomicBool::new(false),
            has_accounts: AtomicBool::new(false),
            refreshing: Mutex::const_new(()),
        }
    }
}

impl AuthMode {
    fn age_ms(&self, now: Timestamp) -> Option<i64> {
        let at = self.refreshed_at.load(Ordering::Acquire);
        // A clock that was set back makes the answer as old as it can be.
        (at != NEVER && at <= now.millis()).then(|| now.millis() - at)
    }

    fn is_fresh(&self, now: Timestamp, for_ms: i64) -> bool {
        self.age_ms(now).is_some_and(|age| age < for_ms)
    }
}

impl AppState {
    /// Checks in or, without sign-in, asks whether another process requires it.
    /// Done at the start, by the timer, and by requests when both are long ago.
    ///
    /// # Errors
    /// [`QueryError::Store`] when the database does not answer.
    #[boxed]
    pub async fn refresh_auth_mode(&self) -> Result<(), QueryError> {
        let every_ms = if self.auth_enabled() { CHECK_IN_EVERY_MS } else { 0 };
        self.refresh_older_than(every_ms).await
    }

    async fn refresh_older_than(&self, age_ms: i64) -> Result<(), QueryError> {
        let _one = self.auth_mode().refreshing.lock().await;
        self.refresh_alone(age_ms).await
    }

    /// Refreshes while the caller holds the lock.
    async fn refresh_alone(&self, age_ms: i64) -> Result<(), QueryError> {
        let (known, now) = (self.auth_mode(), self.now());
        if known.is_fresh(now, age_ms) {
            return Ok(());
        }
        if self.auth_enabled() {
            auth_mode::check_in(self.store(), &known.process, now).await?;
        } else {
            self.look_for_sign_in(now).await?;
        }
        known.refreshed_at.store(now.millis(), Ordering::Release);
        Ok(())
    }

    async fn look_for_sign_in(&self, now: Timestamp) -> Result<(), QueryError> {
        let known = self.auth_mode();
        let found = auth_mode::sign_in_state(self.store(), now).await?;
        let was_closed = known.is_closed.load(Ordering::Acquire);
        if found.is_required_elsewhere && !was_closed {
            known.is_closed.store(true, Ordering::Release);
            tracing::error!(
                "another process on this database requires sign-in and this one does not: it answers 503 until the \
                 other has stopped; set SERVICE_AUTH_ENABLED=true here"
            );
            auth_mode::close(self.store(), now).await?;
        } else if !found.is_required_elsewhere && was_closed {
            auth_mode::reopen(self.store(), now).await?;
            known.is_closed.store(false, Ordering::Release);
            tracing::warn!(
                "no other process requires sign-in any more: this one is open to everyone who reaches it"
            );
        }
        if found.has_accounts && !known.has_accounts.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                "sign-in is switched off although there are accounts: everyone who reaches this service can do \
                 everything"
            );
        } else if !found.has_accounts {
            known.has_accounts.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Refuses a request while another process requires sign-in and this one
    /// does not.
    ///
    /// # Errors
    /// 503 `auth_mode_differs`; 503 when it is not known and the database does
    /// not answer.
    pub(crate) async fn check_auth_mode(&self) -> Result<(), ApiError> {
        let known = self.auth_mode();
        let for_ms = if self.auth_enabled() { CHECK_IN_MISSED_MS } else { STALE_AFTER_MS };
        if !known.is_fresh(self.now(), for_ms) {
            self.refresh_for_request(for_ms).await?;
        }
        if known.is_closed.load(Ordering::Acquire) { Err(ApiError::auth_mode_differs()) } else { Ok(()) }
    }

    #[boxed]
    async fn refresh_for_request(&self, age_ms: i64) -> Result<(), ApiError> {
        let known = self.auth_mode();
        // An answer of the last minute holds; a process that requires sign-in is safe whatever others know of it.
        let can_go_on = self.auth_enabled() || known.is_fresh(self.now(), CHECK_IN_LIFETIME_MS);
        if !can_go_on {
            let Err(error) = self.refresh_older_than(age_ms).await else { return Ok(()) };
            // Before the first migration nobody can have checked in; writes wait for it anyway.
            return if self.schema_is_current().await? { Err(error.into()) } else { Ok(()) };
        }
        let Ok(_one) = known.refreshing.try_lock() else { return Ok(()) };
        if let Err(error) = self.refresh_alone(age_ms).await {
            tracing::warn!(%error, "the authentication mode of other processes was not compared");
        }
        Ok(())
    }

    /// Whether this process is closed because another one requires sign-in.
    ///
    /// # Errors
    /// [`QueryError::Store`] when the database does not answer.
    pub async fn auth_mode_differs(&self) -> Result<bool, QueryError> {
        if !self.auth_mode().is_fresh(self.now(), STALE_AFTER_MS) {
            self.refresh_auth_mode().await?;
        }
        Ok(self.auth_mode().is_closed.load(Ordering::Acquire))
    }

    /// Whether everyone can do everything although there are accounts.
    #[must_use]
    pub fn is_open_despite_accounts(&self) -> bool {
        !self.auth_enabled() && self.auth_mode().has_accounts.load(Ordering::Acquire)
    }

    /// Checks out: this process stops, and another one may be open from now on.
    #[boxed]
    pub async fn leave(&self) {
        if !self.auth_enabled() {
            return;
        }
        if let Err(error) = auth_mode::check_out(self.store(), &self.auth_mode().process).await {
            tracing::warn!(%error, "a service without sign-in stays closed for up to a minute");
        }
    }
}
