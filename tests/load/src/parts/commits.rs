//! `commits`: latency of pages with commits of a repository, read from what is stored, beside the same pages without.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{CodeHost, Dialect};
use reqwest::Method;
use serde_json::{Value, json};

use super::Setting;
use super::read::{self, Question};
use crate::report::Table;
use crate::subject::{self, Stored, Subject};

/// Commits between the run that passed and the one that failed; as many as are examined.
const COMMITS: usize = 50;
const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210";
const TARGET: &str = "p50 ≤ 10";
const NAME: &str = "shop";

/// Measures one engine.
///
/// # Errors
/// When the service does not start, or the suspects are not read.
pub async fn measure(setting: Setting, backend: Backend) -> Result<Table> {
    let more = [("SERVICE_SECRET_KEY", KEY), ("SERVICE_EGRESS_ALLOW", "127.0.0.0/8")];
    let subject = Subject::start_with(backend, &more).await?;
    let host = CodeHost::start().await?;
    let commit = |number: usize| {
        let file = format!("src/part-{}.ts", number % 7);
        // Some of them take away what the test looks for.
        let label = if number < COMMITS / 2 { "Place order" } else { "Buy" };
        let text = format!("<button>{label}</button> {number}\n");
        host.commit(&format!("Change {number}"), &[(file.as_str(), Some(text.as_bytes()))])
    };
    let green = commit(0)?;
    let mut red = green.clone();
    for number in 1..=COMMITS {
        red = commit(number)?;
    }
    let client = subject.client();
    let Stored { project, .. } = run(&subject, setting, "passed", &green).await?;
    let repository = json!({
        "repositoryUrl": host.address(Dialect::GitHub), "repositoryProvider": "github", "scmToken": TOKEN,
    });
    client.send_json(Method::PATCH, &format!("/api/projects/{project}"), &repository).await?.success()?;
    let Stored { run, .. } = self::run(&subject, setting, "failed", &red).await?;
    let mut table = Table::new(
        format!("Pages with {COMMITS} stored commits, {}", subject::engine(backend)),
        &read::COLUMNS,
    );
    table.note(read::completed(&subject).await?);
    let clusters: Value = client.json(&format!("/api/projects/{project}/failure-clusters")).await?;
    let cluster = clusters["items"][0]["id"].as_i64().context("no failure cluster")?;
    // What is read once is stored.
    let suspects: Value = client.json(&format!("/api/failure-clusters/{cluster}/commits")).await?;
    ensure!(suspects["range"]["examinedCommits"] == COMMITS, "the suspects were not read: {suspects}");
    let paths = [
        ("page: cluster, without suspects", format!("/failure-clusters/{cluster}")),
        ("page: cluster, with suspects", format!("/failure-clusters/{cluster}?suspects=show")),
        ("page: run, without commits", format!("/test-runs/{run}?tab=regression")),
        ("page: run, with commits", format!("/test-runs/{run}?tab=regression&commits=list")),
        ("suspects of a cluster", format!("/api/failure-clusters/{cluster}/commits")),
    ];
    let questions = paths.map(|(name, path)| Question::get(name, path, TARGET));
    read::ask(&mut table, setting, &client, questions.into()).await?;
    Ok(table)
}

/// A full run of one test at a commit.
async fn run(subject: &Subject, setting: Setting, status: &str, commit: &str) -> Result<Stored> {
    let hours = if status == "passed" { 2 } else { 1 };
    let start = Timestamp(setting.until.millis() - hours * 60 * 60 * 1000).to_iso();
    let error = "TimeoutError: locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for \
        getByRole('button', { name: 'Place order' })";
    let body = json!({
        "projectName": NAME, "status": status, "startTime": start, "duration": 1_000, "branch": "main",
        "commit": commit, "isFullRun": true, "metadata": { "scm": { "defaultBranch": "main" } },
        "testCases": [{
            "title": "pays by card", "location": "tests/pay.spec.ts:3:1", "status": status, "duration": 900,
            "error": (status == "failed").then_some(error),
        }],
    });
    subject::submit(&subject.client(), Bytes::from(body.to_string())).await
}
