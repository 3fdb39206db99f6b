//! What people attach: tags of projects, links, markers.

use std::collections::BTreeSet;

use callboard_test_support::{Answer, Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run};

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Answer {
    client.send_json(method, path, &body).await.expect("an answer")
}

async fn delete(client: &Client, path: &str) -> Answer {
    client.send(client.request(Method::DELETE, path)).await.expect("an answer")
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    let body = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
}

#[track_caller]
fn created(answer: &Answer) -> Value {
    assert_eq!(answer.status.as_u16(), 201, "{}", answer.text());
    answer.json().expect("a body")
}

async fn submitted(service: &Service, project: &str) -> Value {
    let body = run(project, "failed", vec![attempt("pays", "failed", 0)]);
    service.client().post_json("/api/test-runs/submit", &body).await.expect("stored")
}

#[tokio::test]
async fn tags_are_words_of_the_installation() {
    for_each_service(async |service| {
        let client = service.client();
        let new = async |text: &str, color: &str| {
            send(client, Method::POST, "/api/tags", json!({ "text": text, "color": color })).await
        };
        let web = created(&new("Web", "teal").await)["tag"].clone();
        let api = created(&new("api", "red").await)["tag"].clone();
        assert_eq!((&web["text"], &web["color"]), (&json!("Web"), &json!("teal")));
        refused(&new("WEB", "blue").await, 409, "name_taken");
        refused(&new("x", "mauve").await, 400, "invalid_field");
        refused(&new("", "blue").await, 400, "invalid_field");
        refused(&new(&"x".repeat(51), "blue").await, 400, "invalid_field");
        refused(
            &send(client, Method::POST, "/api/tags", json!({ "color": "red" })).await,
            400,
            "missing_field",
        );

        let list = client.json("/api/tags").await.expect("tags");
        assert_eq!(list, json!({ "items": [api, web], "nextCursor": null }));
        let plain =
            created(&send(client, Method::POST, "/api/tags", json!({ "text": "zzz" })).await)["tag"].clone();
        assert_eq!(plain["color"], "neutral", "whoever does not care for a color need not choose");
        let gone = format!("/api/tags/{}", plain["id"]);
        delete(client, &gone).await.success().expect("deleted");
        let lost = client.get(&format!("/api/projects?tag={}", plain["id"])).await.expect("an answer");
        refused(&lost, 404, "tag_not_found");
        let page = client.json("/api/tags?limit=1").await.expect("tags");
        let next = format!("/api/tags?limit=1&cursor={}", page["nextCursor"].as_str().expect("more"));
        assert_eq!(client.json(&next).await.expect("tags")["items"], json!([web]));
        assert_eq!(client.json("/api/tags?q=EB").await.expect("tags")["items"], json!([web]));
        assert_eq!(client.json("/api/tags?q=%25").await.expect("tags")["items"], json!([]));

        let path = format!("/api/tags/{}", web["id"]);
        for method in [Method::PATCH, Method::PUT] {
            refused(&send(client, method.clone(), &path, json!({ "text": "API" })).await, 409, "name_taken");
            refused(
                &send(client, method.clone(), &path, json!({ "text": null })).await,
                400,
                "invalid_field",
            );
            refused(&send(client, method, &path, json!({})).await, 400, "no_fields");
        }
        let changed =
            send(client, Method::PATCH, &path, json!({ "color": "pink" })).await.success().expect("changed");
        assert_eq!((&changed["tag"]["text"], &changed["tag"]["color"]), (&json!("Web"), &json!("pink")));

        // A project keeps its other tags when one is deleted.
        let project = submitted(service, "shop").await["projectId"].clone();
        submitted(service, "other").await;
        let tagged = json!({ "tagIds": [web["id"], api["id"]] });
        let path_of_project = format!("/api/projects/{project}");
        let shown = send(client, Method::PATCH, &path_of_project, tagged).await.success().expect("tagged");
        assert_eq!(shown["project"]["tags"].as_array().map(Vec::len), Some(2));
        let filtered = client.json(&format!("/api/projects?tag={}", web["id"])).await.expect("projects");
        let names: Vec<&Value> =
            filtered["items"].as_array().expect("items").iter().map(|item| &item["name"]).collect();
        assert_eq!(names, ["shop"]);
        delete(client, &path).await.success().expect("deleted");
        refused(&delete(client, &path).await, 404, "tag_not_found");
        let overview = client.json("/api/projects/overview").await.expect("projects");
        let shop = overview["items"].as_array().expect("items").iter().find(|item| item["name"] == "shop");
        assert_eq!(shop.expect("the project")["tags"], json!([api]));
        let audited = client.json("/api/audit?action=tag.").await.expect("entries");
        let words: Vec<&str> = audited["items"]
            .as_array()
            .expect("items")
            .iter()
            .filter_map(|item| item["action"].as_str())
            .collect();
        let deeds = ["deleted", "changed", "deleted", "created", "created", "created"];
        assert_eq!(words, deeds.map(|deed| format!("tag.{deed}")));
    })
    .await;
}

#[tokio::test]
async fn links_hang_on_what_exists_and_lead_somewhere_safe() {
    for_each_service(async |service| {
        let client = service.client();
        let run = submitted(service, "shop").await["runId"].clone();
        let detail = client.json(&format!("/api/test-runs/{run}")).await.expect("the run");
        let (execution, case) = (&detail["testCases"][0]["id"], &detail["testCases"][0]["testCaseId"]);
        let new = async |body: Value| send(client, Method::POST, "/api/links", body).await;
        let of =
            |kind: &str, id: &Value, url: &str| json!({ "entityType": kind, "entityId": id, "url": url });
        let address = "https://github.com/acme/shop/issues/8";
        let link = created(&new(of("test_run", &run, address)).await)["link"].clone();
        assert_eq!((&link["provider"], &link["key"]), (&json!("github-issue"), &json!("#8")));
        created(&new(of("execution", execution, address)).await);
        created(&new(of("test_runs_case", execution, address)).await);
        created(&new(of("test_case", case, address)).await);
        for unsafe_address in [
            "javascript:alert(1)",
            "data:text/html,x",
            " java\nscript:alert(1)",
            "https://user:secret@example.org/",
            "ftp://example.org/",
            "/relative",
            "https://",
        ] {
            refused(&new(of("test_run", &run, unsafe_address)).await, 400, "invalid_field");
        }
        refused(&new(of("test_run", &json!(999), address)).await, 404, "run_not_found");
        refused(
            &new(of("execution", &json!((999_i64 << 20) | 1), address)).await,
            404,
            "execution_not_found",
        );
        let unknown = run.as_i64().expect("a run") << 20 | 77;
        refused(&new(of("execution", &json!(unknown), address)).await, 404, "execution_not_found");
        refused(&new(of("project", &run, address)).await, 400, "invalid_field");
        refused(&new(json!({ "entityType": "test_run" })).await, 400, "missing_field");

        for n in 0..20 {
            created(&new(with_title(of("test_run", &run, "https://tracker.test/SHOP-1"), n)).await);
        }
        let list = format!("/api/links?entityType=test_run&entityId={run}");
        let mut found = BTreeSet::new();
        let mut page = client.json(&format!("{list}&limit=7")).await.expect("links");
        loop {
            for item in page["items"].as_array().expect("items") {
                assert!(found.insert(item["id"].as_i64()), "{item} twice");
            }
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            page = client.json(&format!("{list}&limit=7&cursor={cursor}")).await.expect("links");
        }
        assert_eq!(found.len(), 21);
        refused(&client.get("/api/links").await.expect("an answer"), 400, "invalid_query");

        let path = format!("/api/links/{}", link["id"]);
        let edited = send(client, Method::PATCH, &path, json!({ "title": "The bug" }))
            .await
            .success()
            .expect("edited");
        assert_eq!((&edited["link"]["title"], &edited["link"]["url"]), (&json!("The bug"), &json!(address)));
        let edited = send(
            client,
            Method::PATCH,
            &path,
            json!({ "title": null, "url": "https://acme.atlassian.net/browse/SHOP-12" }),
        );
        let edited = edited.await.success().expect("edited");
        assert_eq!(
            (&edited["link"]["title"], &edited["link"]["provider"], &edited["link"]["key"]),
            (&Value::Null, &json!("jira"), &json!("SHOP-12"))
        );
        refused(&send(client, Method::PATCH, &path, json!({ "url": null })).await, 400, "invalid_field");
        delete(client, &path).await.success().expect("deleted");
        refused(&delete(client, &path).await, 404, "link_not_found");
    })
    .await;
}

fn with_title(mut link: Value, n: i32) -> Value {
    link["title"] = json!(format!("link {n}"));
    link
}

#[tokio::test]
async fn markers_stand_on_the_time_line_of_their_project() {
    for_each_service(async |service| {
        let client = service.client();
        let first = submitted(service, "shop").await;
        let second = submitted(service, "other").await;
        let list = format!("/api/projects/{}/markers", first["projectId"]);
        let new = async |body: Value| send(client, Method::POST, &list, body).await;
        let at = |moment: &str| json!({ "label": "Release", "occurredAt": moment, "category": "release", "runId": first["runId"] });
        let marker = created(&new(at("2026-01-01T10:00:00.000Z")).await)["marker"].clone();
        assert_eq!((&marker["source"], &marker["runId"]), (&json!("manual"), &first["runId"]));
        for n in 0..5 {
            created(&new(json!({ "label": format!("d{n}"), "occurredAt": "2026-01-02", "category": "deploy", "environment": "staging" })).await);
        }
        // A run of another project, and one that does not exist, change nothing.
        let count = async || client.json(&list).await.expect("markers")["items"].as_array().expect("items").len();
        let before = count().await;
        for run in [&second["runId"], &json!(999)] {
            let mut body = at("2026-01-05");
            body["runId"] = run.clone();
            refused(&new(body).await, 404, "run_not_found");
        }
        refused(&new(json!({ "label": "x", "occurredAt": "soon", "category": "release" })).await, 400, "invalid_field");
        refused(&new(json!({ "label": "x", "occurredAt": "2026-01-01", "category": "party" })).await, 400, "invalid_field");
        refused(&new(json!({ "label": "x" })).await, 400, "missing_field");
        assert_eq!(count().await, before);

        let titles = async |query: &str| {
            let found = client.json(&format!("{list}?{query}")).await.expect("markers");
            found["items"].as_array().expect("items").iter().map(|item| item["label"].as_str().expect("a label").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(titles("category=release").await, ["Release"]);
        assert_eq!(titles("environment=staging&limit=2").await, ["d4", "d3"]);
        assert_eq!(titles("to=2026-01-01").await, ["Release"]);
        refused(&client.get(&format!("{list}?category=party")).await.expect("an answer"), 400, "invalid_query");

        let path = format!("/api/markers/{}", marker["id"]);
        for (field, value) in [("description", json!("More")), ("environment", json!("prod")), ("runId", json!(null))] {
            let mut body = json!({});
            body[field] = value.clone();
            let edited = send(client, Method::PUT, &path, body).await.success().expect("edited");
            assert_eq!((&edited["marker"][field], &edited["marker"]["label"]), (&value, &json!("Release")));
        }
        let cleared = send(client, Method::PATCH, &path, json!({ "description": null })).await.success().expect("edited");
        assert_eq!((&cleared["marker"]["description"], &cleared["marker"]["environment"]), (&Value::Null, &json!("prod")));
        refused(&send(client, Method::PATCH, &path, json!({ "label": null })).await, 400, "invalid_field");
        delete(client, &path).await.success().expect("deleted");
        refused(&send(client, Method::PATCH, &path, json!({ "label": "x" })).await, 404, "marker_not_found");
    })
    .await;
}
