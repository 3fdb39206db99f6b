//! What a run that goes on survives: calls that are repeated, services that
//! stop or are killed, disks that are full. What was acknowledged is there, and
//! once.

use callboard_ingest::{Checked, check_run};
use callboard_store::{Backend, Db};
use callboard_test_support::databases::for_each_backend;
use callboard_test_support::{
    Answer, Client, Form, Runner, S3Server, Service, Settings, TestDatabase, for_each_service,
};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Feeder, code, complete, picked, run_events, start, sweep};
use crate::builders::{attempt, run, telling, with};
use crate::store::{contents, sql};

/// An attempt with a start, by which it is known again, and with evidence.
fn dated(title: &str, status: &str, retry: u32) -> Value {
    let at = 1_767_261_600_000_i64 + i64::from(retry) * 1_000;
    let steps = json!([{ "title": format!("click {title}"), "duration": 5, "category": "action" }]);
    with(attempt(title, status, retry), json!({ "startedAt": at, "steps": steps }))
}

#[tokio::test]
async fn batches_that_are_sent_again_change_no_row_counter_or_occurrence() {
    for_each_service(async |service| {
        let fields = json!({ "branch": "main", "environment": "staging" });
        let feeder = start(service.client(), fields).await;
        let browser = |case: Value, name: &str| with(case, json!({ "browser": { "projectName": name } }));
        let batches = [
            vec![dated("pays", "failed", 0), browser(dated("looks", "timedOut", 0), "mobile")],
            vec![dated("pays", "failed", 1), dated("skips", "skipped", 0), dated("looks", "passed", 0)],
            vec![browser(dated("looks", "passed", 1), "mobile"), dated("never runs", "didnotrun", 0)],
        ];
        for batch in &batches {
            feeder.results(batch.clone()).await;
        }
        let (rows, told) = (contents(service).await, run_events(service, feeder.run).await);
        for batch in batches.iter().rev().chain(&batches) {
            let answer = feeder.results(batch.clone()).await;
            let processed = json!(batch.len());
            assert_eq!(
                picked(&answer, ["processed", "inserted", "ignored"]),
                [processed, json!(0), json!(0)]
            );
        }
        assert_eq!(contents(service).await, rows);
        assert_eq!(run_events(service, feeder.run).await, told, "nobody is told twice");
        assert_eq!(feeder.finish("failed").await, "failed");
    })
    .await;
}

#[tokio::test]
async fn steps_alone_keep_a_run_alive() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let step = json!({ "type": "step-begin", "title": "waits", "parentTitle": "pays" });
        for _ in 0..6 {
            sql(service, "UPDATE test_runs SET last_activity_at = last_activity_at - 100000").await;
            sql(service, "UPDATE run_slots SET last_activity_at = last_activity_at - 100000").await;
            feeder.events(vec![step.clone()]).await;
            sweep(service, 110_000).await;
            assert_eq!(feeder.shown().await["status"], "running");
        }
        sweep(service, 130_000).await;
        assert_eq!(feeder.shown().await["status"], "interrupted");
    })
    .await;
}

#[tokio::test]
async fn a_silent_run_is_ended_by_whoever_looks_and_everybody_is_told() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let other = service.beside(&callboard_test_support::Settings::new()).await.expect("another service");
        sweep(&other, 110_000).await;
        assert_eq!(feeder.shown().await["status"], "running");
        tokio::join!(Box::pin(sweep(&other, 130_000)), Box::pin(sweep(service, 130_000)));
        let shown = feeder.shown().await;
        assert_eq!(picked(&shown, ["status", "endReason"]), [json!("interrupted"), json!("stale")]);
        assert_eq!(super::run_events(service, feeder.run).await, ["run-status", "run-finished"]);
        let kinds: Vec<String> =
            super::global_events(service).await.into_iter().map(|event| event.0).collect();
        assert_eq!(kinds, ["run-started", "run-interrupted"]);
    })
    .await;
}

#[tokio::test]
async fn one_request_writes_one_pack_however_much_evidence_it_brings() {
    for_each_service(async |service| {
        let packs =
            async || crate::rows::texts(service, "SELECT CAST(COUNT(*) AS text) FROM packs").await.remove(0);
        let feeder = start(service.client(), json!({})).await;
        let failing = |tests: std::ops::Range<u32>| -> Vec<Value> {
            tests.map(|n| attempt(&format!("test {n}"), "failed", 0)).collect()
        };
        for (from, expected) in [(0, "1"), (30, "2"), (30, "2")] {
            feeder.results(failing(from..from + 30)).await;
            feeder.shown().await;
            assert_eq!(packs().await, expected, "what is known already needs no pack");
        }
        let client = service.client();
        // More than are written in one transaction.
        for (tests, expected) in [(30, "3"), (2_100, "4")] {
            let batch = run("shop", "failed", failing(0..tests));
            client.post_json("/api/test-runs/submit", &batch).await.expect("stored");
            assert_eq!(packs().await, expected, "{tests} submitted");
        }
        let form = Form::new()
            .field("projectName", "shop")
            .field("testRun", run("shop", "failed", Vec::new()).to_string())
            .field("testCases", json!(failing(0..2_100)).to_string());
        let request = client.request(Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        Answer::send(request).await.expect("an answer").success().expect("stored");
        assert_eq!(packs().await, "5");
    })
    .await;
}

#[tokio::test]
async fn evidence_of_an_execution_is_one_ranged_read() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let bucket = S3Server::start().await.expect("a bucket");
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let mut settings = bucket.settings();
        settings.push(("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()));
        settings.push(("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()));
        // What is asked of a provider stands in the environment of a process.
        let service = Runner::start(&settings).await.expect("a service");
        // Together too much to be kept beside its row.
        let tests = (0..40).map(|n| telling(n, 20)).collect();
        let stored = service.client().post_json("/api/test-runs/submit", &run("shop", "passed", tests)).await;
        let run = stored.expect("stored")["runId"].clone();
        let page = service.client().json(&format!("/api/test-runs/{run}/executions")).await.expect("a page");
        let packs = || {
            let reads = bucket.reads().into_iter().filter(|read| read.path.contains("/packs/"));
            reads.map(|read| read.range.is_some()).collect::<Vec<_>>()
        };
        let _before = packs();
        for item in page["items"].as_array().expect("executions").iter().take(3) {
            let path = format!("/api/test-run-cases/{}", item["id"]);
            let told = service.client().json(&path).await.expect("an execution");
            assert_eq!(told["evidence"]["consoleLogs"].as_array().map(Vec::len), Some(20));
            assert_eq!(packs(), [true], "one part of one object");
            service.client().json(&format!("{path}?include=none")).await.expect("an execution");
            assert_eq!(packs(), [false; 0], "nothing is read for what is not told");
        }
    }
}

/// The orders in which some things can come.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    let grown = |order: &Vec<usize>, at: usize| [&order[..at], &[count - 1], &order[at..]].concat();
    shorter.iter().flat_map(|order| (0..count).map(move |at| grown(order, at))).collect()
}

#[tokio::test]
async fn repetitions_that_nobody_counts_are_three_in_any_order() {
    const MORNING: i64 = 1_767_261_600_000;
    for_each_service(async |service| {
        let repetitions =
            [("passed", 0, 0), ("failed", 0, 5_000), ("passed", 1, 6_000), ("passed", 0, 9_000)];
        let results = repetitions.map(|(status, retry, began)| {
            with(attempt("pays", status, retry), json!({ "startedAt": MORNING + began }))
        });
        for (number, order) in orders(results.len()).into_iter().enumerate() {
            let feeder =
                start(service.client(), json!({ "clientRunId": format!("in-order-{number}") })).await;
            for at in &order {
                feeder.results(vec![results[*at].clone()]).await;
            }
            let path = format!("/api/test-runs/{}/executions", feeder.run);
            let page = service.client().json(&path).await.expect("a page");
            assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{order:?}");
            let row = &page["items"][0];
            let keys = ["status", "flaky", "retries", "attemptCount"];
            assert_eq!(picked(row, keys), [json!("passed"), json!(true), json!(1), json!(4)], "{order:?}");
            let path = format!("/api/test-run-cases/{}", row["id"]);
            let detail = service.client().json(&path).await.expect("an execution");
            let mut told: Vec<_> = detail["attempts"]
                .as_array()
                .expect("attempts")
                .iter()
                .map(|one| (one["repetition"].as_i64(), one["retry"].as_i64()))
                .collect();
            told.sort_unstable();
            assert_eq!(
                told,
                [(0, 0), (1, 0), (1, 1), (2, 0)].map(|(one, other)| (Some(one), Some(other))),
                "{order:?}"
            );
        }
    })
    .await;
}

/// Says that no report follows, as reporters do that found none.
async fn attach_nothing(client: &Client, run: i64) -> Value {
    let form = Form::new()
        .field("testRunId", run.to_string())
        .field("projectName", "shop")
        .field("testRun", r#"{"status":"already-submitted"}"#);
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::send(request).await.expect("an answer").success().expect("attached")
}

#[tokio::test]
async fn a_run_that_waits_for_files_ends_as_remembered_after_a_restart() {
    for_each_backend(async |backend| {
        let service = Service::start(backend).await.expect("a service");
        let waiting = json!({ "hasPendingUploads": true });
        let mut runs = Vec::new();
        for (claimed, remembered) in [("passed", "passed"), ("timedout", "timedout"), ("passed", "failed")] {
            let feeder =
                start(service.client(), json!({ "clientRunId": format!("waits-{}", runs.len()) })).await;
            let status = if remembered == "failed" { "failed" } else { "passed" };
            feeder.results(vec![attempt("pays", status, 0)]).await;
            assert_eq!(feeder.finish_with(claimed, waiting.clone()).await, "finalizing");
            runs.push((feeder, remembered));
        }
        let forgotten = start(service.client(), json!({ "clientRunId": "forgotten" })).await;
        assert_eq!(forgotten.finish_with("timedout", waiting).await, "finalizing");

        let service =
            Service::over(service.into_database().await, &Settings::new()).await.expect("restarted");
        for (feeder, remembered) in runs {
            assert_eq!(attach_nothing(service.client(), feeder.run).await["status"], remembered);
            let feeder = Feeder { client: service.client().clone(), ..feeder };
            assert_eq!(feeder.shown().await["status"], remembered);
        }
        let forgotten = Feeder { client: service.client().clone(), ..forgotten };
        sweep(&service, 601_000).await;
        assert_eq!(
            picked(&forgotten.shown().await, ["status", "endReason"]),
            [json!("timedout"), Value::Null]
        );
    })
    .await;
}

#[tokio::test]
async fn a_body_from_before_its_run_was_known_is_that_run_whichever_comes_first() {
    for_each_service(async |service| {
        let body = |project: &str| {
            let cases = vec![dated("pays", "failed", 0), dated("looks", "passed", 0)];
            with(run(project, "failed", cases), json!({ "reporterVersion": "0.25.0" }))
        };
        let keyed = |project: &str| with(body(project), json!({ "instanceId": "0123456789abcdef" }));
        for (project, bodies) in [
            ("keyed first", [keyed("keyed first"), body("keyed first")]),
            ("keyed last", [body("keyed last"), keyed("keyed last")]),
        ] {
            let mut answers = Vec::new();
            for body in bodies {
                answers
                    .push(service.client().post_json("/api/test-runs/submit", &body).await.expect("stored"));
            }
            let keys = ["runId", "status", "totalTests", "failedTests"];
            assert_eq!(picked(&answers[0], keys), picked(&answers[1], keys), "{project}");
            let duplicates: Vec<&Value> = answers.iter().map(|answer| &answer["duplicate"]).collect();
            assert_eq!(duplicates, [&json!(false), &json!(true)], "{project}");
        }
        // Without anything to be known by, each is a run of its own.
        let plain = run("plain", "passed", vec![attempt("pays", "passed", 0)]);
        let first = service.client().post_json("/api/test-runs/submit", &plain).await.expect("stored");
        let second = service.client().post_json("/api/test-runs/submit", &plain).await.expect("stored");
        assert_ne!(first["runId"], second["runId"]);
    })
    .await;
}

#[tokio::test]
async fn a_full_database_loses_nothing_it_acknowledged_and_goes_on_when_there_is_room() {
    let service = Service::start(Backend::Sqlite).await.expect("a service");
    let feeder = start(service.client(), json!({})).await;
    feeder.results(vec![dated("first of all", "passed", 0)]).await;
    let Db::Sqlite { writer, intake, .. } = service.state().store().db() else { panic!("not SQLite") };
    // The connections that write get no page beyond these.
    let files = [writer, &intake.writer];
    for file in files {
        let mut connection = file.get().await.expect("a connection");
        let pages = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await;
        let pages: i64 = pages.expect("a number");
        let limit = format!("PRAGMA max_page_count = {}", pages + 40);
        let limited = sqlx::raw_sql(sqlx::AssertSqlSafe(limit)).execute(&mut *connection).await;
        limited.expect("a limit");
    }
    let batch = |n: usize| -> Vec<Value> {
        (0..20).map(|test| complete(dated(&format!("test {n} {test}"), "passed", 0))).collect()
    };
    let mut acknowledged = 1;
    let mut refused = None;
    for n in 0..200 {
        let answer = feeder.call("events", json!({ "testCases": batch(n) })).await;
        if answer.status == 200 {
            acknowledged += 20;
            continue;
        }
        assert_eq!(code(&answer), (503, "database_unavailable".to_owned()), "{}", answer.text());
        assert_eq!(answer.header("retry-after"), "5");
        refused = Some(n);
        break;
    }
    let refused = refused.expect("the database is full at some time");
    let shown = feeder.shown().await["totalTests"].as_i64().expect("what is there can be read");
    assert!(shown <= acknowledged);
    let again = feeder.call("events", json!({ "testCases": batch(refused) })).await;
    assert_eq!(again.status, 503, "it stays full");
    for file in files {
        let mut connection = file.get().await.expect("a connection");
        let room = sqlx::raw_sql("PRAGMA max_page_count = 1000000").execute(&mut *connection).await;
        room.expect("room");
    }
    let taken = feeder.events(batch(refused)).await;
    assert_eq!(taken["inserted"], 20);
    assert_eq!(feeder.finish("passed").await, "passed");
    let shown = feeder.shown().await;
    assert_eq!(shown["totalTests"], acknowledged + 20);
    let project = callboard_domain::ids::ProjectId(shown["projectId"].as_i64().expect("a project"));
    let run = callboard_domain::ids::RunId(feeder.run);
    let checked = check_run(&super::context(&service), project, run, service.state().now()).await;
    assert_eq!(checked.expect("checked"), Checked::Right);
}

#[tokio::test]
async fn a_transaction_that_the_database_ended_by_itself_keeps_nobody_from_the_next() {
    let service = Service::start(Backend::Sqlite).await.expect("a service");
    let feeder = start(service.client(), json!({})).await;
    // What SQLite does when its disk is full in the middle of a commit.
    let full = "CREATE TRIGGER full BEFORE INSERT ON executions BEGIN SELECT RAISE(ROLLBACK, 'full'); END";
    sql(&service, full).await;
    feeder.results(vec![dated("pays", "passed", 0)]).await;
    assert_eq!(feeder.shown().await["totalTests"], 0, "it waits");
    let batch = run("shop", "passed", vec![attempt("pays", "passed", 0)]);
    let refused = service.client().post_json("/api/test-runs/submit", &batch).await;
    assert!(refused.is_err(), "nothing is answered that was not written");
    sql(&service, "DROP TRIGGER full").await;
    feeder.results(vec![dated("pays", "passed", 1)]).await;
    assert_eq!(feeder.finish("passed").await, "passed");
    assert_eq!(feeder.shown().await["totalTests"], 1);
}

#[tokio::test]
async fn a_file_store_that_takes_nothing_stores_nothing_by_halves() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![dated("pays", "failed", 0)]).await;
        let objects = service.database().folder().join("objects");
        let away = service.database().folder().join("away");
        // A file where the folder was: nothing can be written below it.
        std::fs::rename(&objects, &away).expect("moved");
        std::fs::write(&objects, "full").expect("a file");
        let large: Vec<Value> = (0..30).map(|n| complete(telling(n, 20))).collect();
        let answer = feeder.call("events", json!({ "testCases": large })).await;
        assert_eq!(code(&answer), (503, "storage_unavailable".to_owned()));
        assert_eq!(answer.header("retry-after"), "5");
        let files = || {
            let case =
                json!({ "title": "pays", "location": "tests/shop.spec.ts:7:5", "suitePath": ["Shop"] });
            let form = Form::new().field("streamToken", &feeder.token).field("testCase", case.to_string());
            let form = form.file("trace", "trace.zip", "application/zip", &vec![b'x'; 2_000_000]);
            let path = format!("/api/test-runs/{}/case-files", feeder.run);
            let request = service.client().request(Method::POST, &path);
            Answer::send(request.header("content-type", Form::content_type()).body(form.into_body()))
        };
        assert_eq!(code(&files().await.expect("an answer")), (503, "storage_unavailable".to_owned()));
        let shown = feeder.shown().await;
        assert_eq!(picked(&shown, ["status", "totalTests"]), [json!("running"), json!(1)]);
        // What fits into the database needs no other place.
        feeder.results(vec![dated("looks", "failed", 0)]).await;

        std::fs::remove_file(&objects).expect("removed");
        std::fs::rename(&away, &objects).expect("moved back");
        let taken = feeder.events(large).await;
        assert_eq!(taken["inserted"], 30);
        let linked = files().await.expect("an answer").success().expect("linked");
        assert_eq!(linked["traces"], 1);
        assert_eq!(feeder.finish("failed").await, "failed");
        assert_eq!(picked(&feeder.shown().await, ["totalTests", "failedTests"]), [json!(32), json!(2)]);
    })
    .await;
}

/// Results of a batch that a killed service was sent.
fn batch_of(n: usize) -> Vec<Value> {
    (0..5).map(|test| complete(dated(&format!("test {n}.{test}"), "passed", 0))).collect()
}

#[tokio::test]
async fn a_killed_service_keeps_what_it_acknowledged_and_takes_the_rest_later() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let settings: Settings = vec![
            ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
            ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
            ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
        ];
        let killed = Runner::start(&settings).await.expect("a service");
        let feeder = start(killed.client(), json!({ "clientRunId": "outlives-its-service" })).await;
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let sender = feeder.clone();
        // Sends until nobody answers any more; in the middle of which the process is killed.
        let sending = tokio::spawn(async move {
            let path = format!("/api/test-runs/{}/events", sender.run);
            for n in 0.. {
                let body = json!({ "streamToken": sender.token, "testCases": batch_of(n) });
                match sender.client.post(&path, &body).await {
                    Ok(answer) if answer.status == 200 => {
                        let _ = tell.send(n);
                    }
                    _ => return n,
                }
            }
            0
        });
        let mut acknowledged = 0;
        while acknowledged < 12 {
            acknowledged = told.recv().await.expect("an answer") + 1;
        }
        drop(killed);
        let unsure = sending.await.expect("sent");
        while let Ok(n) = told.try_recv() {
            acknowledged = n + 1;
        }
        assert_eq!(acknowledged, unsure, "all batches before the last were acknowledged");

        let restarted = Runner::start(&settings).await.expect("a service");
        let feeder = Feeder { client: restarted.client().clone(), ..feeder };
        let kept = feeder.shown().await["totalTests"].as_i64().expect("a number");
        let sure = 5 * i64::try_from(acknowledged).expect("small");
        assert!(kept == sure || kept == sure + 5, "{kept} tests of {sure} that were acknowledged");
        for n in (0..=unsure).rev() {
            let answer = feeder.events(batch_of(n)).await;
            assert!(n == unsure || answer["inserted"] == 0, "batch {n} was there");
        }
        assert_eq!(feeder.finish("passed").await, "passed");
        assert_eq!(feeder.shown().await["totalTests"], sure + 5);
        let path = format!("/api/test-runs/{}/executions?limit=1&sort=id", feeder.run);
        let first = restarted.client().json(&path).await.expect("executions")["items"][0].clone();
        let page = format!("/api/test-run-cases/{}", first["id"]);
        let detail = restarted.client().json(&page).await.expect("an execution");
        assert_eq!(
            detail["evidence"]["steps"][0]["title"],
            format!("click {}", first["title"].as_str().unwrap_or(""))
        );
    })
    .await;
}
