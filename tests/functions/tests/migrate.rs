//! The function that a stack invokes before it replaces the others, and what versions
//! do that are too far away from the database.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::put;
use callboard_store::{Backend, SchemaState, newest_step};
use callboard_test_functions::both::{get, post, run, settings};
use callboard_test_functions::deployment::Deployment;
use callboard_test_support::{Function, S3Server, Settings, TestDatabase};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What a stack was answered, in order.
type Answers = Arc<Mutex<Vec<Value>>>;

/// Where a stack waits; it takes no answer with a content type, as addresses that are
/// signed without one do.
async fn waiting_stack() -> (String, Answers) {
    async fn answered(State(answers): State<Answers>, headers: HeaderMap, body: String) -> StatusCode {
        if headers.contains_key("content-type") {
            return StatusCode::FORBIDDEN;
        }
        answers.lock().expect("a stack").push(serde_json::from_str(&body).expect("a stack"));
        StatusCode::OK
    }
    let answers = Answers::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a stack");
    let address = format!("http://{}/answer?signed=yes", listener.local_addr().expect("a stack"));
    let router = Router::new().route("/answer", put(answered)).with_state(Arc::clone(&answers));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, answers)
}

fn event(kind: &str, address: &str) -> Value {
    json!({
        "RequestType": kind, "ResponseURL": address, "RequestId": "unique id for this create request",
        "StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/callboard/guid",
        "ResourceType": "Custom::Schema", "LogicalResourceId": "Schema",
        "ResourceProperties": { "ServiceToken": "arn:aws:lambda:eu-central-1:123456789012:function:migrate", "Step": "46" },
    })
}

fn with(settings: &Settings, name: &str, value: &str) -> Settings {
    let mut changed = settings.clone();
    changed.retain(|(known, _)| known != name);
    changed.push((name.to_owned(), value.to_owned()));
    changed
}

#[tokio::test]
async fn a_stack_has_the_database_migrated_and_hears_how_it_went() {
    let database = TestDatabase::empty(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let good = settings(&database, &bucket);
    let (address, answers) = waiting_stack().await;
    let function = Function::start("migrate", &good).await.unwrap();

    function.invoke_event(&event("Create", &address)).await.unwrap();
    let store = database.store().await.unwrap();
    assert_eq!(store.schema_state().await.unwrap(), SchemaState::Current);
    let functions = Deployment::new(good.clone()).unwrap();
    let accepted = functions.send(&post("/api/test-runs/submit", &run("shop")).unwrap()).await.unwrap();
    assert_eq!(accepted.status.as_u16(), 200, "{}", accepted.text());

    // Again, by hand, and when the stack goes: results stay.
    function.invoke_event(&event("Update", &address)).await.unwrap();
    let by_hand: Value = serde_json::from_slice(&function.invoke_event(&json!({})).await.unwrap()).unwrap();
    assert_eq!(by_hand, json!({ "status": "migrated", "schema": newest_step() }));
    function.invoke_event(&event("Delete", &address)).await.unwrap();
    let projects = functions.send(&get("/api/projects").unwrap()).await.unwrap().success().unwrap();
    assert_eq!(projects["items"][0]["name"], "shop", "{projects}");

    let said = answers.lock().unwrap().clone();
    assert_eq!(said.len(), 3);
    for answer in said {
        assert_eq!((&answer["Status"], &answer["LogicalResourceId"]), (&json!("SUCCESS"), &json!("Schema")));
        assert_eq!(answer["RequestId"], "unique id for this create request");
        assert_eq!(answer["PhysicalResourceId"], "callboard-schema", "another one would be removed");
    }
}

#[tokio::test]
async fn a_stack_hears_why_its_database_was_not_migrated_and_no_secret() {
    let database = TestDatabase::empty(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let good = settings(&database, &bucket);
    let (address, answers) = waiting_stack().await;
    let unreachable = "postgres://callboard:hunter2hunter2@127.0.0.1:9/callboard";
    for (broken, expected) in [
        (with(&good, "SERVICE_DATABASE_URL", unreachable), "cannot bring the database up to date"),
        (
            with(&good, "SERVICE_DATABASE_URL", "sqlite:///tmp/hunter2.db"),
            "SERVICE_DATABASE_URL must name a PostgreSQL",
        ),
        (with(&good, "SERVICE_SECRETS", "hunter2"), "SERVICE_SECRETS must be a JSON object"),
    ] {
        let function = Function::start("migrate", &broken).await.unwrap();
        function.invoke_event(&event("Update", &address)).await.unwrap();
        let answer = answers.lock().unwrap().pop().expect("an answer");
        let reason = answer["Reason"].as_str().unwrap();
        assert_eq!(answer["Status"], "FAILED", "{answer}");
        assert!(reason.contains(expected) && !reason.contains("hunter2"), "{reason}");
        assert!(!function.output().contains("hunter2"), "{}", function.output());
    }
}

#[tokio::test]
async fn a_version_that_is_too_old_for_the_database_writes_nothing_and_says_so() {
    let database = TestDatabase::fresh(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let store = database.store().await.unwrap();
    // The next release has steps of its own: this version works on its schema.
    note(&store, newest_step()).await;
    let functions = Deployment::new(settings(&database, &bucket)).unwrap();
    let accepted = functions.send(&post("/api/test-runs/submit", &run("shop")).unwrap()).await.unwrap();
    assert_eq!(accepted.status.as_u16(), 200, "{}", accepted.text());

    // The one after it does not know this version any more.
    note(&store, newest_step() + 1).await;
    let functions = Deployment::new(settings(&database, &bucket)).unwrap();
    let refused = functions.send(&post("/api/test-runs/submit", &run("shop")).unwrap()).await.unwrap();
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    assert!(refused.text().contains("too old for its database"), "{}", refused.text());
    let health = functions.send(&get("/api/health").unwrap()).await.unwrap();
    assert_eq!(health.json().unwrap()["database"], "version_too_old");
    let read = functions.send(&get("/api/projects").unwrap()).await.unwrap();
    assert_eq!(read.status.as_u16(), 200, "{}", read.text());
    let migrated = store.migrate().await.unwrap_err().to_string();
    assert!(migrated.contains("Deploy the newer version"), "{migrated}");
}

/// Notes what the newest release that migrated this database said of older ones.
async fn note(store: &callboard_store::Store, oldest_build: i64) {
    let now = callboard_store::instance::clock(store.db()).await.expect("noted");
    let mut session = store.db().begin().await.expect("noted");
    callboard_store::instance::set(&mut session, "oldest_build", &oldest_build.to_string(), now)
        .await
        .expect("noted");
    session.commit().await.expect("noted");
}
