//! A bucket that refuses or breaks off, and processes that are killed: what was
//! sent is not lost, and nothing half-written is visible.

use callboard_store::Backend;
use callboard_test_support::{BucketFault, for_each_service};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::deletion::{execute, objects};
use super::to_bucket::OnBucket;
use super::{Uploader, counts, link, read, refusal};
use crate::builders::attempt;
use crate::live::start;

#[tokio::test]
async fn a_bucket_that_fails_is_asked_again_and_nothing_is_lost() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let on = OnBucket::start(backend, &[]).await;
        let (feeder, uploader) = on.run().await;
        let bytes = [b"PK\x03\x04".to_vec(), vec![5; 3_000_000]].concat();
        let ticket = uploader.ticket("trace", &bytes).await;
        let item = ticket.linked(link("trace", "pays", 0));

        // Refused while the client sends: it sends again.
        on.bucket.fail(Method::PUT, "/staging/", 1, BucketFault::Unavailable);
        assert_eq!(ticket.put_to_bucket(&bytes).await.status.as_u16(), 503);
        assert_eq!(ticket.put_to_bucket(&bytes).await.status.as_u16(), 200);

        // Broken off while the service reads: it goes on where it was.
        on.bucket.fail(Method::GET, "/staging/", 1, BucketFault::CutAfter(60_000));
        let linked = uploader.commit(item.clone()).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        assert_eq!(read(&feeder.client, &linked).await, bytes);

        // Down for longer than the service waits: the client is told to come back, and finds its bytes.
        let ticket = uploader.ticket("attachment", b"a note").await;
        assert_eq!(ticket.put_to_bucket(b"a note").await.status.as_u16(), 200);
        let item = ticket.linked(link("attachment", "pays", 0));
        on.bucket.fail(Method::HEAD, "/staging/", 100, BucketFault::Unavailable);
        let refused = uploader.call("commit", json!({ "items": [item] })).await;
        assert_eq!(refusal(&refused), (503, "storage_unavailable".to_owned()));
        assert!(!refused.header("retry-after").is_empty());
        on.bucket.heal();
        assert_eq!(uploader.commit(item).await["status"], "linked");
        assert_eq!(counts(&feeder.client, feeder.run).await, (1, 1));
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing_and_may_be_repeated() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let uploader = Uploader::token(&feeder.client, feeder.run, &feeder.token);
        let bytes = vec![6; 8_000_000];
        let ticket = uploader.ticket("attachment", &bytes).await;
        let address = service.base_url().trim_start_matches("http://");
        let mut cut = TcpStream::connect(address).await.expect("a connection");
        let head = format!(
            "PUT /api/uploads/{} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n",
            ticket.ticket,
            bytes.len()
        );
        cut.write_all(head.as_bytes()).await.expect("sent");
        cut.write_all(&bytes[..6_000_000]).await.expect("sent");
        cut.shutdown().await.expect("closed");
        let mut answer = Vec::new();
        let _ = cut.read_to_end(&mut answer).await;
        drop(cut);
        let item = ticket.linked(link("attachment", "pays", 0));
        assert_eq!(uploader.commit(item.clone()).await["status"], "not_uploaded");
        assert!(objects(service, "staging").is_empty(), "{:?}", objects(service, "staging"));
        ticket.put(bytes.clone()).await.success().expect("received");
        let linked = uploader.commit(item).await;
        assert_eq!(read(service.client(), &linked).await, bytes);
    })
    .await;
}

#[tokio::test]
async fn a_commit_that_was_killed_half_way_is_done_by_the_next_one() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "failed", 0), attempt("looks", "failed", 0)]).await;
        let uploader = Uploader::token(&feeder.client, feeder.run, &feeder.token);
        let one = uploader.ticket("attachment", b"one").await;
        let two = uploader.ticket("attachment", b"two").await;
        for (ticket, bytes) in [(&one, "one"), (&two, "two")] {
            ticket.put(bytes).await.success().expect("received");
        }
        // Killed after the object was written and before the service noted that.
        execute(service, "UPDATE upload_tickets SET state = 'open' WHERE state = 'received'").await;
        let linked = uploader.commit(one.linked(link("attachment", "pays", 0))).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        // Killed after the bytes became content and before the service noted that: they are staged still.
        let staged = objects(service, "staging");
        let [staged] = &staged[..] else { panic!("{staged:?}") };
        let kept = std::fs::read(staged).expect("staged bytes");
        assert_eq!(uploader.commit(two.item()).await["status"], "stored");
        std::fs::write(staged, kept).expect("staged again");
        execute(service, "UPDATE upload_tickets SET state = 'received' WHERE state = 'stored'").await;
        let linked = uploader.commit(two.linked(link("attachment", "looks", 0))).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        assert_eq!(read(service.client(), &linked).await, b"two");
    })
    .await;
}
