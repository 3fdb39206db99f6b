//! Running what is due: claim a few jobs at a time, keep their leases while
//! their handlers work, and tell the queue how they ended.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use callboard_domain::time::Timestamp;
use callboard_http::AppState;
use callboard_store::StoreError;
use callboard_store::jobs;
use callboard_store::jobs::lease::{self, ClaimedJob, Failed, Failure};
use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::job::{Budget, JobContext, JobError};
use crate::registry::{KINDS, Kind};

/// Jobs in work at the same time: a slow mail server must not hold up the sweeps.
const AT_ONCE: usize = 4;
/// So many are claimed together while others run: whoever writes waits for each
/// claim.
const TOGETHER: usize = 2;
/// How long one free place waits for another one, to claim for both.
const SHORTLY: Duration = Duration::from_millis(5);
/// How often it is looked for what became due while jobs run.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often a lease is renewed: two renewals may fail before it ends.
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// No handler works this long in one go; one that does hangs.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// What was done in one go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Jobs claimed.
    pub claimed: u64,
    /// Jobs that ended well, or got further.
    pub done: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// When the next job is due, when one is waiting.
    pub next_due: Option<Timestamp>,
}

/// Which jobs one go runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are due, and those that become due meanwhile.
    All,
    /// Those that are due, looked at every [`LOOK_AGAIN`]. The ends of many runs
    /// come together meanwhile, and the first of their jobs counts them all at
    /// once, which costs hardly more than counting one.
    InWaves,
}

/// Enqueues what the current periods ask for, then runs due jobs until none is
/// left or the budget is used up. Jobs begun are always waited for.
///
/// # Errors
/// [`StoreError`] when the queue cannot be read.
pub async fn run_due(state: &AppState, budget: Budget) -> Result<Summary, StoreError> {
    run(state, budget, Which::All).await
}

/// [`run_due`] for some of them.
pub(crate) async fn run(state: &AppState, budget: Budget, which: Which) -> Result<Summary, StoreError> {
    let store = state.store();
    let is_demo = state.config().demo;
    let kinds = if is_demo { KINDS.in_demo() } else { KINDS.known() };
    if !is_demo {
        jobs::enqueue_periodic(store, &KINDS.periodic_jobs(state.now())?, state.now()).await?;
    }
    let mut looked = state.now();
    let mut may_claim = true;
    let mut summary = Summary::default();
    let mut running = JoinSet::new();
    // A queue that refuses more is no reason to break off what has begun.
    let mut refused = None;
    loop {
        let goes_on = budget.is_left() && refused.is_none();
        if goes_on && running.len() < AT_ONCE && may_claim {
            let now = state.now();
            if which == Which::All || LOOK_AGAIN.as_millis() <= since(looked, now) {
                looked = now;
            }
            match lease::claim(store, kinds, AT_ONCE - running.len(), looked, now).await {
                Ok(claimed) => {
                    summary.claimed += claimed.len() as u64;
                    for job in claimed {
                        running.spawn(run_one(state.clone(), job, budget.clone()));
                    }
                }
                Err(error) => refused = Some(error),
            }
        }
        let wait = if may_claim { LOOK_AGAIN } else { SHORTLY };
        tokio::select! {
            ended = running.join_next() => {
                match ended {
                    Some(Ok(Ended::Well)) => summary.done += 1,
                    // What a handler panics with is caught below; a lost lease is somebody else's job.
                    Some(Ok(Ended::Badly) | Err(_)) => summary.failed += 1,
                    Some(Ok(Ended::Lost)) => {}
                    None => break,
                }
                may_claim = running.len() + TOGETHER <= AT_ONCE;
            }
            // What became due does not wait for a job that takes long.
            () = tokio::time::sleep(wait), if running.len() < AT_ONCE && goes_on => may_claim = true,
        }
    }
    if let Some(error) = refused {
        return Err(error);
    }
    summary.next_due = jobs::next_due(&mut store.db().read().await?, &kinds.names).await?;
    Ok(summary)
}

/// Milliseconds between two moments.
fn since(before: Timestamp, now: Timestamp) -> u128 {
    u128::try_from(now.millis() - before.millis()).unwrap_or_default()
}

enum Ended {
    Well,
    Badly,
    Lost,
}

async fn run_one(state: AppState, job: ClaimedJob, budget: Budget) -> Ended {
    // Claims ask for known kinds only.
    let Some(kind) = KINDS.find(&job.kind) else { return Ended::Lost };
    let Some(ended) = work(&state, kind, &job, budget).await else {
        tracing::warn!(job = job.key, "another worker took this job over");
        return Ended::Lost;
    };
    match settle(&state, kind, &job, ended).await {
        Ok(ended) => ended,
        Err(error) => {
            // The lease ends by itself and the job is done again.
            tracing::warn!(job = job.key, %error, "the end of a job could not be stored");
            Ended::Badly
        }
    }
}

type Worked = Result<Option<String>, JobError>;

/// Runs the handler and keeps the lease meanwhile; `None` when it was lost.
async fn work(state: &AppState, kind: &Kind, job: &ClaimedJob, budget: Budget) -> Option<Worked> {
    let context = JobContext {
        state: state.clone(),
        key: job.key.clone(),
        project: job.project,
        attempt: job.attempts,
        budget,
    };
    let handler = AssertUnwindSafe(async { kind.start(context, &job.payload).await }).catch_unwind();
    tokio::select! {
        ended = tokio::time::timeout(LONGEST, handler) => Some(match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(_)) => Err(JobError::passing("its handler panicked")),
            Err(_) => Err(JobError::passing(format!("it was not done within {} s", LONGEST.as_secs()))),
        }),
        () = until_lost(state, job) => None,
    }
}

/// Keeps the lease of a job until it is lost. The handler has to go on while a
/// renewal waits: what it waits for may be a connection that the handler has.
async fn until_lost(state: &AppState, job: &ClaimedJob) {
    let mut renewals = tokio::time::interval(RENEW_EVERY);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick comes immediately.
    renewals.tick().await;
    loop {
        renewals.tick().await;
        match lease::renew(state.store(), &job.lease, state.now()).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(job = job.key, %error, "a lease could not be renewed"),
        }
    }
}

/// Tells the queue how a job ended.
async fn settle(state: &AppState, kind: &Kind, job: &ClaimedJob, ended: Worked) -> Result<Ended, StoreError> {
    let (store, now) = (state.store(), state.now());
    let error = match ended {
        Ok(rest) => {
            let is_ours = match rest {
                None => lease::complete(store, &job.lease, now).await?,
                Some(rest) => lease::go_on(store, &job.lease, &rest, now).await?,
            };
            return Ok(if is_ours { Ended::Well } else { Ended::Lost });
        }
        Err(error) => error,
    };
    let failure = Failure { is_final: error.is_final(), is_secret: kind.is_secret };
    Ok(match lease::fail(store, job, failure, error.message(), now).await? {
        Failed::LeaseLost => Ended::Lost,
        Failed::Parked => {
            tracing::error!(job = job.key, attempts = job.attempts, "given up: {}", error.message());
            Ended::Badly
        }
        Failed::RetriedAt(_) => {
            tracing::warn!(job = job.key, attempts = job.attempts, "tried again later: {}", error.message());
            Ended::Badly
        }
    })
}
