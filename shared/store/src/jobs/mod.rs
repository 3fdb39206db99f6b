//! The durable queue: work that must happen once, later, whatever process is
//! there to do it.
//!
//! A job is enqueued in the transaction that makes it necessary, under a key
//! that is unique over all times: enqueueing it again does nothing. Workers
//! claim jobs with a lease ([`lease`]); a job whose worker died becomes due
//! again by itself. Handlers must therefore be idempotent.

pub mod lease;

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::{Session, args, statements};
use crate::ids::{self, Kind};
use crate::{Result, StoreError};

/// What a job of one kind is told. The type belongs where the job is enqueued;
/// its handler is registered in the function `jobs`.
pub trait Payload: Serialize + DeserializeOwned + Send + 'static {
    /// The kind's name in SQL. It never changes: rows outlive releases.
    const KIND: &'static str;
    /// Whether the payload must not outlive the work: it is then cleared also
    /// when the job is given up, and the job can only be enqueued anew.
    const IS_SECRET: bool = false;
}

macro_rules! insert {
    ($id:literal) => {
        concat!(
            "INSERT INTO jobs (id, key, kind, project_id, payload, state, run_after, attempts, created_at) VALUES (",
            $id,
            ", $1, $2, $3, $4, 'queued', $5, 0, $6) ON CONFLICT (key) DO NOTHING"
        )
    };
}

statements! {
    /// A job, unless its key was used before, under the id that was taken last. ix: jobs_key
    INSERT = insert!("(SELECT next - 1 FROM id_counters WHERE kind = 'job')"), postgres insert!("nextval('ids_job')");
    /// A job by its key. ix: jobs_key
    ID_OF = "SELECT id FROM jobs WHERE key = $1";
    /// Keys in use. ix: jobs_key
    KNOWN_KEYS = "SELECT key FROM jobs WHERE key in_texts($1)";
    /// A job that no worker has seen. ix: jobs_key
    DELETE_UNCLAIMED = "DELETE FROM jobs WHERE key = $1 AND state = 'queued' AND attempts = 0";
    /// The state of a job. ix: jobs_key
    STATE = "SELECT state FROM jobs WHERE key = $1";
    /// Queues a job that has ended again. ix: jobs_key
    REQUEUE = "UPDATE jobs SET state = 'queued', payload = $2, attempts = 0, run_after = $3, finished_at = NULL, error = NULL, lease_id = NULL, \
        lease_until = NULL WHERE key = $1 AND state IN ('done', 'parked')";
    /// Jobs of a kind that were given up. ix: jobs_by_state
    REVIVE = "UPDATE jobs SET state = 'queued', attempts = 0, run_after = $2, finished_at = NULL, lease_id = NULL, lease_until = NULL \
        WHERE state = 'parked' AND kind = $1";
    /// When the next job is due. ix: jobs_due
    NEXT_DUE = "SELECT run_after FROM jobs WHERE state IN ('queued', 'leased') AND kind in_texts($1) ORDER BY run_after, id LIMIT 1";
    /// Jobs by state. ix: jobs_by_state
    COUNTS = "SELECT state, COUNT(*) FROM jobs GROUP BY state";
    /// Jobs that were done long ago. ix: jobs_by_state
    PURGE_DONE = "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = 'done' AND finished_at < $1 ORDER BY finished_at LIMIT $2)";
    /// Periodic jobs whose successors have run. ix: jobs_by_state
    PURGE_PERIODIC = "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state IN ('done', 'parked') AND finished_at < $1 AND kind in_texts($2) LIMIT $3)";
}

/// Enqueues a job that is due immediately, as part of the caller's transaction.
/// Answers whether the key was new.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn enqueue<P: Payload>(
    session: &mut Session,
    key: &str,
    project: Option<ProjectId>,
    payload: &P,
    now: Timestamp,
) -> Result<bool> {
    enqueue_at(session, key, project, payload, now, now).await
}

/// Enqueues a job that is due at `run_after`. Answers whether the key was new.
///
/// # Errors
/// As [`enqueue`].
pub async fn enqueue_at<P: Payload>(
    session: &mut Session,
    key: &str,
    project: Option<ProjectId>,
    payload: &P,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<bool> {
    let payload = to_json(payload)?;
    insert(session, key, P::KIND, project, &payload, run_after, now).await
}

async fn insert(
    session: &mut Session,
    key: &str,
    kind: &str,
    project: Option<ProjectId>,
    payload: &str,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<bool> {
    ids::take_next(session, Kind::Job, 1).await?;
    Ok(session.execute(&INSERT, args![key, kind, project, payload, run_after, now]).await? == 1)
}

/// The job of a key.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn id_of(session: &mut Session, key: &str) -> Result<Option<i64>> {
    session.first(&ID_OF, args![key]).await?.map(|row| row.reader().int()).transpose()
}

/// Writes a payload as its row holds it.
///
/// # Errors
/// [`StoreError::Damaged`] for a type that is not JSON.
pub fn to_json<P: Payload>(payload: &P) -> Result<String> {
    serde_json::to_string(payload).map_err(|_| StoreError::Damaged("a payload that is not JSON"))
}

/// A kind that runs once in every period.
#[derive(Debug, Clone)]
pub struct PeriodicJob {
    /// `<kind>:<start of the period>`: whoever comes first makes the job.
    pub key: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its payload, as [`to_json`] writes it.
    pub payload: String,
}

/// Enqueues the periodic jobs whose period has none yet. When all are there,
/// nothing is written.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn enqueue_periodic(store: &crate::Store, jobs: &[PeriodicJob], now: Timestamp) -> Result<()> {
    let keys: Vec<String> = jobs.iter().map(|job| job.key.clone()).collect();
    let rows = store.db().read().await?.all(&KNOWN_KEYS, args![keys]).await?;
    let known = rows.iter().map(|row| row.reader().text()).collect::<Result<Vec<_>>>()?;
    let missing: Vec<&PeriodicJob> = jobs.iter().filter(|job| !known.contains(&job.key)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut session = store.db().begin().await?;
    for job in missing {
        insert(&mut session, &job.key, job.kind, None, &job.payload, now, now).await?;
    }
    session.commit().await
}

/// Takes a job back that no worker has claimed yet. Answers whether there was
/// one; its key may then be used again.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn forget_unclaimed(session: &mut Session, key: &str) -> Result<bool> {
    Ok(session.execute(&DELETE_UNCLAIMED, args![key]).await? == 1)
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It waits, or a worker has it.
    Waiting,
    /// It is done.
    Done,
    /// It was given up.
    GivenUp,
}

/// The state of the job with a key; `None` when there is none, or none any more.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn state(session: &mut Session, key: &str) -> Result<Option<JobState>> {
    let Some(row) = session.first(&STATE, args![key]).await? else { return Ok(None) };
    match row.reader().text()?.as_str() {
        "queued" | "leased" => Ok(Some(JobState::Waiting)),
        "done" => Ok(Some(JobState::Done)),
        "parked" => Ok(Some(JobState::GivenUp)),
        _ => Err(StoreError::Damaged("an unknown state of a job")),
    }
}

/// Queues a job again that is done or was given up; one that waits stays as it is.
///
/// # Errors
/// As [`enqueue`].
pub async fn requeue<P: Payload>(
    session: &mut Session,
    key: &str,
    payload: &P,
    now: Timestamp,
) -> Result<bool> {
    let payload = to_json(payload)?;
    Ok(session.execute(&REQUEUE, args![key, payload, now]).await? == 1)
}

/// Queues all jobs of a kind again that were given up; answers how many.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn revive(session: &mut Session, kind: &str, now: Timestamp) -> Result<u64> {
    session.execute(&REVIVE, args![kind, now]).await
}

/// When the next job of these kinds is due, which may be in the past; `None`
/// when none is waiting.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn next_due(session: &mut Session, kinds: &[&str]) -> Result<Option<Timestamp>> {
    let row = session.first(&NEXT_DUE, args![texts(kinds)]).await?;
    row.map(|row| row.reader().time()).transpose()
}

/// How many jobs there are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Waiting, or waiting to be tried again.
    pub queued: i64,
    /// In the hands of a worker.
    pub leased: i64,
    /// Done, and not purged yet.
    pub done: i64,
    /// Given up; somebody should look.
    pub parked: i64,
}

/// Counts jobs by state.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn counts(session: &mut Session) -> Result<JobCounts> {
    let mut counts = JobCounts::default();
    for row in session.all(&COUNTS, args![]).await? {
        let mut r = row.reader();
        let (state, count) = (r.text()?, r.int()?);
        match state.as_str() {
            "queued" => counts.queued = count,
            "leased" => counts.leased = count,
            "done" => counts.done = count,
            "parked" => counts.parked = count,
            _ => return Err(StoreError::Damaged("an unknown state of a job")),
        }
    }
    Ok(counts)
}

/// Deletes at most `limit` jobs that were done before `before`.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge_done(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE_DONE, args![before, limit]).await
}

/// Deletes at most `limit` jobs of periodic kinds that ended before `before`,
/// well or not: later periods have done their work.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn purge_periodic(
    session: &mut Session,
    kinds: &[&str],
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    session.execute(&PURGE_PERIODIC, args![before, texts(kinds), limit]).await
}

fn texts(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}
