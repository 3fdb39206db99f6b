//! The queue and what it drives, on SQLite and on PostgreSQL.

mod collection;
mod post;
mod queue;
mod support;
mod tick;
mod trace_pool;
mod upkeep;
