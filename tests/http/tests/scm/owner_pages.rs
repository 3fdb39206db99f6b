//! What an owner of tests has to look at.

use callboard_store::Backend;
use callboard_test_support::{Client, for_each_backend};
use serde_json::{Value, json};

use super::{encoded, started};
use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::mcp::Agent;
use crate::rows::settled;

const WEB: &str = "@acme/web & co";
const MARKUP: &str = "<img src=x onerror=alert(1)>";

async fn page(client: &Client, path: &str) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(path).await.expect("a page");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

fn owned(title: &str, status: &str, owner: &str) -> Value {
    with(attempt(title, status, 0), json!({ "testMeta": { "owner": owner } }))
}

fn titles(list: &Value, key: &str) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item[key].as_str().expect("a text").to_owned()).collect()
}

async fn lists_are_filtered(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let agent = Agent::at(client.clone(), "/mcp");
    let failing = |title: &str, owner: &str, error: &str| {
        with(owned(title, "failed", owner), json!({ "error": error }))
    };
    let cases = vec![
        failing("pays", WEB, "Error: the till is closed"),
        failing("ships", MARKUP, "TypeError: cannot read properties of undefined (reading 'truck')"),
        owned("signs in", "passed", WEB),
        attempt("returns", "passed", 0),
    ];
    let id = submit(client, run("shop", "failed", cases)).await;
    settled(&service).await;
    let project = client.json(&format!("/api/test-runs/{id}")).await.expect("a run")["project"]["id"].clone();
    let api = format!("/api/projects/{project}");
    let tests = client.json(&format!("{api}/test-cases?limit=50")).await.expect("tests");
    let test_of = |title: &str| {
        let items = tests["items"].as_array().expect("tests");
        items.iter().find(|item| item["title"] == title).expect("the test")["id"].clone()
    };
    for title in ["signs in", "returns"] {
        let body = json!({ "testCaseId": test_of(title) });
        client.post_json(&format!("{api}/quarantine"), &body).await.expect("quarantined");
    }

    // One owner's clusters and quarantined tests, on every surface.
    let own = format!("owner={}", encoded(WEB));
    for path in [format!("{api}/failure-clusters?{own}"), format!("/api/failure-clusters?{own}")] {
        let found = client.json(&path).await.expect("clusters");
        assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
        assert!(found["items"][0]["signature"].as_str().is_some_and(|text| text.contains("till")), "{found}");
    }
    let none = client.json(&format!("{api}/failure-clusters?owner=nobody")).await.expect("clusters");
    assert_eq!(none["items"], json!([]));
    let cluster = client.json(&format!("{api}/failure-clusters?{own}")).await.expect("clusters");
    let cluster = &cluster["items"][0]["id"];
    let affected = client.json(&format!("/api/failure-clusters/{cluster}/test-cases")).await.expect("tests");
    assert_eq!(affected["items"][0]["owner"], WEB, "{affected}");
    for (tool, arguments) in [
        ("list_clusters", json!({ "projectId": project, "owner": WEB })),
        ("list_open_clusters", json!({ "owner": WEB })),
    ] {
        let found = agent.call(tool, arguments).await.expect("clusters");
        assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{tool}: {found}");
        assert_eq!(&found["items"][0]["clusterId"], cluster, "{tool}: {found}");
    }
    let aside = client.json(&format!("{api}/quarantine?{own}")).await.expect("a list");
    assert_eq!(titles(&aside, "title"), ["signs in"], "{aside}");
    assert_eq!(aside["debt"]["active"], 2, "the debt is that of all");
    let groups = client.json(&format!("/api/test-runs/{id}/failure-groups")).await.expect("groups");
    let owners: Vec<&str> = groups["items"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| {
            group["cases"].as_array().expect("cases").iter().filter_map(|case| case["owner"].as_str())
        })
        .collect();
    assert!(owners.contains(&WEB) && owners.contains(&MARKUP), "{groups}");

    // Files name owners as well.
    let file = async |format: &str| {
        client.get(&format!("/api/test-runs/{id}/export?format={format}")).await.expect("a file").text()
    };
    let ctrf: Value = serde_json::from_str(&file("ctrf").await).expect("JSON");
    let tests = ctrf["results"]["tests"].as_array().expect("tests");
    let of = |title: &str| tests.iter().find(|test| test["name"] == title).expect("the test");
    assert_eq!(
        (&of("pays")["extra"]["owner"], &of("returns")["extra"]["owner"]),
        (&json!(WEB), &json!(null))
    );
    let junit = file("junit").await;
    assert_eq!(junit.matches("<property name=\"owner\"").count(), 3, "{junit}");
    assert!(junit.contains("value=\"@acme/web &amp; co\""), "{junit}");
    assert!(file("csv").await.contains("@acme/web & co"));

    // The list of owners, one by one as a page allows, and the page of one.
    let list = format!("/projects/{project}?tab=owners");
    let text = page(client, &list).await;
    assert!(text.contains("@acme/web &#38; co") || text.contains("@acme/web &amp; co"), "{text}");
    assert!(!text.contains("<img src=x"), "{text}");
    assert!(page(client, &format!("{list}&limit=1")).await.contains("cursor="));
    let text = page(client, &format!("{list}&{own}")).await;
    for shown in ["till", "pays", "signs in", "tab=quarantine", "tab=cases"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert!(!text.contains("ships") && !text.contains("truck"), "{text}");
    let text = page(client, &format!("{list}&owner={}", encoded(MARKUP))).await;
    assert!(text.contains("ships") && !text.contains("<img src=x"), "{text}");
    assert!(page(client, &format!("{list}&owner=nobody")).await.contains("No test of this project"));
    for tab in ["clusters", "quarantine"] {
        let text = page(client, &format!("/projects/{project}?tab={tab}&{own}")).await;
        assert!(text.contains(if tab == "clusters" { "till" } else { "signs in" }), "{text}");
        assert!(!text.contains("truck"), "{text}");
    }
    // Wherever an owner is shown, it leads there.
    let link = "?tab=owners&#38;owner=%40acme%2Fweb+%26+co";
    for path in [
        format!("/test-cases/{}", test_of("pays")),
        format!("/projects/{project}?tab=quarantine"),
        format!("/failure-clusters/{cluster}"),
        format!("/test-runs/{id}?tab=groups"),
    ] {
        let text = page(client, &path).await;
        assert!(text.contains(link) || text.contains(&link.replace("&#38;", "&amp;")), "{path}: {text}");
    }
}

#[tokio::test]
async fn an_owner_has_a_page_and_every_list_a_filter() {
    for_each_backend(lists_are_filtered).await;
}
