//! Sessions as their owner and administrators see and end them.

use callboard_domain::account::Role;
use callboard_domain::time::Timestamp;
use callboard_test_support::for_each_secured_service;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_session_is_listed_under_a_name_and_ended() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let (one, ada) = person(service, "ada", Role::User).await;
        let other = service.browser_of(ada).await.expect("a browser");
        let listed = get(&one, "/api/users/me/sessions").await;
        let items = listed["items"].as_array().expect("sessions");
        assert_eq!(items.len(), 2);
        let current: Vec<&Value> = items.iter().filter(|item| item["current"] == true).collect();
        assert_eq!(current.len(), 1);
        assert_eq!(current[0]["method"], "password");
        let cookie = one.cookie("svc_session").expect("a cookie");
        assert!(!listed.to_string().contains(&cookie));
        let theirs = items.iter().find(|item| item["current"] == false).expect("the other one");
        let name = theirs["id"].as_str().expect("a name");

        let (bob, _) = person(service, "bob", Role::Reporter).await;
        refused(
            &bob.get(&format!("/api/users/{ada}/sessions")).await.expect("an answer"),
            403,
            "insufficient_role",
        );
        refused(&delete(&bob, &format!("/api/users/{ada}/sessions/{name}")).await, 403, "insufficient_role");
        refused(&delete(&bob, &format!("/api/users/me/sessions/{name}")).await, 404, "session_not_found");
        assert!(is_let_in(&other).await);
        done(&delete(&one, &format!("/api/users/me/sessions/{name}")).await);
        assert!(!is_let_in(&other).await && is_let_in(&one).await);
        refused(&delete(&one, &format!("/api/users/me/sessions/{name}")).await, 404, "session_not_found");

        // An administrator sees none of them as their own.
        let listed = get(&admin, &format!("/api/users/{ada}/sessions")).await;
        assert_eq!(listed["items"][0]["current"], false);
        let name = listed["items"][0]["id"].as_str().expect("a name");
        done(&delete(&admin, &format!("/api/users/{ada}/sessions/{name}")).await);
        assert!(!is_let_in(&one).await);
    })
    .await;
}

#[tokio::test]
async fn signing_out_everywhere_keeps_the_session_that_asked() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let (one, ada) = person(service, "ada", Role::User).await;
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(service.browser_of(ada).await.expect("a browser"));
        }
        let expired = Timestamp(service.state().now().millis() - 8 * 24 * 60 * 60 * 1000);
        signed_in_at(service, ada, expired).await;
        let before = one.cookie("svc_session");
        let answer = done(&post(&one, "/api/users/me/sign-out", json!({})).await);
        assert_eq!(answer, json!({ "success": true, "ended": 3 }));
        assert_ne!(one.cookie("svc_session"), before, "its cookie says the new epoch");
        assert!(is_let_in(&one).await);
        for other in &others {
            assert!(!is_let_in(other).await);
        }
        let path = format!("/api/users/{ada}/sign-out");
        assert_eq!(done(&post(&admin, &path, json!({})).await)["ended"], 1);
        assert!(!is_let_in(&one).await);
        assert_eq!(done(&post(&admin, &path, json!({})).await)["ended"], 0);
        assert_eq!(audited(&admin, "&action=sessions.").await, ["sessions.revoked"; 3]);
    })
    .await;
}

#[tokio::test]
async fn many_sessions_of_one_moment_are_each_listed_once() {
    for_each_secured_service(async |service| {
        let (browser, ada) = person(service, "ada", Role::User).await;
        let at = Timestamp(service.state().now().millis() - 1000);
        for _ in 0..40 {
            signed_in_at(service, ada, at).await;
        }
        let whole = all(&browser, "/api/users/me/sessions", "id", 200).await;
        assert_eq!(whole.len(), 41);
        assert_eq!(all(&browser, "/api/users/me/sessions", "id", 7).await, whole);
        assert_eq!(all(&browser, "/api/users/me/sessions", "id", 1).await, whole);
    })
    .await;
}

#[tokio::test]
async fn the_oldest_of_more_than_five_hundred_sessions_end() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let now = service.state().now().millis();
        let mut oldest = Vec::new();
        for n in 0..502 {
            let browser = signed_in_at(service, ada, Timestamp(now - 10_000 + n)).await;
            if n < 3 {
                oldest.push(browser);
            }
        }
        let mut let_in = Vec::new();
        for browser in &oldest {
            let_in.push(is_let_in(browser).await);
        }
        assert_eq!(let_in, [false, false, true]);
    })
    .await;
}
