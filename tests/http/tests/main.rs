//! The whole service over HTTP: every test runs on SQLite and on PostgreSQL,
//! each on a fresh database. One binary, because linking is what takes long.

mod broken;
mod builders;
mod documents;
mod files;
mod ingest;
mod reading;
mod store;
mod uploads;
