//! Which runs count as runs of the whole suite, and which of them others are
//! measured against.

use callboard_domain::time::Timestamp;
use callboard_test_support::{Client, Service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, passing, run, with};
use crate::comparison::{submit, work};
use crate::live::keep_reruns_apart;
use crate::mcp::Agent;
use crate::rows::texts;

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect(path)
}

/// A run of `main` that claims to be full and started so many minutes ago.
fn claimed_full(service: &Service, minutes: i64, status: &str, cases: Vec<Value>) -> Value {
    let start = Timestamp(service.state().now().millis() - minutes * 60_000).to_iso();
    let scm = json!({ "scm": { "defaultBranch": "main" } });
    let fields = json!({ "startTime": start, "branch": "main", "metadata": scm, "isFullRun": true });
    with(run("shop", status, cases), fields)
}

fn agent(service: &Service) -> Agent {
    Agent::at(service.client().clone(), "/mcp")
}

/// What a run says of its extent.
async fn extent(client: &Client, id: i64) -> (bool, bool, Value, Value) {
    let told = get(client, &format!("/api/test-runs/{id}")).await;
    let flag = |key: &str| told[key].as_bool().expect(key);
    (flag("isFullRun"), flag("isGreen"), told["partialReason"].clone(), told["expectedTests"].clone())
}

/// The baseline of a run.
async fn baseline(client: &Client, id: i64) -> Value {
    get(client, &format!("/api/test-runs/{id}")).await["baseline"]["runId"].clone()
}

#[tokio::test]
async fn a_run_with_one_test_is_not_the_whole_suite_whatever_it_claims() {
    for_each_service(async |service| {
        let client = service.client();
        let full = submit(client, claimed_full(service, 90, "passed", passing(20))).await;
        assert_eq!(extent(client, full).await, (true, true, Value::Null, Value::Null));
        let focused = submit(client, claimed_full(service, 80, "passed", passing(1))).await;
        assert_eq!(extent(client, focused).await, (false, false, json!("fewer-tests"), json!(20)));
        // It counts among the partial runs everywhere.
        let next = submit(client, claimed_full(service, 70, "passed", passing(20))).await;
        assert_eq!(baseline(client, next).await, full);
        let listed = get(client, "/api/projects/1/test-runs?fullRuns=true").await;
        let ids: Vec<i64> =
            listed["items"].as_array().expect("items").iter().filter_map(|run| run["id"].as_i64()).collect();
        assert_eq!(ids, [next, full]);
        assert_eq!(get(client, "/api/projects/overview").await["items"][0]["latestFullRun"]["id"], next);
        work(service).await;
        assert_eq!(extent(client, focused).await, (false, false, json!("fewer-tests"), json!(20)));

        let page = client.get(&format!("/test-runs/{focused}")).await.expect("a page").text();
        assert!(
            page.contains("Counted as a partial run: 1\u{a0}test ran, earlier full runs had 20."),
            "{page}"
        );
        let told = agent(service).call("get_run", json!({ "runId": focused })).await.expect("an answer");
        assert_eq!((&told["partialReason"], &told["expectedTests"]), (&json!("fewer-tests"), &json!(20)));

        let judged = json!({ "maxFailed": 0 });
        let judged =
            client.post_json(&format!("/api/test-runs/{focused}/gate"), &judged).await.expect("judged");
        assert_eq!(
            (&judged["facts"]["totalTests"], &judged["facts"]["expectedTests"]),
            (&json!(1), &json!(20))
        );

        // Another branch knows no size of its suite, and a failure is never left out.
        let topic = with(claimed_full(service, 60, "passed", passing(1)), json!({ "branch": "topic" }));
        assert_eq!(extent(client, submit(client, topic).await).await, (true, true, Value::Null, Value::Null));
        let failed = claimed_full(service, 50, "failed", vec![attempt("breaks", "failed", 0)]);
        assert_eq!(
            extent(client, submit(client, failed).await).await,
            (true, false, Value::Null, Value::Null)
        );
    })
    .await;
}

#[tokio::test]
async fn a_suite_that_shrank_is_full_again_after_three_runs() {
    for_each_service(async |service| {
        let client = service.client();
        for minutes in [100, 95, 90] {
            submit(client, claimed_full(service, minutes, "passed", passing(40))).await;
        }
        let mut counts = Vec::new();
        for minutes in [50, 40, 30, 20, 10] {
            let id = submit(client, claimed_full(service, minutes, "passed", passing(8))).await;
            let (is_full, is_green, _, expected) = extent(client, id).await;
            assert_eq!(is_full, is_green);
            counts.push((is_full, expected));
        }
        let doubted = (false, json!(40));
        let believed = (true, Value::Null);
        assert_eq!(counts, [doubted.clone(), doubted.clone(), doubted, believed.clone(), believed]);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_turns_out_to_be_small_is_no_longer_the_latest_full_one() {
    for_each_service(async |service| {
        let client = service.client();
        let full = submit(client, claimed_full(service, 90, "passed", passing(20))).await;
        let small = |case: Value| {
            with(
                claimed_full(service, 80, "passed", vec![case]),
                json!({ "clientRunId": "one-and-the-same" }),
            )
        };
        let red = submit(client, small(attempt("wobbles", "failed", 0))).await;
        assert_eq!(extent(client, red).await, (true, false, Value::Null, Value::Null));
        let latest =
            async || get(client, "/api/projects/overview").await["items"][0]["latestFullRun"]["id"].clone();
        assert_eq!(latest().await, red);
        // The rest of its results comes late, and with it the pass on a retry.
        assert_eq!(submit(client, small(attempt("wobbles", "passed", 1))).await, red);
        assert_eq!(extent(client, red).await, (false, false, json!("fewer-tests"), json!(20)));
        assert_eq!(latest().await, full);
        let stored = "SELECT CAST(latest_full_run_id AS TEXT) FROM project_stats";
        assert_eq!(texts(service, stored).await, [full.to_string()]);
        let next = submit(client, claimed_full(service, 60, "passed", passing(20))).await;
        assert_eq!(baseline(client, next).await, full);
    })
    .await;
}

#[tokio::test]
async fn a_run_that_repeats_a_shard_says_so() {
    for_each_service(async |service| {
        let client = service.client();
        let shard = |index: i64, status: &str, minutes: i64| {
            let case = attempt(&format!("of shard {index}"), status, 0);
            let shard = json!({ "instanceId": "0123456789abcdef", "shardIndex": index, "shardTotal": 2 });
            with(claimed_full(service, minutes, status, vec![case]), shard)
        };
        let red = submit(client, shard(1, "failed", 80)).await;
        assert_eq!(submit(client, shard(2, "passed", 80)).await, red);
        keep_reruns_apart(client, red).await;
        let again = submit(client, shard(1, "passed", 70)).await;
        assert_ne!(again, red);
        assert_eq!(extent(client, again).await, (false, false, json!("rerun"), Value::Null));
    })
    .await;
}

#[tokio::test]
async fn no_run_is_measured_against_one_of_a_dirty_work_tree() {
    for_each_service(async |service| {
        let client = service.client();
        let clean = submit(client, claimed_full(service, 90, "passed", passing(5))).await;
        let dirty = json!({ "metadata": { "scm": { "defaultBranch": "main", "dirty": true } } });
        let dirty = submit(client, with(claimed_full(service, 80, "passed", passing(5)), dirty)).await;
        let told = get(client, &format!("/api/test-runs/{dirty}")).await;
        let shown = ["isFullRun", "isGreen", "isDirty", "partialReason"].map(|key| told[key].clone());
        assert_eq!(shown, [json!(true), json!(false), json!(true), Value::Null]);
        work(service).await;
        let partial = with(claimed_full(service, 75, "passed", passing(5)), json!({ "isFullRun": false }));
        let partial = submit(client, partial).await;
        let told = get(client, &format!("/api/test-runs/{partial}")).await;
        assert_eq!(told["partialReason"], "selection");
        let next = submit(client, claimed_full(service, 70, "passed", passing(5))).await;
        assert_eq!(baseline(client, next).await, clean);
        let compared = get(client, &format!("/api/test-runs/{next}/compare?with=baseline")).await;
        assert_eq!(compared["base"]["id"], clean);
        let page = client.get(&format!("/test-runs/{dirty}")).await.expect("a page").text();
        assert!(page.contains(">uncommitted changes</span>"), "{page}");
        let told = agent(service).call("get_run", json!({ "runId": dirty })).await.expect("an answer");
        assert_eq!(told["dirty"], true);
    })
    .await;
}
