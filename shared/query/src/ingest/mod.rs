//! Commands that bring results in: a submission of a whole run, the files of
//! its tests, its reports.
//!
//! Objects first, rows second: files and evidence are in the object store
//! before the transaction that refers to them begins, so nothing half-written
//! is ever visible and nothing acknowledged is ever lost.

mod chunk;
mod files;
mod key;
mod outcome;
mod report;
mod rollup;
mod submission;
mod writer;

pub(crate) use chunk::stored_attempts;
pub use files::{FileKindHint, IncomingFile, kind_of, recognise};
pub use report::{Archive, IncomingReport, ReportOutcome, attach_report};
pub use submission::{Submission, Submitted, known_project, open_project, run_to_attach_to, submit};
