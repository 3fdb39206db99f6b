//! Notifications: every transition is told once, to those who asked for it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_test_support::{Client, MailServer, Service, TestDatabase, for_each_backend};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;

use crate::builders::{attempt, run, with};
use crate::comparison::submit;
use crate::rows::settled;

pub(crate) const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210";
const SECRET: &str = "a-secret-of-the-webhook";

/// A request that reached the recipient.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).expect("a header").to_str().expect("text")
    }
}

/// Somebody else's server; it answers with the status it was last given.
#[derive(Debug, Clone)]
pub(crate) struct Recipient {
    host: String,
    state: Arc<Mutex<(Vec<Received>, StatusCode)>>,
}

impl Recipient {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a server");
        let host = listener.local_addr().expect("an address").to_string();
        let recipient = Self { host, state: Arc::new(Mutex::new((Vec::new(), StatusCode::OK))) };
        let router = Router::new().fallback(receive).with_state(recipient.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        recipient
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn answers(&self, status: StatusCode) {
        self.state.lock().expect("the state").1 = status;
    }

    /// What came since the last call.
    pub(crate) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.state.lock().expect("the state").0)
    }

    /// The events that came since the last call, in their order.
    pub(crate) fn take_events(&self) -> Vec<String> {
        self.take().iter().map(|one| one.json()["event"].as_str().expect("an event").to_owned()).collect()
    }
}

async fn receive(
    State(recipient): State<Recipient>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1]) {
    let mut state = recipient.state.lock().expect("the state");
    state.0.push(Received { path: uri.path().to_owned(), headers, body });
    (state.1, [("location", "/elsewhere")])
}

pub(crate) async fn started(backend: Backend, recipient: &Recipient) -> Service {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings = [("SERVICE_SECRET_KEY", KEY), ("SERVICE_EGRESS_ALLOW", recipient.host.as_str())];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Service::over(database, &settings).await.expect("a service")
}

/// A channel of the recipient.
pub(crate) async fn channel(client: &Client, recipient: &Recipient) -> i64 {
    let body = json!({
        "name": "releases", "type": "webhook",
        "config": { "url": format!("http://{}/hooks/very-secret-path", recipient.host), "secret": SECRET },
    });
    let answer = client.post_json("/api/channels", &body).await.expect("a channel");
    answer["channel"]["id"].as_i64().expect("an id")
}

async fn subscribe(client: &Client, channel: i64, events: &[&str], filters: Value) -> i64 {
    let body = json!({ "channelId": channel, "events": events, "filters": filters });
    let answer = client.post_json("/api/subscriptions", &body).await.expect("a subscription");
    answer["subscription"]["id"].as_i64().expect("an id")
}

/// A full run of `shop` that began some minutes ago.
pub(crate) fn recent(service: &Service, minutes_ago: i64, branch: &str, status: &str) -> Value {
    let start = Timestamp(service.state().now().millis() - minutes_ago * 60_000).to_iso();
    let scm = json!({ "scm": { "defaultBranch": "main" } });
    let cases = vec![attempt("pays", status, 0), attempt("ships", "passed", 0)];
    with(
        run("shop", status, cases),
        json!({ "startTime": start, "branch": branch, "metadata": scm, "isFullRun": true }),
    )
}

async fn a_branch_that_turns_is_told_once(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    let turns = ["run.failed.default_branch", "run.recovered"];
    subscribe(client, channel, &turns, json!({ "defaultBranchOnly": true })).await;
    // A second subscription of the channel sends nothing twice.
    subscribe(client, channel, &turns, json!({})).await;
    let features = client.json("/api/setup-status").await.expect("features");
    let features = features["items"].as_array().expect("a list");
    assert!(features.iter().any(|item| item["id"] == "notifications" && item["active"] == true));

    for (minutes, branch, status) in [
        (60, "main", "failed"),
        (50, "main", "passed"),
        (40, "main", "failed"),
        (30, "main", "failed"),
        (20, "main", "passed"),
        (10, "main", "passed"),
    ] {
        submit(client, recent(&service, minutes, branch, status)).await;
        settled(&service).await;
    }
    assert_eq!(recipient.take_events(), ["run.recovered", "run.failed.default_branch", "run.recovered"]);

    // A late run before the newest one changes nothing about the branch.
    submit(client, recent(&service, 25, "main", "failed")).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());

    let red = submit(client, recent(&service, 5, "main", "failed")).await;
    settled(&service).await;
    let told = recipient.take();
    assert_eq!(told.len(), 1);
    let (body, headers) = (told[0].json(), &told[0].headers);
    assert_eq!(told[0].path, "/hooks/very-secret-path");
    assert_eq!(headers["x-service-event"], "run.failed.default_branch");
    assert_eq!(headers["x-service-delivery"].to_str().expect("an id"), body["id"].to_string());
    let payload = &body["payload"];
    assert_eq!(
        (&payload["runId"], &payload["branch"], &payload["status"]),
        (&json!(red), &json!("main"), &json!("failed"))
    );
    assert_eq!(payload["headline"], format!("shop: main is red since run {red}"));
    assert_eq!(payload["facts"][0], "1 failed, 1 passed");
    assert!(payload["url"].as_str().expect("an address").ends_with(&format!("/test-runs/{red}")));
    assert_eq!(payload["facts"][1], "1 new failure");
    let failure = &payload["failures"][0];
    assert_eq!(failure["title"], "Shop › pays");
    assert!(failure["cause"].as_str().is_some_and(|cause| cause.contains("went wrong")), "{failure}");
    assert!(failure["url"].as_str().is_some_and(|url| url.contains("/test-run-cases/")), "{failure}");
    let signature = headers["x-service-signature"].to_str().expect("a signature");
    let (time, signed) =
        signature.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).expect("its form");
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    mac.update(format!("{time}.").as_bytes());
    mac.update(&told[0].body);
    assert_eq!(signed, hex::encode(mac.finalize().into_bytes()));

    let log = client.json(&format!("/api/channels/{channel}/deliveries?limit=1")).await.expect("a log");
    let newest = &log["items"][0];
    assert_eq!(
        (&newest["state"], &newest["attempts"], &newest["responseStatus"]),
        (&json!("sent"), &json!(1), &json!(200))
    );
    assert!(log["nextCursor"].is_string(), "the log has pages");
    let shown = client.json("/api/channels").await.expect("channels").to_string();
    assert!(!shown.contains("very-secret") && !shown.contains(SECRET), "{shown}");
}

#[tokio::test]
async fn a_branch_that_turns_red_or_green_is_told_once() {
    for_each_backend(a_branch_that_turns_is_told_once).await;
}

async fn subscriptions_choose(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    let subscription =
        subscribe(client, channel, &["run.failed", "cluster.new"], json!({ "branches": ["main"] })).await;

    submit(client, recent(&service, 50, "topic", "failed")).await;
    // Results of a month ago are back-filled, and nobody is woken up.
    submit(client, recent(&service, 30 * 24 * 60, "main", "failed")).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());

    submit(client, recent(&service, 40, "main", "passed")).await;
    submit(client, recent(&service, 30, "main", "failed")).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), ["run.failed"], "its cluster was seen before");

    let path = format!("/api/subscriptions/{subscription}");
    let off = client.send_json(Method::PATCH, &path, &json!({ "active": false })).await.expect("an answer");
    assert_eq!(off.status.as_u16(), 200);
    submit(client, recent(&service, 20, "main", "failed")).await;
    settled(&service).await;
    assert_eq!(recipient.take_events(), Vec::<String>::new());

    let wrong = json!({ "channelId": channel, "events": ["run.exploded"] });
    let answer = client.post("/api/subscriptions", &wrong).await.expect("an answer");
    let error: Value = answer.json().expect("an error");
    assert_eq!(
        (answer.status.as_u16(), &error["code"], &error["data"]["field"]),
        (400, &json!("invalid_field"), &json!("events"))
    );
    assert!(error["message"].as_str().expect("words").contains("run.exploded"), "{error}");
}

#[tokio::test]
async fn a_subscription_chooses_events_and_branches() {
    for_each_backend(subscriptions_choose).await;
}

async fn a_recipient_fails(backend: Backend) {
    let recipient = Recipient::start().await;
    let service = started(backend, &recipient).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    let deliveries = format!("/api/channels/{channel}/deliveries");
    let test = format!("/api/channels/{channel}/test");

    recipient.answers(StatusCode::SERVICE_UNAVAILABLE);
    let queued = client.post_json(&test, &json!({})).await.expect("queued");
    settled(&service).await;
    let log = client.json(&deliveries).await.expect("a log");
    let tried = &log["items"][0];
    assert_eq!(
        (&tried["id"], &tried["state"], &tried["attempts"]),
        (&queued["deliveryId"], &json!("pending"), &json!(1))
    );
    assert!(tried["error"].as_str().expect("an error").contains("503"), "{tried}");
    assert!(tried["nextAttemptAt"].is_string(), "it is tried again");

    // What must arrive at the address does not wander off to another one.
    recipient.answers(StatusCode::TEMPORARY_REDIRECT);
    recipient.take();
    client.post_json(&test, &json!({})).await.expect("queued");
    settled(&service).await;
    let log = client.json(&format!("{deliveries}?state=failed")).await.expect("a log");
    let redirected = log["items"][0]["error"].as_str().expect("an error");
    assert!(redirected.contains("enter that one"), "{redirected}");
    assert_eq!(recipient.take().len(), 1);

    // An answer that no repetition changes is final.
    recipient.answers(StatusCode::NOT_FOUND);
    client.post_json(&test, &json!({})).await.expect("queued");
    settled(&service).await;
    let log = client.json(&format!("{deliveries}?state=failed")).await.expect("a log");
    let failed = log["items"][0]["id"].as_i64().expect("an id");
    recipient.take();
    recipient.answers(StatusCode::OK);
    client.post_json(&format!("/api/deliveries/{failed}/retry"), &json!({})).await.expect("queued");
    settled(&service).await;
    let again = recipient.take();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].json()["id"], failed, "the recipient can tell a repetition by its id");
    let answer =
        client.post(&format!("/api/deliveries/{failed}/retry"), &json!({})).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 409, "it has arrived");
    let audit = client.json("/api/audit?action=delivery.repeated").await.expect("a log");
    assert_eq!(audit["items"][0]["detail"]["delivery"], failed, "{audit}");

    // Nothing is sent to an address that the service may not reach.
    let inside = json!({ "config": { "url": "http://169.254.169.254/latest/meta-data" } });
    let path = format!("/api/channels/{channel}");
    client.send_json(Method::PATCH, &path, &inside).await.expect("an answer").success().expect("changed");
    client.post_json(&test, &json!({})).await.expect("queued");
    settled(&service).await;
    let log = client.json(&format!("{deliveries}?state=failed")).await.expect("a log");
    let refused = &log["items"][0]["error"];
    assert!(refused.as_str().expect("an error").contains("SERVICE_EGRESS_ALLOW"), "{refused}");

    client.send_json(Method::DELETE, &path, &json!({})).await.expect("an answer").success().expect("deleted");
    let gone = client.get(&deliveries).await.expect("an answer");
    assert_eq!(gone.status.as_u16(), 404);
}

#[tokio::test]
async fn a_delivery_that_fails_is_kept_and_can_be_sent_again() {
    for_each_backend(a_recipient_fails).await;
}

/// A service with a mail server that may mail to one domain.
async fn mailing(backend: Backend) -> (Service, MailServer) {
    let server = MailServer::start().await.expect("a mail server");
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings = mail_settings(&server, "example.com");
    (Service::over(database, &settings).await.expect("a service"), server)
}

fn mail_settings(server: &MailServer, allowed: &str) -> Vec<(String, String)> {
    let url = server.url();
    let settings = [
        ("SERVICE_SECRET_KEY", KEY),
        ("SERVICE_SMTP_URL", url.as_str()),
        ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
        ("SERVICE_SITE_URL", "https://tests.example.org"),
        ("SERVICE_MAIL_ALLOW", allowed),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn mail_channel(address: &str) -> Value {
    json!({ "name": "releases", "type": "email", "config": { "address": address } })
}

async fn mail_is_sent(backend: Backend) {
    let (service, server) = mailing(backend).await;
    let client = service.client();
    for (address, code) in [
        ("somebody@example.net", "address_not_allowed"),
        ("nobody", "invalid_field"),
        ("a@example.com, b@example.com", "invalid_field"),
    ] {
        let answer = client.post("/api/channels", &mail_channel(address)).await.expect("an answer");
        let error: Value = answer.json().expect("an error");
        assert_eq!((answer.status.as_u16(), &error["code"]), (400, &json!(code)), "{address}: {error}");
    }
    let created = client.post_json("/api/channels", &mail_channel("releases@example.com")).await;
    let created = created.expect("a channel");
    assert_eq!(created["channel"]["target"], "r…@example.com");
    let channel = created["channel"]["id"].as_i64().expect("an id");
    let elsewhere = json!({ "config": { "address": "somebody@example.net" } });
    let path = format!("/api/channels/{channel}");
    let answer = client.send_json(Method::PATCH, &path, &elsewhere).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 400, "an address is judged again when it changes");

    subscribe(client, channel, &["run.failed"], json!({})).await;
    let named = with(recent(&service, 5, "main", "failed"), json!({ "branch": "x\r\nBcc: all@example.com" }));
    let run = submit(client, named).await;
    settled(&service).await;
    let mails = server.received();
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].to, ["releases@example.com"]);
    assert_eq!(mails[0].header("bcc"), None);
    let subject = mails[0].header("subject").expect("a subject");
    assert!(subject.contains("shop"), "{subject}");
    // Long lines are folded with soft breaks, and `=` is encoded.
    let content = mails[0].content.replace("=\r\n", "").replace("=3D", "=");
    assert!(content.contains(&format!("https://tests.example.org/test-runs/{run}")), "{content}");

    let link = mails[0].header("list-unsubscribe").expect("a link to unsubscribe");
    let link =
        link.trim_matches(['<', '>']).strip_prefix("https://tests.example.org").expect("the public address");
    assert_eq!(mails[0].header("list-unsubscribe-post").as_deref(), Some("List-Unsubscribe=One-Click"));
    unsubscribed(&service, &path, link).await;

    // A temporary refusal is retried, a permanent one is final.
    let deliveries = format!("{path}/deliveries");
    for (answer, state) in [("451 busy", "pending"), ("550 no such mailbox", "failed")] {
        server.refuse(Some(answer));
        client.post_json(&format!("{path}/test"), &json!({})).await.expect("queued");
        settled(&service).await;
        let log = client.json(&deliveries).await.expect("a log");
        let tried = &log["items"][0];
        assert_eq!((&tried["state"], &tried["attempts"]), (&json!(state), &json!(1)), "{tried}");
        let code: i64 = answer[..3].parse().expect("a code");
        assert_eq!(tried["responseStatus"], code, "{tried}");
        assert!(!tried.to_string().contains("releases@"), "{tried}");
    }

    // An address that is allowed no longer gets nothing, although its channel is still there.
    server.refuse(None);
    let narrower = service.beside(&mail_settings(&server, "example.net")).await.expect("a service");
    let before = server.received().len();
    narrower.client().post_json(&format!("{path}/test"), &json!({})).await.expect("queued");
    settled(&narrower).await;
    let log = narrower.client().json(&deliveries).await.expect("a log");
    let refused = &log["items"][0];
    assert_eq!(refused["state"], "failed", "{refused}");
    assert!(refused["error"].as_str().expect("an error").contains("SERVICE_MAIL_ALLOW"), "{refused}");
    assert_eq!(server.received().len(), before);
}

/// The link of a mail pauses its channel, without signing in; then the channel is resumed.
async fn unsubscribed(service: &Service, channel: &str, link: &str) {
    let client = service.client();
    let one_click = async |link: &str| {
        let request = client.request(Method::POST, link);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        client.send(request.body("List-Unsubscribe=One-Click")).await.expect("an answer").status.as_u16()
    };
    let is_paused =
        async || client.json("/api/channels").await.expect("channels")["items"][0]["paused"].clone();
    let opened = client.get(link).await.expect("an answer");
    assert_eq!(opened.status.as_u16(), 303, "looking at a link changes nothing");
    assert!(opened.header("location").starts_with("/unsubscribe#token=sun"), "{}", opened.header("location"));
    for wrong in ["/api/unsubscribe".to_owned(), link.replace("token=sun", "token=sun1"), format!("{link}A")]
    {
        assert_eq!(one_click(&wrong).await, 400, "{wrong}");
    }
    assert_eq!(is_paused().await, json!(false));
    assert_eq!((one_click(link).await, is_paused().await), (200, json!(true)));
    assert_eq!(one_click(link).await, 200, "once more changes nothing");
    let resumed = client.send_json(Method::PATCH, channel, &json!({ "paused": false })).await;
    assert_eq!(resumed.expect("an answer").status.as_u16(), 200);
}

#[tokio::test]
async fn notifications_are_mailed_to_addresses_that_are_allowed() {
    for_each_backend(mail_is_sent).await;
}

async fn no_mail_server(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings = vec![("SERVICE_SECRET_KEY".to_owned(), KEY.to_owned())];
    let service = Service::over(database, &settings).await.expect("a service");
    let answer = service.client().post("/api/channels", &mail_channel("a@example.com")).await;
    let answer = answer.expect("an answer");
    let error: Value = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), &error["code"]), (503, &json!("smtp_not_configured")));
}

#[tokio::test]
async fn no_mail_is_promised_without_a_mail_server() {
    for_each_backend(no_mail_server).await;
}

async fn no_key(backend: Backend) {
    let service = Service::start(backend).await.expect("a service");
    let body =
        json!({ "name": "x", "type": "slack", "config": { "webhookUrl": "https://hooks.example.com/a" } });
    let answer = service.client().post("/api/channels", &body).await.expect("an answer");
    let error: Value = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), &error["code"]), (503, &json!("secret_key_not_configured")));
}

#[tokio::test]
async fn no_address_is_stored_without_a_key_to_seal_it() {
    for_each_backend(no_key).await;
}
