//! Uploads through the service, where the store signs no addresses.

use callboard_test_support::form::report_archive;
use callboard_test_support::{Service, Settings, TestDatabase, for_each_backend, for_each_service};
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Uploader, counts, link, planned, read, refusal, sha256};
use crate::builders::{attempt, run};
use crate::live::{Feeder, start};
use crate::rows::texts;

const TRACE: &[u8] = b"PK\x03\x04 a trace";
const NOTE: &[u8] = b"a note";

fn uploader_for(feeder: &Feeder) -> Uploader {
    Uploader::token(&feeder.client, feeder.run, &feeder.token)
}

#[tokio::test]
async fn a_client_of_a_run_sends_files_and_ends_the_wait_for_them() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let uploader = uploader_for(&feeder);
        let (trace, note) =
            (uploader.ticket("trace", TRACE).await, uploader.ticket("attachment", NOTE).await);
        assert_eq!(trace.url, format!("/api/uploads/{}", trace.ticket));

        let item = trace.linked(link("trace", "pays", 0));
        assert_eq!(uploader.commit(item.clone()).await["status"], "case_not_found");
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        assert_eq!(uploader.commit(item.clone()).await["status"], "not_uploaded");

        let sent = trace.put(TRACE).await.success().expect("received");
        assert_eq!((&sent["sha256"], &sent["size"]), (&json!(sha256(TRACE)), &json!(TRACE.len())));
        // Staged bytes are nobody's file yet.
        assert_eq!(uploader.plan(&[planned("trace", TRACE)]).await[0]["status"], "missing");
        let linked = uploader.commit(item.clone()).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        assert_eq!(read(service.client(), &linked).await, TRACE);
        let again = uploader.commit(item).await;
        assert_eq!((&again["status"], &again["fileId"]), (&json!("duplicate"), &linked["fileId"]));

        // What the project has is neither sent nor needs a ticket.
        let known = uploader.plan(&[planned("trace", TRACE), planned("attachment", NOTE)]).await;
        assert_eq!((&known[0]["status"], &known[1]["status"]), (&json!("have"), &json!("missing")));
        assert_eq!(known[0]["upload"], Value::Null);
        feeder.results(vec![attempt("looks", "failed", 0)]).await;
        let have = json!({ "sha256": sha256(TRACE), "kind": "trace", "link": link("trace", "looks", 0) });
        assert_eq!(uploader.commit(have).await["status"], "linked");

        note.put(NOTE).await.success().expect("received");
        let status = feeder.finish_with("failed", json!({ "hasPendingUploads": true })).await;
        assert_eq!(status, "finalizing");
        let last = json!({ "items": [note.linked(link("attachment", "pays", 0))], "uploadsComplete": true });
        let ended = uploader.call("commit", last).await.success().expect("committed");
        assert_eq!((&ended["items"][0]["status"], &ended["status"]), (&json!("linked"), &json!("failed")));
        assert_eq!(counts(service.client(), feeder.run).await, (2, 1));
        let late = uploader.call("commit", json!({ "items": [] })).await;
        assert_eq!(refusal(&late), (409, "run_finished".to_owned()));
        let left =
            texts(service, "SELECT state FROM upload_tickets WHERE state NOT IN ('open', 'stored')").await;
        assert!(left.is_empty(), "{left:?}");
    })
    .await;
}

#[tokio::test]
async fn an_account_adds_files_and_reports_to_a_run_that_is_over() {
    for_each_service(async |service| {
        let client = service.client();
        let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let stored = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
        let id = stored["runId"].as_i64().expect("a run");
        let uploader = Uploader::account(client, "shop", Some(id));
        let archive = report_archive(&[("index.html", b"<h1>Report</h1>")]).expect("an archive");
        let (note, report) =
            (uploader.ticket("attachment", NOTE).await, uploader.ticket("report", &archive).await);
        note.put(NOTE).await.success().expect("received");
        report.put(archive.clone()).await.success().expect("received");
        let as_report = report.linked(json!({ "type": "report", "reportType": "html", "label": "Ours" }));
        let items = json!([note.linked(link("attachment", "pays", 0)), as_report, note.item()]);
        let done = uploader.call("commit", json!({ "items": items })).await.success().expect("committed");
        let statuses: Vec<_> =
            done["items"].as_array().expect("items").iter().map(|i| &i["status"]).collect();
        assert_eq!(statuses, ["linked", "linked", "duplicate"], "{done}");
        let again = uploader.call("commit", json!({ "items": items })).await.success().expect("committed");
        let statuses: Vec<_> =
            again["items"].as_array().expect("items").iter().map(|i| &i["status"]).collect();
        assert_eq!(statuses, ["duplicate", "duplicate", "duplicate"], "{again}");
        assert_eq!(done["items"][1]["reportId"], again["items"][1]["reportId"]);

        let shown = client.json(&format!("/api/test-runs/{id}")).await.expect("the run");
        assert_eq!(shown["reports"][0]["label"], "Ours", "{shown}");
        assert_eq!(counts(client, id).await, (0, 1));
        // What is decided about the files of a run at its end is decided for these, too.
        crate::rows::settled(service).await;
        let shown = client.json(&format!("/api/test-runs/{id}")).await.expect("the run");
        assert_eq!(shown["storage"]["files"], 1, "{}", shown["storage"]);
        let recomputed = texts(service, "SELECT state FROM jobs WHERE kind = 'recompute'").await;
        assert_eq!(recomputed, ["done"]);
    })
    .await;
}

#[tokio::test]
async fn a_ticket_takes_its_own_bytes_and_no_others() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let uploader = uploader_for(&feeder);
        let ticket = uploader.ticket("attachment", NOTE).await;
        assert_eq!(refusal(&ticket.put("a nOte").await), (422, "hash_mismatch".to_owned()));
        assert_eq!(refusal(&ticket.put("a").await), (422, "hash_mismatch".to_owned()));
        assert_eq!(refusal(&ticket.put("a note and more").await), (413, "body_too_large".to_owned()));
        assert_eq!(uploader.commit(ticket.item()).await["status"], "not_uploaded");
        for _ in 0..2 {
            ticket.put(NOTE).await.success().expect("received");
        }
        assert_eq!(refusal(&ticket.put("a nOte").await), (409, "ticket_used".to_owned()));
        assert_eq!(uploader.commit(ticket.item()).await["status"], "stored");
        ticket.put(NOTE).await.success().expect("known");
        assert_eq!(refusal(&ticket.put("a nOte").await), (409, "ticket_used".to_owned()));

        // Nobody writes to, or commits, what was planned for another file, or by others.
        let other = uploader.ticket("attachment", b"another").await;
        let mut swapped = other.item();
        swapped["ticket"] = json!(ticket.ticket);
        assert_eq!(uploader.commit(swapped).await["status"], "invalid");
        let stranger =
            start(service.client(), json!({ "clientRunId": "another-run", "projectName": "bank" })).await;
        other.put("another").await.success().expect("received");
        assert_eq!(uploader_for(&stranger).commit(other.item()).await["status"], "not_uploaded");
        // A project learns nothing of what others have.
        assert_eq!(uploader.commit(other.linked(json!(null))).await["status"], "stored");
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let linked = uploader.commit(other.linked(link("attachment", "pays", 0))).await;
        assert_eq!(linked["status"], "linked", "{linked}");
        assert_eq!(
            uploader_for(&stranger).plan(&[planned("attachment", b"another")]).await[0]["status"],
            "missing"
        );

        for unknown in ["0".repeat(64), "x".repeat(64), "short".to_owned()] {
            let mut forged = other.clone();
            forged.ticket = unknown;
            assert_eq!(refusal(&forged.put("another").await), (404, "ticket_not_found".to_owned()));
            assert_eq!(uploader.commit(forged.item()).await["status"], "duplicate", "the project has it");
        }
    })
    .await;
}

#[tokio::test]
async fn an_expired_ticket_takes_nothing_more() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let uploader = uploader_for(&feeder);
        let [early, late] =
            [uploader.ticket("attachment", NOTE).await, uploader.ticket("trace", TRACE).await];
        early.put(NOTE).await.success().expect("received");
        super::deletion::execute(
            service,
            "UPDATE upload_tickets SET usable_until = 0 WHERE state IS NOT NULL",
        )
        .await;
        assert_eq!(refusal(&early.put(NOTE).await), (404, "ticket_not_found".to_owned()));
        assert_eq!(refusal(&late.put(TRACE).await), (404, "ticket_not_found".to_owned()));
        // What arrived in time is committed all the same.
        assert_eq!(uploader.commit(early.item()).await["status"], "stored");
        assert_eq!(uploader.commit(late.item()).await["status"], "not_uploaded");
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_a_plan_is_said_of_each_file() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let settings = Settings::from([("SERVICE_UPLOAD_MAX_BYTES".to_owned(), "1048576".to_owned())]);
        let service = Service::over(database, &settings).await.expect("a service");
        let uploader = Uploader::account(service.client(), "shop", None);
        let file = |kind: &str, size: Value| json!({ "sha256": "AB".repeat(32), "size": size, "kind": kind });
        let files = uploader
            .plan(&[
                file("trace", json!(1_048_576)),
                file("trace", json!(1_048_577)),
                file("resource", json!(1)),
                file("trace", json!(-1)),
                json!({ "sha256": "ab", "size": 1, "kind": "trace" }),
                json!("a file"),
            ])
            .await;
        let told: Vec<_> = files.iter().map(|file| file["status"].as_str().expect("a status")).collect();
        assert_eq!(told, ["missing", "too_large", "invalid", "invalid", "invalid", "invalid"]);
        assert_eq!(files[0]["sha256"], "ab".repeat(32));
        assert!(files[2]["message"].as_str().is_some_and(|why| why.contains("attachment")), "{}", files[2]);

        for (body, code) in [
            (json!({ "files": [] }), "invalid_field"),
            (json!({}), "missing_field"),
            (json!({ "files": "all" }), "invalid_field"),
            (json!({ "files": [1], "runId": "12abc" }), "invalid_run_id"),
        ] {
            assert_eq!(refusal(&uploader.call("plan", body).await), (400, code.to_owned()));
        }
        let many: Vec<_> = (0..501).map(|_| file("trace", json!(1))).collect();
        let answer = uploader.call("plan", json!({ "files": many })).await;
        assert_eq!(refusal(&answer), (413, "too_many_items".to_owned()));
        for nowhere in [
            Uploader::account(service.client(), "shop", Some(99)),
            Uploader::token(service.client(), 99, &"0".repeat(64)),
        ] {
            let answer = nowhere.call("plan", json!({ "files": [1] })).await;
            assert_eq!(refusal(&answer), (404, "run_not_found".to_owned()));
        }
    })
    .await;
}

#[tokio::test]
async fn two_clients_with_one_ticket_store_one_file() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let uploader = uploader_for(&feeder);
        let trace = [TRACE, &vec![7; 6_000_000]].concat();
        let ticket = uploader.ticket("trace", &trace).await;
        for answer in join_all((0..4).map(|_| ticket.put(trace.clone()))).await {
            assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
        }
        let commits = (0..4).map(|_| uploader.commit(ticket.linked(link("trace", "pays", 0))));
        let mut statuses: Vec<_> =
            join_all(commits).await.iter().map(|done| done["status"].to_string()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, ["\"duplicate\"", "\"duplicate\"", "\"duplicate\"", "\"linked\""]);
        assert_eq!(counts(service.client(), feeder.run).await, (1, 0));
        assert_eq!(texts(service, "SELECT CAST(refs AS text) FROM blobs WHERE kind = 'blob'").await, ["1"]);
    })
    .await;
}
