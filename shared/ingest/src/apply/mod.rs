//! From results to execution rows, clusters and totals.

pub(crate) mod attachments;
pub(crate) mod attempt_merge;
pub(crate) mod batch_apply;
pub(crate) mod batch_prefetch;
pub(crate) mod clusters;
pub(crate) mod execution_change;
pub(crate) mod execution_plan;
pub(crate) mod execution_writer;
pub(crate) mod locators;
pub(crate) mod pending;
pub(crate) mod project_lookups;
pub(crate) mod redecide;
pub(crate) mod shard_retry;
