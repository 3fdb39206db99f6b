//! What Callboard knows, without any input or output: ids, statuses, the
//! normalised form of what clients send, and the pure methods that turn
//! attempts into executions and executions into rollups.
//!
//! Lives here: values and functions on values. Must not live here: SQL,
//! files, sockets, clocks or randomness (they come in as arguments), HTTP or
//! HTML. The store and the query layer build on these types.

pub mod account;
pub mod annotations;
pub mod attempts;
pub mod audit;
pub mod bidi;
pub mod comparison;
pub mod diagnosis;
pub mod durations;
pub mod endpoints;
pub mod environment;
pub mod events;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod failure;
pub mod feedback;
pub mod flakiness;
pub mod gate;
pub mod human;
pub mod ids;
pub mod ingest;
pub mod insights;
pub mod lane;
pub mod locator;
pub mod notifications;
pub mod page_title;
pub mod repair;
pub mod rerun;
pub mod retention;
pub mod run_errors;
pub mod run_life;
pub mod run_reason;
pub mod search;
pub mod secrets;
pub mod setting;
pub mod shifts;
pub mod sketch;
pub mod smtp;
pub mod standouts;
pub mod status;
pub mod storage_quota;
pub mod suite_size;
pub mod suspects;
pub mod test_state;
pub mod text;
pub mod time;
pub mod timeouts;
pub mod totals;
mod varint;
