//! What is set about notifications: the mail server and storage quotas.

use callboard_store::Backend;
use callboard_test_support::{Client, MailServer, Service, TestDatabase, for_each_backend};
use reqwest::Method;
use serde_json::{Value, json};

use crate::cluster_rules::execute;
use crate::comparison::submit;
use crate::notification_schedules::worked_later;
use crate::notifications::{KEY, Recipient, channel, recent};
use crate::rows::settled;

async fn started(backend: Backend, settings: &[(&str, &str)]) -> Service {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings: Vec<_> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Service::over(database, &settings).await.expect("a service")
}

async fn patch(client: &Client, path: &str, body: Value) -> (u16, Value) {
    let answer = client.send_json(Method::PATCH, path, &body).await.expect("an answer");
    (answer.status.as_u16(), answer.json().expect("JSON"))
}

async fn a_mail_server(backend: Backend) {
    let server = MailServer::start().await.expect("a mail server");
    let port: u16 = server.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let service = started(
        backend,
        &[
            ("SERVICE_SECRET_KEY", KEY),
            ("SERVICE_EGRESS_ALLOW", &format!("127.0.0.1:{port}")),
            ("SERVICE_SITE_URL", "https://tests.example.org"),
            ("SERVICE_MAIL_ALLOW", "example.com"),
        ],
    )
    .await;
    let client = service.client();
    let before = client.json("/api/settings/smtp").await.expect("settings");
    assert_eq!((&before["settings"]["configured"], &before["locked"]), (&json!(false), &json!([])));
    let test = json!({ "to": "somebody@example.com" });
    let answer = client.post("/api/settings/smtp/test", &test).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 503);

    for (body, field) in [
        (json!({ "host": "two words" }), "host"),
        (json!({ "port": 0 }), "port"),
        (json!({ "security": "maybe" }), "security"),
        (json!({ "from": "nobody" }), "from"),
    ] {
        let (status, error) = patch(client, "/api/settings/smtp", body).await;
        assert_eq!((status, &error["data"]["field"]), (400, &json!(field)), "{error}");
    }
    let set = json!({ "host": "127.0.0.1", "port": port, "security": "none", "from": "Callboard <tests@example.org>" });
    let (status, answer) = patch(client, "/api/settings/smtp", set).await;
    assert_eq!((status, &answer["settings"]["configured"]), (200, &json!(true)), "{answer}");
    let sent = client.post_json("/api/settings/smtp/test", &test).await.expect("an answer");
    assert_eq!(sent, json!({ "success": true, "error": null }));
    let mails = server.received();
    assert_eq!((mails.len(), &mails[0].to), (1, &vec!["somebody@example.com".to_owned()]));
    let other = client.post("/api/settings/smtp/test", &json!({ "to": "somebody@example.net" })).await;
    let other: Value = other.expect("an answer").json().expect("an error");
    assert_eq!(other["code"], "address_not_allowed");

    // Everything that mails uses it.
    let body = json!({ "name": "mail", "type": "email", "config": { "address": "all@example.com" } });
    let made = client.post_json("/api/channels", &body).await.expect("a channel");
    let body = json!({ "channelId": made["channel"]["id"], "events": ["run.failed"] });
    client.post_json("/api/subscriptions", &body).await.expect("a subscription");
    submit(client, recent(&service, 5, "main", "failed")).await;
    settled(&service).await;
    assert_eq!(server.received().len(), 2);
    let page = client.get("/settings/mail").await.expect("a page").text();
    assert!(page.contains("127.0.0.1") && page.contains("set up"), "{page}");

    // A password is sealed, kept from a network without encryption, and from another host.
    let (status, _) =
        patch(client, "/api/settings/smtp", json!({ "user": "u", "password": "s3cret-word" })).await;
    assert_eq!(status, 400, "it would be sent unencrypted");
    let secret = json!({ "security": "starttls", "user": "u", "password": "s3cret-word" });
    let (status, answer) = patch(client, "/api/settings/smtp", secret).await;
    assert_eq!((status, &answer["settings"]["hasPassword"]), (200, &json!(true)));
    let (status, error) = patch(client, "/api/settings/smtp", json!({ "host": "mail.example.net" })).await;
    assert_eq!((status, &error["code"]), (400, &json!("missing_field")), "{error}");
    let shown = client.json("/api/settings/smtp").await.expect("settings").to_string();
    let audit = client.json("/api/audit").await.expect("a log").to_string();
    let page = client.get("/settings/mail").await.expect("a page").text();
    let rows = crate::rows::texts(&service, "SELECT value FROM settings WHERE grp = 'smtp'").await;
    for text in [&shown, &audit, &page, &rows[0]] {
        assert!(!text.contains("s3cret-word"), "{text}");
    }
    // A server that speaks no TLS: one sentence, and nothing of it in the answer.
    let failed = client.post_json("/api/settings/smtp/test", &test).await.expect("an answer");
    assert_eq!(failed["success"], false);
    assert!(
        failed["error"].as_str().is_some_and(|text| text.ends_with('.') && !text.contains("127.0.0.1")),
        "{failed}"
    );

    // A private address that the environment does not open is not reached.
    let elsewhere =
        json!({ "host": "10.1.2.3", "port": 25, "security": "none", "user": null, "password": null });
    assert_eq!(patch(client, "/api/settings/smtp", elsewhere).await.0, 200);
    let failed = client.post_json("/api/settings/smtp/test", &test).await.expect("an answer");
    assert!(failed["error"].as_str().is_some_and(|text| text.contains("SERVICE_EGRESS_ALLOW")), "{failed}");
}

#[tokio::test]
async fn a_mail_server_can_be_set_and_tested() {
    for_each_backend(a_mail_server).await;
}

async fn the_environment_wins(backend: Backend) {
    let service = started(
        backend,
        &[
            ("SERVICE_SECRET_KEY", KEY),
            ("SERVICE_SMTP_URL", "smtps://robot:p4ssw0rd@mail.example.org"),
            ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
        ],
    )
    .await;
    let client = service.client();
    let shown = client.json("/api/settings/smtp").await.expect("settings");
    let settings = &shown["settings"];
    assert_eq!(
        (&settings["host"], &settings["port"], &settings["security"], &settings["hasPassword"]),
        (&json!("mail.example.org"), &json!(465), &json!("tls"), &json!(true))
    );
    assert_eq!(shown["locked"][0], json!({ "key": "host", "variable": "SERVICE_SMTP_URL" }));
    let (status, error) = patch(client, "/api/settings/smtp", json!({ "host": "mail.example.net" })).await;
    assert_eq!((status, &error["code"]), (409, &json!("setting_locked")));
    let page = client.get("/settings/mail").await.expect("a page").text();
    assert!(
        page.contains("SERVICE_SMTP_URL") && !page.contains("p4ssw0rd") && !page.contains("robot"),
        "{page}"
    );
    assert!(!shown.to_string().contains("p4ssw0rd"));
}

#[tokio::test]
async fn a_mail_server_of_the_environment_wins() {
    for_each_backend(the_environment_wins).await;
}

async fn a_quota(backend: Backend) {
    let recipient = Recipient::start().await;
    let service =
        started(backend, &[("SERVICE_SECRET_KEY", KEY), ("SERVICE_EGRESS_ALLOW", recipient.host())]).await;
    let client = service.client();
    let channel = channel(client, &recipient).await;
    let body = json!({ "channelId": channel, "events": ["storage.quota"] });
    client.post_json("/api/subscriptions", &body).await.expect("a subscription");
    let run = submit(client, recent(&service, 5, "main", "failed")).await;
    settled(&service).await;
    let shown = client.json(&format!("/api/test-runs/{run}")).await.expect("a run");
    let project = shown["projectId"].clone();
    // What the project keeps is what the counters say.
    let keeps = async |bytes: i64| {
        execute(&service, "UPDATE storage_totals SET bytes = 0".to_owned()).await;
        let text = format!(
            "INSERT INTO storage_totals (project_id, kind, outcome_class, objects, bytes) VALUES ({project}, 'trace', 'other', 1, {bytes}) \
             ON CONFLICT (project_id, kind, outcome_class) DO UPDATE SET bytes = {bytes}"
        );
        execute(&service, text).await;
    };
    let path = format!("/api/projects/{project}/storage-quota");
    let (status, error) = patch(client, &path, json!({ "quotaBytes": 5 })).await;
    assert_eq!((status, &error["data"]["field"]), (400, &json!("quotaBytes")));
    let (status, set) = patch(client, &path, json!({ "quotaBytes": 1_000_000 })).await;
    assert_eq!((status, &set["settings"]["quotaBytes"]), (200, &json!(1_000_000)));
    assert_eq!(patch(client, "/api/settings/storage-quota", json!({ "quotaBytes": 2_000_000 })).await.0, 200);

    let mut minutes = 0;
    let mut levels = Vec::new();
    for bytes in [700_000, 810_000, 820_000, 990_000, 500_000, 1_000_001, 1_700_000] {
        keeps(bytes).await;
        minutes += 16;
        worked_later(&service, minutes).await;
        let told = recipient.take();
        let headlines: Vec<String> = told
            .iter()
            .map(|one| one.json()["payload"]["headline"].as_str().expect("a headline").to_owned())
            .collect();
        levels.push(headlines);
    }
    let nothing = Vec::<String>::new;
    assert_eq!(
        levels,
        [
            nothing(),
            vec!["shop: 80% of the storage quota is used".to_owned()],
            nothing(),
            vec!["shop: 95% of the storage quota is used".to_owned()],
            nothing(),
            vec!["shop: the storage quota is used up".to_owned()],
            vec!["Callboard: 80% of the storage quota is used".to_owned()],
        ]
    );
    // Nothing is refused.
    submit(client, recent(&service, 1, "main", "passed")).await;
    let page = client.get("/settings/storage").await.expect("a page").text();
    assert!(page.contains("value=\"2000000\""));
    assert_eq!(
        patch(client, &path, json!({ "quotaBytes": null })).await.1["settings"]["quotaBytes"],
        Value::Null
    );
}

#[tokio::test]
async fn every_share_of_a_storage_quota_is_reported_once_a_crossing() {
    for_each_backend(a_quota).await;
}
