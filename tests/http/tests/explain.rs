//! Why a test failed, how its surroundings differ, and what to do about it.

use callboard_test_support::{Client, Service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{run, with};
use crate::detail_pages::{page as page_of, words_after};
use crate::healing::{LOCATION, failed, passed, snapshot, submit};

/// Calls a tool of the agent endpoint.
async fn tool(client: &Client, name: &str, arguments: Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
    let answer = client.post_json("/mcp", &call).await.expect("an answer");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    assert!(answer["result"].get("isError").is_none(), "{text}");
    serde_json::from_str(text).expect("is JSON")
}

fn steps(last: &str, failed: bool) -> Value {
    let step = |title: &str, failed: bool| json!({ "title": title, "duration": 5, "category": "action", "failed": failed });
    json!([
        step("page.goto(/account)", false),
        step("locator.fill(getByLabel('Email'))", false),
        step(last, failed)
    ])
}

fn request(method: &str, url: &str, status: u16) -> Value {
    json!({ "method": method, "url": url, "status": status, "duration": 12, "resourceType": "fetch" })
}

#[tokio::test]
async fn a_failure_is_explained_by_what_changed_since_the_last_pass_before_it() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let before = with(
            passed("logs in", json!([snapshot(LOCATION, "Log in")])),
            json!({
                "steps": steps("locator.click(getByRole('button', { name: 'Log in' }))", false),
                "networkRequests": [request("GET", "http://shop/api/session/7", 200)],
                "browser": { "projectName": "chromium", "viewport": { "width": 1280, "height": 720 } },
                "workerIndex": 1,
            }),
        );
        let now = with(
            failed("logs in"),
            json!({
                "duration": 2900,
                "steps": steps("locator.click(getByRole('button', { name: 'Log in' }))", true),
                "networkRequests": [request("GET", "http://shop/api/session/8", 404)],
                "consoleLogs": [{ "type": "pageerror", "text": "TypeError: cart is undefined", "timestamp": 1_767_348_000_000_i64 }],
                "browser": { "projectName": "chromium", "viewport": { "width": 800, "height": 720 } },
                "workerIndex": 4,
            }),
        );
        let (first, passing) = submit(client, 1, "passed", vec![before.clone()]).await;
        let (_, execution) = submit(client, 2, "failed", vec![now.clone()]).await;
        // A pass after the failure explains nothing.
        submit(client, 3, "passed", vec![before]).await;

        let found = client.json(&format!("/api/test-run-cases/{execution}/explain?detail=full")).await.expect("an answer");
        assert_eq!(
            found["headline"],
            format!("`getByRole('button', {{ name: 'Log in' }})` was not found. Last passed in run {first} (`main`). `GET /api/session/:id` answered 404.")
        );
        assert_eq!(found["verdict"], "locator-drift", "{found:#}");
        assert_eq!(found["lastPassed"], json!({ "executionId": passing, "runId": first, "commit": null, "branch": "main", "environment": null }));
        assert_eq!(found["failingStep"]["title"], "locator.click(getByRole('button', { name: 'Log in' }))");
        assert_eq!(found["sourceLine"]["line"], 26);
        let changed: Vec<(&str, &Value, &Value)> = found["changed"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|change| (change["kind"].as_str().unwrap_or_default(), &change["before"], &change["after"]))
            .collect();
        assert_eq!(
            changed,
            [
                ("failed-request", &json!("200"), &json!("404")),
                ("page-error", &Value::Null, &json!("TypeError: cart is undefined")),
                ("environment", &json!("1280"), &json!("800")),
                ("duration", &json!("700 ms"), &json!("2900 ms")),
            ]
        );
        assert_eq!(found["healing"]["locator"], "getByRole('button', { name: 'Sign in' })");
        assert_eq!(found["next"][0], format!("get_locator_healing executionId={execution}"));

        let differs = client.json(&format!("/api/test-run-cases/{execution}/environment-diff")).await.expect("an answer");
        assert_eq!(differs["baseline"]["executionId"], passing);
        let keys: Vec<(&str, bool)> = differs["entries"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| (entry["key"].as_str().unwrap_or_default(), entry["informational"] == true))
            .collect();
        assert_eq!(keys, [("browser.viewport.width", false), ("worker", true)]);

        let told = tool(client, "explain_failure", json!({ "executionId": execution })).await;
        assert_eq!(told["headline"], found["headline"]);
        assert_eq!(told["locatorFix"]["locator"], "getByRole('button', { name: 'Sign in' })");
        assert_eq!(told["lastPassed"]["runId"], first);
        let healed = tool(client, "get_locator_healing", json!({ "executionId": execution })).await;
        assert_eq!(healed["recommendation"]["recommended"], "getByRole('button', { name: 'Sign in' })");
        assert!(healed["edit"]["unifiedDiff"].as_str().is_some_and(|diff| diff.contains("+  await page.")));
        let shots = tool(client, "get_case_screenshots", json!({ "executionId": execution })).await;
        assert_eq!(shots, json!({ "items": [], "nextCursor": null }));

        // Where the application fails, what is missing was not renamed: no locator is suggested.
        let broken = with(now.clone(), json!({ "networkRequests": [request("GET", "http://shop/api/session/9", 503)] }));
        let (_, execution) = submit(client, 4, "failed", vec![broken]).await;
        let found = client.json(&format!("/api/test-run-cases/{execution}/explain?detail=full")).await.expect("an answer");
        assert_eq!((&found["verdict"], &found["healing"]), (&json!("known-cluster"), &Value::Null), "{found:#}");
        let healed = tool(client, "get_locator_healing", json!({ "executionId": execution })).await;
        assert_eq!(healed["edit"], Value::Null, "{healed:#}");

        // Nor where a script of the page did not load. What was waited for is shown beside it.
        let requests = json!([
            with(request("GET", "http://shop/app.js", 200), json!({ "resourceType": "script" })),
            with(request("GET", "http://shop/api/poll?token=s3cret", 0), json!({ "pending": true, "duration": 4000 })),
            with(
                request("GET", "http://shop/vendor.js", 0),
                json!({ "resourceType": "script", "failureText": "net::ERR_CONNECTION_REFUSED" }),
            ),
        ]);
        let (_, execution) = submit(client, 5, "failed", vec![with(now, json!({ "networkRequests": requests }))]).await;
        let found = client.json(&format!("/api/test-run-cases/{execution}/explain?detail=full")).await.expect("an answer");
        let headline = found["headline"].as_str().unwrap_or_default();
        assert!(headline.ends_with("`GET /vendor.js` failed (`net::ERR_CONNECTION_REFUSED`)."), "{headline}");
        assert_eq!(found["healing"], Value::Null);
        let stored = client.json(&format!("/api/test-run-cases/{execution}")).await.expect("an answer");
        let kept: Vec<Value> = stored["evidence"]["networkRequests"]
            .as_array()
            .expect("requests")
            .iter()
            .map(|one| json!([one["url"], one["status"], one["failureText"], one["pending"]]))
            .collect();
        assert_eq!(
            kept,
            [
                json!(["http://shop/api/poll", 0, null, true]),
                json!(["http://shop/vendor.js", 0, "net::ERR_CONNECTION_REFUSED", null]),
            ]
        );
        let html = page_of(client, &format!("/test-run-cases/{execution}")).await;
        let table = words_after(&html, "id=\"network-title\"");
        assert!(table.contains("Still waiting when the test ended no response 4.0"), "{table}");
        assert!(table.contains("net::ERR_CONNECTION_REFUSED failed"), "{table}");
    })
    .await;
}

#[tokio::test]
async fn the_last_pass_is_looked_for_in_the_same_environment_first_and_says_where_it_was() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let sent = async |day: u8, branch: &str, environment: &str, status: &str| {
            let fields = json!({
                "startTime": format!("2026-01-{day:02}T10:00:00.000Z"), "branch": branch, "environment": environment,
                "metadata": { "scm": { "defaultBranch": "main" } },
            });
            let test = if status == "passed" { passed("logs in", json!([])) } else { failed("logs in") };
            let body = with(run("shop", status, vec![test]), fields);
            let stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            let run = stored["runId"].as_i64().expect("an id");
            let executions = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
            (run, executions["items"][0]["id"].clone())
        };
        let told = async |execution: &Value| {
            let found = client.json(&format!("/api/test-run-cases/{execution}/explain")).await.expect("an answer");
            let differs = client.json(&format!("/api/test-run-cases/{execution}/environment-diff")).await.expect("an answer");
            assert_eq!(found["lastPassed"]["executionId"], differs["baseline"]["executionId"]);
            let headline = found["headline"].as_str().unwrap_or_default().to_owned();
            headline.trim_end_matches('.').split(". ").nth(1).unwrap_or_default().to_owned()
        };
        let (production, _) = sent(1, "main", "production", "passed").await;
        let (staging, _) = sent(2, "main", "staging", "passed").await;
        let (_, failing) = sent(3, "feature", "production", "failed").await;
        assert_eq!(told(&failing).await, format!("Last passed in run {production} (`main`, `production`)"));
        let (_, failing) = sent(4, "feature", "preview", "failed").await;
        assert_eq!(told(&failing).await, format!("Last passed in run {staging} (`main`, `staging`)"));
        let (own, _) = sent(5, "feature", "preview", "passed").await;
        let (_, failing) = sent(6, "feature", "preview", "failed").await;
        assert_eq!(told(&failing).await, format!("Last passed in run {own} (`feature`, `preview`)"));
        // A run without an environment is one of those without, before it is one of any.
        let (nowhere, _) = sent(7, "main", "", "passed").await;
        sent(8, "main", "staging", "passed").await;
        let (_, failing) = sent(9, "feature", "", "failed").await;
        assert_eq!(told(&failing).await, format!("Last passed in run {nowhere} (`main`)"));
        // On the default branch itself another environment is all there is.
        let (newest, _) = sent(10, "main", "staging", "passed").await;
        let (_, failing) = sent(11, "main", "canary", "failed").await;
        assert_eq!(told(&failing).await, format!("Last passed in run {newest} (`main`, `staging`)"));
    })
    .await;
}

#[tokio::test]
async fn without_an_earlier_pass_only_the_failure_itself_is_told() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let wrong = with(
            failed("logs in"),
            json!({ "error": "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByTestId('total')\nExpected: \"13\"\nReceived: \"12\"\n\nCall log:\n  - waiting for getByTestId('total')\n    - locator resolved to <p>12</p>\n" }),
        );
        let (_, execution) = submit(client, 1, "failed", vec![wrong]).await;
        let found = client.json(&format!("/api/test-run-cases/{execution}/explain")).await.expect("an answer");
        assert_eq!(
            found["headline"],
            "`toHaveText` of `getByTestId('total')` expected `\"13\"`, received `\"12\"`. No earlier pass is known."
        );
        assert_eq!((&found["verdict"], &found["lastPassed"], &found["changed"]), (&json!("unknown"), &Value::Null, &json!([])), "{found:#}");
        let differs = client.json(&format!("/api/test-run-cases/{execution}/environment-diff")).await.expect("an answer");
        assert_eq!(differs, json!({ "status": "no-baseline", "baseline": null, "entries": [] }));
        let (_, execution) = submit(client, 2, "passed", vec![passed("logs in", json!([]))]).await;
        let found = client.json(&format!("/api/test-run-cases/{execution}/explain")).await.expect("an answer");
        assert_eq!(found["headline"], Value::Null);
        let told = tool(client, "explain_failure", json!({ "executionId": execution, "detail": "summary" })).await;
        assert_eq!(told["status"], "passed");
    })
    .await;
}

#[tokio::test]
async fn a_failure_is_judged_by_what_came_before_it_also_when_others_followed() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        for day in 1..=3 {
            submit(client, day, "passed", vec![passed("logs in", json!([]))]).await;
        }
        let thrown = |text: &str| with(failed("logs in"), json!({ "error": text }));
        let (_, first) = submit(client, 4, "failed", vec![thrown("Error: no session")]).await;
        submit(client, 5, "passed", vec![passed("logs in", json!([]))]).await;
        let (_, again) = submit(client, 6, "failed", vec![thrown("Error: no session")]).await;
        let verdict = async |id: i64| {
            let path = format!("/api/test-run-cases/{id}/explain");
            client.json(&path).await.expect("an answer")["verdict"].clone()
        };
        assert_eq!(verdict(first).await, "likely-regression");
        assert_eq!(verdict(again).await, "known-cluster");

        // On a login page that no pass loaded there is nothing to heal.
        let page = |path: &str, status: u16| {
            let url = format!("http://shop{path}");
            let request = with(request("GET", &url, status), json!({ "resourceType": "document" }));
            json!({ "networkRequests": [request], "pageState": { "url": url } })
        };
        let shown = with(passed("logs in", json!([snapshot(LOCATION, "Log in")])), page("/account", 200));
        submit(client, 7, "passed", vec![shown]).await;
        let (_, lost) = submit(client, 8, "failed", vec![with(failed("logs in"), page("/login", 200))]).await;
        let found = client.json(&format!("/api/test-run-cases/{lost}/explain")).await.expect("an answer");
        assert_eq!(found["healing"], Value::Null);
        let headline = found["headline"].as_str().unwrap_or_default();
        assert!(headline.contains(". The page was the login page `/login`. "), "{headline}");
        let html = page_of(client, &format!("/test-run-cases/{lost}")).await;
        let panel = words_after(&html, "id=\"healing-title\"");
        assert!(
            panel.contains("Changing the locator will not help The test was on the login page /login ."),
            "{panel}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_plan_names_the_edit_the_tests_and_a_command_that_runs_them() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        submit(client, 1, "passed", vec![passed("logs in", json!([snapshot(LOCATION, "Log in")]))]).await;
        let owned = with(failed("logs in"), json!({ "browserProject": "Mobile Safari", "owner": "ada" }));
        let (_, execution) = submit(client, 2, "failed", vec![owned]).await;
        let shown = client.json(&format!("/api/test-run-cases/{execution}")).await.expect("an execution");
        let cluster = shown["clusterId"].as_i64().unwrap_or_else(|| panic!("no cluster: {shown:#}"));
        let plan = client.json(&format!("/api/failure-clusters/{cluster}/fix-plan")).await.expect("a plan");
        assert_eq!(plan["cluster"]["id"], cluster);
        assert_eq!(
            plan["edits"][0]["suggestedLocator"], "getByRole('button', { name: 'Sign in' })",
            "{plan:#}"
        );
        assert!(
            plan["edits"][0]["unifiedDiff"]
                .as_str()
                .is_some_and(|diff| diff.starts_with("--- a/tests/login.spec.ts\n"))
        );
        assert_eq!(plan["failingTests"][0]["executionId"], execution);
        let command = plan["verify"]["command"].as_str().expect("a command");
        assert!(
            command.starts_with(
                "npx playwright test ./tests/login.spec.ts:23 --project='Mobile Safari' --repeat-each="
            ),
            "{command}"
        );
        let told = tool(client, "get_fix_plan", json!({ "clusterId": cluster })).await;
        assert_eq!(told["verify"]["command"], command);
        assert_eq!(told["failingTests"][0]["browserProject"], "Mobile Safari");
        assert_eq!((&plan["failingTestsCount"], &plan["failingTestsOmitted"]), (&json!(1), &json!(0)));
        assert_eq!(
            (&plan["editsCount"], &plan["editsOmitted"], &plan["next"]),
            (&json!(1), &json!(0), &json!([]))
        );
        assert_eq!(told["edits"][0]["target"], "tests/login.spec.ts:26");
    })
    .await;
}

#[tokio::test]
async fn a_plan_runs_no_tests_of_files_whose_path_only_ends_alike() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let placed = |case: Value, file: &str| {
            with(case, json!({ "location": format!("{file}:10:3"), "suitePath": [] }))
        };
        let cases = vec![
            placed(failed("logs in"), "tests/login.spec.ts"),
            placed(passed("logs out", json!([])), "e2e/tests/login.spec.ts"),
            placed(passed("looks", json!([])), "Tests/login.spec.ts"),
            placed(passed("pays", json!([])), "tests/pay.spec.ts"),
        ];
        let (_, execution) = submit(client, 1, "failed", cases).await;
        let shown = client.json(&format!("/api/test-run-cases/{execution}")).await.expect("an execution");
        let plan = format!("/api/failure-clusters/{}/fix-plan", shown["clusterId"]);
        let plan = client.json(&plan).await.expect("a plan");
        let command = plan["verify"]["command"].as_str().expect("a command");
        let file = r"npx playwright test '/(?<!/e2e)/tests/login\.spec\.ts$/:10' --repeat-each=";
        assert!(command.starts_with(file), "{command}");
    })
    .await;
}

#[tokio::test]
async fn a_plan_names_tests_where_they_stand_now_and_run_where_they_fail() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let placed = |case: Value, line: Option<u32>, browser: &str| {
            let place = line.map_or_else(String::new, |line| format!(":{line}:3"));
            with(
                case,
                json!({ "location": format!("tests/login.spec.ts{place}"), "browserProject": browser }),
            )
        };
        let cases = vec![
            placed(failed("logs in"), Some(10), "webkit"),
            placed(failed("logs out"), Some(20), "chromium"),
            placed(failed("pays"), Some(30), "chromium"),
        ];
        let (_, execution) = submit(client, 1, "failed", cases).await;
        // Two lines were put in above; each row of a table has become a test, on one line; a client tells no line.
        let now = vec![
            placed(passed("logs in", json!([])), Some(12), "webkit"),
            placed(passed("looks", json!([])), Some(10), "webkit"),
            placed(passed("logs out", json!([])), Some(22), "chromium"),
            placed(passed("logs out again", json!([])), Some(22), "chromium"),
            placed(passed("pays", json!([])), None, "chromium"),
        ];
        submit(client, 2, "passed", now).await;
        let shown = client.json(&format!("/api/test-run-cases/{execution}")).await.expect("an execution");
        let plan = format!("/api/failure-clusters/{}/fix-plan", shown["clusterId"]);
        let plan = client.json(&plan).await.expect("a plan");
        let command = plan["verify"]["command"].as_str().expect("a command");
        let parts: Vec<&str> =
            command.split(" && ").map(|part| part.split(" --repeat").next().unwrap_or(part)).collect();
        let mut lines: Vec<&Value> =
            plan["failingTests"].as_array().expect("tests").iter().map(|test| &test["line"]).collect();
        lines.sort_by_key(|line| line.as_i64());
        assert_eq!(lines, [&Value::Null, &json!(12), &json!(22)], "{plan:#}");
        assert_eq!(parts.len(), 2, "{command}");
        assert!(
            parts.contains(&"npx playwright test ./tests/login.spec.ts:12 --project=webkit"),
            "{command}"
        );
        let titled = parts.iter().find(|part| part.contains("chromium")).expect("the others");
        assert!(
            titled.contains("./tests/login.spec.ts:22 ") && titled.contains("./tests/login.spec.ts "),
            "{command}"
        );
        assert!(
            titled.contains(r"\s+logs\s+out(\s+@\S+)*") && titled.contains(r"\s+pays(\s+@\S+)*"),
            "{command}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_line_is_compared_with_the_source_of_its_own_file_from_when_the_test_passed() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let source =
            |line: &str| format!("    25 |   await page.goto('/login');\n>   26 |   {line}\n    27 | }});");
        let old = source("await page.getByRole('button', { name: 'Enter' }).click();");
        let flaked = with(failed("logs in"), json!({ "testSource": old }));
        let then = with(passed("logs in", json!([])), json!({ "retries": 1 }));
        submit(client, 1, "passed", vec![flaked, then]).await;
        let new = source("await page.getByRole('button', { name: 'Log in' }).click();");
        let changed = async |day: u8, case: Value| {
            let (_, execution) = submit(client, day, "failed", vec![case]).await;
            let found = client
                .json(&format!("/api/test-run-cases/{execution}/explain?detail=full"))
                .await
                .expect("an answer");
            let all = found["changed"].as_array().expect("a list").clone();
            let line = all.into_iter().find(|change| change["kind"] == "source-line");
            (line.map(|change| change["before"].clone()), found["sourceLine"]["filePath"].clone())
        };
        let (before, file) = changed(2, with(failed("logs in"), json!({ "testSource": new }))).await;
        assert_eq!(before, Some(json!("await page.getByRole('button', { name: 'Enter' }).click();")));
        assert_eq!(file, "tests/login.spec.ts");
        // The same line of another file says nothing of it.
        let mut helper = with(failed("logs in"), json!({ "testSource": new }));
        let error = helper["error"].as_str().expect("an error").replace("login.spec.ts", "login-page.ts");
        helper["error"] = json!(error);
        helper["testSourceFrames"] = json!([{ "file": "tests/login-page.ts", "line": 26, "snippet": new }]);
        let (before, file) = changed(3, helper).await;
        assert_eq!((before, file), (None, json!("tests/login-page.ts")));
    })
    .await;
}
