//! What is wrong with a request is told before anything is stored.

use callboard_domain::account::Role;
use callboard_store::Db;
use callboard_test_support::for_each_secured_service;
use serde_json::json;

use super::*;

/// How many rows there are of everything accounts consist of.
async fn rows(service: &Service) -> Vec<i64> {
    let tables = [
        "users",
        "project_assignments",
        "api_keys",
        "sessions",
        "account_tokens",
        "invitations",
        // That somebody was refused is told, and is not what was refused.
        "audit_events WHERE action NOT IN ('access.refused', 'change.refused')",
    ];
    let mut counts = Vec::new();
    for table in tables {
        let count = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
        counts.push(match service.state().store().db() {
            Db::Sqlite { readers, .. } => sqlx::query_scalar(count)
                .fetch_one(&mut *readers.get().await.expect("a connection"))
                .await
                .expect("a number"),
            Db::Postgres(pool) => sqlx::query_scalar(count)
                .fetch_one(&mut *pool.get().await.expect("a connection"))
                .await
                .expect("a number"),
        });
    }
    counts
}

#[tokio::test]
async fn a_request_that_is_refused_stores_nothing() {
    for_each_secured_service(async |service| {
        let (admin, admin_id) = administrator(service).await;
        let shop = project(service, "shop").await;
        let ada = service.account("ada", Role::User).await.expect("an account");
        let user = format!("/api/users/{ada}");
        let members = format!("/api/projects/{shop}/members");
        let keys = format!("{user}/api-keys");
        let with = |set: Value| crate::builders::with(new_user("bob", "user"), set);
        let key = |set: Value| crate::builders::with(json!({ "name": "ci" }), set);
        let invite =
            |set: Value| crate::builders::with(json!({ "email": "bob@example.org", "role": "user" }), set);
        let (post, patch, put) = (Method::POST, Method::PATCH, Method::PUT);
        let long = "x".repeat(101);
        let before = rows(service).await;
        for (method, path, body, status, code) in [
            (&post, "/api/users", json!([]), 400, "invalid_body"),
            (&post, "/api/users", json!({}), 400, "missing_field username"),
            (&post, "/api/users", json!({ "username": null, "role": "user" }), 400, "missing_field username"),
            (&post, "/api/users", with(json!({ "username": 7 })), 400, "invalid_field username"),
            (&post, "/api/users", with(json!({ "username": "ab" })), 400, "invalid_field username"),
            (&post, "/api/users", with(json!({ "username": " bob" })), 400, "invalid_field username"),
            (&post, "/api/users", with(json!({ "username": "bo\u{0}b" })), 400, "invalid_field username"),
            (&post, "/api/users", with(json!({ "username": "ADA" })), 409, "name_taken"),
            (&post, "/api/users", with(json!({ "role": "Administrator" })), 400, "invalid_field role"),
            (&post, "/api/users", with(json!({ "password": "short" })), 400, "invalid_field password"),
            (
                &post,
                "/api/users",
                with(json!({ "password": "x".repeat(1025) })),
                400,
                "invalid_field password",
            ),
            (&post, "/api/users", with(json!({ "name": "a\nb" })), 400, "invalid_field name"),
            (&post, "/api/users", with(json!({ "name": long })), 400, "invalid_field name"),
            (&post, "/api/users", with(json!({ "email": "bob" })), 400, "invalid_field email"),
            (
                &post,
                "/api/users",
                with(json!({ "email": "a@x.org\r\nBcc: b@x.org" })),
                400,
                "invalid_field email",
            ),
            (&post, "/api/users", with(json!({ "isGlobal": "yes" })), 400, "invalid_field isGlobal"),
            (&post, "/api/users", with(json!({ "projectIds": shop.get() })), 400, "invalid_field projectIds"),
            (
                &post,
                "/api/users",
                with(json!({ "projectIds": [shop.get(), "1"] })),
                400,
                "invalid_field projectIds",
            ),
            (
                &post,
                "/api/users",
                with(json!({ "projectIds": [shop.get(), -1] })),
                400,
                "invalid_field projectIds",
            ),
            (&post, "/api/users", with(json!({ "projectIds": [1.5] })), 400, "invalid_field projectIds"),
            (
                &post,
                "/api/users",
                with(json!({ "projectIds": [1_u64 << 60] })),
                400,
                "invalid_field projectIds",
            ),
            (
                &post,
                "/api/users",
                with(json!({ "projectIds": (1..=2001).collect::<Vec<_>>() })),
                413,
                "too_many_items",
            ),
            (
                &post,
                "/api/users",
                with(json!({ "projectIds": [shop.get(), 4711] })),
                404,
                "project_not_found",
            ),
            (
                &post,
                "/api/users",
                with(json!({ "role": "administrator", "isGlobal": true })),
                400,
                "invalid_field isGlobal",
            ),
            (&post, "/api/users", with(json!({ "name": "x".repeat(16 * 1024) })), 413, "body_too_large"),
            (&patch, &user, json!({}), 400, "no_fields"),
            (&patch, &user, json!({ "username": "eve" }), 400, "no_fields"),
            (&patch, &user, json!({ "role": null }), 400, "invalid_field role"),
            (&patch, &user, json!({ "disabled": null }), 400, "invalid_field disabled"),
            (&patch, &user, json!({ "disabled": 1 }), 400, "invalid_field disabled"),
            (&patch, &user, json!({ "name": "" }), 400, "invalid_field name"),
            (&patch, &user, json!({ "name": "ok", "email": "no" }), 400, "invalid_field email"),
            (&patch, "/api/users/0", json!({ "name": "x" }), 400, "invalid_user_id"),
            (&patch, "/api/users/4711", json!({ "name": "x" }), 404, "user_not_found"),
            (&put, &format!("{user}/projects"), json!({}), 400, "no_fields"),
            (&put, &format!("{user}/projects"), json!({ "isGlobal": null }), 400, "invalid_field isGlobal"),
            (
                &put,
                &format!("{user}/projects"),
                json!({ "isGlobal": true, "projectIds": [4711] }),
                404,
                "project_not_found",
            ),
            (
                &put,
                &format!("/api/users/{admin_id}/projects"),
                json!({ "isGlobal": true }),
                400,
                "invalid_field isGlobal",
            ),
            (
                &put,
                &format!("/api/users/{admin_id}/projects"),
                json!({ "projectIds": [] }),
                400,
                "invalid_field projectIds",
            ),
            (&put, &members, json!({}), 400, "missing_field userIds"),
            (&put, &members, json!({ "userIds": "all" }), 400, "invalid_field userIds"),
            (&put, &members, json!({ "userIds": [ada.get(), 4711] }), 404, "user_not_found"),
            (&put, &members, json!({ "userIds": [ada.get(), admin_id.get()] }), 400, "invalid_field userIds"),
            (&put, "/api/projects/4711/members", json!({ "userIds": [] }), 404, "project_not_found"),
            (&post, &keys, json!({}), 400, "missing_field name"),
            (&post, &keys, key(json!({ "name": "" })), 400, "invalid_field name"),
            (&post, &keys, key(json!({ "name": long })), 400, "invalid_field name"),
            (&post, &keys, key(json!({ "name": "a\u{0}b" })), 400, "invalid_field name"),
            (&post, &keys, key(json!({ "permission": "write" })), 400, "invalid_field permission"),
            (&post, &keys, key(json!({ "expiresAt": "soon" })), 400, "invalid_field expiresAt"),
            (&post, &keys, key(json!({ "expiresAt": "2020-01-01" })), 400, "invalid_field expiresAt"),
            (&post, &keys, key(json!({ "projectIds": [] })), 400, "invalid_field projectIds"),
            (&post, &keys, key(json!({ "projectIds": [4711] })), 404, "project_not_found"),
            (&post, &keys, key(json!({ "projectIds": [shop.get()] })), 403, "project_access_denied"),
            (&post, "/api/users/4711/api-keys", key(json!({})), 404, "user_not_found"),
            (&post, "/api/invitations", json!({}), 400, "missing_field email"),
            (&post, "/api/invitations", invite(json!({ "email": "no" })), 400, "invalid_field email"),
            (
                &post,
                "/api/invitations",
                invite(json!({ "email": format!("{}@example.org", "x".repeat(60)) })),
                400,
                "invalid_field email",
            ),
            (&post, "/api/invitations", invite(json!({ "projectIds": [4711] })), 404, "project_not_found"),
            (
                &post,
                "/api/invitations",
                invite(json!({ "role": "administrator", "projectIds": [shop.get()] })),
                400,
                "invalid_field projectIds",
            ),
            (&post, "/api/invitations/4711/resend", json!({}), 404, "invitation_not_found"),
            (&post, "/api/invitations/x/resend", json!({}), 400, "invalid_invitation_id"),
            (&post, &format!("{user}/invite"), json!({}), 409, "no_email"),
            (&post, "/api/users/4711/sign-out", json!({}), 404, "user_not_found"),
        ] {
            let answer = send(&admin, method.clone(), path, body.clone()).await;
            assert_eq!(
                refusal(&answer),
                (status, code.to_owned()),
                "{method} {path} {body}: {}",
                answer.text()
            );
        }
        for (path, status, code) in [
            ("/api/users/4711".to_owned(), 404, "user_not_found"),
            (format!("{keys}/4711"), 404, "api_key_not_found"),
            (format!("{keys}/01"), 400, "invalid_api_key_id"),
            (format!("{user}/sessions/{}", "0".repeat(32)), 404, "session_not_found"),
            (format!("{user}/sessions/1"), 400, "invalid_session_id"),
            ("/api/invitations/4711".to_owned(), 404, "invitation_not_found"),
        ] {
            refused(&delete(&admin, &path).await, status, code);
        }
        assert_eq!(rows(service).await, before);
    })
    .await;
}

#[tokio::test]
async fn a_query_that_cannot_be_is_refused() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        for path in [
            "/api/users?role=owner",
            "/api/users?state=gone",
            "/api/users?limit=0",
            "/api/users?q=a&q=b",
            "/api/audit?format=csv",
            "/api/audit?actor=ada",
            "/api/audit?project=0",
            "/api/audit?targetId=x",
            "/api/audit?from=2026-02-01&to=2026-01-01",
            "/api/audit?from=yesterday",
            "/api/users/me/sessions?limit=x",
        ] {
            let answer = admin.get(path).await.expect("an answer");
            refused(&answer, 400, "invalid_query");
        }
    })
    .await;
}
