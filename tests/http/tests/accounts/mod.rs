//! Accounts at the front door: signing in and out, the first administrator,
//! passwords, mails, and what becomes of links and access afterwards.

mod audited;
mod auth_mode;
mod configuration;
mod control_characters;
mod enabling;
mod login;
mod mail_encryption;
mod mails;
mod sessions;
mod setup;

use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Answer, Client, Settings};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Signs in, and comes again while the machine is too busy to hash.
async fn sign_in(client: &Client, username: &str, password: &str) -> Answer {
    patiently(client, "/api/auth/login", json!({ "username": username, "password": password })).await
}

/// A POST that hashes. 503 `busy` says to come again.
async fn patiently(client: &Client, path: &str, body: Value) -> Answer {
    loop {
        let answer = client.post(path, &body).await.expect("an answer");
        if answer.status != StatusCode::SERVICE_UNAVAILABLE || code(&answer) != "busy" {
            return answer;
        }
    }
}

/// A browser in which somebody has signed in with the password.
async fn signed_in(client: &Client, username: &str) -> Client {
    let browser = client.browser();
    sign_in(&browser, username, PASSWORD).await.success().expect("signed in");
    browser
}

fn code(answer: &Answer) -> String {
    answer.json().expect("a JSON answer")["code"].as_str().unwrap_or_default().to_owned()
}

/// Status and code of an answer.
fn refusal(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), code(answer))
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

async fn me(client: &Client) -> Value {
    client.json("/api/auth/me").await.expect("me")
}

async fn is_signed_in(client: &Client) -> bool {
    me(client).await["authenticated"] == true
}

/// The secured settings with others.
fn secured_with(more: &[(&str, &str)]) -> Settings {
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    // The last of two counts.
    callboard_test_support::accounts::secured_settings().into_iter().chain(more).collect()
}
