//! The platform's scheduler invokes the function `jobs` with an event of its
//! own; nobody can send one over HTTP.

use callboard_store::{Backend, jobs};
use callboard_test_functions::both::{post, settings};
use callboard_test_functions::deployment::scheduled;
use callboard_test_support::access::AUTH_SECRET;
use callboard_test_support::{Function, S3Server, TestDatabase};
use serde_json::Value;

#[tokio::test]
async fn the_scheduler_of_the_platform_has_work_done_and_a_request_that_looks_like_it_has_not() {
    let database = TestDatabase::fresh(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let mut settings = settings(&database, &bucket);
    settings.push(("SERVICE_AUTH_SECRET".to_owned(), AUTH_SECRET.to_owned()));
    let function = Function::start("jobs", &settings).await.unwrap();

    let pretended =
        function.invoke("ANY /internal/tick", &post("/internal/tick", &scheduled()).unwrap()).await.unwrap();
    assert_eq!(pretended.status.as_u16(), 401, "{}", pretended.text());
    let elsewhere = function.invoke("$default", &post("/events", &scheduled()).unwrap()).await.unwrap();
    assert_eq!(elsewhere.status.as_u16(), 404, "{}", elsewhere.text());

    let answer = function.invoke_event(&scheduled()).await.unwrap();
    let ticked: Value = serde_json::from_slice(&answer).unwrap();
    assert!(ticked["done"].as_u64().is_some_and(|done| done > 0), "{ticked}");
    let store = database.store().await.unwrap();
    let counts = jobs::counts(&mut store.db().read().await.unwrap()).await.unwrap();
    assert_eq!(
        (counts.done, counts.queued + counts.leased + counts.parked),
        (ticked["done"].as_i64().unwrap(), 0)
    );

    let health = Function::start("health", &settings).await.unwrap();
    assert!(health.invoke_event(&scheduled()).await.is_err());
}
