//! Comparing executions with what came before them, again when that changes.

pub(crate) mod comparison;
pub(crate) mod following_runs;
pub(crate) mod whole_runs;
