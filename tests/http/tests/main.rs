//! The whole service over HTTP: every test runs on SQLite and on PostgreSQL,
//! each on a fresh database. One binary, because linking is what takes long.

mod access;
mod accounts;
mod broken;
mod builders;
mod documents;
mod files;
mod idempotency;
mod ingest;
mod limits;
mod live;
mod oauth;
mod pages;
mod reading;
mod store;
mod uploads;
mod users;
