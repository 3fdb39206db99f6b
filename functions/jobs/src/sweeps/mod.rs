//! Sweeps: periodic jobs that remove what nobody needs any more. Each works in
//! batches, so that no transaction is long, and goes on later when its time is
//! over.

mod objects;
mod queue;
mod short_lived;

pub(crate) use objects::{sweep_objects, sweep_staging};
pub(crate) use queue::purge_jobs;
pub(crate) use short_lived::purge_short_lived;

/// Rows or objects of one batch.
const BATCH: i64 = 500;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
