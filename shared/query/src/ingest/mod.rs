//! Commands that bring results in: a run that comes whole, one that is fed
//! while it goes on, the files of its tests, its reports.
//!
//! A run is changed in one place only, `locked`: whatever moves it on also
//! writes its counters, its feed and the jobs that follow.
//!
//! Objects first, rows second: files and large evidence are in the object store
//! before the transaction that refers to them begins, so nothing half-written
//! is ever visible and nothing acknowledged is ever lost. Small evidence goes
//! with the rows and is joined into objects after the end of its run.

mod again;
mod announce;
mod bearer;
mod cancel;
mod case_files;
mod causes;
mod changing;
mod choosing;
mod chunk;
mod clusters;
mod comparing;
mod completion;
mod counting;
mod describing;
mod drafting;
mod entries;
mod feeding;
mod files;
mod following;
mod intake;
mod joining;
mod judging;
mod keys;
mod locators;
mod locked;
mod merging;
mod moving;
mod opening;
mod outcome;
mod packing;
mod ready;
mod redecide;
mod reevaluation;
mod removing;
mod report;
mod restarting;
mod restoring;
mod rollup;
mod submission;
mod sweep;
mod tickets;
mod trace_browser;
mod trace_pool;
mod turns;
mod waiting;
mod writer;

pub(crate) use again::queue_project;
pub use again::{CompareProject, compare_project};
pub(crate) use announce::{MAX_ERROR_CHARS, progress_of};
pub(crate) use bearer::holds_token;
pub use cancel::cancel;
pub use case_files::{CaseFiles, CaseFilesTaken, case_files, is_sending, may_feed, stored_traces};
pub use causes::classify;
pub use completion::{Checked, Completion, Recompute, check_run};
pub(crate) use counting::{Pace, count_until, counted, counted_in};
pub use entries::Entries;
pub use feeding::{EventsTaken, events, finish, heartbeat, stored_events};
pub use files::{FileKindHint, IncomingFile, kind_of, recognise};
pub use following::{CompareBehind, compare_behind};
pub(crate) use following::{Followed, queue_behind};
pub(crate) use intake::fold;
pub use intake::settle;
pub use joining::{JoinEvidence, join_evidence, queue_joining};
pub use judging::judge_run;
pub(crate) use merging::stored_attempts;
pub(crate) use moving::by_lane;
pub(crate) use moving::move_run;
pub use moving::{MoveExecutions, move_executions};
pub use reevaluation::{ReevaluateOutcomes, reevaluate_outcomes};
pub(crate) use removing::{hide_runs, uncount, uncount_endpoints};
pub use report::later::{UnpackReport, unpack_report};
pub use report::{Archive, AtOnce, IncomingReport, ReportOutcome, attach_report};
pub(crate) use restoring::restore_run;
pub use submission::{
    NamedTrace, Submission, Submitted, known_project, open_project, run_to_attach_to, submit,
};
pub use sweep::{Swept, sweep_stale_runs};
pub use tickets::{Ticket, begin, setup, start};
pub use trace_pool::{PoolTraces, pool_traces, queue_trace_pool};
pub use turns::Turns;
pub use waiting::{files_are_coming, files_have_come, sender_of_files};
