//! Notifications of people: the bell in the header, *Notify me*, channels of their own, and what they may see.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::{ProjectId, UserId};
use callboard_store::Backend;
use callboard_store::accounts::assignments;
use callboard_store::accounts::users::{Email, EmailSource};
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{Client, MailServer, Service, TestDatabase, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use crate::comparison::submit;
use crate::notifications::{KEY, recent};
use crate::rows::settled;

/// A service where people sign in, with a project of two runs, the newest of which passed.
struct Scene {
    service: Service,
    program: Client,
    admin: Client,
    project: i64,
    user: UserId,
    browser: Client,
}

impl Scene {
    async fn start(backend: Backend, more: &[(&str, &str)]) -> Self {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings: Vec<_> = secured_settings().into_iter().chain(more).collect();
        let service = Service::over(database, &settings).await.expect("a service");
        let admin = service.account("ada", Role::Administrator).await.expect("an account");
        let program = service.program_of(admin, KeyPermission::Full).await.expect("a program");
        let admin = service.browser_of(admin).await.expect("a browser");
        let user = service.account("grace", Role::User).await.expect("an account");
        let run = submit(&program, recent(&service, 60, "main", "passed")).await;
        settled(&service).await;
        let shown = admin.json(&format!("/api/test-runs/{run}")).await.expect("a run");
        let project = shown["projectId"].as_i64().expect("a project");
        service.assign(user, Some(ProjectId(project))).await.expect("assigned");
        let browser = service.browser_of(user).await.expect("a browser");
        Self { service, program, admin, project, user, browser }
    }

    async fn run(&self, minutes_ago: i64, status: &str) -> i64 {
        let run = submit(&self.program, recent(&self.service, minutes_ago, "main", status)).await;
        settled(&self.service).await;
        run
    }
}

async fn items(client: &Client) -> Vec<Value> {
    let answer = client.json("/api/notifications").await.expect("a list");
    answer["items"].as_array().expect("a list").clone()
}

async fn events(client: &Client) -> Vec<String> {
    items(client).await.iter().map(|item| item["event"].as_str().expect("an event").to_owned()).collect()
}

async fn code(client: &Client, method: Method, path: &str, body: Value) -> (u16, Value) {
    let answer = client.send_json(method, path, &body).await.expect("an answer");
    let status = answer.status.as_u16();
    (status, answer.json().map(|body: Value| body["code"].clone()).unwrap_or_default())
}

async fn a_person_is_notified(backend: Backend) {
    let scene = Scene::start(backend, &[]).await;
    let Scene { service, admin, project, browser, .. } = &scene;
    let watch = json!({ "projectId": project });
    let made = browser.post_json("/api/subscriptions", &watch).await.expect("a subscription");
    let again = browser.post_json("/api/subscriptions", &watch).await.expect("a subscription");
    assert_eq!(made["subscription"]["id"], again["subscription"]["id"], "one of each thing");
    assert_eq!(made["subscription"]["isGlobal"], false);
    let page = format!("/projects/{project}");
    let shown = browser.get(&page).await.expect("a page").text();
    assert!(shown.contains("aria-pressed=\"true\"") && shown.contains("aria-label=\"Notifications\""));

    let red = scene.run(50, "failed").await;
    let found = items(browser).await;
    let of_branch = found.iter().find(|item| item["event"] == "run.failed.default_branch");
    let of_branch = of_branch.expect("a notification");
    assert_eq!(of_branch["headline"], format!("shop: main is red since run {red}"));
    assert!(of_branch["url"].as_str().is_some_and(|url| url.ends_with(&format!("/test-runs/{red}"))));
    assert_eq!((&of_branch["readAt"], &of_branch["projectId"]), (&Value::Null, &json!(project)));
    let count = found.len();
    let shown = browser.get("/notifications").await.expect("a page").text();
    assert!(shown.contains(&format!("aria-label=\"Notifications, {count} unread\"")), "{shown}");
    assert!(shown.contains("main is red since run") && shown.contains("Mark all as read"));
    assert_eq!(items(admin).await, Vec::<Value>::new(), "it is nobody else's");

    // Read one, then all up to the newest.
    let one = found[count - 1]["id"].clone();
    assert_eq!(code(admin, Method::POST, &format!("/api/notifications/{one}/read"), json!({})).await.0, 404);
    assert_eq!(
        code(browser, Method::POST, &format!("/api/notifications/{one}/read"), json!({})).await.0,
        200
    );
    let unread = browser.json("/api/notifications?unread=true").await.expect("a list");
    assert_eq!(unread["items"].as_array().map(Vec::len), Some(count - 1));
    let read = browser.post_json("/api/notifications/read", &json!({ "upTo": found[0]["id"] })).await;
    assert_eq!(read.expect("read")["count"], count - 1);
    let first = browser.json("/api/notifications?limit=1").await.expect("a page");
    assert!(first["nextCursor"].is_string() && first["items"][0]["readAt"].is_string());

    // A project that is taken away shows nothing any more, and nothing is added.
    let mut session = service.state().store().db().begin().await.expect("a session");
    assignments::remove(&mut session, scene.user, ProjectId(*project)).await.expect("removed");
    session.commit().await.expect("committed");
    assert_eq!(items(browser).await, Vec::<Value>::new());
    scene.run(40, "passed").await;
    service.assign(scene.user, Some(ProjectId(*project))).await.expect("assigned");
    assert_eq!(items(browser).await.len(), count, "what happened meanwhile is not delivered later");

    // The same button ends it.
    let path = format!("/api/subscriptions/{}", made["subscription"]["id"]);
    assert_eq!(code(admin, Method::DELETE, &path, json!({})).await.0, 404, "another's is not found");
    assert_eq!(code(browser, Method::DELETE, &path, json!({})).await.0, 200);
    scene.run(30, "failed").await;
    assert_eq!(items(browser).await.len(), count);
}

#[tokio::test]
async fn a_person_is_notified_in_the_header_of_the_pages() {
    for_each_backend(a_person_is_notified).await;
}

async fn of_one_test(backend: Backend) {
    let scene = Scene::start(backend, &[]).await;
    let browser = &scene.browser;
    let cases = browser.json(&format!("/api/projects/{}/test-cases", scene.project)).await.expect("tests");
    let case = |title: &str| {
        let found = cases["items"].as_array().expect("a list").iter().find(|item| item["title"] == title);
        found.expect("a test")["id"].clone()
    };
    browser.post_json("/api/subscriptions", &json!({ "testCaseId": case("pays") })).await.expect("on");
    browser.post_json("/api/subscriptions", &json!({ "testCaseId": case("ships") })).await.expect("on");
    for (minutes_ago, status) in [(50, "failed"), (40, "failed"), (30, "passed")] {
        scene.run(minutes_ago, status).await;
    }
    assert_eq!(events(browser).await, ["test.fixed", "test.failed"], "only the test that changed, once each");

    let clusters = browser.json(&format!("/api/projects/{}/failure-clusters", scene.project)).await;
    let cluster = clusters.expect("clusters")["items"][0]["id"].clone();
    let on = browser.post_json("/api/subscriptions", &json!({ "clusterId": cluster })).await.expect("on");
    assert_eq!(on["subscription"]["clusterId"], cluster);
    let page = browser.get(&format!("/failure-clusters/{cluster}")).await.expect("a page").text();
    assert!(page.contains("aria-pressed=\"true\""));
    let unknown = code(browser, Method::POST, "/api/subscriptions", json!({ "testCaseId": 999_999 })).await;
    assert_eq!(unknown, (404, json!("test_case_not_found")));
}

#[tokio::test]
async fn a_test_that_fails_and_passes_again_is_reported_to_those_who_asked() {
    for_each_backend(of_one_test).await;
}

async fn of_roles(backend: Backend) {
    let scene = Scene::start(backend, &[("SERVICE_SECRET_KEY", KEY)]).await;
    let Scene { service, admin, browser, .. } = &scene;
    let slack = json!({
        "name": "mine", "type": "slack", "isGlobal": false, "config": { "webhookUrl": "https://hooks.example.com/a/b" }
    });
    let refused = code(browser, Method::POST, "/api/channels", slack.clone()).await;
    assert_eq!(refused, (403, json!("insufficient_role")));
    let reporter = service.account("linus", Role::Reporter).await.expect("an account");
    let reporter = service.browser_of(reporter).await.expect("a browser");
    let own = reporter.post_json("/api/channels", &slack).await.expect("a channel")["channel"].clone();
    assert_eq!(own["isGlobal"], false);
    let global = json!({ "name": "all", "type": "slack", "config": { "webhookUrl": "https://hooks.example.com/c/secret-d" } });
    let everyones = admin.post_json("/api/channels", &global).await.expect("a channel")["channel"].clone();
    assert_eq!(everyones["isGlobal"], true);
    let refused = code(&reporter, Method::POST, "/api/channels", {
        let mut body = global.clone();
        body["isGlobal"] = json!(true);
        body
    });
    assert_eq!(refused.await, (403, json!("insufficient_role")));

    let seen = browser.json("/api/channels").await.expect("channels");
    assert_eq!(
        seen["items"].as_array().map(Vec::len),
        Some(1),
        "one's own and those of the instance: {seen}"
    );
    assert_eq!(seen["items"][0]["target"], "", "no address of what one may not change");
    let path = format!("/api/channels/{}", own["id"]);
    for client in [browser, admin] {
        let refused = code(client, Method::PATCH, &path, json!({ "name": "x" })).await;
        assert_eq!(refused, (404, json!("channel_not_found")));
    }
    let everyones = format!("/api/channels/{}", everyones["id"]);
    let refused = code(browser, Method::PATCH, &everyones, json!({ "paused": true })).await;
    assert_eq!(refused, (403, json!("insufficient_role")));
    let foreign = json!({ "channelId": own["id"], "events": ["run.failed"] });
    let refused = code(browser, Method::POST, "/api/subscriptions", foreign).await;
    assert_eq!(refused, (404, json!("channel_not_found")));

    // A subscription to what one does not reach is refused.
    let stranger = service.account("alan", Role::User).await.expect("an account");
    let stranger = service.browser_of(stranger).await.expect("a browser");
    let watch = json!({ "projectId": scene.project });
    assert_eq!(code(&stranger, Method::POST, "/api/subscriptions", watch).await.0, 403);
    let browser_channel = json!({ "type": "browser", "isGlobal": true });
    let refused = code(admin, Method::POST, "/api/channels", browser_channel).await;
    assert_eq!(refused, (400, json!("invalid_field")));
    let page = browser.get("/settings/notifications").await.expect("a page");
    assert_eq!(page.status.as_u16(), 200);
    assert!(!page.text().contains("hooks.example.com"));
}

#[tokio::test]
async fn people_have_the_channels_that_their_role_allows() {
    for_each_backend(of_roles).await;
}

async fn without_sign_in(backend: Backend) {
    let service = Service::start(backend).await.expect("a service");
    let client = service.client();
    for kind in ["browser", "personal_email"] {
        let refused = code(client, Method::POST, "/api/channels", json!({ "type": kind })).await;
        assert_eq!(refused, (400, json!("invalid_field")), "{kind}");
    }
    let refused = code(client, Method::POST, "/api/subscriptions", json!({ "projectId": 1 })).await;
    assert_eq!(refused, (400, json!("missing_field")));
    assert_eq!(client.json("/api/notifications").await.expect("a list")["items"], json!([]));
    let home = client.get("/").await.expect("a page").text();
    assert!(!home.contains("data-bell"), "there is no bell");
}

#[tokio::test]
async fn without_sign_in_there_are_channels_of_the_instance_only() {
    for_each_backend(without_sign_in).await;
}

async fn own_address(backend: Backend) {
    let server = MailServer::start().await.expect("a mail server");
    let url = server.url();
    let scene = Scene::start(
        backend,
        &[
            ("SERVICE_SMTP_URL", url.as_str()),
            ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
            ("SERVICE_SITE_URL", "https://tests.example.org"),
        ],
    )
    .await;
    let refused =
        code(&scene.browser, Method::POST, "/api/channels", json!({ "type": "personal_email" })).await;
    assert_eq!(refused, (400, json!("address_not_allowed")), "no confirmed address yet");
    let now = scene.service.state().now();
    let user = scene.service.account_with("joan", Role::User, |row| {
        row.email = Some(Email {
            address: "joan@example.net".to_owned(),
            source: EmailSource::Verified,
            verified_at: Some(now),
        });
    });
    let user = user.await.expect("an account");
    scene.service.assign(user, Some(ProjectId(scene.project))).await.expect("assigned");
    let joan = scene.service.browser_of(user).await.expect("a browser");
    let channel =
        joan.post_json("/api/channels", &json!({ "type": "personal_email" })).await.expect("a channel");
    let channel = channel["channel"]["id"].clone();
    let body = json!({ "channelId": channel, "events": ["run.failed"], "projectId": scene.project });
    joan.post_json("/api/subscriptions", &body).await.expect("a subscription");
    scene.run(50, "failed").await;
    let mails = server.received();
    assert_eq!(
        mails.iter().map(|mail| mail.to.clone()).collect::<Vec<_>>(),
        [vec!["joan@example.net".to_owned()]]
    );

    // What is taken away while a message waits is not sent.
    let digest = json!({ "mode": "digest", "digestAt": "08:00" });
    let subscriptions = joan.json("/api/subscriptions").await.expect("a list");
    let path = format!("/api/subscriptions/{}", subscriptions["items"][0]["id"]);
    assert_eq!(code(&joan, Method::PATCH, &path, digest).await.0, 200);
    scene.run(40, "failed").await;
    let mut session = scene.service.state().store().db().begin().await.expect("a session");
    assignments::remove(&mut session, user, ProjectId(scene.project)).await.expect("removed");
    session.commit().await.expect("committed");
    crate::notification_schedules::worked_later(&scene.service, 24 * 60 + 1).await;
    assert_eq!(server.received().len(), 1, "nothing more");
}

#[tokio::test]
async fn a_person_is_mailed_at_their_confirmed_address() {
    for_each_backend(own_address).await;
}

async fn tests_are_limited(backend: Backend) {
    let scene = Scene::start(backend, &[("SERVICE_SECRET_KEY", KEY)]).await;
    let body = json!({
        "name": "ci", "type": "webhook", "config": { "url": "https://hooks.example.org/ci" }
    });
    let channel =
        scene.admin.post_json("/api/channels", &body).await.expect("a channel")["channel"]["id"].clone();
    let path = format!("/api/channels/{channel}/test");
    for _ in 0..10 {
        scene.admin.post_json(&path, &json!({})).await.expect("queued");
    }
    let refused = scene.admin.post(&path, &json!({})).await.expect("an answer");
    assert_eq!(
        (refused.status.as_u16(), &refused.json().expect("JSON")["code"]),
        (429, &json!("rate_limited"))
    );
}

#[tokio::test]
async fn tests_of_a_channel_are_limited() {
    for_each_backend(tests_are_limited).await;
}

async fn a_channel_pauses(backend: Backend) {
    let recipient = crate::notifications::Recipient::start().await;
    let more = [
        ("SERVICE_SECRET_KEY", KEY),
        ("SERVICE_EGRESS_ALLOW", recipient.host()),
        ("SERVICE_RATE_LIMITS", "off"),
    ];
    let scene = Scene::start(backend, &more).await;
    recipient.answers(reqwest::StatusCode::NOT_FOUND);
    let body = json!({
        "name": "broken", "type": "webhook", "config": { "url": format!("http://{}/hook", recipient.host()) }
    });
    let channel =
        scene.admin.post_json("/api/channels", &body).await.expect("a channel")["channel"]["id"].clone();
    for _ in 0..20 {
        scene.admin.post_json(&format!("/api/channels/{channel}/test"), &json!({})).await.expect("queued");
    }
    settled(&scene.service).await;
    let found = items(&scene.admin).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["event"], &found[0]["headline"]),
        (&json!("channel.paused"), &json!("The channel “broken” is paused"))
    );
    assert_eq!(items(&scene.browser).await, Vec::<Value>::new(), "only who created it");
}

#[tokio::test]
async fn the_owner_of_a_channel_is_notified_when_it_pauses() {
    for_each_backend(a_channel_pauses).await;
}
