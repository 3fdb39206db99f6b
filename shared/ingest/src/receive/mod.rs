//! Everything clients send: whole runs, streamed results, files and reports.

pub(crate) mod attachment_matching;
pub(crate) mod batch_writer;
pub(crate) mod cancel;
pub(crate) mod case_files;
pub(crate) mod entries;
pub(crate) mod files;
pub(crate) mod pending_files;
pub(crate) mod report;
pub(crate) mod run_start;
pub(crate) mod streaming;
pub(crate) mod submission;
pub(crate) mod trace_browser;
pub(crate) mod uploads;
pub(crate) mod write_coalescer;
