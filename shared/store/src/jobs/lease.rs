//! Leases: a worker owns a claimed job for a minute and renews as long as it
//! works. Whatever it then says about the job counts only while the lease is
//! its own; a worker that lost it changes nothing.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;

use super::texts;
use crate::db::{Row, args, statements};
use crate::{Result, Store, StoreError};

/// How long a job stays with a worker that says nothing, milliseconds.
pub const LEASE_MS: i64 = 60 * 1000;
/// A job that failed this often is parked.
pub const MAX_ATTEMPTS: i64 = 8;
/// The first wait is twice this, each further one twice as long, milliseconds.
const BACK_OFF_MS: i64 = 5 * 1000;
/// The longest wait between attempts, milliseconds.
const MAX_BACK_OFF_MS: i64 = 60 * 60 * 1000;
/// Most characters of an error that are kept.
const MAX_ERROR_CHARS: usize = 500;

statements! {
    /// Jobs whose workers died again and again. ix: jobs_due
    PARK_ABANDONED = "UPDATE jobs SET state = 'parked', finished_at = $1, lease_id = NULL, lease_until = NULL, \
        error = 'no worker came to an end with it', payload = CASE WHEN kind in_texts($4) THEN '{}' ELSE payload END \
        WHERE id IN (SELECT id FROM jobs WHERE state IN ('queued', 'leased') AND run_after <= $1 AND attempts >= $2 AND kind in_texts($3) LIMIT 100)";
    /// Takes due jobs, oldest first; those of workers that died are due when their lease ends. ix: jobs_due
    CLAIM = "WITH due AS MATERIALIZED (SELECT id FROM jobs WHERE state IN ('queued', 'leased') AND run_after <= $1 \
            AND attempts < $6 AND kind in_texts($2) ORDER BY run_after, id LIMIT $3 skip_locked()) \
        UPDATE jobs SET state = 'leased', lease_id = $4, lease_until = $5, run_after = $5, attempts = attempts + 1 \
        WHERE id IN (SELECT id FROM due) RETURNING id, key, kind, project_id, payload, attempts";
    /// A lease goes on.
    RENEW = "UPDATE jobs SET lease_until = $3, run_after = $3 WHERE id = $1 AND lease_id = $2 AND state = 'leased'";
    /// A job is done.
    COMPLETE = "UPDATE jobs SET state = 'done', finished_at = $3, payload = '{}', error = NULL, lease_id = NULL, lease_until = NULL \
        WHERE id = $1 AND lease_id = $2 AND state = 'leased'";
    /// A job got further and goes on later, as if it were new.
    CONTINUE = "UPDATE jobs SET state = 'queued', run_after = $3, payload = $4, attempts = 0, error = NULL, lease_id = NULL, \
        lease_until = NULL WHERE id = $1 AND lease_id = $2 AND state = 'leased'";
    /// A job is tried again later.
    RETRY = "UPDATE jobs SET state = 'queued', run_after = $3, error = $4, lease_id = NULL, lease_until = NULL \
        WHERE id = $1 AND lease_id = $2 AND state = 'leased'";
    /// A job is given up.
    PARK = "UPDATE jobs SET state = 'parked', finished_at = $3, error = $4, payload = CASE WHEN $5 = 1 THEN '{}' ELSE payload END, \
        lease_id = NULL, lease_until = NULL WHERE id = $1 AND lease_id = $2 AND state = 'leased'";
}

/// The kinds a worker knows. It leaves others to workers of a newer release.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// All of them.
    pub names: Vec<&'static str>,
    /// Those whose payload must not outlive the work.
    pub secret: Vec<&'static str>,
}

/// Proof that a job was claimed; it counts as long as nobody else claimed it.
#[derive(Debug, Clone)]
pub struct Lease {
    job: i64,
    id: [u8; 32],
}

/// A job in the hands of this worker.
#[derive(Debug, Clone)]
pub struct ClaimedJob {
    /// What the worker answers with.
    pub lease: Lease,
    /// Unique name of the job.
    pub key: String,
    /// Kind.
    pub kind: String,
    /// Project, when it belongs to one.
    pub project: Option<ProjectId>,
    /// Payload as JSON.
    pub payload: String,
    /// How often it was claimed since it last got further, this time included.
    pub attempts: i64,
}

/// Claims at most `limit` jobs that were due at a moment, the longest due
/// first. Jobs that workers took [`MAX_ATTEMPTS`] times without coming to an end
/// are parked.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn claim(
    store: &Store,
    kinds: &Kinds,
    limit: usize,
    due: Timestamp,
    now: Timestamp,
) -> Result<Vec<ClaimedJob>> {
    let next = super::next_due(&mut store.db().read().await?, &kinds.names).await?;
    // Nothing is written when nothing is due.
    if next.is_none_or(|next| next > due) {
        return Ok(Vec::new());
    }
    let mut id = [0_u8; 32];
    getrandom::fill(&mut id).map_err(|_| StoreError::Damaged("the system gives no random bytes"))?;
    let until = now.millis() + LEASE_MS;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut session = store.db().begin().await?;
    let names = texts(&kinds.names);
    let rows = session.all(&CLAIM, args![due, names.clone(), most, id, until, MAX_ATTEMPTS]).await?;
    let mut claimed = rows.iter().map(|row| read(row, id)).collect::<Result<Vec<_>>>()?;
    // As long as there is other work, those can wait.
    if claimed.len() < limit {
        session.write(&PARK_ABANDONED, args![now, MAX_ATTEMPTS, names, texts(&kinds.secret)]).await?;
    }
    session.commit().await?;
    // An update answers its rows in any order.
    claimed.sort_by_key(|job| job.lease.job);
    Ok(claimed)
}

fn read(row: &Row, id: [u8; 32]) -> Result<ClaimedJob> {
    let mut r = row.reader();
    Ok(ClaimedJob {
        lease: Lease { job: r.int()?, id },
        key: r.text()?,
        kind: r.text()?,
        project: r.opt_int()?.map(ProjectId),
        payload: r.text()?,
        attempts: r.int()?,
    })
}

/// Keeps a job for another [`LEASE_MS`]. Answers whether it was still this
/// worker's.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn renew(store: &Store, lease: &Lease, now: Timestamp) -> Result<bool> {
    let mut session = store.db().begin().await?;
    let until = now.millis() + LEASE_MS;
    let renewed = session.execute(&RENEW, args![lease.job, lease.id, until]).await? == 1;
    session.commit().await?;
    Ok(renewed)
}

/// Ends a job well; its payload is cleared. Answers whether it was still this
/// worker's.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn complete(store: &Store, lease: &Lease, now: Timestamp) -> Result<bool> {
    let mut session = store.db().begin().await?;
    let ended = session.execute(&COMPLETE, args![lease.job, lease.id, now]).await? == 1;
    session.commit().await?;
    Ok(ended)
}

/// Puts a job that got further back with a new payload (e.g. a cursor), due at
/// `run_after`; its attempts start anew. Answers whether it was still this
/// worker's.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn go_on(store: &Store, lease: &Lease, payload: &str, run_after: Timestamp) -> Result<bool> {
    let mut session = store.db().begin().await?;
    let kept = session.execute(&CONTINUE, args![lease.job, lease.id, run_after, payload]).await? == 1;
    session.commit().await?;
    Ok(kept)
}

/// What a failed job comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// It is tried again at this time.
    RetriedAt(Timestamp),
    /// It was given up.
    Parked,
    /// Another worker has it: nothing was written.
    LeaseLost,
}

/// How a failure is dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Whether trying again cannot help.
    pub is_final: bool,
    /// Whether the payload must not be kept when the job is given up.
    pub is_secret: bool,
}

/// Ends an attempt badly: the job is tried again after a wait that doubles
/// with every attempt, at most an hour, or parked after [`MAX_ATTEMPTS`].
///
/// # Errors
/// [`StoreError::Database`].
pub async fn fail(
    store: &Store,
    job: &ClaimedJob,
    failure: Failure,
    error: &str,
    now: Timestamp,
) -> Result<Failed> {
    let lease = &job.lease;
    let error: String = error.chars().filter(|c| *c != '\0').take(MAX_ERROR_CHARS).collect();
    let mut session = store.db().begin().await?;
    let is_parked = failure.is_final || job.attempts >= MAX_ATTEMPTS;
    let again = Timestamp(now.millis() + back_off_ms(job.attempts));
    let written = if is_parked {
        session.execute(&PARK, args![lease.job, lease.id, now, error, failure.is_secret]).await?
    } else {
        session.execute(&RETRY, args![lease.job, lease.id, again, error]).await?
    };
    session.commit().await?;
    Ok(match (written, is_parked) {
        (0, _) => Failed::LeaseLost,
        (_, true) => Failed::Parked,
        (_, false) => Failed::RetriedAt(again),
    })
}

/// The wait after an attempt, milliseconds.
fn back_off_ms(attempts: i64) -> i64 {
    let doublings = u32::try_from(attempts.clamp(0, 16)).unwrap_or_default();
    (BACK_OFF_MS << doublings).min(MAX_BACK_OFF_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        let waits: Vec<i64> = [1, 2, 3, 7, 8, 9, 10, 40].map(|n| back_off_ms(n) / 1000).into();
        assert_eq!(waits, [10, 20, 40, 640, 1280, 2560, 3600, 3600]);
    }
}
