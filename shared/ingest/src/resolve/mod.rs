//! Which run a request belongs to, and what it says about that run.

pub(crate) mod ci_job;
pub(crate) mod rerun_resolution;
pub(crate) mod run_metadata;
pub(crate) mod run_resolution;
pub(crate) mod start_keys;
