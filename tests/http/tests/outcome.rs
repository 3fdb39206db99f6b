//! How tests end over their attempts: by Playwright's rule, wherever it is
//! asked, and for stored runs that were judged by another one.

use std::collections::BTreeMap;

use callboard_domain::time::Timestamp;
use callboard_ingest::{ReevaluateOutcomes, reevaluate_outcomes};
use callboard_store::Backend;
use callboard_test_support::{Client, Service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::cluster_rules::execute;
use crate::comparison::{submit, work};
use crate::live::context;
use crate::rows::{changed, every_row, texts};
use crate::store::contents;

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect(path)
}

/// A run of `main` that started so many hours ago.
fn hours_ago(service: &Service, hours: i64, cases: Vec<Value>) -> Value {
    let start = Timestamp(service.state().now().millis() - hours * 3_600_000).to_iso();
    let scm = json!({ "scm": { "defaultBranch": "main" } });
    with(run("shop", "failed", cases), json!({ "startTime": start, "branch": "main", "metadata": scm }))
}

/// The attempts of a test, in the order of their retries.
fn tried(title: &str, statuses: &[&str]) -> Vec<Value> {
    (0..).zip(statuses).map(|(retry, status)| attempt(title, status, retry)).collect()
}

/// A test with its attempts, and how it ends: status, whether it is flaky, and the
/// retry that decides.
type End = (&'static str, &'static [&'static str], (&'static str, bool, u32));

const ENDS: [End; 7] = [
    ("broken off while it was tried again", &["failed", "interrupted"], ("failed", false, 0)),
    ("run again with its serial group", &["passed", "failed"], ("passed", true, 0)),
    ("passed and broken off", &["passed", "interrupted"], ("passed", false, 0)),
    ("skips itself", &["failed", "skipped"], ("passed", true, 1)),
    ("timed out, then waited", &["timedOut", "didnotrun"], ("timedout", false, 0)),
    ("only broken off", &["interrupted", "interrupted"], ("interrupted", false, 1)),
    ("passed on a retry", &["failed", "timedOut", "passed"], ("passed", true, 2)),
];

#[tokio::test]
async fn a_failure_is_not_undone_by_an_attempt_that_was_broken_off() {
    for_each_service(async |service| {
        let client = service.client();
        let cases: Vec<Value> = ENDS.iter().flat_map(|(title, statuses, _)| tried(title, statuses)).collect();
        let mut reversed = cases.clone();
        reversed.reverse();
        for cases in [cases, reversed] {
            let id = submit(client, hours_ago(service, 2, cases)).await;
            let items = get(client, &format!("/api/test-runs/{id}/executions?sort=id")).await;
            for (title, statuses, (status, flaky, deciding)) in ENDS {
                let items = items["items"].as_array().expect("items");
                let item = items.iter().find(|item| item["title"] == title).expect(title);
                let found = (item["status"].as_str(), item["flaky"].as_bool(), item["duration"].as_u64());
                assert_eq!(found, (Some(status), Some(flaky), Some(u64::from(100 + deciding))), "{title}");
                let detail = get(client, &format!("/api/test-run-cases/{}", item["id"])).await;
                let attempts = detail["attempts"].as_array().expect("attempts");
                let decides: Vec<bool> = attempts.iter().map(|one| one["deciding"] == true).collect();
                let expected: Vec<bool> = (0..).zip(statuses).map(|(retry, _)| retry == deciding).collect();
                assert_eq!(decides, expected, "every attempt is shown, one decides: {title}");
                let has_failed = statuses.iter().any(|status| ["failed", "timedOut"].contains(status));
                assert_eq!(item["clusterId"].is_i64(), has_failed, "{title}: {item}");
                assert_eq!(item["error"].is_string(), ["failed", "timedout"].contains(&status), "{title}");
            }
            let told = get(client, &format!("/api/test-runs/{id}")).await;
            let counts = [
                "totalTests",
                "passedTests",
                "failedTests",
                "timedOutTests",
                "flakyTests",
                "skippedTests",
                "interruptedTests",
            ];
            assert_eq!(counts.map(|count| told[count].as_i64().expect(count)), [7, 4, 2, 1, 3, 0, 1]);
            let export = format!("/api/test-runs/{id}/export?format=junit&include=attempts");
            let junit = client.get(&export).await.expect("exported").text();
            for (element, count) in
                [("<failure", 2), ("<rerunError", 2), ("<flakyFailure", 4), ("<error", 1), ("<skipped", 0)]
            {
                assert_eq!(junit.matches(element).count(), count, "{element}: {junit}");
            }
        }
    })
    .await;
}

/// The statements of the migration that enqueue the job.
fn enqueueing(backend: Backend) -> Vec<String> {
    let text = match backend {
        Backend::Sqlite => include_str!("../../../migrations/sqlite/0032_outcomes.sql"),
        Backend::Postgres => include_str!("../../../migrations/postgres/0032_outcomes.sql"),
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let statements = lines.join("\n");
    let about_jobs = |statement: &&str| statement.contains("'job'") || statement.contains("INTO jobs");
    statements.split(';').filter(about_jobs).map(str::to_owned).collect()
}

/// Where an older rule took the last attempt for the outcome, the attempts that
/// lead there by the rule of today.
fn as_the_last_one_decides(statuses: &[&'static str]) -> Vec<&'static str> {
    match statuses {
        [.., "interrupted"] => vec!["interrupted"; statuses.len()],
        ["passed", "failed"] => vec!["failed"; 2],
        [.., "skipped"] => vec!["skipped"; statuses.len()],
        other => other.to_vec(),
    }
}

/// The stored attempts of every test, without where their evidence lies.
async fn stored_attempts(service: &Service) -> BTreeMap<String, String> {
    let rows = "SELECT c.title || '|' || e.attempts FROM executions e JOIN test_cases c ON c.id = e.test_case_id \
        WHERE e.attempts IS NOT NULL";
    let rows = texts(service, rows).await;
    let stored = rows.iter().map(|row| {
        let (title, attempts) = row.split_once('|').expect("a title");
        let mut attempts: Vec<Value> = serde_json::from_str(attempts).expect("JSON");
        for attempt in &mut attempts {
            attempt.as_object_mut().expect("an attempt").remove("e");
        }
        (title.to_owned(), json!(attempts).to_string())
    });
    stored.collect()
}

/// What the failure clusters of the project say of themselves.
async fn clusters(service: &Service) -> Vec<String> {
    let found = get(service.client(), "/api/projects/1/failure-clusters?sort=id").await;
    let items = found["items"].as_array().expect("items").iter();
    let mut told: Vec<String> = items
        .map(|item| {
            ["signature", "status", "occurrences", "affectedTests"].map(|key| item[key].to_string()).join("|")
        })
        .filter(|told| !told.contains("|0|0"))
        .collect();
    told.sort_unstable();
    told
}

#[tokio::test]
async fn stored_runs_are_judged_by_the_rule_of_today() {
    for &backend in callboard_test_support::backends() {
        let judged = Service::start(backend).await.expect("a service");
        let old = Service::start(backend).await.expect("a service");
        let run_of = |hours: i64, statuses_of: fn(&[&'static str]) -> Vec<&'static str>| {
            let cases = ENDS.iter().flat_map(|(title, statuses, _)| tried(title, &statuses_of(statuses)));
            let cases: Vec<Value> = cases.chain([attempt("stands", "passed", 0)]).collect();
            hours_ago(&judged, hours, cases)
        };
        // What came before and after is judged alike by both rules; its failures are known to both services.
        let failing: Vec<Value> = ENDS.iter().map(|(title, ..)| attempt(title, "failed", 0)).collect();
        let passing: Vec<Value> = ENDS.iter().map(|(title, ..)| attempt(title, "passed", 0)).collect();
        let (before, after) = (hours_ago(&judged, 9, failing), hours_ago(&judged, 3, passing));
        let (real, stand_in) = (
            run_of(6, <[_]>::to_vec),
            with(run_of(6, as_the_last_one_decides), json!({ "status": "passed" })),
        );
        let stand_in = with(stand_in, json!({ "startTime": real["startTime"] }));
        for (service, runs) in [(&judged, [&before, &real, &after]), (&old, [&before, &stand_in, &after])] {
            for run in runs {
                submit(service.client(), run.clone()).await;
            }
            work(service).await;
        }
        let expected = contents(&judged).await;
        assert_ne!(contents(&old).await, expected);

        // From here on the rows are those that the older rule left of the real attempts.
        for (title, attempts) in stored_attempts(&judged).await {
            execute(&old, format!(
                "UPDATE executions SET attempts = '{attempts}' WHERE attempts IS NOT NULL AND test_case_id = \
                 (SELECT id FROM test_cases WHERE title = '{title}')"
            ))
            .await;
        }
        for statement in enqueueing(backend) {
            execute(&old, statement).await;
        }
        work(&old).await;
        assert_eq!(contents(&old).await, expected, "{backend:?}");
        assert_eq!(clusters(&old).await, clusters(&judged).await);
        for run in 1..=3 {
            let columns = ["newRegressions", "newFlaky", "fixedTests", "status", "isGreen"];
            let (one, other) = (
                get(old.client(), &format!("/api/test-runs/{run}")).await,
                get(judged.client(), &format!("/api/test-runs/{run}")).await,
            );
            assert_eq!(columns.map(|key| &one[key]), columns.map(|key| &other[key]), "run {run}");
        }

        // All over again, in steps, as after a crash: nothing is left to correct.
        let before = every_row(&old, &["jobs", "id_counters"]).await;
        let mut job = Some(ReevaluateOutcomes::default());
        let mut steps = 0;
        while let Some(next) = job {
            job = reevaluate_outcomes(&context(&old), next, old.state().now()).await.expect("a step");
            steps += 1;
        }
        assert!(steps > 3, "a step for each run at least, not {steps}");
        let rows = every_row(&old, &["jobs", "id_counters"]).await;
        assert_eq!(changed(&before, &rows), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn a_service_without_runs_has_nothing_to_judge_anew() {
    for_each_service(async |service| {
        for statement in enqueueing(service.state().store().backend()) {
            execute(service, statement).await;
        }
        let jobs = "SELECT key FROM jobs WHERE kind = 'reevaluate_outcomes'";
        assert_eq!(texts(service, jobs).await, [] as [&str; 0]);
        submit(service.client(), hours_ago(service, 1, vec![attempt("stands", "passed", 0)])).await;
        for statement in enqueueing(service.state().store().backend()) {
            execute(service, statement).await;
        }
        assert_eq!(texts(service, jobs).await, ["reevaluate_outcomes"]);
    })
    .await;
}
