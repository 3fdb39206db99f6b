//! Endpoints told from captured requests: numbers against hand-counted ones,
//! whichever way the requests came, and after a run is gone.

use std::time::Duration;

use callboard_domain::time::{Day, Timestamp};
use callboard_fn_jobs::{Budget, run_due};
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::live;

fn request(method: &str, url: &str, status: u16, duration: u32) -> Value {
    json!({ "method": method, "url": format!("http://shop.test{url}"), "status": status, "duration": duration,
        "resourceType": "fetch" })
}

/// An attempt with the requests it made.
fn calling(title: &str, status: &str, retry: u32, requests: Vec<Value>) -> Value {
    with(attempt(title, status, retry), json!({ "networkRequests": requests }))
}

/// A run of today that clients may send again.
fn today(service: &Service, name: &str, cases: Vec<Value>) -> Value {
    let start = Timestamp(service.state().now().day().start().millis() + 60_000).to_iso();
    let fields = json!({ "startTime": start, "clientRunId": format!("client-run-{name}"), "branch": "main" });
    with(run("shop", "failed", cases), fields)
}

fn told(rows: &Value) -> Vec<Value> {
    let row = |row: &Value| {
        let tests: Vec<&Value> =
            row["testCases"].as_array().expect("tests").iter().map(|test| &test["title"]).collect();
        json!([
            row["method"],
            row["route"],
            row["count"],
            row["statusCodes"],
            row["errorRate"],
            row["avgDuration"],
            row["minDuration"],
            row["maxDuration"],
            tests
        ])
    };
    rows["items"].as_array().expect("items").iter().map(row).collect()
}

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect("an answer")
}

fn checkout() -> Vec<Value> {
    vec![
        calling(
            "pays",
            "failed",
            0,
            vec![
                with(
                    request("POST", "/api/orders/5069/pay?token=s3cret", 503, 900),
                    json!({ "serverLogs": [{ "level": "Error", "message": "no connection left" }] }),
                ),
                request("GET", "/api/orders/5069", 200, 40),
            ],
        ),
        calling("pays", "passed", 1, vec![request("post", "/api/orders/5070/pay", 201, 300)]),
        calling(
            "looks",
            "passed",
            0,
            vec![request("GET", "/api/orders/1", 200, 20), request("GET", "/api/orders/2", 304, 60)],
        ),
    ]
}

#[tokio::test]
async fn a_run_tells_what_its_tests_called() {
    for_each_service(async |service| {
        let client = service.client();
        let whole = today(service, "whole", checkout());
        let id = submit(client, whole.clone()).await;
        let path = format!("/api/test-runs/{id}/network-requests");
        let rows = get(client, &path).await;
        let expected = [
            json!(["POST", "/api/orders/:id/pay", 2, { "201": 1, "503": 1 }, 0.5, 600, 300, 900, ["pays"]]),
            json!(["GET", "/api/orders/:id", 3, { "200": 2, "304": 1 }, 0.0, 40, 20, 60, ["looks", "pays"]]),
        ];
        assert_eq!(told(&rows), expected);
        assert_eq!(rows["items"][0]["serverLogs"], json!(["Error: no connection left"]));
        let p90 = rows["items"][0]["p90Duration"].as_i64().expect("a quantile");
        assert!((855..=900).contains(&p90), "{p90}");

        // The same results again are the same requests.
        assert_eq!(submit(client, whole).await, id);
        assert_eq!(told(&get(client, &path).await), expected);

        // The same results one by one make the same numbers, whatever their order.
        let feeder = live::start(client, json!({ "branch": "main" })).await;
        for case in checkout().into_iter().rev() {
            feeder.results(vec![case.clone()]).await;
            feeder.results(vec![case]).await;
        }
        let path = format!("/api/test-runs/{}/network-requests", feeder.run);
        assert_eq!(told(&get(client, &path).await), expected);

        let sorted = get(client, &format!("{path}?sort=count&limit=1")).await;
        assert_eq!(sorted["items"][0]["method"], "GET");
        let next = sorted["nextCursor"].as_str().expect("a next page");
        let last = get(client, &format!("{path}?sort=count&limit=1&cursor={next}")).await;
        assert_eq!((&last["items"][0]["method"], &last["nextCursor"]), (&json!("POST"), &Value::Null));
        for (bad, code) in
            [("sort=p90", "invalid_query"), (&format!("sort=avgDuration&cursor={next}"), "invalid_cursor")]
        {
            let answer = client.get(&format!("{path}?{bad}")).await.expect("an answer");
            assert_eq!(
                (answer.status.as_u16(), answer.json().expect("JSON")["code"].as_str()),
                (400, Some(code))
            );
        }
        let unknown = client.get("/api/test-runs/999999/network-requests").await.expect("an answer");
        assert_eq!(unknown.status.as_u16(), 404);
    })
    .await;
}

/// Requests to endpoints of which no two are the same.
fn different(numbers: std::ops::Range<usize>, duration: u32) -> Vec<Value> {
    let requests = numbers.map(|n| {
        let word: String = n.to_string().bytes().map(|digit| char::from(digit + b'a' - b'0')).collect();
        request("GET", &format!("/api/{word}"), 500, duration)
    });
    requests.collect()
}

#[tokio::test]
async fn too_many_endpoints_are_counted_together() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = vec![
            calling("one", "passed", 0, different(0..300, 10)),
            calling("two", "passed", 0, different(300..510, 10)),
        ];
        let id = submit(client, today(service, "many", cases)).await;
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/api/test-runs/{id}/network-requests?sort=count&limit=200{cursor}");
            let page = get(client, &path).await;
            found.extend(told(&page));
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found.len(), 501);
        assert_eq!((&found[0][0], &found[0][2]), (&json!("*"), &json!(10)), "the rest is the most frequent");
    })
    .await;
}

/// The slow endpoints of the project, without ids.
async fn slow(client: &Client, query: &str) -> Vec<Value> {
    let rows = get(client, &format!("/api/analytics/slow-endpoints{query}")).await;
    let row = |row: &Value| {
        let slowest: Vec<&Value> =
            row["slowest"].as_array().expect("requests").iter().map(|one| &one["duration"]).collect();
        json!([
            row["method"],
            row["route"],
            row["requests"],
            row["maxDuration"],
            row["errorRate"],
            row["projectCount"],
            slowest
        ])
    };
    rows["items"].as_array().expect("items").iter().map(row).collect()
}

#[tokio::test]
async fn slow_endpoints_and_browsers_are_those_of_the_runs_that_are_left() {
    for_each_service(async |service| {
        let client = service.client();
        let browser = |case: Value, name: &str| with(case, json!({ "browserProject": name }));
        let calls = |requests: Vec<Value>| calling("pays", "passed", 0, requests);
        let first = today(
            service,
            "first",
            vec![
                browser(calls(vec![request("GET", "/api/cart", 200, 100)]), "chromium"),
                browser(attempt("looks", "failed", 0), "firefox"),
            ],
        );
        submit(client, first).await;
        let before = (slow(client, "").await, get(client, "/api/analytics/browser-matrix").await);
        assert_eq!(before.0, [json!(["GET", "/api/cart", 1, 100, 0.0, 1, [100]])]);
        assert_eq!(before.1["browsers"], json!(["chromium", "firefox"]));
        assert_eq!(before.1["rows"][0]["cells"], json!([1.0, 0.0]));

        let requests = vec![request("GET", "/api/cart", 0, 5_000), request("GET", "/api/slow", 200, 9_000)];
        let second = submit(
            client,
            today(
                service,
                "second",
                vec![browser(calls(requests), "firefox"), browser(attempt("looks", "failed", 0), "chromium")],
            ),
        )
        .await;
        let other = with(
            today(service, "third", vec![calls(vec![request("GET", "/api/slow", 200, 7_000)])]),
            json!({ "projectName": "other" }),
        );
        submit(client, other).await;
        assert_eq!(
            slow(client, "").await,
            [
                json!(["GET", "/api/slow", 2, 9_000, 0.0, 2, [9_000, 7_000]]),
                json!(["GET", "/api/cart", 2, 5_000, 0.5, 1, [5_000, 100]]),
            ]
        );
        assert_eq!(slow(client, "?project=2").await.len(), 1);
        assert_eq!(slow(client, "?limit=1").await.len(), 1);
        let matrix = get(client, "/api/analytics/browser-matrix?project=1").await;
        assert_eq!(matrix["rows"][0]["cells"], json!([0.5, 0.5]));
        for refused in ["branch=main", "environment=x", "fullRuns=true", "days=0", "project=99"] {
            for widget in ["slow-endpoints", "browser-matrix"] {
                let path = format!("/api/analytics/{widget}?{refused}");
                let status = client.get(&path).await.expect("an answer").status.as_u16();
                assert_eq!(status, if refused == "project=99" { 404 } else { 400 }, "{path}");
            }
        }

        let gone = client.request(Method::DELETE, &format!("/api/test-runs/{second}?now=true"));
        let gone = client.send(gone).await.and_then(|answer| answer.success()).expect("deleted");
        let receipt = format!("/api/deletions/{}", gone["receipt"]["id"]);
        while get(client, &receipt).await["state"] != "complete" {
            run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
        }
        assert_eq!(slow(client, "?project=1").await, before.0);
        let after = get(client, "/api/analytics/browser-matrix?project=1").await;
        assert_eq!(after["rows"][0]["cells"], before.1["rows"][0]["cells"]);
        let old = Day(service.state().now().day().0 - 40).start().to_iso();
        let late = vec![calls(vec![request("GET", "/api/old", 200, 50_000)])];
        submit(client, with(today(service, "old", late), json!({ "startTime": old }))).await;
        assert_eq!(slow(client, "?project=1").await, before.0, "thirty days are shown");
        assert_eq!(slow(client, "?project=1&days=60").await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_counts_in_every_project_also_where_others_are_slower() {
    for_each_service(async |service| {
        let client = service.client();
        let slow_here = vec![calling("pays", "passed", 0, vec![request("GET", "/api/cart", 200, 9_000)])];
        submit(client, today(service, "first", slow_here)).await;
        let mut crowd = different(0..250, 5_000);
        crowd.push(request("GET", "/api/cart", 500, 10));
        let fast_there = vec![calling("pays", "passed", 0, crowd)];
        let second = with(today(service, "second", fast_there), json!({ "projectName": "crowded" }));
        submit(client, second).await;
        let rows = get(client, "/api/analytics/slow-endpoints?limit=1").await;
        let cart = &rows["items"][0];
        assert_eq!((&cart["route"], &cart["maxDuration"]), (&json!("/api/cart"), &json!(9_000)), "{rows:#}");
        assert_eq!((&cart["requests"], &cart["projectCount"]), (&json!(2), &json!(2)), "{rows:#}");
        assert_eq!(cart["errorRate"], 0.5);
        assert!(cart["p50Duration"].as_i64().is_some_and(|ms| ms <= 11), "{rows:#}");
    })
    .await;
}
