//! Content is kept as long as something refers to it, and not much longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callboard_domain::ids::{BlobId, PackId, ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_fn_jobs::{Budget, run_due};
use callboard_query::deletions::DeleteTarget;
use callboard_store::blobs::{self, BlobRow, IN_MEMORY_BYTES, collect, freeing};
use callboard_store::deletions::{self, DeletionState, NewReceipt, ObjectCount};
use callboard_store::evidence::{self, PackWriter};
use callboard_store::{Store, StoreError, jobs, reports};
use callboard_test_support::for_each_database;
use futures::stream;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

use crate::support::{START, Time, state, store};

const GRACE_MS: i64 = 900_000;
const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;

async fn publish(store: &Store, project: ProjectId, content: &str, now: Timestamp) -> BlobRow {
    let body = stream::iter([Ok(Bytes::from(content.to_owned()))]);
    let staged = blobs::stage(store, project.get(), body, store.memory().room(IN_MEMORY_BYTES), now)
        .await
        .expect("staged");
    staged.publish(store, project, "text/plain", now).await.expect("published")
}

async fn link(store: &Store, project: ProjectId, blob: BlobId) -> Result<(), StoreError> {
    let mut session = store.db().begin().await?;
    blobs::refer(&mut session, project, blob).await?;
    session.commit().await
}

async fn unlink(store: &Store, project: ProjectId, blob: BlobId, now: Timestamp) {
    let mut session = store.db().begin().await.expect("a transaction");
    blobs::release(&mut session, project, blob, now).await.expect("done");
    session.commit().await.expect("committed");
}

async fn is_there(store: &Store, key: &str) -> bool {
    store.objects().size(key).await.expect("done").is_some()
}

/// One thing that happens to one of a few contents.
#[derive(Debug, Clone, Copy)]
enum Step {
    Upload(usize),
    Link(usize),
    Unlink(usize),
    Collect,
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = || 0..3_usize;
    let step = prop_oneof![
        3 => content().prop_map(Step::Upload),
        4 => content().prop_map(Step::Link),
        4 => content().prop_map(Step::Unlink),
        3 => Just(Step::Collect),
        3 => prop_oneof![Just(60_000), Just(GRACE_MS), Just(DAY_MS)].prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What should be stored of one content.
#[derive(Debug, Default)]
struct Content {
    uploaded: Option<BlobRow>,
    links: Vec<BlobRow>,
}

async fn play(store: &Store, project: ProjectId, steps: &[Step]) {
    let mut now = Timestamp(START);
    let mut contents: [Content; 3] = Default::default();
    let text = |number: usize| format!("content {number}");
    for step in steps {
        match *step {
            Step::Upload(number) => {
                contents[number].uploaded = Some(publish(store, project, &text(number), now).await);
            }
            Step::Link(number) => {
                let content = &mut contents[number];
                let Some(blob) = content.uploaded.take() else { continue };
                match link(store, project, blob.id).await {
                    Ok(()) => content.links.push(blob),
                    // The upload took longer than its content was kept.
                    Err(StoreError::ContentGone) => {
                        assert!(!content.links.iter().any(|link| link.id == blob.id))
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Unlink(number) => {
                if let Some(blob) = contents[number].links.pop() {
                    unlink(store, project, blob.id, now).await;
                }
            }
            Step::Collect => {
                collect::condemn_pending(store, now, 100).await.expect("done");
                let swept = collect::collect(store, GRACE_MS, now, 100).await.expect("done");
                assert_eq!(swept.refused, 0);
            }
            Step::Wait(ms) => now = Timestamp(now.millis() + ms),
        }
        for blob in contents.iter().flat_map(|content| &content.links) {
            assert!(is_there(store, &blob.key).await, "{step:?} deleted {}", blob.key);
        }
    }
    // Without references everything goes in the end.
    for content in contents {
        let keys: Vec<String> =
            content.links.iter().chain(&content.uploaded).map(|blob| blob.key.clone()).collect();
        for blob in content.links {
            unlink(store, project, blob.id, now).await;
        }
        let later = Timestamp(now.millis() + DAY_MS);
        collect::condemn_pending(store, later, 100).await.expect("done");
        collect::collect(store, GRACE_MS, Timestamp(later.millis() + GRACE_MS), 100).await.expect("done");
        for key in keys {
            assert!(!is_there(store, &key).await, "{key} was left");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sequence_of_events_deletes_what_is_referred_to() {
    for_each_database(async |database| {
        let store = store(database).await;
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            let mut runner =
                TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
            let project = AtomicI64::new(1);
            let outcome = runner.run(&steps(), |steps| {
                let project = ProjectId(project.fetch_add(1, Ordering::SeqCst));
                handle.block_on(play(&store, project, &steps));
                Ok(())
            });
            if let Err(error) = outcome {
                panic!("{error}");
            }
        });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collectors_and_uploads_at_the_same_time_lose_nothing() {
    const PROJECT: ProjectId = ProjectId(1);
    const NOW: Timestamp = Timestamp(START);
    for_each_database(async |database| {
        let stores = [Arc::new(store(database).await), Arc::new(store(database).await)];
        let (stop, stopped) = tokio::sync::watch::channel(false);
        // Every batch of one collector is immediately taken over by the other.
        let clock = Arc::new(AtomicI64::new(START + DAY_MS));
        let collectors: Vec<_> = stores
            .iter()
            .map(|store| {
                let (store, stopped, clock) = (Arc::clone(store), stopped.clone(), Arc::clone(&clock));
                tokio::spawn(async move {
                    while !*stopped.borrow() {
                        let now = Timestamp(clock.fetch_add(HOUR_MS, Ordering::SeqCst));
                        collect::collect(&store, 0, now, 3).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = Arc::clone(&stores[writer % 2]);
                tokio::spawn(async move {
                    let mut linked = 0;
                    for round in 0..25 {
                        let blob = publish(&store, PROJECT, &format!("shared {}", round % 2), NOW).await;
                        match link(&store, PROJECT, blob.id).await {
                            Ok(()) => {
                                linked += 1;
                                assert!(
                                    is_there(&store, &blob.key).await,
                                    "round {round} of writer {writer}"
                                );
                                unlink(&store, PROJECT, blob.id, NOW).await;
                            }
                            Err(StoreError::ContentGone) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    linked
                })
            })
            .collect();
        let mut linked = 0;
        for writer in writers {
            linked += writer.await.unwrap();
        }
        stop.send(true).unwrap();
        for collector in collectors {
            collector.await.unwrap();
        }
        assert!(linked > 0);
    })
    .await;
}

#[tokio::test]
async fn what_a_crash_left_is_swept_a_day_later() {
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let store = state.store();
        let (project, run) = (ProjectId(1), RunId(1));
        // Bytes in staging, bytes under their final key, a pack, half a report.
        let large = stream::iter((0..40).map(|_| Ok(Bytes::from(vec![7_u8; 64 * 1024]))));
        let staged =
            blobs::stage(store, 1, large, store.memory().room(IN_MEMORY_BYTES), time.now()).await.unwrap();
        let published = publish(store, project, "never linked", time.now()).await;
        let mut packs = Vec::new();
        for _ in 0..2 {
            let mut session = store.db().begin().await.unwrap();
            let announced = evidence::announce(&mut session, project, run, time.now()).await.unwrap();
            session.commit().await.unwrap();
            packs.push(PackWriter::default().filled().write(store, announced).await.unwrap());
        }
        let [left, kept] = <[_; 2]>::try_from(packs).unwrap();
        let mut session = store.db().begin().await.unwrap();
        evidence::record(&mut session, project, run, &kept, time.now()).await.unwrap();
        let begun = reports::begin(&mut session, project, run, "html", "Report", &[1; 32], time.now());
        let begun = begun.await.unwrap().expect("nobody else is at it");
        session.commit().await.unwrap();
        let page = format!("{}/data/a#1.html", begun.prefix);
        store.objects().put(&page, Bytes::from_static(b"page")).await.unwrap();
        drop(staged);
        // Killed while it wrote: a folder has that beside its place.
        let [staged] = <[String; 1]>::try_from(entries(database, "staging")).unwrap();
        let unfinished = format!("{staged}#1");
        std::fs::rename(&staged, &unfinished).unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        std::fs::File::options().write(true).open(&unfinished).unwrap().set_modified(long_ago).unwrap();
        let large = database.folder().join("objects").join(&begun.prefix).join("data/video.webm#12");
        std::fs::write(&large, b"half of it").unwrap();

        let pack = |pack: PackId| format!("project-1/packs/1/{pack}.zst");
        let lost = [published.key.as_str(), &pack(left.id), &page];
        for hours in [23, 1, 1, 1, 1] {
            time.advance_ms(hours * HOUR_MS);
            run_due(&state, Budget::new(Duration::from_secs(20))).await.unwrap();
            if hours == 23 {
                for key in lost {
                    assert!(is_there(store, key).await, "{key} went too soon");
                }
                assert_eq!(entries(database, "staging").len(), 1);
            }
        }
        for key in lost {
            assert!(!is_there(store, key).await, "{key} was left");
        }
        assert_eq!(entries(database, "staging"), Vec::<String>::new());
        assert!(!large.exists());
        assert!(is_there(store, &pack(kept.id)).await);
        // Whoever was away for so long cannot refer to what is gone.
        let mut session = store.db().begin().await.unwrap();
        let late = evidence::record(&mut session, project, run, &left, time.now()).await;
        assert!(matches!(late, Err(StoreError::ContentGone)));
    })
    .await;
}

#[tokio::test]
async fn a_deletion_leaves_what_an_upload_brought_again() {
    for_each_database(async |database| {
        let time = Time::new();
        let state = state(database, &time, &[]).await;
        let (store, project, now) = (state.store(), ProjectId(1), time.now());
        let mut condemned = Vec::new();
        for content in ["goes", "comes and is left", "comes and stays"] {
            let blob = publish(store, project, content, now).await;
            link(store, project, blob.id).await.unwrap();
            condemned.push(blob);
        }
        let mut session = store.db().begin().await.unwrap();
        let new = NewReceipt {
            project: Some(project),
            target_kind: "run",
            target_id: 1,
            label: "#1",
            reason: "user",
            requested_by: None,
            runs: 0,
            restorable_until: None,
        };
        let id = deletions::create(&mut session, &new, now).await.unwrap();
        let mut receipt = deletions::get(&mut session, id).await.unwrap().unwrap();
        for blob in &condemned {
            let released = freeing::release_for(&mut session, project, blob.id, 1, id, now).await.unwrap();
            receipt.objects.add(1, released.bytes);
        }
        deletions::save(&mut session, &receipt).await.unwrap();
        let job = DeleteTarget { receipt: id.get(), further: None };
        jobs::enqueue(&mut session, "deletion:1", Some(project), &job, now).await.unwrap();
        session.commit().await.unwrap();

        // One upload breaks off before its row; one comes to its end.
        publish(store, project, "comes and is left", now).await;
        let kept = publish(store, project, "comes and stays", now).await;
        link(store, project, kept.id).await.unwrap();
        run_due(&state, Budget::new(Duration::from_secs(20))).await.unwrap();

        let receipt = deletions::get(&mut store.db().read().await.unwrap(), id).await.unwrap().unwrap();
        assert_eq!(receipt.state, DeletionState::Complete, "{receipt:?}");
        let bytes = |blobs: &[BlobRow]| blobs.iter().map(|blob| i64::try_from(blob.size).unwrap()).sum();
        assert_eq!(receipt.freed, ObjectCount { count: 1, bytes: bytes(&condemned[..1]) });
        assert_eq!(receipt.objects, receipt.freed);
        assert_eq!(receipt.kept_shared, ObjectCount { count: 2, bytes: bytes(&condemned[1..]) });
        assert!(!is_there(store, &condemned[0].key).await);
        assert!(is_there(store, &kept.key).await);

        // What nobody refers to in the end is collected as if there had been no deletion.
        let later = Timestamp(now.millis() + DAY_MS);
        collect::condemn_pending(store, later, 10).await.unwrap();
        collect::collect(store, GRACE_MS, Timestamp(later.millis() + GRACE_MS), 10).await.unwrap();
        assert!(!is_there(store, &condemned[1].key).await);
        assert!(is_there(store, &kept.key).await);
    })
    .await;
}

/// Names of the files below a folder of the object store.
fn entries(database: &callboard_test_support::TestDatabase, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![database.folder().join("objects").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}
