//! What the queue promises, whoever the workers are.

use std::collections::BTreeMap;

use callboard_domain::time::Timestamp;
use callboard_store::jobs::lease::{self, ClaimedJob, Failed, Failure, Kinds, LEASE_MS, MAX_ATTEMPTS};
use callboard_store::jobs::{self, JobCounts, Payload};
use callboard_store::{Db, Store};
use callboard_test_support::for_each_database;
use serde::{Deserialize, Serialize};

use crate::support::{START, store};

const NOW: Timestamp = Timestamp(START);
const FAILURE: Failure = Failure { is_final: false, is_secret: false };

#[derive(Debug, Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Payload for Greet {
    const KIND: &'static str = "greet";
}

fn greet(name: &str) -> Greet {
    Greet { name: name.to_owned() }
}

fn kinds() -> Kinds {
    Kinds { names: vec![Greet::KIND], secret: Vec::new() }
}

async fn enqueue(store: &Store, key: &str) -> bool {
    let mut session = store.db().begin().await.expect("a transaction");
    let is_new = jobs::enqueue(&mut session, key, None, &greet(key), NOW).await.expect("enqueued");
    session.commit().await.expect("committed");
    is_new
}

async fn claim(store: &Store, limit: usize, now: Timestamp) -> Vec<ClaimedJob> {
    lease::claim(store, &kinds(), limit, now, now).await.expect("claimed")
}

async fn claim_one(store: &Store, now: Timestamp) -> ClaimedJob {
    let mut claimed = claim(store, 5, now).await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed.remove(0)
}

async fn counts(store: &Store) -> JobCounts {
    jobs::counts(&mut store.db().read().await.expect("a connection")).await.expect("counts")
}

async fn payloads(store: &Store) -> Vec<String> {
    const PAYLOADS: &str = "SELECT payload FROM jobs ORDER BY id";
    match store.db() {
        Db::Sqlite { readers, .. } => sqlx::query_scalar(PAYLOADS)
            .fetch_all(&mut *readers.get().await.expect("a connection"))
            .await
            .expect("rows"),
        Db::Postgres(pool) => sqlx::query_scalar(PAYLOADS)
            .fetch_all(&mut *pool.get().await.expect("a connection"))
            .await
            .expect("rows"),
    }
}

fn after(ms: i64) -> Timestamp {
    Timestamp(START + ms)
}

#[tokio::test]
async fn the_same_key_is_one_job_for_ever() {
    for_each_database(async |database| {
        let store = store(database).await;
        assert!(enqueue(&store, "run:1:completion").await);
        assert!(!enqueue(&store, "run:1:completion").await);
        let job = claim_one(&store, NOW).await;
        assert_eq!(
            (job.key.as_str(), job.payload.as_str()),
            ("run:1:completion", r#"{"name":"run:1:completion"}"#)
        );
        assert!(!enqueue(&store, "run:1:completion").await);
        assert!(lease::complete(&store, &job.lease, NOW).await.unwrap());
        assert!(!enqueue(&store, "run:1:completion").await);
        assert_eq!(counts(&store).await, JobCounts { done: 1, ..JobCounts::default() });
    })
    .await;
}

#[tokio::test]
async fn a_job_exists_when_its_transaction_does() {
    for_each_database(async |database| {
        let store = store(database).await;
        let mut session = store.db().begin().await.unwrap();
        assert!(jobs::enqueue(&mut session, "undone", None, &greet("x"), NOW).await.unwrap());
        drop(session);
        assert!(claim(&store, 5, NOW).await.is_empty());

        let mut session = store.db().begin().await.unwrap();
        jobs::enqueue_at(&mut session, "later", None, &greet("x"), after(900_000), NOW).await.unwrap();
        session.commit().await.unwrap();
        assert!(claim(&store, 5, after(899_999)).await.is_empty());
        let due = jobs::next_due(&mut store.db().read().await.unwrap(), &[Greet::KIND]).await.unwrap();
        assert_eq!(due, Some(after(900_000)));
        let unknown = Kinds { names: vec!["other"], secret: Vec::new() };
        assert!(lease::claim(&store, &unknown, 5, after(900_000), after(900_000)).await.unwrap().is_empty());

        let mut session = store.db().begin().await.unwrap();
        assert!(jobs::forget_unclaimed(&mut session, "later").await.unwrap());
        assert!(jobs::enqueue(&mut session, "later", None, &greet("x"), NOW).await.unwrap());
        session.commit().await.unwrap();
        claim_one(&store, NOW).await;
        let mut session = store.db().begin().await.unwrap();
        assert!(!jobs::forget_unclaimed(&mut session, "later").await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn two_processes_run_each_job_once() {
    const JOBS: usize = 200;
    for_each_database(async |database| {
        let stores = [store(database).await, store(database).await];
        for number in 0..JOBS {
            enqueue(&stores[0], &format!("job {number}")).await;
        }
        let workers = (0..6).map(|worker| {
            let store = stores[worker % 2].clone();
            tokio::spawn(async move {
                let mut ran = Vec::new();
                loop {
                    let claimed = claim(&store, 7, NOW).await;
                    if claimed.is_empty() && counts(&store).await.queued == 0 {
                        return ran;
                    }
                    for job in claimed {
                        assert!(lease::complete(&store, &job.lease, NOW).await.unwrap());
                        ran.push(job.key);
                    }
                }
            })
        });
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for worker in workers.collect::<Vec<_>>() {
            for key in worker.await.unwrap() {
                *times.entry(key).or_default() += 1;
            }
        }
        assert_eq!(times.len(), JOBS);
        assert!(times.values().all(|times| *times == 1), "{times:?}");
        assert_eq!(counts(&stores[0]).await, JobCounts { done: 200, ..JobCounts::default() });
    })
    .await;
}

#[tokio::test]
async fn an_abandoned_job_is_taken_over_and_its_old_worker_is_not_heard() {
    for_each_database(async |database| {
        let (first, second) = (store(database).await, store(database).await);
        enqueue(&first, "job").await;
        let stalled = claim_one(&first, NOW).await;
        assert!(claim(&second, 5, after(LEASE_MS - 1)).await.is_empty());
        // A renewal keeps it for another minute.
        assert!(lease::renew(&first, &stalled.lease, after(LEASE_MS - 1)).await.unwrap());
        assert!(claim(&second, 5, after(LEASE_MS)).await.is_empty());
        let over = after(2 * LEASE_MS);
        let taken = claim_one(&second, over).await;
        assert_eq!(taken.attempts, 2);

        assert!(!lease::complete(&first, &stalled.lease, over).await.unwrap());
        assert!(!lease::renew(&first, &stalled.lease, over).await.unwrap());
        assert!(!lease::go_on(&first, &stalled.lease, "{}", over).await.unwrap());
        let failed = lease::fail(&first, &stalled, FAILURE, "late", over).await.unwrap();
        assert_eq!(failed, Failed::LeaseLost);
        assert_eq!(counts(&first).await.leased, 1);
        assert!(lease::complete(&second, &taken.lease, over).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_failing_job_waits_longer_each_time_and_is_parked_in_the_end() {
    for_each_database(async |database| {
        let store = store(database).await;
        enqueue(&store, "job").await;
        let mut now = NOW;
        for attempt in 1..MAX_ATTEMPTS {
            let job = claim_one(&store, now).await;
            assert_eq!(job.attempts, attempt);
            let failed = lease::fail(&store, &job, FAILURE, "no luck", now).await.unwrap();
            let again = Timestamp(now.millis() + (5_000 << attempt));
            assert_eq!(failed, Failed::RetriedAt(again));
            assert!(claim(&store, 5, Timestamp(again.millis() - 1)).await.is_empty());
            now = again;
        }
        let job = claim_one(&store, now).await;
        assert_eq!(lease::fail(&store, &job, FAILURE, "no luck", now).await.unwrap(), Failed::Parked);
        assert_eq!(payloads(&store).await, [r#"{"name":"job"}"#]);
        assert_eq!(counts(&store).await, JobCounts { parked: 1, ..JobCounts::default() });
        assert!(claim(&store, 5, after(i64::from(u32::MAX))).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_parked_too() {
    for_each_database(async |database| {
        let store = store(database).await;
        enqueue(&store, "job").await;
        for attempt in 0..MAX_ATTEMPTS {
            claim_one(&store, after(attempt * LEASE_MS)).await;
        }
        let secret = Kinds { secret: vec![Greet::KIND], ..kinds() };
        let over = after(MAX_ATTEMPTS * LEASE_MS);
        assert!(lease::claim(&store, &secret, 5, over, over).await.unwrap().is_empty());
        assert_eq!(counts(&store).await.parked, 1);
        assert_eq!(payloads(&store).await, ["{}"]);
    })
    .await;
}

#[tokio::test]
async fn a_job_that_got_further_goes_on_with_what_it_left() {
    for_each_database(async |database| {
        let store = store(database).await;
        enqueue(&store, "job").await;
        let job = claim_one(&store, NOW).await;
        let rest = jobs::to_json(&greet("the rest")).unwrap();
        assert!(lease::go_on(&store, &job.lease, &rest, NOW).await.unwrap());
        let job = claim_one(&store, NOW).await;
        assert_eq!((job.attempts, job.payload), (1, rest));
    })
    .await;
}

#[tokio::test]
async fn old_jobs_are_purged_and_parked_ones_kept() {
    for_each_database(async |database| {
        let store = store(database).await;
        for (key, is_done) in [("done", true), ("parked", false)] {
            enqueue(&store, key).await;
            let job = claim_one(&store, NOW).await;
            if is_done {
                lease::complete(&store, &job.lease, NOW).await.unwrap();
            } else {
                let failure = Failure { is_final: true, ..FAILURE };
                lease::fail(&store, &job, failure, "nonsense", NOW).await.unwrap();
            }
        }
        let mut session = store.db().begin().await.unwrap();
        assert_eq!(jobs::purge_done(&mut session, NOW, 10).await.unwrap(), 0);
        assert_eq!(jobs::purge_done(&mut session, after(1), 10).await.unwrap(), 1);
        assert_eq!(jobs::purge_periodic(&mut session, &["other"], after(1), 10).await.unwrap(), 0);
        assert_eq!(jobs::purge_periodic(&mut session, &[Greet::KIND], after(1), 10).await.unwrap(), 1);
        session.commit().await.unwrap();
        assert_eq!(counts(&store).await, JobCounts::default());
    })
    .await;
}
