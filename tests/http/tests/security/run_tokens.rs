//! Runs that go on, and that end once; what opens them is told by nothing.

use callboard_auth::ROUTES;
use callboard_auth::routes::{Access, Method as Verb};
use callboard_test_support::access::{Holding, address};
use callboard_test_support::{Service, TestDatabase, for_each_backend, for_each_service};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::settings;
use crate::builders::attempt;
use crate::live::{fields, start};
use crate::mcp::Agent;

#[tokio::test]
async fn ten_ends_at_once_count_once() {
    for_each_service(async |service| {
        let feeder = start(service.client(), json!({})).await;
        feeder.results(vec![attempt("pays", "passed", 0), attempt("looks", "failed", 0)]).await;
        let end = json!({ "status": "failed", "duration": 5000 });
        let answers = futures::future::join_all((0..10).map(|_| feeder.call("finish", end.clone()))).await;
        for answer in answers {
            assert_eq!(answer.success().expect("finished")["status"], "failed");
        }
        let shown = feeder.shown().await;
        let totals = ["status", "totalTests", "passedTests", "failedTests"].map(|key| shown[key].clone());
        assert_eq!(totals, [json!("failed"), json!(2), json!(1), json!(1)]);
        let projects = service.client().json("/api/projects").await.expect("projects");
        assert_eq!(projects["items"][0]["totalRuns"], 1);
        let events = crate::live::global_events(service).await;
        let kinds: Vec<&str> = events.iter().map(|event| event.0.as_str()).collect();
        assert_eq!(kinds, ["run-started", "run-finished"]);
    })
    .await;
}

#[tokio::test]
async fn no_read_of_a_run_that_goes_on_tells_what_opens_it() {
    for_each_backend(async |backend| {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        // Streams end soon, so that their answers are whole.
        let settings = settings(&[("SERVICE_SSE_MAX_SECONDS", "1")]);
        let service = Service::over(database, &settings).await.expect("a service");
        let client = service.client();
        let mut told: Vec<(String, String)> = Vec::new();
        let set_up = async |pipeline: &str| {
            let body = fields(json!({ "instanceId": pipeline }));
            client.post_json("/api/test-runs/setup", &body).await.expect("set up")
        };
        let unused = set_up("another-pipeline").await;
        let mut secrets = vec![unused["setupToken"].as_str().expect("a token").to_owned()];
        // Calls tell nothing of what they were opened with.
        let used = set_up("one-that-begins").await;
        let setup_token = used["setupToken"].as_str().expect("a token").to_owned();
        let begin = format!("/api/test-runs/{}/begin", used["runId"]);
        let begun = client.post_json(&begin, &json!({ "setupToken": setup_token })).await.expect("begun");
        assert!(!begun.to_string().contains(&setup_token), "{begun}");
        let token = begun["streamToken"].as_str().expect("a token").to_owned();
        secrets.extend([setup_token, token.clone()]);
        let run = begun["runId"].as_i64().expect("a run");
        let feeder = crate::live::Feeder { client: client.clone(), run, token };
        for (call, body) in [
            ("events", json!({ "testCases": [crate::live::complete(attempt("test 1", "failed", 0))] })),
            ("heartbeat", json!({})),
            ("case-files", json!({})),
            ("finish", json!({ "status": "failed", "duration": 5 })),
            ("events", json!({ "testCases": {} })),
        ] {
            told.push((call.to_owned(), feeder.call(call, body).await.text()));
        }
        for format in ["csv", "ndjson", "junit", "ctrf"] {
            let path = format!("/api/test-runs/{run}/export?format={format}");
            told.push((path.clone(), client.get(&path).await.expect("an export").text()));
        }
        let mut feeders = Vec::new();
        for index in [1, 2] {
            let shard = json!({ "instanceId": "0123456789abcdef", "shardIndex": index, "shardTotal": 2 });
            let feeder = start(client, shard).await;
            feeder.results(vec![attempt(&format!("test {index}"), "failed", 0)]).await;
            secrets.push(feeder.token.clone());
            feeders.push(feeder);
        }
        let hashes: Vec<String> = secrets.iter().map(|token| hex::encode(Sha256::digest(token))).collect();
        secrets.extend(hashes);

        let shown = feeders[0].shown().await;
        assert_eq!(
            (&shown["status"], shown["shards"].as_array().map(Vec::len)),
            (&json!("running"), Some(2))
        );
        let number = |value: &Value| value.as_i64().expect("an id");
        let ids = Holding {
            project: number(&shown["projectId"]),
            run: feeders[0].run,
            execution: number(&shown["testCases"][0]["id"]),
            test_case: number(&shown["testCases"][0]["testCaseId"]),
            ..Holding::missing()
        };
        let reads = ROUTES.iter().filter(|route| {
            route.method == Verb::Get && matches!(route.access, Access::Roles(_) | Access::RolesOrRunToken(_))
        });
        for route in reads {
            let path = address(route, &ids, 1);
            let from_the_beginning =
                route.pattern.ends_with("/stream").then(|| format!("{path}?lastEventId=0"));
            for path in [path].into_iter().chain(from_the_beginning) {
                let answer = client.get(&path).await.expect("an answer");
                let headers = answer
                    .headers
                    .values()
                    .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
                told.push((path, headers.chain([answer.text()]).collect::<Vec<_>>().join("\n")));
            }
        }
        let agent = Agent::at(client.clone(), "/mcp");
        for (tool, arguments) in [
            ("list_recent_activity", json!({})),
            ("list_runs", json!({ "projectId": ids.project })),
            ("get_run", json!({ "runId": ids.run })),
            ("get_test_run_case", json!({ "executionId": ids.execution })),
        ] {
            told.push((tool.to_owned(), agent.call(tool, arguments).await.expect("an answer").to_string()));
        }
        let about_it = told.iter().filter(|(_, text)| text.contains("test 1")).count();
        assert!(about_it > 12, "{about_it} answers tell of the run");
        for (path, text) in told {
            assert!(!secrets.iter().any(|secret| text.contains(secret)), "{path}: {text}");
        }
    })
    .await;
}
