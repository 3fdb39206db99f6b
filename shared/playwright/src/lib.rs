//! What is Playwright's: its traces, the locators it finds elements by, its
//! accessibility snapshots, the archives of its reports, and functions of a
//! suite that are written from recorded steps.
//!
//! Lives here: values and functions on values, like in `callboard-domain`,
//! which it builds on and which knows nothing of it. The grammar of locators
//! is in `callboard_domain::locator`: fingerprints of failures are made with it.
//! Must not live here: SQL, files, sockets, clocks.

pub mod healing;
pub mod report_archive;
pub mod test_functions;
pub mod trace;
