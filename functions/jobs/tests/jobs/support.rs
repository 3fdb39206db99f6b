//! A service whose time the test decides, without a timer of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use callboard_domain::time::Timestamp;
use callboard_http::{AppState, Clock};
use callboard_platform::Config;
use callboard_store::Store;
use callboard_test_support::TestDatabase;

/// 2026-01-01T10:00:00Z.
pub(crate) const START: i64 = 1_767_261_600_000;
/// Signs ticks.
pub(crate) const SECRET: &str = "f1d2d2f924e986ac86fdf7b36c94bcdf32beec15";

/// A clock that only the test moves.
#[derive(Debug, Clone)]
pub(crate) struct Time(Arc<AtomicI64>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let time = self.clone();
        Clock::from_fn(move || time.now())
    }
}

/// Another process over the same database.
pub(crate) async fn store(database: &TestDatabase) -> Store {
    database.store().await.expect("a store")
}

/// What handlers work with, at the time of the test.
pub(crate) async fn state(database: &TestDatabase, time: &Time, settings: &[(&str, &str)]) -> AppState {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let config = Config::from_env(settings).expect("settings");
    AppState::new(config, store(database).await).with_clock(time.clock())
}
