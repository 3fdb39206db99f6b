//! Mail through servers that encrypt and want to know who sends.

use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_store::Backend;
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Client, Encryption, MailServer, Runner, Service, Settings, TestDatabase};
use serde_json::json;

use super::{patiently, secured_with};
use crate::rows::texts;

fn mailed_through(url: &str) -> Settings {
    secured_with(&[
        ("SERVICE_SMTP_URL", url),
        ("SERVICE_MAIL_FROM", "Callboard <tests@example.org>"),
        ("SERVICE_SITE_URL", "https://tests.example.org"),
        ("SERVICE_RATE_LIMITS", "off"),
    ])
}

/// The first administrator invites somebody.
async fn invite(client: &Client) {
    let admin = client.browser();
    let first = json!({ "username": "first", "password": PASSWORD });
    patiently(&admin, "/api/auth/setup", first).await.success().expect("an administrator");
    let invitation = json!({ "email": "ada@example.org", "role": "reporter" });
    admin.post("/api/invitations", &invitation).await.and_then(|answer| answer.success()).expect("invited");
}

#[tokio::test]
async fn a_server_whose_certificate_is_trusted_gets_the_mail() {
    for encryption in [Encryption::FromStart, Encryption::Params] {
        let server = MailServer::start_encrypted(encryption).await.expect("a mail server");
        let mut settings = mailed_through(&server.url());
        let certificate = server.certificate().expect("a certificate").display().to_string();
        settings.push(("SSL_CERT_FILE".to_owned(), certificate));
        let runner = Runner::start(&settings).await.expect("a runner");
        invite(runner.client()).await;
        while server.received().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(server.received()[0].to, ["ada@example.org"], "{encryption:?}");
        assert_eq!(server.passwords(), ["p@ss"], "{encryption:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_prove_who_it_is_gets_neither_mail_nor_password() {
    // Two whose certificates nobody knows, and one that does not encrypt although it must.
    let mut servers = Vec::new();
    for encryption in [Encryption::FromStart, Encryption::Params] {
        let server = MailServer::start_encrypted(encryption).await.expect("a mail server");
        servers.push((server.url(), server));
    }
    let stripped = MailServer::start().await.expect("a mail server");
    let url = stripped.url().replace("smtp://", "smtp://sender:p%40ss@");
    servers.push((format!("{url}?tls=required"), stripped));
    for (url, server) in servers {
        let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
        let service = Service::over(database, &mailed_through(&url)).await.expect("a service");
        invite(service.client()).await;
        let errors = async {
            loop {
                run_due(service.state(), Budget::new(Duration::from_secs(20))).await.expect("worked");
                let failed = texts(&service, "SELECT error FROM jobs WHERE error IS NOT NULL").await;
                if !failed.is_empty() {
                    return failed;
                }
                tokio::task::yield_now().await;
            }
        };
        let errors = tokio::time::timeout(Duration::from_secs(60), errors).await.expect("a failed delivery");
        assert!(server.connections() > 0, "{url}");
        assert!(
            errors.iter().all(|error| !error.contains("p@ss") && !error.contains("p%40ss")),
            "{errors:?}"
        );
        assert_eq!((server.received(), server.passwords()), (Vec::new(), Vec::new()), "{url}");
    }
}
