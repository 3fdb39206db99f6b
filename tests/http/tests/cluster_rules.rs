//! Clusters when the rules that tell failures apart have changed: what people
//! did with them stays, and what turns out to be one failure comes together
//! unless somebody keeps it apart.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_query::clusters::follow_rules;
use callboard_store::Db;
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::work;
use crate::live::context;

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect(path)
}

/// A click on a button that is not there.
fn click(title: &str, button: &str) -> Value {
    let error = format!(
        "TimeoutError: locator.click: Timeout 5000ms exceeded.\nCall log:\n  - waiting for getByTestId('{button}')\n\n    \
         at tests/shop.spec.ts:9:3"
    );
    with(attempt(title, "failed", 0), json!({ "error": error }))
}

/// An expectation that only its source tells from others.
fn expectation(title: &str) -> Value {
    compares(title, "lines.length")
}

fn compares(title: &str, subject: &str) -> Value {
    let error = "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 3\nReceived: 4\n    at tests/shop.spec.ts:9:3";
    let snippet = format!(
        "   8 |   const lines = await cart.lines();\n>  9 |   expect({subject}).toBe(3);\n  10 | }});"
    );
    let frames = json!([{ "file": "tests/shop.spec.ts", "line": 9, "snippet": snippet }]);
    with(attempt(title, "failed", 0), json!({ "error": error, "testSourceFrames": frames }))
}

async fn submit(service: &Service, minutes: i64, cases: Vec<Value>) -> i64 {
    let start = Timestamp(service.state().now().millis() + minutes * 60_000).to_iso();
    let body = with(run("shop", "failed", cases), json!({ "startTime": start, "branch": "main" }));
    let stored = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    stored["runId"].as_i64().expect("a run")
}

async fn clusters(client: &Client) -> Vec<Value> {
    get(client, "/api/projects/1/failure-clusters?sort=id").await["items"].as_array().expect("items").clone()
}

fn cluster_about<'c>(clusters: &'c [Value], text: &str) -> &'c Value {
    let found = clusters.iter().find(|one| one["signature"].as_str().is_some_and(|line| line.contains(text)));
    found.expect("the cluster")
}

/// What nothing but failures and people may change.
fn lasting(cluster: &Value) -> Value {
    let mut lasting = serde_json::Map::new();
    for key in [
        "id",
        "fingerprint",
        "signature",
        "title",
        "status",
        "note",
        "assignee",
        "occurrences",
        "affectedTests",
        "firstSeenRunId",
        "lastSeenRunId",
        "errorType",
        "selector",
    ] {
        lasting.insert(key.to_owned(), cluster[key].clone());
    }
    Value::Object(lasting)
}

/// Changes rows behind the service's back.
pub(crate) async fn execute(service: &Service, sql: String) {
    match service.state().store().db() {
        Db::Sqlite { writer, .. } => {
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .execute(&mut *writer.get().await.expect("a connection"))
                .await
                .expect("written");
        }
        Db::Postgres(pool) => {
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .execute(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("written");
        }
    }
}

/// Makes everything stored about a cluster what rules of an older version,
/// which told this failure by other bytes, would have stored.
async fn as_older_rules(service: &Service, cluster: &Value) {
    let new = cluster["fingerprint"].as_str().expect("a fingerprint").to_owned();
    let old: String = new.chars().rev().collect();
    let bytes = |hex: &str| match service.state().store().db() {
        Db::Sqlite { .. } => format!("X'{hex}'"),
        Db::Postgres(_) => format!("decode('{hex}', 'hex')"),
    };
    let (new, old) = (bytes(&new), bytes(&old));
    execute(service, format!("UPDATE executions SET fingerprint = {old} WHERE fingerprint = {new}")).await;
    for table in ["cluster_routes", "failure_clusters"] {
        let sql = format!("UPDATE {table} SET fingerprint = {old}, fp_version = 0 WHERE fingerprint = {new}");
        execute(service, sql).await;
    }
    execute(service, "DELETE FROM fingerprint_templates".to_owned()).await;
}

async fn edit(client: &Client, method: Method, path: &str, body: Value) -> Value {
    client.send_json(method, path, &body).await.and_then(|answer| answer.success()).expect(path)
}

#[tokio::test]
async fn newer_rules_lead_known_failures_to_the_clusters_people_worked_on() {
    for_each_service(async |service| {
        let client = service.client();
        // The job that does the same on its own has had its turn.
        work(service).await;
        let failures = || vec![click("pays", "pay"), click("pays twice", "pay"), expectation("counts")];
        submit(service, -300, failures()).await;
        let found = clusters(client).await;
        assert_eq!(found.len(), 2);
        let (pay, counts) = (
            cluster_about(&found, "getByTestId('pay')")["id"].clone(),
            cluster_about(&found, "lines.length")["id"].clone(),
        );
        edit(
            client,
            Method::PATCH,
            &format!("/api/failure-clusters/{pay}/status"),
            json!({ "status": "ignored", "note": "the new till" }),
        )
        .await;
        edit(
            client,
            Method::PATCH,
            &format!("/api/failure-clusters/{counts}"),
            json!({ "title": "Too many lines" }),
        )
        .await;
        // One test is taken out: it stays out.
        let tests = get(client, &format!("/api/failure-clusters/{pay}/test-cases")).await;
        let twice = tests["items"]
            .as_array()
            .expect("tests")
            .iter()
            .find(|test| test["title"] == "pays twice")
            .expect("the test")["testCaseId"]
            .clone();
        let apart = edit(
            client,
            Method::POST,
            &format!("/api/failure-clusters/{pay}/extract-cases"),
            json!({ "testCaseIds": [twice], "note": "another till" }),
        )
        .await["cluster"]["id"]
            .clone();
        let before: Vec<Value> = clusters(client).await.iter().map(lasting).collect();
        assert_eq!(before.len(), 3);
        for cluster in &before {
            as_older_rules(service, cluster).await;
        }
        assert!(
            clusters(client).await.iter().map(lasting).ne(before.iter().cloned()),
            "fingerprints are older"
        );

        let now = service.state().now();
        while follow_rules(&context(service), now).await.expect("followed") {}
        let after: Vec<Value> = clusters(client).await.iter().map(lasting).collect();
        for (after, before) in after.iter().zip(&before) {
            // The part that was taken out shares its fingerprint with the rest, which names it.
            let mut before = before.clone();
            if before["id"] == apart {
                before["fingerprint"] = after["fingerprint"].clone();
            }
            assert_eq!(after, &before);
        }
        assert_eq!(after.len(), before.len());

        submit(service, -200, failures()).await;
        let later: Vec<Value> = clusters(client).await.iter().map(lasting).collect();
        assert_eq!(later.len(), 3, "known failures make no new clusters");
        for (later, before) in later.iter().zip(&before) {
            assert_eq!(
                (&later["id"], &later["note"], &later["status"], &later["title"]),
                (&before["id"], &before["note"], &before["status"], &before["title"])
            );
            let twice_as_often = before["occurrences"].as_i64().expect("a count") * 2;
            assert_eq!(
                (&later["occurrences"], &later["affectedTests"]),
                (&json!(twice_as_often), &before["affectedTests"])
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_cluster_whose_failures_newer_rules_tell_apart_stays_one() {
    for_each_service(async |service| {
        let client = service.client();
        work(service).await;
        let failures = || vec![compares("counts", "lines.length"), compares("adds up", "cart.total")];
        submit(service, -300, failures()).await;
        let found = clusters(client).await;
        assert_eq!(found.len(), 2);
        let (kept, other) = (cluster_about(&found, "lines.length").clone(), cluster_about(&found, "cart.total")["id"].clone());
        // Older rules read the same in both.
        as_older_rules(service, &kept).await;
        let id = &kept["id"];
        execute(service, format!("UPDATE executions SET cluster_id = {id}, fingerprint = (SELECT fingerprint FROM failure_clusters WHERE id = {id}) WHERE cluster_id = {other}")).await;
        execute(service, format!("DELETE FROM cluster_routes WHERE cluster_id = {other}")).await;
        execute(service, format!("DELETE FROM failure_clusters WHERE id = {other}")).await;

        let now = service.state().now();
        while follow_rules(&context(service), now).await.expect("followed") {}
        submit(service, -200, failures()).await;
        let later = clusters(client).await;
        assert_eq!(later.iter().map(|one| &one["id"]).collect::<Vec<_>>(), [id]);
    })
    .await;
}

#[tokio::test]
async fn clusters_that_turn_out_to_be_one_come_together_unless_both_were_worked_on() {
    for_each_service(async |service| {
        let client = service.client();
        work(service).await;
        let now = service.state().now();
        let first = submit(service, -300, vec![click("pays", "pay"), click("looks", "menu")]).await;
        let found = clusters(client).await;
        let (pay, menu) = (
            cluster_about(&found, "getByTestId('pay')").clone(),
            cluster_about(&found, "getByTestId('menu')").clone(),
        );
        let note = |id: &Value| format!("/api/failure-clusters/{id}/status");
        edit(client, Method::PATCH, &note(&menu["id"]), json!({ "status": "open", "note": "ours" })).await;
        for cluster in [&pay, &menu] {
            as_older_rules(service, cluster).await;
        }
        // Failures that come before the old ones are told anew make clusters of their own.
        let second = submit(service, -200, vec![click("pays", "pay"), click("looks", "menu")]).await;
        work(service).await;
        let mut double = clusters(client).await;
        assert_eq!(double.len(), 4);
        double.retain(|one| one["id"] != pay["id"] && one["id"] != menu["id"]);
        assert_eq!(get(client, &format!("/api/test-runs/{second}")).await["newClusters"], 2);
        let other_menu = cluster_about(&double, "getByTestId('menu')")["id"].clone();
        edit(client, Method::PATCH, &note(&other_menu), json!({ "status": "open", "note": "theirs" })).await;

        while follow_rules(&context(service), now).await.expect("followed") {}
        work(service).await;
        let left = clusters(client).await;
        assert_eq!(left.len(), 3, "{left:?}");
        assert_eq!(
            (
                &cluster_about(&left, "getByTestId('pay')")["id"],
                &cluster_about(&left, "getByTestId('pay')")["occurrences"]
            ),
            (&pay["id"], &json!(2))
        );
        assert_eq!(get(client, &format!("/api/test-runs/{second}")).await["newClusters"], 1, "told again");
        assert_eq!(get(client, "/api/projects/1").await["openClusters"], 3);

        let path = "/api/projects/1/cluster-merge-suggestions";
        let pending = get(client, path).await;
        let suggestion = &pending["items"][0];
        assert_eq!(pending["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            (&suggestion["clusterA"]["id"], &suggestion["clusterB"]["id"]),
            (&menu["id"], &other_menu)
        );
        assert_eq!(
            (&suggestion["method"], &suggestion["status"]),
            (&json!("fingerprint"), &json!("pending"))
        );
        let approve = format!("/api/cluster-merge-suggestions/{}/approve", suggestion["id"]);
        let kept = edit(client, Method::POST, &approve, json!({})).await;
        assert_eq!(
            (&kept["cluster"]["id"], &kept["cluster"]["note"], &kept["cluster"]["occurrences"]),
            (&menu["id"], &json!("ours"), &json!(2))
        );
        for decision in ["approve", "reject"] {
            let again = format!("/api/cluster-merge-suggestions/{}/{decision}", suggestion["id"]);
            let answer = client.post(&again, &json!({})).await.expect("an answer");
            assert_eq!(
                (answer.status.as_u16(), answer.json().expect("JSON")["code"].clone()),
                (409, json!("not_pending"))
            );
        }
        let unknown =
            client.post("/api/cluster-merge-suggestions/99/reject", &json!({})).await.expect("an answer");
        assert_eq!(unknown.json().expect("JSON")["code"], "suggestion_not_found");
        assert_eq!(get(client, path).await["items"], json!([]));
        assert_eq!(get(client, &format!("{path}?status=approved")).await["items"][0]["id"], suggestion["id"]);
        work(service).await;
        assert_eq!(get(client, &format!("/api/test-runs/{second}")).await["newClusters"], 0);
        let days = get(client, "/api/projects/1/daily").await;
        let new: i64 = days["items"]
            .as_array()
            .expect("days")
            .iter()
            .filter_map(|day| day["newClusters"].as_i64())
            .sum();
        assert_eq!(new, 2, "both were first seen in run {first}");
    })
    .await;
}

#[tokio::test]
async fn failures_whose_evidence_is_gone_do_not_hold_up_the_others() {
    for_each_service(async |service| {
        let client = service.client();
        work(service).await;
        let paid = submit(service, -300, vec![click("pays", "pay")]).await;
        let counted = submit(service, -290, vec![expectation("counts")]).await;
        submit(service, -280, vec![click("looks", "menu")]).await;
        let before = clusters(client).await;
        for cluster in &before {
            as_older_rules(service, cluster).await;
        }
        // One pack has lost its row, the other its object.
        execute(service, format!("DELETE FROM packs WHERE run_id = {paid}")).await;
        execute(service, format!("UPDATE packs SET key = 'project-1/gone.zst' WHERE run_id = {counted}"))
            .await;
        let older = clusters(client).await;

        let now = service.state().now();
        while follow_rules(&context(service), now).await.expect("followed") {}
        let after = clusters(client).await;
        for text in ["getByTestId('pay')", "getByTestId('menu')"] {
            assert_eq!(
                lasting(cluster_about(&after, text)),
                lasting(cluster_about(&before, text)),
                "its text tells it"
            );
        }
        assert_eq!(
            lasting(cluster_about(&after, "lines.length")),
            lasting(cluster_about(&older, "lines.length")),
            "without its source it reads like any other expectation"
        );
        submit(service, -200, vec![click("pays", "pay"), click("looks", "menu")]).await;
        assert_eq!(clusters(client).await.len(), before.len());
    })
    .await;
}

#[tokio::test]
async fn clusters_that_somebody_keeps_apart_do_not_come_together() {
    for_each_service(async |service| {
        let client = service.client();
        work(service).await;
        submit(service, -300, vec![click("pays", "pay")]).await;
        let pay = cluster_about(&clusters(client).await, "getByTestId('pay')").clone();
        as_older_rules(service, &pay).await;
        submit(service, -200, vec![click("pays", "pay")]).await;
        let both = clusters(client).await;
        assert_eq!(both.len(), 2);
        for one in &both {
            let status = format!("/api/failure-clusters/{}/status", one["id"]);
            edit(client, Method::PATCH, &status, json!({ "status": "open", "note": "ours" })).await;
        }
        let now = service.state().now();
        while follow_rules(&context(service), now).await.expect("followed") {}
        let pending = get(client, "/api/projects/1/cluster-merge-suggestions").await;
        let reject = format!("/api/cluster-merge-suggestions/{}/reject", pending["items"][0]["id"]);
        edit(client, Method::POST, &reject, json!({})).await;

        // Whatever else people did with them, this was decided.
        execute(service, "UPDATE failure_clusters SET is_touched = 0".to_owned()).await;
        execute(service, "UPDATE cluster_routes SET fp_version = 0".to_owned()).await;
        while follow_rules(&context(service), now).await.expect("followed") {}
        let after = clusters(client).await;
        let ids = |clusters: &[Value]| clusters.iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&after), ids(&both));
    })
    .await;
}

#[tokio::test]
async fn clean_runs_of_one_environment_prove_nothing_of_another() {
    for_each_service(async |service| {
        let client = service.client();
        let sent = async |minutes: i64, environment: &str, case: Value, status: &str| {
            let start = Timestamp(service.state().now().millis() + minutes * 60_000).to_iso();
            let fields = json!({ "startTime": start, "branch": "main", "environment": environment });
            let body = with(run("shop", status, vec![case]), fields);
            let stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            let run = RunId(stored["runId"].as_i64().expect("a run"));
            let (context, now) = (context(service), service.state().now());
            callboard_ingest::check_run(&context, ProjectId(1), run, now).await.expect("checked");
        };
        let clean = async |minutes: i64, environment: &str| {
            sent(minutes, environment, attempt("pays", "passed", 0), "passed").await;
        };
        for n in 0..5 {
            for (minutes, environment) in [(-200, "staging"), (-199, "production")] {
                sent(minutes + 2 * n, environment, click("pays", "pay"), "failed").await;
            }
        }
        let path = format!("/api/failure-clusters/{}", clusters(client).await[0]["id"]);
        let verified = async || get(client, &path).await["fixVerification"].clone();
        for n in 0..6 {
            clean(n - 100, "staging").await;
        }
        assert_eq!(verified().await, Value::Null, "it still fails in production, as far as anybody knows");
        for n in 0..3 {
            clean(n - 50, "production").await;
        }
        assert_eq!(verified().await, "stopped-failing");
    })
    .await;
}
