//! What is done about accounts is noted, whether it succeeds or not.

use callboard_query::accounts::enabling;
use callboard_store::audit::{self, AuditFilter};
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Service, for_each_secured_service};
use serde_json::json;

use super::{patiently, sign_in};

/// Actions with who did them and to whom, oldest first; no address is kept as it is.
async fn noted(service: &Service) -> Vec<(String, bool, Option<i64>)> {
    let mut session = service.state().store().db().read().await.expect("a session");
    let entries = audit::list(&mut session, &AuditFilter::default(), 100).await.expect("entries");
    let shown = entries.iter().rev().map(|entry| {
        assert!(!entry.detail.contains("127.0.0.1") && !entry.detail.contains(PASSWORD));
        (entry.action.clone(), entry.user.is_some(), entry.target_id)
    });
    shown.collect()
}

#[tokio::test]
async fn every_way_in_and_out_leaves_one_entry() {
    for_each_secured_service(async |service| {
        let browser = service.client().browser();
        let ada = json!({ "username": "ada", "password": PASSWORD });
        let created = patiently(&browser, "/api/auth/setup", ada).await.success().expect("created");
        let id = created["user"]["id"].as_i64();
        browser.post("/api/auth/logout", &json!({})).await.expect("an answer");
        browser.post("/api/auth/logout", &json!({})).await.expect("an answer");
        sign_in(&browser, "ada", "a wrong guess").await;
        sign_in(&browser, "nobody", "a wrong guess").await;
        sign_in(&browser, "ada", PASSWORD).await.success().expect("signed in");
        let body = json!({ "currentPassword": PASSWORD, "newPassword": "another battery staple" });
        patiently(&browser, "/api/auth/change-password", body).await.success().expect("changed");
        let body = json!({ "email": "ada@example.org" });
        service.client().post("/api/auth/forgot-password", &body).await.expect("an answer");
        let (store, now) = (service.state().store(), service.state().now());
        let token = enabling::grant_administrator(store, "ada", now).await.expect("a token");
        let body = json!({ "token": token.text, "password": PASSWORD });
        patiently(service.client(), "/api/auth/reset-password", body).await.success().expect("set");

        let expected = [
            // Callers have to sign in from the start.
            ("assignments.changed", false, None),
            ("setup", true, id),
            ("logout", true, id),
            ("login.failed", false, id),
            ("login.failed", false, None),
            ("login.succeeded", true, id),
            ("password.changed", true, id),
            ("password.reset_requested", false, None),
            ("user.changed", false, id),
            ("password.reset", false, id),
        ];
        let expected = expected.map(|(action, by_somebody, target)| (action.to_owned(), by_somebody, target));
        assert_eq!(noted(service).await, expected);
    })
    .await;
}
