//! How runs end without a word, or by one that is meant, and go on again.

use callboard_test_support::for_each_service;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Feeder, complete, global_events, picked, run_events, start, sweep};
use crate::builders::{attempt, run, with};
use crate::rows::settled;

const COMPARED: [&str; 5] = ["status", "newRegressions", "newFlaky", "fixedTests", "newClusters"];

#[tokio::test]
async fn a_run_that_goes_on_again_does_not_say_how_it_compared_at_its_end() {
    for_each_service(async |service| {
        let client = service.client();
        let place = json!({ "environment": "staging", "startTime": "2026-01-01T09:00:00.000Z" });
        let green = with(run("shop", "passed", vec![attempt("pays", "passed", 0)]), place);
        client.post_json("/api/test-runs/submit", &green).await.expect("submitted");
        let feeder = start(client, json!({ "environment": "ci" })).await;
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        sweep(service, 121_000).await;
        // Whoever moves it does not wait for the second thought about its end.
        let path = format!("/api/test-runs/{}", feeder.run);
        let moved = client.send_json(Method::PATCH, &path, &json!({ "environment": "staging" })).await;
        moved.expect("an answer").success().expect("moved");
        settled(service).await;
        let ended = [json!("interrupted"), json!(1), json!(0), json!(0), json!(1)];
        assert_eq!(picked(&feeder.shown().await, COMPARED), ended);
        feeder.results(vec![attempt("signs in", "passed", 0)]).await;
        let going_on = [json!("running"), Value::Null, Value::Null, Value::Null, Value::Null];
        assert_eq!(picked(&feeder.shown().await, COMPARED), going_on);
        assert_eq!(feeder.finish("failed").await, "failed");
        settled(service).await;
        let ended = [json!("failed"), json!(1), json!(0), json!(0), json!(1)];
        assert_eq!(picked(&feeder.shown().await, COMPARED), ended);
    })
    .await;
}

#[tokio::test]
async fn silence_ends_a_run_and_its_own_token_revives_it() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        sweep(service, 60_000).await;
        assert_eq!(feeder.shown().await["status"], "running");
        sweep(service, 121_000).await;
        let shown = feeder.shown().await;
        assert_eq!(picked(&shown, ["status", "endReason"]), [json!("interrupted"), json!("stale")]);
        assert!(run_events(service, feeder.run).await.contains(&"run-status".to_owned()));
        let invented = Feeder { token: "0".repeat(64), ..feeder.clone() };
        let refused = invented.call("events", json!({ "testCases": [] })).await;
        assert_eq!(
            (refused.status.as_u16(), refused.json().expect("json")["code"].clone()),
            (403, json!("invalid_token"))
        );
        assert_eq!(feeder.shown().await["status"], "interrupted");
        feeder.results(vec![attempt("signs in", "passed", 0)]).await;
        let shown = feeder.shown().await;
        assert_eq!(
            picked(&shown, ["status", "endReason", "totalTests"]),
            [json!("running"), Value::Null, json!(2)]
        );
        assert_eq!(feeder.finish("passed").await, "passed");
        let kinds: Vec<String> = global_events(service).await.into_iter().map(|event| event.0).collect();
        assert_eq!(kinds, ["run-started", "run-interrupted", "run-revived", "run-finished"]);
        let project = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(project["items"][0]["totalRuns"], 1);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_its_client_broke_off_is_over() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(feeder.finish("interrupted").await, "interrupted");
        let shown = feeder.shown().await;
        let late = json!({ "testCases": [complete(attempt("signs in", "passed", 0))] });
        for (call, body) in
            [("events", late), ("events", json!({ "testCases": [] })), ("heartbeat", json!({}))]
        {
            let refused = feeder.call(call, body).await;
            let code = refused.json().expect("json")["code"].clone();
            assert_eq!((refused.status.as_u16(), code), (409, json!("run_finished")), "{call}");
        }
        assert_eq!(
            feeder.finish("passed").await,
            "interrupted",
            "a client that missed the answer asks again"
        );
        let keys = ["status", "endReason", "totalTests", "passedTests"];
        assert_eq!(picked(&feeder.shown().await, keys), picked(&shown, keys));
        let kinds: Vec<String> = global_events(service).await.into_iter().map(|event| event.0).collect();
        assert_eq!(kinds, ["run-started", "run-finished"]);
    })
    .await;
}
