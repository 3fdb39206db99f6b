//! Runs that go on, and that end once.

use callboard_test_support::for_each_service;
use serde_json::json;

use crate::builders::attempt;
use crate::live::start;

#[tokio::test]
async fn ten_ends_at_once_count_once() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0), attempt("looks", "failed", 0)]).await;
        let end = json!({ "status": "failed", "duration": 5000 });
        let answers = futures::future::join_all((0..10).map(|_| feeder.call("finish", end.clone()))).await;
        for answer in answers {
            assert_eq!(answer.success().expect("finished")["status"], "failed");
        }
        let shown = feeder.shown().await;
        let totals = ["status", "totalTests", "passedTests", "failedTests"].map(|key| shown[key].clone());
        assert_eq!(totals, [json!("failed"), json!(2), json!(1), json!(1)]);
        let projects = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(projects["items"][0]["totalRuns"], 1);
        let events = crate::live::global_events(service).await;
        let kinds: Vec<&str> = events.iter().map(|event| event.0.as_str()).collect();
        assert_eq!(kinds, ["run-started", "run-finished"]);
    })
    .await;
}
