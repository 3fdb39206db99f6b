//! Every function by itself, as the platform starts it.

mod access;
mod guessing;
mod large_files;
mod large_uploads;
mod live;
mod refusals;
mod routes;
mod same_answers;
mod schedule;
