//! The first administrator.

use callboard_domain::ids::UserId;
use callboard_query::accounts::enabling;
use callboard_store::Backend;
use callboard_store::accounts::users;
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{
    Answer, Client, Service, TestDatabase, for_each_secured_service, for_each_service,
};
use futures::future::join_all;
use serde_json::{Value, json};

use super::{code, is_signed_in, me, patiently, refusal, refused, secured_with, sign_in};

const SETUP: &str = "/api/auth/setup";

fn ada() -> Value {
    json!({ "username": "Ada", "password": PASSWORD, "name": "Ada Lovelace" })
}

#[tokio::test]
async fn the_first_caller_becomes_administrator_and_is_signed_in() {
    for_each_secured_service(async |service| {
        let browser = service.client().browser();
        assert_eq!(me(&browser).await["needsSetup"], true);
        assert_eq!(browser.json(SETUP).await.expect("status"), json!({ "needsSetup": true }));
        for (body, field) in [
            (json!({ "username": "ad", "password": PASSWORD }), "username"),
            (json!({ "username": "ada", "password": "short" }), "password"),
            (json!({ "username": "ada", "password": PASSWORD, "name": "a\nb" }), "name"),
        ] {
            let answer = browser.post(SETUP, &body).await.expect("an answer");
            assert_eq!(refusal(&answer), refused(400, "invalid_field"));
            assert_eq!(answer.json().expect("JSON")["data"]["field"], field);
        }

        let answer = patiently(&browser, SETUP, ada()).await;
        let body = answer.success().expect("created");
        assert_eq!(body["user"]["username"], "Ada");
        assert_eq!(body["user"]["role"], "administrator");
        assert!(!answer.text().contains("scrypt"));
        let own = me(&browser).await;
        assert_eq!((&own["authenticated"], &own["user"]["name"]), (&json!(true), &json!("Ada Lovelace")));
        assert!(own.get("needsSetup").is_none());
        assert!(browser.get("/api/projects").await.expect("an answer").status.is_success());

        let stranger = service.client().browser();
        let second = stranger.post(SETUP, &ada()).await.expect("an answer");
        assert_eq!(refusal(&second), refused(400, "setup_unavailable"));
        assert!(!second.headers.contains_key("set-cookie"));
        assert_eq!(stranger.json(SETUP).await.expect("status"), json!({ "needsSetup": false }));
        assert!(!is_signed_in(&stranger).await);
        // The class of these calls allows five in a quarter of an hour.
        let limited = stranger.post(SETUP, &ada()).await.expect("an answer");
        assert_eq!(refusal(&limited), refused(429, "rate_limited"));
    })
    .await;
}

async fn one_of_many(backend: Backend) {
    let database = TestDatabase::fresh(backend).await.expect("a database");
    let settings = secured_with(&[("SERVICE_RATE_LIMITS", "off")]);
    let first = Service::over(database, &settings).await.expect("a service");
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(first.beside(&settings).await.expect("a service"));
    }
    let clients: Vec<&Client> =
        [first.client()].into_iter().chain(others.iter().map(Service::client)).collect();
    let answers = join_all((0..50).map(|number| {
        let body = json!({ "username": format!("ada {number}"), "password": PASSWORD });
        patiently(clients[number % clients.len()], SETUP, body)
    }))
    .await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status.is_success());
    assert_eq!(won.len(), 1);
    let is_late =
        |answer: &&Answer| code(answer) == "setup_unavailable" && !answer.headers.contains_key("set-cookie");
    assert!(lost.iter().all(is_late), "{lost:?}");
    let all = callboard_store::accounts::users::UserFilter::default();
    let mut session = first.state().store().db().read().await.expect("a session");
    let users = callboard_store::accounts::users::list(&mut session, &all, None, 10).await.expect("users");
    assert_eq!(users.len(), 1);
}

#[tokio::test]
async fn of_many_first_callers_one_wins_on_sqlite() {
    one_of_many(Backend::Sqlite).await;
}

#[tokio::test]
async fn of_many_first_callers_one_wins_on_postgres() {
    one_of_many(Backend::Postgres).await;
}

#[tokio::test]
async fn a_service_that_was_set_up_is_not_set_up_again_when_its_accounts_are_gone() {
    for_each_secured_service(async |service| {
        let browser = service.client().browser();
        let created = patiently(&browser, SETUP, ada()).await.success().expect("created");
        let id = UserId(created["user"]["id"].as_i64().expect("an id"));
        let mut session = service.state().store().db().begin().await.expect("a transaction");
        users::delete(&mut session, id).await.expect("deleted");
        session.commit().await.expect("stored");

        let stranger = service.client().browser();
        assert_eq!(stranger.json(SETUP).await.expect("status"), json!({ "needsSetup": false }));
        assert_eq!(me(&stranger).await["needsSetup"], false);
        let answer = stranger.post(SETUP, &ada()).await.expect("an answer");
        assert_eq!(refusal(&answer), refused(400, "setup_unavailable"));
        let people = stranger.with_header("accept", "text/html").expect("a header");
        for (path, status) in [("/setup", 200), ("/login", 200), ("/projects", 401)] {
            let page = people.get(path).await.expect("a page");
            let text = page.text();
            assert_eq!(page.status, status, "{path}");
            assert!(
                text.contains("callboard grant-administrator") && !text.contains("<form"),
                "{path}: {text}"
            );
        }

        // The command the pages name creates an account, once there is none.
        let (store, now) = (service.state().store(), service.state().now());
        assert!(enabling::grant_administrator(store, "x", now).await.is_err(), "no name for an account");
        let token = enabling::grant_administrator(store, "grace", now).await.expect("a token");
        assert!(enabling::grant_administrator(store, "another", now).await.is_err(), "there is one now");
        let body = json!({ "token": token.text, "password": PASSWORD });
        patiently(&stranger, "/api/auth/reset-password", body).await.success().expect("set");
        sign_in(&stranger, "grace", PASSWORD).await.success().expect("signed in");
        assert_eq!(me(&stranger).await["user"]["role"], "administrator");
    })
    .await;
}

#[tokio::test]
async fn with_authentication_off_there_is_nothing_to_set_up() {
    for_each_service(async |service| {
        let client = service.client();
        assert_eq!(client.json(SETUP).await.expect("status"), json!({ "needsSetup": false }));
        for (path, body) in [
            (SETUP, ada()),
            ("/api/auth/forgot-password", json!({ "email": "ada@example.org" })),
            ("/api/auth/reset-password", json!({ "token": "x", "password": PASSWORD })),
            ("/api/auth/change-password", json!({ "newPassword": PASSWORD })),
            ("/api/auth/send-verify-email", json!({})),
        ] {
            let answer = client.post(path, &body).await.expect("an answer");
            assert_eq!(refusal(&answer), refused(400, "auth_disabled"), "{path}");
        }
        let own = me(client).await;
        assert_eq!((&own["authEnabled"], &own["user"]["role"]), (&json!(false), &json!("administrator")));
    })
    .await;
}
