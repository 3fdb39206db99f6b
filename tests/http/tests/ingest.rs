//! Submissions that are well formed: what is stored, and what is answered.

use callboard_test_support::{Answer, Form, for_each_service};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::builders::{attempt, passing, run, with};
use crate::live::start;

async fn executions(client: &callboard_test_support::Client, run: &Value) -> Vec<Value> {
    let path = format!("/api/test-runs/{run}/executions?limit=200&sort=id");
    let page = client.json(&path).await.expect("a page");
    page["items"].as_array().cloned().expect("items")
}

#[tokio::test]
async fn the_minimal_payload_is_stored() {
    for_each_service(async |service| {
        let submission = json!({
            "projectName": "shop", "status": "failed", "startTime": "2026-01-01T10:00:00.000Z", "duration": 5000,
            "totalTests": 2, "passedTests": 1, "failedTests": 1, "skippedTests": 0,
            "testCases": [
                { "title": "adds item", "status": "passed", "duration": 812, "location": "tests/cart.spec.ts:7:5", "retries": 1 },
                { "title": "pays", "status": "failed", "duration": 2100, "location": "tests/pay.spec.ts:9:5",
                  "error": "Error: expected 200", "retries": 0 },
            ],
        });
        let answer = service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
        assert_eq!(answer["testRunId"], answer["runId"]);
        for id in ["runId", "projectId"] {
            assert!(answer[id].as_i64().is_some_and(|id| id > 0), "{answer}");
        }
        assert_eq!(answer["status"], "failed");
        assert_eq!(answer["duplicate"], false);
        assert_eq!(answer["flakyTests"], 1, "a pass at the second attempt had a failed first one");
        let found = service.client().json(&format!("/api/test-runs/{}", answer["runId"])).await.expect("the run");
        insta::assert_json_snapshot!("minimal_run", found, {
            ".createdAt" => "[time]", ".updatedAt" => "[time]", ".url" => "[url]",
        });
        let pays = executions(service.client(), &answer["runId"]).await;
        let pays = pays.iter().find(|item| item["title"] == "pays").expect("the failing test");
        let detail = service.client().json(&format!("/api/test-run-cases/{}", pays["id"])).await.expect("its page");
        assert_eq!(detail["error"], "Error: expected 200");
    })
    .await;
}

#[tokio::test]
async fn attempts_are_one_test_whatever_their_order() {
    for_each_service(async |service| {
        for (id, order) in [("attempts-ab", [0, 1]), ("attempts-ba", [1, 0])] {
            let both = [attempt("pays", "failed", 0), attempt("pays", "passed", 1)];
            let cases = order.iter().map(|at| both[*at].clone()).collect();
            let submission = with(run("shop", "passed", cases), json!({ "clientRunId": id }));
            let answer =
                service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
            let counts =
                ["totalTests", "passedTests", "failedTests", "flakyTests"].map(|key| answer[key].as_i64());
            assert_eq!(counts, [Some(1), Some(1), Some(0), Some(1)], "{id}");
            let found = executions(service.client(), &answer["runId"]).await;
            assert_eq!(found.len(), 1);
            let detail = service
                .client()
                .json(&format!("/api/test-run-cases/{}", found[0]["id"]))
                .await
                .expect("a page");
            assert_eq!(detail["attempts"].as_array().map(Vec::len), Some(2));
            assert_eq!(detail["retries"], 1);
        }
    })
    .await;
}

#[tokio::test]
async fn the_same_submission_again_is_the_same_run() {
    for_each_service(async |service| {
        let submission = with(
            run("shop", "failed", vec![attempt("pays", "failed", 0)]),
            json!({ "instanceId": "0123456789abcdef", "reporterVersion": "0.25.0" }),
        );
        let first = service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
        let second = service.client().post_json("/api/test-runs/submit", &submission).await.expect("known");
        assert_eq!(second["runId"], first["runId"]);
        assert_eq!(second["duplicate"], true);
        assert_eq!(second["failedTests"], 1);

        let plain = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let one = service.client().post_json("/api/test-runs/submit", &plain).await.expect("stored");
        let two = service.client().post_json("/api/test-runs/submit", &plain).await.expect("stored");
        assert_ne!(one["runId"], two["runId"], "without a key every call is a new run");
    })
    .await;
}

#[tokio::test]
async fn a_submission_goes_on_when_its_client_hangs_up() {
    for_each_service(async |service| {
        let submission = run("hang up", "passed", passing(6_000)).to_string();
        let address = service.base_url().trim_start_matches("http://").to_owned();
        let mut connection = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        let head = format!(
            "POST /api/test-runs/submit HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            submission.len()
        );
        connection.write_all(head.as_bytes()).await.expect("sent");
        connection.write_all(submission.as_bytes()).await.expect("sent");
        // Part of the run is stored: the client goes away in the middle.
        let first = async || service.client().json("/api/test-runs").await.expect("runs")["items"][0].clone();
        while first().await.is_null() {
            tokio::task::yield_now().await;
        }
        drop(connection);
        let mut run = first().await;
        while run["status"] == "running" {
            run = first().await;
        }
        assert_eq!((&run["status"], &run["totalTests"]), (&json!("passed"), &json!(6_000)));
    })
    .await;
}

#[tokio::test]
async fn fifty_first_submissions_at_once_make_one_project() {
    for_each_service(async |service| {
        let calls = (0..50).map(|n| async move {
            let submission = run("brand new", "passed", vec![attempt(&format!("test {n}"), "passed", 0)]);
            service.client().post_json("/api/test-runs/submit", &submission).await
        });
        let mut runs = std::collections::BTreeSet::new();
        for answer in futures::future::join_all(calls).await {
            runs.insert(answer.expect("stored")["runId"].as_i64());
        }
        assert_eq!(runs.len(), 50);
        let projects = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(projects["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(projects["items"][0]["totalRuns"], 50);
        assert_eq!(projects["items"][0]["totalTestCases"], 50);
    })
    .await;
}

#[tokio::test]
async fn parallel_copies_of_one_submission_make_one_run() {
    for_each_service(async |service| {
        let submission = with(run("shop", "passed", passing(30)), json!({ "clientRunId": "the-only-one" }));
        let calls = (0..8).map(|_| service.client().post_json("/api/test-runs/submit", &submission));
        let answers = futures::future::join_all(calls).await;
        let runs: std::collections::BTreeSet<_> =
            answers.iter().map(|answer| answer.as_ref().expect("stored")["runId"].as_i64()).collect();
        assert_eq!(runs.len(), 1);
        let first = answers.iter().filter(|answer| answer.as_ref().expect("stored")["duplicate"] == false);
        assert_eq!(first.count(), 1);
        let found = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(found["items"][0]["totalRuns"], 1);
    })
    .await;
}

#[tokio::test]
async fn five_thousand_tests_are_one_run() {
    for_each_service(async |service| {
        let submission =
            with(run("large", "passed", passing(5_000)), json!({ "clientRunId": "large-run-1" }));
        let answer = service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
        assert_eq!(answer["totalTests"], 5_000);
        assert_eq!(answer["status"], "passed");
        let again = service.client().post_json("/api/test-runs/submit", &submission).await.expect("known");
        assert_eq!((&again["totalTests"], &again["duplicate"]), (&json!(5_000), &json!(true)));
        let summary = service
            .client()
            .json(&format!("/api/test-runs/{}/summary", answer["runId"]))
            .await
            .expect("a page");
        assert_eq!(summary["testCases"].as_array().map(Vec::len), Some(200));
    })
    .await;
}

#[tokio::test]
async fn statuses_and_expected_failures_are_counted_as_a_person_would() {
    for_each_service(async |service| {
        let fails = json!({ "testAnnotations": [{ "type": "fail" }] });
        let cases = vec![
            attempt("times out", "timedOut", 0),
            attempt("is skipped", "skipped", 0),
            attempt("never ran", "didNotRun", 0),
            attempt("was stopped", "interrupted", 0),
            with(attempt("fails as expected", "failed", 0), fails.clone()),
            with(attempt("passes against expectation", "passed", 0), fails),
            attempt("is odd", "exploded", 0),
        ];
        let answer = service
            .client()
            .post_json("/api/test-runs/submit", &run("shop", "failed", cases))
            .await
            .expect("stored");
        assert_eq!(answer["warnings"][0]["code"], "unknown_status");
        let found =
            service.client().json(&format!("/api/test-runs/{}", answer["runId"])).await.expect("the run");
        let totals = [
            "totalTests",
            "passedTests",
            "failedTests",
            "timedOutTests",
            "interruptedTests",
            "skippedTests",
            "didNotRunTests",
            "flakyTests",
        ];
        assert_eq!(totals.map(|key| found[key].as_i64().unwrap_or(-1)), [7, 1, 3, 1, 1, 1, 1, 0]);
        let items = executions(service.client(), &answer["runId"]).await;
        let expected = items.iter().find(|item| item["title"] == "fails as expected").expect("it");
        assert_eq!((&expected["status"], &expected["expectedFailure"]), (&json!("passed"), &json!(true)));
        let late = items.iter().find(|item| item["title"] == "times out").expect("it");
        assert_eq!(late["status"], "timedout");
    })
    .await;
}

#[tokio::test]
async fn browser_projects_are_executions_of_one_test_case() {
    for_each_service(async |service| {
        let browsers = ["chromium", "firefox", "webkit"];
        let cases = browsers
            .iter()
            .map(|name| {
                with(
                    attempt("pays", "passed", 0),
                    json!({ "browser": { "projectName": name, "browserName": name } }),
                )
            })
            .collect();
        let answer = service
            .client()
            .post_json("/api/test-runs/submit", &run("shop", "passed", cases))
            .await
            .expect("stored");
        let items = executions(service.client(), &answer["runId"]).await;
        assert_eq!(items.len(), 3);
        assert!(items.iter().all(|item| item["testCaseId"] == items[0]["testCaseId"]));
        let found =
            service.client().json(&format!("/api/test-runs/{}", answer["runId"])).await.expect("the run");
        assert_eq!(found["browsers"], json!(browsers));

        let nameless = with(
            run("shop", "passed", vec![attempt("pays", "passed", 0), attempt("pays", "passed", 0)]),
            json!({ "clientRunId": "without-a-browser" }),
        );
        let mut stored =
            service.client().post_json("/api/test-runs/submit", &nameless).await.expect("stored");
        assert_eq!(stored["totalTests"], 1);
        stored = service.client().post_json("/api/test-runs/submit", &nameless).await.expect("known");
        assert_eq!(stored["totalTests"], 1);
        let again = executions(service.client(), &stored["runId"]).await;
        assert_eq!(again.len(), 1);
        assert_eq!(again[0]["testCaseId"], items[0]["testCaseId"], "the browser is no part of a test");
    })
    .await;
}

#[tokio::test]
async fn evidence_comes_back_and_secrets_do_not() {
    for_each_service(async |service| {
        let rich = with(
            attempt("pays", "failed", 0),
            json!({
                "steps": [{ "title": "click Pay", "duration": 12, "category": "action" }],
                "networkRequests": [{ "method": "GET", "url": "https://shop.test/api/cart?token=secret-token", "status": 500,
                    "duration": 30, "resourceType": "fetch" }],
                "consoleLogs": [{ "type": "error", "text": "cart failed", "timestamp": 1_767_261_600_000_i64, "location": null }],
                "pageState": { "url": "https://shop.test/pay?card=4111", "localStorage": [{ "key": "jwt", "value": "secret-jwt", "length": 10 }],
                    "sessionStorage": [], "cookies": [{ "name": "sid", "value": "secret-sid", "domain": "shop.test", "path": "/" }] },
                "ariaSnapshot": "- button \"Pay\"",
                "startedAt": 1_767_261_600_000_i64,
            }),
        );
        let answer = service.client().post_json("/api/test-runs/submit", &run("shop", "failed", vec![rich])).await.expect("stored");
        let items = executions(service.client(), &answer["runId"]).await;
        let path = format!("/api/test-run-cases/{}", items[0]["id"]);
        let all = service.client().json(&path).await.expect("a page");
        assert_eq!(all["evidence"]["steps"][0]["title"], "click Pay");
        assert_eq!(all["evidence"]["ariaSnapshot"], "- button \"Pay\"");
        assert_eq!(all["evidence"]["networkRequests"][0]["url"], "https://shop.test/api/cart");
        assert_eq!(all["counts"]["network"], 1);
        let text = all.to_string();
        for secret in ["secret-token", "secret-jwt", "secret-sid", "4111"] {
            assert!(!text.contains(secret), "{secret} was kept");
        }
        let some = service.client().json(&format!("{path}?include=console")).await.expect("a page");
        assert_eq!(some["evidence"]["consoleLogs"][0]["text"], "cart failed");
        assert!(some["evidence"].get("steps").is_none());
        let none = service.client().json(&format!("{path}?include=none")).await.expect("a page");
        assert_eq!(none["evidence"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_run_without_tests_shows_what_the_client_claimed_until_tests_arrive() {
    for_each_service(async |service| {
        let empty = with(run("shop", "passed", Vec::new()), json!({ "clientRunId": "claimed-run" }));
        let answer = service.client().post_json("/api/test-runs/submit", &empty).await.expect("stored");
        let path = format!("/api/test-runs/{}", answer["runId"]);
        let claimed = service.client().json(&path).await.expect("the run");
        assert_eq!((&claimed["totalsSource"], &claimed["totalTests"]), (&json!("claimed"), &json!(99)));
        let tests = with(empty, json!({ "testCases": [attempt("pays", "passed", 0)] }));
        service.client().post_json("/api/test-runs/submit", &tests).await.expect("merged");
        let counted = service.client().json(&path).await.expect("the run");
        assert_eq!((&counted["totalsSource"], &counted["totalTests"]), (&json!("rows"), &json!(1)));
    })
    .await;
}

#[tokio::test]
async fn branch_and_commit_are_found_where_clients_put_them() {
    for_each_service(async |service| {
        let submission = with(
            run("shop", "passed", vec![attempt("pays", "passed", 0)]),
            json!({ "metadata": {
                "scm": { "branch": "HEAD", "commit": "0a1b2c3d", "remoteUrl": "https://user:hunter2@code.test/shop.git", "defaultBranch": "trunk" },
                "ci": { "ref": "refs/heads/main", "provider": "GitHub Actions", "buildUrl": "https://ci.test/1" },
            } }),
        );
        let answer = service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
        let found = service.client().json(&format!("/api/test-runs/{}", answer["runId"])).await.expect("the run");
        assert_eq!((&found["branch"], &found["commit"]), (&json!("main"), &json!("0a1b2c3d")));
        assert_eq!(found["buildUrl"], "https://ci.test/1");
        assert!(!found.to_string().contains("hunter2"));
        let project = service.client().json(&format!("/api/projects/{}", answer["projectId"])).await.expect("the project");
        assert_eq!(project["defaultBranch"], "trunk");
    })
    .await;
}

/// A path of so many characters of four bytes each, which no compression makes
/// shorter, with a folder that ends shortly before it is cut.
fn far_away(seed: u32, characters: u32) -> String {
    let mut state = seed;
    let character = |place: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let ideograph = char::from_u32(0x20000 + (state >> 8) % 42_000).expect("an ideograph");
        if place == 590 { '/' } else { ideograph }
    };
    (0..characters).map(character).collect()
}

#[tokio::test]
async fn paths_that_are_longer_than_an_index_takes_are_stored() {
    for_each_service(async |service| {
        let client = service.client();
        let case = |title: &str, path: &str| {
            let used = json!({ "method": "getByRole", "args": ["button"], "raw": "getByRole('button')" });
            with(
                attempt(title, "passed", 0),
                json!({
                    "location": format!("{path}.spec.ts:7:5"),
                    "locatorSnapshots": [
                        { "location": format!("{path}.page.ts:3:1"), "used": used, "element": { "tagName": "button" } },
                    ],
                }),
            )
        };
        let cases = vec![case("pays", &far_away(1, 980)), case("pays", &far_away(1, 960))];
        let stored = client.post_json("/api/test-runs/submit", &run("shop", "passed", cases)).await;
        let stored = stored.expect("stored");
        assert_eq!(stored["totalTests"], 2, "what is cut off tells tests apart");
        let feeder = start(client, json!({})).await;
        feeder.results(vec![case("pays", &far_away(1, 980)), case("pays", &far_away(2, 980))]).await;
        let path = format!("/api/test-runs/{}/case-files", feeder.run);
        let form = Form::new()
            .field("streamToken", &feeder.token)
            .field("testCase", case("pays", &far_away(2, 980)).to_string())
            .file("attach_file", "note.txt", "text/plain", b"a note");
        let request = client.request(reqwest::Method::POST, &path);
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        assert_eq!(Answer::send(request).await.expect("an answer").success().expect("linked")["attachments"], 1);
        assert_eq!(feeder.finish("passed").await, "passed");
        assert_eq!(feeder.shown().await["totalTests"], 2);
        let tests = client.json(&format!("/api/projects/{}/test-cases", stored["projectId"])).await;
        assert_eq!(tests.expect("tests")["items"].as_array().map(Vec::len), Some(3));
    })
    .await;
}
