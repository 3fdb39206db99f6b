//! Markup in whatever people and their tests give a name to: pages show it as
//! text.

use callboard_auth::ROUTES;
use callboard_auth::routes::{Access, Method as Verb};
use callboard_test_support::access::address;
use callboard_test_support::for_each_service;
use reqwest::Method;
use serde_json::{Value, json};

use super::send;
use crate::foreign::{TABS, fill};

/// Ends an attribute and a script before it begins something that runs.
const MARKUP: &str = "\"'></script><img src=x onerror=alert(1)>";

#[tokio::test]
async fn markup_in_every_text_is_text_on_every_page() {
    for_each_service(async |service| {
        let client = service.client();
        let held = fill(service, client, "owned", MARKUP).await;
        let name = async |method: Method, path: &str, body: Value| {
            send(client, method, path, body).await.success().expect("named")
        };
        let user = json!({ "username": MARKUP, "name": MARKUP, "role": "user" });
        let user = name(Method::POST, "/api/users", user).await["user"]["id"].as_i64().expect("an id");
        name(Method::POST, &format!("/api/users/{user}/api-keys"), json!({ "name": MARKUP })).await;
        let tag = name(Method::POST, "/api/tags", json!({ "text": MARKUP, "color": "teal" })).await;
        let project = format!("/api/projects/{}", held.ids.project);
        let texts = json!({
            "label": MARKUP, "description": MARKUP, "diagnosisInstructions": MARKUP, "tagIds": [tag["tag"]["id"]],
        });
        name(Method::PATCH, &project, texts).await;

        let browser = client.with_header("accept", "text/html").expect("a header");
        let pages = ROUTES.iter().filter(|route| {
            let is_page = route.method == Verb::Get && matches!(route.access, Access::Roles(_));
            is_page && !route.pattern.starts_with("/api/")
        });
        let asked_for: String = MARKUP.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (mut wrong, mut shown) = (Vec::new(), 0);
        for route in pages {
            let own = address(route, &held.ids, user);
            let has_tabs = matches!(route.pattern, "/projects/{id}" | "/test-runs/{id}");
            let tabs = TABS.iter().filter(|_| has_tabs).map(|tab| format!("{own}?tab={tab}"));
            let searched = format!("{own}?q={asked_for}");
            for path in [own.clone(), searched].into_iter().chain(tabs) {
                let answer = browser.get(&path).await.expect("an answer");
                let text = answer.text();
                let is_served = answer.status == 200 || (answer.status == 400 && path.contains('?'));
                if !is_served || text.contains("<img src=x") {
                    wrong.push(format!("{path}: {}", answer.status));
                }
                shown += usize::from(["&#60;img src=x", "&lt;img src=x"].iter().any(|shown| text.contains(shown)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(shown > 40, "{shown} pages show it");
    })
    .await;
}
