//! The endpoint from the outside, over a fresh SQLite database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod paging;
mod support;
mod tools;
mod transport;
