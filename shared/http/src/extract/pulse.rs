//! A long upload is a sign of life of whoever sends it, noted every so often.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often it is noted.
const EVERY: Duration = Duration::from_secs(5);

/// When a sign of life was last noted.
#[derive(Debug)]
pub struct Pulse(Mutex<Option<Instant>>);

impl Pulse {
    /// One that is due for the first time when an upload has gone on for a
    /// while.
    #[must_use]
    pub fn due_later() -> Self {
        Self(Mutex::new(Some(Instant::now())))
    }

    /// One that is due with the first bytes.
    #[must_use]
    pub const fn due_at_once() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether it is due; whoever hears so gives it.
    pub fn is_due(&self) -> bool {
        let Ok(mut given) = self.0.lock() else { return false };
        let is_due = given.is_none_or(|given| given.elapsed() >= EVERY);
        if is_due {
            *given = Some(Instant::now());
        }
        is_due
    }
}
