//! What holds for the store whatever the requests.

use std::collections::BTreeMap;

use callboard_domain::ids::{ProjectId, RunId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_query::flakiness::judge_run;
use callboard_store::{Backend, Store, rollups, test_cases};
use callboard_test_support::{Service, Settings, TestDatabase, for_each_backend, for_each_service};
use proptest::strategy::Strategy as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use sqlx::Row as _;

use crate::builders::{attempt, passing, run, with};
use crate::live::sweep;
use crate::rows::texts;

/// Every row of every table whose content must not depend on how the same
/// results came in, once they are counted. Left out are ids, and streaks: within
/// one run, browser projects follow each other in the order in which they
/// arrived.
pub(crate) async fn contents(service: &Service) -> BTreeMap<&'static str, Vec<String>> {
    count(service).await;
    let tables = [
        (
            "executions",
            "SELECT c.title || '|' || b.name || '|' || e.outcome || '|' || e.retries || '|' || e.duration || '|' || e.total_duration \
             FROM executions e JOIN test_cases c ON c.id = e.test_case_id \
             JOIN browser_projects b ON b.project_id = e.project_id AND b.id = e.browser_id ORDER BY 1",
        ),
        (
            "test_state",
            "SELECT l.kind || '|' || c.title || '|' || s.total || '|' || s.passed || '|' || s.failed || '|' || s.timedout || '|' || \
             s.flaky || '|' || s.skipped || '|' || s.category || '|' || s.speed_class || '|' || s.flaky_score \
             FROM test_state s JOIN test_cases c ON c.id = s.test_case_id \
             JOIN lanes l ON l.project_id = s.project_id AND l.id = s.lane_id ORDER BY 1",
        ),
        (
            "test_daily",
            "SELECT l.kind || '|' || c.title || '|' || d.day || '|' || d.runs || '|' || d.passed || '|' || d.failed || '|' || d.flaky || '|' || \
             d.dur_sum || '|' || d.dur_n FROM test_daily d JOIN test_cases c ON c.id = d.test_case_id \
             JOIN lanes l ON l.project_id = d.project_id AND l.id = d.lane_id WHERE d.runs <> 0 ORDER BY 1",
        ),
        (
            "project_daily",
            "SELECT l.kind || '|' || d.day || '|' || d.runs || '|' || d.runs_passed || '|' || d.total || '|' || d.passed || '|' || d.failed || '|' || \
             d.flaky || '|' || d.skipped || '|' || d.timedout || '|' || d.tests_ms || '|' || d.wasted_ms || '|' || d.lost_ms FROM project_daily d JOIN lanes l ON l.project_id = d.project_id AND l.id = d.lane_id ORDER BY 1",
        ),
        (
            "test_runs",
            "SELECT start_time || '|' || status || '|' || total || '|' || passed || '|' || failed || '|' || flaky || '|' || skipped || '|' || \
             tests_ms || '|' || lost_ms || '|' || COALESCE(avg_ms, 0) || '|' || COALESCE(p90_ms, 0) FROM test_runs ORDER BY 1",
        ),
        (
            "spec_daily",
            "SELECT l.kind || '|' || d.prefix || '|' || d.day || '|' || d.executions || '|' || d.passed || '|' || d.failed || '|' || d.flaky || '|' || \
             d.dur_sum || '|' || d.dur_n FROM spec_daily d \
             JOIN lanes l ON l.project_id = d.project_id AND l.id = d.lane_id WHERE d.executions <> 0 ORDER BY 1",
        ),
        (
            "browser_daily",
            "SELECT b.name || '|' || d.day || '|' || d.passed || '|' || d.failed FROM browser_daily d \
             JOIN browser_projects b ON b.project_id = d.project_id AND b.id = d.browser_id WHERE d.passed + d.failed <> 0 ORDER BY 1",
        ),
        (
            "project_stats",
            "SELECT runs || '|' || test_cases || '|' || executions FROM project_stats ORDER BY 1",
        ),
        // A failure that no execution counts for any more leaves nothing but its cluster.
        (
            "failure_clusters",
            "SELECT k.signature || '|' || k.occurrences || '|' || k.affected_tests || '|' || k.first_seen_at || '|' || k.last_seen_at || '|' || \
             k.last_status || '|' || s.open_clusters FROM failure_clusters k JOIN project_stats s ON s.project_id = k.project_id \
             WHERE k.occurrences <> 0 ORDER BY 1",
        ),
        (
            "cluster_tests",
            "SELECT k.signature || '|' || c.title || '|' || t.n || '|' || t.first_at || '|' || t.last_at FROM cluster_tests t \
             JOIN failure_clusters k ON k.id = t.cluster_id JOIN test_cases c ON c.id = t.test_case_id ORDER BY 1",
        ),
        (
            "cluster_runs",
            "SELECT k.signature || '|' || r.start_time || '|' || t.n || '|' || t.flaky_n FROM cluster_runs t \
             JOIN failure_clusters k ON k.id = t.cluster_id JOIN test_runs r ON r.id = t.run_id ORDER BY 1",
        ),
        (
            "cluster_daily",
            "SELECT k.signature || '|' || t.day || '|' || t.n FROM cluster_daily t JOIN failure_clusters k ON k.id = t.cluster_id ORDER BY 1",
        ),
    ];
    let mut found = BTreeMap::new();
    for (name, sql) in tables {
        let rows = match service.state().store().db() {
            callboard_store::Db::Sqlite { readers, .. } => {
                let rows = sqlx::query(sql)
                    .fetch_all(&mut *readers.get().await.expect("a connection"))
                    .await
                    .expect(name);
                rows.iter().map(|row| row.get::<String, _>(0)).collect()
            }
            callboard_store::Db::Postgres(pool) => {
                let rows = sqlx::query(sql)
                    .fetch_all(&mut *pool.get().await.expect("a connection"))
                    .await
                    .expect(name);
                rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>()
            }
        };
        found.insert(name, rows);
    }
    found
}

/// Three runs on two days, with retries, two browsers, a test that is not in
/// every run, and one that fails for another reason when it is retried.
fn history() -> Vec<Value> {
    let browser = |case: Value, name: &str| with(case, json!({ "browser": { "projectName": name } }));
    let day = |run: Value, start: &str, id: &str| {
        with(
            run,
            json!({ "startTime": start, "clientRunId": id, "branch": "main", "environment": "staging" }),
        )
    };
    vec![
        day(
            run(
                "shop",
                "passed",
                vec![
                    browser(attempt("pays", "passed", 0), "desktop"),
                    browser(attempt("pays", "failed", 0), "mobile"),
                    browser(attempt("pays", "passed", 1), "mobile"),
                    browser(attempt("looks", "skipped", 0), "desktop"),
                ],
            ),
            "2026-01-01T10:00:00Z",
            "client-run-1",
        ),
        day(
            run(
                "shop",
                "failed",
                vec![
                    browser(attempt("pays", "failed", 0), "desktop"),
                    browser(
                        with(attempt("pays", "failed", 1), json!({ "error": "Error: the card was refused" })),
                        "desktop",
                    ),
                    browser(attempt("pays", "passed", 0), "mobile"),
                ],
            ),
            "2026-01-01T12:00:00Z",
            "client-run-2",
        ),
        day(
            run(
                "shop",
                "passed",
                vec![
                    browser(attempt("pays", "passed", 0), "desktop"),
                    browser(attempt("pays", "timedOut", 0), "mobile"),
                    browser(attempt("looks", "passed", 0), "desktop"),
                    browser(attempt("signs in", "passed", 0), "desktop"),
                ],
            ),
            "2026-01-03T08:00:00Z",
            "client-run-3",
        ),
    ]
}

/// Splits a submission into calls with a part of its test cases each.
fn split(submission: &Value, parts: usize) -> Vec<Value> {
    let cases = submission["testCases"].as_array().cloned().unwrap_or_default();
    let size = cases.len().div_ceil(parts.max(1)).max(1);
    cases.chunks(size).map(|part| with(submission.clone(), json!({ "testCases": part }))).collect()
}

#[tokio::test]
async fn the_order_of_arrival_and_resending_change_nothing() {
    let expected = {
        let service = Service::start(Backend::Sqlite).await.expect("a service");
        for submission in history() {
            service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
            count(&service).await;
        }
        contents(&service).await
    };
    for_each_service(async |service| {
        // Newest run first, cases one by one from the last to the first, everything twice.
        let mut calls: Vec<Value> =
            history().iter().rev().flat_map(|run| split(run, 4).into_iter().rev()).collect();
        calls.extend(history());
        for call in &calls {
            service.client().post_json("/api/test-runs/submit", call).await.expect("stored");
            count(service).await;
        }
        let found = contents(service).await;
        for (table, rows) in &expected {
            assert_eq!(found.get(table), Some(rows), "{table}");
        }
    })
    .await;
}

#[test]
fn any_interleaving_of_calls_gives_the_same_rows() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let expected = runtime.block_on(async {
        let service = Service::start(Backend::Sqlite).await.expect("a service");
        for submission in history() {
            service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
            count(&service).await;
        }
        contents(&service).await
    });
    let calls: Vec<Value> = history().iter().flat_map(|run| split(run, 3)).collect();
    let orders = proptest::collection::vec(0..calls.len(), 0..6).prop_flat_map({
        let all: Vec<usize> = (0..calls.len()).collect();
        move |repeats| {
            let mut order = all.clone();
            order.extend(repeats);
            let counted = proptest::collection::vec(proptest::bool::ANY, order.len());
            (proptest::strategy::Just(order).prop_shuffle(), counted)
        }
    });
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    runner
        .run(&orders, |(order, counted)| {
            let found = runtime.block_on(async {
                let service = Service::start(Backend::Sqlite).await.expect("a service");
                for (call, is_counted) in order.iter().zip(counted) {
                    service.client().post_json("/api/test-runs/submit", &calls[*call]).await.expect("stored");
                    if is_counted {
                        count(&service).await;
                    }
                }
                contents(&service).await
            });
            proptest::prop_assert_eq!(&found, &expected);
            Ok(())
        })
        .expect("every order gives the same rows");
}

/// Counts what waits to be counted.
pub(crate) async fn count(service: &Service) {
    sweep(service, 3_000).await;
}

/// The recent history of every test in every lane, once it is counted.
async fn recent(service: &Service) -> Vec<String> {
    count(service).await;
    let rows = "SELECT l.kind || '|' || c.title || '|' || s.last_outcome || '|' || s.failing_streak || '|' || s.last_day || '|' || ";
    let tables = " FROM test_state s JOIN test_cases c ON c.id = s.test_case_id \
        JOIN lanes l ON l.project_id = s.project_id AND l.id = s.lane_id ORDER BY 1";
    match service.state().store().db() {
        callboard_store::Db::Sqlite { readers, .. } => {
            let text = format!("{rows} lower(hex(s.recent) || '|' || hex(s.recent_ms)) {tables}");
            let rows = sqlx::query(sqlx::AssertSqlSafe(text))
                .fetch_all(&mut *readers.get().await.expect("a connection"))
                .await
                .expect("states");
            rows.iter().map(|row| row.get(0)).collect()
        }
        callboard_store::Db::Postgres(pool) => {
            let text =
                format!("{rows} encode(s.recent, 'hex') || '|' || encode(s.recent_ms, 'hex') {tables}");
            let rows = sqlx::query(sqlx::AssertSqlSafe(text))
                .fetch_all(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("states");
            rows.iter().map(|row| row.get(0)).collect()
        }
    }
}

#[tokio::test]
async fn runs_that_come_months_late_find_their_place() {
    // A run every two weeks, alternately on one of two branches; more than a state identifies, and more
    // tests than are read together.
    let calls: Vec<Value> = (0..22)
        .map(|n| {
            let cases = (0..210)
                .filter(|test| test % 3 != 0 || n % 4 != 1)
                .map(|test| {
                    let status = if (test + n) % 5 == 0 { "failed" } else { "passed" };
                    with(attempt(&format!("test {test}"), status, 0), json!({ "duration": 10 + n }))
                })
                .collect();
            let at = Timestamp(1_700_000_000_000 + n * 14 * 86_400_000).to_iso();
            let branch = if n % 2 == 0 { "main" } else { "topic" };
            let set = json!({ "startTime": at, "clientRunId": format!("long-ago-{n}"), "branch": branch });
            with(run("shop", "failed", cases), set)
        })
        .collect();
    let expected = {
        let service = Service::start(Backend::Sqlite).await.expect("a service");
        for call in &calls {
            service.client().post_json("/api/test-runs/submit", call).await.expect("stored");
            count(&service).await;
        }
        (recent(&service).await, contents(&service).await)
    };
    for_each_service(async |service| {
        let (late, timely): (Vec<_>, Vec<_>) =
            calls.iter().enumerate().partition(|(n, _)| [0, 1, 4, 7].contains(n));
        for (_, call) in timely.iter().chain(&late) {
            service.client().post_json("/api/test-runs/submit", call).await.expect("stored");
            count(service).await;
        }
        let found = recent(service).await;
        let wrong = found.iter().zip(&expected.0).find(|(found, expected)| found != expected);
        assert_eq!((found.len(), wrong), (expected.0.len(), None));
        let found = contents(service).await;
        assert!(
            found["test_state"] == expected.1["test_state"]
                && found["test_daily"] == expected.1["test_daily"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_run_that_failed_as_a_whole_is_marked_for_every_test_and_unmarked_for_every_test() {
    // More tests than one transaction judges.
    let cases = |status: &str, retry: u32| -> Vec<Value> {
        (0..450).map(|n| attempt(&format!("test {n}"), status, retry)).collect()
    };
    let passed = with(
        run("shop", "passed", cases("passed", 0)),
        json!({ "startTime": "2026-01-01T10:00:00Z", "clientRunId": "all-passed" }),
    );
    let second = json!({ "startTime": "2026-01-02T10:00:00Z", "clientRunId": "all-failed" });
    let failed = with(run("shop", "failed", cases("failed", 0)), second.clone());
    let recovered = with(run("shop", "failed", cases("passed", 1)), second);
    let store = async |service: &Service, body: &Value| {
        let answer = service.client().post_json("/api/test-runs/submit", body).await.expect("stored");
        RunId(answer["runId"].as_i64().expect("a run"))
    };
    for_each_service(async |service| {
        let judge = async |run: RunId| {
            let shown = service.client().json(&format!("/api/test-runs/{run}")).await.expect("the run");
            let project = ProjectId(shown["projectId"].as_i64().expect("a project"));
            judge_run(&crate::live::context(service), project, run).await.expect("judged");
            recent(service).await
        };
        store(service, &passed).await;
        let run = store(service, &failed).await;
        let unmarked = recent(service).await;
        let marked = judge(run).await;
        assert!(marked.iter().zip(&unmarked).all(|(one, other)| one != other), "every test is marked");
        assert_eq!(judge(run).await, marked, "doing it again changes nothing");
        // It broke off before the end, and after the mark of the run was lost.
        sql(service, "UPDATE test_runs SET is_mass_failure = 0").await;
        assert_eq!(judge(run).await, marked);
        // Second attempts that passed come late: the run says something after all.
        assert_eq!(store(service, &recovered).await, run);
        let found = judge(run).await;
        let other = Service::start(Backend::Sqlite).await.expect("a service");
        for body in [&passed, &failed, &recovered] {
            store(&other, body).await;
        }
        assert_eq!(found, recent(&other).await, "no test is marked");
    })
    .await;
}

#[tokio::test]
async fn parallel_submissions_of_the_same_tests_neither_deadlock_nor_lose_counts() {
    for_each_service(async |service| {
        let calls = (0..32).map(|n| {
            let cases = (0..40).map(|t| attempt(&format!("test {}", (t + n) % 40), "passed", 0)).collect();
            // New branches and browser projects appear side by side as well.
            let id = json!({
                "clientRunId": format!("parallel-{n}"), "branch": format!("topic-{}", n % 8), "environment": "ci",
            });
            let submission = with(run("crowd", "passed", cases), id);
            async move { service.client().post_json("/api/test-runs/submit", &submission).await }
        });
        for answer in futures::future::join_all(calls).await {
            assert_eq!(answer.expect("stored")["totalTests"], 40);
        }
        let found = contents(service).await;
        assert_eq!(found["project_stats"], ["32|40|1280"]);
        let whole: Vec<&String> = found["test_state"].iter().filter(|row| row.starts_with("0|")).collect();
        assert_eq!(whole.len(), 40);
        for row in whole {
            assert!(row.contains("|32|32|0|"), "{row}");
        }
    })
    .await;
}

/// Runs SQL of the test's own on the service's database.
pub(crate) async fn sql(service: &Service, text: &'static str) {
    match service.state().store().db() {
        callboard_store::Db::Sqlite { writer, .. } => {
            sqlx::raw_sql(text).execute(&mut *writer.get().await.expect("a connection")).await.expect(text);
        }
        callboard_store::Db::Postgres(pool) => {
            sqlx::raw_sql(text).execute(&mut *pool.get().await.expect("a connection")).await.expect(text);
        }
    }
}

/// Everything the database of a service holds, as text to search in.
pub(crate) async fn everything_stored(service: &Service) -> String {
    match service.state().store().db() {
        callboard_store::Db::Sqlite { .. } => {
            let mut text = String::new();
            for file in std::fs::read_dir(service.database().folder()).expect("a folder") {
                let path = file.expect("a file").path();
                if path.is_file() {
                    text.push_str(&String::from_utf8_lossy(&std::fs::read(path).expect("its bytes")));
                }
            }
            text
        }
        callboard_store::Db::Postgres(pool) => {
            let all = "SELECT database_to_xml(true, false, '')::text";
            sqlx::query(all)
                .fetch_one(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("an export")
                .get(0)
        }
    }
}

#[tokio::test]
async fn a_submission_that_breaks_off_is_interrupted_and_completed_by_the_same_one() {
    for_each_backend(async |backend| {
        // A database of its own: its tables are changed.
        let database = TestDatabase::empty(backend).await.expect("a database");
        let service = &Service::over(database, &Settings::new()).await.expect("a service");
        let submission = with(run("shop", "passed", passing(5_000)), json!({ "clientRunId": "breaks-off" }));
        let client = service.client();
        // The database refuses whatever lies beyond the first transaction.
        let (fail, mend) = match service.state().store().backend() {
            Backend::Sqlite => (
                "CREATE TRIGGER full BEFORE INSERT ON executions WHEN (NEW.id & 1048575) > 3000 \
                 BEGIN SELECT RAISE(ABORT, 'full'); END",
                "DROP TRIGGER full",
            ),
            Backend::Postgres => (
                "ALTER TABLE executions ADD CONSTRAINT not_full CHECK ((id & 1048575) <= 3000)",
                "ALTER TABLE executions DROP CONSTRAINT not_full",
            ),
        };
        sql(service, fail).await;
        let refused = client.post("/api/test-runs/submit", &submission).await.expect("an answer");
        assert_eq!(refused.status.as_u16(), 500);
        let broken = client.json("/api/test-runs").await.expect("runs")["items"][0].clone();
        assert_eq!((&broken["status"], &broken["totalTests"]), (&json!("interrupted"), &json!(2_000)));
        sql(service, mend).await;
        let answer = client.post_json("/api/test-runs/submit", &submission).await.expect("stored");
        assert_eq!(answer["runId"], broken["id"]);
        assert_eq!((&answer["status"], &answer["totalTests"]), (&json!("passed"), &json!(5_000)));
        let days = contents(service).await.remove("project_daily").expect("days");
        assert!(days.iter().all(|day| day.ends_with("|1|1|5000|5000|0|0|0|0|50000|0|0")), "{days:?}");
    })
    .await;
}

/// SQLite tells long lists of rows as one text, in which whatever is stored has to
/// survive.
#[tokio::test]
async fn what_is_stored_comes_back_from_lists_of_rows() {
    for_each_service(async |service| {
        let path = "tests/\"quoted\", [é] 😀\u{7}\u{2028}/pay.spec.ts";
        let annotations = json!([{ "type": "owner", "description": "o'\"Neill\\\n" }]);
        let mut cases = vec![with(
            attempt("pays", "passed", 0),
            json!({ "location": format!("{path}:7:5"), "annotations": annotations }),
        )];
        cases.extend(passing(300));
        for day in 1..=3 {
            let start = json!({ "startTime": format!("2026-01-{day:02}T10:00:00.000Z") });
            let submission = with(run("shop", "passed", cases.clone()), start);
            service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
        }
        let before = contents(service).await;
        let mut session = service.state().store().db().read().await.expect("a session");
        let ids: Vec<i64> = (1..=301).collect();
        let paths = test_cases::reported_paths(&mut session, ProjectId(1), ids).await.expect("paths");
        assert_eq!(paths.len(), 301);
        let stored = texts(service, "SELECT file_path FROM test_cases WHERE title = 'pays'").await;
        assert!(stored.len() == 1 && stored[0].contains("\"quoted\", [é] 😀"), "{stored:?}");
        assert_eq!(paths.values().filter(|path| **path == stored[0]).count(), 1);
        let tests: Vec<TestCaseId> = (1..=301).map(TestCaseId).collect();
        let mut session = service.state().store().db().begin().await.expect("a session");
        let states = rollups::lock_states(&mut session, ProjectId(1), &[0], &tests).await.expect("states");
        for test in tests {
            let state = states.get(&(0, test)).unwrap_or_else(|| panic!("no state of {test}"));
            assert_eq!((state.counts().total_tests, state.recent().len()), (3, 3), "{test}");
        }
        rollups::write_states(&mut session, ProjectId(1), &states).await.expect("written");
        session.commit().await.expect("committed");
        assert_eq!(contents(service).await, before);
    })
    .await;
}

#[tokio::test]
async fn a_schema_that_is_behind_is_told() {
    for &backend in callboard_test_support::backends() {
        let database = callboard_test_support::TestDatabase::empty(backend).await.expect("a database");
        let store: Store = database.store().await.expect("a store");
        assert!(!store.schema_is_current().await.expect("an answer"));
        store.migrate().await.expect("migrations apply");
        assert!(store.schema_is_current().await.expect("an answer"));
        store.migrate().await.expect("applying them again changes nothing");
    }
}
