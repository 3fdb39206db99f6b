//! Shards whose clients crash or are killed, and are tried again.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_test_support::for_each_service;
use serde_json::{Value, json};

use super::shards::{shard, shard_again};
use super::{picked, start, sweep};
use crate::builders::{attempt, run, with};

#[tokio::test]
async fn a_retry_of_a_lost_shard_replaces_what_it_decided() {
    for_each_service(async |service| {
        let first = start(service.client(), shard(1, 2)).await;
        let second = start(service.client(), shard(2, 2)).await;
        first.results(vec![attempt("pays", "failed", 0), attempt("looks", "passed", 0)]).await;
        assert_eq!(first.finish("failed").await, "running");
        let retry = start(service.client(), shard_again(1, 2)).await;
        assert_eq!(retry.run, first.run);
        retry.results(vec![attempt("pays", "passed", 0), attempt("looks", "passed", 0)]).await;
        second.results(vec![attempt("signs in", "passed", 0)]).await;
        second.finish("passed").await;
        assert_eq!(retry.finish("passed").await, "passed");
        let shown = first.shown().await;
        let keys = ["totalTests", "passedTests", "failedTests", "flakyTests"];
        assert_eq!(
            picked(&shown, keys),
            [json!(3), json!(3), json!(0), json!(1)],
            "it flipped on one commit"
        );
    })
    .await;
}

#[tokio::test]
async fn a_retry_takes_the_place_of_a_shard_that_crashed_beside_others() {
    for_each_service(async |service| {
        let crashed = start(service.client(), shard(1, 2)).await;
        let other = start(service.client(), shard(2, 2)).await;
        crashed.results(vec![attempt("pays", "failed", 0), attempt("looks", "passed", 0)]).await;
        other.results(vec![attempt("signs in", "passed", 0)]).await;
        // All of that is worked in long before anybody takes its client for lost.
        other.shown().await;
        let fell_silent =
            "UPDATE run_slots SET last_activity_at = last_activity_at - 300000 WHERE shard_index = 1";
        crate::store::sql(service, fell_silent).await;
        let retry = start(service.client(), shard_again(1, 2)).await;
        assert_eq!(retry.run, crashed.run);
        retry.results(vec![attempt("pays", "passed", 0), attempt("looks", "passed", 0)]).await;
        other.finish("passed").await;
        assert_eq!(retry.finish("passed").await, "passed");
        let shown = retry.shown().await;
        assert_eq!(picked(&shown, ["totalTests", "failedTests", "flakyTests"]), [3, 0, 1].map(|n| json!(n)));
    })
    .await;
}

/// An attempt that began at a time of that day.
fn begun(case: Value, time: &str) -> Value {
    with(case, json!({ "startedAt": format!("2026-01-01T{time}.000Z") }))
}

const TOTALS: [&str; 5] = ["status", "endReason", "totalTests", "passedTests", "failedTests"];

#[tokio::test]
async fn a_shard_that_was_tried_again_at_once_is_not_missed() {
    for_each_service(async |service| {
        let killed = start(service.client(), shard(1, 2)).await;
        let other = start(service.client(), shard(2, 2)).await;
        killed.results(vec![begun(attempt("pays", "passed", 0), "10:01:00")]).await;
        other.results(vec![begun(attempt("signs in", "passed", 0), "10:01:00")]).await;
        other.finish("passed").await;
        let retry = start(service.client(), shard_again(1, 2)).await;
        assert_eq!(retry.run, killed.run);
        let again = ["pays", "looks"].map(|title| begun(attempt(title, "passed", 0), "10:31:00"));
        retry.results(again.to_vec()).await;
        // It may be a leg of a matrix beside the first one, which may still be at work.
        assert_eq!(retry.finish("passed").await, "running");
        sweep(service, 3 * 60 * 1000).await;
        let shown = retry.shown().await;
        assert_eq!(picked(&shown, TOTALS), [json!("passed"), Value::Null, json!(3), json!(3), json!(0)]);
    })
    .await;
}

#[tokio::test]
async fn results_of_a_shard_that_was_tried_again_at_once_are_those_of_its_retry() {
    for_each_service(async |service| {
        let killed = start(service.client(), shard(1, 2)).await;
        let other = start(service.client(), shard(2, 2)).await;
        let indexed = |case: Value| with(case, json!({ "repeatEachIndex": 0 }));
        let failed = |title: &str, time: &str| begun(attempt(title, "failed", 0), time);
        killed
            .results(vec![
                failed("pays", "10:01:00"),
                indexed(failed("ships", "10:01:01")),
                failed("looks", "10:01:02"),
                failed("breaks", "10:01:03"),
            ])
            .await;
        other.results(vec![failed("signs in", "10:01:00")]).await;
        killed.shown().await;
        let retry = start(service.client(), shard_again(1, 2)).await;
        assert_eq!(retry.run, killed.run);
        retry.results(vec![failed("looks", "10:31:02"), failed("breaks", "10:31:03")]).await;
        other.results(vec![begun(attempt("signs in", "passed", 1), "10:40:00")]).await;
        other.finish("passed").await;
        let again = vec![
            begun(attempt("pays", "passed", 0), "10:31:00"),
            indexed(begun(attempt("ships", "passed", 0), "10:31:01")),
            begun(attempt("looks", "passed", 1), "10:32:02"),
        ];
        retry.results(again.clone()).await;
        // Until the first one is known to be dead it may be a leg of a matrix beside the other.
        assert_eq!(retry.shown().await["failedTests"], json!(4));
        assert_eq!(retry.finish("failed").await, "running");
        sweep(service, 3 * 60 * 1000).await;
        let totals = ["status", "totalTests", "passedTests", "failedTests", "flakyTests"];
        let expected = [json!("failed"), json!(5), json!(4), json!(1), json!(4)];
        assert_eq!(picked(&retry.shown().await, totals), expected);
        let executions = format!("/api/test-runs/{}/executions", retry.run);
        let told = async || {
            let executions = service.client().json(&executions).await.expect("executions");
            let items = executions["items"].as_array().expect("items");
            let mut told: Vec<_> =
                items.iter().map(|item| picked(item, ["title", "status", "flaky", "attemptCount"])).collect();
            told.sort_by_key(|told| told[0].to_string());
            told
        };
        let stored = told().await;
        let outcomes: Vec<_> = stored.iter().map(|[title, status, flaky, _]| (title, status, flaky)).collect();
        let expected = [
            ("breaks", "failed", false),
            ("looks", "passed", true),
            ("pays", "passed", true),
            ("ships", "passed", true),
            ("signs in", "passed", true),
        ]
        .map(|(title, status, flaky)| (json!(title), json!(status), json!(flaky)));
        assert_eq!(outcomes, expected.each_ref().map(|(title, status, flaky)| (title, status, flaky)));
        // Counted as what they are now, and nothing changes when they are sent again.
        let counted = "SELECT c.title || ' ' || CAST(s.failed AS TEXT) FROM test_state s JOIN test_cases c \
            ON c.project_id = s.project_id AND c.id = s.test_case_id JOIN lanes l ON l.id = s.lane_id AND l.kind = 0 ORDER BY 1";
        callboard_ingest::check_run(
            &super::context(service),
            ProjectId(retry.shown().await["projectId"].as_i64().expect("a project")),
            RunId(retry.run),
            service.state().now(),
        )
        .await
        .expect("checked");
        assert_eq!(crate::rows::texts(service, counted).await, ["breaks 1", "looks 0", "pays 0", "ships 0", "signs in 0"]);
        let sent = with(run("shop", "failed", again), shard_again(1, 2));
        let known = service.client().post_json("/api/test-runs/submit", &sent).await.expect("known");
        assert_eq!(known["runId"], json!(retry.run));
        assert_eq!(told().await, stored);
    })
    .await;
}

#[tokio::test]
async fn a_leg_that_was_heard_of_beside_another_counts_when_it_is_lost() {
    for_each_service(async |service| {
        let lost = start(service.client(), shard(1, 2)).await;
        let leg = start(service.client(), shard_again(1, 2)).await;
        let other = start(service.client(), shard(2, 2)).await;
        other.finish("passed").await;
        lost.results(vec![begun(attempt("pays", "passed", 0), "10:40:00")]).await;
        leg.results(vec![begun(attempt("pays", "passed", 0), "10:31:00")]).await;
        leg.finish("passed").await;
        leg.shown().await;
        let was_heard_of_later = "UPDATE run_slots SET last_activity_at = last_activity_at + 15000 WHERE shard_index = 1 AND ordinal = 0";
        crate::store::sql(service, was_heard_of_later).await;
        sweep(service, 3 * 60 * 1000).await;
        assert_eq!(
            picked(&leg.shown().await, TOTALS)[..2],
            [json!("interrupted"), json!("stale")]
        );
    })
    .await;
}

#[tokio::test]
async fn what_a_shard_kept_when_it_was_killed_does_not_say_how_its_retry_ended() {
    for_each_service(async |service| {
        let client = service.client();
        for is_known in [false, true] {
            let named = |id: &str| json!({ "instanceId": format!("kept-{is_known}"), "clientRunId": format!("{id}-{is_known}") });
            let first = with(shard(1, 2), named("first"));
            let killed = if is_known { Some(start(client, first.clone()).await.run) } else { None };
            let other = start(client, with(shard(2, 2), named("other"))).await;
            other.finish("passed").await;
            let retry = start(client, with(shard_again(1, 2), named("retry"))).await;
            retry.results(vec![begun(attempt("pays", "passed", 0), "10:31:00")]).await;
            // What its client had in memory is found by whoever runs next on its machine.
            let kept = run("shop", "interrupted", vec![begun(attempt("looks", "passed", 0), "10:00:30")]);
            let kept = with(with(kept, first), json!({ "duration": 60_000 }));
            let stored = client.post_json("/api/test-runs/submit", &kept).await.expect("stored");
            assert_eq!(stored["runId"], json!(retry.run));
            assert!(killed.is_none_or(|killed| killed == retry.run));
            assert_eq!(retry.finish("passed").await, "passed");
            let shown = retry.shown().await;
            assert_eq!(picked(&shown, TOTALS), [json!("passed"), Value::Null, json!(2), json!(2), json!(0)]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_crashed_shard_is_missed_while_others_go_on() {
    for_each_service(async |service| {
        let crashed = start(service.client(), shard(1, 2)).await;
        let other = start(service.client(), shard(2, 2)).await;
        crate::store::sql(
            service,
            "UPDATE run_slots SET last_activity_at = last_activity_at - 300000 WHERE shard_index = 1",
        )
        .await;
        sweep(service, 0).await;
        let states = async || {
            let shown = other.shown().await;
            let shards = shown["shards"].as_array().expect("shards").iter();
            (shown["status"].clone(), shards.map(|shard| shard["state"].clone()).collect::<Vec<_>>())
        };
        assert_eq!(states().await, (json!("running"), vec![json!("lost"), json!("live")]));
        // It was slow, not gone.
        crashed.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(states().await.1, vec![json!("live"), json!("live")]);
    })
    .await;
}
