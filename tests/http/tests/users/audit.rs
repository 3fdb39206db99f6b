//! The audit log: filtered, paged, sent whole, and never changed.

use callboard_domain::account::Role;
use callboard_domain::audit::AuditAction;
use callboard_domain::time::Timestamp;
use callboard_store::audit::{self, Actor, AuditEvent, Target};
use callboard_test_support::for_each_secured_service;
use serde_json::{Map, json};

use super::*;

const ENTRIES: i64 = 1_037;
/// 2026-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_767_225_600_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Many entries at three moments, one a day.
async fn filled(service: &Service, user: UserId) {
    let mut session = write(service).await;
    for n in 0..ENTRIES {
        let event = AuditEvent {
            at: Timestamp(NEW_YEAR + (n % 3) * DAY_MS),
            actor: if n % 2 == 0 { Actor { user: Some(user), ..Actor::default() } } else { Actor::default() },
            action: if n % 5 == 0 { AuditAction::LoginFailed } else { AuditAction::SettingsChanged },
            target: Some(Target { kind: if n % 7 == 0 { "run" } else { "setting" }, id: n % 11 + 1 }),
            project: (n % 4 == 0).then_some(ProjectId(9)),
            detail: Map::from_iter([("n".to_owned(), json!(n))]),
        };
        audit::record(&mut session, event).await.expect("stored").committed();
    }
    session.commit().await.expect("stored");
}

#[tokio::test]
async fn the_log_is_filtered_and_shows_each_entry_once() {
    for_each_secured_service(async |service| {
        let (admin, user) = administrator(service).await;
        filled(service, user).await;
        let share = |n: i64| usize::try_from((ENTRIES + n - 1) / n).expect("a number");
        for (query, expected) in [
            ("&to=2026-01-03".to_owned(), share(1)),
            (format!("&actor={user}"), share(2)),
            ("&action=login.".to_owned(), share(5)),
            ("&action=login.failed".to_owned(), share(5)),
            ("&action=nothing".to_owned(), 0),
            ("&project=9".to_owned(), share(4)),
            ("&targetType=run".to_owned(), share(7)),
            ("&targetType=run&targetId=1".to_owned(), share(77)),
            ("&from=2026-01-02&to=2026-01-02".to_owned(), share(3)),
            ("&from=2026-01-02T00:00:00.001Z&to=2026-01-03T00:00:00Z".to_owned(), share(3) - 1),
            (format!("&actor={user}&action=login&project=9"), share(20)),
        ] {
            let path = format!("/api/audit?x=1{query}");
            let whole = all(&admin, &path, "id", 200).await;
            assert_eq!(whole.len(), expected, "{query}");
            assert_eq!(all(&admin, &path, "id", 7).await, whole, "{query}");
            let lines = admin.get(&format!("{path}&format=ndjson&limit=3")).await.expect("an answer");
            assert_eq!(lines.header("content-type"), "application/x-ndjson");
            let lines: Vec<Value> = lines
                .text()
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
                .collect();
            assert_eq!(lines, whole, "{query}");
        }
        let whole = all(&admin, "/api/audit", "id", 200).await;
        assert!(whole.len() >= share(1), "also what was noted before this test");
        assert_eq!(all(&admin, "/api/audit", "id", 1).await, whole);
        let cursor = get(&admin, "/api/audit?limit=1").await["nextCursor"].clone();
        let other = format!("/api/audit?action=login&cursor={}", cursor.as_str().expect("a cursor"));
        refused(&admin.get(&other).await.expect("an answer"), 400, "invalid_cursor");
    })
    .await;
}

#[tokio::test]
async fn an_entry_tells_who_did_what_and_from_where() {
    for_each_secured_service(async |service| {
        let (admin, _) = administrator(service).await;
        let key = done(&post(&admin, "/api/users/me/api-keys", json!({ "name": "ci" })).await);
        let program = service.client().with_header("x-api-key", key["key"].as_str().expect("a key")).expect("a header");
        let created = done(&post(&program, "/api/users", new_user("ada", "reporter")).await);
        let id = &created["user"]["id"];
        done(&patch(&admin, &format!("/api/users/{id}"), json!({ "role": "user", "name": "Ada" })).await);
        let found = get(&admin, &format!("/api/audit?targetType=user&targetId={id}")).await;
        insta::assert_json_snapshot!("audit", found, {
            ".items[].at" => "[time]", ".items[].addressHash" => "[hash]", ".items[].actor.keyPrefix" => "[prefix]",
        });
        assert_eq!(found["items"][0]["addressHash"].as_str().map(str::len), Some(64));
        assert_eq!(found["items"][0]["actor"]["keyPrefix"], Value::Null);
        assert_eq!(found["items"][1]["actor"]["keyPrefix"], key["prefix"]);

        let (ada, _) = person(service, "bob", Role::Reporter).await;
        refused(&ada.get("/api/audit").await.expect("an answer"), 403, "insufficient_role");
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = send(&admin, method, "/api/audit", json!({})).await;
            refused(&answer, 405, "method_not_allowed");
        }
    })
    .await;
}
