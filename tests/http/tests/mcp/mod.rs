//! The endpoint for agents, as one who has to present a key meets it.

mod agent;
mod answers;
mod authentication;
mod matrix;
mod reading;
mod writes;

pub(crate) use agent::Agent;
