//! Every function by itself, as the platform starts it.

mod access;
mod guessing;
mod large_files;
mod live;
mod refusals;
mod routes;
mod same_answers;
mod schedule;
