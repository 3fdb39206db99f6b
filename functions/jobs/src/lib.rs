//! Function `jobs`: does the work that is due, whoever asks: the schedule over
//! `POST /internal/tick`, a platform's scheduler directly, or the timer of the
//! local runner ([`run_until`]).
//!
//! Lives here: which kinds of jobs there are, how one is run, and the sweeps.
//! Must not live here: SQL, leases and back-off (`callboard_store::jobs`), or
//! rules that a request also needs.
//!
//! # How a kind of job is added
//! 1. Where the job is enqueued, declare what it is told and give the kind its
//!    name, which never changes:
//!    ```
//!    use callboard_store::jobs::Payload;
//!    use serde::{Deserialize, Serialize};
//!
//!    /// A run has ended: what follows is done once.
//!    #[derive(Debug, Serialize, Deserialize)]
//!    pub struct RunCompletion {
//!        /// The run.
//!        pub run: i64,
//!    }
//!
//!    impl Payload for RunCompletion {
//!        const KIND: &'static str = "completion";
//!    }
//!    ```
//!    New fields need `#[serde(default)]`: rows written by the previous release
//!    are still there. A payload that holds a token sets `IS_SECRET`.
//! 2. Enqueue it in the transaction that makes it necessary, under a key that
//!    says what happens once:
//!    `jobs::enqueue(&mut session, &format!("run:{run}:completion"), Some(project), &payload, now)`.
//! 3. Write the handler in a module of this crate. It may run twice, after a
//!    crash even at the same time, so it must be idempotent; what others can
//!    see is preceded by a unique row. A long one works in bounded batches,
//!    asks [`JobContext::has_time`] between them and answers
//!    [`Outcome::GoOn`] with a payload that says where to go on.
//!    ```
//!    use callboard_fn_jobs::{JobContext, JobError, Outcome};
//!    # use callboard_store::jobs::Payload;
//!    # #[derive(serde::Serialize, serde::Deserialize)]
//!    # struct RunCompletion { run: i64 }
//!    # impl Payload for RunCompletion { const KIND: &'static str = "completion"; }
//!
//!    async fn run_completion(ctx: JobContext, job: RunCompletion) -> Result<Outcome<RunCompletion>, JobError> {
//!        tracing::info!(run = job.run, at = ?ctx.now(), "completed");
//!        Ok(Outcome::Done)
//!    }
//!    ```
//!    An error that [`JobError::final_`] made parks the job immediately; any other
//!    error is tried again, with a wait that doubles, eight times in all.
//! 4. Add a row to `registry.rs`: `Kind::new(run_completion)`, or
//!    `Kind::every(period, handler)` for work that nobody enqueues: every
//!    period begins with one job of the payload's default.

mod account_mails;
mod culprits;
mod deletions;
mod diagnoses;
mod events;
mod exports;
mod feedback;
mod job;
mod links;
mod notifications;
mod owners;
mod registry;
mod retention;
mod runner;
mod runs;
mod sweeps;
mod tick;
mod timer;
mod upkeep;
mod uploads;

use std::sync::Arc;

use axum::{Extension, Router};
use callboard_auth::RouteId;
use callboard_auth::keys::Secrets;
use callboard_auth::tick::TickKeys;
use callboard_http::{AppState, Routes};
use utoipa::OpenApi;

pub use job::{Budget, JobContext, JobError, Outcome};
pub use runner::{Summary, run_due};
pub use tick::{DEFAULT_BUDGET, Ticked};
pub use timer::run_until;

/// The routes of this function.
pub fn router(state: AppState) -> Router {
    let keys = TickKeys::new(&Secrets::new(&state.config().auth_secrets));
    Routes::new(state).on(RouteId::Tick, tick::tick).into_router().layer(Extension(Arc::new(keys)))
}

/// Its part of the OpenAPI document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(paths(tick::tick), tags((name = "jobs", description = "Work that is done later")))]
    struct Document;
    Document::openapi()
}
