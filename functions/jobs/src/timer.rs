//! The timer of the local runner: the same as a schedule that calls the tick,
//! inside the process.

use std::time::Duration;

use callboard_http::AppState;
use tokio_util::sync::CancellationToken;

use crate::job::Budget;
use crate::runner::{Which, run};

/// The wait while nothing is due; a job enqueued meanwhile waits this long.
const IDLE: Duration = Duration::from_secs(5);
/// The wait while something is due, or will be in a moment.
const BUSY: Duration = Duration::from_secs(1);
/// Jobs are begun for this long in one go.
const IN_ONE_GO: Duration = Duration::from_secs(30);
/// How long a running job is waited for after a stop was asked for.
const STOP_TIME: Duration = Duration::from_secs(20);

/// Does the work that is due until `stop` is cancelled, then waits for the
/// jobs that run. A job that does not end in time is done again by the next
/// process, when its lease is over.
pub async fn run_until(state: AppState, stop: CancellationToken) {
    let timer = tick_until(&state, &stop);
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_TIME).await;
    };
    tokio::select! {
        () = timer => {}
        () = too_late => tracing::warn!("stopped with jobs still running; they will be done again"),
    }
}

async fn tick_until(state: &AppState, stop: &CancellationToken) {
    let mut is_away = false;
    while !stop.is_cancelled() {
        let budget = Budget::new(IN_ONE_GO).stopped_by(stop.clone());
        let wait = match run(state, budget, Which::InWaves).await {
            Ok(summary) => {
                is_away = false;
                let ahead = summary.next_due.map_or(i64::MAX, |due| due.millis() - state.now().millis());
                Duration::from_millis(u64::try_from(ahead).unwrap_or_default()).clamp(BUSY, IDLE)
            }
            Err(error) => {
                if !is_away {
                    tracing::warn!(%error, "the queue of jobs cannot be read; trying again");
                }
                is_away = true;
                IDLE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => {}
        }
    }
}
