//! Runs of several shards: one run whatever the order in which they come.

use std::collections::BTreeSet;

use callboard_store::Backend;
use callboard_test_support::{Answer, Form, Service, for_each_service, report_archive};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::reruns::keep_reruns_apart;
use super::{Feeder, complete, fields, picked, start, sweep};
use crate::builders::{attempt, run, with};

pub(super) fn shard(index: u32, total: u32) -> Value {
    json!({ "instanceId": "0123456789abcdef", "shardIndex": index, "shardTotal": total,
        "startTime": format!("2026-01-01T10:00:{index:02}.000Z") })
}

/// The same shard of the same pipeline, started again by its CI.
pub(super) fn shard_again(index: u32, total: u32) -> Value {
    with(shard(index, total), json!({ "startTime": format!("2026-01-01T10:30:{index:02}.000Z") }))
}

#[tokio::test]
async fn eight_shards_at_once_are_one_run() {
    for_each_service(async |service| {
        let starts = (1..=8).map(|index| start(service.client(), shard(index, 8)));
        let feeders = futures::future::join_all(starts).await;
        let runs: BTreeSet<i64> = feeders.iter().map(|feeder| feeder.run).collect();
        assert_eq!(runs.len(), 1);
        let tokens: BTreeSet<&String> = feeders.iter().map(|feeder| &feeder.token).collect();
        assert_eq!(tokens.len(), 8);
        let shown = feeders[0].shown().await;
        assert_eq!(shown["shards"].as_array().map(Vec::len), Some(8));
        let results = feeders.iter().enumerate().map(async |(n, feeder)| {
            feeder.results(vec![attempt(&format!("test {n}"), "passed", 0)]).await;
            feeder.finish("passed").await
        });
        let mut statuses = futures::future::join_all(results).await;
        statuses.sort();
        assert_eq!(statuses.iter().filter(|status| *status == "passed").count(), 1, "the last one ends it");
        let shown = feeders[0].shown().await;
        let keys = ["status", "totalTests", "shardTotal", "shardsFinished"];
        assert_eq!(picked(&shown, keys), [json!("passed"), json!(8), json!(8), json!(8)]);
    })
    .await;
}

#[tokio::test]
async fn matrix_legs_of_one_key_share_the_run_and_lose_nothing() {
    for_each_service(async |service| {
        let legs = [(1, "chromium"), (2, "chromium"), (1, "firefox"), (2, "firefox")];
        let mut feeders = Vec::new();
        for (n, (index, browser)) in legs.into_iter().enumerate() {
            let leg =
                with(shard(index, 2), json!({ "startTime": format!("2026-01-01T10:00:{:02}.000Z", 10 + n) }));
            feeders.push((start(service.client(), leg).await, index, browser));
        }
        for (feeder, index, browser) in &feeders {
            let case = with(
                attempt(&format!("test {index}"), "passed", 0),
                json!({ "browser": { "projectName": browser, "browserName": browser } }),
            );
            feeder.results(vec![case]).await;
        }
        for (feeder, ..) in &feeders {
            feeder.finish("passed").await;
        }
        let shown = feeders[0].0.shown().await;
        assert!(feeders.iter().all(|feeder| feeder.0.run == feeders[0].0.run));
        assert_eq!(
            picked(&shown, ["status", "totalTests", "shardsFinished"]),
            [json!("passed"), json!(4), json!(2)]
        );
    })
    .await;
}

#[tokio::test]
async fn shards_one_after_another_and_a_late_one_are_one_run() {
    for_each_service(async |service| {
        let first = start(service.client(), shard(1, 3)).await;
        first.results(vec![attempt("first", "passed", 0)]).await;
        assert_eq!(first.finish("passed").await, "running");
        sweep(service, 10 * 60 * 1000).await;
        let second = start(service.client(), shard(2, 3)).await;
        second.results(vec![attempt("second", "failed", 0), attempt("second", "passed", 1)]).await;
        assert_eq!((second.run, second.finish("passed").await.as_str()), (first.run, "running"));
        sweep(service, 16 * 60 * 1000).await;
        let shown = first.shown().await;
        assert_eq!(picked(&shown, ["status", "endReason"]), [json!("interrupted"), json!("shards_missing")]);
        let late = start(service.client(), shard(3, 3)).await;
        assert_eq!((late.run, late.shown().await["status"].clone()), (first.run, json!("running")));
        late.results(vec![attempt("third", "passed", 0)]).await;
        assert_eq!(late.finish("passed").await, "passed");
        let shown = first.shown().await;
        let keys = ["totalTests", "passedTests", "flakyTests", "endReason"];
        assert_eq!(picked(&shown, keys), [json!(3), json!(3), json!(1), Value::Null]);
        let other = start(service.client(), shard(1, 2)).await;
        assert_ne!(other.run, first.run, "another number of shards never joins");
    })
    .await;
}

#[tokio::test]
async fn repeating_a_shard_of_a_final_run_is_a_run_of_its_own() {
    for_each_service(async |service| {
        let mut original = 0;
        for index in [1, 2, 3] {
            let feeder = start(service.client(), shard(index, 3)).await;
            feeder.results(vec![attempt(&format!("test {index}"), "failed", 0)]).await;
            feeder.finish("failed").await;
            original = feeder.run;
        }
        keep_reruns_apart(service.client(), original).await;
        let again = start(service.client(), shard_again(2, 3)).await;
        assert_ne!(again.run, original);
        again.results(vec![attempt("test 2", "passed", 0)]).await;
        assert_eq!(again.finish("passed").await, "running");
        let other = start(service.client(), shard_again(3, 3)).await;
        assert_eq!(other.run, again.run, "a second repeated shard joins the first");
        other.results(vec![attempt("test 3", "passed", 0)]).await;
        other.finish("passed").await;
        sweep(service, 121_000).await;
        let shown = again.shown().await;
        let keys = ["status", "rerunOf", "isFullRun", "endReason", "totalTests"];
        assert_eq!(
            picked(&shown, keys),
            [json!("passed"), json!(original), json!(false), Value::Null, json!(2)]
        );
    })
    .await;
}

#[tokio::test]
async fn a_repeated_shard_that_falls_silent_ends_its_run_with_the_time_it_was_heard_of() {
    for_each_service(async |service| {
        for index in [1, 2] {
            let feeder = start(service.client(), shard(index, 2)).await;
            feeder.finish("passed").await;
            keep_reruns_apart(service.client(), feeder.run).await;
        }
        let again = start(service.client(), shard_again(2, 2)).await;
        again.results(vec![attempt("pays", "passed", 0)]).await;
        sweep(service, 10 * 60 * 1000).await;
        let shown = again.shown().await;
        assert_eq!(picked(&shown, ["status", "endReason"]), [json!("interrupted"), json!("stale")]);
        assert!(shown["duration"].as_i64().is_some_and(|ms| ms > 0), "{shown}");
    })
    .await;
}

#[tokio::test]
async fn shards_kept_since_yesterday_are_the_run_of_yesterday() {
    for_each_service(async |service| {
        let client = service.client();
        let today = start(client, shard(1, 2)).await;
        today.results(vec![attempt("pays", "passed", 0)]).await;
        let kept = |index: u32| {
            let body = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
            let began = ["2025-12-30T23:59:59.000Z", "2025-12-31T00:00:01.000Z"][index as usize - 1];
            let began = json!({ "startTime": began });
            with(with(body, shard(index, 2)), with(began, json!({ "clientRunId": format!("kept-{index}") })))
        };
        let first = client.post_json("/api/test-runs/submit", &kept(1)).await.expect("an answer");
        assert_ne!(first["runId"], json!(today.run));
        let other = start(client, shard(2, 2)).await;
        assert_eq!(other.run, today.run, "the run of today is still the newest");
        let second = client.post_json("/api/test-runs/submit", &kept(2)).await.expect("an answer");
        assert_eq!(second["runId"], first["runId"], "they find each other, also over midnight");
        today.finish("passed").await;
        assert_eq!(other.finish("passed").await, "passed");
        let shown = today.shown().await;
        let keys = ["totalTests", "failedTests", "shardsFinished"];
        assert_eq!(picked(&shown, keys), [json!(1), json!(0), json!(2)]);
        let shown = client.get(&format!("/api/test-runs/{}", first["runId"])).await.expect("an answer");
        let keys = ["status", "rerunOf", "shardsFinished"];
        assert_eq!(picked(&shown.json().expect("json"), keys), [json!("failed"), Value::Null, json!(2)]);
    })
    .await;
}

#[tokio::test]
async fn a_set_up_that_cannot_begin_sends_its_shard_to_start() {
    for_each_service(async |service| {
        let client = service.client();
        let first = client.post_json("/api/test-runs/setup", &fields(shard(1, 2))).await.expect("set up");
        let second = client.post_json("/api/test-runs/setup", &fields(shard(2, 2))).await.expect("set up");
        assert_eq!(first["runId"], second["runId"]);
        let begin = async |answer: &Value| {
            let body = json!({ "setupToken": answer["setupToken"] });
            client.post(&format!("/api/test-runs/{}/begin", answer["runId"]), &body).await.expect("an answer")
        };
        let begun = begin(&first).await.success().expect("begun");
        let feeder = Feeder {
            client: client.clone(),
            run: begun["runId"].as_i64().expect("a run"),
            token: begun["streamToken"].as_str().expect("a token").to_owned(),
        };
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        assert_eq!(feeder.finish("passed").await, "running");
        sweep(service, 45 * 60 * 1000).await;
        assert_eq!(feeder.shown().await["status"], "interrupted");
        let refused = begin(&second).await;
        assert_eq!(
            (refused.status.as_u16(), refused.json().expect("json")["code"].clone()),
            (409, json!("begin_not_possible"))
        );
        let late = start(client, shard(2, 2)).await;
        assert_eq!(late.run, feeder.run);
        assert_eq!(late.finish("passed").await, "passed");
    })
    .await;
}

#[tokio::test]
async fn an_impossible_shard_is_refused_and_a_missing_index_takes_the_free_one() {
    for_each_service(async |service| {
        let refused =
            service.client().post("/api/test-runs/start", &fields(shard(3, 2))).await.expect("an answer");
        let told = refused.json().expect("json");
        assert_eq!((refused.status.as_u16(), &told["code"]), (400, &json!("invalid_shard")));
        assert_eq!(told["data"]["fields"], json!(["shardIndex", "shardTotal"]));
        for n in 0..2 {
            let mut anyone = with(shard(1, 2), json!({ "startTime": format!("2026-01-01T11:00:0{n}Z") }));
            anyone.as_object_mut().expect("an object").remove("shardIndex");
            let feeder = start(service.client(), anyone).await;
            feeder.finish("passed").await;
            let expected = if n == 0 { "running" } else { "passed" };
            assert_eq!(feeder.shown().await["status"], expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_shard_that_ends_twice_counts_once() {
    for_each_service(async |service| {
        let first = start(service.client(), shard(1, 2)).await;
        let second = start(service.client(), shard(2, 2)).await;
        for _ in 0..2 {
            assert_eq!(first.finish("passed").await, "running");
            let shown = first.shown().await;
            assert_eq!(picked(&shown, ["status", "shardsFinished"]), [json!("running"), json!(1)]);
        }
        assert_eq!(second.finish("passed").await, "passed");
        assert_eq!(picked(&first.shown().await, ["status", "shardsFinished"]), [json!("passed"), json!(2)]);
    })
    .await;
}

/// What a shard's client does, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Start,
    Results(usize),
    Finish,
    Submit,
    Upload,
    /// It is done but for its report.
    FinishAndWait,
    /// Its report.
    Attach,
    /// Time passes: whoever is silent is taken for gone.
    Silence,
}

const SHARDS: u32 = 3;

/// The results of a shard, in the parts they are sent in.
fn results(index: u32) -> [Vec<Value>; 2] {
    let at = |title: &str, status: &str, retry: u32| {
        let started = 1_767_261_600_000_i64 + i64::from(index) * 1000 + i64::from(retry) * 100;
        with(attempt(&format!("{title} {index}"), status, retry), json!({ "startedAt": started }))
    };
    let steady = attempt(&format!("looks {index}"), "passed", 0);
    let outcome = if index == 2 { "failed" } else { "passed" };
    [vec![at("pays", "failed", 0), steady], vec![at("pays", outcome, 1), at("skips", "skipped", 0)]]
}

fn claim(index: u32) -> &'static str {
    if index == 2 { "failed" } else { "passed" }
}

fn batch(project: &str, index: u32) -> Value {
    let body = run(project, claim(index), results(index).concat());
    with(body, with(shard(index, SHARDS), json!({ "projectName": project })))
}

struct Pipeline<'s> {
    service: &'s Service,
    project: &'s str,
    feeders: [Option<Feeder>; SHARDS as usize],
}

impl Pipeline<'_> {
    async fn call(&mut self, index: u32, call: Call) {
        let at = usize::try_from(index - 1).expect("small");
        let client = self.service.client();
        let fed = |answer: Answer| {
            // A run that is over has everything already.
            assert!(matches!(answer.status.as_u16(), 200 | 409), "{}", answer.text());
        };
        match call {
            Call::Start => {
                let more = with(shard(index, SHARDS), json!({ "projectName": self.project }));
                self.feeders[at] = Some(start(client, more).await);
            }
            Call::Results(part) => {
                let events: Vec<Value> = results(index)[part].iter().cloned().map(complete).collect();
                let feeder = self.feeders[at].as_ref().expect("started");
                fed(feeder.call("events", json!({ "testCases": events })).await);
            }
            Call::Finish => {
                let feeder = self.feeders[at].as_ref().expect("started");
                fed(feeder.call("finish", json!({ "status": claim(index), "duration": 5000 })).await);
            }
            Call::FinishAndWait => {
                let feeder = self.feeders[at].as_ref().expect("started");
                let body = json!({ "status": claim(index), "duration": 5000, "hasPendingUploads": true });
                fed(feeder.call("finish", body).await);
            }
            Call::Attach => {
                let feeder = self.feeders[at].as_ref().expect("started");
                let report = report_archive(&[("index.html", &[u8::try_from(index).expect("small")])]);
                let form = Form::new()
                    .field("testRunId", feeder.run.to_string())
                    .field("projectName", self.project)
                    .field("testRun", "{}")
                    .file("report_html", "html.gz", "application/gzip", &report.expect("an archive"));
                let request = client.request(reqwest::Method::POST, "/api/test-runs/upload");
                let request = request.header("content-type", Form::content_type()).body(form.into_body());
                Answer::send(request).await.expect("an answer").success().expect("attached");
            }
            Call::Submit => {
                client.post_json("/api/test-runs/submit", &batch(self.project, index)).await.expect("stored");
            }
            Call::Upload => {
                let mut body = batch(self.project, index);
                let cases =
                    body.as_object_mut().and_then(|fields| fields.remove("testCases")).expect("cases");
                let form = Form::new()
                    .field("projectName", self.project)
                    .field("testRun", body.to_string())
                    .field("testCases", cases.to_string());
                let request = client.request(reqwest::Method::POST, "/api/test-runs/upload");
                let request = request.header("content-type", Form::content_type()).body(form.into_body());
                Answer::send(request).await.expect("an answer").success().expect("stored");
            }
            Call::Silence => sweep(self.service, 16 * 60 * 1000).await,
        }
    }

    /// What must not depend on the order.
    async fn outcome(&self) -> Value {
        let client = self.service.client();
        let runs = client.json("/api/test-runs?limit=200").await.expect("runs");
        let runs: Vec<Value> = runs["items"].as_array().cloned().unwrap_or_default();
        let mut own = runs.into_iter().filter(|run| run["projectName"] == self.project);
        let found = own.next().expect("a run");
        assert_eq!(own.next(), None, "one run");
        let path = format!("/api/test-runs/{}/executions?limit=200&sort=file", found["id"]);
        let page = client.json(&path).await.expect("executions");
        let mut rows: Vec<String> = page["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|row| {
                json!(picked(
                    row,
                    ["title", "status", "flaky", "retries", "duration", "totalDuration", "attemptCount"]
                ))
                .to_string()
            })
            .collect();
        rows.sort();
        let keys = [
            "status",
            "endReason",
            "startTime",
            "duration",
            "totalTests",
            "passedTests",
            "failedTests",
            "skippedTests",
            "flakyTests",
            "testsDuration",
            "avgTestDuration",
            "p90TestDuration",
        ];
        let groups =
            client.json(&format!("/api/test-runs/{}/failure-groups", found["id"])).await.expect("groups");
        let groups: Vec<_> = groups["items"]
            .as_array()
            .expect("groups")
            .iter()
            .map(|group| {
                picked(group, ["signature", "count", "flaky", "isNew", "occurrences", "affectedTests"])
            })
            .collect();
        json!({ "run": picked(&found, keys), "rows": rows, "groups": groups })
    }
}

fn scripts() -> impl Strategy<Value = Vec<Call>> {
    use Call::{Attach, Finish, FinishAndWait, Results, Start, Submit, Upload};
    let live = vec![Start, Results(0), Results(1), Finish];
    prop_oneof![
        3 => Just(live.clone()),
        2 => Just([&live[..], &[Submit]].concat()),
        1 => Just(vec![Start, Results(1), Start, Results(0), Results(1), Finish, Finish, Results(0)]),
        1 => Just(vec![Start, Results(0), Upload, Results(1), Finish]),
        2 => Just(vec![Start, Results(0), Results(1), FinishAndWait, Attach]),
        1 => Just(vec![Submit]),
        1 => Just(vec![Upload, Submit]),
        1 => Just(vec![Submit, Start, Results(0), Finish]),
    ]
}

/// The calls of all shards, each shard's in its own order.
fn interleavings() -> impl Strategy<Value = Vec<(u32, Call)>> {
    let silences = proptest::collection::vec(Just((1, Call::Silence)), 0..3);
    (proptest::collection::vec(scripts(), SHARDS as usize), silences).prop_flat_map(|(scripts, silences)| {
        let turns: Vec<u32> = (1..)
            .zip(&scripts)
            .flat_map(|(index, script)| std::iter::repeat_n(index, script.len()))
            .chain(silences.iter().map(|_| 0))
            .collect();
        Just(turns).prop_shuffle().prop_map(move |turns| {
            let mut rests: Vec<_> = scripts.iter().map(|script| script.iter()).collect();
            let mut calls = Vec::with_capacity(turns.len());
            for index in turns {
                if index == 0 {
                    calls.push((1, Call::Silence));
                    continue;
                }
                let rest = &mut rests[usize::try_from(index - 1).unwrap_or_default()];
                calls.extend(rest.next().map(|call| (index, *call)));
            }
            calls
        })
    })
}

/// What the run is that nobody divided into shards.
async fn undivided(service: &Service) -> Value {
    let whole = Pipeline { service, project: "whole", feeders: [const { None }; SHARDS as usize] };
    let all: Vec<Value> = (1..=SHARDS).flat_map(|index| results(index).concat()).collect();
    // From the start of the first shard to the end of the last one.
    let lasted = json!({ "startTime": "2026-01-01T10:00:01.000Z", "duration": 7000 });
    let body = with(run("whole", "failed", all), lasted);
    service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    whole.outcome().await
}

/// What the run is of shards that make these calls.
async fn divided(service: &Service, project: &str, calls: &[(u32, Call)]) -> Value {
    let mut pipeline = Pipeline { service, project, feeders: [const { None }; SHARDS as usize] };
    for (index, call) in calls {
        pipeline.call(*index, *call).await;
    }
    pipeline.outcome().await
}

#[tokio::test]
async fn shards_that_end_in_any_order_and_any_way_are_the_same_run() {
    use Call::{Finish, Results, Start, Submit, Upload};
    let ways: [&[Call]; 3] = [&[Start, Results(0), Results(1), Finish], &[Upload], &[Submit]];
    // Which comes first, second and third; and of three ways, which each takes.
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let choices = orders.into_iter().chain([[0; 3], [1; 3], [2; 3]]);
    for_each_service(async |service| {
        let expected = undivided(service).await;
        for order in orders {
            for choice in choices.clone() {
                let calls: Vec<(u32, Call)> = order
                    .into_iter()
                    .flat_map(|at: usize| ways[choice[at]].iter().map(move |call| (at as u32 + 1, *call)))
                    .collect();
                let project = format!("sharded {order:?} {choice:?}");
                assert_eq!(divided(service, &project, &calls).await, expected, "{project}");
            }
        }
    })
    .await;
}

fn every_order_is_the_same_run(backend: Backend, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let service = runtime.block_on(Service::start(backend)).expect("a service");
    let expected = runtime.block_on(undivided(&service));
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&interleavings(), |calls| {
            number.set(number.get() + 1);
            let project = format!("sharded {}", number.get());
            prop_assert_eq!(&runtime.block_on(divided(&service, &project, &calls)), &expected);
            Ok(())
        })
        .expect("every order gives the same run");
}

#[test]
fn any_order_of_shards_is_the_same_run_on_sqlite() {
    every_order_is_the_same_run(Backend::Sqlite, 40);
}

#[test]
fn any_order_of_shards_is_the_same_run_on_postgres() {
    every_order_is_the_same_run(Backend::Postgres, 12);
}
