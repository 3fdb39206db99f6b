//! Uploads to the bucket itself. The bucket is a real S3 API that verifies
//! signatures.

use callboard_store::Backend;
use callboard_test_support::form::report_archive;
use callboard_test_support::{Runner, S3Server, Settings, TestDatabase};
use serde_json::json;

use super::{Uploader, counts, link, planned, read, refusal};
use crate::builders::attempt;
use crate::live::{Feeder, start};

const TRACE: &[u8] = b"PK\x03\x04 a trace that is sent to the bucket";

/// A service over a bucket, in a process of its own: a provider's credentials stand in its environment.
pub(super) struct OnBucket {
    pub(super) service: Runner,
    pub(super) bucket: S3Server,
    /// Dropped last.
    _database: TestDatabase,
}

impl OnBucket {
    pub(super) async fn start(backend: Backend, more: &[(&str, &str)]) -> Self {
        let bucket = S3Server::start().await.expect("a bucket");
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let mut settings: Settings = bucket.settings();
        settings.push(("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()));
        settings.push(("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()));
        settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let service = Runner::start(&settings).await.expect("a service");
        Self { service, bucket, _database: database }
    }

    /// A run with a failed test, and an uploader with its token.
    pub(super) async fn run(&self) -> (Feeder, Uploader) {
        let feeder = start(self.service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let uploader = Uploader::token(&feeder.client, feeder.run, &feeder.token);
        (feeder, uploader)
    }

    /// Keys of staged objects.
    pub(super) fn staged(&self) -> Vec<String> {
        let keys = self.bucket.keys().expect("keys").into_iter();
        keys.filter(|key| key.contains("/staging/") && !key.contains(".metadata")).collect()
    }
}

#[tokio::test]
async fn bytes_go_to_the_bucket_and_are_verified_before_anybody_sees_them() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let on = OnBucket::start(backend, &[]).await;
        let (feeder, uploader) = on.run().await;
        let ticket = uploader.ticket("trace", TRACE).await;
        assert!(ticket.url.starts_with(on.bucket.endpoint()), "{}", ticket.url);
        assert!(
            ticket.url.contains("X-Amz-Expires=900") && ticket.url.contains("/staging/"),
            "{}",
            ticket.url
        );
        // An address is for one object, for writing, and for a quarter of an hour.
        for (one, other) in [("X-Amz-Expires=900", "X-Amz-Expires=90000"), ("/staging/", "/blobs/")] {
            let mut altered = ticket.clone();
            altered.url = altered.url.replacen(one, other, 1);
            assert_eq!(altered.put_to_bucket(TRACE).await.status.as_u16(), 403, "{other}");
        }
        let item = ticket.linked(link("trace", "pays", 0));
        assert_eq!(uploader.commit(item.clone()).await["status"], "not_uploaded");

        for (bytes, status) in [
            (&b"PK\x03\x04 a trace that is sent to the buckeT"[..], "hash_mismatch"),
            (b"PK", "size_mismatch"),
        ] {
            assert_eq!(ticket.put_to_bucket(bytes).await.status.as_u16(), 200);
            let refused = uploader.commit(item.clone()).await;
            assert_eq!(refused["status"], status, "{refused}");
            assert_eq!(counts(&feeder.client, feeder.run).await, (0, 0));
            assert_eq!(uploader.commit(item.clone()).await["status"], "not_uploaded", "nothing of it stays");
        }
        assert_eq!(ticket.put_to_bucket(TRACE).await.status.as_u16(), 200);
        let linked = uploader.commit(item.clone()).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        assert_eq!(read(&feeder.client, &linked).await, TRACE);
        assert_eq!(on.staged(), Vec::<String>::new());

        // The address still works for a while; what is stored does not change by that.
        assert_eq!(
            ticket.put_to_bucket(b"PK something else that a client may have").await.status.as_u16(),
            200
        );
        let again = uploader.commit(item).await;
        assert_eq!((&again["status"], &again["fileId"]), (&json!("duplicate"), &linked["fileId"]));
        assert_eq!(read(&feeder.client, &linked).await, TRACE);

        // Who cannot reach the bucket sends the bytes through the service.
        let other = uploader.ticket("attachment", b"a note").await;
        other.put("a note").await.success().expect("received");
        let linked = uploader.commit(other.linked(link("attachment", "pays", 0))).await;
        assert_eq!(linked["status"], "linked", "{linked}");

        let archive = report_archive(&[("index.html", b"<h1>Report</h1>")]).expect("an archive");
        let report = uploader.ticket("report", &archive).await;
        report.put_to_bucket(&archive).await;
        let linked = uploader.commit(report.linked(json!({ "type": "report", "reportType": "html" }))).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        let shown = feeder.shown().await;
        assert_eq!(shown["reports"][0]["label"], "HTML Report", "{shown}");
    }
}

#[tokio::test]
async fn what_takes_long_to_verify_is_verified_by_a_job() {
    const MIB: usize = 1 << 20;
    let on = OnBucket::start(Backend::Sqlite, &[("SERVICE_UPLOAD_MAX_BYTES", "1073741824")]).await;
    let (feeder, uploader) = on.run().await;
    let mut large = b"PK\x03\x04".to_vec();
    large.resize(257 * MIB, 3);
    let good = uploader.ticket("attachment", &large).await;
    assert!(good.url.contains("X-Amz-Expires=3600"), "{}", good.url);
    assert_eq!(good.put_to_bucket(&large).await.status.as_u16(), 200);
    let bad = uploader.ticket("trace", &large).await;
    *large.last_mut().expect("a byte") = 4;
    assert_eq!(bad.put_to_bucket(&large).await.status.as_u16(), 200);
    let good = good.linked(link("attachment", "pays", 0));
    let bad = bad.linked(link("trace", "pays", 0));
    // Content that the project has needs no bytes any more.
    for (item, expected) in [(bad, "hash_mismatch"), (good, "linked")] {
        let done = async {
            loop {
                let done = uploader.commit(item.clone()).await;
                if done["status"] != "pending" {
                    return done;
                }
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        };
        assert_eq!(uploader.commit(item.clone()).await["status"], "pending");
        let done = tokio::time::timeout(std::time::Duration::from_secs(120), done).await.expect("verified");
        assert_eq!(done["status"], expected, "{done}");
    }
    assert_eq!(counts(&feeder.client, feeder.run).await, (0, 1));
}

#[tokio::test]
async fn an_operator_can_keep_clients_away_from_the_bucket() {
    let on = OnBucket::start(Backend::Sqlite, &[("SERVICE_UPLOADS_DIRECT", "false")]).await;
    let (feeder, uploader) = on.run().await;
    let plan = uploader.plan(&[planned("trace", TRACE)]).await;
    assert_eq!(plan[0]["upload"]["direct"], false);
    let ticket = uploader.ticket("trace", TRACE).await;
    assert_eq!(ticket.url, format!("/api/uploads/{}", ticket.ticket));
    // More than one part of an object.
    let large = vec![9; 12_000_000];
    let parts = uploader.ticket("attachment", &large).await;
    parts.put(large.clone()).await.success().expect("received");
    let linked = uploader.commit(parts.linked(link("attachment", "pays", 0))).await;
    assert_eq!(linked["status"], "linked", "{linked}");
    assert_eq!(read(&feeder.client, &linked).await, large);
    assert_eq!(refusal(&parts.put("x").await), (409, "ticket_used".to_owned()));
}
