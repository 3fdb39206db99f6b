//! The deployed functions and the local runner side by side, over the same
//! database and the same bucket, under the same public name.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use callboard_store::{Backend, jobs};
use callboard_test_support::{
    Answer, Form, Gateway, Runner, S3Server, Settings, TestDatabase, report_archive,
};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request};
use serde_json::{Value, json};

use crate::deployment::Deployment;

/// The name both answer to, so that links in their answers are the same.
const SITE: &str = "tests.example.org";

/// Headers that differ with every answer, or belong to one connection.
const VOLATILE: [&str; 6] =
    ["date", "x-request-id", "content-length", "connection", "transfer-encoding", "keep-alive"];

/// Both shapes of the service.
#[derive(Debug)]
pub struct Both {
    /// The functions.
    pub functions: Deployment,
    /// The local runner.
    pub runner: Runner,
    /// Their bucket.
    pub bucket: S3Server,
    /// Their database, dropped last.
    pub database: TestDatabase,
}

impl Both {
    /// Starts both on a fresh PostgreSQL database and bucket.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn start() -> Result<Self> {
        Self::behind(Gateway::HttpApi, &[]).await
    }

    /// The same with functions behind another gateway, and with further settings of them.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn behind(gateway: Gateway, further: &[(&str, &str)]) -> Result<Self> {
        let database = TestDatabase::fresh(Backend::Postgres).await?;
        let bucket = S3Server::start().await?;
        let mut settings = settings(&database, &bucket);
        let runner = Runner::start(&settings).await?;
        settings.extend(further.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let functions = Deployment::new(settings)?.behind(gateway);
        Ok(Self { functions, runner, bucket, database })
    }

    /// Asks both and returns what each answered.
    ///
    /// # Errors
    /// When one of them does not answer.
    pub async fn ask(&self, request: &Request<Bytes>) -> Result<[Comparable; 2]> {
        let by_functions = self.functions.send(request).await?;
        let by_runner = self.ask_runner(request).await?;
        Ok([Comparable::from_answer(by_functions), Comparable::from_answer(by_runner)])
    }

    /// Asks the local runner.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn ask_runner(&self, request: &Request<Bytes>) -> Result<Answer> {
        let target = request.uri().path_and_query().context("a request without a path")?.as_str();
        let sent = self.runner.client().request(request.method().clone(), target);
        Answer::send(sent.headers(request.headers().clone()).body(request.body().clone())).await
    }

    /// Waits until what follows the end of the runs is worked out, so that two
    /// answers are of the same moment.
    ///
    /// # Errors
    /// When it is not after half a minute.
    pub async fn completed(&self) -> Result<()> {
        let store = self.database.store().await?;
        for _ in 0..600 {
            self.functions.tick().await?;
            let left = jobs::counts(&mut store.db().read().await?).await?;
            if left.queued + left.leased == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("there is still work to do")
    }

    /// Sends a run with evidence, an attachment and a report to the
    /// functions, and waits until it is completed; its answer.
    ///
    /// # Errors
    /// When it is not stored.
    pub async fn upload_run(&self, project: &str) -> Result<Value> {
        let archive = report_archive(&[
            ("index.html", b"<!doctype html><title>Report</title>".as_slice()),
            ("data/a b#c%41.txt", b"named with care"),
        ])?;
        let form = Form::new()
            .field("projectName", project)
            .field("testRun", run(project).to_string())
            .field("testCases", test_cases().to_string())
            .field(
                "attach_meta_1",
                r#"[{"name":"note","contentType":"text/plain","originalName":"note.txt"}]"#,
            )
            .file("attach_file_1", "note.txt", "text/plain", b"a note from the test")
            .file("report_html", "html-report.gz", "application/gzip", &archive);
        let request = request(Method::POST, "/api/test-runs/upload")
            .header(CONTENT_TYPE, Form::content_type())
            .body(form.into_body())?;
        let uploaded = self.functions.send(&request).await?.success()?;
        self.completed().await?;
        Ok(uploaded)
    }
}

/// What a function or the runner needs to work on a database and a bucket.
#[must_use]
pub fn settings(database: &TestDatabase, bucket: &S3Server) -> Settings {
    let mut settings = bucket.settings();
    let own = [
        ("SERVICE_DATABASE_URL", database.url()),
        ("SERVICE_DATABASE_CONNECTIONS", "2"),
        ("SERVICE_SITE_URL", "https://tests.example.org"),
        ("SERVICE_SECRET_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210"),
        ("SERVICE_SANDBOX_ORIGIN", "https://files.example.org"),
        // The gateway passes on whole answers only.
        ("SERVICE_SSE_MAX_SECONDS", "1"),
    ];
    settings.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    settings
}

/// Begins a request under the public name.
pub fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path).header(HOST, SITE)
}

/// A GET under the public name.
///
/// # Errors
/// When the path is none.
pub fn get(path: &str) -> Result<Request<Bytes>> {
    Ok(request(Method::GET, path).body(Bytes::new())?)
}

/// A POST of JSON under the public name.
///
/// # Errors
/// When the path is none.
pub fn post(path: &str, body: &Value) -> Result<Request<Bytes>> {
    let request = request(Method::POST, path).header(CONTENT_TYPE, "application/json");
    Ok(request.body(body.to_string().into())?)
}

/// Fields of a run.
#[must_use]
pub fn run(project: &str) -> Value {
    // Nothing of it is let go while a test reads it, nor is it told in minutes how long ago it was.
    static A_DAY_AGO: LazyLock<u64> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now.as_secs() - 26 * 60 * 60) * 1000
    });
    json!({
        "projectName": project, "status": "failed", "startTime": *A_DAY_AGO, "duration": 4200,
        "totalTests": 2, "passedTests": 1, "failedTests": 1, "skippedTests": 0,
        "environment": "staging", "branch": "main", "commit": "0123456789abcdef0123456789abcdef01234567",
    })
}

/// Two test cases, one of them failing with steps, a console line and a
/// request.
#[must_use]
pub fn test_cases() -> Value {
    json!([
        { "title": "adds an item", "location": "tests/cart.spec.ts:7:5", "status": "passed", "duration": 1200, "retries": 0 },
        {
            "title": "pays", "location": "tests/checkout.spec.ts:3:1", "status": "failed", "duration": 3000, "retries": 0,
            "error": "Error: expect(locator).toBeVisible() failed\n\nLocator: getByTestId('receipt')",
            "suitePath": ["Checkout"], "tags": ["@smoke"], "browser": { "name": "chromium", "projectName": "desktop" },
            "steps": [{ "title": "click", "duration": 12 }],
            "consoleLogs": [{ "type": "error", "text": "payment failed", "timestamp": 1_767_268_801_000_u64 }],
        },
    ])
}

/// An answer without what may differ between the two shapes.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparable {
    /// Its status.
    pub status: u16,
    /// Its headers, by name.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: String,
}

/// Fails when two answers differ, with the first lines of their bodies that
/// do rather than with both bodies.
///
/// # Panics
/// When they differ.
pub fn assert_same([by_function, by_runner]: &[Comparable; 2], what: &str) {
    let lines = by_function.body.lines().zip(by_runner.body.lines());
    let different: Vec<_> = lines.filter(|(one, other)| one != other).take(3).collect();
    assert!(different.is_empty(), "{what}: function and runner differ in {different:#?}");
    assert_eq!(by_function, by_runner, "{what}");
}

impl Comparable {
    fn from_answer(answer: Answer) -> Self {
        Self {
            status: answer.status.as_u16(),
            headers: stable(&answer.headers),
            body: without_open_line(&without_grants(&answer.text())),
        }
    }
}

/// Repeated headers joined, as a gateway does it.
fn stable(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut stable: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| !VOLATILE.contains(&name.as_str())) {
        let value = without_grants(&String::from_utf8_lossy(value.as_bytes()));
        stable.entry(name.to_string()).or_default().push(value);
    }
    stable.into_iter().map(|(name, values)| (name, values.join(", "))).collect()
}

/// The text with every `/f/<grant>/` made the same: grants are sealed anew
/// each time.
fn without_grants(text: &str) -> String {
    let mut pieces = text.split("/f/");
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.find('/').map_or(piece, |end| &piece[end..]);
        result.push_str("/f/GRANT");
        result.push_str(rest);
    }
    result
}

/// The text without the lines that say that sign-in is switched off, and without
/// empty ones: each process remembers for some seconds whether there are accounts,
/// and pages word that line by it.
fn without_open_line(text: &str) -> String {
    let says_open = |line: &str| line.contains("switched off: everyone who reaches this");
    let kept: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty() && !says_open(line)).collect();
    kept.join("\n")
}
