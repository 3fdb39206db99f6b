//! Calls that are counted: at each address as many pass as are meant to, and
//! whoever comes more often is told when to come again.

use callboard_domain::account::{KeyPermission, Role};
use callboard_test_support::{Answer, Client, for_each_secured_service, for_each_service};
use reqwest::Method;
use serde_json::json;

use super::{refusal, refused, send};
use crate::builders::{attempt, run};

async fn get(client: &Client, path: &str) -> Answer {
    client.get(path).await.expect("an answer")
}

/// Asks as often as is allowed, and once more.
async fn pass(calls: usize, status: u16, ask: impl AsyncFn() -> Answer) {
    for call in 1..=calls {
        let answer = ask().await;
        assert_eq!(answer.status, status, "call {call}: {}", answer.text());
    }
    let limited = ask().await;
    assert_eq!(refusal(&limited), refused(429, "rate_limited"));
    let wait: u64 = limited.header("retry-after").parse().expect("whole seconds");
    assert!((1..=900).contains(&wait), "{wait}");
}

#[tokio::test]
async fn sixty_wrong_keys_are_looked_at_and_right_ones_always() {
    for_each_secured_service(async |service| {
        let ada = service.account("ada", Role::User).await.expect("an account");
        let program = service.program_of(ada, KeyPermission::Full).await.expect("a key");
        let browser = service.browser_of(ada).await.expect("a browser");
        let unknown = format!("pd_{}", "0".repeat(64));
        let wrong = service.client().with_header("x-api-key", &unknown).expect("a header");
        pass(60, 401, async || get(&wrong, "/api/projects").await).await;
        // At every door, and in every form.
        assert_eq!(send(&wrong, Method::POST, "/mcp", json!({})).await.status, 429);
        let malformed = service.client().with_header("authorization", "Bearer pd_x").expect("a header");
        assert_eq!(get(&malformed, "/api/projects").await.status, 429);
        // Of the same address.
        assert_eq!(get(&program, "/api/projects").await.status, 200);
        assert_eq!(get(&browser, "/api/projects").await.status, 200);
        assert_eq!(get(service.client(), "/api/projects").await.status, 401);
        assert_eq!(get(&wrong, "/api/health").await.status, 200, "a key does not count where none is needed");
    })
    .await;
}

#[tokio::test]
async fn thirty_sign_ins_are_begun_elsewhere() {
    for_each_secured_service(async |service| {
        // Also at a provider that is not configured.
        pass(30, 302, async || get(service.client(), "/api/auth/oauth/idp/login").await).await;
    })
    .await;
}

#[tokio::test]
async fn thirty_exports_are_made_for_each_person() {
    for_each_secured_service(async |service| {
        let mut people = Vec::new();
        for name in ["ada", "bob"] {
            let user = service.account(name, Role::Reporter).await.expect("an account");
            service.assign(user, None).await.expect("assigned");
            people.push((user, service.browser_of(user).await.expect("a browser")));
        }
        let [(ada, browser), (_, other)] = people.as_slice() else { panic!("two people") };
        let submission = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
        let run =
            browser.post_json("/api/test-runs/submit", &submission).await.expect("stored")["runId"].clone();
        let path = format!("/api/test-runs/{run}/export?format=csv");
        pass(30, 200, async || get(browser, &path).await).await;
        // With whatever they come, and however it is made.
        let program = service.program_of(*ada, KeyPermission::Full).await.expect("a key");
        assert_eq!(get(&program, &path).await.status, 429);
        let later = json!({ "kind": "run", "id": run, "format": "csv" });
        assert_eq!(send(browser, Method::POST, "/api/exports", later.clone()).await.status, 429);
        assert_eq!(get(other, &path).await.status, 200);
        assert_eq!(send(other, Method::POST, "/api/exports", later).await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn badges_are_not_tried_one_after_another() {
    for_each_service(async |service| {
        pass(120, 200, async || get(service.client(), "/badge/sbg_nothing.json").await).await;
    })
    .await;
}
