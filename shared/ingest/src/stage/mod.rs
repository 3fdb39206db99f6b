//! The inbox: results that are stored and acknowledged, and not applied to
//! their run yet.

pub(crate) mod evidence_packing;
pub(crate) mod inbox;
pub(crate) mod run_token;
pub(crate) mod staged_request;
pub(crate) mod stored_entries;
pub(crate) mod write_queue;
