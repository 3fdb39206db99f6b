//! Deleting runs and projects: what goes, what stays, and what the receipt
//! says about it.

mod files;
mod grace;
mod interrupted;
mod numbers;
mod projects;
mod restore;
mod statistics;

use std::path::Path;
use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_test_support::form::report_archive;
use callboard_test_support::{Answer, Client, Form, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::detail_pages::{page, words_after};
use crate::live;

/// Deletes without a grace period.
async fn delete_now(client: &Client, path: &str) -> Answer {
    let joiner = if path.contains('?') { '&' } else { '?' };
    delete(client, &format!("{path}{joiner}now=true")).await
}

/// Deletes; what is deleted can be restored for a day.
async fn delete(client: &Client, path: &str) -> Answer {
    client.send(client.request(Method::DELETE, path)).await.expect("an answer")
}

async fn restore(client: &Client, receipt: &Value) -> Answer {
    client.post(&format!("/api/deletions/{}/restore", receipt["id"]), &json!({})).await.expect("an answer")
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    let body = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
}

/// The receipt of a deletion, once its job has come to its end. The service
/// works on it too; whoever holds the job gets on with it.
async fn freed(service: &Service, answer: &Value) -> Value {
    let path = format!("/api/deletions/{}", answer["receipt"]["id"]);
    let done = async {
        loop {
            run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
            let receipt = service.client().json(&path).await.expect("a receipt");
            if receipt["state"] == "complete" {
                return receipt;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("freed in time")
}

/// Objects of the service below a prefix: how many, and their bytes.
fn stored(service: &Service, prefix: &str) -> (i64, i64) {
    fn walk(folder: &Path, found: &mut (i64, i64)) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let meta = entry.metadata().expect("metadata");
            if meta.is_dir() {
                walk(&entry.path(), found);
            } else {
                found.0 += 1;
                found.1 += i64::try_from(meta.len()).expect("a size");
            }
        }
    }
    let root = service.database().storage_url();
    let root = root.strip_prefix("file://").expect("a folder");
    let mut found = (0, 0);
    walk(&Path::new(root).join(prefix), &mut found);
    found
}

/// All objects, and their bytes with those of evidence that has none.
async fn all_stored(service: &Service) -> (i64, i64) {
    let in_rows = "SELECT CAST(COALESCE(SUM(LENGTH(bytes)), 0) AS text) FROM pack_bytes";
    let in_rows: i64 = crate::rows::texts(service, in_rows).await[0].parse().expect("a number");
    let (objects, bytes) = stored(service, "");
    (objects, bytes + in_rows)
}

/// Uploads a run with evidence, a report, a file of its own and one that other
/// runs have too.
async fn upload(service: &Service, project: &str, start: &str, own: &[u8], shared: &[u8]) -> Value {
    let case = with(
        attempt("pays", "failed", 0),
        json!({ "steps": [{ "title": "click", "category": "pw:api", "duration": 5 }] }),
    );
    let meta = |name: &str| json!([{ "name": name, "contentType": "text/plain", "originalName": "a.txt" }]);
    let report =
        report_archive(&[("index.html", b"<h1>Report</h1>"), ("data/a.txt", own)]).expect("an archive");
    let run = with(run(project, "failed", Vec::new()), json!({ "startTime": start }));
    let form = Form::new()
        .field("projectName", project)
        .field("testRun", run.to_string())
        .field("testCases", json!([case, attempt("looks", "passed", 0)]).to_string())
        .field("attach_meta_0", meta("own").to_string())
        .file("attach_file_0", "a.txt", "text/plain", own)
        .field("attach_meta_1", meta("shared").to_string())
        .file("attach_file_1", "a.txt", "text/plain", shared)
        .file("report_html", "report.gz", "application/gzip", &report);
    let client = service.client();
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::send(request).await.and_then(|answer| answer.success()).expect("stored")
}

/// Files of the tests of a run.
async fn files_of(client: &Client, run: &Value) -> Vec<Value> {
    let mut files = Vec::new();
    for execution in run["testCases"].as_array().expect("tests") {
        let path = format!("/api/test-run-cases/{}/files", execution["id"]);
        files.extend(client.json(&path).await.expect("files")["items"].as_array().expect("files").clone());
    }
    files
}

async fn submitted(service: &Service, project: &str, start: &str, more: Value) -> i64 {
    let cases = vec![attempt("pays", "failed", 0), attempt("looks", "passed", 0)];
    let body = with(with(run(project, "failed", cases), json!({ "startTime": start })), more);
    let answer = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    answer["runId"].as_i64().expect("a run")
}

#[tokio::test]
async fn deleting_a_run_frees_exactly_its_own_objects() {
    for_each_service(async |service| {
        let client = service.client();
        let shared = vec![7_u8; 40_000];
        let first =
            upload(service, "shop", "2026-01-01T10:00:00.000Z", b"only the first has this", &shared).await;
        let second = upload(service, "shop", "2026-01-02T10:00:00.000Z", b"only the second", &shared).await;
        let report = second["reports"][0]["path"].as_str().expect("a report").to_owned();
        let (first, second) = (first["runId"].clone(), second["runId"].clone());
        let before = all_stored(service).await;
        // A process was killed while it wrote this.
        let root = service.database().storage_url();
        let reports = Path::new(root.strip_prefix("file://").expect("a folder")).join("project-1/reports");
        std::fs::write(reports.join(format!("{first}/video.webm#1")), b"half of it").expect("written");
        let answer = delete_now(client, &format!("/api/test-runs/{first}")).await.success().expect("deleted");
        assert_eq!(
            answer["receipt"]["target"],
            json!({ "kind": "run", "id": first, "label": format!("#{first}") })
        );

        // Gone at once, whatever has been freed.
        for path in ["", "/executions", "/summary", "/reports"] {
            refused(
                &client.get(&format!("/api/test-runs/{first}{path}")).await.expect("an answer"),
                404,
                "run_not_found",
            );
        }
        let listed = client.json("/api/test-runs").await.expect("runs");
        let ids: Vec<&Value> =
            listed["items"].as_array().expect("runs").iter().map(|run| &run["id"]).collect();
        assert_eq!(ids, [&second]);
        refused(&delete_now(client, &format!("/api/test-runs/{first}")).await, 404, "run_not_found");

        let receipt = freed(service, &answer).await;
        let after = all_stored(service).await;
        assert_eq!(receipt["freed"], json!({ "count": before.0 - after.0, "bytes": before.1 - after.1 }));
        assert_eq!(receipt["freed"], receipt["objects"]);
        assert_eq!(receipt["keptShared"], json!({ "count": 1, "bytes": shared.len() }));
        assert_eq!(receipt["rows"]["runs"], 1);
        assert_eq!(receipt["rows"]["executions"], 2);
        assert_eq!(receipt["rows"]["files"], 3);
        assert_eq!(receipt["remaining"], 0);
        assert!(receipt["verifiedAt"].is_string() && receipt["completedAt"].is_string(), "{receipt}");
        assert_eq!(stored(service, &format!("project-1/packs/{first}")), (0, 0));
        assert_eq!(stored(service, &format!("project-1/reports/{first}")), (0, 0));
        assert_eq!(stored(service, &format!("project-1/reports/{second}")).0, 2);

        // The other run keeps everything, the shared file and its report among it.
        let detail = client.json(&format!("/api/test-runs/{second}")).await.expect("the run");
        for file in files_of(client, &detail).await {
            let bytes =
                client.get(&format!("/api/files/{}?download=1", file["id"])).await.expect("an answer");
            assert!(bytes.status.is_success(), "{file}");
        }
        assert_eq!(files_of(client, &detail).await.len(), 2);
        let granted = crate::files::sent_to(service, &format!("/api/files/{report}")).await;
        let opened = crate::files::path_of(&granted);
        let reader = crate::files::listener_of(&granted);
        let page = reader.get(opened).await.expect("an answer");
        assert_eq!((page.status.as_u16(), page.text().as_str()), (200, "<h1>Report</h1>"));
        let beside = reader.get(&opened.replace("index.html", "data/a.txt")).await.expect("an answer");
        assert_eq!((beside.status.as_u16(), beside.text().as_str()), (200, "only the second"));
        let execution = &detail["testCases"][0]["id"];
        let evidence = client.json(&format!("/api/test-run-cases/{execution}")).await.expect("the execution");
        assert_eq!(evidence["evidence"]["steps"].as_array().map(Vec::len), Some(1));
        let listed = client.json("/api/deletions?state=complete").await.expect("receipts");
        assert_eq!(listed["items"], json!([receipt]));
    })
    .await;
}

#[tokio::test]
async fn a_deleted_run_takes_nothing_from_its_clients_any_more() {
    for_each_service(async |service| {
        let client = service.client();
        let shard = json!({ "instanceId": "0123456789abcdef", "shardIndex": 1, "shardTotal": 2 });
        let feeder = live::start(client, shard.clone()).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let answer =
            delete_now(client, &format!("/api/test-runs/{}", feeder.run)).await.success().expect("deleted");
        for (call, body) in [
            ("heartbeat", json!({})),
            ("events", json!({ "testCases": [live::complete(attempt("looks", "passed", 0))] })),
            ("finish", json!({ "status": "passed" })),
        ] {
            refused(&feeder.call(call, body).await, 404, "run_not_found");
        }
        // Another shard of the same pipeline opens a run of its own.
        let other = live::start(client, with(shard, json!({ "shardIndex": 2 }))).await;
        assert_ne!(other.run, feeder.run);
        let receipt = freed(service, &answer).await;
        assert_eq!(receipt["rows"]["executions"], 1);
        let project = client.json("/api/projects").await.expect("projects");
        assert_eq!(project["items"][0]["totalRuns"], 1);
        assert_eq!(project["items"][0]["latestRun"]["id"], other.run);
    })
    .await;
}

#[tokio::test]
async fn a_pinned_run_goes_by_force_only() {
    for_each_service(async |service| {
        let client = service.client();
        let id = submitted(service, "shop", "2026-01-01T10:00:00.000Z", json!({})).await;
        let other = submitted(service, "shop", "2026-01-02T10:00:00.000Z", json!({})).await;
        let pin = format!("/api/test-runs/{id}/pin");
        client
            .send_json(Method::PUT, &pin, &json!({}))
            .await
            .and_then(|answer| answer.success())
            .expect("pinned");
        refused(&delete_now(client, &format!("/api/test-runs/{id}")).await, 409, "in_use");

        let bulk =
            async |body: Value| client.post("/api/test-runs/bulk-delete", &body).await.expect("an answer");
        let dry = bulk(json!({ "ids": [id, other], "dryRun": true })).await.success().expect("counted");
        assert_eq!(
            dry,
            json!({ "success": true, "receipt": null, "matched": 1, "data": { "skipped": [id] } })
        );
        let filter = json!({ "project": 1, "before": "2027-01-01", "status": "failed" });
        let dry = bulk(json!({ "filter": filter, "dryRun": true })).await.success().expect("counted");
        assert_eq!((&dry["matched"], &dry["receipt"]), (&json!(1), &Value::Null));
        assert_eq!(dry["data"]["skipped"], json!([id]), "a pinned run that matches is named as well");
        assert_eq!(
            client.json("/api/test-runs").await.expect("runs")["items"].as_array().map(Vec::len),
            Some(2)
        );

        // Nothing is deleted when one of them does not exist.
        refused(&bulk(json!({ "ids": [other, 999] })).await, 404, "run_not_found");
        refused(&bulk(json!({})).await, 400, "missing_field");
        refused(&bulk(json!({ "ids": [1], "filter": filter })).await, 400, "invalid_field");
        refused(
            &bulk(json!({ "filter": { "project": 99, "before": "2027-01-01" } })).await,
            404,
            "project_not_found",
        );
        refused(
            &bulk(json!({ "filter": { "project": 1, "before": "2027-01-01", "status": "odd" } })).await,
            400,
            "invalid_field",
        );
        for field in ["branch", "environment"] {
            let filter = json!({ "project": 1, "before": "2027-01-01", field: "a\u{0}b" });
            refused(&bulk(json!({ "filter": filter })).await, 400, "invalid_field");
        }
        assert_eq!(client.json("/api/deletions").await.expect("receipts")["items"], json!([]));

        let answer = bulk(json!({ "filter": filter, "now": true })).await.success().expect("deleted");
        assert_eq!(freed(service, &answer).await["rows"]["runs"], 1);
        let listed = client.json("/api/test-runs").await.expect("runs");
        assert_eq!(listed["items"][0]["id"], id);
        let answer =
            delete_now(client, &format!("/api/test-runs/{id}?force=true")).await.success().expect("deleted");
        assert_eq!(freed(service, &answer).await["rows"]["runs"], 1);
        assert_eq!(client.json("/api/test-runs").await.expect("runs")["items"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn what_is_kept_is_counted_by_kind_and_by_outcome() {
    for_each_service(async |service| {
        let client = service.client();
        upload(service, "shop", "2026-01-01T10:00:00.000Z", b"a file", b"another").await;
        let second = upload(service, "shop", "2026-01-02T10:00:00.000Z", b"a second file", b"one more").await;
        let path = "/api/projects/1/storage?days=1";
        let counted = async {
            loop {
                run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
                let kept = client.json(path).await.expect("storage");
                if kept["totals"]["bytes"] == all_stored(service).await.1 {
                    return kept;
                }
            }
        };
        let kept = tokio::time::timeout(Duration::from_secs(60), counted).await.expect("counted in time");
        assert_eq!(kept["totals"]["objects"], all_stored(service).await.0);
        let kinds: Vec<&Value> =
            kept["byKind"].as_array().expect("kinds").iter().map(|of| &of["kind"]).collect();
        assert_eq!(kinds, ["attachment", "evidence", "report"]);
        assert_eq!(kept["byKind"][0]["bytes"], 6 + 7 + 13 + 8);
        let outcomes = kept["byOutcome"].as_array().expect("outcomes").iter();
        assert_eq!(
            outcomes.map(|of| of["bytes"].as_i64().expect("bytes")).sum::<i64>(),
            all_stored(service).await.1
        );
        assert_eq!(
            (&kept["daily"][0]["bytes"], &kept["daily"][0]["freed"]),
            (&kept["totals"]["bytes"], &json!(0))
        );
        let all = client.json("/api/admin/storage").await.expect("storage");
        assert_eq!((&all["totals"], &all["items"][0]["bytes"]), (&kept["totals"], &kept["totals"]["bytes"]));
        let stats = client.json("/api/admin/stats").await.expect("stats");
        assert_eq!(
            (&stats["totalRuns"], &stats["totalFiles"], &stats["totalExecutions"]),
            (&json!(2), &json!(4), &json!(4))
        );
        assert_eq!(stats["storage"]["bytes"], kept["totals"]["bytes"]);

        // What lies where is told apart, and comes to the same together.
        let in_objects = stored(service, "").1;
        let in_rows = all_stored(service).await.1 - in_objects;
        assert!(in_rows > 0, "evidence of small runs");
        let html = page(client, "/settings/storage").await;
        let said = words_after(&html, "<h1>Storage").replace('\u{a0}', " ");
        let size = |bytes: i64| {
            if bytes < 1_000 {
                format!("{bytes} B")
            } else {
                format!("{}.{} kB", bytes / 1_000, bytes / 100 % 10)
            }
        };
        assert!(said.contains(&format!("In the object store {} ", size(in_objects))), "{in_objects}: {said}");
        assert!(said.contains(&format!("In the database {} ", size(in_rows))), "{in_rows}: {said}");
        let objects = kept["totals"]["objects"].clone();
        let (of_store, of_rows, of_all) = (size(in_objects), size(in_rows), size(in_objects + in_rows));
        assert!(said.contains(&format!("Evidence 0 – {of_rows} {of_rows}")), "{said}");
        assert!(said.contains(&format!("shop 2 {objects} {of_store} {of_rows} {of_all}")), "{said}");

        let answer = delete_now(client, &format!("/api/test-runs/{}", second["runId"]))
            .await
            .success()
            .expect("deleted");
        freed(service, &answer).await;
        let after = client.json(path).await.expect("storage");
        assert_eq!(after["totals"]["bytes"], all_stored(service).await.1);
        assert_eq!(
            after["daily"][0]["freed"],
            kept["totals"]["bytes"].as_i64().expect("bytes") - all_stored(service).await.1
        );
        refused(
            &client.get("/api/projects/1/storage?days=0").await.expect("an answer"),
            400,
            "invalid_query",
        );
    })
    .await;
}

#[tokio::test]
async fn an_object_store_that_refuses_keeps_a_deletion_open() {
    for_each_service(async |service| {
        let client = service.client();
        let uploaded = upload(service, "shop", "2026-01-01T10:00:00.000Z", b"a file", b"another").await;
        let root = service.database().storage_url();
        let root = Path::new(root.strip_prefix("file://").expect("a folder")).join("project-1");
        // A file where a folder would be: nothing below it can be listed.
        let packs = root.join("packs");
        let in_the_way = packs.join(uploaded["runId"].to_string());
        std::fs::create_dir_all(&packs).expect("a folder");
        std::os::unix::fs::symlink(&in_the_way, &in_the_way).expect("a loop");
        let answer = delete_now(client, &format!("/api/test-runs/{}", uploaded["runId"]))
            .await
            .success()
            .expect("deleted");
        let path = format!("/api/deletions/{}", answer["receipt"]["id"]);
        let refused = async {
            loop {
                run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
                let receipt = client.json(&path).await.expect("a receipt");
                if receipt["error"].is_string() {
                    return receipt;
                }
            }
        };
        let receipt = tokio::time::timeout(Duration::from_secs(60), refused).await.expect("tried in time");
        assert_eq!((&receipt["state"], &receipt["completedAt"]), (&json!("freeing"), &Value::Null));
        assert!(receipt["remaining"].as_i64().expect("a number") > 0, "{receipt}");

        std::fs::remove_dir_all(&packs).expect("out of the way");
        let mut session = service.state().store().db().begin().await.expect("a transaction");
        let jobs = callboard_store::db::Statement::new(
            "retry",
            "UPDATE jobs SET run_after = 0 WHERE kind = 'delete_target'",
        );
        session.execute(&jobs, Vec::new()).await.expect("due");
        session.commit().await.expect("due");
        let receipt = freed(service, &answer).await;
        assert_eq!((&receipt["error"], &receipt["freed"]), (&Value::Null, &receipt["objects"]));
    })
    .await;
}
