//! The whole service over HTTP: every test runs on SQLite and on PostgreSQL,
//! each on a fresh database. One binary, because linking is what takes long.

mod access;
mod accounts;
mod annotations;
mod broken;
mod builders;
mod clusters;
mod comparison;
mod deletion;
mod documents;
mod explain;
mod export;
mod files;
mod flakiness;
mod gate;
mod healing;
mod idempotency;
mod ingest;
mod limits;
mod live;
mod mcp;
mod memory;
mod oauth;
mod pages;
mod performance;
mod projects_admin;
mod reading;
mod search;
mod store;
mod traces;
mod uploads;
mod users;
