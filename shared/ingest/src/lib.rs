//! Ingest: everything from the body of a request to stored results.
//!
//! The folders follow the data. `receive` takes what clients send and `stage`s it
//! in the inbox; `resolve` finds its run; `apply` makes executions of it;
//! `aggregate` counts them; `recompare` compares them with what came before;
//! `complete` follows the end of a run, `revert` takes a run out again, and
//! `identity` joins what two paths told of one test. A
//! run is changed in one place only, `transaction`, at the bottom: whatever moves
//! it on also writes its counters, its feed and the jobs that follow.
//!
//! Objects first, rows second: files and large evidence are in the object store
//! before the transaction that refers to them begins, so nothing half-written
//! is ever visible and nothing acknowledged is ever lost. Small evidence goes
//! with the rows and is joined into objects after the end of its run.

mod aggregate;
mod apply;
mod complete;
mod context;
mod identity;
mod receive;
mod recompare;
mod resolve;
mod revert;
mod stage;
mod transaction;

pub use aggregate::aggregation::{
    Priority, count_until, read_session_with_fresh_aggregates, read_session_with_fresh_aggregates_in,
};
pub use aggregate::environment_change::{MoveExecutions, by_lane, move_executions, move_run};
pub use aggregate::mass_failure::remember_mass_failure;
pub use apply::attempt_merge::stored_attempts;
pub use apply::pending::{apply_all_pending, apply_pending_for_run};
pub(crate) use callboard_core::{Entity, LifeRefusal, QueryError, Result, TokenRefusal};
pub use complete::cluster_verification::series_since;
pub use complete::completion::{Checked, check_run};
pub use complete::evidence_joining::{JoinEvidence, join_evidence, queue_joining};
pub use complete::expiry;
pub use complete::reevaluation::{ReevaluateOutcomes, reevaluate_outcomes};
pub use complete::sweep::{Swept, sweep_stale_runs};
pub use complete::trace_pool::{PoolTraces, pool_traces, queue_trace_pool};
pub use context::Context;
pub use identity::checking::check_paths;
pub use identity::decisions::{accept_join, dismiss_join, undo_join};
pub use identity::finding::find_histories;
pub use identity::joining::join_histories;
pub use receive::cancel::cancel;
pub use receive::case_files::{CaseFiles, CaseFilesTaken, case_files, is_sending, may_feed, stored_traces};
pub use receive::entries::Entries;
pub use receive::files::{FileKindHint, IncomingFile, kind_of, recognise};
pub use receive::pending_files::{files_are_coming, files_have_come, sender_of_files};
pub use receive::report::report_job::{UnpackReport, unpack_report};
pub use receive::report::{Archive, AtOnce, IncomingReport, ReportOutcome, attach_report};
pub use receive::run_start::{Ticket, begin, setup, start};
pub use receive::streaming::{EventsTaken, events, finish, heartbeat, stored_events};
pub use receive::submission::{NamedTrace, Submission, Submitted, known_project, open_project, submit};
pub use receive::uploads::commit::{
    CommitItem, CommitStatus, Committed, CommittedItem, UploadLink, UploadsComplete, commit_uploads,
};
pub use receive::uploads::plan::{IssuedTicket, PlannedFile, PlannedUpload, UploadRules, plan_uploads};
pub use receive::uploads::receiving::{is_uploading, open_upload_ticket, receive_upload};
pub use receive::uploads::verification::{VerifyUpload, verify_upload};
pub use receive::uploads::{UploadTarget, upload_target_of_client};
pub use recompare::following_runs::{CompareBehind, Followed, compare_behind, queue_behind};
pub use recompare::whole_runs::{CompareProject, compare_project, queue_project};
pub use revert::restoring::restore_run;
pub use revert::rollup_reversal::{hide_runs, uncount, uncount_endpoints};
pub use stage::run_token::holds_token;
pub use stage::write_queue::WriteCoalescer;
pub use transaction::follow_up::{Completion, FindHistories, JoinHistories, Recompute};
pub use transaction::outcome::outcome_of;
pub use transaction::run_events::{MAX_ERROR_CHARS, progress_of};
pub use transaction::search_words::run_words;
pub use transaction::{baseline, run_errors};
