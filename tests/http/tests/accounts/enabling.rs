//! The first time that callers have to sign in.

use std::collections::BTreeSet;

use callboard_domain::account::Role;
use callboard_domain::ids::UserId;
use callboard_query::accounts::enabling;
use callboard_store::Backend;
use callboard_store::accounts::assignments::{self, Assignments};
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Service, for_each_secured_service};
use serde_json::json;

use super::{me, patiently, secured_with, sign_in};

async fn assigned(service: &Service, user: UserId) -> Assignments {
    let mut session = service.state().store().db().read().await.expect("a session");
    assignments::of_user(&mut session, user).await.expect("assignments")
}

async fn first_enabling(backend: Backend) {
    let open = Service::start(backend).await.expect("a service");
    let ada = open.account("ada", Role::Administrator).await.expect("an account");
    let bob = open.account("bob", Role::User).await.expect("an account");
    let eve = open.account("eve", Role::Reporter).await.expect("an account");
    assert_eq!(assigned(&open, bob).await, Assignments::default());
    let begun = json!({ "projectName": "shop" });
    let begun = open.client().post_json("/api/test-runs/start", &begun).await.expect("a run");

    let everything = Assignments { is_global: true, projects: BTreeSet::new() };
    let secured = Service::over(open.into_database().await, &secured_with(&[])).await.expect("a service");
    assert_eq!(assigned(&secured, bob).await, everything);
    assert_eq!(assigned(&secured, eve).await, everything);
    // Administrators need none.
    assert_eq!(assigned(&secured, ada).await, Assignments::default());
    // Whoever opened this run is nobody now.
    let beat = format!("/api/test-runs/{}/heartbeat", begun["runId"]);
    let refused = secured
        .client()
        .post(&beat, &json!({ "streamToken": begun["streamToken"] }))
        .await
        .expect("an answer");
    assert_eq!(
        (refused.status.as_u16(), &refused.json().expect("JSON")["code"]),
        (403, &json!("token_revoked"))
    );

    let (store, now) = (secured.state().store(), secured.state().now());
    let mut session = store.db().begin().await.expect("a session");
    assignments::set_of_user(&mut session, bob, &Assignments::default(), None, now).await.expect("cleared");
    session.commit().await.expect("cleared");
    for _ in 0..2 {
        let again = secured.beside(&secured_with(&[])).await.expect("a service");
        assert_eq!(assigned(&again, bob).await, Assignments::default());
        assert_eq!(assigned(&again, eve).await, everything);
    }
    let newcomer = secured.account("newcomer", Role::User).await.expect("an account");
    assert_eq!(assigned(&secured, newcomer).await, Assignments::default());
}

#[tokio::test]
async fn who_saw_everything_before_sees_it_afterwards_and_only_once_on_sqlite() {
    first_enabling(Backend::Sqlite).await;
}

#[tokio::test]
async fn who_saw_everything_before_sees_it_afterwards_and_only_once_on_postgres() {
    first_enabling(Backend::Postgres).await;
}

#[tokio::test]
async fn whoever_has_the_machine_finds_a_way_back_in() {
    for_each_secured_service(async |service| {
        let (store, now) = (service.state().store(), service.state().now());
        assert!(!enabling::is_locked_out(store).await.expect("an answer"));
        let disabled = |user: &mut callboard_store::accounts::users::UserRow| user.disabled_at = Some(now);
        service.account_with("ada", Role::User, disabled).await.expect("an account");
        assert!(enabling::is_locked_out(store).await.expect("an answer"));
        assert!(enabling::grant_administrator(store, "nobody", now).await.is_err());

        let token = enabling::grant_administrator(store, "ADA", now).await.expect("a token");
        assert!(!enabling::is_locked_out(store).await.expect("an answer"));
        let body = json!({ "token": token.text, "password": PASSWORD });
        patiently(service.client(), "/api/auth/reset-password", body).await.success().expect("set");
        let browser = service.client().browser();
        sign_in(&browser, "ada", PASSWORD).await.success().expect("signed in");
        assert_eq!(me(&browser).await["user"]["role"], "administrator");
    })
    .await;
}

#[tokio::test]
async fn the_clock_of_the_database_is_compared_with_this_one() {
    for_each_secured_service(async |service| {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let (store, now) = (service.state().store(), service.state().now());
        let ahead = enabling::clock_ahead_ms(store, now).await.expect("a clock");
        assert!(ahead.abs() < DAY_MS, "{ahead} ms");
        let yesterday = callboard_domain::time::Timestamp(now.millis() - DAY_MS);
        let ahead = enabling::clock_ahead_ms(store, yesterday).await.expect("a clock");
        assert!((DAY_MS / 2..DAY_MS * 2).contains(&ahead), "{ahead} ms");
    })
    .await;
}
