//! Deleting projects, and restoring them.

use callboard_store::Db;
use callboard_test_support::{Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Row as _;

use super::{delete, files_of, freed, refused, restore, stored, submitted, upload};
use crate::builders::{attempt, passing, run, with};
use crate::live;
use crate::rows::settled;

/// Tables with rows of a project, apart from those that remember deletions.
async fn tables_with(service: &Service, project: i64) -> Vec<String> {
    const REMEMBER: [&str; 4] = ["deletion_receipts", "audit_events", "jobs", "global_feed"];
    let names = match service.state().store().db() {
        Db::Sqlite { readers, .. } => {
            let all = "SELECT m.name FROM (SELECT * FROM main.sqlite_master UNION ALL SELECT * FROM intake.sqlite_master) m \
                JOIN pragma_table_info(m.name) c ON c.name = 'project_id' WHERE m.type = 'table'";
            let rows = sqlx::query(all)
                .fetch_all(&mut *readers.get().await.expect("a connection"))
                .await
                .expect("tables");
            rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>()
        }
        Db::Postgres(pool) => {
            let all = "SELECT table_name::text FROM information_schema.columns WHERE column_name = 'project_id' AND table_schema = current_schema()";
            let rows = sqlx::query(all)
                .fetch_all(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("tables");
            rows.iter().map(|row| row.get::<String, _>(0)).collect()
        }
    };
    let mut found = Vec::new();
    for name in names.into_iter().filter(|name| !REMEMBER.contains(&name.as_str())) {
        let count = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {name} WHERE project_id = {project}"));
        let count: i64 = match service.state().store().db() {
            Db::Sqlite { readers, .. } => sqlx::query(count)
                .fetch_one(&mut *readers.get().await.expect("a connection"))
                .await
                .expect("a count")
                .get(0),
            Db::Postgres(pool) => sqlx::query(count)
                .fetch_one(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("a count")
                .get(0),
        };
        if count > 0 {
            found.push(name);
        }
    }
    found
}

#[tokio::test]
async fn a_deleted_project_leaves_nothing_behind() {
    for_each_service(async |service| {
        let client = service.client();
        let uploaded = upload(service, "shop", "2026-01-01T10:00:00.000Z", b"a file", b"another").await;
        let id = uploaded["projectId"].as_i64().expect("a project");
        let body = with(run("shop", "passed", passing(60)), json!({ "startTime": "2026-01-03T10:00:00.000Z" }));
        client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        // Its results are not counted when the project goes.
        let live = live::start(client, json!({ "projectName": "shop" })).await;
        live.results(vec![attempt("pays", "failed", 0)]).await;
        assert_eq!(live.shown().await["totalTests"], 1);
        let other = upload(service, "other", "2026-01-01T10:00:00.000Z", b"a file", b"another").await;
        let link = json!({ "entityType": "test_run", "entityId": uploaded["runId"], "url": "https://tracker.test/7" });
        client.post_json("/api/links", &link).await.expect("a link");
        let marker = json!({ "label": "Release", "occurredAt": "2026-01-01", "category": "release" });
        client.post_json(&format!("/api/projects/{id}/markers"), &marker).await.expect("a marker");
        let function = json!({
            "name": "pay", "kind": "helper", "module": "./pages", "steps": [{ "action": "goto", "value": "/pay" }],
        });
        client.post_json(&format!("/api/projects/{id}/test-functions"), &function).await.expect("a function");
        let tag = client.post_json("/api/tags", &json!({ "text": "web", "color": "teal" })).await.expect("a tag");
        let tags = json!({ "tagIds": [tag["tag"]["id"]] });
        let path = format!("/api/projects/{id}");
        client.send_json(Method::PATCH, &path, &tags).await.and_then(|answer| answer.success()).expect("tagged");

        refused(&delete(client, &path).await, 400, "missing_field");
        let confirm = async |name: &str| {
            client.send_json(Method::DELETE, &path, &json!({ "confirm": name, "now": true })).await.expect("an answer")
        };
        refused(&confirm("Shop").await, 400, "invalid_field");
        assert!(tables_with(service, id).await.len() > 10);
        let answer = confirm("shop").await.success().expect("deleted");

        refused(&client.get(&path).await.expect("an answer"), 404, "project_not_found");
        refused(&client.get(&format!("/api/test-runs/{}", uploaded["runId"])).await.expect("an answer"), 404, "run_not_found");
        for list in ["/api/test-runs", "/api/test-runs/recent", "/api/projects"] {
            let found = client.json(list).await.expect("a list");
            let of_other = |item: &Value| item["projectName"] == "other" || item["name"] == "other";
            assert!(found["items"].as_array().expect("items").iter().all(of_other), "{list}: {found}");
        }
        // The name is free, for a project of its own.
        let again = submitted(service, "shop", "2026-02-01T10:00:00.000Z", json!({})).await;
        let again = client.json(&format!("/api/test-runs/{again}")).await.expect("the run");
        assert_ne!(again["projectId"], id);

        let receipt = freed(service, &answer).await;
        assert_eq!(receipt["target"], json!({ "kind": "project", "id": id, "label": "shop" }));
        assert_eq!((&receipt["rows"]["runs"], &receipt["rows"]["executions"]), (&json!(3), &json!(63)));
        assert_eq!(stored(service, &format!("project-{id}")), (0, 0));
        assert_eq!(tables_with(service, id).await, Vec::<String>::new());
        let kept = client.json(&format!("/api/test-runs/{}", other["runId"])).await.expect("the other run");
        assert_eq!(files_of(client, &kept).await.len(), 2);
        let audited = client.json("/api/audit?action=project.deleted").await.expect("entries");
        assert_eq!(audited["items"][0]["detail"]["name"], "shop");
    })
    .await;
}

/// Deletes a project by its name.
async fn delete_project(service: &Service, id: i64, name: &str) -> Value {
    let path = format!("/api/projects/{id}");
    let body = json!({ "confirm": name });
    let answer = service.client().send_json(Method::DELETE, &path, &body).await.expect("an answer");
    answer.success().expect("deleted")["receipt"].clone()
}

#[tokio::test]
async fn a_restored_project_has_everything_under_a_name_that_is_free() {
    for_each_service(async |service| {
        let client = service.client();
        let uploaded = upload(service, "shop", "2026-11-01T10:00:00.000Z", b"a file", b"another").await;
        let (id, run) = (uploaded["projectId"].as_i64().expect("a project"), uploaded["runId"].clone());
        let tag =
            client.post_json("/api/tags", &json!({ "text": "web", "color": "teal" })).await.expect("a tag");
        let tags = json!({ "tagIds": [tag["tag"]["id"]] });
        let path = format!("/api/projects/{id}");
        client
            .send_json(Method::PATCH, &path, &tags)
            .await
            .and_then(|answer| answer.success())
            .expect("tagged");
        let running = live::start(client, json!({ "projectName": "shop" })).await;
        running.results(vec![attempt("pays", "passed", 0)]).await;
        // Results of a run that goes on are counted a moment later.
        live::sweep(service, 5_000).await;
        settled(service).await;
        let before = client.json(&path).await.expect("the project");
        let tests = client.json(&format!("{path}/test-cases?sort=title")).await.expect("tests");

        let hidden = delete_project(service, id, "shop").await;
        assert_eq!((&hidden["state"], hidden["restorableUntil"].is_string()), (&json!("pending"), true));
        let found = client.json(&format!("/api/test-runs/{run}")).await;
        assert!(found.is_err(), "its runs are hidden");
        for path in [
            path.clone(),
            format!("{path}/test-cases"),
            format!("/projects/{id}"),
            format!("/test-runs/{run}"),
        ] {
            assert_eq!(client.get(&path).await.expect("an answer").status.as_u16(), 404, "{path}");
        }
        for list in [
            "/api/projects",
            "/api/projects/menu",
            "/api/projects/overview",
            "/api/test-runs",
            "/api/failure-clusters",
            "/api/test-runs/recent",
        ] {
            let found = client.json(list).await.expect("a list");
            assert_eq!(found["items"], json!([]), "{list}");
        }
        assert_eq!(client.json("/api/test-runs/recent").await.expect("runs")["active"], json!([]));
        for (query, kinds) in [("shop", "projects"), ("pays", "cases"), ("main", "runs")] {
            let found = client.json(&format!("/api/search?q={query}")).await.expect("results");
            assert_eq!(found[kinds], json!([]), "{query}");
        }
        let stats = client.json("/api/admin/stats").await.expect("stats");
        assert_eq!((&stats["totalProjects"], &stats["totalRuns"]), (&json!(0), &json!(0)));
        let cleaned =
            client.post_json("/api/admin/cleanup", &json!({ "olderThanDays": 1 })).await.expect("cleaned");
        assert_eq!(cleaned["matched"], 0, "a hidden project is not cleaned up");
        refused(&running.call("heartbeat", json!({})).await, 404, "run_not_found");
        live::sweep(service, 24 * 60 * 60 * 1000).await;
        settled(service).await;

        // CI goes on: its next run makes a new project of the name.
        let next = submitted(service, "shop", "2026-11-02T10:00:00.000Z", json!({})).await;
        let next = client.json(&format!("/api/test-runs/{next}")).await.expect("the run");
        assert_ne!(next["projectId"], id);

        let restored = restore(client, &hidden).await.success().expect("restored");
        assert_eq!(restored["renamed"], json!({ "id": id, "from": "shop", "to": "shop (restored)" }));
        assert_eq!(restored["receipt"]["state"], "restored");
        refused(&restore(client, &hidden).await, 409, "not_restorable");
        settled(service).await;
        let after = client.json(&path).await.expect("the project");
        assert_eq!(after["name"], "shop (restored)");
        for key in ["totalRuns", "totalTestCases", "tags", "latestRun", "openClusters"] {
            assert_eq!(before[key], after[key], "{key}");
        }
        let again = client.json(&format!("{path}/test-cases?sort=title")).await.expect("tests");
        assert_eq!(tests["items"], again["items"]);
        let kept = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
        for file in files_of(client, &kept).await {
            let bytes =
                client.get(&format!("/api/files/{}?download=1", file["id"])).await.expect("an answer");
            assert!(bytes.status.is_success(), "{file}");
        }
        let found = client.json("/api/search?q=restored").await.expect("results");
        assert_eq!(found["projects"][0]["id"], id);

        // The next one of the name gets the next free number.
        let second = next["projectId"].as_i64().expect("a project");
        let hidden = delete_project(service, second, "shop").await;
        submitted(service, "shop", "2026-11-03T10:00:00.000Z", json!({})).await;
        let restored = restore(client, &hidden).await.success().expect("restored");
        assert_eq!(restored["renamed"]["to"], "shop (restored 2)");
    })
    .await;
}

#[tokio::test]
async fn runs_of_a_deleted_project_come_back_after_it() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submitted(service, "shop", "2026-11-01T10:00:00.000Z", json!({})).await;
        settled(service).await;
        let of_run = delete(client, &format!("/api/test-runs/{run}")).await.success().expect("deleted");
        settled(service).await;
        let of_project = delete_project(service, 1, "shop").await;
        refused(&restore(client, &of_run["receipt"]).await, 409, "not_restorable");
        restore(client, &of_project).await.success().expect("restored");
        restore(client, &of_run["receipt"]).await.success().expect("restored");
        settled(service).await;
        assert_eq!(client.json("/api/projects/1").await.expect("the project")["totalRuns"], 1);
        assert_eq!(client.json(&format!("/api/test-runs/{run}")).await.expect("the run")["failedTests"], 1);
    })
    .await;
}

#[tokio::test]
async fn what_waits_in_a_hidden_project_is_counted_in_it() {
    for_each_service(async |service| {
        let client = service.client();
        let numbers = async || {
            let stats = client.json("/api/admin/stats").await.expect("stats");
            let project = client.json("/api/projects/1").await.expect("the project");
            let clusters = client.json("/api/failure-clusters").await.expect("clusters");
            assert_eq!(project["openClusters"], json!(clusters["items"].as_array().map(Vec::len)));
            ["totalRuns", "totalTestCases", "totalExecutions"]
                .map(|key| stats[key].as_i64().expect("a number"))
        };
        submitted(service, "shop", "2026-11-01T10:00:00.000Z", json!({})).await;
        let second = submitted(service, "shop", "2026-11-02T10:00:00.000Z", json!({})).await;
        settled(service).await;
        let running = live::start(client, json!({ "projectName": "shop" })).await;
        running.results(vec![attempt("searches", "failed", 0)]).await;
        // The rows of the second run are still to be taken out of the numbers, those of the third to be added.
        let of_run = delete(client, &format!("/api/test-runs/{second}")).await.success().expect("deleted");
        let hidden = delete_project(service, 1, "shop").await;
        live::sweep(service, 60 * 60 * 1000).await;
        settled(service).await;

        restore(client, &hidden).await.success().expect("restored");
        assert_eq!(numbers().await, [2, 3, 3]);
        restore(client, &of_run["receipt"]).await.success().expect("restored");
        settled(service).await;
        assert_eq!(numbers().await, [3, 3, 5]);
        // Nobody feeds the run any more.
        refused(&running.call("heartbeat", json!({})).await, 403, "invalid_token");
        live::sweep(service, 60 * 60 * 1000).await;
        let ended = client.json(&format!("/api/test-runs/{}", running.run)).await.expect("the run");
        assert_eq!((&ended["status"], &ended["failedTests"]), (&json!("interrupted"), &json!(1)));
    })
    .await;
}

#[tokio::test]
async fn a_project_is_deleted_while_a_submission_counts_into_it() {
    for_each_service(async |service| {
        submitted(service, "shop", "2026-01-01T10:00:00.000Z", json!({})).await;
        // SQLite has one writer.
        let Db::Postgres(pool) = service.state().store().db() else { return };
        let (mut submission, mut other) =
            (pool.get().await.expect("a connection"), pool.get().await.expect("a connection"));
        sqlx::query("BEGIN").execute(&mut *submission).await.expect("begun");
        let counts = "UPDATE project_stats SET runs = runs WHERE project_id = 1";
        sqlx::query(counts).execute(&mut *submission).await.expect("counted");
        let body = json!({ "confirm": "shop" });
        let deletion = service.client().send_json(Method::DELETE, "/api/projects/1", &body);
        let rest = async {
            let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
            loop {
                let row = sqlx::query(waiting).fetch_one(&mut *other).await.expect("a count");
                if row.get::<i64, _>(0) > 0 {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let touches = "UPDATE projects SET updated_at = updated_at WHERE id = 1";
            sqlx::query(touches).execute(&mut *submission).await.expect("no deadlock");
            sqlx::query("COMMIT").execute(&mut *submission).await.expect("committed");
        };
        let (deleted, ()) = tokio::join!(deletion, rest);
        deleted.expect("an answer").success().expect("deleted");
    })
    .await;
}
