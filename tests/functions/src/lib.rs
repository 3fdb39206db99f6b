//! The service as its functions: which function serves which route, and a
//! deployment of them behind an emulated gateway.
//!
//! Lives here: what the tests in `tests/` share. `infra/routes.json` and the
//! routes of `infra/template.yaml` are made from [`served`], its parameters from
//! [`settings`].

pub mod both;
pub mod deployment;
pub mod served;
pub mod settings;
