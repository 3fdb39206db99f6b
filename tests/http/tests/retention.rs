//! How long things are kept: the policy, what goes when its time is over, and
//! what stays nevertheless.

use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_http::AppState;
use callboard_store::{Backend, jobs};
use callboard_test_support::{Answer, Client, Form, Service, TestDatabase, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, telling, with};
use crate::detail_pages::{page, words_after};

/// A day some time ago; the policy counts whole days.
pub(crate) fn days_ago(service: &Service, days: i64) -> String {
    let day = service.state().now().day().0 - days;
    format!("{}T10:00:00.000Z", callboard_domain::time::Day(day).to_iso())
}

/// Runs all jobs that are due until none is, deletions among them. The service
/// works on them too.
pub(crate) async fn settled(service: &Service) {
    worked(service.state()).await;
}

/// Runs all jobs that are due by the clock of a state until none is.
pub(crate) async fn worked(state: &AppState) {
    const KINDS: [&str; 8] = [
        "completion",
        "recompute",
        "join_evidence",
        "apply_retention",
        "redate_expiry",
        "sweep_retention",
        "lane_expiry",
        "delete_target",
    ];
    let done = async {
        loop {
            run_due(state, Budget::new(Duration::from_secs(20))).await.expect("worked");
            let mut session = state.store().db().read().await.expect("a connection");
            let leased = jobs::counts(&mut session).await.expect("counts").leased;
            let next = jobs::next_due(&mut session, &KINDS).await.expect("a time");
            if leased == 0 && next.is_none_or(|at| at > state.now()) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("settled in time");
}

/// Runs everything that follows from what was sent, and the sweep after it.
pub(crate) async fn swept(service: &Service) {
    settled(service).await;
    let ctx = service.state().background();
    while !callboard_query::retention::sweep(&ctx, 0, service.state().now()).await.expect("swept").is_over() {
    }
    settled(service).await;
}

/// A service on one engine that frees objects and applies policies immediately.
async fn service(backend: Backend, settings: &[(&str, &str)]) -> Service {
    let own = [("SERVICE_GC_GRACE_SECONDS", "0"), ("SERVICE_RETENTION_GRACE_HOURS", "0")];
    let settings: Vec<(String, String)> =
        own.iter().chain(settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let database = TestDatabase::fresh(backend).await.expect("a database");
    Service::over(database, &settings).await.expect("a service")
}

pub(crate) async fn patch(client: &Client, path: &str, body: &Value) -> Answer {
    client.send(client.request(Method::PATCH, path).json(body)).await.expect("an answer")
}

pub(crate) async fn set(client: &Client, path: &str, body: Value) -> Value {
    patch(client, path, &body).await.success().expect("set")
}

pub(crate) async fn submitted(
    service: &Service,
    start: &str,
    status: &str,
    cases: Vec<Value>,
    more: Value,
) -> i64 {
    let body = with(with(run("shop", status, cases), json!({ "startTime": start })), more);
    let answer = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    answer["runId"].as_i64().expect("a run")
}

/// Ids of the runs that are left, oldest first.
pub(crate) async fn runs_left(client: &Client) -> Vec<i64> {
    let listed = client.json("/api/test-runs?limit=200").await.expect("runs");
    let mut ids: Vec<i64> =
        listed["items"].as_array().expect("runs").iter().filter_map(|run| run["id"].as_i64()).collect();
    ids.sort_unstable();
    ids
}

pub(crate) fn evidence(title: &str) -> Value {
    json!({ "steps": [{ "title": title, "category": "pw:api", "duration": 5 }] })
}

/// What is told of an execution of a run by title: its steps, and its files.
pub(crate) async fn kept(client: &Client, run: i64, title: &str) -> (usize, Vec<String>) {
    let found = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
    let found = found["items"].as_array().expect("executions").iter().find(|one| one["title"] == title);
    let id = found.unwrap_or_else(|| panic!("no {title}"))["id"].clone();
    let one = client.json(&format!("/api/test-run-cases/{id}")).await.expect("the execution");
    let files = client.json(&format!("/api/test-run-cases/{id}/files")).await.expect("files");
    let names = files["items"].as_array().expect("files").iter();
    let names = names.map(|file| file["name"].as_str().expect("a name").to_owned()).collect();
    (one["evidence"]["steps"].as_array().map_or(0, Vec::len), names)
}

/// Lines of console that are told of each test of a run, in the order of the tests.
async fn lines_kept(client: &Client, run: i64) -> Vec<usize> {
    let found = client.json(&format!("/api/test-runs/{run}/executions?sort=id")).await.expect("executions");
    let mut lines = Vec::new();
    for one in found["items"].as_array().expect("executions") {
        let path = format!("/api/test-run-cases/{}?include=console", one["id"]);
        let told = client.json(&path).await.expect("the execution");
        lines.push(told["evidence"]["consoleLogs"].as_array().map_or(0, Vec::len));
    }
    lines
}

/// Number and bytes of the objects that hold the evidence of a run.
fn pack_objects(service: &Service, run: i64) -> (usize, u64) {
    let folder = service.database().folder().join(format!("objects/project-1/packs/{run}"));
    let sizes = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes: Vec<u64> = sizes.map(|entry| entry.metadata().expect("metadata").len()).collect();
    (sizes.len(), sizes.iter().sum())
}

/// When the evidence of an execution of a run goes, and its first file.
async fn ends(client: &Client, run: i64, title: &str) -> [Value; 2] {
    let found = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
    let found = found["items"].as_array().expect("executions").iter().find(|one| one["title"] == title);
    let id = found.unwrap_or_else(|| panic!("no {title}"))["id"].clone();
    let one = client.json(&format!("/api/test-run-cases/{id}")).await.expect("the execution");
    let files = client.json(&format!("/api/test-run-cases/{id}/files")).await.expect("files");
    assert_eq!(one["attachments"], files["items"]);
    [one["evidenceExpiresAt"].clone(), files["items"][0]["expiresAt"].clone()]
}

/// The moment at which something that began on a day and is kept so many
/// whole days goes.
fn day_after(service: &Service, began: i64, days: i64) -> Value {
    let day = service.state().now().day().0 + began + days + 1;
    json!(callboard_domain::time::Day(day).start().to_iso())
}

#[tokio::test]
async fn runs_go_by_their_age_and_what_explains_or_measures_stays() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let full = json!({ "isFullRun": true, "branch": "main", "metadata": { "scm": { "defaultBranch": "main" } } });
        let green = || vec![attempt("looks", "passed", 0)];
        let old_green = submitted(&service, &days_ago(&service, 60), "passed", green(), full.clone()).await;
        let last_green = submitted(&service, &days_ago(&service, 50), "passed", green(), full.clone()).await;
        let failing = || vec![attempt("pays", "failed", 0)];
        let first_failure =
            submitted(&service, &days_ago(&service, 49), "failed", failing(), json!({ "branch": "main" })).await;
        let second_failure =
            submitted(&service, &days_ago(&service, 48), "failed", failing(), json!({ "branch": "main" })).await;
        let sample =
            submitted(&service, &days_ago(&service, 47), "failed", failing(), json!({ "branch": "main" })).await;
        let pinned = submitted(&service, &days_ago(&service, 46), "passed", green(), json!({})).await;
        let plain = submitted(&service, &days_ago(&service, 45), "passed", green(), json!({})).await;
        let young = submitted(&service, &days_ago(&service, 2), "passed", green(), json!({})).await;
        let pin = client.request(Method::PUT, &format!("/api/test-runs/{pinned}/pin"));
        Answer::send(pin.json(&json!({ "reason": "release" }))).await.and_then(|answer| answer.success()).expect("pinned");
        swept(&service).await;
        assert_eq!(runs_left(client).await.len(), 8, "nothing goes by the defaults");
        let before = client.json("/api/projects/1/test-cases?sort=title").await.expect("tests");
        let totals = |tests: &Value| -> Vec<Value> {
            let items = tests["items"].as_array().expect("tests").iter();
            items.map(|test| json!([test["title"], test["totalRuns"], test["failed"]])).collect()
        };

        let wanted = json!({ "runs": { "days": 30 }, "keep": { "clusterSamples": 1 } });
        let preview = client
            .post_json("/api/projects/1/retention/preview", &wanted)
            .await
            .expect("a preview");
        assert_eq!(
            (&preview["runs"], &preview["executions"], &preview["partial"]),
            (&json!(3), &json!(3), &json!(false)),
            "{preview}"
        );
        assert_eq!(
            preview["exempt"],
            json!({ "pinned": 1, "lastGreen": 1, "firstFailure": 1, "clusterSample": 1 })
        );
        set(client, "/api/settings/retention", wanted).await;
        swept(&service).await;
        assert_eq!(runs_left(client).await, [last_green, first_failure, sample, pinned, young]);
        let gone = client.get(&format!("/api/test-runs/{old_green}")).await.expect("an answer");
        assert_eq!(gone.status.as_u16(), 404);
        let receipts = client.json("/api/deletions?state=complete").await.expect("receipts");
        let receipts = receipts["items"].as_array().expect("receipts");
        let runs: i64 = receipts.iter().filter_map(|receipt| receipt["rows"]["runs"].as_i64()).sum();
        assert!(receipts.iter().all(|receipt| receipt["reason"] == "retention"), "{receipts:?}");
        assert_eq!(runs, 3);

        // What the runs counted for stays.
        let after = client.json("/api/projects/1/test-cases?sort=title").await.expect("tests");
        assert_eq!(totals(&after), totals(&before));
        let detail = client.json(&format!("/api/test-runs/{young}")).await.expect("the run");
        assert!(detail["retention"]["runExpiresAt"].is_string(), "{}", detail["retention"]);
        let detail = client.json(&format!("/api/test-runs/{pinned}")).await.expect("the run");
        assert!(detail["retention"]["runExpiresAt"].is_null(), "{}", detail["retention"]);

        // Without exceptions the rest goes, but for what is pinned.
        let none = json!({ "keep": { "lastGreen": false, "firstFailure": false, "clusterSamples": 0 } });
        set(client, "/api/projects/1/retention", none).await;
        swept(&service).await;
        assert_eq!(runs_left(client).await, [pinned, young]);
        assert!(![second_failure, plain].iter().any(|run| [pinned, young].contains(run)));
    })
    .await;
}

#[tokio::test]
async fn dates_follow_a_change_of_the_policy_and_a_project_decides_for_itself() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let case = || vec![attempt("looks", "passed", 0)];
        let run = submitted(&service, &days_ago(&service, 40), "passed", case(), json!({})).await;
        settled(&service).await;
        set(client, "/api/projects/1/retention", json!({ "runs": { "days": 90 } })).await;
        let policy = json!({ "runs": { "days": 20 }, "evidence": { "passedDays": 30 } });
        set(client, "/api/settings/retention", policy).await;
        swept(&service).await;
        assert_eq!(runs_left(client).await, [run], "the project says 90 days");
        let expires = |detail: &Value| detail["retention"]["runExpiresAt"].clone();
        let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
        let end = service.state().now().day().0 - 40 + 91;
        assert_eq!(expires(&detail), json!(callboard_domain::time::Day(end).start().to_iso()));

        let shown = client.json("/api/projects/1/retention").await.expect("the policy");
        assert_eq!(
            (&shown["settings"]["runs"]["days"], &shown["effective"]["runs"]["days"]),
            (&json!(90), &json!(90))
        );
        assert_eq!(shown["settings"]["evidence"]["passedDays"], Value::Null);
        assert_eq!(shown["effective"]["evidence"]["passedDays"], 30);
        let inherited = shown["inheritedKeys"].as_array().expect("keys");
        assert!(
            inherited.contains(&json!("evidence.passedDays")) && !inherited.contains(&json!("runs.days"))
        );

        // Newest runs stay although they are old.
        let keep = json!({ "runs": { "days": null, "keepLast": 1 } });
        set(client, "/api/projects/1/retention", keep).await;
        swept(&service).await;
        assert_eq!(runs_left(client).await, [run], "it is the newest");
        let newer = submitted(&service, &days_ago(&service, 39), "passed", case(), json!({})).await;
        settled(&service).await;
        set(
            client,
            "/api/projects/1/retention",
            json!({ "runs": { "keepLast": 1, "untrackedBranchDays": 19 } }),
        )
        .await;
        swept(&service).await;
        assert_eq!(runs_left(client).await, [newer], "the installation says 20 days");
        let audit = client.json("/api/audit?action=settings").await.expect("the log");
        let noted = &audit["items"][0];
        assert_eq!(
            (&noted["action"], &noted["detail"]["changed"]),
            (&json!("settings.changed"), &json!(["runs.untrackedBranchDays"]))
        );
    })
    .await;
}

#[tokio::test]
async fn evidence_and_files_go_by_kind_and_outcome_and_failures_stay_readable() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        set(client, "/api/settings/retention", json!({ "preset": "lean" })).await;
        let started = days_ago(&service, 20);
        let cases = json!([
            with(attempt("passes", "passed", 0), evidence("open the shop")),
            with(attempt("fails", "failed", 0), evidence("pay")),
            with(attempt("flakes", "failed", 0), evidence("first try")),
            with(attempt("flakes", "passed", 1), evidence("second try")),
        ]);
        let note = |name: &str| json!([{ "name": name, "contentType": "text/plain", "originalName": "a.txt" }]);
        let report = callboard_test_support::report_archive(&[("index.html", b"<h1>Report</h1>")]).expect("an archive");
        let body = with(run("shop", "failed", Vec::new()), json!({ "startTime": started }));
        let form = Form::new()
            .field("projectName", "shop")
            .field("testRun", body.to_string())
            .field("testCases", cases.to_string())
            .field("attach_meta_0", note("of passed").to_string())
            .file("attach_file_0", "a.txt", "text/plain", b"passed")
            .field("attach_meta_1", note("of failed").to_string())
            .file("attach_file_1", "a.txt", "text/plain", b"failed")
            .file("report_html", "report.gz", "application/gzip", &report);
        let request = client.request(Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        let stored = Answer::send(request).await.and_then(|answer| answer.success()).expect("stored");
        let run = stored["runId"].as_i64().expect("a run");
        swept(&service).await;
        assert_eq!(kept(client, run, "passes").await, (1, vec!["of passed".to_owned()]));
        assert_eq!(ends(client, run, "passes").await, [day_after(&service, -20, 30), day_after(&service, -20, 30)]);
        assert_eq!(ends(client, run, "fails").await, [day_after(&service, -20, 180), day_after(&service, -20, 180)]);
        let rows = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
        let shown = page(client, &format!("/test-run-cases/{}", rows["items"][0]["id"])).await;
        assert!(words_after(&shown, "Kept until").contains(" in "), "{shown}");
        let pin = client.request(Method::PUT, &format!("/api/test-runs/{run}/pin"));
        Answer::send(pin.json(&json!({}))).await.and_then(|answer| answer.success()).expect("pinned");
        let shown = page(client, &format!("/test-run-cases/{}", rows["items"][0]["id"])).await;
        assert!(!shown.contains("Kept until"), "{shown}");
        assert_eq!(ends(client, run, "passes").await, [Value::Null, Value::Null], "nothing of a pinned run goes");
        let unpin = client.request(Method::DELETE, &format!("/api/test-runs/{run}/pin"));
        Answer::send(unpin).await.and_then(|answer| answer.success()).expect("unpinned");
        let size = async || client.json("/api/projects/1/storage").await.expect("storage")["totals"]["bytes"].clone();
        let before = size().await.as_i64().expect("bytes");

        let policy = json!({
            "evidence": { "passedDays": 10 }, "files": { "attachment": { "passedDays": 10 }, "reportDays": 10 },
        });
        let wanted = client.post_json("/api/projects/1/retention/preview", &policy).await.expect("a preview");
        assert_eq!((&wanted["runs"], &wanted["files"], &wanted["evidenceSlices"]), (&json!(0), &json!(2), &json!(1)), "{wanted}");
        set(client, "/api/projects/1/retention", policy).await;
        swept(&service).await;
        assert_eq!(kept(client, run, "passes").await, (0, Vec::new()));
        assert_eq!(kept(client, run, "fails").await, (1, vec!["of failed".to_owned()]));
        assert_eq!(kept(client, run, "flakes").await.0, 1, "what passed at last explains the flaky test");
        let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
        assert_eq!(detail["reports"], json!([]));
        assert_eq!(detail["totalTests"], 3);
        let trimmed = size().await.as_i64().expect("bytes");
        assert!(trimmed < before, "{trimmed} of {before}");

        // One receipt takes on what goes until it is freed; there may be several.
        let receipts = client.json("/api/deletions?state=complete").await.expect("receipts");
        let receipts = receipts["items"].as_array().expect("receipts");
        let sum = |path: &str| -> i64 {
            receipts.iter().map(|receipt| receipt.pointer(path).and_then(Value::as_i64).expect(path)).sum()
        };
        for receipt in receipts {
            assert_eq!(
                (&receipt["target"]["kind"], &receipt["reason"]),
                (&json!("files"), &json!("retention"))
            );
            assert_eq!(receipt["freed"], receipt["objects"]);
        }
        assert_eq!((sum("/rows/files"), sum("/rows/other"), sum("/rows/executions")), (2, 1, 0));
        assert_eq!(sum("/freed/bytes"), before - trimmed, "{receipts:?}");

        // The failure is the first of its cluster: it stays, whatever its age.
        let policy = json!({ "evidence": { "flakyDays": 10, "failedDays": 10 }, "files": { "attachment": { "failedDays": 10 } } });
        set(client, "/api/projects/1/retention", policy).await;
        swept(&service).await;
        assert_eq!(kept(client, run, "fails").await, (1, vec!["of failed".to_owned()]));
        set(client, "/api/projects/1/retention", json!({ "keep": { "firstFailure": false, "clusterSamples": 0 } })).await;
        swept(&service).await;
        assert_eq!(kept(client, run, "fails").await, (0, Vec::new()));
        assert_eq!(kept(client, run, "flakes").await.0, 0);
        assert_eq!(size().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_policy_says_what_is_wrong_with_it_and_what_is_set_elsewhere() {
    for_each_backend(async |backend| {
        let service = service(backend, &[("SERVICE_RETENTION", r#"{"runs":{"days":365},"evidence":{"passedDays":null}}"#)]).await;
        let client = service.client();
        let shown = client.json("/api/settings/retention").await.expect("the policy");
        assert_eq!(shown["settings"]["runs"]["days"], 365);
        assert_eq!(shown["settings"]["evidence"], json!({ "passedDays": null, "flakyDays": null, "failedDays": null }));
        assert_eq!(shown["defaults"]["runs"]["days"], Value::Null);
        let variable = "SERVICE_RETENTION";
        assert_eq!(
            shown["locked"],
            json!([{ "key": "evidence.passedDays", "variable": variable }, { "key": "runs.days", "variable": variable }])
        );
        let refused = async |path: &str, body: Value, code: &str, data: Value| {
            let answer = patch(client, path, &body).await.json().expect("an error");
            assert_eq!((answer["code"].as_str(), &answer["data"]), (Some(code), &data), "{answer}");
        };
        let instance = "/api/settings/retention";
        let locked = json!({ "key": "runs.days", "variable": variable });
        refused(instance, json!({ "runs": { "days": 3, "keepLast": 2 } }), "setting_locked", locked).await;
        let field = |name: &str| json!({ "field": name });
        refused(instance, json!({ "keep": { "clusterSamples": 11 } }), "invalid_field", field("keep.clusterSamples")).await;
        refused(instance, json!({ "files": 3 }), "invalid_field", field("files")).await;
        refused(instance, json!({ "files": { "trace": { "passedDays": -1 } } }), "invalid_field", field("files.trace.passedDays")).await;
        refused(instance, json!({ "days": 3 }), "no_fields", Value::Null).await;
        refused(instance, json!({ "runs": {} }), "no_fields", Value::Null).await;
        let after = client.json(instance).await.expect("the policy");
        assert_eq!(after["settings"], shown["settings"], "nothing was changed");

        let preset = json!({ "field": "preset" });
        refused(instance, json!({ "preset": "tiny" }), "invalid_field", preset).await;
        refused(instance, json!({ "preset": "lean" }), "setting_locked", json!({ "key": "evidence.passedDays", "variable": variable })).await;

        let changed = set(client, instance, json!({ "keep": { "lastGreen": false }, "evidence": { "flakyDays": null } })).await;
        assert_eq!(changed["success"], true);
        assert_eq!((&changed["settings"]["keep"]["lastGreen"], &changed["settings"]["evidence"]["flakyDays"]), (&json!(false), &Value::Null));
        assert!(changed["updatedAt"].is_string(), "{changed}");
        let back = set(client, instance, json!({ "keep": null })).await;
        assert_eq!(back["settings"]["keep"], json!({ "lastGreen": true, "firstFailure": true, "clusterSamples": 3 }));
        for path in ["/settings/retention", "/settings/storage"] {
            let page = client.get(path).await.expect("a page");
            assert!(page.status.is_success(), "{path}: {}", page.text());
        }
        let page = client.get("/settings/retention").await.expect("a page").text();
        assert!(page.contains("Set by SERVICE_RETENTION"), "{page}");
    })
    .await;
}

#[tokio::test]
async fn branches_nobody_runs_are_forgotten_and_all_runs_together_count_as_before() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        set(client, "/api/settings/retention", json!({ "rollups": { "untrackedBranchDays": 30 } })).await;
        // What the service does by itself today is done before there is anything to forget.
        settled(&service).await;
        let on =
            |branch: &str| json!({ "branch": branch, "metadata": { "scm": { "defaultBranch": "main" } } });
        let case = || vec![attempt("looks", "passed", 0)];
        submitted(&service, &days_ago(&service, 50), "passed", case(), on("main")).await;
        let old = submitted(&service, &days_ago(&service, 50), "passed", case(), on("feature")).await;
        submitted(&service, &days_ago(&service, 50), "passed", case(), on("release/1")).await;
        submitted(&service, &days_ago(&service, 10), "passed", case(), on("fix")).await;
        settled(&service).await;
        set(client, "/api/projects/1", json!({ "trackedBranches": ["release/*"] })).await;
        let tests = async |branch: &str| {
            let path = format!("/api/projects/1/test-cases{branch}");
            let tests = client.json(&path).await.expect("tests");
            let items = tests["items"].as_array().expect("tests").iter();
            items.map(|test| test["totalRuns"].as_i64().expect("a number")).sum::<i64>()
        };
        let forget = async || {
            let (ctx, now) = (service.state().background(), service.state().now());
            let mut job = Some(callboard_query::retention::ForgetNumbers::default());
            while let Some(next) = job {
                job = callboard_query::retention::forget_numbers(&ctx, next, now).await.expect("forgotten");
            }
        };
        assert_eq!((tests("").await, tests("?branch=feature").await), (4, 1));
        forget().await;
        assert_eq!((tests("").await, tests("?branch=feature").await), (4, 0));
        // Its executions stay, and so does the way to them.
        let history = async |branch: &str| {
            let path = format!("/api/test-cases/1/history?branch={branch}");
            client.json(&path).await.expect("a history")["items"].as_array().map(Vec::len)
        };
        assert_eq!((history("feature").await, history("main").await), (Some(1), Some(1)));
        assert_eq!((tests("?branch=main").await, tests("?branch=release/1").await), (1, 1));
        assert_eq!(tests("?branch=fix").await, 1, "its last run is not long ago");

        // A run that no longer counts there is not taken back from it, and a new one counts again.
        submitted(&service, &days_ago(&service, 1), "passed", case(), on("feature")).await;
        assert_eq!((tests("").await, tests("?branch=feature").await), (5, 1));
        assert_eq!(history("feature").await, Some(2));
        let gone = client.send(client.request(Method::DELETE, &format!("/api/test-runs/{old}"))).await;
        gone.and_then(|answer| answer.success()).expect("deleted");
        settled(&service).await;
        assert_eq!((tests("").await, tests("?branch=feature").await), (4, 1));

        // Days that were let go are not there, what was counted over all time is.
        set(client, "/api/settings/retention", json!({ "rollups": { "dailyDays": 30 } })).await;
        forget().await;
        assert_eq!((tests("").await, tests("?branch=main").await), (4, 1));
        let db = service.state().store().db();
        let oldest = match db {
            callboard_store::Db::Sqlite { writer, .. } => {
                sqlx::query_scalar("SELECT MIN(day) FROM test_daily")
                    .fetch_one(&mut *writer.get().await.expect("a connection"))
                    .await
            }
            callboard_store::Db::Postgres(pool) => {
                sqlx::query_scalar("SELECT CAST(MIN(day) AS BIGINT) FROM test_daily")
                    .fetch_one(&mut *pool.get().await.expect("a connection"))
                    .await
            }
        };
        let oldest: i64 = oldest.expect("a day");
        assert_eq!(oldest, service.state().now().day().0 - 10);
    })
    .await;
}

#[tokio::test]
async fn what_shares_an_object_is_let_go_by_itself() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let started = days_ago(&service, 20);
        let feeder = crate::live::start(client, json!({ "startTime": started })).await;
        let failed = |n| with(telling(n, 8), json!({ "status": "failed", "error": "Error: refused" }));
        let passed = |n| telling(n, 8);
        feeder.results(vec![passed(0), passed(1), passed(2)]).await;
        feeder.results(vec![failed(3), failed(4), failed(5)]).await;
        feeder.results(vec![passed(6), failed(7), passed(8)]).await;
        assert_eq!(pack_objects(&service, feeder.run), (0, 0));
        assert_eq!(feeder.finish("failed").await, "failed");
        swept(&service).await;
        let (objects, whole) = pack_objects(&service, feeder.run);
        assert_eq!((objects, lines_kept(client, feeder.run).await), (1, vec![8; 9]));

        set(client, "/api/projects/1/retention", json!({ "evidence": { "passedDays": 10 } })).await;
        swept(&service).await;
        assert_eq!(lines_kept(client, feeder.run).await, [0, 0, 0, 8, 8, 8, 0, 8, 0]);
        let (objects, left) = pack_objects(&service, feeder.run);
        assert_eq!(objects, 1);
        assert!((whole / 3..whole * 2 / 3).contains(&left), "{left} of {whole} bytes");

        let keep = json!({ "firstFailure": false, "clusterSamples": 0 });
        let policy = json!({ "evidence": { "failedDays": 10 }, "keep": keep });
        set(client, "/api/projects/1/retention", policy).await;
        swept(&service).await;
        assert_eq!(lines_kept(client, feeder.run).await, [0; 9]);
        assert_eq!(pack_objects(&service, feeder.run), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn the_last_green_run_is_told_of_once_although_newer_ones_are_gone() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let full = json!({ "isFullRun": true, "branch": "main", "metadata": { "scm": { "defaultBranch": "main" } } });
        let wobbly = vec![attempt("wobbles", "failed", 0), attempt("wobbles", "passed", 1)];
        let green = submitted(&service, &days_ago(&service, 60), "passed", wobbly, full).await;
        let mut others = Vec::new();
        for days in [58, 57, 56, 55, 3, 2] {
            let cases = vec![attempt("wobbles", "passed", 0)];
            let fields = json!({ "isFullRun": false, "branch": "main" });
            others.push(submitted(&service, &days_ago(&service, days), "passed", cases, fields).await);
        }
        set(client, "/api/settings/retention", json!({ "runs": { "days": 30 } })).await;
        swept(&service).await;
        assert_eq!(runs_left(client).await, [green, others[4], others[5]]);
        let told = async || {
            let found = client.json("/api/projects/1/test-cases").await.expect("tests");
            let test = &found["items"][0];
            ["totalRuns", "flaky", "recentFlaky"].map(|key| test[key].clone())
        };
        assert_eq!(told().await, [7, 1, 1]);
        // What is left of its history is read again.
        let deleted = client.request(Method::DELETE, &format!("/api/test-runs/{}", others[5]));
        Answer::send(deleted).await.and_then(|answer| answer.success()).expect("deleted");
        settled(&service).await;
        assert_eq!(told().await, [6, 1, 1]);
    })
    .await;
}

#[tokio::test]
async fn a_test_whose_runs_are_all_deleted_is_no_test_of_its_project_until_it_runs_again() {
    for_each_backend(async |backend| {
        let service = service(backend, &[]).await;
        let client = service.client();
        let sent = async |days: i64, titles: &[&str]| {
            let cases = titles.iter().map(|title| attempt(title, "passed", 0)).collect();
            submitted(&service, &days_ago(&service, days), "passed", cases, json!({ "branch": "main" })).await
        };
        let counted = async || {
            settled(&service).await;
            let project = client.json("/api/projects/1").await.expect("a project");
            let tests = client.json("/api/projects/1/test-cases").await.expect("tests");
            let stats = client.json("/api/admin/stats").await.expect("stats");
            assert_eq!(project["totalTestCases"], stats["totalTestCases"]);
            (project["totalTestCases"].clone(), tests["items"].as_array().map(Vec::len))
        };
        let delete = async |run: i64| {
            let deleted = client.request(Method::DELETE, &format!("/api/test-runs/{run}"));
            Answer::send(deleted).await.and_then(|answer| answer.success()).expect("deleted");
        };
        let first = sent(9, &["pays", "looks"]).await;
        let second = sent(8, &["pays", "looks", "typo", "another typo"]).await;
        assert_eq!(counted().await, (json!(4), Some(4)));
        delete(second).await;
        assert_eq!(counted().await, (json!(2), Some(2)));
        sent(7, &["pays", "typo"]).await;
        sent(6, &["typo"]).await;
        assert_eq!(counted().await, (json!(3), Some(3)));
        delete(first).await;
        assert_eq!(counted().await, (json!(2), Some(2)));
    })
    .await;
}
