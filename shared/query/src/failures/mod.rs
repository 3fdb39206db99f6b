//! What explains one failure: its trace, what changed since the test passed,
//! and a locator that works instead of one that does not.
//!
//! Everything is read from what is stored, for one execution at a time; no
//! answer is kept, and nothing outside of this installation is asked.

mod clues;
mod environment;
mod evidence_lines;
mod explain;
mod failed_requests;
mod fix_plan;
mod healing;
mod pick;
mod record;
mod screenshots;
mod streak;
mod subject;
mod trace;

pub(crate) use clues::clues;
pub(crate) use environment::passed_before;
pub use environment::{EnvironmentDiff, PassedBefore, environment_diff};
pub use evidence_lines::{EvidenceLine, console_lines, page_lines, request_lines, source_text, step_lines};
pub use explain::{ChangeSince, Detail, ExplainedStep, Explanation, explain};
pub use fix_plan::{FixPlan, Ownership, PlannedDiagnosis, Verify, fix_plan};
pub use healing::{HealingEdit, HealingSource, LocatorHealing, LostLocator, RankedLocator, locator_healing};
pub use pick::{AssociatedBy, LocatorPick, locator_pick};
pub use record::{FailureRecord, Recurrence, failure_record};
pub use screenshots::{screenshot_bytes, screenshots};
pub use streak::NoStreak;
pub(crate) use streak::{Streak, streak};
pub use trace::{
    Dom, DomSnapshot, NetworkBody, TraceNetwork, TraceStacks, TraceStatus, dom_snapshot, network_body,
    trace_network, trace_stacks, trace_tag,
};
