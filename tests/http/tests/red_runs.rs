//! Runs that are red although no failed test says so: everything that answers
//! for a run has to say it first, and why.

use callboard_test_support::{Client, for_each_service};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::detail_pages::page;
use crate::live::{picked, start, sweep};
use crate::mcp::Agent;

/// A kind of red run.
struct Case {
    /// Project of its own.
    name: &'static str,
    submission: Value,
    /// How it ends.
    status: &'static str,
    /// How the reason begins that everything gives.
    reason: &'static str,
    /// Rules of the run itself that every gate finds violated.
    rules: &'static [&'static str],
    /// What a badge says instead of counting tests.
    badge: &'static str,
}

fn red(name: &str, status: &str, errors: Value, cases: Vec<Value>) -> Value {
    with(
        run(name, status, cases),
        json!({ "isFullRun": true, "metadata": { "globalErrors": errors }, "totalTests": 0, "passedTests": 0,
            "failedTests": 0, "skippedTests": 0 }),
    )
}

fn not_run(title: &str, reason: &str) -> Value {
    with(attempt(title, "didnotrun", 0), json!({ "didNotRunReason": reason }))
}

fn passing() -> Vec<Value> {
    vec![attempt("pays", "passed", 0), attempt("ships", "passed", 0)]
}

fn cases() -> Vec<Case> {
    let with_phase =
        |message: &str, phase: &str| json!([{ "message": message, "phase": phase, "location": "a.ts:7:1" }]);
    vec![
        Case {
            name: "global set-up",
            submission: red(
                "global set-up",
                "failed",
                with_phase("Error: db is down\n    at gs.ts:1:9", "global-setup"),
                vec![],
            ),
            status: "failed",
            reason: "Global set-up failed: db is down",
            rules: &["run-errors", "no-results"],
            badge: "failing",
        },
        Case {
            name: "file does not load",
            submission: red(
                "file does not load",
                "failed",
                with_phase("SyntaxError: Unexpected token", "load"),
                vec![],
            ),
            status: "failed",
            reason: "Loading the tests failed: SyntaxError: Unexpected token",
            rules: &["run-errors", "no-results"],
            badge: "failing",
        },
        Case {
            name: "worker teardown",
            submission: red(
                "worker teardown",
                "failed",
                with_phase("Error: <teardown> broke", "worker"),
                passing(),
            ),
            status: "failed",
            reason: "A worker failed outside of its tests: <teardown> broke",
            rules: &["run-errors"],
            badge: "failing",
        },
        Case {
            name: "forbidOnly",
            submission: red(
                "forbidOnly",
                "failed",
                json!([
                    "Error: item focused with '.only' is not allowed due to the 'forbidOnly' option in 'c.ts'"
                ]),
                vec![],
            ),
            status: "failed",
            reason: "test.only is forbidden: item focused",
            rules: &["run-errors", "no-results"],
            badge: "failing",
        },
        Case {
            name: "global timeout",
            submission: red(
                "global timeout",
                "timedout",
                json!(["\u{1b}[31mTimed out waiting 4s for the test suite to run\u{1b}[39m"]),
                vec![attempt("pays", "passed", 0), not_run("ships", "global-timeout")],
            ),
            status: "timedout",
            reason: "Global timeout reached: Timed out waiting 4s",
            rules: &["incomplete-run", "run-errors"],
            badge: "failing",
        },
        Case {
            name: "global timeout of an older client",
            submission: red(
                "global timeout of an older client",
                "timedout",
                Value::Null,
                vec![attempt("pays", "passed", 0), attempt("ships", "didnotrun", 0)],
            ),
            status: "timedout",
            reason: "The run reached its global timeout",
            rules: &["run-status"],
            badge: "failing",
        },
        Case {
            name: "maximum of failures",
            submission: red(
                "maximum of failures",
                "failed",
                json!(["Testing stopped early after 1 maximum allowed failures."]),
                vec![attempt("pays", "failed", 0), not_run("ships", "max-failures")],
            ),
            status: "failed",
            reason: "Stopped at the maximum of failures",
            rules: &["incomplete-run", "run-errors"],
            badge: "failing",
        },
        Case {
            name: "interrupted",
            submission: red(
                "interrupted",
                "interrupted",
                Value::Null,
                vec![
                    attempt("pays", "passed", 0),
                    attempt("ships", "interrupted", 0),
                    not_run("opens", "interrupted"),
                ],
            ),
            status: "interrupted",
            reason: "The run was interrupted before all tests had a result",
            rules: &["incomplete-run"],
            badge: "interrupted",
        },
        Case {
            name: "failed without a word",
            submission: red("failed without a word", "failed", Value::Null, passing()),
            status: "failed",
            reason: "The run failed although no test did",
            rules: &["run-status"],
            badge: "failing",
        },
        Case {
            name: "errors in a run that says it passed",
            submission: red("errors in a run that says it passed", "passed", json!(["boom"]), passing()),
            status: "failed",
            reason: "Error outside tests: boom",
            rules: &["run-errors"],
            badge: "failing",
        },
    ]
}

async fn judge(client: &Client, run: i64, policy: Value) -> Value {
    client.post_json(&format!("/api/test-runs/{run}/gate"), &policy).await.expect("judged")
}

fn rules(gate: &Value) -> Vec<&str> {
    let violations = gate["violations"].as_array().expect("violations").iter();
    violations.map(|found| found["rule"].as_str().expect("a rule")).collect()
}

fn begins(value: &Value, with: &str) -> bool {
    value.as_str().is_some_and(|text| text.starts_with(with))
}

/// The page without its markup's escapes.
fn read(html: &str) -> String {
    html.replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'")
}

#[tokio::test]
async fn everything_says_first_that_the_run_is_red_and_why() {
    for_each_service(async |service| {
        let client = service.client();
        for Case { name, submission, status, reason, rules: expected, badge } in cases() {
            let run = submit(client, submission).await;
            let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("a run");
            assert_eq!(detail["status"], status, "{name}");
            assert!(begins(&detail["statusReason"], reason), "{name}: {}", detail["statusReason"]);
            assert!(detail["metadata"].get("globalErrors").is_none(), "{name}");
            let project = detail["projectId"].as_i64().expect("a project");

            // The gate: whatever the policy allows of its tests.
            let gate = judge(client, run, json!({ "maxFailed": 99, "maxQuarantined": 99 })).await;
            assert_eq!((&gate["passed"], rules(&gate).as_slice()), (&json!(false), expected), "{name}");
            assert!(begins(&gate["facts"]["statusReason"], reason), "{name}");
            assert_eq!(gate["facts"]["runErrors"], detail["runErrors"], "{name}");

            // Lists.
            let listed = client.json(&format!("/api/projects/{project}/test-runs")).await.expect("runs");
            assert!(begins(&listed["items"][0]["statusReason"], reason), "{name}");
            let overview = client.json(&format!("/api/projects/{project}")).await.expect("a project");
            assert!(begins(&overview["latestRun"]["statusReason"], reason), "{name}");

            // The badge: no count of tests hides it.
            for metric in ["status", "passRate", "tests", "flaky"] {
                let path = format!("/api/projects/{project}/badge.json?metric={metric}");
                assert_eq!(client.json(&path).await.expect("a badge")["message"], badge, "{name}: {metric}");
            }

            // Agents.
            let agent = Agent::at(client.clone(), "/mcp");
            for (tool, pointer) in [
                ("get_run", "/statusReason"),
                ("get_failure_groups", "/statusReason"),
                ("get_run_insights", "/statusReason"),
                ("list_failed_cases", "/run/statusReason"),
            ] {
                let answer = agent.call(tool, json!({ "runId": run })).await.expect("an answer");
                assert!(
                    begins(answer.pointer(pointer).unwrap_or(&Value::Null), reason),
                    "{name}: {tool} {answer}"
                );
            }
            let told = agent.call("get_run", json!({ "runId": run })).await.expect("an answer");
            let told = told["runErrors"].as_array().map_or(0, Vec::len);
            assert_eq!(told, detail["runErrors"].as_array().expect("errors").len(), "{name}");
            let runs = agent.call("list_runs", json!({ "projectId": project })).await.expect("an answer");
            assert!(begins(&runs["items"][0]["statusReason"], reason), "{name}");

            junit_is_red(client, run, name, reason).await;
            ctrf_is_red(client, run, name, reason).await;

            // Pages.
            for path in [
                format!("/test-runs/{run}"),
                format!("/test-runs/{run}?tab=insights"),
                format!("/projects/{project}"),
                "/projects".to_owned(),
            ] {
                assert!(read(&page(client, &path).await).contains(reason), "{name}: {path}");
            }
        }
    })
    .await;
}

/// By a reader of JUnit that is not ours.
async fn junit_is_red(client: &Client, run: i64, name: &str, reason: &str) {
    for query in ["format=junit", "format=junit&status=passed&include=errors"] {
        let file = client.get(&format!("/api/test-runs/{run}/export?{query}")).await.expect("a file");
        // The reader wants a zone, which the schema of Ant forbids.
        let text = file.text().replace("T10:00:00\"", "T10:00:00Z\"");
        let report = Report::deserialize_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let first = report.test_suites.first().expect("a suite");
        assert!(first.errors >= 1 && first.errors == first.test_cases.len(), "{name}: {query}");
        let error = first.test_cases.first().expect("the run");
        let TestCaseStatus::NonSuccess { kind, message, .. } = &error.status else {
            panic!("{name}: a success")
        };
        assert_eq!(*kind, NonSuccessKind::Error, "{name}");
        assert!(message.as_ref().expect("a message").as_str().starts_with(reason), "{name}: {message:?}");
        let mut ids: Vec<Option<&str>> = report
            .test_suites
            .iter()
            .map(|suite| suite.extra.get("id").map(quick_junit::XmlString::as_str))
            .collect();
        ids.dedup();
        assert_eq!(ids, [Some("0"), Some("1")], "{name}: suites are numbered from 0");
    }
}

async fn ctrf_is_red(client: &Client, run: i64, name: &str, reason: &str) {
    let file = client.json(&format!("/api/test-runs/{run}/export?format=ctrf")).await.expect("JSON");
    let results = &file["results"];
    let tests = results["tests"].as_array().expect("tests");
    assert_eq!((&tests[0]["status"], &tests[0]["suite"]), (&json!("failed"), &json!(["Run"])), "{name}");
    assert!(begins(&tests[0]["name"], reason), "{name}: {}", tests[0]);
    let count = |status: &str| tests.iter().filter(|test| test["status"] == status).count();
    assert_eq!(results["summary"]["tests"], tests.len(), "{name}");
    for status in ["passed", "failed", "pending", "other"] {
        assert_eq!(results["summary"][status], count(status), "{name}: {status}");
    }
}

#[tokio::test]
async fn only_run_errors_may_be_allowed_and_only_by_name() {
    for_each_service(async |service| {
        let client = service.client();
        for Case { name, submission, rules: expected, .. } in cases() {
            let run = submit(client, submission).await;
            let gate = judge(client, run, json!({ "maxFailed": 99, "allowRunErrors": true })).await;
            let left: Vec<&str> =
                expected.iter().copied().filter(|rule| !["run-errors", "run-status"].contains(rule)).collect();
            assert_eq!((rules(&gate), &gate["passed"]), (left.clone(), &json!(left.is_empty())), "{name}");
        }
        let run = submit(client, red("shop", "failed", json!(["boom"]), passing())).await;
        let policy = json!({ "name": "strict", "policy": { "maxFailed": 0, "allowRunErrors": false }, "isDefault": true });
        let project = client.json(&format!("/api/test-runs/{run}")).await.expect("a run")["projectId"].clone();
        let path = format!("/api/projects/{project}/gate-policies");
        client.post_json(&path, &policy).await.expect("stored");
        assert_eq!(rules(&judge(client, run, json!({})).await), ["run-errors"]);
        for (body, code) in [
            (json!({ "allowRunErrors": true }), "invalid_body"),
            (json!({ "allowRunErrors": "yes", "maxFailed": 0 }), "invalid_field"),
            (json!({ "policy": "strict", "allowRunErrors": true }), "invalid_body"),
        ] {
            let answer = client.post(&format!("/api/test-runs/{run}/gate"), &body).await.expect("an answer");
            assert_eq!((answer.status.as_u16(), &answer.json().expect("an error")["code"]), (400, &json!(code)), "{body}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_gate_never_passes_a_run_that_goes_on_was_cut_off_or_has_no_results() {
    for_each_service(async |service| {
        let client = service.client();
        let generous = json!({ "maxFailed": 99 });
        let feeder = start(client, json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        let answer =
            client.post(&format!("/api/test-runs/{}/gate", feeder.run), &generous).await.expect("an answer");
        let error: Value = answer.json().expect("an error");
        assert_eq!((answer.status.as_u16(), &error["code"]), (409, &json!("run_not_finished")));
        sweep(service, 121_000).await;
        let lost = judge(client, feeder.run, generous.clone()).await;
        assert_eq!(rules(&lost), ["incomplete-run"]);
        assert_eq!(
            lost["violations"][0]["message"],
            "The connection to the test runner was lost. Run the tests again."
        );
        feeder.results(vec![attempt("ships", "failed", 0)]).await;
        feeder.finish("failed").await;
        assert_eq!(judge(client, feeder.run, generous.clone()).await["passed"], true, "its client came back");

        let shard = |index: u32| json!({ "shardIndex": index, "shardTotal": 3, "instanceId": "one" });
        let first = start(client, shard(1)).await;
        first.results(vec![attempt("first", "failed", 0)]).await;
        first.finish("failed").await;
        let second = start(client, shard(2)).await;
        second.results(vec![attempt("second", "passed", 0)]).await;
        sweep(service, 16 * 60 * 1000).await;
        let missing = judge(client, first.run, generous.clone()).await;
        assert_eq!(rules(&missing), ["incomplete-run"]);
        assert_eq!(
            missing["violations"][0]["message"],
            "2 shards have no result. Run the missing shards again."
        );
        assert_eq!(missing["violations"][0]["actual"], 2.0);

        let claimed = with(run("claims", "passed", vec![]), json!({ "totalTests": 9, "passedTests": 9 }));
        let none = with(run("none", "passed", vec![]), json!({ "totalTests": 0, "passedTests": 0 }));
        for body in [claimed, none] {
            let run = submit(client, body).await;
            assert_eq!(rules(&judge(client, run, generous.clone()).await), ["no-results"]);
        }
        // Skipping is a result; a failed test that a policy allows explains a failed run.
        let skipped = submit(client, run("skips", "passed", vec![attempt("pays", "skipped", 0)])).await;
        assert_eq!(judge(client, skipped, generous.clone()).await["passed"], true);
        let behind = vec![attempt("pays", "failed", 0), not_run("ships", "previous-failure")];
        let behind = submit(client, run("serial", "failed", behind)).await;
        assert_eq!(judge(client, behind, generous).await["passed"], true);
    })
    .await;
}

#[tokio::test]
async fn the_errors_of_every_shard_count_once_and_those_of_a_lost_one_only_until_it_is_tried_again() {
    for_each_service(async |service| {
        let client = service.client();
        let shard = |index: u32| json!({ "shardIndex": index, "shardTotal": 2, "instanceId": "two" });
        let errors =
            |texts: &[&str]| json!({ "metadata": { "globalErrors": texts, "ci": { "provider": "x" } } });
        let first = start(client, shard(1)).await;
        first.results(vec![attempt("first", "passed", 0)]).await;
        assert_eq!(first.finish_with("failed", errors(&["one", "one", "two\u{0}"])).await, "running");
        let second = start(client, shard(2)).await;
        second.results(vec![attempt("second", "passed", 0)]).await;
        assert_eq!(second.finish_with("failed", errors(&["one", "three"])).await, "failed");
        let shown = first.shown().await;
        let found: Vec<[Value; 2]> = shown["runErrors"]
            .as_array()
            .expect("errors")
            .iter()
            .map(|error| picked(error, ["message", "shardIndex"]))
            .collect();
        let expected = [("one", 1), ("two\u{fffd}", 1), ("one", 2), ("three", 2)];
        assert_eq!(found, expected.map(|(message, index)| [json!(message), json!(index)]));
        assert_eq!(shown["statusReason"], "Error outside tests: one (and 3 more errors)");
        let listed = client.json("/api/test-runs").await.expect("runs");
        assert_eq!(listed["items"][0]["statusReason"], shown["statusReason"]);

        // A client that said so at its start and was lost is replaced by one that passes.
        let shard = |index: u32| json!({ "shardIndex": index, "shardTotal": 2, "instanceId": "three" });
        let lost = start(client, with(shard(1), errors(&["broke"]))).await;
        lost.results(vec![attempt("first", "passed", 0)]).await;
        sweep(service, 3 * 60 * 1000).await;
        let again = start(client, shard(1)).await;
        assert_eq!(again.run, lost.run);
        again.results(vec![attempt("first", "passed", 0)]).await;
        again.finish("passed").await;
        let other = start(client, shard(2)).await;
        other.results(vec![attempt("second", "passed", 0)]).await;
        let ended = other.finish("passed").await;
        assert_eq!(ended, "passed", "{}", again.shown().await);
        assert_eq!(picked(&again.shown().await, ["runErrors", "statusReason"]), [json!([]), Value::Null]);
        assert_eq!(judge(client, again.run, json!({ "maxFailed": 0 })).await["passed"], true);
    })
    .await;
}
