//! Markup in whatever people and their tests give a name to: pages show it as
//! text.

use callboard_auth::ROUTES;
use callboard_auth::routes::{Access, Method as Verb};
use callboard_domain::notifications::{ChannelKind, NotificationEvent};
use callboard_store::notifications::channels::{self, ChannelRow};
use callboard_store::notifications::deliveries::{self, NewDelivery};
use callboard_test_support::access::address;
use callboard_test_support::{Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use super::send;
use crate::foreign::{TABS, fill};

/// Ends an attribute and a script before it begins something that runs.
const MARKUP: &str = "\"'></script><img src=x onerror=alert(1)>";

/// A channel that has markup for a name and got it as a message. Its sealed
/// configuration is not needed to show it.
async fn channel(service: &Service) -> String {
    let now = service.state().now();
    let mut session = service.state().store().db().begin().await.expect("a session");
    let id = channels::new_id(&mut session).await.expect("an id");
    let row = ChannelRow {
        id,
        name: MARKUP.to_owned(),
        kind: ChannelKind::Slack,
        config: String::new(),
        target: MARKUP.to_owned(),
        failures: 0,
        paused_at: None,
        last_error: None,
        hourly_limit: 30,
        user: None,
        created_by: None,
        verified_at: None,
        created_at: now,
        updated_at: now,
    };
    channels::insert(&mut session, &row).await.expect("a channel");
    let message = json!({ "headline": MARKUP, "facts": [MARKUP], "url": "https://callboard.example.com/" });
    let new = NewDelivery {
        channel: id,
        project: None,
        event: NotificationEvent::Test,
        dedupe_key: None,
        payload: message.to_string(),
    };
    deliveries::insert(&mut session, &new, now).await.expect("a delivery");
    session.commit().await.expect("committed");
    id.to_string()
}

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
        let channel = channel(service).await;
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
            let own = match route.pattern {
                pattern if pattern.contains("/channels/{id}") => pattern.replace("{id}", &channel),
                _ => address(route, &held.ids, user),
            };
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
