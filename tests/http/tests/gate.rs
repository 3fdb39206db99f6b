//! The quality gate and its policies.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::test_state::ExecutionFlags;
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::{at, submit};

async fn judge(client: &Client, run: i64, policy: Value) -> Value {
    client.post_json(&format!("/api/test-runs/{run}/gate"), &policy).await.expect("judged")
}

async fn refused(client: &Client, run: i64, body: Value) -> (u16, Value) {
    let answer = client.post(&format!("/api/test-runs/{run}/gate"), &body).await.expect("an answer");
    (answer.status.as_u16(), answer.json().expect("an error")["code"].clone())
}

fn rules(gate: &Value) -> Vec<&str> {
    gate["violations"]
        .as_array()
        .expect("a violation")
        .iter()
        .map(|found| found["rule"].as_str().expect("a violation"))
        .collect()
}

fn tagged(title: &str, status: &str, tags: &[&str]) -> Value {
    with(attempt(title, status, 0), json!({ "tags": tags }))
}

/// A red run in which one test became flaky and one broke.
async fn red_run(client: &Client) -> i64 {
    let green = vec![
        tagged("pays", "passed", &["smoke"]),
        tagged("ships", "passed", &["slow"]),
        attempt("opens", "passed", 0),
    ];
    submit(client, at(1, "main", "passed", green)).await;
    let red = vec![
        tagged("pays", "timedOut", &["smoke"]),
        // Three failed attempts are one test.
        tagged("ships", "failed", &["slow"]),
        with(tagged("ships", "failed", &["slow"]), json!({ "retries": 1 })),
        with(tagged("ships", "passed", &["slow"]), json!({ "retries": 2 })),
        attempt("opens", "passed", 0),
    ];
    submit(client, at(2, "main", "failed", red)).await
}

#[tokio::test]
async fn a_gate_tells_every_rule_that_is_violated_with_its_facts() {
    for_each_service(async |service| {
        let client = service.client();
        let run = red_run(client).await;
        let policy = json!({
            "requireTags": ["@smoke", "slow", "never"], "maxFailed": 0, "maxNewRegressions": 0, "maxNewFlaky": 0,
            "maxQuarantined": 0, "failOnNewCluster": true, "failOnFlaky": true, "minPassRate": 0.9, "requireBaseline": true,
        });
        let gate = judge(client, run, policy).await;
        assert_eq!(gate["passed"], false);
        assert_eq!(rules(&gate), [
            "required-tag", "unmatched-tag", "max-failed", "max-new-regressions", "max-new-flaky", "new-cluster", "flaky",
            "min-pass-rate",
        ]);
        let facts = &gate["facts"];
        assert_eq!(facts["failingByTag"]["smoke"][0]["title"], "pays");
        assert_eq!((&facts["failingByTag"]["slow"], &facts["unmatchedTags"]), (&json!([]), &json!(["never"])));
        for (key, value) in [
            ("totalTests", 3), ("failedTests", 1), ("newRegressions", 1), ("newFlaky", 1), ("flakyTests", 1),
            ("quarantinedFailures", 0), ("quarantinedTotal", 0), ("newClusters", 2),
        ] {
            assert_eq!(facts[key], value, "{key}");
        }
        assert_eq!(gate["violations"][7]["actual"], 0.6667);
        let generous = json!({ "maxFailed": 1, "maxNewRegressions": 1, "minPassRate": 0.6, "requireTags": ["slow"] });
        assert_eq!(judge(client, run, generous).await["passed"], true);

        let kept = client.json(&format!("/api/test-runs/{run}/gate-results?limit=1")).await.expect("results");
        assert_eq!((&kept["items"][0]["passed"], &kept["items"][0]["violations"]), (&json!(true), &json!(0)));
        let cursor = kept["nextCursor"].as_str().expect("more");
        let rest = client.json(&format!("/api/test-runs/{run}/gate-results?limit=1&cursor={cursor}")).await.expect("results");
        assert_eq!((&rest["items"][0]["id"], &rest["items"][0]["violations"]), (&gate["id"], &json!(8)));
        assert!(rest["nextCursor"].is_null());
        let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("a run");
        assert_eq!(detail["gate"], kept["items"][0]);
    })
    .await;
}

#[tokio::test]
async fn without_anything_to_compare_with_facts_are_null_and_a_demanded_baseline_violates() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submit(client, at(1, "main", "failed", vec![attempt("pays", "failed", 0)])).await;
        let gate = judge(client, run, json!({ "maxNewRegressions": 0, "maxNewFlaky": 0 })).await;
        assert_eq!((&gate["passed"], rules(&gate)), (&json!(true), vec![]));
        for key in ["newRegressions", "newFlaky", "baseline"] {
            assert_eq!(gate["facts"][key], Value::Null, "{key}");
        }
        let gate = judge(client, run, json!({ "maxNewRegressions": 0, "requireBaseline": true })).await;
        assert_eq!(rules(&gate), ["no-baseline"]);
        for (body, expected) in [
            (json!({}), (400, "invalid_body")),
            (json!({ "unknown": 1 }), (400, "invalid_body")),
            (json!({ "failOnFlaky": false }), (400, "invalid_body")),
            (json!({ "maxFailed": "0" }), (400, "invalid_field")),
            (json!({ "policy": 7 }), (400, "invalid_field")),
            (json!({ "policy": "gone" }), (404, "policy_not_found")),
            (json!({ "policy": "gone", "maxFailed": 0 }), (400, "invalid_body")),
        ] {
            assert_eq!(refused(client, run, body.clone()).await, (expected.0, json!(expected.1)), "{body}");
        }
        let kept = client.json(&format!("/api/test-runs/{run}/gate-results")).await.expect("results");
        assert_eq!(kept["items"].as_array().map(Vec::len), Some(2));
    })
    .await;
}

#[tokio::test]
async fn tests_in_quarantine_turn_no_gate_red() {
    for_each_service(async |service| {
        let client = service.client();
        let run = red_run(client).await;
        quarantine(service, run, "pays").await;
        let gate =
            judge(client, run, json!({ "maxFailed": 0, "maxNewRegressions": 0, "requireTags": ["smoke"] }))
                .await;
        assert_eq!(rules(&gate), Vec::<&str>::new(), "{gate}");
        let facts = &gate["facts"];
        assert_eq!((&facts["failedTests"], &facts["newRegressions"]), (&json!(0), &json!(0)));
        assert_eq!((&facts["quarantinedFailures"], &facts["quarantinedTotal"]), (&json!(1), &json!(1)));
        assert_eq!(rules(&judge(client, run, json!({ "maxQuarantined": 0 })).await), ["max-quarantined"]);
        let chance = json!({ "failOnFlaky": true, "failOnNewCluster": true });
        let gate = judge(client, run, chance.clone()).await;
        assert_eq!(rules(&gate), ["new-cluster", "flaky"]);
        let messages: Vec<&Value> = gate["violations"]
            .as_array()
            .expect("violations")
            .iter()
            .map(|found| &found["message"])
            .collect();
        let told = ["1 failure was never seen before.", "1 test is flaky; at most 0 may."];
        assert_eq!(messages, told.map(Value::from).iter().collect::<Vec<_>>());
        quarantine(service, run, "ships").await;
        let gate = judge(client, run, chance).await;
        assert_eq!(rules(&gate), Vec::<&str>::new(), "{gate}");
        assert_eq!((&gate["facts"]["flakyTests"], &gate["facts"]["newClusters"]), (&json!(0), &json!(0)));
        crate::comparison::work(service).await;
        let insights = client.json(&format!("/api/test-runs/{run}/insights")).await.expect("insights");
        assert_eq!(insights["counts"]["newRegressions"], 0);
    })
    .await;
}

/// Marks an execution as one of a test in quarantine, as ingest does.
async fn quarantine(service: &Service, run: i64, title: &str) {
    let found = service.client().json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
    let items = found["items"].as_array().expect("executions");
    let id =
        items.iter().find(|item| item["title"] == title).expect("the test")["id"].as_i64().expect("an id");
    let bit = ExecutionFlags::QUARANTINED.bits();
    let sql = format!("UPDATE executions SET flags = flags | {bit} WHERE id = {id}");
    match service.state().store().db() {
        callboard_store::Db::Sqlite { writer, .. } => {
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .execute(&mut *writer.get().await.expect("a connection"))
                .await
                .expect("written");
        }
        callboard_store::Db::Postgres(pool) => {
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .execute(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("written");
        }
    }
}

#[tokio::test]
async fn a_stored_policy_judges_by_its_name_or_by_default() {
    for_each_service(async |service| {
        let client = service.client();
        let run = red_run(client).await;
        let policies = "/api/projects/1/gate-policies";
        let create = async |body: Value| client.post(policies, &body).await.expect("an answer");
        let strict = create(json!({ "name": "release", "policy": { "maxFailed": 0 } })).await;
        assert_eq!(strict.status, 201);
        let strict = strict.json().expect("a policy")["policy"].clone();
        assert_eq!((&strict["policy"], &strict["isDefault"]), (&json!({ "maxFailed": 0 }), &json!(false)));
        let taken = create(json!({ "name": "release", "policy": { "maxFailed": 1 } })).await;
        assert_eq!(
            (taken.status.as_u16(), &taken.json().expect("an error")["code"]),
            (409, &json!("name_taken"))
        );
        for (body, code) in [
            (json!({ "name": "x" }), "missing_field"),
            (json!({ "name": "", "policy": { "maxFailed": 0 } }), "invalid_field"),
            (json!({ "name": "x", "policy": {} }), "invalid_body"),
            (json!({ "name": "x", "policy": { "maxFailed": true } }), "invalid_field"),
        ] {
            let answer = create(body.clone()).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.json().expect("an error")["code"]),
                (400, &json!(code)),
                "{body}"
            );
        }
        assert_eq!(refused(client, run, json!({})).await, (400, json!("invalid_body")));
        let loose = json!({ "name": "loose", "policy": { "maxFailed": 5 }, "isDefault": true });
        let loose = create(loose).await.json().expect("a policy")["policy"]["id"].clone();
        let by_default = judge(client, run, json!({})).await;
        assert_eq!((&by_default["policyName"], &by_default["passed"]), (&json!("loose"), &json!(true)));
        let by_name = judge(client, run, json!({ "policy": "release" })).await;
        assert_eq!((&by_name["policyName"], rules(&by_name)), (&json!("release"), vec!["max-failed"]));

        let path = format!("/api/gate-policies/{}", strict["id"]);
        let edited = client
            .send_json(Method::PATCH, &path, &json!({ "isDefault": true, "name": "main" }))
            .await
            .expect("an answer");
        let edited = edited.success().expect("edited");
        assert_eq!(
            (&edited["policy"]["name"], &edited["policy"]["policy"]),
            (&json!("main"), &json!({ "maxFailed": 0 }))
        );
        let listed = client.json(policies).await.expect("policies");
        let defaults: Vec<_> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| (found["name"].clone(), found["isDefault"].clone()))
            .collect();
        assert_eq!(defaults, [(json!("loose"), json!(false)), (json!("main"), json!(true))]);
        let clash =
            client.send_json(Method::PATCH, &path, &json!({ "name": "loose" })).await.expect("an answer");
        assert_eq!(clash.status, 409);
        let gone = format!("/api/gate-policies/{loose}");
        assert_eq!(client.send_json(Method::DELETE, &gone, &json!({})).await.expect("an answer").status, 200);
        let again = client.send_json(Method::DELETE, &gone, &json!({})).await.expect("an answer");
        assert_eq!(
            (again.status.as_u16(), &again.json().expect("an error")["code"]),
            (404, &json!("policy_not_found"))
        );
        let audited = client.json("/api/audit?action=policy.").await.expect("entries");
        assert_eq!(audited["items"].as_array().map(Vec::len), Some(4));
    })
    .await;
}

#[tokio::test]
async fn what_a_gate_says_to_a_user_is_not_kept() {
    callboard_test_support::for_each_secured_service(async |service| {
        let admin = service.account("ada", Role::Administrator).await.expect("an account");
        let admin = service.program_of(admin, KeyPermission::Full).await.expect("a client");
        let stored = admin
            .post_json("/api/test-runs/submit", &run("shop", "passed", vec![attempt("pays", "passed", 0)]))
            .await
            .expect("stored");
        let (project, run) = (stored["projectId"].as_i64().unwrap(), stored["runId"].as_i64().unwrap());
        let user = service.account("uma", Role::User).await.expect("an account");
        service.assign(user, Some(callboard_domain::ids::ProjectId(project))).await.expect("assigned");
        let user_client = service.program_of(user, KeyPermission::Full).await.expect("a client");
        assert_eq!(judge(&user_client, run, json!({ "maxFailed": 0 })).await["id"], Value::Null);
        assert!(judge(&admin, run, json!({ "maxFailed": 0 })).await["id"].is_i64());
        let kept = user_client.json(&format!("/api/test-runs/{run}/gate-results")).await.expect("results");
        assert_eq!(kept["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(kept["items"][0]["by"]["username"], "ada");
    })
    .await;
}
