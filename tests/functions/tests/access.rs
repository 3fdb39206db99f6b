//! The authorization matrix, asked of functions that share nothing but the
//! database and the bucket.

use anyhow::{Context, Result};
use callboard_domain::time::Timestamp;
use callboard_http::Clock;
use callboard_query::accounts::enabling;
use callboard_store::{Store, rate_limits};
use callboard_test_functions::both::{Both, get, settings};
use callboard_test_functions::deployment::Deployment;
use callboard_test_support::access::{AUTH_SECRET, Cast, Holding, diagnosis, suggestion};
use serde_json::{Value, json};

const HOST: &str = "tests.example.org";
/// Wrong keys come by the hundred, and in functions the limits cannot be
/// turned off: they are forgotten instead, more often than they are reached.
const FORGOTTEN_AFTER: usize = 20;

async fn hold(both: &Both, name: &str) -> Result<Holding> {
    let stored = both.upload_run(name).await?;
    let number = |value: &Value| value.as_i64().context("an id");
    let run = number(&stored["runId"])?;
    let client = both.runner.client();
    let detail = client.json(&format!("/api/test-runs/{run}")).await?;
    let cases = detail["testCases"].as_array().context("test cases")?;
    let failed = cases.iter().find(|case| case["status"] == "failed").context("the failed one")?;
    let execution = number(&failed["id"])?;
    let files = client.json(&format!("/api/test-run-cases/{execution}/files")).await?;
    let found = client.json(&format!("/api/test-run-cases/{execution}")).await?;
    let project = number(&stored["projectId"])?;
    let link = json!({ "entityType": "test_run", "entityId": run, "url": "https://tracker.test/7" });
    let link = client.post_json("/api/links", &link).await?;
    let marker = json!({ "label": "Release", "occurredAt": "2026-01-01", "category": "release" });
    let marker = client.post_json(&format!("/api/projects/{project}/markers"), &marker).await?;
    let function = json!({
        "name": "pay", "kind": "helper", "module": "./pages", "steps": [{ "action": "goto", "value": "/pay" }],
    });
    let function = client.post_json(&format!("/api/projects/{project}/test-functions"), &function).await?;
    let export = json!({ "kind": "run", "id": run, "format": "csv" });
    let export = client.post_json("/api/exports", &export).await?;
    let policy = json!({ "name": "strict", "policy": { "maxFailed": 0 } });
    let policy = client.post_json(&format!("/api/projects/{project}/gate-policies"), &policy).await?;
    let cluster = number(&found["cluster"]["id"])?;
    let store = both.database.store().await?;
    let suggestion = suggestion(&store, project, cluster, Clock::system().now()).await?;
    let diagnosis = diagnosis(&store, project, cluster, Clock::system().now()).await?;
    Ok(Holding {
        project,
        name: name.to_owned(),
        run,
        test_case: number(&failed["testCaseId"])?,
        execution,
        file: number(&files["items"][0]["id"])?,
        link: number(&link["link"]["id"])?,
        marker: number(&marker["marker"]["id"])?,
        function: number(&function["testFunction"]["id"])?,
        cluster,
        suggestion,
        diagnosis,
        policy: number(&policy["policy"]["id"])?,
        export: number(&export["export"]["id"])?,
    })
}

async fn forget_limits(store: &Store, now: Timestamp) -> Result<()> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let mut session = store.db().begin().await?;
    rate_limits::purge(&mut session, Timestamp(now.millis() + DAY_MS), i64::from(u16::MAX)).await?;
    Ok(session.commit().await?)
}

#[tokio::test]
async fn every_function_admits_whom_the_table_names() {
    let both = Both::start().await.unwrap();
    let first = hold(&both, "first").await.unwrap();
    let second = hold(&both, "second").await.unwrap();
    let mut secured = settings(&both.database, &both.bucket);
    // Streams end soon, so that their answers are whole.
    let own = [
        ("SERVICE_AUTH_ENABLED", "true"),
        ("SERVICE_AUTH_SECRET", AUTH_SECRET),
        ("SERVICE_SSE_MAX_SECONDS", "1"),
    ];
    secured.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let store = both.database.store().await.unwrap();
    let now = Clock::system().now();
    // What `callboard migrate` notes when the deployment is told that callers sign in.
    enabling::deploy(&store, true, now).await.unwrap();
    let functions = Deployment::new(secured).unwrap();
    // Accounts from before the first start would see all projects.
    let nobody = functions.send(&get("/api/projects").unwrap()).await.unwrap();
    assert_eq!(nobody.status, 401, "{}", nobody.text());
    let cast = Cast::assemble(&store, now, first, second).await.unwrap();
    let mut wrong = Vec::new();
    for (asked, question) in cast.questions().enumerate() {
        if asked % FORGOTTEN_AFTER == 0 {
            forget_limits(&store, now).await.unwrap();
        }
        let request = cast.request(&question, HOST).unwrap();
        let answer = functions.send(&request).await.unwrap();
        if let Err(sentence) = question.judge(answer.status.as_u16(), &answer.body) {
            wrong.push(sentence);
        }
    }
    assert!(wrong.is_empty(), "{} answers differ from the table:\n{}", wrong.len(), wrong.join("\n"));
}
