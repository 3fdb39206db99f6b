//! API keys: told once, never wider than their owner, dead at once.

use callboard_auth::api_key;
use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ApiKeyId;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::api_keys::{self, NewKey};
use callboard_test_support::for_each_secured_service;
use futures::future::join_all;
use serde_json::json;

use super::*;

const HOUR_MS: i64 = 60 * 60 * 1000;
const KEYS: &str = "/api/users/me/api-keys";

fn program(service: &Service, key: &Value) -> Client {
    let bearer = format!("Bearer {}", key.as_str().expect("a key"));
    service.client().with_header("authorization", &bearer).expect("a header")
}

/// Creates a key and returns the answer with a program that uses it.
async fn created(service: &Service, client: &Client, body: Value) -> (Value, Client) {
    let answer = post(client, KEYS, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let created = done(&answer);
    let program = program(service, &created["key"]);
    (created, program)
}

/// Stores a key with whatever is set.
async fn stored(service: &Service, user: UserId, change: impl FnOnce(&mut NewKey)) -> (ApiKeyId, Client) {
    let minted = api_key::mint().expect("a key");
    let mut key = NewKey {
        user,
        name: "stored".to_owned(),
        key_hash: minted.hash,
        key_prefix: minted.shown,
        permission: KeyPermission::Full,
        projects: None,
        parent: None,
        created_by: user,
        created_at: service.state().now(),
        expires_at: None,
    };
    change(&mut key);
    let mut session = write(service).await;
    let id = api_keys::insert(&mut session, &key).await.expect("stored");
    session.commit().await.expect("stored");
    (id, program(service, &json!(minted.text)))
}

#[tokio::test]
async fn a_key_is_told_once() {
    for_each_secured_service(async |service| {
        let (ada, _) = person(service, "ada", Role::User).await;
        // Also to a client that repeats its request: the key is kept nowhere.
        let request = ada
            .request(Method::POST, KEYS)
            .header("idempotency-key", "one")
            .body(json!({ "name": "ci" }).to_string());
        let answer = ada.send(request).await.expect("an answer");
        let body = done(&answer);
        let key = body["key"].as_str().expect("a key");
        assert!(key.len() == 67 && api_key::hash_of(key).is_some());
        assert_eq!(body["prefix"], key[..11]);
        insta::assert_json_snapshot!("key_created", body["apiKey"], {
            ".keyPrefix" => "[prefix]", ".createdAt" => "[time]",
        });
        let list = get(&ada, KEYS).await;
        assert_eq!(list["items"], json!([body["apiKey"]]));
        assert!(!list.to_string().contains(key));
        let hash = hex::encode(api_key::hash_of(key).expect("a hash"));
        assert!(!list.to_string().contains(&hash));
        for (table, rows) in crate::rows::every_row(service, &[]).await {
            assert!(!rows.contains(key), "{table} holds the key");
            assert_eq!(rows.to_lowercase().contains(&hash), table == "api_keys", "{table}");
        }
        assert!(is_let_in(&program(service, &body["key"])).await);
        let used = get(&ada, KEYS).await;
        let last_used = |list: &Value| list["items"][0]["lastUsedAt"].clone();
        assert!(last_used(&list).is_null() && last_used(&used).is_string(), "{used}");
    })
    .await;
}

#[tokio::test]
async fn only_a_whole_living_key_opens_anything() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let (ada, ada_id) = person(service, "ada", Role::Reporter).await;
        let (body, living) = created(service, &ada, json!({ "name": "ci" })).await;
        assert!(is_let_in(&living).await);
        let key = body["key"].as_str().expect("a key");
        let wrong = [
            key.to_uppercase(),
            format!("pd_{}", key[3..].to_uppercase()),
            key.replacen("pd_", "PD_", 1),
            key[..66].to_owned(),
            format!("{key}0"),
            format!("{key}%0A"),
            format!("{key},{key}"),
            key[3..].to_owned(),
        ];
        for wrong in wrong {
            let headers = [("authorization", format!("Bearer {wrong}")), ("x-api-key", wrong.clone())];
            for (header, value) in headers {
                let alone = service.client().with_header(header, &value).expect("a header");
                let answer = alone.get("/api/projects").await.expect("an answer");
                assert_eq!(answer.status, 401, "{header}: {value}");
                // What does not begin as our keys do is for somebody else: a proxy's own scheme.
                if header == "x-api-key" || wrong.to_lowercase().starts_with("pd_") {
                    // A cookie that is valid does not stand in for it.
                    let beside = ada.with_header(header, &value).expect("a header");
                    let answer = beside.get("/api/projects").await.expect("an answer");
                    refused(&answer, 401, "invalid_api_key");
                    assert!(answer.header("www-authenticate").contains("invalid_token"));
                }
            }
        }
        let now = service.state().now().millis();
        let (_, expired) = stored(service, ada_id, |key| key.expires_at = Some(Timestamp(now - 1000))).await;
        assert!(!is_let_in(&expired).await);

        // Own keys, or anybody's for an administrator.
        let (bob, _) = person(service, "bob", Role::Reporter).await;
        let path = format!("/api/users/{ada_id}/api-keys");
        let one = format!("{path}/{}", body["apiKey"]["id"]);
        refused(&bob.get(&path).await.expect("an answer"), 403, "insufficient_role");
        refused(&post(&bob, &path, json!({ "name": "x" })).await, 403, "insufficient_role");
        refused(&delete(&bob, &one).await, 403, "insufficient_role");
        refused(&delete(&bob, &format!("{KEYS}/{}", body["apiKey"]["id"])).await, 404, "api_key_not_found");
        assert!(is_let_in(&living).await);
        done(&delete(&admin, &one).await);
        done(&delete(&admin, &one).await);
        // A session beside it does not stand in for it, whosever it is.
        let both = admin.with_header("authorization", &format!("Bearer {key}")).expect("a header");
        for path in ["/api/users/me", "/api/projects", "/api/test-runs", "/api/openapi.json"] {
            for client in [&living, &both] {
                refused(&client.get(path).await.expect("an answer"), 401, "invalid_api_key");
            }
        }
        let listed = get(&ada, KEYS).await;
        assert!(listed["items"][1]["revokedAt"].is_string(), "{listed}");
        let words = audited(&admin, "&action=key.").await;
        assert_eq!(words, ["key.created", "key.revoked"]);
    })
    .await;
}

#[tokio::test]
async fn a_key_made_with_a_key_reaches_and_lasts_no_further() {
    for_each_secured_service(async |service| {
        let (admin, admin_id) = administrator(service).await;
        let (shop, other) = (project(service, "shop").await, project(service, "other").await);
        let end = Timestamp(service.state().now().millis() + HOUR_MS);
        let (parent, with_parent) = stored(service, admin_id, |key| {
            key.expires_at = Some(end);
            key.projects = Some(vec![shop]);
        })
        .await;
        for asked in [json!("2099-01-01T00:00:00Z"), Value::Null] {
            let (child, program) =
                created(service, &with_parent, json!({ "name": "child", "expiresAt": asked })).await;
            assert_eq!(child["apiKey"]["expiresAt"], end.to_iso());
            assert_eq!(child["apiKey"]["projectIds"], json!([shop.get()]));
            let names = all(&program, "/api/projects", "name", 10).await;
            assert_eq!(names, ["shop"]);
        }
        refused(
            &post(&with_parent, KEYS, json!({ "name": "x", "projectIds": [other.get()] })).await,
            403,
            "project_access_denied",
        );
        let (_, child) =
            created(service, &with_parent, json!({ "name": "child", "permission": "read" })).await;
        refused(&post(&child, KEYS, json!({ "name": "x" })).await, 403, "key_scope_denied");
        let (_, child) = created(service, &with_parent, json!({ "name": "child" })).await;
        let (_, grandchild) = created(service, &child, json!({ "name": "grandchild" })).await;
        assert!(is_let_in(&grandchild).await);

        // One of somebody else's dies with the key it was made with, which must not be narrowed.
        let ada = service.account("ada", Role::User).await.expect("an account");
        let of_ada = format!("/api/users/{ada}/api-keys");
        refused(&post(&with_parent, &of_ada, json!({ "name": "theirs" })).await, 403, "key_scope_denied");
        let (whole, with_whole) = stored(service, admin_id, |_| {}).await;
        let answer = post(&with_whole, &of_ada, json!({ "name": "theirs" })).await;
        let theirs = program(service, &done(&answer)["key"]);
        assert!(is_let_in(&theirs).await);
        for key in [parent, whole] {
            done(&delete(&admin, &format!("{KEYS}/{key}")).await);
        }
        for key in [&with_parent, &with_whole, &child, &grandchild, &theirs] {
            assert!(!is_let_in(key).await);
        }
    })
    .await;
}

#[tokio::test]
async fn keys_of_others_die_with_the_account_whose_key_made_them() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let second = service.account("second", Role::Administrator).await.expect("an account");
        let ada = service.account("ada", Role::User).await.expect("an account");
        let seconds = service.program_of(second, KeyPermission::Full).await.expect("a key");
        let answer = post(&seconds, &format!("/api/users/{ada}/api-keys"), json!({ "name": "theirs" })).await;
        let theirs = program(service, &done(&answer)["key"]);
        assert!(is_let_in(&theirs).await);
        done(&delete(&admin, &format!("/api/users/{second}")).await);
        assert!(!is_let_in(&theirs).await);
        let listed = get(&admin, &format!("/api/users/{ada}/api-keys")).await;
        assert_eq!(listed["items"][0]["createdBy"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn a_key_being_made_while_its_parent_is_revoked_does_not_outlive_it() {
    const ROUNDS: usize = 20;
    for_each_secured_service(async |service| {
        let (admin, admin_id) = administrator(service).await;
        for round in 0..ROUNDS {
            let (parent, with_parent) = stored(service, admin_id, |_| {}).await;
            let makes = (0..4).map(|_| post(&with_parent, KEYS, json!({ "name": "child" })));
            let revokes = async { delete(&admin, &format!("{KEYS}/{parent}")).await };
            let (made, revoked) = futures::join!(join_all(makes), revokes);
            done(&revoked);
            for answer in made.iter().filter(|answer| answer.status == 201) {
                let child = program(service, &done(answer)["key"]);
                assert!(!is_let_in(&child).await, "round {round}");
            }
            let other: Vec<_> = made.iter().filter(|answer| answer.status != 201).map(refusal).collect();
            assert!(other.iter().all(|(status, _)| *status == 401), "round {round}: {other:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_account_has_a_hundred_living_keys_at_most() {
    for_each_secured_service(async |service| {
        let (ada, ada_id) = person(service, "ada", Role::User).await;
        for _ in 0..97 {
            stored(service, ada_id, |_| {}).await;
        }
        let (revoked, _) = stored(service, ada_id, |_| {}).await;
        done(&delete(&ada, &format!("{KEYS}/{revoked}")).await);
        stored(service, ada_id, |key| key.expires_at = Some(Timestamp(1))).await;
        let answers = join_all((0..8).map(|_| post(&ada, KEYS, json!({ "name": "one more" })))).await;
        let refusals: Vec<_> = answers.iter().filter(|answer| answer.status != 201).map(refusal).collect();
        assert_eq!(refusals, vec![(413, "too_many_items".to_owned()); 5]);
        // Equal times, and each key once.
        let whole = all(&ada, KEYS, "id", 200).await;
        assert_eq!(whole.len(), 102);
        assert_eq!(all(&ada, KEYS, "id", 7).await, whole);
    })
    .await;
}

#[tokio::test]
async fn a_key_reaches_what_it_was_narrowed_to() {
    for_each_secured_service(async |service| {
        let (shop, other) = (project(service, "shop").await, project(service, "other").await);
        let (ada, ada_id) = person(service, "ada", Role::Reporter).await;
        service.assign(ada_id, Some(shop)).await.expect("assigned");
        service.assign(ada_id, Some(other)).await.expect("assigned");
        let (_, narrow) = created(service, &ada, json!({ "name": "shop", "projectIds": [shop.get()] })).await;
        assert_eq!(all(&narrow, "/api/projects", "name", 10).await, ["shop"]);
        refused(
            &narrow.get(&format!("/api/projects/{other}")).await.expect("an answer"),
            403,
            "project_access_denied",
        );
        let (_, ingest) = created(service, &ada, json!({ "name": "ci", "permission": "ingest" })).await;
        let submission = crate::builders::run("shop", "passed", Vec::new());
        assert_eq!(post(&ingest, "/api/test-runs/submit", submission.clone()).await.status, 200);
        refused(&ingest.get("/api/projects").await.expect("an answer"), 403, "key_scope_denied");
        let page =
            ingest.with_header("accept", "text/html").expect("a header").get("/").await.expect("a page");
        assert_eq!(page.status, 403);
        assert!(page.text().contains("No access") && !page.text().contains("shop"), "{}", page.text());
        let (_, read) = created(service, &ada, json!({ "name": "wall", "permission": "read" })).await;
        assert_eq!(read.get("/api/projects").await.expect("an answer").status, 200);
        refused(&post(&read, "/api/test-runs/submit", submission).await, 403, "key_scope_denied");
        refused(&patch(&read, "/api/users/me", json!({ "name": "x" })).await, 403, "key_scope_denied");
        let (_, metrics) = created(service, &ada, json!({ "name": "wall", "permission": "metrics" })).await;
        refused(&metrics.get("/api/projects").await.expect("an answer"), 403, "key_scope_denied");
    })
    .await;
}
