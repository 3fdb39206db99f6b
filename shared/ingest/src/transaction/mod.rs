//! A run in the hands of one transaction, and what goes with every change of it.

pub mod baseline;
pub(crate) mod follow_up;
pub(crate) mod life_events;
pub(crate) mod outcome;
pub mod run_errors;
pub(crate) mod run_events;
pub(crate) mod run_lanes;
pub(crate) mod run_transaction;
pub(crate) mod search_words;
