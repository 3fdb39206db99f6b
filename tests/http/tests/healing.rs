//! Lost locators: what is remembered of them, what heals them, and what a
//! person chooses.

use callboard_test_support::{Answer, Client, Service, for_each_service};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::builders::{run, with};
use crate::detail_pages::{page, words_after};

pub(crate) const LOCATION: &str = "tests/login.spec.ts:26:56";
const LOST: &str = "getByRole('button', { name: 'Log in' })";
const FOUND: &str = "getByRole('button', { name: 'Sign in' })";
const PAGE: &str = "- banner:\n  - heading \"Account\" [level=1]\n  - navigation \"Main\":\n    - link \"Home\":\n      - /url: /\n- main:\n  - form \"Sign in\":\n    - textbox \"Email\"\n    - textbox \"Password\"\n    - button \"Sign in\"\n";
const SOURCE: &str = "    25 |   await page.getByLabel('Email').fill('ada');\n>   26 |   await page.getByRole('button', { name: 'Log in' }).click();\n    27 | });";

/// The element a locator found, as fixtures describe it.
fn element(name: &str) -> Value {
    json!({
        "tagName": "button", "attributes": { "type": "submit", "class": "btn wide" }, "textContent": name,
        "accessibleName": name, "center": { "x": 10, "y": 20 },
        "rolePosition": { "role": "button", "count": 1, "index": 0 },
        "ancestors": [{ "tag": "form", "depth": 1, "role": "form", "ariaLabel": "Sign in" }],
    })
}

fn used(name: &str) -> Value {
    json!({
        "method": "getByRole", "args": ["button", { "name": name }], "raw": format!("getByRole('button', {{ name: '{name}' }})"),
    })
}

/// A snapshot of the button at a call site.
pub(crate) fn snapshot(location: &str, name: &str) -> Value {
    json!({ "location": location, "used": used(name), "element": element(name), "alternatives": [
        { "locator": format!("getByText('{name}')"), "method": "getByText", "args": [name], "score": 75 }
    ] })
}

fn case(title: &str, status: &str) -> Value {
    json!({
        "title": title, "status": status, "duration": 700, "location": "tests/login.spec.ts:23:3", "retries": 0,
        "suitePath": ["Shop"],
    })
}

/// The test that passed, with what its locators found.
pub(crate) fn passed(title: &str, snapshots: Value) -> Value {
    with(case(title, "passed"), json!({ "locatorSnapshots": snapshots }))
}

/// The test that lost its button.
pub(crate) fn failed(title: &str) -> Value {
    let error = format!(
        "TimeoutError: locator.click: Timeout 700ms exceeded.\nCall log:\n  - waiting for {LOST}\n\n    at /home/ci/shop/tests/login.spec.ts:26:56"
    );
    with(
        case(title, "failed"),
        json!({
            "error": error,
            "ariaSnapshot": PAGE,
            "testSourceFrames": [{ "file": "tests/login.spec.ts", "line": 26, "snippet": SOURCE }],
        }),
    )
}

/// Submits a run that started on this day and answers its id and that of its
/// first execution.
pub(crate) async fn submit(client: &Client, day: u8, status: &str, cases: Vec<Value>) -> (i64, i64) {
    let fields = json!({ "startTime": format!("2026-01-{day:02}T10:00:00.000Z"), "branch": "main", "isFullRun": true });
    let stored = client
        .post_json("/api/test-runs/submit", &with(run("shop", status, cases), fields))
        .await
        .expect("stored");
    let run = stored["runId"].as_i64().expect("an id");
    let executions = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
    (run, executions["items"][0]["id"].as_i64().expect("an execution"))
}

async fn healing(client: &Client, execution: i64) -> Value {
    client.json(&format!("/api/test-run-cases/{execution}/locator-healing")).await.expect("an answer")
}

#[tokio::test]
async fn a_renamed_button_is_found_by_what_the_last_pass_saw() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        submit(client, 1, "passed", vec![passed("logs in", json!([snapshot(LOCATION, "Log in")]))]).await;
        let (run, execution) = submit(client, 2, "failed", vec![failed("logs in")]).await;
        let groups = client.json(&format!("/api/test-runs/{run}/failure-groups")).await.expect("groups");
        let expected = json!({ "recommended": FOUND, "source": "element-match", "healed": false });
        assert_eq!(groups["items"][0]["healing"], expected, "{groups:#}");
        let html = page(client, &format!("/test-runs/{run}?tab=groups")).await;
        let (locator, panel) = (FOUND.replace('\'', "&#39;"), format!("/test-run-cases/{execution}#healing"));
        assert!(html.contains(&locator) && html.contains(&panel), "{html}");
        let html = page(client, &format!("/test-run-cases/{execution}")).await;
        let panel = words_after(&html, "id=\"healing-title\"");
        assert!(panel.contains("Matches the element found in earlier runs."), "{panel}");
        let found = healing(client, execution).await;
        assert_eq!(found["source"], "element-match", "{found:#}");
        assert_eq!(found["failingLocator"], json!({ "method": "getByRole", "args": ["button", { "name": "Log in" }] }));
        assert_eq!(found["recommendation"]["recommended"]["locator"], FOUND);
        assert_eq!(found["recommendation"]["preservesConvention"], true);
        assert_eq!(found["location"], LOCATION);
        assert_eq!(found["capturedAt"], "2026-01-01T10:00:00.000Z");
        assert_eq!(found["priorNameMayBeStale"], true);
        assert_eq!(found["edit"]["newLine"], format!("  await page.{FOUND}.click();"));
        assert_eq!(
            found["edit"]["unifiedDiff"],
            "--- a/tests/login.spec.ts\n+++ b/tests/login.spec.ts\n@@ -25,3 +25,3 @@\n   await page.getByLabel('Email').fill('ada');\n-  await page.getByRole('button', { name: 'Log in' }).click();\n+  await page.getByRole('button', { name: 'Sign in' }).click();\n });\n"
        );
        assert_eq!(found["healedInRunId"], Value::Null);
        // The test is repaired: its call moves to another column.
        let repaired = json!([snapshot("tests/login.spec.ts:26:57", "Sign in")]);
        let (healed, _) = submit(client, 3, "passed", vec![passed("logs in", repaired)]).await;
        let found = healing(client, execution).await;
        assert_eq!(found["healedInRunId"], healed);
        // The old call site was forgotten with that pass; what stands there now is what to write.
        assert_eq!(found["source"], "prior-run", "{found:#}");
        assert_eq!(found["recommendation"]["recommended"]["locator"], FOUND, "{found:#}");
    })
    .await;
}

/// What a reporter sends of the source around the failing line 26 of a file.
fn piece_of(file: &str) -> String {
    let lines: Vec<&str> = file.split('\n').collect();
    let around = (22..lines.len().min(29)).map(|at| {
        let mark = if at == 25 { ">" } else { " " };
        format!("{mark} {:>4} | {}", at + 1, lines[at])
    });
    around.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_edit_applies_to_the_file_however_it_ends() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        submit(client, 1, "passed", vec![passed("logs in", json!([snapshot(LOCATION, "Log in")]))]).await;
        let above: String = (1..26).map(|line| format!("  // line {line}\n")).collect();
        let call = |locator: &str| format!("{above}  await page.{locator}.click();");
        // Broken off after the line, or below it; with a last line break; and far from the end.
        let ends =
            [("", true), ("\n});", true), ("\n});\n", false), ("\n});\n\n// more\n// and more", false)];
        let breaks = ["\n", "\r\n"].into_iter().flat_map(|line_break| ends.map(|end| (line_break, end)));
        for (day, (line_break, (end, says_so))) in breaks.enumerate() {
            let of_file = |text: String| text.replace('\n', line_break);
            let before = of_file(format!("{}{end}", call(LOST)));
            let frame = json!({ "file": "tests/login.spec.ts", "line": 26, "snippet": piece_of(&before) });
            let broken = with(failed("logs in"), json!({ "testSourceFrames": [frame] }));
            let day = 2 + u8::try_from(day).expect("a day");
            let (_, execution) = submit(client, day, "failed", vec![broken]).await;
            let found = healing(client, execution).await;
            let diff = found["edit"]["unifiedDiff"].as_str().expect("a diff");
            assert_eq!(diff.ends_with("\\ No newline at end of file\n"), says_so, "{end:?}: {diff}");

            let checkout = tempfile::tempdir().expect("a folder");
            let file = checkout.path().join("tests/login.spec.ts");
            std::fs::create_dir(checkout.path().join("tests")).expect("a folder");
            std::fs::write(&file, &before).expect("written");
            std::fs::write(checkout.path().join("edit.diff"), diff).expect("written");
            let applied = std::process::Command::new("git")
                .args(["apply", "edit.diff"])
                .current_dir(checkout.path())
                .output()
                .expect("git");
            assert!(
                applied.status.success(),
                "{end:?}: {}\n{diff}",
                String::from_utf8_lossy(&applied.stderr)
            );
            let after = std::fs::read_to_string(&file).expect("read");
            assert_eq!(after, of_file(format!("{}{end}", call(FOUND))));
            assert_eq!(found["edit"]["newLine"], format!("  await page.{FOUND}.click();"));
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_certain_is_not_recommended() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        // Nothing is stored: role and name of the page are all there is.
        let (_, alone) = submit(client, 1, "failed", vec![failed("logs in")]).await;
        let found = healing(client, alone).await;
        assert_eq!(found["source"], "aria-snapshot", "{found:#}");
        assert_eq!(found["recommendation"], Value::Null);
        assert_eq!(found["edit"], Value::Null);
        assert_eq!(found["fromAriaSnapshot"][0]["locator"], FOUND);
        // The button is gone.
        submit(client, 2, "passed", vec![passed("logs in", json!([snapshot(LOCATION, "Log in")]))]).await;
        let gone = with(failed("logs in"), json!({ "ariaSnapshot": "- heading \"Down for maintenance\" [level=1]\n- link \"Status\"\n- link \"Help\"\n" }));
        let (_, execution) = submit(client, 3, "failed", vec![gone]).await;
        let found = healing(client, execution).await;
        assert_eq!((&found["source"], &found["recommendation"]), (&json!("none"), &Value::Null), "{found:#}");
        // It is there: something else is wrong with it.
        let present = with(failed("logs in"), json!({ "ariaSnapshot": "- button \"Log in\"\n" }));
        let (_, execution) = submit(client, 4, "failed", vec![present]).await;
        assert_eq!(healing(client, execution).await["source"], "none");
        // A test that passed has lost nothing.
        let (_, execution) = submit(client, 5, "passed", vec![passed("logs in", json!([]))]).await;
        let found = healing(client, execution).await;
        assert_eq!((&found["source"], &found["failingLocator"]), (&json!("none"), &Value::Null));
    })
    .await;
}

#[tokio::test]
async fn the_same_locator_of_another_test_helps_and_an_older_run_changes_nothing() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let seen = json!([snapshot("tests/other.spec.ts:9:9", "Log in")]);
        submit(client, 4, "passed", vec![passed("another test", seen)]).await;
        let (_, execution) = submit(client, 5, "failed", vec![failed("logs in")]).await;
        let found = healing(client, execution).await;
        assert_eq!(
            (&found["source"], &found["capturedAt"]),
            (&json!("element-match"), &json!("2026-01-04T10:00:00.000Z")),
            "{found:#}"
        );
        // What a run that started earlier says later is old news, and so is what it does not say.
        submit(client, 3, "passed", vec![passed("another test", json!([]))]).await;
        assert_eq!(healing(client, execution).await["capturedAt"], "2026-01-04T10:00:00.000Z");
        submit(client, 6, "passed", vec![passed("another test", json!([]))]).await;
        assert_eq!(healing(client, execution).await["capturedAt"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn what_a_person_chose_comes_first() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        submit(client, 1, "passed", vec![passed("logs in", json!([snapshot(LOCATION, "Log in")]))]).await;
        let (_, execution) = submit(client, 2, "failed", vec![failed("logs in")]).await;
        let chosen = "getByRole('form', { name: 'Sign in' }).getByRole('button')";
        let address = format!("/api/test-run-cases/{execution}/locator-pick");
        let picked = json!({ "pickedLocator": { "locator": chosen, "method": "getByRole", "args": ["button"], "score": 70 } });
        let answer = client.post_json(&address, &picked).await.expect("noted");
        assert_eq!(answer, json!({ "success": true, "associatedBy": "location" }));
        let found = healing(client, execution).await;
        assert_eq!(found["source"], "prior-run", "{found:#}");
        let recommended = &found["recommendation"]["recommended"];
        assert_eq!((&recommended["locator"], &recommended["pickedByUser"]), (&json!(chosen), &json!(true)));
        assert_eq!(found["edit"]["newLine"], format!("  await page.{chosen}.click();"));
        // Where nothing was known, the choice itself is remembered.
        let (_, other) = submit(client, 3, "failed", vec![failed("logs out")]).await;
        let address = format!("/api/test-run-cases/{other}/locator-pick");
        assert_eq!(client.post_json(&address, &picked).await.expect("noted")["associatedBy"], "new-call-site");
        assert_eq!(healing(client, other).await["recommendation"]["recommended"]["locator"], chosen);
        for (body, code) in [
            (json!({}), "missing_field"),
            (json!({ "pickedLocator": "getByText('x')" }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": "getByText('x').click()" } }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": "getByText('x'); evil()" } }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": "getByRole('form', { name: 'Sign in', ...evil() })" } }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": "getByText('x').first(evil())" } }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": chosen, "method": { "a": 1 } } }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": chosen, "args": 5 } }), "invalid_field"),
            (json!({ "pickedLocator": { "locator": chosen, "score": "abc" } }), "invalid_field"),
        ] {
            let answer: Answer = client.send_json(Method::POST, &address, &body).await.expect("an answer");
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
            assert_eq!(answer.json().expect("a refusal")["code"], code, "{body}");
        }
        let log = client.json("/api/audit?action=locator.picked").await;
        if let Ok(log) = log {
            assert_eq!(log["items"].as_array().map(Vec::len), Some(2), "{log:#}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_locator_in_a_frame_is_not_looked_for_on_the_page_around_it() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        submit(client, 1, "passed", vec![passed("logs in", json!([snapshot(LOCATION, "Log in")]))]).await;
        let lost = format!("locator('#account').contentFrame().{LOST}");
        let error = format!(
            "TimeoutError: locator.click: Timeout 700ms exceeded.\nCall log:\n  - waiting for {lost}\n\n    at /home/ci/shop/tests/login.spec.ts:26:56"
        );
        let (_, execution) =
            submit(client, 2, "failed", vec![with(failed("logs in"), json!({ "error": error }))]).await;
        let found = healing(client, execution).await;
        assert_eq!(
            (&found["source"], &found["recommendation"], &found["edit"]),
            (&json!("none"), &Value::Null, &Value::Null),
            "{found:#}"
        );
        assert_eq!(found["failingLocator"]["args"][1]["name"], "Log in");
    })
    .await;
}

#[tokio::test]
async fn a_line_inserted_above_does_not_turn_one_field_into_another() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let field = |line: u8, name: &str| {
            let raw = format!("getByRole('textbox', {{ name: '{name}' }})");
            json!({
                "location": format!("tests/login.spec.ts:{line}:56"), "alternatives": [],
                "used": { "method": "getByRole", "args": ["textbox", { "name": name }], "raw": raw },
                "element": { "tagName": "input", "attributes": {}, "accessibleName": name, "ancestors": [] },
            })
        };
        submit(client, 1, "passed", vec![passed("logs in", json!([field(25, "First name"), field(26, "City")]))]).await;
        let error = "TimeoutError: locator.fill: Timeout 700ms exceeded.\nCall log:\n  - waiting for getByRole('textbox', { name: 'First name' })\n\n    at /home/ci/shop/tests/login.spec.ts:26:56";
        let page = "- textbox \"City\"\n- textbox \"Given name\"\n- button \"Send\"\n";
        let moved = with(failed("logs in"), json!({ "error": error, "ariaSnapshot": page, "testSourceFrames": [] }));
        let (_, execution) = submit(client, 2, "failed", vec![moved]).await;
        let found = healing(client, execution).await;
        assert_eq!(found["source"], "element-match", "{found:#}");
        assert_eq!(
            found["recommendation"]["recommended"]["locator"],
            "getByRole('textbox', { name: 'Given name' })",
            "{found:#}"
        );
    })
    .await;
}
