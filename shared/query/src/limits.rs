//! Admission of limited calls. The classes and their numbers are in
//! [`callboard_auth::limits`], the counters in the database; what is added
//! here is the order in which they are asked and what a refusal says.

use callboard_auth::client_address::ClientAddress;
use callboard_auth::limits::{CounterName, CounterNames, Guesses, IN_FLIGHT_MS, Steady, Window};
use callboard_auth::limits::{LOGIN_ACCOUNT, LOGIN_ADDRESS, LOGIN_DEVICE};
use callboard_domain::time::Timestamp;
use callboard_store::rate_limits::{self, Ending, FailureWindow};
use callboard_store::{Session, Store, StoreError, boxed};

/// Why a call is not admitted.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// There were too many; come back later.
    #[error("Too many attempts. Try again in {retry_after_seconds} seconds.")]
    Limited {
        /// Whole seconds to wait, at least one.
        retry_after_seconds: i64,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LimitError {
    fn after(milliseconds: i64) -> Self {
        Self::Limited { retry_after_seconds: (milliseconds.max(1) + 999) / 1000 }
    }
}

/// Counts limited calls.
#[derive(Debug, Clone)]
pub struct Limits {
    store: Store,
    /// Without names nothing is counted.
    names: Option<CounterNames>,
}

/// A sign-in as the limits see it.
#[derive(Debug, Clone, Copy)]
pub struct LoginAttempt<'a> {
    /// Where it comes from.
    pub address: ClientAddress,
    /// The key of the name that was given, whether it exists or not.
    pub account: &'a str,
    /// The browser, when the account has signed in from it before. Its
    /// guesses count apart from those of strangers.
    pub device: Option<&'a [u8]>,
}

impl Limits {
    /// Counts under these names.
    #[must_use]
    pub const fn new(store: Store, names: CounterNames) -> Self {
        Self { store, names: Some(names) }
    }

    /// Admits everything (`SERVICE_RATE_LIMITS=off`).
    #[must_use]
    pub const fn off(store: Store) -> Self {
        Self { store, names: None }
    }

    /// Counts a call of a class.
    ///
    /// # Errors
    /// [`LimitError::Limited`] when it is one too many.
    #[boxed]
    pub async fn check(&self, class: Window, subject: &[u8], now: Timestamp) -> Result<(), LimitError> {
        let Some(names) = &self.names else { return Ok(()) };
        let mut session = self.store.db().begin().await?;
        let name = names.window(class, subject);
        let counter = rate_limits::count_call(&mut session, name, class.window_ms, now).await?;
        session.commit().await?;
        if counter.n <= class.calls {
            return Ok(());
        }
        Err(LimitError::after(counter.window_end.millis() - now.millis()))
    }

    /// Admits a call at a steady rate.
    ///
    /// # Errors
    /// [`LimitError::Limited`] when it comes too early.
    #[boxed]
    pub async fn check_steady(
        &self,
        class: Steady,
        subject: &[u8],
        now: Timestamp,
    ) -> Result<(), LimitError> {
        self.check_steady_calls(class, subject, 1, now).await
    }

    /// Admits so many calls at the same time, at most the burst of their class, at a
    /// steady rate; all of them or none.
    ///
    /// # Errors
    /// [`LimitError::Limited`] when they come too early.
    #[boxed]
    pub async fn check_steady_calls(
        &self,
        class: Steady,
        subject: &[u8],
        calls: i64,
        now: Timestamp,
    ) -> Result<(), LimitError> {
        let Some(names) = &self.names else { return Ok(()) };
        let name = names.steady(class, subject);
        let mut session = self.store.db().begin().await?;
        let (interval, burst) = (class.interval_ms, class.burst);
        if rate_limits::admit_steady(&mut session, name, (interval, burst), calls, now).await? {
            session.commit().await?;
            return Ok(());
        }
        let busy_until = rate_limits::read(&mut session, name).await?.map_or(now, |found| found.window_end);
        Err(LimitError::after(busy_until.millis() - interval * (burst - calls) - now.millis()))
    }

    /// Admits a sign-in before anything is hashed for it.
    ///
    /// # Errors
    /// [`LimitError::Limited`] when the address or the account has failed too
    /// often, the right password included.
    pub async fn admit_login(&self, login: LoginAttempt<'_>, now: Timestamp) -> Result<Ticket, LimitError> {
        let address = login.address.subject();
        match login.device {
            None => {
                let account = (LOGIN_ACCOUNT, login.account.as_bytes());
                self.admit(&[(LOGIN_ADDRESS, &address), account], now).await
            }
            Some(device) => {
                let subject = [device, login.account.as_bytes()].concat();
                self.admit(&[(LOGIN_ADDRESS, &address), (LOGIN_DEVICE, &subject)], now).await
            }
        }
    }

    /// Admits a guess: all of its counters let it pass, or none counts it.
    /// Counters come in the same order from every caller, so that two
    /// admissions never wait for each other.
    ///
    /// # Errors
    /// [`LimitError::Limited`] with the longest wait of the counters.
    #[boxed]
    pub async fn admit(&self, counters: &[(Guesses, &[u8])], now: Timestamp) -> Result<Ticket, LimitError> {
        let names = self.names.iter().flat_map(|names| {
            counters.iter().map(|(class, subject)| (*class, names.guesses(*class, subject)))
        });
        let counters: Vec<(Guesses, CounterName)> = names.collect();
        let mut session = self.store.db().begin().await?;
        for (class, name) in &counters {
            if !rate_limits::admit_try(&mut session, *name, window(class), now).await? {
                return Err(LimitError::after(longest_wait(&mut session, &counters, now).await?));
            }
        }
        session.commit().await?;
        Ok(Ticket { store: self.store.clone(), counters, admitted_at: now })
    }
}

const fn window(class: &Guesses) -> FailureWindow {
    FailureWindow {
        failures: class.failures,
        in_flight: class.in_flight,
        window_ms: class.window_ms,
        in_flight_ms: IN_FLIGHT_MS,
    }
}

/// Too many tries under way pass within a moment; too many failures when
/// their window is over.
async fn longest_wait(
    session: &mut Session,
    counters: &[(Guesses, CounterName)],
    now: Timestamp,
) -> Result<i64, StoreError> {
    let mut longest = 0;
    for (class, name) in counters {
        if let Some(counter) = rate_limits::read(session, *name).await?
            && counter.n >= class.failures
        {
            longest = longest.max(counter.window_end.millis() - now.millis());
        }
    }
    Ok(longest)
}

/// An admitted guess. It counts as under way until its end is told; dropped
/// without that (the client hung up) it counts as a failure.
#[derive(Debug)]
#[must_use = "tell how it ended"]
pub struct Ticket {
    store: Store,
    counters: Vec<(Guesses, CounterName)>,
    admitted_at: Timestamp,
}

impl Ticket {
    /// The guess was wrong.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn failed(mut self, now: Timestamp) -> Result<(), StoreError> {
        let counters = std::mem::take(&mut self.counters);
        settle(&self.store, &counters, now, End::Failure).await
    }

    /// The guess was right.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn succeeded(mut self, now: Timestamp) -> Result<(), StoreError> {
        let counters = std::mem::take(&mut self.counters);
        settle(&self.store, &counters, now, End::Success).await
    }

    /// The guess was not looked at.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    #[boxed]
    pub async fn released(mut self, now: Timestamp) -> Result<(), StoreError> {
        let counters = std::mem::take(&mut self.counters);
        settle(&self.store, &counters, now, End::Release).await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let counters = std::mem::take(&mut self.counters);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if counters.is_empty() {
            return;
        }
        let (store, now) = (self.store.clone(), self.admitted_at);
        runtime.spawn(async move {
            if let Err(error) = settle(&store, &counters, now, End::Failure).await {
                tracing::warn!(%error, "an abandoned sign-in could not be counted");
            }
        });
    }
}

/// How a guess ended.
#[derive(Clone, Copy)]
enum End {
    Failure,
    Success,
    Release,
}

async fn settle(
    store: &Store,
    counters: &[(Guesses, CounterName)],
    now: Timestamp,
    end: End,
) -> Result<(), StoreError> {
    if counters.is_empty() {
        return Ok(());
    }
    let mut session = store.db().begin().await?;
    for (class, name) in counters {
        let ending = match end {
            End::Failure => Ending::Failed,
            End::Success if class.success_clears => Ending::Cleared,
            End::Success | End::Release => Ending::Passed,
        };
        rate_limits::settle_try(&mut session, *name, ending, class.window_ms, now).await?;
    }
    session.commit().await
}
