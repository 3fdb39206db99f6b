//! An installation of an earlier version, as its process left it when it was
//! killed, opened by this version.

use std::path::{Path, PathBuf};

use callboard_domain::time::Timestamp;
use callboard_http::Clock;
use callboard_query::retention;
use callboard_store::Backend;
use callboard_test_support::{Client, Service, TestDatabase, for_each_backend};
use flate2::read::GzDecoder;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::builders::{attempt, run, with};
use crate::retention::worked;

/// Files and rows of version 31 of the schema; `README.md` beside them says how
/// they were made.
const INSTALLATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/upgrade");
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Results that the killed process had accepted and not applied.
const STAGED_RESULTS: i64 = 300;

fn inflate(file: &Path) -> Vec<u8> {
    let packed = std::fs::File::open(file).expect("a file of the installation");
    let mut bytes = Vec::new();
    std::io::copy(&mut GzDecoder::new(packed), &mut bytes).expect("a gzip file");
    bytes
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let from = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("copied");
        }
    }
}

/// The database and files of the installation.
async fn installation(backend: Backend) -> TestDatabase {
    let database = TestDatabase::empty(backend).await.expect("a database");
    let engine = match backend {
        Backend::Sqlite => "sqlite",
        Backend::Postgres => "postgres",
    };
    let folder = PathBuf::from(INSTALLATION).join(engine);
    copy_folder(&folder.join("objects"), &database.folder().join("objects"));
    match backend {
        Backend::Sqlite => {
            for file in ["callboard.db", "callboard.db-wal", "callboard.db-intake", "callboard.db-intake-wal"]
            {
                let bytes = inflate(&folder.join(format!("{file}.gz")));
                std::fs::write(database.folder().join(file), bytes).expect("written");
            }
        }
        Backend::Postgres => {
            let dump = String::from_utf8(inflate(&folder.join("dump.sql.gz"))).expect("a text");
            let mut connection = PgConnection::connect(database.url()).await.expect("a connection");
            connection.execute(AssertSqlSafe(dump)).await.expect("restored");
            connection.close().await.expect("closed");
        }
    }
    database
}

async fn signed_in(service: &Service) -> Client {
    let client = service.client().browser();
    let account = json!({ "username": "ada", "password": "correct horse battery" });
    client.post_json("/api/auth/login", &account).await.expect("signed in");
    client
}

/// Does what is due some days from now, and sweeps what the policy deletes.
async fn work_days_later(service: &Service, days: i64) {
    let at = Timestamp(service.state().now().millis() + days * DAY_MS);
    let state = service.state().clone().with_clock(Clock::from_fn(move || at));
    worked(&state).await;
    while !retention::sweep(&state.background(), 0, at).await.expect("swept").is_over() {}
    worked(&state).await;
}

/// Runs of each project, by name.
async fn runs(client: &Client) -> Vec<(String, i64, i64)> {
    let found = client.json("/api/projects?sort=name").await.expect("projects");
    let items = found["items"].as_array().or_else(|| found["projects"].as_array()).expect("a list");
    let mut counts = Vec::new();
    for project in items {
        let listed =
            client.json(&format!("/api/projects/{}/test-runs?limit=100", project["id"])).await.expect("runs");
        let listed = listed["items"].as_array().expect("a list").len();
        let name = project["name"].as_str().expect("a name").to_owned();
        counts.push((
            name,
            project["totalRuns"].as_i64().expect("a number"),
            i64::try_from(listed).expect("a small number"),
        ));
    }
    counts.sort();
    counts
}

#[tokio::test]
async fn an_installation_of_an_earlier_version_keeps_everything_and_goes_on() {
    for_each_backend(async |backend| {
        let settings = [
            ("SERVICE_AUTH_ENABLED", "true"),
            ("SERVICE_AUTH_SECRET", "upgrade-fixture-secret-0123456789"),
            ("SERVICE_GC_GRACE_SECONDS", "0"),
        ];
        let settings: Vec<_> = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let service = Service::over(installation(backend).await, &settings).await.expect("a service");
        let client = signed_in(&service).await;

        // The results that the killed process had accepted are part of their run.
        worked(service.state()).await;
        let live = client.json("/api/test-runs/13").await.expect("the live run");
        assert_eq!(live["totalTests"], STAGED_RESULTS, "{live}");

        // Nobody chose to delete anything of `shop`, and nothing of `billing` is that old.
        let expected = [("billing".to_owned(), 3, 3), ("shop".to_owned(), 10, 10)];
        assert_eq!(runs(&client).await, expected);
        work_days_later(&service, 400).await;
        // The session is too old by then.
        let client = signed_in(&service).await;
        assert_eq!(runs(&client).await, expected);
        assert_eq!(client.json("/api/deletions").await.expect("receipts")["items"], json!([]));
        let file = client.get("/api/files/1").await.expect("the screenshot");
        assert_eq!((file.status.as_u16(), file.body.len()), (200, 70));

        // Pages and lists read old rows.
        for path in [
            "/",
            "/projects/1",
            "/projects/2",
            "/test-runs/7",
            "/test-runs/13",
            "/test-cases/1",
            "/failure-clusters/1",
            "/analytics",
            "/settings/storage",
            "/settings/retention",
            "/api/projects/1/test-cases",
            "/api/projects/1/flaky-tests",
            "/api/projects/1/failure-clusters",
            "/api/projects/1/performance",
        ] {
            let answer = client.get(path).await.expect("a page");
            assert_eq!(answer.status.as_u16(), 200, "{path}");
        }

        // A new run goes on with the history of its tests.
        let cases =
            vec![with(attempt("search", "passed", 0), json!({ "location": "tests/shop.spec.ts:13:5" }))];
        let newer = with(
            run("shop", "passed", cases),
            json!({
                "startTime": "2026-11-30T10:00:00.000Z", "metadata": { "scm": { "branch": "main" } },
            }),
        );
        let newer = client.post_json("/api/test-runs/submit", &newer).await.expect("stored");
        let case =
            client.json(&format!("/api/test-runs/{}/executions", newer["runId"])).await.expect("executions");
        let case = &case["items"][0]["testCaseId"];
        let history =
            client.json(&format!("/api/test-cases/{case}/history?limit=50")).await.expect("a history");
        assert_eq!(history["items"].as_array().map(Vec::len), Some(9), "{history}");
    })
    .await;
}
