//! Reads over many projects: what they add up, and that they ask the database
//! no more often the more projects there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callboard_domain::time::Timestamp;
use callboard_test_support::{Client, Service, for_each_service};
use serde_json::{Value, json};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_default;
use tracing::{Event, Metadata, Subscriber};

use crate::builders::{attempt, run, with};
use crate::rows::settled;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Counts round trips to the database that are made on this thread.
#[derive(Debug, Clone, Default)]
struct RoundTrips(Arc<AtomicU64>);

impl Subscriber for RoundTrips {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "callboard_store::round_trips"
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

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

const READS: [&str; 16] = [
    "/api/analytics/portfolio",
    "/api/analytics/pass-rate-heatmap",
    "/api/analytics/flaky-leaderboard",
    "/api/analytics/wasted-time",
    "/api/analytics/ci-time-trend",
    "/api/analytics/regression-velocity",
    "/api/analytics/slow-endpoints",
    "/api/analytics/cluster-landscape",
    "/api/analytics/insights?days=90",
    "/api/analytics/browser-matrix",
    "/api/projects",
    "/api/projects/overview",
    "/api/test-runs/recent",
    "/analytics",
    "/projects",
    "/",
];

/// Fewest round trips of several reads: work in the background makes some, too.
async fn round_trips(client: &Client, path: &str, counted: &RoundTrips) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..6 {
        counted.0.store(0, Ordering::Relaxed);
        let answer = client.get(path).await.expect("an answer");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        fewest = fewest.min(counted.0.load(Ordering::Relaxed));
    }
    assert!(fewest > 0, "{path} is not counted");
    fewest
}

#[tokio::test]
async fn reads_over_projects_ask_no_more_often_the_more_projects_there_are() {
    for_each_service(async |service| {
        let counted = RoundTrips::default();
        let _counting = set_default(counted.clone());
        let client = service.client().with_header("accept", "text/html, application/json").expect("a header");
        for project in 0..3 {
            submit(service, project, 1).await;
            submit(service, project, 40).await;
        }
        // Nothing is left to do in the background, which asks the database as well.
        settled(service).await;
        let mut few = Vec::new();
        for path in READS {
            few.push(round_trips(&client, path, &counted).await);
        }
        for project in 3..12 {
            submit(service, project, 1).await;
            submit(service, project, 40).await;
        }
        settled(service).await;
        for (path, few) in READS.iter().zip(few) {
            let many = round_trips(&client, path, &counted).await;
            assert!(many <= few, "{path}: {few} round trips with 3 projects, {many} with 12");
        }
    })
    .await;
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
