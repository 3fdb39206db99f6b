//! Clients that send at the same time, whose results may be written together:
//! each is answered for its own, and all count as if they had come one by one.

use callboard_store::Backend;
use callboard_test_support::{Service, Settings, for_each_service};
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Feeder, complete, picked, run_events, run_feed, start};
use crate::builders::{attempt, with};
use crate::rows::texts;

const RUNS: usize = 8;
const ROUNDS: usize = 6;
/// Results of one call that are more than a row of what waits holds.
const LARGE: usize = 620;

fn batch(round: usize, status: &str) -> Vec<Value> {
    (0..5).map(|at| complete(attempt(&format!("test {round}-{at}"), status, 0))).collect()
}

#[tokio::test]
async fn clients_that_send_at_once_are_each_answered_for_their_own() {
    for_each_service(async |service| {
        let client = service.client();
        let is_sqlite = service.state().store().backend() == Backend::Sqlite;
        if is_sqlite {
            let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON test_cases WHEN NEW.title = 'poison' \
                BEGIN SELECT RAISE(ABORT, 'refused'); END";
            texts(service, refuse).await;
        }
        let mut feeders = Vec::new();
        for number in 0..RUNS {
            let at = format!("2026-01-01T10:{number:02}:00.000Z");
            feeders.push(start(client, json!({ "branch": "main", "startTime": at })).await);
        }
        let unlucky = start(client, json!({ "branch": "main" })).await;
        let stopped = start(client, json!({ "branch": "main" })).await;
        stopped.results(vec![attempt("stops", "passed", 0)]).await;
        stopped.results(vec![attempt("stops too", "passed", 0)]).await;
        let path = format!("/api/test-runs/{}/cancel", stopped.run);
        client.post_json(&path, &json!({})).await.expect("cancelled");
        let strangers = [
            Feeder { token: unlucky.token.clone(), ..feeders[0].clone() },
            Feeder { run: 4_711, ..feeders[0].clone() },
            stopped.clone(),
        ];
        for round in 0..ROUNDS {
            // Every second run fails; the first one sends twice at a time.
            let status = |at: usize| if at % 2 == 1 { "failed" } else { "passed" };
            let mut sent: Vec<_> = feeders
                .iter()
                .enumerate()
                .map(|(at, feeder)| feeder.call("events", json!({ "testCases": batch(round, status(at)) })))
                .collect();
            sent.push(feeders[0].call("events", json!({ "testCases": batch(ROUNDS + round, "passed") })));
            let poison = [complete(attempt("poison", "passed", 0))];
            let wrong = json!({ "testCases": batch(round, "timedOut") });
            let (answers, refused, strangers) = futures::join!(
                join_all(sent),
                unlucky.call("events", json!({ "testCases": poison })),
                join_all(strangers.iter().map(|stranger| stranger.call("events", wrong.clone())))
            );
            // Whoever is in line with others is nobody the more for it.
            let statuses: Vec<u16> = strangers.iter().map(|answer| answer.status.as_u16()).collect();
            assert_eq!(statuses, [403, 404, 409]);
            for answer in answers {
                let taken = answer.success().expect("taken");
                assert_eq!(taken["processed"], json!(5), "{taken}");
            }
            assert_eq!(refused.status, 200, "{}", refused.text());
        }
        for (at, feeder) in feeders.iter().enumerate() {
            let tests = if at == 0 { 2 * ROUNDS * 5 } else { ROUNDS * 5 };
            assert_eq!(feeder.shown().await["totalTests"], json!(tests), "of run {at}");
            let told = run_events(service, feeder.run).await;
            assert_eq!(told.iter().filter(|kind| *kind == "test-completed").count(), tests);
            feeder.finish("passed").await;
        }
        assert_eq!(stopped.shown().await["totalTests"], json!(2));
        // What cannot be worked in keeps its own run waiting, and not for ever; what came after it is not lost,
        // though it takes several rows.
        let many = (0..LARGE).map(|at| complete(attempt(&format!("later {at}"), "passed", 0))).collect();
        assert_eq!(unlucky.events(many).await["inserted"], json!(LARGE));
        assert_eq!(unlucky.finish("passed").await, "passed");
        let stored = if is_sqlite { LARGE } else { LARGE + 1 };
        assert_eq!(unlucky.shown().await["totalTests"], json!(stored));
        let set_aside = "SELECT CAST(COUNT(*) AS TEXT) FROM run_intake";
        let kept = if is_sqlite { ROUNDS.to_string() } else { "0".to_owned() };
        assert_eq!(texts(service, set_aside).await, [kept], "and it is still there");
        // Who asks for numbers of tests counts first what waits.
        let project = feeders[0].shown().await["projectId"].clone();
        let tests = service.client().json(&format!("/api/projects/{project}/test-cases?limit=1")).await;
        assert_eq!(tests.expect("tests")["items"].as_array().map(Vec::len), Some(1));
        let counts = "SELECT DISTINCT CAST(s.total AS TEXT) || ' ' || CAST(s.failed AS TEXT) FROM test_state s \
            JOIN test_cases c ON c.project_id = s.project_id AND c.id = s.test_case_id WHERE c.title LIKE 'test _-%' ";
        let shared = format!("{counts} AND c.title < 'test {ROUNDS}'");
        assert_eq!(texts(service, &shared).await, [format!("{RUNS} {}", RUNS / 2)], "in every lane");
        let own = format!("{counts} AND c.title >= 'test {ROUNDS}'");
        assert_eq!(texts(service, &own).await, ["1 0"]);
    })
    .await;
}

#[tokio::test]
async fn two_services_that_work_in_what_waits_of_one_run_tell_and_count_it_once() {
    for_each_service(async |service| {
        let other = service.beside(&Settings::new()).await.expect("a second service");
        // Known tests are looked up before the transaction that works their results in.
        let suite = start(service.client(), json!({ "branch": "main" })).await;
        for round in 0..2 * ROUNDS {
            suite.events(batch(round, "passed")).await;
        }
        suite.finish("passed").await;
        let here = start(service.client(), json!({ "branch": "main" })).await;
        let there = Feeder { client: other.client().clone(), ..here.clone() };
        for round in 0..ROUNDS {
            // Whoever asks works in what waits: both do, while more comes to both, and some of it twice.
            futures::join!(
                here.events(batch(round, "failed")),
                there.events(batch(ROUNDS + round, "passed")),
                here.events(batch(ROUNDS + round, "passed")),
                here.shown(),
                there.shown(),
            );
        }
        let tests = 2 * ROUNDS * 5;
        assert_eq!(there.finish("failed").await, "failed");
        let shown = picked(&here.shown().await, ["totalTests", "passedTests", "failedTests"]);
        assert_eq!(shown, [json!(tests), json!(tests / 2), json!(tests / 2)]);
        assert_eq!(told_executions(service, here.run).await, stored_executions(service, here.run).await);
        let waiting = "SELECT CAST(COUNT(*) AS TEXT) FROM run_intake";
        assert_eq!(texts(service, waiting).await, ["0"]);
    })
    .await;
}

#[tokio::test]
async fn a_run_ends_after_all_that_was_acknowledged_however_much_it_is() {
    const REPETITIONS: usize = 400;
    for_each_service(async |service| {
        // The first time the test is not known, the second time it is looked up before.
        for _ in 0..2 {
            let feeder = start(service.client(), json!({ "branch": "main" })).await;
            // Results of one test that are written together are told one after the other all the same.
            let sent = (0..REPETITIONS).map(|number| {
                let repetition = json!({ "repeatEachIndex": number });
                let result = complete(with(attempt("pays", "passed", 0), repetition));
                feeder.call("events", json!({ "testCases": [result] }))
            });
            for answer in join_all(sent).await {
                assert_eq!(answer.success().expect("taken")["inserted"], json!(1));
            }
            assert_eq!(feeder.finish("passed").await, "passed");
            let waiting = "SELECT CAST(COUNT(*) AS TEXT) FROM run_intake";
            assert_eq!(texts(service, waiting).await, ["0"], "nothing waits of a run that is over");
            let [stored] = stored_executions(service, feeder.run).await[..] else { panic!("one execution") };
            assert_eq!(told_executions(service, feeder.run).await, vec![stored; REPETITIONS]);
            let told = run_events(service, feeder.run).await;
            assert_eq!(told.last().map(String::as_str), Some("run-finished"));
        }
    })
    .await;
}

#[tokio::test]
async fn attempts_of_a_test_that_come_apart_count_and_are_told_as_if_each_was_worked_in_alone() {
    for_each_service(async |service| {
        let failed = || vec![attempt("pays", "failed", 0)];
        let passed = || vec![attempt("pays", "passed", 1), attempt("signs in", "passed", 0)];
        // The first time the tests are not known, the second time they are looked up before.
        for _ in 0..2 {
            let feeder = start(service.client(), json!({ "branch": "main" })).await;
            assert_eq!(feeder.results(failed()).await["inserted"], json!(1));
            assert_eq!(
                feeder.results(failed()).await["inserted"],
                json!(0),
                "one that is sent again is no other"
            );
            assert_eq!(feeder.results(passed()).await["inserted"], json!(2));
            assert_eq!(feeder.results(passed()).await["inserted"], json!(0));
            assert_eq!(feeder.finish("passed").await, "passed");
            let keys = ["totalTests", "passedTests", "failedTests", "flakyTests"];
            let shown = picked(&feeder.shown().await, keys);
            assert_eq!(shown, [json!(2), json!(2), json!(0), json!(1)]);
            let told = completed(service, feeder.run).await;
            let titles = ["title", "status", "flaky", "retries"]
                .map(|key| told.iter().map(|event| event[key].clone()).collect::<Vec<_>>());
            assert_eq!(
                titles,
                [
                    vec![json!("pays"), json!("pays"), json!("signs in")],
                    vec![json!("failed"), json!("passed"), json!("passed")],
                    vec![json!(false), json!(true), json!(false)],
                    vec![json!(0), json!(1), json!(0)],
                ]
            );
            assert_eq!(told[0]["executionId"], told[1]["executionId"]);
            let detail =
                service.client().json(&format!("/api/test-run-cases/{}", told[0]["executionId"])).await;
            assert_eq!(detail.expect("the execution")["attempts"].as_array().map(Vec::len), Some(2));
        }
    })
    .await;
}

/// Ids of the executions of a run, ascending.
async fn stored_executions(service: &Service, run: i64) -> Vec<i64> {
    let ids = format!("SELECT CAST(id AS TEXT) FROM executions WHERE run_id = {run} ORDER BY id");
    texts(service, &ids).await.iter().map(|id| id.parse().expect("a number")).collect()
}

/// The executions that a run's feed tells results of, one for each time, ascending.
async fn told_executions(service: &Service, run: i64) -> Vec<i64> {
    let told = completed(service, run).await;
    let mut ids: Vec<i64> = told.iter().map(|event| event["executionId"].as_i64().expect("an id")).collect();
    ids.sort_unstable();
    ids
}

/// What is told of results of a run, in order.
async fn completed(service: &Service, run: i64) -> Vec<Value> {
    let events = run_feed(service, run).await.into_iter();
    let completed = events.filter(|event| event.kind == "test-completed");
    completed.map(|event| serde_json::from_str(&event.data).expect("json")).collect()
}
