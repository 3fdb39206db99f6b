//! What follows the end of a run, and the end of runs that nobody ends.

pub(crate) mod cluster_verification;
pub(crate) mod completion;
pub(crate) mod evidence_joining;
pub mod expiry;
pub(crate) mod reevaluation;
pub(crate) mod sweep;
pub(crate) mod trace_pool;
