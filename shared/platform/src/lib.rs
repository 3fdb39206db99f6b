//! What a process needs besides storage and HTTP: configuration, the client for
//! requests to other hosts, mail, the dialogue with OAuth providers, the pool
//! that hashes passwords, logging.
//!
//! Lives here: what jobs and the HTTP edge share. Must not live here: routes,
//! extractors, answers, SQL.

pub mod config;
pub mod egress;
mod fair_queue;
pub mod hash_pool;
pub mod mail;
pub mod oauth;
pub mod telemetry;

pub use config::Config;
