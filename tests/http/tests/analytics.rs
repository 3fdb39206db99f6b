//! Reads over many projects: what they add up.

use callboard_domain::time::Timestamp;
use callboard_test_support::{Service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A run of a project that began so many days ago: one test fails, one times
/// out, one calls an endpoint.
async fn submit(service: &Service, project: usize, days: i64) {
    let start = Timestamp(service.state().now().millis() - days * DAY_MS);
    let calls = json!([{ "url": "https://shop.example/api/orders/7", "method": "GET", "status": 200,
        "duration": 40, "startTime": start.to_iso() }]);
    let cases = vec![
        with(
            attempt("pays", "passed", 0),
            json!({ "networkRequests": calls, "browser": { "projectName": "chromium" } }),
        ),
        attempt("ships", "failed", 0),
        with(attempt("waits", "timedOut", 0), json!({ "timeout": 30_000 })),
    ];
    let body = json!({ "startTime": start.to_iso(), "branch": "main", "duration": 1_000 + project });
    let body = with(run(&format!("project {project}"), "failed", cases), body);
    service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
}

#[tokio::test]
async fn widgets_add_up_what_the_projects_did() {
    for_each_service(async |service| {
        for project in 0..3 {
            submit(service, project, 1).await;
            submit(service, project, 40).await;
        }
        let widget = async |name: &str| -> Value {
            service.client().json(&format!("/api/analytics/{name}?days=30")).await.expect("a widget")
        };
        let time = widget("ci-time-trend").await;
        assert_eq!(time["totals"], json!({ "durationMs": 3_003, "runCount": 3 }));
        assert_eq!((time["points"].as_array().map(Vec::len), &time["deltaRate"]), (Some(1), &json!(0.0)));
        let portfolio = widget("portfolio").await;
        let first = portfolio["items"]
            .as_array()
            .and_then(|items| items.iter().find(|item| item["project"]["name"] == "project 0"));
        let first = first.expect("the first project");
        assert_eq!((&first["runCount"], &first["avgRunDuration"]), (&json!(1), &json!(1_000)));
        assert_eq!((&first["passRate"], &first["passRateDelta"]), (&json!(0.3333), &json!(0.0)));
        let map = widget("pass-rate-heatmap").await;
        let cells: Vec<&Value> = map["rows"][0]["cells"].as_array().expect("cells").iter().collect();
        assert_eq!((cells.len(), cells.iter().filter(|cell| !cell.is_null()).count()), (30, 1));
        let landscape = widget("cluster-landscape").await;
        let open = service.client().json("/api/failure-clusters?status=open").await.expect("clusters");
        let open = open["items"].as_array().map(Vec::len);
        assert!(landscape["totalOpen"] == json!(open) && open >= Some(3), "{landscape}");
        let browsers = widget("browser-matrix").await;
        assert_eq!(browsers["rows"].as_array().map(Vec::len), Some(3), "{browsers}");
        let endpoints = widget("slow-endpoints").await;
        let orders = &endpoints["items"][0];
        assert_eq!((&orders["requests"], &orders["projectCount"]), (&json!(3), &json!(3)), "{endpoints}");
    })
    .await;
}
