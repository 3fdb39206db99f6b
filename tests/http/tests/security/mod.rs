//! What nobody gets by trying: forged credentials, hostile input, and what a
//! race or a page of another site could let slip.

mod answers;
mod archives;
mod bodies;
mod cookies;
mod copies;
mod counted;
mod deeds;
mod forms;
mod headers;
mod input;
mod lost;
mod markup;
mod reach;
mod reordering;
mod run_tokens;
mod wire;

use callboard_test_support::{Answer, Client, Settings};
use reqwest::Method;
use serde_json::Value;

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Answer {
    client.send_json(method, path, &body).await.expect("an answer")
}

/// Status and code of a refusal.
fn refusal(answer: &Answer) -> (u16, String) {
    let body = answer.json().unwrap_or_default();
    (answer.status.as_u16(), body["code"].as_str().unwrap_or_default().to_owned())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn settings(more: &[(&str, &str)]) -> Settings {
    more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
