//! What opens a run, and what does not.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_test_support::{Answer, Client, for_each_secured_service, for_each_service};
use serde_json::{Value, json};

use super::{Feeder, code, fields, start};
use crate::builders::attempt;

impl Feeder {
    /// Makes a call that is in order but for whoever makes it; without a token where that is empty.
    async fn tried(&self, call: &str) -> Answer {
        let body = match call {
            "case-files" => {
                return super::files::send(self, super::files::picture("pays", &self.token)).await;
            }
            "events" => json!({ "testCases": [super::complete(attempt("pays", "passed", 0))] }),
            "finish" => json!({ "status": "passed", "duration": 1 }),
            _ => json!({}),
        };
        if !self.token.is_empty() {
            return self.call(call, body).await;
        }
        self.client.post(&format!("/api/test-runs/{}/{call}", self.run), &body).await.expect("an answer")
    }
}

#[tokio::test]
async fn every_wrong_token_has_its_answer() {
    for_each_service(async |service| {
        let client = service.client();
        let feeder = start(client, json!({})).await;
        let setup = client.post_json("/api/test-runs/setup", &fields(json!({}))).await.expect("set up");
        let set_up = setup["runId"].as_i64().expect("a run");
        for call in ["events", "heartbeat", "finish"] {
            let path = format!("/api/test-runs/{}/{call}", feeder.run);
            let missing = client.post(&path, &json!({})).await.expect("an answer");
            assert_eq!(code(&missing), (401, "missing_token".to_owned()), "{call}");
            let (most, last) = feeder.token.split_at(63);
            let one_off = format!("{most}{}", if last == "0" { "1" } else { "0" });
            for token in ["f".repeat(64), one_off, most.to_owned(), format!("{}0", feeder.token)] {
                let wrong = Feeder { token, ..feeder.clone() };
                assert_eq!(
                    code(&wrong.call(call, json!({})).await),
                    (403, "invalid_token".to_owned()),
                    "{call}"
                );
            }
            let foreign = Feeder { run: set_up, ..feeder.clone() };
            assert_eq!(
                code(&foreign.call(call, json!({})).await),
                (403, "invalid_token".to_owned()),
                "{call}"
            );
            let unknown = Feeder { run: 999_999, ..feeder.clone() };
            assert_eq!(
                code(&unknown.call(call, json!({})).await),
                (404, "run_not_found".to_owned()),
                "{call}"
            );
            let misspelt =
                client.post(&format!("/api/test-runs/12abc/{call}"), &json!({})).await.expect("an answer");
            assert_eq!(code(&misspelt), (400, "invalid_run_id".to_owned()), "{call}");
            let by_setup = Feeder {
                run: set_up,
                token: setup["setupToken"].as_str().expect("a token").to_owned(),
                ..feeder.clone()
            };
            assert_eq!(
                code(&by_setup.call(call, json!({})).await),
                (403, "invalid_token".to_owned()),
                "{call}"
            );
        }
        let body = json!({ "setupToken": feeder.token });
        let by_stream =
            client.post(&format!("/api/test-runs/{}/begin", feeder.run), &body).await.expect("an answer");
        assert_eq!(code(&by_stream), (403, "invalid_token".to_owned()));
        for (run, status) in [(feeder.run, "running"), (set_up, "initializing")] {
            let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
            assert_eq!((&shown["status"], &shown["totalTests"]), (&json!(status), &json!(0)));
        }
    })
    .await;
}

#[tokio::test]
async fn the_token_of_a_set_up_feeds_nothing_while_its_run_is_fed() {
    for_each_service(async |service| {
        let client = service.client();
        let mut set_up = Vec::new();
        for index in [1, 2] {
            let answer =
                client.post_json("/api/test-runs/setup", &fields(super::shards::shard(index, 2))).await;
            set_up.push(answer.expect("set up"));
        }
        let begin = format!("/api/test-runs/{}/begin", set_up[0]["runId"]);
        let begun = client.post_json(&begin, &json!({ "setupToken": set_up[0]["setupToken"] })).await;
        let token = begun.expect("begun")["streamToken"].as_str().expect("a token").to_owned();
        let run = set_up[0]["runId"].as_i64().expect("a run");
        let feeder = Feeder { client: client.clone(), run, token };
        feeder.results(vec![attempt("pays", "passed", 0)]).await;
        // One was used, the other one can be.
        for used in &set_up {
            assert_eq!(used["runId"], json!(run));
            let token = used["setupToken"].as_str().expect("a token").to_owned();
            let by_setup = Feeder { token, ..feeder.clone() };
            for (call, body) in [
                ("events", json!({ "testCases": [super::complete(attempt("looks", "failed", 0))] })),
                ("heartbeat", json!({})),
                ("finish", json!({ "status": "failed", "duration": 1 })),
            ] {
                let refused = by_setup.call(call, body).await;
                assert_eq!(code(&refused), (403, "invalid_token".to_owned()), "{call}");
            }
            let refused = super::files::send(&by_setup, super::files::picture("pays", &by_setup.token)).await;
            assert_eq!(code(&refused), (403, "invalid_token".to_owned()), "case-files");
        }
        let shown = feeder.shown().await;
        let keys = ["status", "totalTests", "failedTests"];
        assert_eq!(super::picked(&shown, keys), [json!("running"), json!(1), json!(0)]);
    })
    .await;
}

#[tokio::test]
async fn a_credential_beside_a_token_does_no_harm_and_no_good() {
    for_each_secured_service(async |service| {
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(user, None).await.expect("assigned");
        let browser = service.browser_of(user).await.expect("a browser");
        let key = browser.post_json("/api/users/me/api-keys", &json!({ "name": "ci" })).await.expect("a key");
        let key = key["key"].as_str().expect("a text").to_owned();
        let unknown = format!("pd_{}", "0".repeat(64));
        let carrying = |key: &str| {
            let client = service.client().with_header("authorization", &format!("Bearer {key}"));
            client.expect("a client")
        };
        let feeder = start(&carrying(&key), json!({})).await;
        let beside =
            |client: Client, token: &str| Feeder { client, run: feeder.run, token: token.to_owned() };
        // A key is no token: neither beside a call without one nor in its place.
        for token in [None, Some(&key)] {
            for client in [carrying(&key), service.client().clone()] {
                let nobody = beside(client, token.map_or("", String::as_str));
                for call in ["events", "heartbeat", "finish", "case-files"] {
                    let refused = nobody.tried(call).await;
                    let expected = token.map_or((401, "missing_token"), |_| (403, "invalid_token"));
                    assert_eq!(code(&refused), (expected.0, expected.1.to_owned()), "{call}");
                }
            }
        }
        let good = beside(carrying(&unknown), &feeder.token);
        for call in ["events", "heartbeat", "case-files", "finish"] {
            let answer = good.tried(call).await;
            assert_eq!(answer.status, 200, "{call}: {}", answer.text());
        }
        let shown = browser.json(&format!("/api/test-runs/{}", feeder.run)).await.expect("the run");
        let keys = ["status", "totalTests"];
        assert_eq!(super::picked(&shown, keys), [json!("passed"), json!(1)]);
    })
    .await;
}

#[tokio::test]
async fn whoever_may_not_make_projects_makes_none_by_sending_results() {
    for_each_secured_service(async |service| {
        let admin = service.account("root", Role::Administrator).await.expect("an account");
        let admin = service.program_of(admin, KeyPermission::Full).await.expect("a key");
        let own = admin.post_json("/api/projects", &json!({ "name": "own" })).await.expect("a project");
        let own = own["project"]["id"].as_i64().expect("an id");
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(user, Some(ProjectId(own))).await.expect("assigned");
        let program = service.program_of(user, KeyPermission::Ingest).await.expect("a key");
        let calls = [
            ("setup", fields(json!({ "projectName": "nobody has this" }))),
            ("start", fields(json!({ "projectName": "nobody has this" }))),
            ("submit", crate::builders::run("nobody has this", "passed", vec![])),
        ];
        for (path, body) in &calls {
            let refused = program.post(&format!("/api/test-runs/{path}"), body).await.expect("an answer");
            assert_eq!(code(&refused), (403, "project_creation_forbidden".to_owned()), "{path}");
        }
        let known = admin.json("/api/projects").await.expect("projects")["items"].clone();
        let names: Vec<&Value> = known.as_array().expect("a list").iter().map(|each| &each["name"]).collect();
        assert_eq!(names, ["own"]);
    })
    .await;
}

#[tokio::test]
async fn a_key_counts_in_either_header_for_whatever_brings_results() {
    for_each_secured_service(async |service| {
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(user, None).await.expect("assigned");
        let browser = service.browser_of(user).await.expect("a browser");
        let key = browser.post_json("/api/users/me/api-keys", &json!({ "name": "ci" })).await.expect("a key");
        let key = key["key"].as_str().expect("a text");
        let unknown = format!("pd_{}", "e".repeat(64));
        let carriers =
            |key: &str| [("authorization", format!("bEaReR {key}")), ("x-api-key", key.to_owned())];
        let calls = [
            ("setup", fields(json!({}))),
            ("start", fields(json!({}))),
            ("submit", crate::builders::run("shop", "passed", vec![])),
        ];
        for (path, body) in &calls {
            let path = format!("/api/test-runs/{path}");
            for (header, value) in carriers(key) {
                let client = service.client().with_header(header, &value).expect("a header");
                assert_eq!(client.post(&path, body).await.expect("an answer").status, 200, "{header} {path}");
            }
            for (header, value) in carriers(&unknown) {
                let client = service.client().with_header(header, &value).expect("a header");
                let refused = client.post(&path, body).await.expect("an answer");
                assert_eq!(code(&refused), (401, "invalid_api_key".to_owned()), "{header} {path}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_token_is_told_once() {
    for_each_service(async |service| {
        // Under a key, too, whose answers are kept otherwise.
        let client = service.client().with_header("idempotency-key", "the-start-of-a-run").expect("a client");
        let feeder = start(&client, json!({ "metadata": { "note": "kept" } })).await;
        let feeder = Feeder { client: service.client().clone(), ..feeder };
        feeder.results(vec![attempt("pays", "failed", 0)]).await;
        let told = feeder.shown().await.to_string();
        assert!(!told.contains(&feeder.token));
        let path = format!("/api/test-runs/{}/export?format=ndjson", feeder.run);
        let exported = service.client().get(&path).await.expect("an export").text();
        assert!(exported.contains("pays went wrong") && !exported.contains(&feeder.token), "{exported}");
        let stored = crate::store::everything_stored(service).await;
        assert!(stored.contains("pays went wrong"), "this finds what is stored");
        assert!(!stored.contains(&feeder.token));
        let setup = client.post_json("/api/test-runs/setup", &fields(json!({}))).await;
        let token = setup.expect("set up")["setupToken"].as_str().expect("a token").to_owned();
        assert!(!crate::store::everything_stored(service).await.contains(&token));
    })
    .await;
}

#[tokio::test]
async fn whoever_loses_the_right_to_send_loses_it_for_what_is_going_on() {
    for_each_secured_service(async |service| {
        let user = service.account("ada", Role::Reporter).await.expect("an account");
        service.assign(user, None).await.expect("assigned");
        let nobody =
            service.client().post("/api/test-runs/start", &fields(json!({}))).await.expect("an answer");
        assert_eq!(nobody.status, 401);
        // A key that opens a run is no token of it.
        let program = service.program_of(user, KeyPermission::Full).await.expect("a key");
        let feeder = start(&program, json!({ "clientRunId": "by-its-key-alone" })).await;
        for call in ["events", "heartbeat", "finish"] {
            let path = format!("/api/test-runs/{}/{call}", feeder.run);
            let refused = program.post(&path, &json!({})).await.expect("an answer");
            assert_eq!(code(&refused), (401, "missing_token".to_owned()), "{call}");
        }
        for (statement, _) in [
            ("UPDATE api_keys SET revoked_at = 1", "the key"),
            ("UPDATE api_keys SET expires_at = 12", "its time"),
            ("UPDATE users SET role = 'user'", "the role"),
            ("DELETE FROM project_assignments", "the project"),
            ("UPDATE users SET disabled_at = 1", "the account"),
        ] {
            let program = service.program_of(user, KeyPermission::Ingest).await.expect("a key");
            let feeder = start(&program, json!({ "clientRunId": format!("run-{}", statement.len()) })).await;
            feeder.results(vec![attempt("pays", "passed", 0)]).await;
            crate::store::sql(service, statement).await;
            let refused = feeder.call("events", json!({ "testCases": [] })).await;
            assert_eq!(code(&refused), (403, "token_revoked".to_owned()), "{statement}");
            let mend = "UPDATE users SET role = 'reporter', disabled_at = NULL";
            crate::store::sql(service, mend).await;
            // An assignment that is there already is kept.
            let _ = service.assign(user, None).await;
        }
    })
    .await;
}
