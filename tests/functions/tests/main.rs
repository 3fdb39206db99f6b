//! Every function by itself, as the platform starts it.

mod access;
mod containers;
mod gateways;
mod guessing;
mod large_files;
mod large_uploads;
mod live;
mod migrate;
mod refusals;
mod routes;
mod same_answers;
mod schedule;
