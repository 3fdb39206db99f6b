//! What is wrong is said in one sentence, bounded in time and size, and the
//! token stays where it belongs.

use callboard_store::Backend;
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{CodeHost, Dialect, Fault, Runner, Service, TestDatabase, for_each_backend};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{connected, edit, history, project, refused, started, with_key};
use crate::store::sql;

/// The provider as sentences call it.
const fn label(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::GitHub => "GitHub",
        Dialect::GitLab => "GitLab",
        Dialect::Gitea => "Gitea / Forgejo",
        Dialect::Bitbucket => "Bitbucket",
    }
}

fn answers(status: u16, headers: &[(&'static str, &str)], body: &str) -> Fault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault::Answers(status, headers, body.to_owned())
}

/// Each fault with the message and status it causes.
fn faults(dialect: Dialect, elsewhere: &str) -> Vec<(Fault, String, Value)> {
    let name = label(dialect);
    let repository = dialect.repository();
    let permission = match dialect {
        Dialect::GitHub => "contents=read",
        Dialect::GitLab => "read_api",
        Dialect::Gitea => "read:repository",
        Dialect::Bitbucket => "repository",
    };
    let reset = "4070908800";
    vec![
        (
            answers(401, &[], "{}"),
            format!("{name} rejected the access token; it may be wrong, expired or revoked."),
            json!(401),
        ),
        (
            answers(404, &[], "{}"),
            format!(
                "{name} has no repository {repository} that the access token can read; it may have been renamed or deleted."
            ),
            json!(404),
        ),
        (
            answers(403, &[], r#"{"message":"<script>alert(1)</script>"}"#),
            format!("The access token lacks the permission {permission} on {name}."),
            json!(403),
        ),
        (
            answers(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)], "{}"),
            format!("{name} limits requests of this access token until 2099-01-01 00:00 UTC."),
            json!(429),
        ),
        (
            answers(429, &[], "{}"),
            format!("{name} limits requests of this access token; try again later."),
            json!(429),
        ),
        (answers(500, &[], "stack trace"), format!("{name} answered with status 500."), json!(500)),
        (answers(503, &[], ""), format!("{name} answered with status 503."), json!(503)),
        (
            Fault::Floods(200_000_000),
            format!("The answer of {name} is larger than the 8 MB that are read."),
            json!(null),
        ),
        (
            answers(200, &[], "<!doctype html>"),
            format!("The answer of 127.0.0.1 is not one of the {name} API; check address and provider."),
            json!(null),
        ),
        (
            Fault::RedirectsTo(format!("http://{elsewhere}/api/v3/repos/acme/shop")),
            "The host 127.0.0.1 redirects to another address; enter that address as the repository's."
                .to_owned(),
            json!(null),
        ),
        (
            Fault::RedirectsTo("http://169.254.169.254/latest/meta-data".to_owned()),
            "The host 127.0.0.1 redirects to another address; enter that address as the repository's."
                .to_owned(),
            json!(null),
        ),
    ]
}

async fn every_fault_has_its_sentence(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let elsewhere = CodeHost::start().await.expect("another code host");
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let all = history(&host, 2);
        let project = connected(client, &host, dialect).await;
        for (fault, sentence, status) in faults(dialect, elsewhere.host()) {
            host.set_fault(Some(fault.clone()));
            for path in
                [format!("{project}/commits?branch=main"), format!("{project}/commits/{}/diff", all[0])]
            {
                sql(&service, "DELETE FROM scm_cache").await;
                let answer = client.get(&path).await.expect("an answer");
                let error = refused(&answer, 502, "upstream_failed");
                assert_eq!(error["message"], json!(sentence), "{dialect:?} {fault:?}");
                assert_eq!(
                    (&error["data"]["provider"], &error["data"]["status"]),
                    (&json!(dialect.word()), &status)
                );
                assert!(
                    !answer.text().contains(TOKEN) && !answer.text().contains("script"),
                    "{}",
                    answer.text()
                );
            }
        }
        host.set_fault(None);
        sql(&service, "DELETE FROM scm_cache").await;
        client.json(&format!("{project}/commits?branch=main")).await.expect("as before");
    }
    assert!(elsewhere.take_requests().is_empty(), "a redirect took the token along");
}

#[tokio::test]
async fn every_failure_of_a_code_host_is_said_in_one_sentence() {
    for_each_backend(every_fault_has_its_sentence).await;
}

async fn limits_are_kept(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let host = CodeHost::start().await.expect("a code host");
    history(&host, 1);
    let project = connected(client, &host, Dialect::GitHub).await;
    host.set_fault(Some(answers(403, &[("retry-after", "600")], "{}")));
    let first = client.get(&format!("{project}/commits")).await.expect("an answer");
    let until = refused(&first, 502, "upstream_failed")["data"]["retryAt"].clone();
    assert!(until.as_str().is_some_and(|until| until.ends_with('Z')), "{until}");
    host.set_fault(None);
    let _ = host.take_requests();
    // Nobody asks again until then.
    let second = client.get(&format!("{project}/commits?branch=main")).await.expect("an answer");
    assert_eq!(refused(&second, 502, "upstream_failed")["data"]["retryAt"], until);
    assert!(host.take_requests().is_empty());
    sql(&service, "UPDATE scm_cache SET fresh_until = 0").await;
    client.json(&format!("{project}/commits?branch=main")).await.expect("a page");
}

#[tokio::test]
async fn a_rate_limit_is_waited_for() {
    for_each_backend(limits_are_kept).await;
}

async fn hosts_are_judged(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    for (address, sentence) in [
        (format!("http://{closed}/acme/shop"), "The host 127.0.0.1 could not be reached."),
        (
            "https://10.1.2.3/acme/shop".to_owned(),
            "The host 10.1.2.3 is refused: it is not on the open internet or not called with https; SERVICE_EGRESS_ALLOW can allow it.",
        ),
    ] {
        let project = project(client, &address).await;
        let repository =
            json!({ "repositoryUrl": address, "repositoryProvider": "github", "scmToken": TOKEN });
        edit(client, &project, repository).await.success().expect("saved");
        let answer = client.get(&format!("{project}/commits")).await.expect("an answer");
        assert_eq!(refused(&answer, 502, "upstream_failed")["message"], json!(sentence));
    }
}

#[tokio::test]
async fn a_host_that_is_not_there_or_not_open_is_told_apart() {
    for_each_backend(hosts_are_judged).await;
}

async fn tokens_are_rejected(backend: Backend) {
    let service = started(backend).await;
    let client = service.client();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        history(&host, 1);
        let project = connected(client, &host, dialect).await;
        host.set_token("another token");
        let answer = client.get(&format!("{project}/commits")).await.expect("an answer");
        let said =
            format!("{} rejected the access token; it may be wrong, expired or revoked.", label(dialect));
        assert_eq!(refused(&answer, 502, "upstream_failed")["message"], json!(said));
        host.set_token(TOKEN);
        client.json(&format!("{project}/commits")).await.expect("a page");
    }
}

#[tokio::test]
async fn a_revoked_token_is_told() {
    for_each_backend(tokens_are_rejected).await;
}

async fn no_token_is_shown_or_logged(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let storage = database.storage_url();
    let settings = with_key(&[
        ("SERVICE_EGRESS_ALLOW", "127.0.0.0/8"),
        ("SERVICE_DATABASE_URL", database.url()),
        ("SERVICE_STORAGE_URL", &storage),
        ("SERVICE_LOG", "trace"),
    ]);
    let mut runner = Runner::start(&settings).await.expect("a service");
    let client = runner.client().clone();
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let tip = history(&host, 1)[0].clone();
        let project = connected(&client, &host, dialect).await;
        for fault in [None, Some(answers(401, &[], TOKEN)), Some(answers(500, &[], TOKEN))] {
            host.set_fault(fault);
            for path in [
                project.clone(),
                format!("{project}/commits?base={tip}"),
                format!("{project}/commits/{tip}/diff"),
            ] {
                let text = client.get(&path).await.expect("an answer").text();
                assert!(!text.contains(TOKEN) && !text.contains("sk1:"), "{text}");
            }
            let tested =
                client.post(&format!("{project}/repository/test"), &json!({})).await.expect("an answer");
            assert!(!tested.text().contains(TOKEN), "{}", tested.text());
        }
    }
    let log = runner.process().output();
    assert!(log.contains("/repository/test"), "this is the log: {log}");
    assert_eq!(log.lines().find(|line| line.contains(TOKEN)), None, "a token is in the log");
}

#[tokio::test]
async fn a_token_is_in_no_answer_and_no_log() {
    for_each_backend(no_token_is_shown_or_logged).await;
}

/// What a service without the key of its secrets says.
#[tokio::test]
async fn a_token_whose_key_is_lost_has_to_be_saved_again() {
    let host = CodeHost::start().await.expect("a code host");
    let service = started(Backend::Sqlite).await;
    let project = connected(service.client(), &host, Dialect::GitHub).await;
    let other = [
        ("SERVICE_SECRET_KEY", "another-key-that-opens-nothing-of-before"),
        ("SERVICE_EGRESS_ALLOW", "127.0.0.0/8"),
    ];
    let other = other.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let beside: Service = service.beside(&other).await.expect("a service");
    let answer = beside.client().get(&format!("{project}/commits")).await.expect("an answer");
    let error = refused(&answer, 503, "not_configured");
    assert_eq!(error["data"]["setting"], "scmToken");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("save it again")), "{error}");
}
