//! What a handler is given and what it answers.

use std::time::{Duration, Instant};

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_http::AppState;
use callboard_store::Store;
use callboard_store::jobs::lease::MAX_ATTEMPTS;
use tokio_util::sync::CancellationToken;

/// How long work may be begun: until a moment, or until a stop is asked for.
#[derive(Debug, Clone)]
pub struct Budget {
    until: Instant,
    stop: CancellationToken,
}

impl Budget {
    /// This long from now.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self { until: Instant::now() + duration, stop: CancellationToken::new() }
    }

    /// The same, or less when `stop` is cancelled before.
    #[must_use]
    pub fn stopped_by(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Whether a stop was asked for.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Whether there is time to begin something.
    #[must_use]
    pub fn is_left(&self) -> bool {
        !self.stop.is_cancelled() && Instant::now() < self.until
    }
}

/// What a handler works with.
#[derive(Debug, Clone)]
pub struct JobContext {
    pub(crate) state: AppState,
    pub(crate) key: String,
    pub(crate) project: Option<ProjectId>,
    pub(crate) attempt: i64,
    pub(crate) budget: Budget,
}

impl JobContext {
    /// What handlers of requests work with.
    #[must_use]
    pub const fn state(&self) -> &AppState {
        &self.state
    }

    /// Rows and objects.
    #[must_use]
    pub const fn store(&self) -> &Store {
        self.state.store()
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// The unique name of the job.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The project the job belongs to.
    #[must_use]
    pub const fn project(&self) -> Option<ProjectId> {
        self.project
    }

    /// Which attempt this is, from 1; it starts anew when the job got further.
    #[must_use]
    pub const fn attempt(&self) -> i64 {
        self.attempt
    }

    /// Whether the queue gives the job up when this attempt fails.
    #[must_use]
    pub const fn is_last_attempt(&self) -> bool {
        self.attempt >= MAX_ATTEMPTS
    }

    /// Whether to begin another batch. Without time, answer
    /// [`Outcome::GoOn`].
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.budget.is_left()
    }

    /// Whether the process is to stop: long waits end, and another process goes on.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.budget.is_stopped()
    }

    /// Does a job in steps, each of which answers what is left of it. What there is
    /// no time for is done later.
    pub(crate) async fn in_steps<P, F, E>(
        &self,
        mut job: P,
        step: impl Fn(P) -> F,
    ) -> Result<Outcome<P>, JobError>
    where
        F: Future<Output = Result<Option<P>, E>>,
        JobError: From<E>,
    {
        while self.has_time() {
            match step(job).await? {
                Some(rest) => job = rest,
                None => return Ok(Outcome::Done),
            }
        }
        Ok(Outcome::GoOn(job))
    }
}

/// How a job ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<P> {
    /// Nothing is left to do.
    Done,
    /// It got further; the rest is done later, with this payload.
    GoOn(P),
}

/// Why an attempt failed. Made from any error with `?`.
#[derive(Debug)]
pub struct JobError {
    message: String,
    is_final: bool,
}

impl JobError {
    /// A failure that another attempt cannot mend: the job is parked.
    #[must_use]
    pub fn final_(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_final: true }
    }

    /// A failure that is over at some later attempt.
    #[must_use]
    pub fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_final: false }
    }

    /// What happened. It is stored and logged, so it holds no secret.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether another attempt cannot mend it.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        self.is_final
    }
}

impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::passing(error.to_string())
    }
}
