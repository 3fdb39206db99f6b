//! From executions to the aggregates of their tests.

pub(crate) mod aggregation;
pub(crate) mod environment_change;
pub(crate) mod mass_failure;
pub(crate) mod rollup;
