//! `start`: from spawning a process to its first healthy answer, as the local
//! runner and as a function under an emulated runtime.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use callboard_store::Backend;
use callboard_test_support::{Client, Function, Process, S3Server, Settings, TestDatabase};

use super::Setting;
use crate::load::quantile_ms;
use crate::report::{Table, tenths};
use crate::subject::{self, engine};

const STARTS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// Measures all of it.
///
/// # Errors
/// When the runner does not start.
pub async fn measure(setting: Setting, backends: &[Backend]) -> Result<Table> {
    let mut table =
        Table::new("From spawn to the first healthy answer", &["what", "p50 ms", "p95 ms", "target"]);
    for backend in backends {
        let database = TestDatabase::fresh(*backend).await?;
        let mut times = Vec::new();
        for _ in 0..setting.bounded(STARTS) {
            times.push(start_runner(&subject::settings(&database)).await?);
        }
        add(&mut table, format!("local runner, {}", engine(*backend)), &times, "≤ 100");
    }
    if backends.contains(&Backend::Postgres) {
        match cold_starts(setting).await {
            Ok(times) => add(&mut table, "function health, PostgreSQL and S3".to_owned(), &times, "≤ 60"),
            Err(error) => table.note(format!("Functions were not started: {error:#}.")),
        }
    }
    table.note(
        "Migrations are done before. Functions are those of the release profile; deployed ones are smaller.",
    );
    Ok(table)
}

fn add(table: &mut Table, what: String, times: &[Duration], target: &'static str) {
    table.row(vec![
        what.into(),
        tenths(quantile_ms(times, 0.5)),
        tenths(quantile_ms(times, 0.95)),
        target.into(),
    ]);
}

async fn start_runner(settings: &Settings) -> Result<Duration> {
    // Nobody else is given a port that was free a moment ago so soon again.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let client = Client::new(format!("http://127.0.0.1:{port}"))?;
    let mut settings = settings.clone();
    settings.push(("SERVICE_PORT".to_owned(), port.to_string()));
    let begun = Instant::now();
    let mut process = Process::start("callboard", &settings)?;
    while begun.elapsed() < PATIENCE {
        if client.get("/api/health").await.is_ok_and(|answer| answer.status.is_success()) {
            return Ok(begun.elapsed());
        }
        if let Some(status) = process.ended()? {
            anyhow::bail!("callboard ended with {status}: {}", process.output());
        }
        tokio::time::sleep(PAUSE).await;
    }
    anyhow::bail!("callboard did not answer: {}", process.output())
}

async fn cold_starts(setting: Setting) -> Result<Vec<Duration>> {
    let database = TestDatabase::fresh(Backend::Postgres).await?;
    let bucket = S3Server::start().await?;
    let mut settings = bucket.settings();
    settings.push(("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()));
    settings.push(("SERVICE_SITE_URL".to_owned(), "https://callboard.example.org".to_owned()));
    let mut times = Vec::new();
    for _ in 0..setting.bounded(STARTS) {
        let request = http::Request::get("https://callboard.example.org/api/health").body(Bytes::new())?;
        let begun = Instant::now();
        let function = Function::start("health", &settings).await?;
        let answer = function.invoke("GET /api/health", &request).await.context("the first event")?;
        ensure!(answer.status.is_success(), "health answered {}: {}", answer.status, answer.text());
        times.push(begun.elapsed());
    }
    Ok(times)
}
