//! The endpoint from the outside, over a fresh SQLite database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod annotations;
mod clusters;
mod faults;
mod paging;
mod scores;
mod stateless;
mod structured;
mod support;
mod tools;
mod transport;
