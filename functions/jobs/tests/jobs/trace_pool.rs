//! Traces share what they have in common, and are read as they were sent.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use callboard_domain::ids::{BlobId, ExecutionId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_ingest::{PoolTraces, pool_traces};
use callboard_store::blobs::content::Content;
use callboard_store::blobs::{self, BlobRow, IN_MEMORY_BYTES, collect, freeing};
use callboard_store::deletions::{self, NewReceipt};
use callboard_store::files::{self, FileKind, NewFile};
use callboard_store::{Backend, Db, Store, unclaimed};
use callboard_test_support::{TestDatabase, for_each_database};
use futures::stream;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{START, Time, state, store};

const PROJECT: ProjectId = ProjectId(3);
const RUN: RunId = RunId(7);
const GRACE_MS: i64 = 900_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Bytes that no compression makes smaller.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(step).collect()
}

/// A ZIP whose entries are stored as they are.
fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for (name, bytes) in entries {
        let header_at = archive.len() as u32;
        let common = {
            let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x58];
            common.extend(crc32(bytes).to_le_bytes());
            common.extend((bytes.len() as u32).to_le_bytes());
            common.extend((bytes.len() as u32).to_le_bytes());
            common.extend((name.len() as u16).to_le_bytes());
            common
        };
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend([0, 0]);
        archive.extend(name.as_bytes());
        archive.extend(*bytes);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 12]);
        directory.extend(header_at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let directory_at = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend((entries.len() as u16).to_le_bytes());
    archive.extend((entries.len() as u16).to_le_bytes());
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(directory_at.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

async fn publish(store: &Store, bytes: &[u8], now: Timestamp) -> BlobRow {
    let body = stream::iter([Ok(Bytes::copy_from_slice(bytes))]);
    let staged = blobs::stage(store, PROJECT.get(), body, store.memory().room(IN_MEMORY_BYTES), now)
        .await
        .expect("staged");
    staged.publish(store, PROJECT, "application/zip", now).await.expect("published")
}

/// Stores a trace for an execution of a run.
async fn upload(store: &Store, run: RunId, execution: i64, bytes: &[u8], now: Timestamp) -> BlobId {
    let blob = publish(store, bytes, now).await;
    let mut session = store.db().begin().await.expect("a transaction");
    let file = NewFile {
        run,
        execution: ExecutionId(execution),
        repetition: 0,
        retry: 0,
        kind: FileKind::Trace,
        name: "trace".to_owned(),
        content_type: "application/zip".to_owned(),
        original_name: None,
        size: blob.size,
        dimensions: None,
        blob: blob.id,
    };
    files::link(&mut session, PROJECT, &file, now).await.expect("linked");
    session.commit().await.expect("committed");
    blob.id
}

async fn release(store: &Store, blob: BlobId, now: Timestamp) {
    let mut session = store.db().begin().await.expect("a transaction");
    blobs::release(&mut session, PROJECT, blob, now).await.expect("released");
    session.commit().await.expect("committed");
}

async fn content(store: &Store, blob: BlobId) -> Content {
    Content::load(&mut store.db().read().await.expect("a connection"), PROJECT, blob).await.expect("content")
}

/// It is read whole and in parts as it was sent.
async fn reads_as(store: &Store, blob: BlobId, bytes: &[u8]) {
    let content = content(store, blob).await;
    let size = bytes.len();
    assert_eq!(content.size(), size as u64);
    for range in [0..size, 0..1, size - 1..size, size / 3..size / 2, 40..90_000.min(size), size / 2..size] {
        let read = content.read(store, range.start as u64..range.end as u64).await.expect("bytes");
        assert!(read == bytes[range.clone()], "{range:?} of {size}");
    }
}

const OWN_BYTES: &str =
    "SELECT CAST(COALESCE(SUM(COALESCE(own_size, size)), 0) AS BIGINT) FROM blobs WHERE state <> 'deleting'";

async fn number(store: &Store, sql: &'static str) -> i64 {
    match store.db() {
        Db::Sqlite { readers, .. } => sqlx::query_scalar(sql)
            .fetch_one(&mut *readers.get().await.expect("a connection"))
            .await
            .expect("a number"),
        Db::Postgres(pool) => sqlx::query_scalar(sql)
            .fetch_one(&mut *pool.get().await.expect("a connection"))
            .await
            .expect("a number"),
    }
}

#[tokio::test]
async fn what_traces_have_in_common_is_stored_once_and_goes_with_the_last_of_them() {
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let (store, ctx) = (state.store(), state.background());
        let now = time.now();
        let bundle = noise(1, 150_000);
        let (font, other) = (noise(2, 30_000), noise(3, 150_000));
        let events = |seed| noise(seed, 20_000);
        let traces = [
            zip(&[("test.trace", &events(10)), ("resources/app.js", &bundle), ("resources/font.ttf", &font)]),
            zip(&[("resources/font.ttf", &font), ("resources/app.js", &bundle), ("test.trace", &events(11))]),
            // The same name, other bytes.
            zip(&[("test.trace", &events(12)), ("resources/app.js", &other), ("resources/font.ttf", &font)]),
            // Nothing in common with anybody, and too little to be worth it.
            zip(&[("test.trace", &events(13)), ("resources/small.css", &noise(4, 50_000))]),
        ];
        let mut blobs = Vec::new();
        for (at, trace) in traces.iter().enumerate() {
            blobs.push(upload(store, RUN, 1 + at as i64, trace, now).await);
        }
        let sent: i64 = traces.iter().map(|trace| trace.len() as i64).sum();
        assert_eq!(number(store, OWN_BYTES).await, sent);

        let job = PoolTraces { project: PROJECT, run: RUN, after: BlobId(0) };
        assert!(pool_traces(&ctx, job, now).await.expect("done").is_none());
        for (blob, trace) in blobs.iter().zip(&traces) {
            reads_as(store, *blob, trace).await;
        }
        assert_eq!(number(store, OWN_BYTES).await, sent - 150_000 - 2 * 30_000);
        // Again: there is nothing left to do.
        assert!(pool_traces(&ctx, job, now).await.expect("done").is_none());
        // A trace of a later run finds what is there.
        let later_trace = zip(&[("test.trace", &events(14)), ("resources/app.js", &bundle)]);
        let later_run = RunId(8);
        let fifth = upload(store, later_run, 9, &later_trace, now).await;
        pool_traces(&ctx, PoolTraces { run: later_run, ..job }, now).await.expect("done");
        let own = number(store, OWN_BYTES).await;
        assert_eq!(own, sent - 150_000 - 2 * 30_000 + later_trace.len() as i64 - 150_000);

        // The objects that they were before go an hour later.
        let now = Timestamp(START + DAY_MS);
        assert_eq!(unclaimed::sweep(store, now, 100).await.expect("swept").deleted, 4);
        // Sent again after its last reference went, a trace is what it was.
        release(store, blobs[0], now).await;
        let again = publish(store, &traces[0], now).await;
        assert_eq!(again.id, blobs[0]);
        let mut session = store.db().begin().await.expect("a transaction");
        blobs::refer(&mut session, PROJECT, again.id).await.expect("revived");
        session.commit().await.expect("committed");
        reads_as(store, blobs[0], &traces[0]).await;

        // One trace after the other goes; the others stay whole, and nothing is left in the end.
        let mut left: Vec<(BlobId, &Vec<u8>)> = blobs.iter().copied().zip(&traces).collect();
        left.push((fifth, &later_trace));
        let mut now = now;
        while let Some((blob, _)) = left.pop() {
            release(store, blob, now).await;
            now = Timestamp(now.millis() + GRACE_MS);
            collect::collect(store, GRACE_MS, now, 100).await.expect("collected");
            for (blob, trace) in &left {
                reads_as(store, *blob, trace).await;
            }
        }
        now = Timestamp(now.millis() + GRACE_MS);
        collect::collect(store, GRACE_MS, now, 100).await.expect("collected");
        assert_eq!(number(store, "SELECT COUNT(*) FROM blobs").await, 0);
        assert_eq!(number(store, "SELECT COUNT(*) FROM trace_members").await, 0);
    })
    .await;
}

/// Parts that say that another number of places refers to them than do.
const MISCOUNTED: &str = "SELECT COUNT(*) FROM blobs b WHERE b.kind = 'pool' AND b.refs <> \
    (SELECT COUNT(*) FROM trace_members m WHERE m.project_id = b.project_id AND m.pool_blob_id = b.id)";

/// Does something in four places at the same time, each time hours after all the others:
/// whatever one of them has begun, the next one takes over immediately.
async fn at_once<F: Future<Output = i64> + Send + 'static>(
    stores: &[Arc<Store>; 2],
    clock: &Arc<AtomicI64>,
    work: impl Fn(Arc<Store>, Timestamp) -> F + Clone + Send + 'static,
) -> i64 {
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (store, clock, work) = (Arc::clone(&stores[worker % 2]), Arc::clone(clock), work.clone());
            tokio::spawn(async move {
                let mut done = 0;
                for _ in 0..4 {
                    let now = Timestamp(clock.fetch_add(60 * 60 * 1000, Ordering::SeqCst));
                    done += work(Arc::clone(&store), now).await;
                }
                done
            })
        })
        .collect();
    let mut done = 0;
    for worker in workers {
        done += worker.await.expect("work");
    }
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_a_slow_batch_over_lets_go_of_its_parts_no_second_time() {
    const GOING: i64 = 6;
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let ctx = state.background();
        let stores = [Arc::new(store(database).await), Arc::new(store(database).await)];
        let store = &stores[0];
        let [app, vendor, font] = [50, 51, 52].map(|seed| noise(seed, 66_000));
        let trace = |seed| {
            zip(&[
                ("test.trace", &noise(seed, 2_000)),
                ("resources/app.js", &app),
                ("resources/vendor.js", &vendor),
                ("resources/font.ttf", &font),
            ])
        };
        let stays = trace(53);
        let stays_as = upload(store, RUN, 1, &stays, time.now()).await;
        let clock = Arc::new(AtomicI64::new(START + DAY_MS));
        for round in 0..8 {
            let run = RunId(100 + round);
            let mut going = Vec::new();
            for number in 0..GOING {
                let execution = 100 + round * GOING + number;
                going.push(upload(store, run, execution, &trace(execution as u64), time.now()).await);
            }
            for run in [RUN, run] {
                let mut job = Some(PoolTraces { project: PROJECT, run, after: BlobId(0) });
                while let Some(rest) = job {
                    job = pool_traces(&ctx, rest, time.now()).await.expect("done");
                }
            }
            assert_eq!(
                number(store, "SELECT COUNT(*) FROM blobs WHERE own_size IS NOT NULL").await,
                GOING + 1
            );
            let gone = if round % 2 == 0 {
                for blob in going {
                    release(store, blob, time.now()).await;
                }
                at_once(&stores, &clock, |store, now| async move {
                    let swept = collect::collect(&store, 0, now, 100).await.expect("collected");
                    swept.deleted as i64
                })
                .await
            } else {
                let mut session = store.db().begin().await.expect("a transaction");
                let new = NewReceipt {
                    project: Some(PROJECT),
                    target_kind: "run",
                    target_id: run.get(),
                    label: "#1",
                    reason: "user",
                    requested_by: None,
                    runs: 0,
                    restorable_until: None,
                };
                let receipt = deletions::create(&mut session, &new, time.now()).await.expect("a receipt");
                for blob in going {
                    freeing::release_for(&mut session, PROJECT, blob, 1, receipt, time.now())
                        .await
                        .expect("released");
                }
                session.commit().await.expect("committed");
                let gone = at_once(&stores, &clock, move |store, now| async move {
                    let freed = freeing::free(&store, receipt, now, 100).await.expect("freed");
                    freed.map_or(0, |freed| freed.objects)
                })
                .await;
                // So do the objects that they were before, though others keep theirs for an hour.
                let before = unclaimed::free(store, receipt, 100).await.expect("freed");
                assert_eq!(before.deleted as i64, GOING, "round {round}");
                gone
            };
            assert_eq!(gone, GOING, "each is counted by who deleted it, in round {round}");
            assert_eq!(number(store, MISCOUNTED).await, 0, "round {round}");
            reads_as(store, stays_as, &stays).await;
        }
    })
    .await;
}

#[tokio::test]
async fn traces_whose_bytes_are_missing_or_damaged_do_not_keep_the_others_waiting() {
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let (store, ctx, now) = (state.store(), state.background(), time.now());
        let trace =
            |seed| zip(&[("test.trace", &noise(seed, 500)), ("resources/app.js", &noise(40, 150_000))]);
        let mut blobs = Vec::new();
        for seed in 30..34 {
            blobs.push(upload(store, RUN, seed as i64, &trace(seed), now).await);
        }
        let mut keys = Vec::new();
        for blob in &blobs[..3] {
            keys.push(content(store, *blob).await.object().expect("one object").to_owned());
        }
        store.objects().delete(&keys[0]).await.expect("deleted");
        let put = async |key: &str, bytes| store.objects().put(key, Bytes::from(bytes)).await.expect("put");
        put(&keys[1], trace(31)[..9_000].to_vec()).await;
        let mut altered = trace(32);
        altered[75_000] ^= 1;
        put(&keys[2], altered).await;

        let job = PoolTraces { project: PROJECT, run: RUN, after: BlobId(0) };
        assert!(pool_traces(&ctx, job, now).await.expect("done").is_none());
        assert_eq!(number(store, "SELECT COUNT(*) FROM blobs WHERE own_size IS NOT NULL").await, 1);
        reads_as(store, blobs[3], &trace(33)).await;
    })
    .await;
}

#[tokio::test]
async fn traces_of_every_version_stay_what_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/traces");
    let mut traces = Vec::new();
    for version in ["playwright-1.40", "playwright-1.46", "playwright-1.65"] {
        for entry in std::fs::read_dir(root.join(version)).expect("traces") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "zip") {
                traces.push(std::fs::read(path).expect("a trace"));
            }
        }
    }
    assert!(traces.len() > 20);
    // What an application loads, in front of the trace as a recorder writes it.
    let bundle = noise(5, 120_000);
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let (store, ctx, now) = (state.store(), state.background(), time.now());
        let mut blobs = Vec::new();
        for (at, trace) in traces.iter().enumerate() {
            blobs.push(upload(store, RUN, 1 + at as i64, trace, now).await);
            let with_bundle = zip(&[("resources/app.js", &bundle), ("inner.zip", trace)]);
            upload(store, RUN, 1000 + at as i64, &with_bundle, now).await;
        }
        let mut job = Some(PoolTraces { project: PROJECT, run: RUN, after: BlobId(0) });
        while let Some(rest) = job {
            job = pool_traces(&ctx, rest, now).await.expect("done");
        }
        for (blob, trace) in blobs.iter().zip(&traces) {
            reads_as(store, *blob, trace).await;
        }
        let apart = number(store, "SELECT COUNT(*) FROM blobs WHERE own_size IS NOT NULL").await;
        assert!(apart as usize >= traces.len(), "{apart} of {} share the bundle", traces.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_archive_however_broken_is_read_differently_or_stops_the_others() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let time = Time::new();
    let state = state(&database, &time, &[]).await;
    let handle = tokio::runtime::Handle::current();
    let sound = zip(&[
        ("test.trace", &noise(20, 500)),
        ("resources/app.js", &noise(21, 70_000)),
        ("resources/font.ttf", &noise(22, 9_000)),
    ]);
    let mut next = 0;
    let mut check = |store: &Store, ctx: &callboard_query::Context, bytes: &[u8]| {
        next += 1;
        let run = RunId(100 + next);
        handle.block_on(async {
            let now = Timestamp(START);
            let blob = upload(store, run, next, bytes, now).await;
            pool_traces(ctx, PoolTraces { project: PROJECT, run, after: BlobId(0) }, now)
                .await
                .expect("done");
            reads_as(store, blob, bytes).await;
        });
    };
    tokio::task::block_in_place(|| {
        let (store, ctx) = (state.store(), state.background());
        let end = sound.len();
        // Directory and end record are where an archive says what it is.
        let telling = 320_usize;
        let cases = (proptest::collection::vec((0..telling, any::<u8>()), 1..6), 0..telling);
        let mut runner =
            TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
        let check = std::cell::RefCell::new(&mut check);
        let outcome = runner.run(&cases, |(flips, cut)| {
            let mut bytes = sound.clone();
            for (from_end, value) in flips {
                bytes[end - 1 - from_end] = value;
            }
            if cut % 4 == 0 {
                bytes.truncate(end - cut / 4);
            }
            (check.borrow_mut())(store, &ctx, &bytes);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    });
}
