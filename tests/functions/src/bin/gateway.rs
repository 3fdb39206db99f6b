//! The deployed functions behind a real port, for checks from outside: a front that
//! makes events of requests, as many instances of each function as are wanted, the
//! scheduler, a database and a bucket. Beside it the local runner with a database
//! and a bucket of its own, to compare with.
//!
//! * `callboard-test-gateway` prints one line of JSON with the addresses, and ends
//!   with its standard input. A line `cors` there gives the bucket its CORS rule, a line
//!   `tally` prints how often and for how long each function was invoked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use callboard_store::Backend;
use callboard_test_functions::deployment::Deployment;
use callboard_test_support::{Answer, EventTooLarge, Runner, S3Server, Settings, TestDatabase};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Instances of each function.
const INSTANCES: usize = 4;
/// What an HTTP API accepts at all.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
/// The platform invokes `jobs` every minute; here a minute is shorter.
const SCHEDULE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let (database, bucket) = (TestDatabase::fresh(Backend::Postgres).await?, S3Server::start().await?);
    let mut settings = shared(&database, &bucket);
    // Uploaded pages are opened under the other name of this machine.
    settings.push(("SERVICE_SITE_URL".to_owned(), format!("http://localhost:{port}")));
    settings.push(("SERVICE_SANDBOX_ORIGIN".to_owned(), format!("http://127.0.0.1:{port}")));
    // The gateway waits 30 seconds for a whole answer.
    settings.push(("SERVICE_SSE_MAX_SECONDS".to_owned(), "5".to_owned()));
    let functions = Deployment::new(settings)?.with_instances(INSTANCES);
    let front = Arc::new(Front { functions, tally: Tally::default() });
    let schedule = tokio::spawn(keep_schedule(Arc::clone(&front)));
    let router = Router::new().fallback(pass_on).with_state(Arc::clone(&front));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });

    let (own_database, own_bucket) =
        (TestDatabase::fresh(Backend::Postgres).await?, S3Server::start().await?);
    let mut settings = shared(&own_database, &own_bucket);
    // What functions answer at most.
    settings.push(("SERVICE_GATEWAY_MAX_BYTES".to_owned(), "4404019".to_owned()));
    let runner = Runner::start(&settings).await?;

    let addresses = json!({
        "functions": format!("http://localhost:{port}"),
        "content": format!("http://127.0.0.1:{port}"),
        "runner": runner.client().base_url(),
        "bucket": bucket.endpoint(),
    });
    writeln!(std::io::stdout(), "{addresses}")?;
    let mut commands = commands();
    while let Some(command) = commands.recv().await {
        match command.as_str() {
            "cors" => [&bucket, &own_bucket].into_iter().for_each(S3Server::add_cors_rule),
            "tally" => writeln!(std::io::stdout(), "{}", front.tally.as_json())?,
            other => eprintln!("unknown command: {other}"),
        }
    }
    schedule.abort();
    serving.abort();
    Ok(())
}

/// What both are told.
fn shared(database: &TestDatabase, bucket: &S3Server) -> Settings {
    let mut settings = bucket.settings();
    let own = [
        ("SERVICE_DATABASE_URL", database.url()),
        ("SERVICE_DATABASE_CONNECTIONS", "2"),
        ("SERVICE_AUTH_ENABLED", "true"),
        ("SERVICE_AUTH_SECRET", "5b0f7a1c9d3e48f2a6b4c0d17e9f83526a4d1c0b9e8f7352"),
        ("SERVICE_SECRET_KEY", "c41d9be07f5a3826e1b0d4f79a8c6352d0e7f1a2b3c4859617283940a5b6c7d8"),
    ];
    settings.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    settings
}

/// Lines of our input, until whoever started this closes it.
fn commands() -> mpsc::UnboundedReceiver<String> {
    let (sender, commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    commands
}

/// The functions, and what they were asked.
struct Front {
    functions: Deployment,
    tally: Tally,
}

/// Invocations of each function and the milliseconds they took together.
#[derive(Default)]
struct Tally(Mutex<BTreeMap<String, (u64, u64)>>);

impl Tally {
    fn add(&self, function: &str, took: Duration) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (times, ms) = kept.entry(function.to_owned()).or_default();
        *times += 1;
        *ms += u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    }

    fn as_json(&self) -> Value {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|(name, (times, ms))| (name.clone(), json!({ "times": times, "ms": ms }))).collect()
    }
}

/// Has the work done that is due, again and again.
async fn keep_schedule(front: Arc<Front>) {
    loop {
        tokio::time::sleep(SCHEDULE).await;
        let began = Instant::now();
        if let Err(error) = front.functions.tick().await {
            eprintln!("the schedule: {error:#}");
        }
        front.tally.add("jobs", began.elapsed());
    }
}

/// One request through the gateway.
async fn pass_on(State(front): State<Arc<Front>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "Request Too Long");
    };
    let what = format!("{} {}", parts.method, parts.uri.path());
    let function = front.functions.function_of(parts.uri.path()).to_owned();
    let began = Instant::now();
    let answer = front.functions.send(&Request::from_parts(parts, body)).await;
    front.tally.add(&function, began.elapsed());
    match answer {
        Ok(answer) => answered(answer),
        Err(error) => {
            eprintln!("{what}: {error:#}");
            match error.is::<EventTooLarge>() {
                true => refused(StatusCode::PAYLOAD_TOO_LARGE, "Request Too Long"),
                false => refused(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
            }
        }
    }
}

fn answered(answer: Answer) -> Response<Body> {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

fn refused(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({ "message": message }).to_string()));
    *response.status_mut() = status;
    response
}
