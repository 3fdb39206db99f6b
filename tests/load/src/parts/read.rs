//! `read`: latency of every list, detail, page and tool on a long history, the
//! tools that write included. What a build does not serve is named, not measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use callboard_domain::ids::{ExecutionId, RunId};
use callboard_store::Backend;
use callboard_store::db::Statement;
use callboard_test_support::{Answer, Client};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Setting;
use super::history::History;
use crate::load::{Plan, drive};
use crate::report::{Table, hundredths, tenths};
use crate::subject::{self, Stored, Subject};

const REQUESTS: usize = 100;
/// No row of the table sends for longer at one concurrency.
const BUDGET: Duration = Duration::from_secs(3);

static LAST_EXECUTION: Statement = Statement::new(
    "read::LAST_EXECUTION",
    "SELECT id, test_case_id FROM executions WHERE project_id = $1 AND run_id = $2 AND id <= $3 ORDER BY id DESC LIMIT 1",
);

static COMPLETIONS: Statement = Statement::new(
    "read::COMPLETIONS",
    "SELECT COUNT(*) FROM jobs WHERE kind = $1 AND state IN ('queued', 'leased')",
);

/// How long the work behind the runs that were just submitted is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// One question.
#[derive(Debug, Clone)]
pub(super) struct Question {
    name: &'static str,
    path: String,
    /// JSON-RPC messages to post in turn instead of a GET. `<time>` in them
    /// stands for how often the question was asked before.
    messages: Vec<Value>,
    asked: Arc<AtomicUsize>,
    /// Targets at concurrency 1 and 8.
    target: &'static str,
}

/// Measures one engine.
///
/// # Errors
/// When the history holds no execution.
pub async fn measure(setting: Setting, backend: Backend, history: &History) -> Result<Table> {
    let title = format!("Reads at {} executions, {}", history.executions(), subject::engine(backend));
    let mut table = Table::new(title, &COLUMNS);
    table.note(completed(&history.subject).await?);
    ask(&mut table, setting, &history.subject.client(), questions(history).await?).await?;
    Ok(table)
}

/// The columns of a table of questions.
pub(super) const COLUMNS: [&str; 7] =
    ["what", "KB", "p50 ms", "p95 ms", "p50 ms at 8", "p95 ms at 8", "target p95"];

/// Asks each question often and adds a row with its latencies.
pub(super) async fn ask(
    table: &mut Table,
    setting: Setting,
    client: &Client,
    questions: Vec<Question>,
) -> Result<()> {
    let mut missing = Vec::new();
    for question in questions {
        let answer = question.ask(client).await?;
        // 400: this build does not know the sort or filter.
        if matches!(
            answer.status,
            StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED | StatusCode::BAD_REQUEST
        ) {
            missing.push(question.name);
            continue;
        }
        if !question.is_answered_by(&answer) {
            let text: String = answer.text().chars().take(200).collect();
            table.note(format!("{}: answered {}: {text}", question.name, answer.status));
            continue;
        }
        let mut cells = vec![question.name.into(), tenths(answer.body.len() as f64 / 1024.0)];
        for concurrency in [1_usize, 8] {
            let plan = Plan {
                concurrency,
                requests: setting.bounded(REQUESTS * concurrency.min(2)),
                budget: BUDGET,
            };
            let (client, asked) = (client.clone(), Arc::new(question.clone()));
            let measured = drive(plan, move |_| {
                let (client, asked) = (client.clone(), Arc::clone(&asked));
                async move {
                    let answer = asked.ask(&client).await?;
                    anyhow::ensure!(answer.status.is_success(), "answered {}", answer.status);
                    Ok(())
                }
            })
            .await?;
            cells.push(hundredths(measured.quantile_ms(0.5)));
            cells.push(hundredths(measured.quantile_ms(0.95)));
            if let Some(refusal) = measured.refusal {
                table.note(format!("{} at {concurrency}: {refusal}", question.name));
            }
        }
        cells.push(question.target.into());
        table.row(cells);
    }
    if !missing.is_empty() {
        table.note(format!("Not served by this build: {}.", missing.join(", ")));
    }
    Ok(())
}

impl Question {
    pub(super) fn get(name: &'static str, path: String, target: &'static str) -> Self {
        Self { name, path, messages: Vec::new(), asked: Arc::default(), target }
    }

    /// Calls of a tool, with these arguments in turn.
    fn tool(name: &'static str, tool: &str, arguments: &[Value]) -> Self {
        let messages = arguments.iter().map(|arguments| {
            json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            })
        });
        Self { messages: messages.collect(), ..Self::get(name, "/mcp".to_owned(), "≤ 15") }
    }

    async fn ask(&self, client: &Client) -> Result<Answer> {
        let time = self.asked.fetch_add(1, Ordering::Relaxed);
        match self.messages.get(time.checked_rem(self.messages.len()).unwrap_or_default()) {
            None => client.get(&self.path).await,
            Some(message) => {
                let request =
                    client.request(Method::POST, &self.path).header(CONTENT_TYPE, "application/json");
                let message = message.to_string().replace("<time>", &time.to_string());
                Answer::send(request.body(message)).await
            }
        }
    }

    /// A tool call can fail inside an answer of 200.
    fn is_answered_by(&self, answer: &Answer) -> bool {
        answer.status.is_success()
            && (self.messages.is_empty()
                || answer
                    .json()
                    .is_ok_and(|json| json["result"].is_object() && json["result"]["isError"] != json!(true)))
    }
}

async fn questions(history: &History) -> Result<Vec<Question>> {
    let (execution, _) = last_execution(&history.subject, history.newest).await?;
    let (_, case) = last_execution(&history.subject, history.longest).await?;
    let client = history.subject.client();
    let failed =
        first_of(&client, &format!("/api/test-runs/{}/executions?outcome=failing", history.newest.run), "id")
            .await?
            .unwrap_or(execution);
    let cluster = first_of(
        &client,
        &format!("/api/projects/{}/failure-clusters?sort=occurrences", history.newest.project),
        "id",
    )
    .await?;
    let (project, run) = (history.newest.project, history.newest.run);
    let mut questions = Vec::new();
    let mut get = |name, path: String| {
        questions.push(Question::get(name, path, "≤ 10, ≤ 40"));
    };
    get("projects", "/api/projects".to_owned());
    get("project menu", "/api/projects/menu".to_owned());
    get("overview", "/api/projects/overview".to_owned());
    get("project", format!("/api/projects/{project}"));
    get("search", "/api/search?q=cart".to_owned());
    get("facets", format!("/api/projects/{project}/facets"));
    get("latest run", format!("/api/projects/{project}/latest-run?branch=main"));
    get("runs", "/api/test-runs".to_owned());
    get("recent runs", "/api/test-runs/recent".to_owned());
    get("project runs", format!("/api/projects/{project}/test-runs"));
    get("project runs, branch", format!("/api/projects/{project}/test-runs?branch=main"));
    get("project runs, status", format!("/api/projects/{project}/test-runs?status=failed"));
    get("project runs, environment", format!("/api/projects/{project}/test-runs?environment=staging"));
    get("run", format!("/api/test-runs/{run}"));
    for (name, sort) in [
        ("executions, trouble first", "trouble"),
        ("executions, by id", "id"),
        ("executions, by duration", "duration"),
        ("executions, by start", "startedAt"),
        ("executions, by file", "file"),
    ] {
        get(name, format!("/api/test-runs/{run}/executions?sort={sort}"));
    }
    get("executions, failing", format!("/api/test-runs/{run}/executions?outcome=failing"));
    get("executions, text", format!("/api/test-runs/{run}/executions?q=cart"));
    get("summary", format!("/api/test-runs/{run}/summary"));
    get("insights", format!("/api/test-runs/{run}/insights"));
    get("failure groups", format!("/api/test-runs/{run}/failure-groups"));
    get("comparison with the baseline", format!("/api/test-runs/{run}/compare"));
    get("comparison with the previous run", format!("/api/test-runs/{run}/compare?with=previous"));
    get("export, CSV", format!("/api/test-runs/{run}/export?format=csv"));
    get("timeline", format!("/api/test-runs/{run}/timeline"));
    get("flaky tests", format!("/api/projects/{project}/flaky-tests"));
    get("flaky tests, 30 runs", format!("/api/projects/{project}/flaky-tests?runs=30"));
    get("slow tests", format!("/api/projects/{project}/slow-tests"));
    get("performance", format!("/api/projects/{project}/performance"));
    get("performance, 200 runs", format!("/api/projects/{project}/performance?limit=200"));
    get("spec health", format!("/api/projects/{project}/spec-health"));
    get("spec health, 90 days", format!("/api/projects/{project}/spec-health?days=90"));
    get("timeout opportunities", format!("/api/projects/{project}/timeout-opportunities"));
    get("quarantine", format!("/api/projects/{project}/quarantine"));
    get("clusters", format!("/api/projects/{project}/failure-clusters"));
    get("clusters, by occurrences", format!("/api/projects/{project}/failure-clusters?sort=occurrences"));
    get("clusters of all projects", "/api/failure-clusters".to_owned());
    if let Some(cluster) = cluster {
        get("cluster", format!("/api/failure-clusters/{cluster}"));
        get("cluster, occurrences", format!("/api/failure-clusters/{cluster}/occurrences"));
        get("cluster, tests", format!("/api/failure-clusters/{cluster}/test-cases"));
        get("fix plan", format!("/api/failure-clusters/{cluster}/fix-plan"));
    }
    get("explanation", format!("/api/test-run-cases/{failed}/explain"));
    get("locator healing", format!("/api/test-run-cases/{failed}/locator-healing"));
    get("reports of a run", format!("/api/test-runs/{run}/reports"));
    for (name, sort) in [
        ("catalogue, last run", "lastRun"),
        ("catalogue, by title", "title"),
        ("catalogue, by file", "file"),
        ("catalogue, by runs", "totalRuns"),
        ("catalogue, by flakiness", "flakyScore"),
        ("catalogue, by duration", "avgDuration"),
        ("catalogue, by pass rate", "passRate"),
    ] {
        get(name, format!("/api/projects/{project}/test-cases?sort={sort}"));
    }
    get("catalogue, text", format!("/api/projects/{project}/test-cases?q=voucher"));
    get("catalogue, one branch", format!("/api/projects/{project}/test-cases?branch=main"));
    get("test case", format!("/api/test-cases/{case}"));
    get("history", format!("/api/test-cases/{case}/history"));
    get("history, failed", format!("/api/test-cases/{case}/history?status=failed"));
    get("stability, by count", format!("/api/test-cases/{case}/stability-trend"));
    get("stability, by day", format!("/api/test-cases/{case}/stability-trend?by=day&days=90"));
    get("execution with evidence", format!("/api/test-run-cases/{execution}"));
    get("execution without", format!("/api/test-run-cases/{execution}?include=none"));
    get("files of an execution", format!("/api/test-run-cases/{execution}/files"));
    get("traces of an execution", format!("/api/test-run-cases/{execution}/traces"));
    get("health", "/api/health".to_owned());
    for (name, path) in [
        ("page: home", "/".to_owned()),
        ("page: projects", "/projects".to_owned()),
        ("page: project", format!("/projects/{project}")),
        ("page: run", format!("/test-runs/{run}")),
        ("page: test case", format!("/test-cases/{case}")),
        ("page: project, test cases", format!("/projects/{project}?tab=cases")),
        ("page: project, grid", format!("/projects/{project}?tab=grid")),
        ("page: project, flaky", format!("/projects/{project}?tab=flaky")),
        ("page: project, clusters", format!("/projects/{project}?tab=clusters")),
        ("page: execution", format!("/test-run-cases/{execution}")),
        ("page: failed execution", format!("/test-run-cases/{failed}")),
    ] {
        questions.push(Question::get(name, path, "≤ 15"));
    }
    macro_rules! tool {
        ($name:literal, $($arguments:tt),+) => {
            Question::tool(concat!("MCP ", $name), $name, &[$(json!($arguments)),+])
        };
    }
    questions.extend([
        tool!("list_projects", {}),
        tool!("get_project", {"projectId": project}),
        tool!("list_runs", {"projectId": project}),
        tool!("get_run", {"runId": run}),
        tool!("list_failed_cases", {"projectId": project}),
        tool!("list_flaky_tests", {"projectId": project}),
        tool!("get_test_case", {"testCaseId": case}),
        tool!("list_clusters", {"projectId": project}),
        tool!("get_test_case_context", {"executionId": failed}),
        tool!("get_case_screenshots", {"executionId": failed}),
        tool!("search_test_cases", {"projectId": project, "query": "voucher"}),
        tool!("get_test_run_case", {"executionId": execution}),
        tool!("list_recent_activity", {}),
        tool!("get_run_insights", {"runId": run}),
        tool!("get_spec_health", {"projectId": project}),
        tool!("get_slow_tests", {"projectId": project}),
        tool!("get_performance_trend", {"projectId": project}),
        tool!("get_test_stability_trend", {"testCaseId": case}),
        tool!("get_network_requests", {"runId": run}),
        tool!("get_failure_groups", {"runId": run}),
        tool!("get_locator_healing", {"executionId": failed}),
        tool!("search", {"query": "cart"}),
        tool!("list_case_traces", {"executionId": failed}),
        tool!("list_links", {"entityType": "test_case", "entityId": case}),
        tool!("list_tags", {}),
        tool!("get_project_test_catalog", {"projectId": project}),
        tool!("list_open_clusters", {}),
        tool!("get_instance_stats", {}),
        tool!("explain_failure", {"executionId": failed}),
        tool!("create_test_function", {
            "projectId": project, "name": "payWith<time>", "kind": "helper", "module": "tests/pay.ts",
            "steps": [{"action": "click", "role": "button", "name": "Pay"}],
        }),
    ]);
    if let Some(cluster) = cluster {
        questions.extend([
            tool!("get_cluster", {"clusterId": cluster}),
            tool!("get_cluster_context", {"clusterId": cluster}),
            tool!("get_cluster_diagnosis", {"clusterId": cluster}),
            tool!("get_fix_plan", {"clusterId": cluster}),
            tool!(
                "set_cluster_status",
                {"clusterId": cluster, "status": "ignored", "note": "Known, see <time>"},
                {"clusterId": cluster, "status": "open"}
            ),
            tool!("set_cluster_base_commit", {"clusterId": cluster, "commit": "abcdef0<time>"}),
        ]);
    }
    Ok(questions)
}

/// A field of the first item of a list; `None` when this build does not serve
/// the list, or it is empty.
async fn first_of(client: &Client, path: &str, field: &str) -> Result<Option<i64>> {
    let answer = client.get(path).await?;
    Ok(if answer.status.is_success() { answer.json()?["items"][0][field].as_i64() } else { None })
}

/// Waits until the work behind the runs that were submitted is done: what is
/// measured is a long history, not a service that is still taking it in. Tells how
/// long that took.
pub(super) async fn completed(subject: &Subject) -> Result<String> {
    let store = subject.database().store().await?;
    let begun = Instant::now();
    let mut left = i64::MAX;
    while left > 0 && begun.elapsed() < PATIENCE {
        let row = store.db().read().await?.first(&COMPLETIONS, vec!["completion".into()]).await?;
        left = row.context("no count of jobs")?.reader().int()?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    store.db().close().await;
    let seconds = begun.elapsed().as_secs();
    Ok(match left {
        0 => {
            format!("The work behind the runs was done {seconds} s after the last submit; reads begin then.")
        }
        _ => format!("The work behind {left} runs was not done {seconds} s after the last submit."),
    })
}

/// The last execution of a run, with its test case.
async fn last_execution(subject: &Subject, of: Stored) -> Result<(i64, i64)> {
    let store = subject.database().store().await?;
    let (_, last) = ExecutionId::range_of(RunId(of.run));
    let args = vec![of.project.into(), of.run.into(), last.into()];
    let row = store.db().read().await?.first(&LAST_EXECUTION, args).await?;
    store.db().close().await;
    let row = row.context("the run holds no execution")?;
    let mut reader = row.reader();
    Ok((reader.int()?, reader.int()?))
}
