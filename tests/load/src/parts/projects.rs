//! `projects`: latency of the reads and pages that look at many projects at
//! once, with a thousand small ones.

use std::time::Duration;

use anyhow::{Result, bail};
use callboard_store::Backend;

use super::Setting;
use super::read::{self, Question};
use crate::generator::{Payload, Runs};
use crate::load::{Plan, drive};
use crate::report::Table;
use crate::subject::{self, Subject};

/// Projects; a tenth where a glimpse is enough.
const PROJECTS: usize = 1_000;
/// Tests of each.
const TESTS: usize = 80;
/// Days over which their runs are spread.
const DAYS: u64 = 90;
/// Runs that are sent at once.
const CONCURRENCY: usize = 4;
/// Most time for filling.
const BUDGET: Duration = Duration::from_secs(600);
const TARGET: &str = "p50 ≤ 10";

const QUESTIONS: [(&str, &str); 24] = [
    ("page: analytics", "/analytics"),
    ("page: analytics, 90 days", "/analytics?days=90"),
    ("page: home", "/"),
    ("page: projects", "/projects"),
    ("page: projects in the settings", "/settings/projects"),
    ("page: storage", "/settings/storage"),
    ("portfolio", "/api/analytics/portfolio"),
    ("pass rates by day", "/api/analytics/pass-rate-heatmap"),
    ("flaky tests", "/api/analytics/flaky-leaderboard"),
    ("wasted time", "/api/analytics/wasted-time"),
    ("time of runs", "/api/analytics/ci-time-trend"),
    ("regressions", "/api/analytics/regression-velocity"),
    ("slow endpoints", "/api/analytics/slow-endpoints"),
    ("clusters by type", "/api/analytics/cluster-landscape"),
    ("insights, 90 days", "/api/analytics/insights?days=90"),
    ("browsers", "/api/analytics/browser-matrix"),
    ("overview", "/api/projects/overview"),
    ("projects, 100", "/api/projects?limit=100"),
    ("project menu", "/api/projects/menu"),
    ("search", "/api/search?q=project"),
    ("runs", "/api/test-runs"),
    ("recent runs", "/api/test-runs/recent"),
    ("clusters", "/api/failure-clusters"),
    ("storage", "/api/admin/storage"),
];

/// Measures one engine.
///
/// # Errors
/// When the service does not start or refuses a run.
pub async fn measure(setting: Setting, backend: Backend) -> Result<Table> {
    let subject = Subject::start(backend).await?;
    let count = setting.bounded(PROJECTS);
    fill(setting, &subject, count).await?;
    let title = format!("Reads over {count} projects of {TESTS} executions, {}", subject::engine(backend));
    let mut table = Table::new(title, &read::COLUMNS);
    table.note(read::completed(&subject).await?);
    let questions = QUESTIONS.map(|(name, path)| Question::get(name, path.to_owned(), TARGET));
    read::ask(&mut table, setting, &subject.client(), questions.into()).await?;
    Ok(table)
}

/// One run of each project, each of another day.
async fn fill(setting: Setting, subject: &Subject, count: usize) -> Result<()> {
    let client = subject.client();
    let plan = Plan { concurrency: CONCURRENCY, requests: count, budget: BUDGET };
    let measured = drive(plan, move |number| {
        let client = client.clone();
        let (name, number) = (format!("project-{number:04}"), number as u64);
        async move {
            let runs = Runs::new(setting.seed + number, &name, Payload::Rich, TESTS, DAYS, setting.until);
            subject::submit(&client, runs.body(number % DAYS)?).await.map(drop)
        }
    });
    match measured.await?.refusal {
        Some(refusal) => bail!("a run was refused: {refusal}"),
        None => Ok(()),
    }
}
