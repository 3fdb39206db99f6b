//! The life of a run without shards.

use callboard_test_support::{Service, for_each_service};
use serde_json::{Value, json};

use super::{Feeder, complete, fields, global_events, later, picked, run_events, start, sweep};
use crate::builders::{attempt, run, telling, with};
use crate::rows::settled;

const TOTALS: [&str; 5] = ["status", "totalTests", "passedTests", "failedTests", "flakyTests"];

#[tokio::test]
async fn a_run_is_fed_and_finished() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({ "totalTests": 2, "branch": "main" })).await;
        let shown = feeder.shown().await;
        assert_eq!(picked(&shown, ["status", "plannedTests", "branch"]), [json!("running"), json!(2), json!("main")]);
        let begun = json!({ "type": "begin", "title": "pays", "location": "tests/shop.spec.ts:7:5", "suitePath": ["Shop"] });
        let failed = complete(with(attempt("pays", "failed", 0), json!({ "startedAt": 1_767_261_600_000_i64,
            "steps": [{ "title": "click", "duration": 5 }] })));
        let answer = feeder.events(vec![begun, failed.clone()]).await;
        assert_eq!(picked(&answer, ["processed", "inserted", "ignored"]), [json!(2), json!(1), json!(0)]);
        let again = feeder.events(vec![failed]).await;
        assert_eq!(picked(&again, ["processed", "inserted", "ignored"]), [json!(1), json!(0), json!(0)]);
        let retried = with(attempt("pays", "passed", 1), json!({ "startedAt": 1_767_261_605_000_i64 }));
        feeder.results(vec![retried, attempt("signs in", "passed", 0)]).await;
        let shown = feeder.shown().await;
        assert_eq!(picked(&shown, TOTALS), [json!("running"), json!(2), json!(2), json!(0), json!(1)]);
        assert_eq!(feeder.call("heartbeat", json!({})).await.success().expect("alive")["status"], "running");
        assert_eq!(feeder.finish_with("passed", json!({ "totalTests": 77, "failedTests": 9 })).await, "passed");
        assert_eq!(feeder.finish("failed").await, "passed", "finishing again changes nothing");
        let shown = feeder.shown().await;
        assert_eq!(picked(&shown, TOTALS), [json!("passed"), json!(2), json!(2), json!(0), json!(1)]);
        assert_eq!(picked(&shown, ["duration", "endReason", "shardsFinished"]), [json!(5000), Value::Null, json!(1)]);
        assert_eq!(shown["shards"], json!([{ "index": 0, "state": "finished", "generation": 0, "status": "passed",
            "duration": 5000, "waiting": false, "jobAttempt": null, "ci": null }]));
        let refused = feeder.call("events", json!({ "testCases": [] })).await;
        assert_eq!((refused.status.as_u16(), refused.json().expect("json")["code"].clone()), (409, json!("run_finished")));
        assert_eq!(
            global_events(service).await,
            [("run-started".to_owned(), feeder.run, "running".to_owned()), ("run-finished".to_owned(), feeder.run, "passed".to_owned())]
        );
        // How many calls are worked in together is a matter of time, and with it how often progress is told.
        let (progress, told): (Vec<String>, Vec<String>) =
            run_events(service, feeder.run).await.into_iter().partition(|kind| kind == "run-progress");
        assert_eq!(told, ["test-begin", "test-completed", "test-completed", "test-completed", "run-finished"]);
        assert!((2..=4).contains(&progress.len()), "{progress:?}");
    })
    .await;
}

async fn set_up(service: &callboard_test_support::Service, more: Value) -> (i64, String) {
    let answer = service.client().post_json("/api/test-runs/setup", &fields(more)).await.expect("set up");
    (answer["runId"].as_i64().expect("a run"), answer["setupToken"].as_str().expect("a token").to_owned())
}

async fn begin(
    service: &callboard_test_support::Service,
    run: i64,
    token: &str,
    more: Value,
) -> Result<Feeder, String> {
    let body = with(json!({ "setupToken": token }), more);
    let answer =
        service.client().post(&format!("/api/test-runs/{run}/begin"), &body).await.expect("an answer");
    let told = answer.json().expect("json");
    match told["streamToken"].as_str() {
        Some(token) => Ok(Feeder { client: service.client().clone(), run, token: token.to_owned() }),
        None => Err(told["code"].as_str().expect("a code").to_owned()),
    }
}

#[tokio::test]
async fn a_set_up_run_begins_once() {
    for_each_service(async |service| {
        let (run, token) = set_up(service, json!({ "instanceId": "0123456789abcdef" })).await;
        let shown = service.client().json(&format!("/api/test-runs/{run}")).await.expect("the run");
        assert_eq!(shown["status"], "initializing");
        let told =
            json!({ "totalTests": 1, "metadata": { "scm": { "branch": "feature", "commit": "0a1b2c3d" } } });
        let feeder = begin(service, run, &token, told.clone()).await.expect("begun");
        assert_eq!(begin(service, run, &token, told).await.expect_err("used"), "begin_not_possible");
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(feeder.finish("passed").await, "passed");
        let shown = feeder.shown().await;
        let keys = ["branch", "commit", "plannedTests", "totalTests"];
        assert_eq!(picked(&shown, keys), [json!("feature"), json!("0a1b2c3d"), json!(1), json!(1)]);
        let kinds: Vec<String> = global_events(service).await.into_iter().map(|event| event.0).collect();
        assert_eq!(kinds, ["run-initializing", "run-started", "run-finished"]);
    })
    .await;
}

#[tokio::test]
async fn a_long_set_up_is_waited_for_and_an_endless_one_is_not() {
    for_each_service(async |service| {
        let (run, token) = set_up(service, json!({})).await;
        sweep(service, 20 * 60 * 1000).await;
        let path = format!("/api/test-runs/{run}");
        assert_eq!(service.client().json(&path).await.expect("the run")["status"], "initializing");
        sweep(service, 31 * 60 * 1000).await;
        let shown = service.client().json(&path).await.expect("the run");
        assert_eq!(picked(&shown, ["status", "endReason"]), [json!("interrupted"), json!("setup_timeout")]);
        let told = json!({ "isFullRun": false, "metadata": { "scm": { "branch": "main" } } });
        let feeder = begin(service, run, &token, told).await.expect("an unused token opens it again");
        assert_eq!(picked(&feeder.shown().await, ["status", "branch"]), [json!("running"), json!("main")]);
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(feeder.finish("passed").await, "passed");
        // It counts as what it turned out to be, and no longer as what it was taken for.
        let overview = service.client().json("/api/projects/overview").await.expect("an overview");
        assert_eq!(overview["items"][0]["totalFullRuns"], 0);
        let tests = service.client().json("/api/projects/1/test-cases?branch=main").await.expect("tests");
        assert_eq!(tests["total"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_was_set_up_and_comes_as_a_batch_is_of_its_branch() {
    for_each_service(async |service| {
        let client = service.client();
        let key = json!({ "clientRunId": "0123456789abcdef01" });
        let (run, _) = set_up(service, key.clone()).await;
        let batch = crate::builders::run("shop", "passed", vec![attempt("pays", "passed", 0)]);
        let told = json!({ "metadata": { "scm": { "branch": "main" } } });
        let answer = client.post_json("/api/test-runs/submit", &with(with(batch, key), told)).await;
        assert_eq!(answer.expect("submitted")["testRunId"], run);
        let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
        assert_eq!(picked(&shown, ["status", "branch"]), [json!("passed"), json!("main")]);
        let tests = client.json("/api/projects/1/test-cases?branch=main").await.expect("tests");
        assert_eq!(tests["total"], 1);
    })
    .await;
}

#[tokio::test]
async fn files_are_waited_for_and_not_for_ever() {
    for_each_service(async |service| {
        let waiting = start(service.client(), json!({})).await;
        waiting.results(vec![attempt("pays", "failed", 0)]).await;
        assert_eq!(waiting.finish_with("passed", json!({ "hasPendingUploads": true })).await, "finalizing");
        sweep(service, 300_000).await;
        assert_eq!(waiting.shown().await["status"], "finalizing");
        // An upload is a sign of life from its first bytes on, also one that breaks off.
        crate::store::sql(service, "UPDATE test_runs SET last_activity_at = last_activity_at - 600000").await;
        let cut = callboard_test_support::Form::new().field("testRunId", waiting.run.to_string()).file(
            "report_html",
            "html.gz",
            "application/gzip",
            &vec![b'x'; 300_000],
        );
        let cut = cut.into_body();
        let request = service.client().request(reqwest::Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", callboard_test_support::Form::content_type());
        let refused = callboard_test_support::Answer::send(request.body(cut.slice(..cut.len() - 8))).await;
        assert_eq!(refused.expect("an answer").status.as_u16(), 400);
        sweep(service, 300_000).await;
        assert_eq!(waiting.shown().await["status"], "finalizing");
        let form = callboard_test_support::Form::new()
            .field("testRunId", waiting.run.to_string())
            .field("projectName", "shop")
            .field("testRun", r#"{"status":"already-submitted"}"#);
        let request = service.client().request(reqwest::Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", callboard_test_support::Form::content_type());
        let answer =
            callboard_test_support::Answer::send(request.body(form.into_body())).await.expect("an answer");
        assert_eq!(
            answer.success().expect("uploaded")["status"],
            "failed",
            "a failed test outweighs a claimed pass"
        );

        let forgotten = start(service.client(), json!({ "instanceId": "forgotten" })).await;
        assert_eq!(forgotten.finish_with("passed", json!({ "hasPendingUploads": true })).await, "finalizing");
        sweep(service, 601_000).await;
        assert_eq!(picked(&forgotten.shown().await, ["status", "endReason"]), [json!("passed"), Value::Null]);
    })
    .await;
}

#[tokio::test]
async fn a_label_that_a_person_gave_stays() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({ "label": "Nightly" })).await;
        let told = |shown: &Value| shown["label"].clone();
        assert_eq!(told(&feeder.shown().await), "Nightly");
        feeder.finish_with("passed", json!({ "label": null })).await;
        assert_eq!(told(&feeder.shown().await), "Nightly", "nothing clears a label");

        for (client, said) in [("its-label", json!("Nightly")), ("no-label", Value::Null)] {
            edited_label_stays(service, client, &said).await;
        }
    })
    .await;
}

/// A run of a client that says something else at its end.
async fn edited_label_stays(service: &Service, client: &str, said: &Value) {
    let edited = start(service.client(), json!({ "label": "Nightly", "clientRunId": client })).await;
    let request = service.client().request(reqwest::Method::PATCH, &format!("/api/test-runs/{}", edited.run));
    let request = request.header("content-type", "application/json");
    let body = json!({ "label": "Release 7" }).to_string();
    let answer = callboard_test_support::Answer::send(request.body(body)).await.expect("an answer");
    answer.success().expect("edited");
    edited.finish_with("passed", json!({ "label": said })).await;
    assert_eq!(edited.shown().await["label"], "Release 7", "{said}");
}

#[tokio::test]
async fn a_placeholder_never_outweighs_a_result_whichever_comes_first() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let placeholder = |title: &str| attempt(title, "didnotrun", 0);
        feeder.results(vec![placeholder("runs late"), attempt("runs", "failed", 0)]).await;
        feeder
            .results(vec![attempt("runs late", "passed", 0), placeholder("runs"), placeholder("never runs")])
            .await;
        feeder.finish("failed").await;
        let keys = ["totalTests", "passedTests", "failedTests", "didNotRunTests"];
        assert_eq!(picked(&feeder.shown().await, keys), [json!(3), json!(1), json!(1), json!(1)]);
    })
    .await;
}

#[tokio::test]
async fn ten_finishes_at_once_are_one_end() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let ends = (0..10).map(|_| feeder.finish("passed"));
        assert!(futures::future::join_all(ends).await.iter().all(|status| status == "passed"));
        let events = global_events(service).await;
        assert_eq!(events.iter().filter(|event| event.0 == "run-finished").count(), 1);
        assert_eq!(completions(service).await, [format!("run:{}:completion", feeder.run)]);
    })
    .await;
}

#[tokio::test]
async fn a_batch_after_a_lost_finish_is_the_same_run() {
    for_each_service(async |service| {
        let keys = json!({ "instanceId": "0123456789abcdef", "reporterVersion": "0.25.0" });
        let feeder = start(service.client(), keys.clone()).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let body = with(
            run("shop", "passed", vec![attempt("pays", "passed", 0), attempt("looks", "passed", 0)]),
            keys,
        );
        let answer = service.client().post_json("/api/test-runs/submit", &body).await.expect("merged");
        assert_eq!(
            picked(&answer, ["runId", "status", "totalTests", "duplicate"]),
            [json!(feeder.run), json!("passed"), json!(2), json!(true)]
        );
        // Saved before the reporter knew its run, and sent days later.
        let mut recovered = body;
        recovered.as_object_mut().expect("an object").remove("instanceId");
        let answer = service.client().post_json("/api/test-runs/submit", &recovered).await.expect("merged");
        assert_eq!(picked(&answer, ["runId", "duplicate"]), [json!(feeder.run), json!(true)]);
    })
    .await;
}

#[tokio::test]
async fn a_batch_after_set_up_finds_the_run_by_when_its_tests_began() {
    for_each_service(async |service| {
        let (run_id, token) = set_up(service, json!({ "instanceId": "0123456789abcdef" })).await;
        begin(service, run_id, &token, json!({})).await.expect("begun");
        let soon = service.state().now().to_iso();
        let body = with(
            run("shop", "passed", vec![attempt("pays", "passed", 0)]),
            json!({ "instanceId": "0123456789abcdef", "startTime": soon }),
        );
        let answer = service.client().post_json("/api/test-runs/submit", &body).await.expect("merged");
        assert_eq!(picked(&answer, ["runId", "status"]), [json!(run_id), json!("passed")]);
    })
    .await;
    // Its client did not hear that the run is over, and sends all of it again.
    for_each_service(async |service| {
        let key = json!({ "instanceId": "0123456789abcdef" });
        let (run_id, token) = set_up(service, key.clone()).await;
        let feeder = begin(service, run_id, &token, json!({})).await.expect("begun");
        let began = service.state().now().to_iso();
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(feeder.finish("passed").await, "passed");
        let body = |start: String| {
            let body = run("shop", "passed", vec![attempt("pays", "passed", 0)]);
            with(with(body, key.clone()), json!({ "startTime": start }))
        };
        let again = service.client().post_json("/api/test-runs/submit", &body(began)).await.expect("merged");
        let keys = ["runId", "status", "totalTests", "duplicate"];
        assert_eq!(picked(&again, keys), [json!(run_id), json!("passed"), json!(1), json!(true)]);
        // What began after the end is another run of the same pipeline.
        let next = later(service, 30_000).to_iso();
        let other = service.client().post_json("/api/test-runs/submit", &body(next)).await.expect("stored");
        assert_eq!((other["runId"] == json!(run_id), &other["duplicate"]), (false, &json!(false)));
    })
    .await;
}

#[tokio::test]
async fn what_is_left_out_of_a_call_is_told_in_its_answer() {
    for_each_service(async |service| {
        let odd = json!({ "label": ["no text"] });
        let told = |answer: &Value| {
            let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
            warnings
                .iter()
                .map(|warning| warning["code"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        let client = service.client();
        let setup = client.post_json("/api/test-runs/setup", &fields(odd.clone())).await.expect("set up");
        assert_eq!(told(&setup), ["field_dropped"]);
        let path = format!("/api/test-runs/{}/begin", setup["runId"]);
        let body = with(json!({ "setupToken": setup["setupToken"] }), odd.clone());
        assert_eq!(told(&client.post_json(&path, &body).await.expect("begun")), ["field_dropped"]);
        let started = client.post_json("/api/test-runs/start", &fields(odd.clone())).await.expect("started");
        assert_eq!(told(&started), ["field_dropped"]);
        let feeder = start(client, json!({ "clientRunId": "in-good-order" })).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let body = with(odd, json!({ "status": "purple" }));
        let finished = feeder.call("finish", body).await.success().expect("finished");
        assert_eq!(told(&finished), ["unknown_status", "field_dropped"]);
        assert_eq!(finished["status"], "passed", "an unknown word says nothing, so the tests do");
        let silent = start(client, json!({ "clientRunId": "says-nothing" })).await;
        let finished = silent.call("finish", json!({})).await.success().expect("finished");
        assert_eq!((told(&finished), finished["status"].clone()), (vec![], json!("failed")));
    })
    .await;
}

#[tokio::test]
async fn a_newer_run_ends_one_that_fell_silent_and_spares_one_that_is_alive() {
    for_each_service(async |service| {
        let key = |n: u32| json!({ "instanceId": "0123456789abcdef", "startTime": format!("2026-01-01T10:00:0{n}Z") });
        let first = start(service.client(), key(0)).await;
        let second = start(service.client(), key(1)).await;
        assert_ne!(first.run, second.run);
        assert_eq!(first.shown().await["status"], "running");
        crate::store::sql(service, "UPDATE test_runs SET last_activity_at = last_activity_at - 46000 WHERE id = (SELECT MIN(id) FROM test_runs)").await;
        let third = start(service.client(), key(2)).await;
        let shown = first.shown().await;
        assert_eq!(picked(&shown, ["status", "endReason"]), [json!("cancelled"), json!("superseded")]);
        assert_eq!(second.shown().await["status"], "running");
        first.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(first.shown().await["status"], "running", "a sign of life proves the guess wrong");
        assert_eq!((third.finish("passed").await, first.finish("passed").await), ("passed".to_owned(), "passed".to_owned()));
    })
    .await;
}

#[tokio::test]
async fn one_broken_event_costs_only_itself() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let mut events: Vec<Value> =
            (0..49).map(|n| complete(attempt(&format!("test {n}"), "passed", 0))).collect();
        events.insert(20, json!({ "type": "complete", "status": "passed" }));
        let answer = feeder.events(events).await;
        assert_eq!(picked(&answer, ["processed", "inserted", "ignored"]), [json!(49), json!(49), json!(1)]);
        assert_eq!(answer["warnings"].as_array().map(Vec::len), Some(1));
        assert_eq!(feeder.shown().await["totalTests"], 49);
    })
    .await;
}

#[tokio::test]
async fn a_run_cancelled_by_hand_stays_cancelled() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({ "totalTests": 2 })).await;
        let path = format!("/api/test-runs/{}/cancel", feeder.run);
        let answer = service.client().post_json(&path, &json!({})).await.expect("cancelled");
        assert_eq!(picked(&answer["run"], ["status", "endReason"]), [json!("cancelled"), json!("user")]);
        let shown = service.client().get(&format!("/test-runs/{}", feeder.run)).await.expect("a page").text();
        assert!(shown.contains("of 2\u{a0}tests; 2\u{a0}tests without a result"), "{shown}");
        let refused = feeder.call("events", json!({ "testCases": [] })).await;
        assert_eq!(
            (refused.status.as_u16(), refused.json().expect("json")["code"].clone()),
            (409, json!("run_cancelled"))
        );
        let again = service.client().post(&path, &json!({})).await.expect("an answer");
        assert_eq!(
            (again.status.as_u16(), again.json().expect("json")["code"].clone()),
            (409, json!("run_already_finished"))
        );
        let kinds: Vec<String> = global_events(service).await.into_iter().map(|event| event.0).collect();
        assert_eq!(kinds, ["run-started", "run-cancelled"]);
        // One that did not begin yet is told what makes its client start afresh.
        let (run_id, token) = set_up(service, json!({ "instanceId": "not-begun" })).await;
        let path = format!("/api/test-runs/{run_id}/cancel");
        service.client().post_json(&path, &json!({})).await.expect("cancelled");
        assert_eq!(begin(service, run_id, &token, json!({})).await.expect_err("over"), "begin_not_possible");
    })
    .await;
}

/// Keys of the jobs that follow the ends of runs, in any state.
async fn completions(service: &callboard_test_support::Service) -> Vec<String> {
    let sql = "SELECT key FROM jobs WHERE kind = 'completion' ORDER BY key";
    match service.state().store().db() {
        callboard_store::Db::Sqlite { readers, .. } => {
            sqlx::query_scalar(sql).fetch_all(&mut *readers.get().await.expect("a connection")).await
        }
        callboard_store::Db::Postgres(pool) => {
            sqlx::query_scalar(sql).fetch_all(&mut *pool.get().await.expect("a connection")).await
        }
    }
    .expect("jobs")
}

#[tokio::test]
async fn what_follows_a_run_is_queued_once_however_it_ended() {
    for_each_service(async |service| {
        let client = service.client();
        let upload = async |form: callboard_test_support::Form| {
            let request = client.request(reqwest::Method::POST, "/api/test-runs/upload");
            let request = request.header("content-type", callboard_test_support::Form::content_type());
            let answer = callboard_test_support::Answer::send(request.body(form.into_body())).await;
            answer.expect("an answer").success().expect("uploaded")
        };
        let form = || callboard_test_support::Form::new().field("projectName", "shop");
        let finished = start(client, json!({ "instanceId": "finished" })).await;
        finished.results(vec![attempt("pays", "passed", 0)]).await;
        finished.finish("passed").await;
        finished.finish("passed").await;
        let same = with(
            run("shop", "passed", vec![attempt("looks", "passed", 0)]),
            json!({ "instanceId": "finished" }),
        );
        let merged = client.post_json("/api/test-runs/submit", &same).await.expect("merged");
        assert_eq!(merged["runId"], json!(finished.run));
        let submitted =
            client.post_json("/api/test-runs/submit", &run("shop", "passed", vec![])).await.expect("stored");
        let batch = with(run("shop", "passed", vec![]), json!({ "clientRunId": "sent-with-files" }));
        let mut uploaded = Value::Null;
        for _ in 0..2 {
            uploaded = upload(form().field("testRun", batch.to_string())).await["runId"].clone();
        }
        let waiting = start(client, json!({ "instanceId": "waiting" })).await;
        assert_eq!(waiting.finish_with("passed", json!({ "hasPendingUploads": true })).await, "finalizing");
        assert!(!completions(service).await.contains(&format!("run:{}:completion", waiting.run)));
        for _ in 0..2 {
            let attached = form().field("testRun", "{}").field("testRunId", waiting.run.to_string());
            assert_eq!(upload(attached).await["status"], "passed");
        }
        let mut ended = vec![json!(finished.run), submitted["runId"].clone(), uploaded, json!(waiting.run)];
        for index in [1, 2] {
            let shard = json!({ "instanceId": "sharded", "shardIndex": index, "shardTotal": 2 });
            let feeder = start(client, shard).await;
            if feeder.finish("passed").await == "passed" {
                ended.push(json!(feeder.run));
            }
        }
        let silent = start(client, json!({ "instanceId": "silent" })).await;
        sweep(service, 121_000).await;
        ended.push(json!(silent.run));
        let mut expected: Vec<String> = ended.iter().map(|run| format!("run:{run}:completion")).collect();
        expected.sort();
        assert_eq!(completions(service).await, expected);
        silent.results(vec![attempt("pays", "passed", 0)]).await;
        expected.retain(|key| *key != format!("run:{}:completion", silent.run));
        assert_eq!(completions(service).await, expected, "a run that goes on is not followed up");
    })
    .await;
}

#[tokio::test]
async fn wrong_numbers_of_a_run_are_found_and_repaired() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "failed", 0), attempt("looks", "passed", 0)]).await;
        feeder.finish("failed").await;
        let before = feeder.shown().await;
        let run = callboard_domain::ids::RunId(feeder.run);
        let project = callboard_domain::ids::ProjectId(before["projectId"].as_i64().expect("a project"));
        let check = async || {
            callboard_ingest::check_run(&super::context(service), project, run, service.state().now())
                .await
                .expect("checked")
        };
        assert_eq!(check().await, callboard_ingest::Checked::Right);
        crate::store::sql(service, "UPDATE test_runs SET total = 7, failed = 0, tests_ms = 1").await;
        assert_eq!(check().await, callboard_ingest::Checked::Repaired);
        let after = feeder.shown().await;
        let keys = ["totalTests", "failedTests", "testsDuration", "status"];
        assert_eq!(picked(&after, keys), picked(&before, keys));
    })
    .await;
}

/// Objects in which the evidence of a project lies.
fn packs(service: &callboard_test_support::Service, project: &Value) -> usize {
    let folder = service.database().folder().join(format!("objects/project-{project}/packs"));
    let Ok(runs) = std::fs::read_dir(folder) else { return 0 };
    runs.flatten().flat_map(|run| std::fs::read_dir(run.path())).flatten().count()
}

/// Packs of evidence that are kept beside their rows.
async fn packs_in_rows(service: &callboard_test_support::Service) -> String {
    crate::rows::texts(service, "SELECT CAST(COUNT(DISTINCT pack_id) AS text) FROM pack_bytes")
        .await
        .remove(0)
}

/// The evidence of all executions of a run, by title.
async fn told(service: &callboard_test_support::Service, run: i64) -> Vec<(Value, Value)> {
    let path = format!("/api/test-runs/{run}/executions?limit=200&sort=id");
    let items = service.client().json(&path).await.expect("executions");
    let mut told = Vec::new();
    for item in items["items"].as_array().expect("items") {
        let path = format!("/api/test-run-cases/{}?include=console", item["id"]);
        let detail = service.client().json(&path).await.expect("an execution");
        told.push((item["title"].clone(), detail["evidence"]["consoleLogs"].clone()));
    }
    told
}

#[tokio::test]
async fn small_evidence_goes_with_its_rows_and_is_one_object_after_the_end_of_its_run() {
    for_each_service(async |service| {
        let little = start(service.client(), json!({ "clientRunId": "says-little" })).await;
        let much = start(service.client(), json!({ "clientRunId": "says-much" })).await;
        let project = much.shown().await["projectId"].clone();
        much.results(vec![attempt("tells nothing more", "passed", 0)]).await;
        little.events(vec![complete(telling(1, 1))]).await;
        for call in 0..4 {
            // More than one part of a pack holds.
            much.events((0..5).map(|n| complete(telling(call * 5 + n, 8))).collect()).await;
        }
        // It waits with its results until somebody asks for them.
        futures::join!(little.shown(), much.shown());
        assert_eq!((packs(service, &project), packs_in_rows(service).await.as_str()), (0, "5"));
        let parts = "SELECT CAST(MAX(part) AS text) FROM pack_bytes";
        assert_eq!(crate::rows::texts(service, parts).await, ["2"]);
        let before = (told(service, little.run).await, told(service, much.run).await);
        let texts = |console: &Value| -> Vec<Value> {
            console.as_array().into_iter().flatten().map(|line| line["text"].clone()).collect()
        };
        let all: Vec<_> = before.1.iter().skip(1).map(|(_, console)| texts(console)).collect();
        let sent: Vec<_> = (0..20).map(|n| texts(&telling(n, 8)["consoleLogs"])).collect();
        assert_eq!(all, sent);

        little.finish("passed").await;
        much.finish("passed").await;
        settled(service).await;
        assert_eq!((packs(service, &project), packs_in_rows(service).await.as_str()), (1, "1"));
        assert_eq!((told(service, little.run).await, told(service, much.run).await), before);
        let kept = service.client().json(&format!("/api/projects/{project}/storage")).await.expect("storage");
        assert_eq!(kept["totals"]["objects"], 1, "{kept}");
    })
    .await;
}

#[tokio::test]
async fn the_evidence_of_a_large_request_is_one_object_however_many_tests_it_has() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        let project = feeder.shown().await["projectId"].clone();
        for request in 0..2 {
            feeder.events((0..30).map(|n| complete(telling(request * 30 + n, 20))).collect()).await;
            assert_eq!(packs(service, &project), usize::try_from(request).expect("few") + 1);
        }
        assert_eq!(packs_in_rows(service).await, "0");
        let told = told(service, feeder.run).await;
        assert!(told.iter().all(|(_, console)| console.as_array().map(Vec::len) == Some(20)), "{told:?}");
        assert_eq!(told.len(), 60);
    })
    .await;
}
