//! What a function refuses to run with: instances share no disk and lose
//! theirs, so nothing may be kept there, and none of them migrates.

use callboard_store::Backend;
use callboard_test_functions::both::{get, post, run, settings};
use callboard_test_functions::deployment::Deployment;
use callboard_test_functions::served::FUNCTIONS;
use callboard_test_support::{Function, S3Server, Settings, TestDatabase};

/// The exit code of a refused configuration.
const REFUSED: i32 = 78;

fn with(settings: &Settings, name: &str, value: &str) -> Settings {
    let mut changed = settings.clone();
    changed.retain(|(known, _)| known != name);
    changed.push((name.to_owned(), value.to_owned()));
    changed
}

#[tokio::test]
async fn every_function_refuses_sqlite_and_folders_in_a_lambda_environment() {
    let database = TestDatabase::fresh(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let good = settings(&database, &bucket);
    for (name, _) in FUNCTIONS {
        for (variable, value, expected) in [
            ("SERVICE_DATABASE_URL", "sqlite:///tmp/callboard.db", "PostgreSQL"),
            ("SERVICE_STORAGE_URL", "file:///tmp/objects", "bucket"),
        ] {
            let function = Function::start(name, &with(&good, variable, value)).await.unwrap();
            let (code, output) = function.refusal().await.unwrap();
            assert_eq!(code, Some(REFUSED), "{name} with {variable}={value} printed:\n{output}");
            assert!(output.contains(variable) && output.contains(expected), "{name} printed:\n{output}");
        }
    }
}

#[tokio::test]
async fn no_function_starts_with_a_secret_that_anybody_could_guess() {
    let database = TestDatabase::fresh(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let asking = with(&settings(&database, &bucket), "SERVICE_AUTH_ENABLED", "true");
    for (name, _) in FUNCTIONS {
        for secret in ["", "changemechangeme", "changeme", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
            let function =
                Function::start(name, &with(&asking, "SERVICE_AUTH_SECRET", secret)).await.unwrap();
            let (code, output) = function.refusal().await.unwrap();
            assert_eq!(code, Some(REFUSED), "{name} with the secret {secret:?} printed:\n{output}");
            assert!(output.contains("SERVICE_AUTH_SECRET"), "{name} printed:\n{output}");
        }
    }
}

#[tokio::test]
async fn without_any_settings_a_function_says_both_that_are_missing() {
    let function = Function::start("health", &Settings::new()).await.unwrap();
    let (code, output) = function.refusal().await.unwrap();
    assert_eq!(code, Some(REFUSED), "{output}");
    assert!(output.contains("SERVICE_DATABASE_URL") && output.contains("SERVICE_STORAGE_URL"), "{output}");
}

#[tokio::test]
async fn a_function_never_migrates_and_refuses_writes_until_someone_did() {
    let database = TestDatabase::empty(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let functions = Deployment::new(settings(&database, &bucket)).unwrap();

    let refused = functions.send(&post("/api/test-runs/submit", &run("shop")).unwrap()).await.unwrap();
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    let health = functions.send(&get("/api/health").unwrap()).await.unwrap();
    assert_eq!(health.status.as_u16(), 503, "{}", health.text());

    let store = database.store().await.unwrap();
    assert!(!store.schema_is_current().await.unwrap());
    store.migrate().await.unwrap();
    let accepted = functions.send(&post("/api/test-runs/submit", &run("shop")).unwrap()).await.unwrap();
    assert_eq!(accepted.status.as_u16(), 200, "{}", accepted.text());
}

#[tokio::test]
async fn wrong_bucket_credentials_are_told_as_unreachable_storage() {
    let database = TestDatabase::fresh(Backend::Postgres).await.unwrap();
    let bucket = S3Server::start().await.unwrap();
    let settings = with(&settings(&database, &bucket), "AWS_SECRET_ACCESS_KEY", "another-secret");
    let functions = Deployment::new(settings).unwrap();
    let health = functions.send(&get("/api/health").unwrap()).await.unwrap();
    let told = health.json().unwrap();
    assert_eq!((health.status.as_u16(), &told["storage"]), (503, &"unreachable".into()), "{told}");
}
