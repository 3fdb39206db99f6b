//! Files that are sent one by one: planned, received, committed.

pub(crate) mod commit;
pub(crate) mod plan;
pub(crate) mod receive;
mod request;
