//! What is asked for and done later, or bound to what was read before:
//! exports by a job, a run that moves to another environment, `If-Match`,
//! badges outside, links whose addresses are looked at.

use callboard_test_support::{Answer, Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::rows::settled;

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Answer {
    client.send_json(method, path, &body).await.expect("an answer")
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    let body = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
}

/// Where the bytes behind an address lie.
fn stored(service: &Service, address: &str) -> std::path::PathBuf {
    let (_, key) = address.split_once("/api/files/").expect("the address of a file");
    service.database().folder().join("objects").join(key)
}

fn failing(environment: &str, hour: u32) -> Value {
    let cases = vec![attempt("adds", "passed", 0), attempt("pays", "failed", 0)];
    with(
        run("shop", "failed", cases),
        json!({ "branch": "main", "environment": environment, "startTime": format!("2026-01-01T{hour:02}:00:00.000Z") }),
    )
}

#[tokio::test]
async fn an_export_is_made_by_a_job_and_fetched_by_its_address() {
    for_each_service(async |service| {
        let client = service.client();
        let first = submit(client, failing("ci", 10)).await;
        submit(client, failing("staging", 11)).await;
        let project = client.json(&format!("/api/test-runs/{first}")).await.expect("a run")["projectId"].clone();
        let cluster = client.json("/api/failure-clusters").await.expect("clusters")["items"][0]["id"].clone();
        let found = client.json(&format!("/api/test-runs/{first}/executions")).await.expect("executions");
        let execution = found["items"][0]["id"].clone();
        let mut of_run = Vec::new();
        for (body, lines) in [
            (json!({ "kind": "run", "id": first, "format": "ndjson" }), 2),
            (json!({ "kind": "run", "id": first, "format": "csv", "filter": { "status": ["failed"] } }), 2),
            (json!({ "kind": "project", "id": project, "format": "ndjson" }), 4),
            (json!({ "kind": "project", "id": project, "format": "csv", "filter": { "environment": "ci", "include": ["attempts"] } }), 3),
            (json!({ "kind": "project", "id": project, "format": "csv", "filter": { "rows": "runs", "from": "2026-01-01T10:30:00Z" } }), 2),
            (json!({ "kind": "cluster", "id": cluster, "format": "ndjson" }), 2),
            (json!({ "kind": "execution", "id": execution, "format": "ndjson" }), 1),
        ] {
            let is_of_run = body["kind"] == "run" || body["kind"] == "execution";
            let made = send(client, Method::POST, "/api/exports", body.clone()).await;
            assert_eq!(made.status.as_u16(), 201, "{}", made.text());
            let export = made.json().expect("an export")["export"].clone();
            assert_eq!((&export["status"], &export["downloadUrl"]), (&json!("queued"), &Value::Null));
            settled(service).await;
            let path = format!("/api/exports/{}", export["id"]);
            let ready = client.json(&path).await.expect("an export")["export"].clone();
            assert_eq!(ready["status"], "ready", "{ready}");
            let url = ready["downloadUrl"].as_str().expect("an address");
            let file = client.get(&url[url.find("/api/").expect("a path")..]).await.expect("a file");
            assert_eq!(file.status.as_u16(), 200, "{}", file.text());
            let text = file.text();
            assert_eq!((text.lines().filter(|line| !line.is_empty()).count() as i64, Some(text.len() as i64)), (lines, ready["size"].as_i64()), "{body}: {text}");
            assert!(!text.contains(client.base_url()), "others read it: {text}");
            if is_of_run {
                assert!(stored(service, url).exists(), "{url}");
                of_run.push((path, url[url.find("/api/").expect("a path")..].to_owned()));
            }
        }
        for (body, status, code) in [
            (json!({ "kind": "run", "id": first }), 400, "missing_field"),
            (json!({ "kind": "cluster", "id": cluster, "format": "junit" }), 400, "invalid_field"),
            (json!({ "kind": "project", "id": project, "format": "csv", "filter": { "status": ["red"] } }), 400, "invalid_field"),
            (json!({ "kind": "run", "id": 999, "format": "csv" }), 404, "run_not_found"),
            (json!({ "kind": "cluster", "id": 999, "format": "csv" }), 404, "cluster_not_found"),
        ] {
            refused(&send(client, Method::POST, "/api/exports", body).await, status, code);
        }
        refused(&client.get("/api/exports/999").await.expect("an answer"), 404, "export_not_found");
        // What was made of a run goes with it.
        send(client, Method::DELETE, &format!("/api/test-runs/{first}?now=true"), json!({})).await.success().expect("deleted");
        settled(service).await;
        assert_eq!(of_run.len(), 3);
        for (export, file) in of_run {
            assert!(!stored(service, &file).exists(), "{file}");
            refused(&client.get(&export).await.expect("an answer"), 404, "export_not_found");
            refused(&client.get(&file).await.expect("an answer"), 404, "file_not_found");
        }
    })
    .await;
}

#[tokio::test]
async fn a_run_takes_its_numbers_along_to_another_environment() {
    for_each_service(async |service| {
        let client = service.client();
        let stays = submit(client, failing("ci", 9)).await;
        let moves = submit(client, failing("ci", 10)).await;
        let project =
            client.json(&format!("/api/test-runs/{moves}")).await.expect("a run")["projectId"].clone();
        let moved = send(
            client,
            Method::PATCH,
            &format!("/api/test-runs/{moves}"),
            json!({ "environment": "staging" }),
        )
        .await;
        assert_eq!(moved.json().expect("a run")["run"]["environment"], "staging");
        settled(service).await;
        let numbers = async |environment: &str| {
            let path = format!("/api/projects/{project}/test-cases?environment={environment}&sort=title");
            let cases = client.json(&path).await.expect("cases")["items"].clone();
            let path = format!(
                "/api/projects/{project}/daily?from=2026-01-01&to=2026-01-01&environment={environment}"
            );
            let day = client.json(&path).await.expect("days")["items"][0].clone();
            let totals: Vec<Value> =
                cases.as_array().expect("a list").iter().map(|case| case["totalRuns"].clone()).collect();
            (totals, day["runs"].clone(), day["totalTests"].clone())
        };
        assert_eq!(numbers("ci").await, (vec![json!(1), json!(1)], json!(1), json!(2)));
        assert_eq!(numbers("staging").await, (vec![json!(1), json!(1)], json!(1), json!(2)));
        // Sent again, moved back, deleted: nothing is counted twice, or lost.
        let back =
            send(client, Method::PATCH, &format!("/api/test-runs/{moves}"), json!({ "environment": "ci" }))
                .await;
        assert_eq!(back.status.as_u16(), 200, "{}", back.text());
        let gone = client
            .send_json(Method::DELETE, &format!("/api/test-runs/{moves}"), &json!({}))
            .await
            .expect("an answer");
        assert_eq!(gone.status.as_u16(), 200, "{}", gone.text());
        settled(service).await;
        assert_eq!(numbers("ci").await, (vec![json!(1), json!(1)], json!(1), json!(2)));
        let path = format!("/api/projects/{project}/test-cases?environment=staging");
        assert_eq!(client.json(&path).await.expect("cases")["items"], json!([]));
        assert_eq!(
            client.json(&format!("/api/test-runs/{stays}")).await.expect("a run")["environment"],
            "ci"
        );
    })
    .await;
}

#[tokio::test]
async fn a_run_is_compared_with_what_was_where_it_is() {
    for_each_service(async |service| {
        let client = service.client();
        let green = |hour: u32| {
            let cases = vec![attempt("adds", "passed", 0), attempt("pays", "passed", 0)];
            let at = json!({ "status": "passed", "testCases": cases });
            with(failing("staging", hour), at)
        };
        submit(client, green(8)).await;
        submit(client, failing("ci", 9)).await;
        let moves = submit(client, failing("ci", 10)).await;
        let path = format!("/api/test-runs/{moves}");
        let told = async || {
            settled(service).await;
            let shown = client.json(&path).await.expect("a run")["newRegressions"].clone();
            let pays =
                client.json(&format!("{path}/executions")).await.expect("executions")["items"][0].clone();
            assert_eq!(pays["title"], "pays");
            (shown, pays["isNewRegression"].clone())
        };
        assert_eq!(told().await, (json!(0), json!(false)), "it failed before");
        for (environment, new) in [("staging", true), ("ci", false)] {
            let moved = send(client, Method::PATCH, &path, json!({ "environment": environment })).await;
            assert_eq!(moved.status.as_u16(), 200, "{}", moved.text());
            assert_eq!(told().await, (json!(i32::from(new)), json!(new)), "{environment}");
        }
        // Where runs name no environment, all of them came before.
        let path = format!("/api/test-runs/{}", submit(client, green(11)).await);
        for (environment, fixed) in [(json!("staging"), 0), (Value::Null, 1)] {
            send(client, Method::PATCH, &path, json!({ "environment": environment }))
                .await
                .success()
                .expect("moved");
            settled(service).await;
            let shown = client.json(&path).await.expect("a run");
            assert_eq!(shown["fixedTests"], fixed, "{environment}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_ran_after_a_run_that_moves_is_compared_without_it() {
    for_each_service(async |service| {
        let client = service.client();
        let green = json!({ "status": "passed", "testCases": [attempt("pays", "passed", 0)] });
        submit(client, with(failing("ci", 8), green)).await;
        let moves = submit(client, failing("ci", 9)).await;
        let stays = submit(client, failing("ci", 10)).await;
        let told = async || {
            settled(service).await;
            let shown = client.json(&format!("/api/test-runs/{stays}")).await.expect("a run");
            shown["newRegressions"].clone()
        };
        assert_eq!(told().await, 0, "it failed before");
        for (environment, new) in [("staging", 1), ("ci", 0)] {
            let path = format!("/api/test-runs/{moves}");
            let moved = send(client, Method::PATCH, &path, json!({ "environment": environment })).await;
            assert_eq!(moved.status.as_u16(), 200, "{}", moved.text());
            assert_eq!(told().await, new, "{environment}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_change_bound_to_a_state_is_refused_when_that_is_past() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, failing("ci", 10)).await;
        let cluster = client.json("/api/failure-clusters").await.expect("clusters")["items"][0]["id"].clone();
        for (path, change) in [
            (format!("/api/test-runs/{run}"), (Method::PATCH, String::new(), json!({ "label": "nightly" }))),
            (
                format!("/api/failure-clusters/{cluster}"),
                (Method::PATCH, "/status".to_owned(), json!({ "status": "ignored" })),
            ),
            ("/api/settings/flakiness".to_owned(), (Method::PATCH, String::new(), json!({ "minRuns": 3 }))),
            (
                "/api/projects/1/retention".to_owned(),
                (Method::PUT, String::new(), json!({ "runs": { "days": 90 } })),
            ),
        ] {
            let read = client.get(&path).await.expect("an answer");
            let tag = read.header("etag").to_owned();
            assert!(tag.starts_with("W/"), "{tag}");
            let (method, part, body) = change;
            let change = async |tag: &str| {
                let request = client.request(method.clone(), &format!("{path}{part}"));
                let request = request.header("if-match", tag).json(&body);
                client.send(request).await.expect("an answer")
            };
            assert_eq!(change(&tag).await.status.as_u16(), 200);
            refused(&change(&tag).await, 412, "precondition_failed");
            refused(&change("\"nothing\"").await, 412, "precondition_failed");
            assert_eq!(change("*").await.status.as_u16(), 200);
        }
        // What is read at no address has no state that could be named.
        let tag = client
            .post_json("/api/tags", &json!({ "text": "mobile", "color": "teal" }))
            .await
            .expect("a tag");
        let path = format!("/api/tags/{}", tag["tag"]["id"]);
        let change = async |tag: &str| {
            let request = client.request(Method::PATCH, &path).header("if-match", tag);
            client.send(request.json(&json!({ "text": "phone" }))).await.expect("an answer")
        };
        refused(&change("\"nothing\"").await, 412, "precondition_failed");
        assert_eq!(change("*").await.status.as_u16(), 200);
        let unknown = client.request(Method::PATCH, "/api/projects/4711").header("if-match", "\"nothing\"");
        let unknown = client.send(unknown.json(&json!({ "label": "x" }))).await.expect("an answer");
        refused(&unknown, 404, "project_not_found");
    })
    .await;
}

#[tokio::test]
async fn a_badge_outside_opens_nothing_but_itself() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, failing("ci", 10)).await;
        let project =
            client.json(&format!("/api/test-runs/{run}")).await.expect("a run")["projectId"].clone();
        let path = format!("/api/projects/{project}/badge-token");
        let token = async || {
            let made = send(client, Method::POST, &path, json!({})).await;
            assert_eq!(made.status.as_u16(), 201, "{}", made.text());
            made.json().expect("a token")["token"].as_str().expect("a text").to_owned()
        };
        let message = async |token: &str| {
            let badge = client.json(&format!("/badge/{token}.json")).await.expect("a badge");
            badge["message"].as_str().expect("a text").to_owned()
        };
        let first = token().await;
        assert_eq!(message(&first).await, "failing");
        let picture = client.get(&format!("/badge/{first}.svg?label=%3Cb%3E")).await.expect("a picture");
        assert_eq!(picture.header("content-type"), "image/svg+xml");
        assert!(picture.text().contains("&lt;b&gt;: failing"), "{}", picture.text());
        assert_eq!(
            client.json(&format!("/api/projects/{project}")).await.expect("a project")["hasBadgeToken"],
            true
        );
        let second = token().await;
        assert_eq!((message(&first).await, message(&second).await), ("unknown".into(), "failing".into()));
        assert_eq!(message("sbg_nothing").await, "unknown");
        refused(
            &client.get(&format!("/badge/{second}.png")).await.expect("an answer"),
            404,
            "route_not_found",
        );
        assert_eq!(send(client, Method::DELETE, &path, json!({})).await.status.as_u16(), 200);
        assert_eq!(message(&second).await, "unknown");
    })
    .await;
}

#[tokio::test]
async fn failure_groups_add_up_to_the_failed_tests() {
    for_each_service(async |service| {
        let client = service.client();
        let same = |title: &str, status: &str, retry: u32| {
            let case = attempt(title, status, retry);
            if status == "failed" {
                with(case, json!({ "error": "Error: the shop is closed" }))
            } else {
                case
            }
        };
        let cases = vec![
            same("adds", "failed", 0),
            same("adds", "passed", 1),
            same("pays", "failed", 0),
            same("goes", "failed", 0),
        ];
        let run = submit(client, run("shop", "failed", cases)).await;
        let groups = client.json(&format!("/api/test-runs/{run}/failure-groups")).await.expect("groups");
        let sums = |key: &str| {
            groups["items"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|group| group[key].as_i64().expect("a number"))
                .sum::<i64>()
        };
        assert_eq!(
            (groups["failedTests"].as_i64(), sums("failedCount"), sums("flakyCount"), sums("count")),
            (Some(2), 2, 1, 3),
            "{groups}"
        );
    })
    .await;
}

#[tokio::test]
async fn setup_and_storage_say_what_was_done() {
    for_each_service(async |service| {
        let client = service.client();
        submit(client, failing("ci", 10)).await;
        settled(service).await;
        let features = client.json("/api/setup-status").await.expect("features");
        let is_active = |id: &str| {
            features["items"]
                .as_array()
                .expect("a list")
                .iter()
                .any(|item| item["id"] == id && item["active"] == true)
        };
        assert!(is_active("clustering") && !is_active("reporter") && !is_active("retention"), "{features}");
        let storage = client.json("/api/admin/storage").await.expect("storage");
        assert_eq!(storage["lastSweep"]["freedObjects"], 0, "{storage}");
    })
    .await;
}

#[tokio::test]
async fn a_link_is_looked_at_again_and_keeps_what_people_call_it() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, failing("ci", 10)).await;
        // An address of this machine: it is never looked at.
        let new = json!({ "entityType": "test_run", "entityId": run, "url": "http://127.0.0.1:9/x", "title": "mine" });
        let made = send(client, Method::POST, "/api/links", new).await.json().expect("a link")["link"].clone();
        let path = format!("/api/links/{}/refresh", made["id"]);
        let asked = send(client, Method::POST, &path, json!({})).await;
        assert_eq!(asked.status.as_u16(), 200, "{}", asked.text());
        settled(service).await;
        let links = client.json(&format!("/api/links?entityType=test_run&entityId={run}")).await.expect("links");
        let link = &links["items"][0];
        assert_eq!((&link["title"], &link["unfurledAt"]), (&json!("mine"), &Value::Null));
        refused(&send(client, Method::POST, "/api/links/999/refresh", json!({})).await, 404, "link_not_found");
    })
    .await;
}
