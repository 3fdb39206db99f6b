//! Re-runs: they join the run that they repeat, or are kept apart and name it.

use callboard_store::Backend;
use callboard_test_support::{Client, Service, for_each_service};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Feeder, complete, fields, picked, start, sweep};
use crate::builders::{attempt, run, with};

/// Has re-runs of the project of a run be runs of their own.
pub(crate) async fn keep_reruns_apart(client: &Client, run: i64) {
    let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
    let path = format!("/api/projects/{}", shown["projectId"]);
    let answer = client.send_json(Method::PATCH, &path, &json!({ "reruns": "separate" })).await;
    let saved = answer.expect("an answer").success().expect("saved");
    assert_eq!(saved["project"]["reruns"], "separate");
}

/// What a reporter says in an attempt of a CI job.
fn job(number: u32, more: Value) -> Value {
    let ci = json!({
        "provider": "GitHub Actions", "buildId": "4711", "jobName": "e2e", "runAttempt": number.to_string(),
        "jobUrl": format!("https://ci.example/jobs/{number}")
    });
    let own = json!({
        "instanceId": "0123456789abcdef",
        "startTime": format!("2026-01-01T1{number}:00:00.000Z"),
        "metadata": { "ci": ci, "scm": { "commit": "abc", "branch": "main" } }
    });
    with(own, more)
}

fn last_failed() -> Value {
    json!({ "isFullRun": false, "filterDetails": { "lastFailed": true } })
}

/// A client that runs some tests and ends.
async fn ran(client: &Client, more: Value, cases: &[(&str, &str)], status: &str) -> Feeder {
    let feeder = start(client, more).await;
    feeder.results(cases.iter().map(|(title, status)| attempt(title, status, 0)).collect()).await;
    feeder.finish(status).await;
    feeder
}

const FIRST: [(&str, &str); 3] = [("pays", "failed"), ("ships", "failed"), ("looks", "passed")];

#[tokio::test]
async fn a_rerun_joins_the_run_that_it_repeats_and_its_first_state_stays_readable() {
    for_each_service(async |service| {
        let client = service.client();
        let first = ran(client, job(1, json!({})), &FIRST, "failed").await;
        let second = ran(
            client,
            job(2, json!({})),
            &[("pays", "failed"), ("ships", "passed"), ("looks", "passed")],
            "failed",
        )
        .await;
        assert_eq!(second.run, first.run);
        let third = ran(client, job(3, last_failed()), &[("pays", "passed")], "passed").await;
        assert_eq!(third.run, first.run);
        let shown = first.shown().await;
        let keys = [
            "status",
            "totalTests",
            "passedTests",
            "failedTests",
            "flakyTests",
            "isFullRun",
            "rerunOf",
            "duration",
        ];
        let expected = [
            json!("passed"),
            json!(3),
            json!(3),
            json!(0),
            json!(2),
            json!(true),
            Value::Null,
            json!(15_000),
        ];
        assert_eq!(picked(&shown, keys), expected);
        let attempts = shown["attempts"].as_array().expect("attempts");
        let told: Vec<_> = attempts
            .iter()
            .map(|one| picked(one, ["attempt", "status", "totalTests", "failedTests"]))
            .collect();
        let expected = [(1, "failed", 2), (2, "failed", 1), (3, "passed", 0)];
        assert_eq!(
            told,
            expected.map(|(attempt, status, failed)| [
                json!(attempt),
                json!(status),
                json!(3),
                json!(failed)
            ])
        );
        let addresses: Vec<_> = shown["shards"]
            .as_array()
            .expect("clients")
            .iter()
            .map(|one| one["ci"]["jobUrl"].clone())
            .collect();
        assert_eq!(
            addresses,
            ["https://ci.example/jobs/1", "https://ci.example/jobs/2", "https://ci.example/jobs/3"]
        );
        let page = client.get(&format!("/test-runs/{}", first.run)).await.expect("the page").text();
        for line in ["Attempt 1: 2 failed", "Attempt 2: 1 failed", "Attempt 3: passed"] {
            assert!(page.contains(line), "{line}");
        }
        let runs = client.json("/api/test-runs").await.expect("runs");
        assert_eq!(runs["items"].as_array().map(Vec::len), Some(1));
    })
    .await;
}

#[tokio::test]
async fn reruns_that_are_kept_apart_name_the_run_that_they_repeat() {
    for_each_service(async |service| {
        let client = service.client();
        let first = ran(client, job(1, json!({})), &FIRST, "failed").await;
        keep_reruns_apart(client, first.run).await;
        let second = ran(client, job(2, json!({})), &FIRST, "failed").await;
        assert_ne!(second.run, first.run);
        assert_eq!(picked(&second.shown().await, ["rerunOf", "isFullRun"]), [json!(first.run), json!(true)]);
        let third = ran(client, job(3, last_failed()), &[("pays", "passed")], "passed").await;
        assert_eq!(picked(&third.shown().await, ["rerunOf", "status"]), [json!(second.run), json!("passed")]);
        assert_eq!(first.shown().await["status"], "failed");
        let page = client.get(&format!("/test-runs/{}", second.run)).await.expect("the page").text();
        assert!(page.contains("Re-run of <a"), "{page}");
    })
    .await;
}

#[tokio::test]
async fn only_what_is_certain_joins() {
    for_each_service(async |service| {
        let client = service.client();
        let of = async |project: &str, more: Value| {
            ran(client, with(more, json!({ "projectName": project })), &FIRST, "failed").await.run
        };
        let at = |second: u32| json!({ "startTime": format!("2026-01-01T20:00:{second:02}.000Z") });
        // Two commands of one job are two runs, and then nobody knows which of them a further attempt repeats.
        let (one, other) = (of("commands", job(1, json!({}))).await, of("commands", job(1, at(1))).await);
        assert_ne!(one, other);
        let unclear = of("commands", job(2, json!({}))).await;
        assert!(unclear != one && unclear != other);
        // They are told apart by what they run.
        let files = |name: &str| json!({ "isFullRun": false, "filterDetails": { "files": [name] } });
        let first = of("files", job(1, files("a"))).await;
        assert_ne!(of("files", job(2, with(files("b"), at(1)))).await, first);
        assert_eq!(of("files", job(2, with(files("a"), at(2)))).await, first);
        // The tests that failed last, in the same job.
        let first = of("last failed", job(1, json!({}))).await;
        assert_eq!(of("last failed", job(1, with(last_failed(), at(1)))).await, first);
        // Another build, another commit, changes nobody committed.
        let other_build = json!({ "metadata": { "ci": { "provider": "GitHub Actions", "buildId": "4712", "jobName": "e2e", "runAttempt": "2" } } });
        let other_commit = with(job(2, json!({})), json!({ "commit": "def" }));
        let dirty = json!({ "scm": { "commit": "abc", "dirty": true }, "ci": job(2, json!({}))["metadata"]["ci"] });
        for (name, again) in [
            ("build", job(2, other_build)),
            ("commit", other_commit),
            ("dirty", job(2, json!({ "metadata": dirty }))),
            ("no CI", json!({ "instanceId": "0123456789abcdef", "startTime": "2026-01-01T12:00:00.000Z" })),
        ] {
            let first = of(name, job(1, json!({}))).await;
            assert_ne!(of(name, again).await, first, "{name}");
        }
        // The client says which run it repeats.
        let first = of("named", json!({})).await;
        let named = json!({ "rerunOf": first, "startTime": "2026-01-01T12:00:00.000Z" });
        assert_eq!(of("named", named.clone()).await, first);
        assert_ne!(of("another project", named).await, first);
    })
    .await;
}

#[tokio::test]
async fn a_rerun_of_a_job_whose_machine_died_goes_on_in_its_run() {
    for_each_service(async |service| {
        let client = service.client();
        let died = start(client, job(1, json!({}))).await;
        died.results(vec![attempt("looks", "passed", 0)]).await;
        let again =
            ran(client, job(2, json!({})), &[("looks", "passed"), ("pays", "passed")], "passed").await;
        assert_eq!((again.run, &again.shown().await["status"]), (died.run, &json!("running")));
        sweep(service, 3 * 60 * 1000).await;
        let keys = ["status", "endReason", "totalTests", "flakyTests"];
        assert_eq!(picked(&again.shown().await, keys), [json!("passed"), Value::Null, json!(2), json!(0)]);
        let attempts = again.shown().await["attempts"].clone();
        assert_eq!(picked(&attempts[0], ["status", "totalTests"]), [json!("interrupted"), json!(1)]);
    })
    .await;
}

#[tokio::test]
async fn a_repeated_shard_joins_its_run_by_its_group() {
    for_each_service(async |service| {
        let client = service.client();
        let shard = |index: u32, number: u32| job(number, json!({ "shardIndex": index, "shardTotal": 2 }));
        let first = ran(client, shard(1, 1), &[("sets up", "passed"), ("looks", "passed")], "passed").await;
        let red = ran(client, shard(2, 1), &[("sets up", "failed"), ("pays", "failed")], "failed").await;
        assert_eq!(red.run, first.run);
        let keys = ["status", "totalTests", "failedTests", "flakyTests"];
        let shown = first.shown().await;
        assert_eq!(
            picked(&shown, keys),
            [json!("failed"), json!(3), json!(2), json!(0)],
            "failed in one shard is failed"
        );
        let again = ran(client, shard(2, 2), &[("sets up", "passed"), ("pays", "passed")], "passed").await;
        assert_eq!(again.run, first.run);
        assert_eq!(picked(&again.shown().await, keys), [json!("passed"), json!(3), json!(0), json!(2)]);
    })
    .await;
}

#[tokio::test]
async fn a_batch_takes_over_the_run_that_its_set_up_registered() {
    for_each_service(async |service| {
        let client = service.client();
        let now = callboard_domain::time::Timestamp(service.state().now().millis());
        let own = json!({ "instanceId": "0123456789abcdef", "reporterVersion": "0.25.0", "startTime": now });
        let registered =
            client.post_json("/api/test-runs/setup", &fields(own.clone())).await.expect("set up");
        let body = with(run("shop", "failed", vec![attempt("pays", "failed", 0)]), own);
        let sent = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        assert_eq!(picked(&sent, ["runId", "status"]), [registered["runId"].clone(), json!("failed")]);
        let again = client.post_json("/api/test-runs/submit", &body).await.expect("known");
        assert_eq!(picked(&again, ["runId", "duplicate"]), [registered["runId"].clone(), json!(true)]);
        let other = with(body, json!({ "startTime": callboard_domain::time::Timestamp(now.millis() + 1) }));
        let other = client.post_json("/api/test-runs/submit", &other).await.expect("stored");
        assert_ne!(other["runId"], registered["runId"], "it is taken over once");
    })
    .await;
}

#[tokio::test]
async fn a_start_ahead_of_our_clock_is_warned_of_and_is_not_the_latest_for_long() {
    for_each_service(async |service| {
        let client = service.client();
        let now = service.state().now().millis();
        let at = |ms: i64| json!({ "startTime": callboard_domain::time::Timestamp(now + ms) });
        let body = with(run("shop", "passed", vec![attempt("pays", "passed", 0)]), at(3 * 60 * 60 * 1000));
        let ahead = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        assert_eq!(ahead["warnings"][0]["code"], "start_in_future");
        let body = with(run("shop", "failed", vec![attempt("pays", "failed", 0)]), at(60_000));
        let next = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        assert_eq!(next["warnings"], Value::Null);
        let projects = client.json("/api/projects").await.expect("projects");
        assert_eq!(projects["items"][0]["latestRun"]["id"], next["runId"]);
    })
    .await;
}

/// What a client does, in this order.
#[derive(Debug, Clone, Copy)]
enum Call {
    Start,
    Results(usize),
    Finish,
    Submit,
}

/// A client of a job: which attempt and shard, what its tests said, and its claim.
struct Sender {
    fields: Value,
    cases: Vec<Value>,
    claim: &'static str,
}

impl Sender {
    fn new(number: u32, more: Value, cases: &[(&str, &str)]) -> Self {
        let began = |n: usize| {
            1_767_261_600_000_i64 + i64::from(number) * 3_600_000 + i64::try_from(n).expect("few") * 100
        };
        let case = |(n, (title, status)): (usize, &(&str, &str))| {
            with(attempt(title, status, 0), json!({ "startedAt": began(n) }))
        };
        let failed = cases.iter().any(|(_, status)| *status == "failed");
        Self {
            fields: job(number, more),
            cases: cases.iter().enumerate().map(case).collect(),
            claim: if failed { "failed" } else { "passed" },
        }
    }

    async fn call(&self, client: &Client, project: &str, feeder: &mut Option<Feeder>, call: Call) {
        let fields = with(self.fields.clone(), json!({ "projectName": project }));
        let half = self.cases.len() / 2;
        match call {
            Call::Start => *feeder = Some(start(client, fields).await),
            Call::Results(part) => {
                let cases = if part == 0 { &self.cases[..half] } else { &self.cases[half..] };
                let events = cases.iter().cloned().map(complete).collect();
                feeder.as_ref().expect("started").events(events).await;
            }
            Call::Finish => {
                feeder.as_ref().expect("started").finish(self.claim).await;
            }
            Call::Submit => {
                let body = with(run(project, self.claim, self.cases.clone()), fields);
                client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            }
        }
    }
}

/// An unsharded job that is run again twice, the second time only what failed; and a sharded
/// one of which one shard is.
fn pipelines() -> [Vec<Sender>; 2] {
    let shard = |index: u32| json!({ "shardIndex": index, "shardTotal": 2 });
    [
        vec![
            Sender::new(
                1,
                json!({}),
                &[("pays", "failed"), ("ships", "failed"), ("looks", "passed"), ("turns", "passed")],
            ),
            Sender::new(
                2,
                json!({}),
                &[("pays", "failed"), ("ships", "passed"), ("looks", "passed"), ("turns", "failed")],
            ),
            Sender::new(3, last_failed(), &[("pays", "passed"), ("turns", "passed")]),
        ],
        vec![
            Sender::new(1, shard(1), &[("sets up", "passed"), ("looks", "passed")]),
            Sender::new(1, shard(2), &[("sets up", "failed"), ("pays", "failed")]),
            Sender::new(2, shard(2), &[("sets up", "passed"), ("pays", "failed")]),
            Sender::new(3, shard(2), &[("sets up", "passed"), ("pays", "passed")]),
        ],
    ]
}

/// What must not depend on the order.
async fn outcome(client: &Client, project: &str) -> Value {
    let runs = client.json("/api/test-runs?limit=200").await.expect("runs");
    let own: Vec<Value> = runs["items"]
        .as_array()
        .expect("runs")
        .iter()
        .filter(|run| run["projectName"] == project)
        .cloned()
        .collect();
    assert_eq!(own.len(), 1, "one run: {own:?}");
    let id = &own[0]["id"];
    let shown = client.json(&format!("/api/test-runs/{id}")).await.expect("the run");
    let page = client
        .json(&format!("/api/test-runs/{id}/executions?limit=200&sort=file"))
        .await
        .expect("executions");
    let keys = ["title", "status", "flaky", "retries", "duration", "totalDuration", "attemptCount"];
    let mut rows: Vec<String> = page["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|row| json!(picked(row, keys)).to_string())
        .collect();
    rows.sort();
    let keys = [
        "status",
        "endReason",
        "startTime",
        "duration",
        "isFullRun",
        "totalTests",
        "passedTests",
        "failedTests",
        "flakyTests",
        "testsDuration",
        "attempts",
        "shardsFinished",
    ];
    json!({ "run": picked(&shown, keys), "rows": rows })
}

/// Sends everything in an order: which sender makes its next call.
async fn sent(client: &Client, project: &str, senders: &[Sender], ways: &[bool], turns: &[usize]) -> Value {
    let live = [Call::Start, Call::Results(0), Call::Results(1), Call::Finish];
    let mut feeders: Vec<Option<Feeder>> = senders.iter().map(|_| None).collect();
    let mut made = vec![0; senders.len()];
    for &at in turns {
        let script: &[Call] = if ways[at] { &live } else { &[Call::Submit] };
        if let Some(call) = script.get(made[at]) {
            senders[at].call(client, project, &mut feeders[at], *call).await;
        }
        made[at] += 1;
    }
    outcome(client, project).await
}

/// Which senders are live, and the turns of all of them.
fn orders(senders: usize) -> impl Strategy<Value = (Vec<bool>, Vec<usize>)> {
    let turns: Vec<usize> = (0..senders).flat_map(|at| std::iter::repeat_n(at, 4)).collect();
    (proptest::collection::vec(any::<bool>(), senders), Just(turns).prop_shuffle())
}

fn every_order_is_the_same_run(backend: Backend, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let service = runtime.block_on(Service::start(backend)).expect("a service");
    let client = service.client();
    for (number, senders) in pipelines().iter().enumerate() {
        let in_turn: Vec<usize> = (0..senders.len()).collect();
        let project = format!("in turn {number}");
        let expected =
            runtime.block_on(sent(client, &project, senders, &vec![false; senders.len()], &in_turn));
        assert_eq!(expected["run"][0], "passed", "{expected}");
        let made = std::cell::Cell::new(0);
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        runner
            .run(&orders(senders.len()), |(ways, turns)| {
                made.set(made.get() + 1);
                let project = format!("pipeline {number}, order {}", made.get());
                prop_assert_eq!(&runtime.block_on(sent(client, &project, senders, &ways, &turns)), &expected);
                Ok(())
            })
            .expect("every order gives the same run");
    }
}

#[test]
fn reruns_in_any_order_are_the_same_run_on_sqlite() {
    every_order_is_the_same_run(Backend::Sqlite, 30);
}

#[test]
fn reruns_in_any_order_are_the_same_run_on_postgres() {
    every_order_is_the_same_run(Backend::Postgres, 10);
}
