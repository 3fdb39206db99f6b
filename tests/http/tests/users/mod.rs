//! Accounts over HTTP: users, what they reach, keys, sessions, invitations,
//! and the audit log that tells of all of it.

mod accounts;
mod audit;
mod invitations;
mod keys;
mod members;
mod power;
mod refusals;
mod sessions;

use callboard_auth::cookies::CookieForm;
use callboard_domain::account::Role;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_query::accounts::sign_in::begin_session;
use callboard_query::accounts::visitor::Visitor;
use callboard_store::accounts::users;
use callboard_store::{Session, projects};
use callboard_test_support::{Answer, Client, Service};
use reqwest::Method;
use serde_json::{Value, json};

/// An administrator who is signed in, and their account.
async fn administrator(service: &Service) -> (Client, UserId) {
    let user = service.account("admin", Role::Administrator).await.expect("an account");
    (service.browser_of(user).await.expect("a browser"), user)
}

/// Somebody who is signed in, and their account.
async fn person(service: &Service, name: &str, role: Role) -> (Client, UserId) {
    let user = service.account(name, role).await.expect("an account");
    (service.browser_of(user).await.expect("a browser"), user)
}

async fn write(service: &Service) -> Session {
    service.state().store().db().begin().await.expect("a transaction")
}

async fn project(service: &Service, name: &str) -> ProjectId {
    let mut session = write(service).await;
    let project =
        projects::get_or_create(&mut session, name, None, service.state().now()).await.expect("a project");
    session.commit().await.expect("stored");
    project.id
}

/// A browser in which somebody signed in at another moment.
pub(crate) async fn signed_in_at(service: &Service, user: UserId, at: Timestamp) -> Client {
    let mut session = write(service).await;
    let row = users::get(&mut session, user).await.expect("an answer").expect("an account");
    let claims =
        begin_session(&mut session, &row, "password", &Visitor::default(), at).await.expect("a session");
    session.commit().await.expect("stored");
    let cookie = service.state().cookies().set(&claims, CookieForm::Plain).expect("a cookie");
    let browser = service.client().browser();
    browser.keep_cookie(cookie.to_str().expect("text"));
    browser
}

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Answer {
    client.send_json(method, path, &body).await.expect("an answer")
}

async fn post(client: &Client, path: &str, body: Value) -> Answer {
    send(client, Method::POST, path, body).await
}

async fn patch(client: &Client, path: &str, body: Value) -> Answer {
    send(client, Method::PATCH, path, body).await
}

async fn put(client: &Client, path: &str, body: Value) -> Answer {
    send(client, Method::PUT, path, body).await
}

async fn delete(client: &Client, path: &str) -> Answer {
    client.send(client.request(Method::DELETE, path)).await.expect("an answer")
}

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect("an answer")
}

/// Status and code of a refusal, with the field it names.
fn refusal(answer: &Answer) -> (u16, String) {
    let body = answer.json().expect("an error body");
    let field = body["data"]["field"].as_str().map(|field| format!(" {field}")).unwrap_or_default();
    (answer.status.as_u16(), format!("{}{field}", body["code"].as_str().expect("a code")))
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(refusal(answer), (status, code.to_owned()), "{}", answer.text());
}

#[track_caller]
fn done(answer: &Answer) -> Value {
    assert!(answer.status.is_success(), "{}: {}", answer.status, answer.text());
    let body = answer.json().expect("a body");
    assert_eq!(body["success"], true);
    body
}

/// Whether a client is let in at all.
async fn is_let_in(client: &Client) -> bool {
    let answer = client.get("/api/users/me").await.expect("an answer");
    assert!(answer.status == 200 || answer.status == 401, "{}", answer.text());
    answer.status == 200
}

/// Words of the audit log, oldest first.
async fn audited(admin: &Client, query: &str) -> Vec<String> {
    let found = get(admin, &format!("/api/audit?limit=200{query}")).await;
    let items = found["items"].as_array().expect("entries");
    items.iter().rev().map(|item| item["action"].as_str().expect("a word").to_owned()).collect()
}

/// The names in a list, page by page.
async fn all(client: &Client, path: &str, field: &str, limit: usize) -> Vec<Value> {
    let list = format!("{path}{}limit={limit}", if path.contains('?') { '&' } else { '?' });
    let mut found = Vec::new();
    let mut page = get(client, &list).await;
    loop {
        let items = page["items"].as_array().expect("rows");
        assert!(items.len() <= limit, "{path} has {} rows", items.len());
        found.extend(items.iter().map(|item| item[field].clone()));
        let Some(cursor) = page["nextCursor"].as_str() else { return found };
        page = get(client, &format!("{list}&cursor={cursor}")).await;
    }
}

/// The body of a new account.
fn new_user(username: &str, role: &str) -> Value {
    json!({ "username": username, "role": role })
}
