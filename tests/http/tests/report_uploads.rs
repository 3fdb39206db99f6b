//! Uploads of reports that take long, meet each other, or end badly.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, ReportId, RunId};
use callboard_domain::time::{Day, Timestamp};
use callboard_fn_jobs::{Budget, run_due};
use callboard_ingest::{AtOnce, IncomingReport, ReportOutcome, UnpackReport};
use callboard_query::retention::{self, Redate};
use callboard_store::blobs::{self, IN_MEMORY_BYTES};
use callboard_store::reports::{self, BegunReport};
use callboard_store::retention::due;
use callboard_store::rollups::{self, RunContribution};
use callboard_store::{Db, Session, StoreError, runs, unclaimed};
use callboard_test_support::form::report_archive;
use callboard_test_support::{Answer, Client, Form, Service, for_each_service};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::builders::{attempt, passing, run};
use crate::live::{context, later, start};
use crate::rows::{settled, texts};

const STATES: &str = "SELECT state FROM reports";

/// Has retention date what comes, far ahead: by default everything is kept without a date.
async fn date_files(client: &Client) {
    let days = 36_500;
    let policy = json!({ "files": { "reportDays": days, "attachment": { "failedDays": days } } });
    let request = client.request(Method::PATCH, "/api/settings/retention").json(&policy);
    Answer::send(request).await.and_then(|answer| answer.success()).expect("set");
}

async fn attach(client: &Client, run: i64, archive: &[u8]) -> Answer {
    let form = Form::new()
        .field("testRunId", run.to_string())
        .field("projectName", "shop")
        .field("testRun", r#"{"status":"already-submitted"}"#)
        .file("report_html", "html.gz", "application/gzip", archive);
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::send(request).await.expect("an answer")
}

/// A run that is over: its project and itself.
async fn submitted(service: &Service) -> (ProjectId, RunId) {
    let body = run("shop", "passed", passing(1));
    let answer = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    let id = |key: &str| answer[key].as_i64().expect("an id");
    (ProjectId(id("projectId")), RunId(id("runId")))
}

/// Returns once a connection of a PostgreSQL database waits for a lock.
async fn somebody_waits(service: &Service) {
    tokio::time::timeout(Duration::from_secs(30), a_lock_is_waited_for(service)).await.expect("nobody waits");
}

async fn a_lock_is_waited_for(service: &Service) {
    let waiting = "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while texts(service, waiting).await.is_empty() {
        tokio::task::yield_now().await;
    }
}

fn small_archive() -> Vec<u8> {
    report_archive(&[("index.html", b"<h1>Report</h1>"), ("data.txt", b"data")]).expect("an archive")
}

/// Begins a report as another process would that was sent the same archive.
async fn begin_elsewhere(service: &Service, (project, run): (ProjectId, RunId)) -> Option<BegunReport> {
    let sha256 = Sha256::digest(small_archive()).into();
    let mut session = service.state().store().db().begin().await.expect("a transaction");
    let now = service.state().now();
    let begun = reports::begin(&mut session, project, run, "html", "HTML Report", &sha256, now).await;
    session.commit().await.expect("committed");
    begun.expect("asked")
}

async fn complete(service: &Service, project: ProjectId, begun: &BegunReport) -> Result<(), StoreError> {
    let store = service.state().store();
    let page = format!("{}/first.html", begun.prefix);
    store.objects().put(&page, Bytes::from_static(b"of the first")).await.expect("written");
    let mut session = store.db().begin().await.expect("a transaction");
    let now = service.state().now();
    reports::complete(&mut session, project, begun, "first.html", 12, 1, now).await?;
    session.commit().await
}

async fn wait_until(is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it came about");
}

/// Deletes a run, and returns once nothing of it is left.
async fn delete(service: &Service, run: RunId) {
    let request = service.client().request(Method::DELETE, &format!("/api/test-runs/{run}?now=true"));
    let deleted = service.client().send(request).await.expect("an answer").success().expect("deleted");
    let receipt = format!("/api/deletions/{}", deleted["receipt"]["id"]);
    wait_until(async || {
        run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
        service.client().json(&receipt).await.expect("a receipt")["state"] == "complete"
    })
    .await;
}

#[tokio::test]
async fn a_report_is_stored_though_its_client_hangs_up_and_sending_it_again_adds_nothing() {
    for_each_service(async |service| {
        let (project, run) = submitted(service).await;
        let names: Vec<String> = (0..1_500).map(|number| format!("data/{number}.txt")).collect();
        let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"text"[..])).collect();
        let archive = report_archive(&entries).expect("an archive");
        let (client, sent) = (service.client().clone(), archive.clone());
        let first = tokio::spawn(async move { attach(&client, run.get(), &sent).await });
        wait_until(async || !texts(service, STATES).await.is_empty()).await;
        first.abort();
        wait_until(async || texts(service, STATES).await == ["ready"]).await;
        let again = attach(service.client(), run.get(), &archive).await.success().expect("known");
        assert_eq!(again["reports"].as_array().map(Vec::len), Some(1), "{again}");
        let folder = format!("objects/project-{project}/reports/{run}");
        let stored = std::fs::read_dir(service.database().folder().join(folder)).expect("the reports");
        let stored: Vec<PathBuf> = stored.map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(stored.len(), 1, "{stored:?}");
        assert_eq!(std::fs::read_dir(stored[0].join("data")).expect("its files").count(), names.len());
        assert_eq!(texts(service, "SELECT key FROM unclaimed_objects").await, Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn an_upload_waits_for_another_one_of_the_same_archive() {
    for_each_service(async |service| {
        let (project, run) = submitted(service).await;
        let begun = begin_elsewhere(service, (project, run)).await.expect("begun");
        let client = service.client().clone();
        let mut second = tokio::spawn(async move { attach(&client, run.get(), &small_archive()).await });
        let early = tokio::time::timeout(Duration::from_millis(1_500), &mut second).await;
        assert!(early.is_err(), "it began anew: {early:?}");
        complete(service, project, &begun).await.expect("stored");
        let answer = second.await.expect("ran").success().expect("known");
        assert_eq!(answer["reports"][0]["path"], format!("{}/first.html", begun.prefix));
    })
    .await;
}

#[tokio::test]
async fn an_upload_that_fell_silent_is_succeeded_and_does_no_harm_when_it_wakes() {
    for_each_service(async |service| {
        let (project, run) = submitted(service).await;
        let silent = begin_elsewhere(service, (project, run)).await.expect("begun");
        assert_eq!(begin_elsewhere(service, (project, run)).await, None, "one at a time");
        crate::store::sql(service, "UPDATE reports SET created_at = created_at - 60001").await;
        let answer = attach(service.client(), run.get(), &small_archive()).await.success().expect("stored");
        let late = complete(service, project, &silent).await;
        assert!(matches!(late, Err(StoreError::ContentGone)), "{late:?}");
        let mut session = service.state().store().db().begin().await.expect("a transaction");
        let now = service.state().now();
        reports::discard(&mut session, project, &silent, now).await.expect("left to the sweep");
        session.commit().await.expect("committed");
        unclaimed::sweep(service.state().store(), later(service, 2 * 60 * 60 * 1000), 10)
            .await
            .expect("swept");
        let page = answer["reports"][0]["path"].as_str().expect("a path");
        let path = format!("/api/files/{}", page.replace("index.html", "data.txt"));
        assert_eq!(service.client().get(&path).await.expect("an answer").text(), "data");
        let objects = service.state().store().objects();
        let is_swept = objects.is_empty_below(&format!("{}/", silent.prefix)).await.expect("asked");
        assert!(is_swept, "what the silent one wrote was left");
    })
    .await;
}

async fn incoming(service: &Service) -> IncomingReport {
    let body = futures::stream::iter([Ok(Bytes::from(small_archive()))]);
    let (store, now) = (service.state().store(), service.state().now());
    let staged =
        blobs::stage(store, 1, body, store.memory().room(IN_MEMORY_BYTES), now).await.expect("staged");
    IncomingReport { kind: "html".to_owned(), label: None, file_name: "html.gz".to_owned(), staged }
}

#[tokio::test]
async fn a_report_may_hold_a_log_that_repeats_itself_and_not_be_made_to_fill_a_disk() {
    for_each_service(async |service| {
        let (_, run) = submitted(service).await;
        let log = vec![b'x'; 3 << 20];
        let page: Vec<u8> =
            (0_u32..16 << 10).flat_map(|n| Sha256::digest(n.to_le_bytes())[..4].to_vec()).collect();
        let whole = report_archive(&[("data/1.txt", &log), ("index.html", &page)]).expect("an archive");
        let answer = attach(service.client(), run.get(), &whole).await.success().expect("an answer");
        assert_eq!(answer["reports"].as_array().map(Vec::len), Some(1), "{answer}");
        let entry =
            answer["reports"][0]["path"].as_str().expect("a path").replace("index.html", "data/1.txt");
        let stored = service.client().get(&format!("/api/files/{entry}")).await.expect("an answer");
        assert_eq!((stored.status.as_u16(), stored.body.len()), (200, log.len()));

        let bomb = report_archive(&[("data/1.txt", &log), ("index.html", b"")]).expect("an archive");
        let answer = attach(service.client(), run.get(), &bomb).await.success().expect("an answer");
        assert_eq!(answer["reports"], json!([]), "{answer}");
        assert_eq!(answer["warnings"][0]["code"], "unsafe_report", "{answer}");
    })
    .await;
}

/// More files than a call writes; the entry page is the last of them.
fn large_archive() -> Vec<u8> {
    let names: Vec<String> = (0..2_036).map(|number| format!("data/{number}.txt")).collect();
    let mut entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
    entries.push(("index.html", b"<h1>Report</h1>"));
    report_archive(&entries).expect("an archive")
}

const DATED: &str = "SELECT state FROM reports WHERE expires_at IS NOT NULL";
const UNPACKING: &str = "SELECT payload FROM jobs WHERE kind = 'unpack_report'";

#[tokio::test]
async fn a_report_with_thousands_of_files_is_answered_at_once_and_unpacked_by_a_job() {
    for_each_service(async |service| {
        date_files(service.client()).await;
        let feeder = start(service.client(), json!({})).await;
        assert_eq!(feeder.finish_with("passed", json!({ "hasPendingUploads": true })).await, "finalizing");
        let (client, archive) = (service.client(), large_archive());
        let answer = attach(client, feeder.run, &archive).await.success().expect("received");
        assert_eq!((&answer["status"], &answer["warnings"]), (&json!("passed"), &Value::Null), "{answer}");
        let entry = answer["reports"][0]["path"].as_str().expect("a path").to_owned();
        assert!(entry.ends_with("/index.html"), "{entry}");
        let again = attach(client, feeder.run, &archive).await.success().expect("known");
        assert_eq!(again["reports"], answer["reports"]);
        let reports = format!("/api/test-runs/{}/reports", feeder.run);
        assert_eq!(client.json(&reports).await.expect("a list")["items"], json!([]), "it is not complete");
        let early = client.get(&format!("/api/files/{entry}")).await.expect("an answer");
        assert_eq!(early.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(early.json().expect("an error")["code"], "report_in_progress");

        let [job] = texts(service, UNPACKING).await.try_into().expect("one job");
        let job: UnpackReport = serde_json::from_str(&job).expect("a job");
        assert_eq!((job.written, job.entries), (2_000, 2_037));
        let (ctx, asked) = (context(service), AtomicUsize::new(0));
        let three_times = || asked.fetch_add(1, Ordering::Relaxed) < 3;
        let rest = callboard_ingest::unpack_report(&ctx, job, &three_times, service.state().now())
            .await
            .expect("worked");
        let rest = rest.expect("its time was over before the last two");
        assert_eq!(rest.written, 2_035, "some at least");
        assert_eq!(texts(service, DATED).await, Vec::<String>::new(), "what waits is not let go of");
        let done = callboard_ingest::unpack_report(&ctx, rest, &|| true, service.state().now())
            .await
            .expect("worked");
        assert!(done.is_none(), "{done:?}");
        let shown = client.json(&reports).await.expect("a list");
        assert_eq!(
            (&shown["items"][0]["path"], &shown["items"][0]["entries"]),
            (&json!(entry), &json!(2_037))
        );
        for name in ["data/0.txt", "data/1999.txt", "data/2000.txt", "data/2035.txt"] {
            let path = format!("/api/files/{}", entry.replace("index.html", name));
            assert_eq!(client.get(&path).await.expect("an answer").text(), name);
        }
        assert_eq!(texts(service, DATED).await.len(), 1);
        // Whoever does not know that it is complete takes nothing of it away.
        let begun = BegunReport::new(job.project, job.run, job.report);
        let mut session = ctx.store.db().begin().await.expect("a transaction");
        reports::discard_waiting(&mut session, job.project, &begun, service.state().now())
            .await
            .expect("left");
        session.commit().await.expect("committed");
        // The job in the queue finds nothing to do.
        run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
        assert_eq!(texts(service, "SELECT state FROM jobs WHERE kind = 'unpack_report'").await, ["done"]);
        assert_eq!(texts(service, STATES).await, ["ready"]);
        assert_eq!(texts(service, "SELECT key FROM unclaimed_objects").await, Vec::<String>::new());
        let folder =
            service.database().folder().join(format!("objects/{}", entry.replace("/index.html", "")));
        assert!(!folder.with_extension("gz").exists(), "its archive was left");
        assert!(folder.exists());
    })
    .await;
}

#[tokio::test]
async fn a_report_that_waits_for_its_job_goes_with_its_run() {
    for_each_service(async |service| {
        let (project, run) = submitted(service).await;
        attach(service.client(), run.get(), &large_archive()).await.success().expect("received");
        // The sweep leaves it alone, however long the object store keeps the job from its work.
        let store = service.state().store();
        unclaimed::sweep(store, later(service, 29 * 24 * 60 * 60 * 1000), 10).await.expect("swept");
        let mut session = store.db().begin().await.expect("a transaction");
        let left = later(service, 29 * 24 * 60 * 60 * 1000);
        assert_eq!(reports::discard_left(&mut session, left, 10).await.expect("looked"), 0);
        session.commit().await.expect("committed");
        let below = format!("project-{project}/reports/{run}/");
        assert!(!store.objects().is_empty_below(&below).await.expect("asked"));
        // Nor does the job give it up while its archive cannot be read.
        let [job] = texts(service, UNPACKING).await.try_into().expect("one job");
        let job: UnpackReport = serde_json::from_str(&job).expect("a job");
        let begun = BegunReport::new(job.project, job.run, job.report);
        let archive = service.database().folder().join("objects").join(begun.archive_key());
        let elsewhere = archive.with_extension("away");
        std::fs::rename(&archive, &elsewhere).expect("moved");
        let (ctx, now) = (context(service), service.state().now());
        let failed = callboard_ingest::unpack_report(&ctx, job, &|| true, now).await;
        assert!(failed.is_err(), "{failed:?}");
        assert_eq!(texts(service, STATES).await, ["pending"]);
        std::fs::rename(&elsewhere, &archive).expect("moved back");

        delete(service, run).await;
        assert!(store.objects().is_empty_below(&below).await.expect("asked"), "something was left");
        // The job waits until the deletion has counted what there was.
        wait_until(async || {
            run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
            texts(service, "SELECT state FROM jobs WHERE kind = 'unpack_report'").await == ["done"]
        })
        .await;
        // What was being written meanwhile goes with the job.
        let late = format!("{}/late.txt", begun.prefix);
        store.objects().put(&late, Bytes::from_static(b"late")).await.expect("written");
        assert!(callboard_ingest::unpack_report(&ctx, job, &|| true, now).await.expect("worked").is_none());
        assert!(store.objects().is_empty_below(&below).await.expect("asked"), "something came late");
        // And what another worker still writes, with the sweep.
        assert_eq!(texts(service, "SELECT key FROM unclaimed_objects").await, [format!("{}/", begun.prefix)]);
    })
    .await;
}

#[tokio::test]
async fn objects_of_a_report_whose_run_was_deleted_meanwhile_are_swept() {
    for_each_service(async |service| {
        let (project, run) = submitted(service).await;
        delete(service, run).await;
        // Its form was read before the run went.
        let (ctx, now) = (context(service), service.state().now());
        let report = incoming(service).await;
        let (project, at_once) = (Authorized::of_job(project), &mut AtOnce::default());
        let late = callboard_ingest::attach_report(&ctx, project, run, report, at_once, true, now).await;
        assert!(late.is_err(), "{late:?}");
        let objects = service.state().store().objects();
        let below = format!("project-{}/reports/{run}/", project.get());
        assert!(!objects.is_empty_below(&below).await.expect("asked"), "nothing was written too late");
        assert_eq!(texts(service, STATES).await, Vec::<String>::new());
        unclaimed::sweep(&ctx.store, later(service, 2 * 60 * 60 * 1000), 10).await.expect("swept");
        assert!(objects.is_empty_below(&below).await.expect("asked"), "they were left");
    })
    .await;
}

#[tokio::test]
async fn the_wait_for_a_report_ends_in_the_transaction_that_stores_it() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        assert_eq!(feeder.finish_with("passed", json!({ "hasPendingUploads": true })).await, "finalizing");
        let run = feeder.shown().await;
        let project = Authorized::of_job(ProjectId(run["project"]["id"].as_i64().expect("a project")));
        let (ctx, now) = (context(service), service.state().now());
        let (run, report) = (RunId(feeder.run), incoming(service).await);
        let at_once = &mut AtOnce::default();
        let outcome = callboard_ingest::attach_report(&ctx, project, run, report, at_once, true, now)
            .await
            .expect("stored");
        assert!(matches!(outcome, ReportOutcome::Stored(_)), "{outcome:?}");
        assert_eq!(feeder.shown().await["status"], "passed");
    })
    .await;
}

#[tokio::test]
async fn of_several_reports_the_last_new_one_ends_the_wait_of_one_shard() {
    for_each_service(async |service| {
        let shard = |index: i64| {
            let more = json!({ "instanceId": "two-shards", "shardIndex": index, "shardTotal": 2 });
            start(service.client(), more)
        };
        let (first, second) = (shard(1).await, shard(2).await);
        for feeder in [&first, &second] {
            feeder.finish_with("passed", json!({ "hasPendingUploads": true })).await;
        }
        let send = async |kinds: &[(&str, &[u8])]| -> Value {
            let mut form = Form::new()
                .field("testRunId", first.run.to_string())
                .field("projectName", "shop")
                .field("testRun", r#"{"status":"already-submitted"}"#);
            for (kind, page) in kinds {
                let archive = report_archive(&[("index.html", page)]).expect("an archive");
                form = form.file(&format!("report_{kind}"), "report.gz", "application/gzip", &archive);
            }
            let request = service.client().request(Method::POST, "/api/test-runs/upload");
            let request = request.header("content-type", Form::content_type()).body(form.into_body());
            Answer::send(request).await.expect("an answer").success().expect("attached")
        };
        // Both have the same blob; the answer to the first call was lost, and it is sent again.
        for _ in 0..2 {
            let told = send(&[("blob", b"same"), ("html", b"of the first")]).await;
            assert_eq!(told["status"], "finalizing", "the other shard is waited for");
        }
        let told = send(&[("html", b"of the second"), ("blob", b"same")]).await;
        assert_eq!(told["status"], "passed", "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_says_who_it_is_ends_its_own_wait_and_no_other() {
    for_each_service(async |service| {
        let shard = async |index: u32| {
            let place = json!({ "instanceId": "0123456789abcdef", "clientRunId": format!("client-of-shard-{index}"),
                "shardIndex": index, "shardTotal": 3 });
            let feeder = start(service.client(), place).await;
            feeder.finish_with("passed", json!({ "hasPendingUploads": true })).await;
            feeder.run
        };
        let run = shard(1).await;
        assert_eq!((shard(2).await, shard(3).await), (run, run));
        let send = async |index: u32, archive: Option<&[u8]>| {
            let mut form = Form::new()
                .field("testRunId", run.to_string())
                .field("projectName", "shop")
                .field("testRun", r#"{"status":"already-submitted"}"#)
                .field("clientRunId", format!("client-of-shard-{index}"));
            if let Some(archive) = archive {
                form = form.file("report_html", "html.gz", "application/gzip", archive);
            }
            let request = service.client().request(Method::POST, "/api/test-runs/upload");
            let request = request.header("content-type", Form::content_type()).body(form.into_body());
            Answer::send(request).await.expect("an answer").success().expect("attached")
        };
        // The last one has no report, and its call is repeated: no answer had come.
        for _ in 0..2 {
            assert_eq!(send(3, None).await["status"], "finalizing");
        }
        // Both others have the same one, byte by byte.
        let archive = small_archive();
        for _ in 0..2 {
            assert_eq!(send(2, Some(&archive)).await["status"], "finalizing");
        }
        assert_eq!(send(1, Some(&archive)).await["status"], "passed");
        assert_eq!(texts(service, STATES).await, ["ready"]);
    })
    .await;
}

#[tokio::test]
async fn dating_runs_anew_waits_for_an_upload_and_does_not_stop_it() {
    for_each_service(async |service| {
        let client = service.client();
        let note = json!([{ "name": "log", "contentType": "text/plain", "originalName": "a.txt" }]);
        date_files(client).await;
        let form = Form::new()
            .field("projectName", "shop")
            .field("testRun", run("shop", "failed", Vec::new()).to_string())
            .field("testCases", json!([attempt("pays", "failed", 0)]).to_string())
            .field("attach_meta_0", note.to_string())
            .file("attach_file_0", "a.txt", "text/plain", b"a log")
            .file("report_html", "html.gz", "application/gzip", &small_archive());
        let request = client.request(Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
        settled(service).await;
        let id = |of: &str| stored[of].as_i64().expect("an id");
        let (project, run) = (ProjectId(id("projectId")), RunId(id("runId")));
        let number = async |of: &str| {
            let found = texts(service, &format!("SELECT CAST(id AS TEXT) FROM {of}")).await;
            found[0].parse::<i64>().expect("an id")
        };
        let (report, file) = (ReportId(number("reports").await), number("files").await);
        let store = service.state().store();
        let move_to = async |session: &mut Session, to| {
            due::move_report(session, project, report, to).await.expect("moved");
            due::move_files(session, project, vec![file], to).await
        };
        let mut session = store.db().begin().await.expect("a transaction");
        move_to(&mut session, None).await.expect("moved");
        session.commit().await.expect("committed");

        // As an upload does: the run, its report, and then its files.
        let mut upload = store.db().begin().await.expect("a transaction");
        runs::lock(&mut upload, project, run).await.expect("locked");
        due::move_report(&mut upload, project, report, Some(Timestamp(1))).await.expect("moved");
        let goes_on = async {
            if matches!(store.db(), Db::Postgres(_)) {
                somebody_waits(service).await;
            }
            move_to(&mut upload, Some(Timestamp(1))).await.expect("nobody stands in the way");
            upload.commit().await.expect("committed");
        };
        let ctx = service.state().background();
        let (dated, ()) = tokio::join!(retention::redate(&ctx, Redate { project: Some(project), after: None }), goes_on);
        dated.expect("dated");
        let dates = texts(service, "SELECT CAST(expires_at AS TEXT) FROM reports UNION ALL SELECT CAST(expires_at AS TEXT) FROM files").await;
        assert!(dates.len() == 2 && dates.iter().all(|at| at != "1"), "{dates:?}");
    })
    .await;
}

#[tokio::test]
async fn what_a_project_keeps_is_locked_before_its_days_by_all_who_change_both() {
    for_each_service(async |service| {
        let store = service.state().store();
        if !matches!(store.db(), Db::Postgres(_)) {
            return;
        }
        let submit = async |title: &str| {
            let mut failed = attempt(title, "failed", 0);
            failed["error"] = json!(format!("Error: {title} was not there"));
            let body = run("shop", "failed", vec![failed]);
            let stored = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
            let id = |of: &str| stored[of].as_i64().expect("an id");
            (ProjectId(id("projectId")), RunId(id("runId")))
        };
        let (_, first) = submit("pays").await;
        assert_eq!(attach(service.client(), first.get(), &small_archive()).await.status, StatusCode::OK);
        let (project, ended) = submit("adds").await;
        let waiting = start(service.client(), json!({})).await;
        waiting.finish_with("passed", json!({ "hasPendingUploads": true })).await;
        settled(service).await;
        // As if nothing had been counted yet, but with no job that the service would do at the same time.
        for forgotten in [
            format!("UPDATE run_storage SET objects = objects + 1 WHERE run_id = {ended} RETURNING kind"),
            format!(
                "UPDATE test_runs SET new_clusters = new_clusters + 1 WHERE id = {ended} RETURNING status"
            ),
        ] {
            assert!(!texts(service, &forgotten).await.is_empty());
        }

        let ctx = service.state().background();
        let now = service.state().now();
        let day = Day::parse("2026-01-01").expect("a day");
        let lanes = texts(service, "SELECT DISTINCT CAST(lane_id AS TEXT) FROM project_daily").await;
        let lanes: Vec<i64> = lanes.iter().map(|id| id.parse().expect("an id")).collect();
        let kept_of = |kind: &str| format!("SELECT kind FROM storage_totals WHERE kind = '{kind}'");
        let while_days_are_locked = async |kind: &str, work: &mut (dyn Future<Output = ()> + Unpin)| {
            let mut days = store.db().begin().await.expect("a transaction");
            let (before, after) =
                (RunContribution::default(), RunContribution { runs: 1, ..RunContribution::default() });
            for is_full in [false, true] {
                rollups::add_project_day(&mut days, project, &lanes, day, is_full, &before, &after)
                    .await
                    .expect("locked");
            }
            // What only writes is kept back until something is asked.
            runs::get(&mut days, project, ended).await.expect("asked");
            let look = async {
                somebody_waits(service).await;
                let all = texts(service, &kept_of(kind)).await;
                let free = texts(service, &format!("{} FOR UPDATE SKIP LOCKED", kept_of(kind))).await;
                drop(days);
                assert_eq!(all.len(), 1);
                free
            };
            let ((), free) = tokio::join!(work, look);
            assert!(free.is_empty(), "{free:?} was to be locked already");
        };
        let mut end = Box::pin(async {
            callboard_ingest::check_run(&ctx, project, ended, now).await.expect("checked");
        });
        while_days_are_locked("evidence_in_rows", &mut end).await;
        let mut upload = Box::pin(async {
            let archive = report_archive(&[("index.html", b"another")]).expect("an archive");
            let told = attach(service.client(), waiting.run, &archive).await.success().expect("attached");
            assert_eq!(told["status"], "passed");
        });
        while_days_are_locked("report", &mut upload).await;
    })
    .await;
}
