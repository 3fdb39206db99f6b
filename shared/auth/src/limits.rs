//! What is limited, and how much: the classes of calls with their numbers.
//! Counting happens in the database, under names that are made here and that
//! nobody can turn back into an address or an account.

use crate::client_address::ClientAddress;
use crate::keys::MacKey;

const MINUTE_MS: i64 = 60 * 1000;
const QUARTER_MS: i64 = 15 * MINUTE_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// A window in which every call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    name: &'static str,
    /// Most calls.
    pub calls: i64,
    /// Length of the window, milliseconds. It begins with its first call.
    pub window_ms: i64,
}

/// First administrator, by address.
pub const SETUP: Window = Window { name: "setup", calls: 5, window_ms: QUARTER_MS };
/// Asking for a new password, by address.
pub const FORGOT: Window = Window { name: "forgot", calls: 5, window_ms: QUARTER_MS };
/// Mails with a link for a new password, by e-mail address.
pub const FORGOT_MAIL: Window = Window { name: "forgot-mail", calls: 3, window_ms: HOUR_MS };
/// Setting a new password with a link, by address.
pub const RESET: Window = Window { name: "reset", calls: 10, window_ms: QUARTER_MS };
/// Mails that prove an address, by user.
pub const VERIFY_MAIL: Window = Window { name: "verify-mail", calls: 5, window_ms: QUARTER_MS };
/// Invitations, by user.
pub const INVITE: Window = Window { name: "invite", calls: 20, window_ms: HOUR_MS };
/// Starts of a sign-in elsewhere, by address.
pub const OAUTH_START: Window = Window { name: "oauth-start", calls: 30, window_ms: QUARTER_MS };
/// API keys that opened nothing, by address. Valid keys are never counted.
pub const KEY_FAILURE: Window = Window { name: "key-fail", calls: 60, window_ms: QUARTER_MS };
/// Exports, by user.
pub const EXPORT: Window = Window { name: "export", calls: 30, window_ms: MINUTE_MS };
/// Tests of a connection to another host, by caller.
pub const CONNECTION_TEST: Window = Window { name: "connection-test", calls: 10, window_ms: MINUTE_MS };
/// Searches for culprits of red streaks, by caller.
pub const CULPRIT: Window = Window { name: "culprit", calls: 30, window_ms: MINUTE_MS };
/// Diagnoses by a model, by caller.
pub const DIAGNOSE: Window = Window { name: "diagnose", calls: 30, window_ms: HOUR_MS };

/// Badges with a token, by address.
pub const BADGE: Window = Window { name: "badge", calls: 120, window_ms: MINUTE_MS };

/// A window in which failures count. So many tries may be under way at the same time
/// that many right ones pass together; together with the failures they bound
/// the guesses of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    name: &'static str,
    /// Most failures.
    pub failures: i64,
    /// Most tries under way.
    pub in_flight: i64,
    /// Length of the window, milliseconds. It begins with its first try.
    pub window_ms: i64,
    /// Whether a success forgets the failures before it.
    pub success_clears: bool,
}

/// Sign-ins from one address.
pub const LOGIN_ADDRESS: Guesses = Guesses {
    name: "login-address",
    failures: 20,
    in_flight: 256,
    window_ms: QUARTER_MS,
    success_clears: false,
};
/// Sign-ins to one account, existing or not.
pub const LOGIN_ACCOUNT: Guesses = Guesses {
    name: "login-account",
    failures: 5,
    in_flight: 64,
    window_ms: QUARTER_MS,
    success_clears: true,
};
/// Sign-ins to one account from a browser it has signed in from.
pub const LOGIN_DEVICE: Guesses = Guesses { name: "login-device", ..LOGIN_ACCOUNT };
/// Entries of the audit log about refused sign-ins, by address and account:
/// refusals cost nothing, so they must not fill it.
pub const NOTED_REFUSAL: Window = Window { name: "noted-refusal", calls: 1, window_ms: QUARTER_MS };
/// Entries of the audit log about refused sign-ins at a provider, by address:
/// anybody can come back from one without having been there.
pub const NOTED_OAUTH: Window = Window { name: "noted-oauth", calls: 20, window_ms: QUARTER_MS };
/// Entries of the audit log about refused access, by caller, route, reason and target.
pub const NOTED_ACCESS: Window = Window { name: "noted-access", calls: 1, window_ms: HOUR_MS };
/// The same, by caller alone: whoever tries everything fills nothing.
pub const NOTED_ACCESS_OF_CALLER: Window =
    Window { name: "noted-access-caller", calls: 200, window_ms: HOUR_MS };
/// Entries that say that further refusals of a caller are not listed, by caller.
pub const NOTED_ACCESS_LIMIT: Window = Window { name: "noted-access-limit", calls: 1, window_ms: HOUR_MS };
/// Entries of the audit log about changes that could not be made, by caller.
pub const NOTED_CHANGE: Window = Window { name: "noted-change", calls: 200, window_ms: HOUR_MS };
/// Changes of a password, by user.
pub const CHANGE_PASSWORD: Guesses = Guesses { name: "change-password", ..LOGIN_ACCOUNT };

/// How long a try counts as under way when its end is never told,
/// milliseconds: longer than one waits for its turn to be looked at.
pub const IN_FLIGHT_MS: i64 = 75 * 1000;

/// A steady rate with a burst (generic cell rate algorithm, ITU-T I.371).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steady {
    name: &'static str,
    /// Time between two calls at the steady rate, milliseconds.
    pub interval_ms: i64,
    /// Most calls at the same time.
    pub burst: i64,
}

/// Calls of the MCP endpoint, by caller: 600 a minute.
pub const MCP: Steady = Steady { name: "mcp", interval_ms: MINUTE_MS / 600, burst: 100 };

/// Calls that send results, by caller: as many a minute as configured.
#[must_use]
pub const fn ingest(calls_per_minute: u32) -> Steady {
    let calls = if calls_per_minute == 0 { 1 } else { calls_per_minute as i64 };
    let interval_ms = if MINUTE_MS / calls == 0 { 1 } else { MINUTE_MS / calls };
    Steady { name: "ingest", interval_ms, burst: calls }
}

/// The name of a counter in the database.
pub type CounterName = [u8; 32];

/// Makes the names of counters.
#[derive(Debug, Clone)]
pub struct CounterNames(MacKey);

impl CounterNames {
    /// With the key of the rate limits.
    #[must_use]
    pub const fn new(key: MacKey) -> Self {
        Self(key)
    }

    /// A counter of calls of a subject.
    #[must_use]
    pub fn window(&self, class: Window, subject: &[u8]) -> CounterName {
        self.0.mac(&[class.name.as_bytes(), subject])
    }

    /// A counter of failures of a subject.
    #[must_use]
    pub fn guesses(&self, class: Guesses, subject: &[u8]) -> CounterName {
        self.0.mac(&[class.name.as_bytes(), subject])
    }

    /// A steady rate of a subject.
    #[must_use]
    pub fn steady(&self, class: Steady, subject: &[u8]) -> CounterName {
        self.0.mac(&[class.name.as_bytes(), subject])
    }

    /// What is kept of an address where it was seen: enough to tell two
    /// apart, nothing to call back.
    #[must_use]
    pub fn address(&self, address: &ClientAddress) -> CounterName {
        self.0.mac(&[b"address", &address.subject()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Purpose, Secrets};

    #[test]
    fn classes_and_subjects_count_apart() {
        let secrets = Secrets::new(&[b"a secret of thirty-two bytes!!!!"]);
        let names = CounterNames::new(MacKey::derive(&secrets, Purpose::RATE).unwrap());
        let ada = names.guesses(LOGIN_ACCOUNT, b"ada");
        assert_eq!(ada, names.guesses(LOGIN_ACCOUNT, b"ada"));
        assert_ne!(ada, names.guesses(LOGIN_ACCOUNT, b"bob"));
        assert_ne!(ada, names.guesses(LOGIN_DEVICE, b"ada"));
        assert_ne!(names.window(SETUP, b"x"), names.window(RESET, b"x"));
    }
}
